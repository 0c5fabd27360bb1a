r"""What data cannot decide about one person, as bounds.

How likely each level of a column is under an intervention follows from the graph and the data. How
one person's noise carries over from what happened to what would have happened does not: it is a
choice of the model (`CausalModel.assumptions`). These are the bounds over all such choices. With
the chance :math:`p_k` of the level that was seen and :math:`q_l` of a level under the intervention,

.. math:: \max\left(0, \frac{p_k + q_l - 1}{p_k}\right) \le P(Y_{do} = l \mid Y = k)
    \le \min\left(1, \frac{q_l}{p_k}\right).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from vaca.engines.columnwise import ColumnwiseEngine
from vaca.errors import VacaError
from vaca.model.causal_model import CausalModel
from vaca.model.effects import outcome_level, score
from vaca.model.intervention import Intervention
from vaca.table.columns import row_count, take_rows
from vaca.table.schema import Columns, as_frame

__all__ = [
    "Bounds",
    "counterfactual_bounds",
    "coupling_bounds",
    "probability_of_necessity",
    "probability_of_necessity_and_sufficiency",
    "probability_of_sufficiency",
    "tian_pearl",
]

#: Draws that estimate chances where a model does not give them.
DRAWS = 1000
#: Answers that are held at once.
CELLS = 200_000


class Bounds(NamedTuple):
    """The lowest and highest value of a probability, over all choices of the noise."""

    low: float
    high: float


def coupling_bounds(
    p: np.ndarray, q: np.ndarray, level: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds (n, L) of each level under the intervention, given the level (n,) that was seen.

    Parameters
    ----------
    p, q : array of shape (n, L)
        Chances of the levels as things were and under the intervention.

    Examples
    --------
    >>> import numpy as np
    >>> low, high = coupling_bounds(np.array([[0.4, 0.6]]), np.array([[0.1, 0.9]]), np.array([0]))
    >>> low.round(2).tolist(), high.round(2).tolist()
    ([[0.0, 0.75]], [[0.25, 1.0]])
    """
    seen = np.maximum(p[np.arange(len(p)), level], 1e-12)[:, None]
    return np.clip((seen + q - 1) / seen, 0.0, 1.0), np.minimum(q / seen, 1.0)


def counterfactual_bounds(
    model: CausalModel, factual: Any, do: Mapping[str, Any], *, seed: int = 0
) -> pd.DataFrame:
    """Bounds for every level of every discrete column below the intervention.

    Chances are those given all columns that the intervention cannot move. What a row's other moved
    columns say in addition is not used: the bounds are never too narrow, and sharp where the
    intervened nodes are the only moved causes of a column.

    Parameters
    ----------
    model : CausalModel
    factual : DataFrame
        The rows as they were observed.
    do : mapping
        As in `CausalModel.counterfactual`, without random parts.

    Returns
    -------
    DataFrame
        Under the index of `factual`; columns (column, level, "low" or "high").

    Examples
    --------
    >>> import pandas as pd, vaca
    >>> from scipy.stats import bernoulli, uniform
    >>> scm = vaca.StructuralCausalModel(
    ...     {"t": lambda u: u, "y": lambda t, u: (u < 0.2 + 0.5 * t) * 1},
    ...     noise={"t": bernoulli(0.5), "y": uniform()},
    ...     kinds={"t": "binary", "y": "binary"},
    ... )
    >>> rows = pd.DataFrame({"t": [1], "y": [1]})
    >>> counterfactual_bounds(scm, rows, {"t": 0})["y", 0].round(1).values.tolist()
    [[0.7, 1.0]]
    """
    frame = as_frame(factual)
    x = model.schema_.encode(frame)
    n = len(frame)
    intervention = model._parse(do).encode_rows(n, frame.index)
    parts = [part for columns in intervention.parts.values() for part in columns.values()]
    if any(hasattr(part, "rvs") for part in parts):
        raise VacaError("bounds are for an intervention with known values, not for a random one")
    if intervention.has_policy() or len(intervention.nodes) > 1:
        _refuse_moved(model, intervention)
    done = intervention.resolve(lambda now: {**x, **now})
    below = set(intervention.affected) - set(intervention.nodes)
    same = np.logical_and.reduce([done[c] == x[c] for c in done])
    result: dict[tuple[str, Any, str], np.ndarray] = {}
    wanted = [
        c
        for node in model.graph.order
        if node in below
        for c in model.graph.columns(node)
        if model.schema_[c].discrete
    ]
    if wanted:
        fixed = {c: x[c] for c in x if model.graph.node_of(c) not in below}
        was = _chances(model, fixed, wanted, seed)
        would = _chances(model, {**fixed, **done}, wanted, seed)
    for column in wanted:
        low, high = coupling_bounds(was[column], would[column], x[column])
        exact = x[column][:, None] == np.arange(low.shape[1])
        low, high = (np.where(same[:, None], exact, part) for part in (low, high))
        for code, level in enumerate(model.schema_[column].levels):
            result[column, level, "low"] = low[:, code]
            result[column, level, "high"] = high[:, code]
    columns = pd.MultiIndex.from_tuples(list(result), names=["column", "level", "end"])
    if not result:
        columns = pd.MultiIndex.from_arrays([[], [], []], names=["column", "level", "end"])
    values = np.column_stack(list(result.values())) if result else np.zeros((n, 0))
    return pd.DataFrame(values, index=frame.index, columns=columns)


