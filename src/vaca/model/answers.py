"""What queries give back: frames of counterfactuals, and effects with their standard error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from vaca.errors import VacaError, shorten
from vaca.model.arguments import check_number
from vaca.table.dtypes import as_numbers, holds_dates
from vaca.table.words import shown_number

#: For a single row, a fit also errs by what it smooths away, and refits share that error: answers
#: miss the truth by about 1.3 times the spread of the refits, on the tables of
#: `vaca.model.effects.CHOSEN`.
AT_A_POINT = 1.3


class CounterfactualFrame(pd.DataFrame):
    """A DataFrame of counterfactuals that also knows what it rests on.

    Attributes
    ----------
    outside_support : list of str
        A sentence for each intervention that leaves the range of the data; empty if none does.
    draws : int or None
        Draws of each row, under the last level of the index.
    fits : int
        How many fits share the draws, taking turns.
    bounds : DataFrame or None
        If asked for: the lowest and highest probability of each level, whatever the model assumes
        about noise; see `vaca.trust.bounds.counterfactual_bounds`.
    """

    _metadata = ["outside_support", "draws", "fits", "bounds"]

    outside_support: list[str]
    draws: int | None
    fits: int
    bounds: pd.DataFrame | None = None

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return CounterfactualFrame

    def summary(self, quantiles: tuple[float, float] = (0.05, 0.95)) -> pd.DataFrame:
        """Per factual row and column: mean, sd and two quantiles over the draws.

        Discrete columns give their most frequent level and its share instead. Needs an answer with
        `draws=`. The columns of the result are (column, statistic). Where several fits share the
        draws, the quantiles allow for their small number.
        """
        if getattr(self, "draws", None) is None:
            raise VacaError("a summary is over draws: ask for counterfactual(..., draws=200)")
        quantiles = check_pair(quantiles)
        row = self._row_of()
        first = np.unique(row, return_index=True)[1]
        index = self.index.droplevel(-1)[first]
        turn = self.index.get_level_values(-1).to_numpy() % max(getattr(self, "fits", 1), 1)
        result: dict[tuple[str, str], Any] = {}
        for name in self.columns:
            values = pd.Series(self[name].array)
            numeric = pd.api.types.is_numeric_dtype(values.dtype)
            if (numeric and not pd.api.types.is_bool_dtype(values.dtype)) or holds_dates(values):
                found = spread_over_fits(as_numbers(values), row, turn, quantiles)
                result.update({(name, key): column for key, column in found.items()})
            else:
                codes, levels = pd.factorize(values, use_na_sentinel=False)
                counts = np.zeros((len(first), len(levels)))
                np.add.at(counts, (row, codes), 1.0)
                top = counts.argmax(axis=1)
                mode = pd.Series(levels.take(top)).astype(values.dtype)
                result[name, "mode"] = mode.array
                result[name, "share"] = counts.max(axis=1) / counts.sum(axis=1)
        return pd.DataFrame(result, index=index)

    def _row_of(self) -> np.ndarray:
        """Which factual row, counted from 0, each draw belongs to.

        By its label; where rows share one, by place: the draws of a row begin with its lowest.
        """
        draw = self.index.get_level_values(-1).to_numpy()
        if self.index.is_unique:
            labels = self.index.droplevel(-1)
            return pd.factorize(labels)[0]
        new = np.r_[True, draw[1:] <= draw[:-1]]
        return np.cumsum(new) - 1


def check_pair(quantiles: Any) -> tuple[float, float]:
    """Two quantiles, both from 0 to 1."""
    given = quantiles if isinstance(quantiles, Sequence | np.ndarray) else ()
    if isinstance(given, str | bytes) or len(given) != 2:
        raise VacaError(f"quantiles are two numbers, like (0.05, 0.95); got {shorten(quantiles)}")
    low, high = (check_number("a quantile", q, 0, 1) for q in given)
    return low, high


def half_width(error: float, degrees: float, level: float = 0.95) -> float:
    """Half of a t interval, from a standard error and its degrees of freedom.

    >>> round(half_width(0.5, float("inf")), 2), round(half_width(0.5, 5), 2)
    (0.98, 1.29)
    """
    from scipy.stats import t

    return float(t.ppf(0.5 + level / 2, degrees)) * error


def spread_over_fits(
    values: np.ndarray, row: np.ndarray, turn: np.ndarray, quantiles: tuple[float, float]
) -> dict[str, np.ndarray]:
    r"""Mean, sd and quantiles of each row's draws, as one more fit might give them.

    M fits say little about the variance of their means. So a draw is taken as
    :math:`\bar m + c s\sqrt{1 + 1/M}\,t + w`, where :math:`t` has Student's distribution, :math:`w`
    is the draw's distance from the mean of its own fit, and c is `AT_A_POINT`.
    """
    by = pd.Series(values).groupby(row)
    size = by.transform("size").to_numpy()
    found = {"mean": by.mean().to_numpy(), "sd": by.std().fillna(0.0).to_numpy()}
    fits = np.unique(turn)
    shifted = values
    if len(fits) > 1 and size.min() >= len(fits):
        from scipy.stats import t

        own = pd.Series(values).groupby([row, turn])
        means, counts = own.mean(), own.size()
        within = values - own.transform("mean").to_numpy()
        spare = np.maximum(by.size().to_numpy() - len(fits), 1)
        inner = np.bincount(row, within**2) / spare
        outer = means.groupby(level=0).var().to_numpy() * (1 + 1 / len(fits)) * AT_A_POINT**2
        # The mean of a fit's few draws also varies by chance, which is not spread between fits.
        outer = np.maximum(outer - inner * (1 / counts).groupby(level=0).mean().to_numpy(), 0.0)
        place = pd.Series(np.random.default_rng(0).random(len(values))).groupby(row).rank()
        chance = t.ppf((place.to_numpy() - 0.5) / size, len(fits) - 1)
        shifted = found["mean"][row] + np.sqrt(outer)[row] * chance + within
        found["sd"] = np.sqrt(outer + inner)
    again = pd.Series(shifted).groupby(row)
    for q in quantiles:
        found[f"{100 * q:g}%"] = again.quantile(q).to_numpy()
    return found


@dataclass(frozen=True)
class Effect:
    """An average effect: the mean outcome under `treatment` minus that under `control`.

    Attributes
    ----------
    value : float
        The average difference, in the outcome's units (for a level: in probability).
    standard_error : float
        Of the average: from the rows drawn and, if `covers_fit`, from the fit. It never covers a
        wrong graph or hidden causes.
    per_row : Series or None
        The difference for each factual row, when rows were given.
    covers_fit : bool
        Whether the standard error includes the uncertainty of the fit. If not, it is only the error
        of the simulation, and no interval is printed.
    degrees : float
        Degrees of freedom of the t interval.
    members : tuple of float
        The same effect by each refit or member; their spread is that of the fit.
    extrapolated_share : float
        Share of the rows that the effect is about for which the data hold nothing comparable under
        one of the two interventions.
    slack : float
        How far those rows could move the average, if they are many: their share times the range of
        the outcome. It widens the interval on both sides.
    among : mapping, str or None
        The group the effect is about, as it was asked for.
    rows : array or None
        The places of those rows in `model.rows_`, if they are from there.
    model : CausalModel or None
        The model that answered.
    engines : DataFrame or None
        What other engines answer, if they were asked.
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
    extrapolated_share: float = 0.0
    slack: float = 0.0
    among: Any = None
    rows: np.ndarray | None = field(default=None, repr=False, compare=False)
    model: Any = field(default=None, repr=False, compare=False)
    engines: pd.DataFrame | None = field(default=None, repr=False, compare=False)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """A t interval; it covers the fit only if `covers_fit` says so.

        >>> Effect(1.0, 0.5, "y", {"x": 1}, {}).interval(0.95)
        (0.02..., 1.97...)
        """
        level = check_number("the level of an interval", level, 0, 1)
        half = half_width(self.standard_error, self.degrees, level) + self.slack
        return self.value - half, self.value + half

    @cached_property
    def cross_check(self) -> Any:
        """A second opinion, straight from the model's rows: a `CrossCheck`, or None.

        `vaca.trust.cross_check.check_effect` says why there is none.
        """
        from vaca.trust.cross_check import check_effect

        try:
            return check_effect(self)
        except VacaError:
            return None

    def sensitivity(self) -> Any:
        """How strong a hidden common cause would have to be to explain the effect away.

        Returns
        -------
        vaca.trust.hidden.Sensitivity
            With `robustness_value`, `benchmarks`, `sentence`, `bounds()` and `plot()`.
        """
        from vaca.trust.hidden import sensitivity

        return sensitivity(self)

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return "; ".join([f"{self.asked}: {self.answered}", *self.notes()])

    @property
    def asked(self) -> str:
        """The question, in words."""
        what = self.outcome if self.level is None else f"P({self.outcome} = {self.level})"
        against = do_label(self.control) or "nothing"
        whom = "" if self.among is None else f" among {shown_among(self.among)}"
        return f"effect on {what} of do({do_label(self.treatment)}) against do({against}){whom}"

    @property
    def answered(self) -> str:
        """The value and how certain it is, in words."""
        if self.unreachable:
            return (
                f"none: no arrow leads from {', '.join(self.treatment)} to {self.outcome}, "
                "directly or through others"
            )
        value, error = shown_number(self.value), shown_number(self.standard_error, 2)
        if self.standard_error <= 1e-12 * max(1.0, abs(self.value)) and not self.slack:
            # The same for every row, such as the slope of a line, up to rounding.
            return (
                f"{value} for everyone" if self.covers_fit else f"{value} (simulation error: none)"
            )
        if not self.covers_fit:
            return f"{value} (simulation error only: {error})"
        low, high = (shown_number(end) for end in self.interval())
        return f"{value} (standard error {error}, 95 % {low} to {high})"

    @property
    def unreachable(self) -> bool:
        """Whether the graph has no path from the treatment to the outcome."""
        if self.model is None:
            return False
        moved = (
            self.model._parse(self.treatment).affected | self.model._parse(self.control).affected
        )
        return self.model.graph.node_of(self.outcome) not in moved

    def notes(self) -> list[str]:
        """What a reader should know about the answer, one sentence each."""
        return [*self.extrapolation(), *self.outside_support]

    def extrapolation(self) -> list[str]:
        """For how many rows the answer goes beyond the data, and what can be asked instead."""
        if not self.slack:
            return []
        said = (
            f"for {100 * self.extrapolated_share:.0f} % of the rows the data hold nobody "
            "comparable under one of the two"
        )
        said += ": the interval allows any outcome for them" if self.covers_fit else ""
        answerable = None if self.model is None else self.model._answerable(self)
        if answerable is not None:
            said += f". Data can answer it among {shown_among(answerable)}"
        return [said]


