r"""Average effects: for which rows, by which fits, and how certain they are.

The value is that of the main fit. Every refit answers the same question with the same noise; with
their answers :math:`m_1, \dots, m_K` and the main one, :math:`m`,

.. math:: s^2 = \frac{c^2}{K} \sum_k (m_k - m)^2, \qquad m \pm t_K \sqrt{s^2 + r^2},

where :math:`r` is the error of a mean over finitely many rows. Refits with the weights of a
Bayesian bootstrap scatter around the main fit as it scatters around the truth, so that
:math:`(m - truth) / s` has roughly Student's t distribution with K degrees of freedom; `c` is near
one, see `CHOSEN`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vaca.errors import SchemaError, VacaError, did_you_mean, shorten
from vaca.model.answers import Effect, GroupEffects, shown_among
from vaca.model.intervention import warn_outside_support
from vaca.table.schema import Schema, as_frame

if TYPE_CHECKING:
    from vaca.model.causal_model import CausalModel
    from vaca.model.primitives import Primitives

#: Draws of each row that are averaged, when the caller does not say how many.
DRAWN_ROWS = 10_000
FEWEST_DRAWS, MOST_DRAWS = 20, 200
#: If at least this share of the rows extrapolates, the interval of an answer allows for it.
EXTRAPOLATED = 0.1
#: Refits keep what the fit has chosen: kinds of mechanism, how strongly to smooth. So answers vary
#: a little more between tables than between refits: by a factor of about 1.05 (1.06 on 240 tables
#: of eight kinds, 500 rows each, that were made only to measure it).
CHOSEN = 1.05
#: Groups of about the same size that a numeric column is cut into.
GROUPS = 4


@dataclass(frozen=True)
class EffectQuestion:
    """The effect of `treatment` against `control` on an outcome, for given rows or new ones."""

    outcome: str
    level: Any
    treatment: Mapping[str, Any]
    control: Mapping[str, Any]
    rows: pd.DataFrame | None
    n: int
    draws: int | None
    seed: int


@dataclass(frozen=True)
class About:
    """The rows an answer is about, their weights, and where they are among the kept rows."""

    rows: pd.DataFrame | None = None
    weights: np.ndarray | None = None
    positions: np.ndarray | None = None

    def take(self, at: np.ndarray) -> About:
        """Some of them."""
        rows = None if self.rows is None else self.rows.iloc[at]
        weights = None if self.weights is None else self.weights[at]
        return About(rows, weights, None if self.positions is None else self.positions[at])


def average_effect(
    model: CausalModel,
    question: EffectQuestion,
    among: Mapping[str, Any] | str | None = None,
    by: str | Sequence[str] | None = None,
) -> Effect | GroupEffects:
    """See `CausalModel.effect`."""
    schema = model.schema_
    if not isinstance(question.outcome, str) or question.outcome not in schema:
        raise VacaError(
            f"unknown outcome {question.outcome!r}; "
            f"{did_you_mean(question.outcome, schema.columns)}"
        )
    level = outcome_level(schema, question.outcome, question.level)
    about = _about(model, question, among, by)
    question = replace(question, level=level, rows=about.rows)
    if about.rows is not None and question.draws is None:
        question = replace(question, draws=_draws_needed(model, question))
    main, others = model._fits()
    outside: list[str] = []
    first = differences(main or others[0], question, outside)
    warn_outside_support(outside, stacklevel=4)
    found = [first] if main is None else []
    found += [differences(other, question, None) for other in others[len(found) :]]
    values = first if main is not None else np.mean(found, axis=0)
    far = model._extrapolated(question.treatment, question.control, about.rows)
    base = Effect(
        value=0.0,
        standard_error=0.0,
        outcome=question.outcome,
        treatment=dict(question.treatment),
        control=dict(question.control),
        level=level if schema[question.outcome].discrete else None,
        outside_support=outside,
        covers_fit=bool(others) or not model._learned,
        model=model,
        among=among,
    )
    whole = _summarised(base, about, values, found, main is not None, far, schema)
    if by is None:
        return whole
    assert about.rows is not None
    effects = {}
    for label, at in _groups(about.rows, by, schema).items():
        part = [values_of[at] for values_of in found]
        effects[label] = _summarised(
            base, about.take(at), values[at], part, main is not None,
            None if far is None else far[at], schema,
        )  # fmt: skip
    return GroupEffects.of(effects, by if isinstance(by, str) else ", ".join(by), whole)


def outcome_level(schema: Schema, outcome: str, level: Any) -> Any:
    """The level whose probability is meant; None for a mean."""
    column = schema[outcome]
    if not column.discrete:
        if level is not None:
            raise VacaError(f"{outcome!r} is {column.kind} and has no level {level!r}")
        return None
    if level is None and not column.numeric_levels:
        if column.kind != "binary":
            raise VacaError(
                f"the outcome {outcome!r} is {column.kind}: name the level whose probability "
                f"is meant with level=; its levels: {list(column.levels)}"
            )
        level = column.levels[-1]
    if level is not None:
        schema.encode_value(outcome, level)  # says which levels there are
    return level


def score(schema: Schema, outcome: str, level: Any, values: np.ndarray) -> np.ndarray:
    """Encoded values (n,) of an outcome as the numbers that are averaged."""
    column = schema[outcome]
    if not column.discrete:
        return values
    if level is None:
        return np.asarray(column.levels, dtype=float)[values]
    return (values == schema.encode_value(outcome, level)).astype(float)


def differences(
    model: Primitives, question: EffectQuestion, outside: list[str] | None
) -> np.ndarray:
    """Per row: the outcome under treatment minus that under control, with the same noise.

    Sentences about what leaves the data go to `outside`, if it is given.
    """
    arms, rows, draws = [], question.rows, question.draws
    whole = rows is not None and not rows.isna().any(axis=None)
    for do in (question.treatment, question.control):
        if whole and isinstance(do, Mapping) and not len(do):  # the row stays as it is
            kept = model._encode(rows)[question.outcome]
            x = {question.outcome: np.repeat(kept, draws or 1)}
        elif rows is None:
            x, intervention = model._sampled(question.n, do, question.seed)
        else:
            x, intervention = model._answered(rows, do, draws, question.seed, deal=False)
        if outside is not None and len(do):
            outside += model._outside(intervention, x)
        arms.append(score(model.schema_, question.outcome, question.level, x[question.outcome]))
    found = arms[0] - arms[1]
    return found if not draws else found.reshape(-1, draws).mean(axis=1)


def _draws_needed(model: CausalModel, question: EffectQuestion) -> int | None:
    """How many draws to average where abduction is not exact, so a point answer is not the mean.

    Taking the likeliest level of each row would show no effect where many rows have a small one.
    """
    graph = model.graph
    below = {*model._parse(question.treatment).below, *model._parse(question.control).below}
    target = graph.node_of(question.outcome)
    passed = below & {target, *graph.ancestors(target)}
    columns = [c for node in passed for c in graph.columns(node)]
    assert question.rows is not None
    gaps = question.rows[[c for c in model.schema_ if c in question.rows]].isna().any(axis=None)
    if not gaps and all(model._assumption(c)[0] for c in columns):
        return None
    return int(np.clip(-(-DRAWN_ROWS // len(question.rows)), FEWEST_DRAWS, MOST_DRAWS))


# ---------------------------------------------------------------------- whom it is about


def _about(
    model: CausalModel, question: EffectQuestion, among: Mapping[str, Any] | str | None, by: Any
) -> About:
    if question.rows is not None:
        about = About(as_frame(question.rows))
    elif among is not None or by is not None:
        about = About(*model._population(question.n, question.seed))
    else:
        return About()
    assert about.rows is not None
    if len(about.rows) == 0:
        raise SchemaError("there are no rows to average over")
    if among is None:
        return about
    at = np.flatnonzero(chosen_rows(about.rows, among, model.schema_))
    if len(at) == 0:
        raise VacaError(f"none of the {len(about.rows)} rows is among {shown_among(among)}")
    return about.take(at)


def chosen_rows(rows: pd.DataFrame, among: Mapping[str, Any] | str, schema: Schema) -> np.ndarray:
    """Which rows (n,) are meant: equal to the values of a mapping, or by a query.

    >>> import pandas as pd, vaca
    >>> rows = pd.DataFrame({"age": [30.0, 50.0], "sex": ["f", "m"]})
    >>> schema = vaca.Schema.infer(rows, vaca.CausalGraph.from_edges([("sex", "age")]))
    >>> chosen_rows(rows, {"sex": "m"}, schema), chosen_rows(rows, "age > 20", schema)
    (array([False,  True]), array([ True,  True]))
    """
    if isinstance(among, str):
        _check_condition(among)
        try:
            found = rows.eval(among, local_dict={}, global_dict={})
        except Exception as error:  # pandas raises many kinds
            raise VacaError(
                f"among: {among!r} is not a condition on the columns ({error}); write it like "
                f"'age > 40' with columns of: {', '.join(map(str, rows.columns))}"
            ) from None
        if not isinstance(found, pd.Series) or not pd.api.types.is_bool_dtype(found.dtype):
            raise VacaError(f"among: {among!r} is not a condition; write it like 'age > 40'")
        return found.to_numpy(dtype=bool)
    if not isinstance(among, Mapping):
        raise VacaError(
            f"among is a condition like 'age > 40' or a dict like {{'sex': 'f'}}; got "
            f"{shorten(among)}"
        )
    mask = np.ones(len(rows), dtype=bool)
    for name, value in among.items():
        if name not in rows.columns:
            raise VacaError(f"among: unknown column {name!r}; {did_you_mean(name, rows.columns)}")
        if name in schema:
            values = schema[name].encode(
                name, rows[name], missing=True
            )  # a missing value matches nothing
            mask &= values == schema.encode_value(name, value)
        else:
            mask &= (rows[name] == value).to_numpy(dtype=bool)
    return mask


#: What a condition may be made of: names, values, comparisons, arithmetic. No calls, no attributes.
_CONDITION = (
    ast.Expression, ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Compare, ast.Name, ast.Constant,
    ast.List, ast.Tuple, ast.Load, ast.boolop, ast.unaryop, ast.operator, ast.cmpop,
)  # fmt: skip


def _check_condition(text: str) -> None:
    """A condition may come from a file or a page: it must not be able to run anything.

    >>> _check_condition("age > 40 and sex == 'f'")
    >>> _check_condition("age.to_csv('x')")
    Traceback (most recent call last):
    vaca.errors.VacaError: among: "age.to_csv('x')" is not a condition; write it like 'age > 40'
    """
    try:
        # Names with spaces stand between backticks, as in DataFrame.query.
        tree = ast.parse(re.sub(r"`[^`]*`", "column", text).strip(), mode="eval")
        allowed = all(isinstance(node, _CONDITION) for node in ast.walk(tree))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        allowed = False
    if not allowed or "@" in text:
        raise VacaError(f"among: {text!r} is not a condition; write it like 'age > 40'")


def _groups(rows: pd.DataFrame, by: str | Sequence[str], schema: Schema) -> dict[str, np.ndarray]:
    """Label -> places of its rows, in the order of the levels."""
    if not isinstance(by, Sequence):
        raise VacaError(f"by is a column or a list of columns; got {shorten(by)}")
    names = [by] if isinstance(by, str) else list(by)
    codes, labels = [], []
    for name in names:
        if name not in rows.columns:
            raise VacaError(f"by: unknown column {name!r}; {did_you_mean(name, rows.columns)}")
        values = rows[name]
        if name in schema and schema[name].discrete:
            code = schema.encode_column(name, values)
            labels.append([str(v) for v in schema[name].levels])
        elif values.nunique() <= 2 * GROUPS:
            code, levels = pd.factorize(values, sort=True)
            labels.append([str(v) for v in levels])
        else:
            cut = pd.qcut(values, GROUPS, duplicates="drop", precision=3)
            code = cut.cat.codes.to_numpy()
            labels.append([f"{i.left:g} to {i.right:g}" for i in cut.cat.categories])
        codes.append(np.asarray(code))
    table = pd.DataFrame(dict(enumerate(codes)))
    return {
        ", ".join(
            labels[i][c] if len(names) == 1 else f"{names[i]} = {labels[i][c]}"
            for i, c in enumerate(key)
        ): np.asarray(at)
        for key, at in table.groupby(list(table.columns)).indices.items()
        for key in [key if isinstance(key, tuple) else (key,)]
    }


# ---------------------------------------------------------------------- how sure it is


def _summarised(
    base: Effect,
    about: About,
    values: np.ndarray,
    found: list[np.ndarray],
    has_main: bool,
    far: np.ndarray | None,
    schema: Schema,
) -> Effect:
    """The mean of per-row differences with its error, by the main fit and the others."""
    w = np.ones(len(values)) if about.weights is None else about.weights
    w = w / w.sum()
    value = float(w @ values)
    size = len(values)
    rows_part = float(np.sum((w * (values - value)) ** 2)) * size / max(size - 1, 1)
    members = np.array([w @ one for one in found])
    fit_part, degrees = fit_variance(value, members, has_main)
    error, degrees = combined(rows_part, size - 1, fit_part, degrees)
    share = 0.0 if far is None else float(np.mean(far))
    per_row = None
    if about.rows is not None:
        per_row = pd.Series(values, index=about.rows.index, name=base.outcome)
    lone = size == 1 and not len(members)
    return replace(
        base,
        value=value,
        standard_error=float("nan") if lone else error,
        degrees=degrees,
        members=tuple(float(m) for m in members),
        per_row=per_row,
        rows=about.positions,
        extrapolated_share=share,
        slack=_slack(schema, base, share),
    )


def fit_variance(value: float, members: np.ndarray, has_main: bool) -> tuple[float, float]:
    """The variance of an answer that comes from the fit, and its degrees of freedom.

    With a main fit, refits scatter around it; without, the value is the mean of independent fits.

    >>> fit_variance(1.0, np.array([0.0, 2.0]), False)
    (3.0, 1.0)
    """
    k = len(members)
    if k == 0:
        return 0.0, float("inf")
    if has_main:
        return float(CHOSEN**2 * np.mean((members - value) ** 2)), float(k)
    return float(members.var(ddof=1) * (1 + 1 / k)), float(k - 1)


def combined(
    rows_part: float, rows_degrees: float, fit_part: float, fit_degrees: float
) -> tuple[float, float]:
    """The error of two variances together, and its degrees of freedom by Welch and Satterthwaite.

    >>> combined(0.0, 99, 4.0, 8)
    (2.0, 8.0)
    """
    total = rows_part + fit_part
    chance = fit_part**2 / max(fit_degrees, 1.0) + rows_part**2 / max(rows_degrees, 1.0)
    return float(np.sqrt(total)), total**2 / chance if chance > 0 else float("inf")


def _slack(schema: Schema, effect: Effect, share: float) -> float:
    """How far an extrapolated share of the rows can move the average, whatever the model says.

    Where nobody is comparable, the outcome is only known to lie in its range.
    """
    if share < EXTRAPOLATED:
        return 0.0
    column = schema[effect.outcome]
    if effect.level is not None:
        width = 1.0
    elif column.discrete:
        width = float(max(column.levels)) - float(min(column.levels))
    else:
        width = (column.high or 0.0) - (column.low or 0.0)
    return share * width