def _refuse_moved(model: CausalModel, intervention: Intervention) -> None:
    """A shift or policy below another intervened node starts from a value that is not known."""
    for node in intervention.nodes:
        above = set(model.graph.ancestors(node)) & set(intervention.nodes)
        parts = intervention.parts[node].values()
        if above and not all(isinstance(part, np.ndarray) for part in parts):
            raise VacaError(
                f"bounds: {node!r} is changed from what {sorted(above)[0]!r} would make it; give "
                "it a value"
            )


def _chances(
    model: CausalModel, fixed: Columns, wanted: list[str], seed: int
) -> dict[str, np.ndarray]:
    """Chances (n, L) of the levels of columns, when all other causes have the given values."""
    n = row_count(fixed)
    found: dict[str, np.ndarray] = {}
    for column in wanted:
        if isinstance(model, ColumnwiseEngine) and set(model._parents[column]) <= set(fixed):
            log_p = model._log_levels([column], dict(fixed), n)[column]
            p = np.exp(log_p - log_p.max(axis=1, keepdims=True))
            found[column] = p / p.sum(axis=1, keepdims=True)
    rest = [column for column in wanted if column not in found]
    if not rest:
        return found
    counts = {c: np.zeros((n, len(model.schema_[c].levels))) for c in rest}
    rng = np.random.default_rng(seed)
    step = max(1, CELLS // DRAWS)
    for start in range(0, n, step):
        rows = np.repeat(np.arange(start, min(start + step, n)), DRAWS)
        u = model.noise(len(rows), rng)
        x = model.simulate(u, take_rows(fixed, rows))
        for c in rest:
            np.add.at(counts[c], (rows, x[c].astype(np.int64)), 1.0)
    return {**found, **{c: values / DRAWS for c, values in counts.items()}}


# ---------------------------------------------------------------------- necessity, sufficiency


def probability_of_necessity(
    model: CausalModel,
    outcome: str,
    treatment: Mapping[str, Any],
    control: Mapping[str, Any],
    **options: Any,
) -> Bounds:
    """Bounds on the share of the treated with the outcome who owe it to the treatment.

    The probability that the outcome would not have occurred without the treatment. See
    `probability_of_necessity_and_sufficiency` for the arguments.

    Examples
    --------
    >>> import vaca
    >>> from scipy.stats import bernoulli, uniform
    >>> scm = vaca.StructuralCausalModel(
    ...     {"t": lambda u: u, "y": lambda t, u: (u < 0.2 + 0.5 * t) * 1},
    ...     noise={"t": bernoulli(0.5), "y": uniform()},
    ...     kinds={"t": "binary", "y": "binary"},
    ... )
    >>> found = probability_of_necessity(scm, "y", {"t": 1}, {"t": 0})
    >>> round(found.low, 1), round(found.high, 1)
    (0.7, 1.0)
    """
    return _of(model, outcome, treatment, control, **options)["necessity"]


def probability_of_sufficiency(
    model: CausalModel,
    outcome: str,
    treatment: Mapping[str, Any],
    control: Mapping[str, Any],
    **options: Any,
) -> Bounds:
    """Bounds on the share of the untreated without the outcome whom treatment would give it.

    See `probability_of_necessity_and_sufficiency` for the arguments.
    """
    return _of(model, outcome, treatment, control, **options)["sufficiency"]


def probability_of_necessity_and_sufficiency(
    model: CausalModel,
    outcome: str,
    treatment: Mapping[str, Any],
    control: Mapping[str, Any],
    **options: Any,
) -> Bounds:
    """Bounds on the share of all who have the outcome if treated, and only then.

    Parameters
    ----------
    model : CausalModel
    outcome : str
        A discrete column; the event is that it has the level `level` (for a binary column by
        default its second).
    treatment, control : mapping
        Values of one discrete node.
    level : optional
    n : int
        Rows to draw for the chances (default 100,000).
    seed : int
    """
    return _of(model, outcome, treatment, control, **options)["both"]


def tian_pearl(with_treatment: float, without: float, joint: np.ndarray) -> dict[str, Bounds]:
    r"""The bounds of Tian and Pearl (2000) from an experiment and from observation.

    Parameters
    ----------
    with_treatment, without : float
        :math:`P(y \mid do(t))` and :math:`P(y \mid do(t'))`.
    joint : array of shape (2, 2)
        Observed shares: first treated or not, then with the outcome or not.

    Returns
    -------
    dict of Bounds
        "necessity", "sufficiency" and "both".

    Examples
    --------
    >>> import numpy as np
    >>> tian_pearl(0.7, 0.2, np.array([[0.35, 0.15], [0.1, 0.4]]))["necessity"]
    Bounds(low=0.71..., high=1.0)
    """
    (ty, tn), (cy, cn) = np.asarray(joint, float)
    y = ty + cy
    necessity = sufficiency = Bounds(0.0, 1.0)
    if ty > 0:
        necessity = _bounds((y - without) / ty, (1 - without - cn) / ty)
    if cn > 0:
        sufficiency = _bounds((with_treatment - y) / cn, (with_treatment - ty) / cn)
    both = _bounds(
        max(with_treatment - without, y - without, with_treatment - y),
        min(with_treatment, 1 - without, ty + cn, with_treatment - without + tn + cy),
    )
    return {"necessity": necessity, "sufficiency": sufficiency, "both": both}


def _bounds(low: float, high: float) -> Bounds:
    low, high = float(np.clip(low, 0, 1)), float(np.clip(high, 0, 1))
    return Bounds(min(low, high), max(low, high))  # chances by simulation may cross a little


def _of(
    model: CausalModel,
    outcome: str,
    treatment: Mapping[str, Any],
    control: Mapping[str, Any],
    *,
    level: Any = None,
    n: int = 100_000,
    seed: int = 0,
) -> dict[str, Bounds]:
    schema = model.schema_
    if outcome not in schema or not schema[outcome].discrete:
        raise VacaError(f"necessity and sufficiency are about a level; {outcome!r} has none")
    if level is None and schema[outcome].kind == "binary":
        level = schema[outcome].levels[-1]
    level = outcome_level(schema, outcome, level)
    if level is None:
        raise VacaError(f"say which level of {outcome!r} is meant, with level=")
    nodes = [model._parse(do).nodes for do in (treatment, control)]
    if nodes[0] != nodes[1] or len(nodes[0]) != 1:
        raise VacaError("treatment and control must set the same single node, to two values")
    columns = model.graph.columns(nodes[0][0])
    if not all(schema[c].discrete for c in columns):
        raise VacaError(f"{nodes[0][0]!r} is a number; necessity is about two levels")
    seen, _ = model._sampled(n, None, seed)
    happened = score(schema, outcome, level, seen[outcome]) > 0
    shares, chances = [], []
    for do in (treatment, control):
        x, _ = model._sampled(n, do, seed)
        chances.append(float(np.mean(score(schema, outcome, level, x[outcome]))))
        has = np.logical_and.reduce([seen[c] == x[c][0] for c in columns])
        shares.append([float(np.mean(has & happened)), float(np.mean(has & ~happened))])
    joint = np.array(shares)
    if joint.sum() < 1 - 1e-9:
        raise VacaError(
            f"{nodes[0][0]!r} has more values than the two: the bounds are for a binary treatment"
        )
    return tian_pearl(chances[0], chances[1], joint)