class GroupEffects(pd.DataFrame):
    """One average effect for each group: `rows`, `effect`, `standard_error`, `low`, `high`.

    Attributes
    ----------
    effects : dict of Effect
        By label of the group.
    whole : Effect
        The effect over all groups.
    """

    _metadata = ["effects", "whole"]

    effects: dict[str, Effect]
    whole: Effect

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return GroupEffects

    @classmethod
    def of(cls, effects: dict[str, Effect], by: str, whole: Effect) -> GroupEffects:
        """The table of the effects, with 95 % intervals."""
        rows = []
        for one in effects.values():
            low, high = one.interval()
            size = 0 if one.per_row is None else len(one.per_row)
            rows.append((size, one.value, one.standard_error, low, high, one.extrapolated_share))
        names = ["rows", "effect", "standard_error", "low", "high", "extrapolated_share"]
        result = cls(pd.DataFrame(rows, columns=names, index=pd.Index(effects, name=by)))
        result.effects, result.whole = effects, whole
        return result

    def plot(self, ax: Any = None, level: float = 0.95) -> Any:
        """The groups one above the other with their intervals, and all together below."""
        from vaca.show.plot import plot_effects

        return plot_effects({**self.effects, "all": self.whole}, ax=ax, level=level)


def shown_among(among: Mapping[str, Any] | str) -> str:
    """The group an answer is about, for a reader: `treat = 1`."""
    return among if isinstance(among, str) else do_label(among)


def do_label(do: Mapping[str, Any]) -> str:
    """An intervention in short: `age + 5, sex = female`.

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
    """One part of an intervention, in short."""
    if isinstance(value, Mapping):
        return do_label(value)
    if hasattr(value, "delta"):
        return f"{'-' if value.delta < 0 else '+'} {abs(value.delta):g}"
    if isinstance(value, (pd.Series, np.ndarray, list, tuple)):
        return "one value per row"
    if isinstance(value, float):
        return f"{value:g}"
    return str(getattr(value, "__name__", None) or value)
