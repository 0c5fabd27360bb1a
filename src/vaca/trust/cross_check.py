"""A second opinion on an average effect, straight from the rows.

The model's answer goes through every mechanism between treatment and outcome. This one looks only
at treatment, outcome and the columns to adjust for (`vaca.trust.adjustment`), and estimates the
difference by cross-fitted regressions that correct one another (`vaca.trust.debiased`). Both rest
on the same graph; if they differ by more than their errors, one of them cannot be relied on.

Which rule is used for which question:

- levels of a treatment, or an intervention against none: doubly robust, no model of the effect;
- a shift of a number: doubly robust, by the weight that turns the rows into shifted ones;
- two values of a number: a straight or a curved regression, whichever predicts better, with
  products of treatment and covariates where they help by more than one standard error; the weight
  is the one of that regression;
- `among`: the same, averaged over those rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vaca.errors import InterventionError, VacaError
from vaca.model.answers import half_width
from vaca.model.effects import chosen_rows, outcome_level, score
from vaca.model.intervention import Shift
from vaca.show.words import number, span
from vaca.table.columns import row_count
from vaca.table.schema import Columns, as_frame
from vaca.trust.adjustment import adjustment_set
from vaca.trust.debiased import About, Debiased, debiased, rule_of
from vaca.trust.features import Features

if TYPE_CHECKING:
    from vaca.model.answers import Effect
    from vaca.model.causal_model import CausalModel

__all__ = ["CrossCheck", "AskedRows", "cross_check", "table_of"]

#: Fewer rows than this make no regression.
MIN_ROWS = 40


@dataclass(frozen=True)
class CrossCheck:
    """A doubly robust estimate of an average effect.

    Attributes
    ----------
    value, standard_error : float
        In the outcome's units, or in probability.
    degrees : float
        Degrees of freedom of its t interval; few, where a few rows decide.
    n : int
        Rows used.
    adjustment : tuple of str
        The columns adjusted for.
    method : str
        The rule that was used, in words.
    words : str
        One line for a reader; two if it disagrees with the model's answer.
    agrees : bool or None
        Whether the model's answer is within their common error; None if there is no such answer.
    """

    value: float
    standard_error: float
    degrees: float
    n: int
    adjustment: tuple[str, ...]
    method: str
    words: str = ""
    agrees: bool | None = None
    parts: Debiased | None = field(default=None, repr=False, compare=False)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """A t interval by the influence of each row."""
        half = half_width(self.standard_error, self.degrees, level)
        return self.value - half, self.value + half

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True)
class AskedRows:
    """The rows behind a question, ready for regressions: see `table_of`."""

    rows: Columns
    y: np.ndarray
    features: Features
    arms: tuple[Columns, Columns]
    about: About | None
    row_weights: np.ndarray | None

    def estimate(self, features: Features | None = None, **options: Any) -> Debiased:
        """The estimate, with all features or others."""
        return debiased(
            self.rows, self.y, features or self.features, self.arms,
            about=self.about, row_weights=self.row_weights, **options,
        )  # fmt: skip


def cross_check(
    model: CausalModel,
    outcome: str,
    treatment: Mapping[str, Any],
    control: Mapping[str, Any] | None = None,
    *,
    level: Any = None,
    among: Mapping[str, Any] | str | None = None,
    data: Any = None,
    seed: int = 0,
) -> CrossCheck:
    """Estimate an average effect from the rows, without the model's mechanisms.

    Parameters
    ----------
    model : CausalModel
        Its graph and kinds of columns are used, and its rows if none are given.
    outcome, treatment, control, level, among
        As in `CausalModel.effect`.
    data : DataFrame, optional
        Observed rows; by default those the model was fitted to.

    Raises
    ------
    VacaError
        Where no such estimate exists, with the reason.

    Examples
    --------
    >>> import vaca
    >>> scm = vaca.scms.load("triangle-lin")
    >>> found = cross_check(scm, "x3", {"x2": 1.0}, {"x2": 0.0}, data=scm.sample(400, seed=0))
    >>> found.adjustment
    ('x1',)
    >>> low, high = found.interval()
    >>> low < 0.25 < high
    True
    """
    table = table_of(model, outcome, treatment, control, level=level, among=among, data=data)
    parts = table.estimate(seed=seed)
    found = CrossCheck(
        value=parts.value,
        standard_error=parts.standard_error,
        degrees=parts.degrees,
        n=len(table.y),
        adjustment=table.features.covariates,
        method=_method(table),
        parts=parts,
    )
    return _with(found, words=_line(found))


def check_effect(effect: Effect, seed: int = 0) -> CrossCheck:
    """The cross-check of an answer, with words on whether the two agree."""
    if effect.model is None:
        raise VacaError("this effect does not know which model gave it")
    if effect.per_row is not None and effect.rows is None:
        raise VacaError(
            "the answer is about given rows; vaca.trust.cross_check.cross_check(..., data=rows) "
            "estimates it from them"
        )
    found = cross_check(
        effect.model, effect.outcome, effect.treatment, effect.control,
        level=effect.level, among=effect.among, seed=seed,
    )  # fmt: skip
    own = effect.standard_error if effect.covers_fit else 0.0
    own = own if np.isfinite(own) else 0.0
    both = float(np.hypot(own, found.standard_error))
    degrees = min(found.degrees, effect.degrees)
    apart = abs(effect.value - found.value)
    agrees = apart <= half_width(both, degrees) + effect.slack
    words = found.words
    if not agrees:
        words += (
            f"\nThe two disagree: they are {number(apart)} apart, more than their errors explain. "
            "Rely on neither before you know why: is the treatment rare, or an arrow missing?"
        )
    return _with(found, words=words, agrees=bool(agrees))


def table_of(
    model: CausalModel,
    outcome: str,
    treatment: Mapping[str, Any],
    control: Mapping[str, Any] | None = None,
    *,
    level: Any = None,
    among: Mapping[str, Any] | str | None = None,
    data: Any = None,
) -> AskedRows:
    """The rows, the columns to adjust for and both arms of a question."""
    schema, graph = model.schema_, model.graph
    rows, weights = _rows(model, data)
    n = row_count(rows)
    if n < MIN_ROWS:
        raise VacaError(f"{n} rows are too few for a cross-check; it needs {MIN_ROWS}")
    level = outcome_level(schema, outcome, level)
    nodes = {name: None for do in (treatment, control or {}) for name in model._parse(do).nodes}
    target = graph.node_of(outcome)
    if target in nodes:
        raise VacaError(f"{outcome!r} is set by the intervention itself")
    _refuse_chained(model, treatment, control, list(nodes))
    adjusted = adjustment_set(graph, list(nodes), target)
    treated = [c for node in nodes for c in graph.columns(node)]
    covariates = [c for node in adjusted for c in graph.columns(node)]
    about: About | None = None
    if among is not None:
        asked = _columns_in(among, schema.columns)
        moved = set(graph.descendants(*nodes))
        for name in asked:
            if graph.node_of(name) in moved:
                raise VacaError(f"among looks at {name!r}, which the treatment moves")

        def chosen(some: Columns) -> np.ndarray:
            return chosen_rows(schema.decode(some), among, schema)

        about = chosen
        if not about(rows).any():
            raise VacaError("among= leaves no row")
        covariates += [c for c in asked if c not in covariates and c not in treated]
    first, second = (_arm(model, do, rows, n) for do in (treatment, control or {}))
    _refuse_unseen(rows, schema, (first, second))
    return AskedRows(
        rows,
        score(schema, outcome, level, rows[outcome]).astype(float),
        Features(rows, schema, treated, covariates),
        (first, second),
        about,
        weights,
    )


# ---------------------------------------------------------------------- parts


def _with(found: CrossCheck, **changes: Any) -> CrossCheck:
    from dataclasses import replace

    return replace(found, **changes)


def _rows(model: CausalModel, data: Any) -> tuple[Columns, np.ndarray | None]:
    if data is not None:
        return model.schema_.encode(as_frame(data)), None
    rows = getattr(model, "rows_", None) if model._learned else None
    if not rows:
        raise VacaError(
            "there are no rows to check the answer with: the model keeps none; give data="
        )
    return rows, getattr(model, "weights_", None)


def _arm(model: CausalModel, do: Mapping[str, Any], rows: Columns, n: int) -> Columns:
    intervention = model._parse(do)
    for columns in intervention.parts.values():
        for name, part in columns.items():
            if isinstance(part, (list, tuple, np.ndarray, pd.Series)):
                raise VacaError(f"do on {name!r} has a value for each row, not one for all")
    rng = np.random.default_rng(0)
    encoded = intervention.encode_rows(n).draw_random(n, rng)
    return encoded.resolve(lambda done: {**rows, **done})


def _refuse_chained(model: CausalModel, treatment: Any, control: Any, nodes: list[str]) -> None:
    """A shift or policy below another treated node starts from a value nobody saw."""
    for do in (treatment, control or {}):
        for node, columns in model._parse(do).parts.items():
            above = set(model.graph.ancestors(node)) & set(nodes)
            for name, part in columns.items():
                if above and (isinstance(part, Shift) or callable(part)):
                    raise InterventionError(
                        f"{name!r} is changed from what {sorted(above)[0]!r} would make it: no "
                        "regression of the rows answers that"
                    )


def _refuse_unseen(rows: Columns, schema: Any, arms: tuple[Columns, Columns]) -> None:
    for arm in arms:
        for name, values in arm.items():
            if schema[name].discrete:
                gone = np.setdiff1d(values, rows[name])
                if len(gone):
                    shown = schema[name].levels[int(gone[0])]
                    raise VacaError(f"no row has {name} = {shown}")


def _columns_in(among: Mapping[str, Any] | str, columns: tuple[str, ...]) -> list[str]:
    if not isinstance(among, str):
        return [name for name in among if name in columns]
    words = set(re.findall(r"`([^`]+)`", among)) | set(re.findall(r"\w+", among))
    return [name for name in columns if name in words]


def _method(table: AskedRows) -> str:
    one_value = rule_of(table.features, table.arms) == "one value"
    return "debiased regression" if one_value else "doubly robust"


def _line(found: CrossCheck) -> str:
    value, low, high = span(found.value, *found.interval())
    names = list(found.adjustment)
    shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if names[4:] else "")
    on = f"adjusted for {shown}" if names else "nothing to adjust for"
    return f"cross-check ({found.method}, {on}): {value} (95 % {low} to {high})"
