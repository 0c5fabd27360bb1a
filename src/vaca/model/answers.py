"""What queries give back: frames of counterfactuals, and effects with their standard error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd


class CounterfactualFrame(pd.DataFrame):
    """A DataFrame of counterfactuals that also knows what it rests on.

    Attributes
    ----------
    outside_support : list of str
        A sentence for each intervention that leaves the range of the data; empty if none does.
    """

    _metadata = ["outside_support"]

    outside_support: list[str]

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return CounterfactualFrame

    def summary(self, quantiles: tuple[float, float] = (0.05, 0.95)) -> pd.DataFrame:
        """Per factual row and column: mean, sd and two quantiles over the draws.

        Discrete columns give their most frequent level and its share instead. Needs an answer with
        `draws=`. The columns of the result are (column, statistic).
        """
        if "draw" not in self.index.names:
            raise ValueError("a summary is over draws: ask for counterfactual(..., draws=200)")
        levels = [name for name in self.index.names if name != "draw"]
        by = pd.DataFrame(self).groupby(level=levels or 0, sort=False, observed=True)
        result: dict[tuple[str, str], Any] = {}
        for name in self.columns:
            group = by[name]
            if pd.api.types.is_numeric_dtype(self[name].dtype) and not pd.api.types.is_bool_dtype(
                self[name].dtype
            ):
                result[name, "mean"] = group.mean()
                result[name, "sd"] = group.std()
                for q in quantiles:
                    result[name, f"{100 * q:g}%"] = group.quantile(q)
            else:
                shares = group.value_counts(normalize=True, sort=True)
                top = shares.groupby(level=levels or 0, sort=False).head(1)
                frame = top.reset_index(level=-1)
                frame.columns = ["mode", "share"]
                result[name, "mode"], result[name, "share"] = frame["mode"], frame["share"]
        return pd.DataFrame(result)


@dataclass(frozen=True)
class Effect:
    """An average effect: the mean outcome under `treatment` minus that under `control`.

    Attributes
    ----------
    value : float
        The average difference, in the outcome's units (for a level: in probability).
    standard_error : float
        Of the average: of the rows drawn and, if `covers_fit`, of the fit. Never of a wrong graph
        or of hidden causes.
    per_row : Series or None
        The difference for each factual row, when rows were given.
    covers_fit : bool
        Whether the standard error holds the uncertainty of the fit. If not, it is the error of
        the simulation alone, and no interval is printed.
    degrees : float
        Degrees of freedom of the t interval.
    members : tuple of float
        The same effect by each refit or member; their spread is that of the fit.
    """

    value: float
    standard_error: float
    outcome: str
    treatment: dict[str, Any]
    control: dict[str, Any]
    level: Any = None
    per_row: pd.Series | None = None
    outside_support: list[str] = field(default_factory=list)
    covers_fit: bool = False
    degrees: float = float("inf")
    members: tuple[float, ...] = ()

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """A t interval; it covers the fit only if `covers_fit` says so.

        >>> Effect(1.0, 0.5, "y", {"x": 1}, {}).interval(0.95)
        (0.02..., 1.97...)
        """
        from scipy.stats import t

        half = float(t.ppf(0.5 + level / 2, self.degrees)) * self.standard_error
        return self.value - half, self.value + half

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        what = self.outcome if self.level is None else f"P({self.outcome} = {self.level})"
        against = do_label(self.control) or "nothing"
        text = (
            f"effect on {what} of do({do_label(self.treatment)}) against do({against}): "
            f"{self.value:.4g} ({self.spread()})"
        )
        return "; ".join([text, *self.outside_support])

    def spread(self) -> str:
        """How sure the value is, in words."""
        if not self.covers_fit:
            return f"simulation error only: {self.standard_error:.2g}"
        low, high = self.interval()
        return f"standard error {self.standard_error:.2g}, 95 % {low:.4g} to {high:.4g}"


def do_label(do: Mapping[str, Any]) -> str:
    """Write an intervention as it is read: `age + 5, sex = female`.

    >>> import vaca
    >>> do_label({"age": vaca.Shift(5), "sex": "female"})
    'age + 5, sex = female'
    """
    parts = []
    for name, value in do.items():
        if isinstance(value, Mapping):
            parts.append(do_label(value))
        elif hasattr(value, "delta"):
            parts.append(f"{name} {'-' if value.delta < 0 else '+'} {abs(value.delta):g}")
        else:
            parts.append(f"{name} = {shown_value(value)}")
    return ", ".join(parts)


def shown_value(value: Any) -> str:
    """One part of an intervention, short."""
    if isinstance(value, Mapping):
        return do_label(value)
    if hasattr(value, "delta"):
        return f"{'-' if value.delta < 0 else '+'} {abs(value.delta):g}"
    if isinstance(value, (pd.Series, np.ndarray, list, tuple)):
        return "one value per row"
    if isinstance(value, float):
        return f"{value:g}"
    return str(getattr(value, "__name__", None) or value)
