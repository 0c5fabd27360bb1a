r"""How well a model reproduces rows it has not seen, whatever engine it is.

Each column is scored given its direct causes: for every held-out row, the causes are set to what
they were, the column is drawn again many times, and the draws are compared with the observed value
by a proper score, which in expectation is best for the true distribution. The joint distribution is
scored by the energy distance between drawn and held-out rows. Both are compared with a baseline
that ignores the graph: each column drawn from its own distribution in the training data,
independently of the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from vaca.errors import VacaError
from vaca.evaluation.metrics import energy_distance
from vaca.model.causal_model import CausalModel
from vaca.table.columns import row_count, take_rows
from vaca.table.schema import Column, Columns
from vaca.table.standard import sd_of

__all__ = ["encoded_matrix", "given_causes", "holdout_scores", "joint_scores"]

#: Draws of a column for each held-out row, and held-out rows that are used at most.
DRAWS, ROWS = 50, 500
#: Rows on each side of the two-sample score at most.
JOINT_ROWS = 1000


def holdout_scores(model: CausalModel, held_out: Any, train: Any, *, seed: int = 0) -> pd.DataFrame:
    r"""Score each column of a model, given its causes, on rows it has not seen.

    .. math:: \mathrm{CRPS}(F, y) = E|X - y| - \tfrac12 E|X - X'|, \qquad X, X' \sim F

    for numbers, in units of the column's standard deviation, and the Brier score
    :math:`\sum_l (p_l - 1[y = l])^2` for levels; both are corrected for the finite number of draws.

    Parameters
    ----------
    model : CausalModel
    held_out, train : DataFrame
        Rows that the model has not seen, and those it has, which give the baseline.
    seed : int

    Returns
    -------
    DataFrame
        One row per column: `score` (lower is better), `baseline` (the same for the column's own
        distribution, ignoring its causes) and `explained`, :math:`1 - score / baseline`: 0 if the
        causes explain nothing, 1 if they explain everything. The score's name is in `measure`.
    """
    rng = np.random.default_rng([seed, 3])
    rows = model.schema_.encode(held_out)
    known = model.schema_.encode(train)
    count = row_count(rows)
    if count == 0:
        raise VacaError("there are no held-out rows")
    take = np.sort(rng.permutation(count)[:ROWS])
    rows = take_rows(rows, take)
    drawn = given_causes(model, rows, rng)
    table = []
    for name in model.schema_.columns:
        column = model.schema_[name]
        baseline = rng.choice(known[name], size=drawn[name].shape)
        if column.discrete:
            measure, scale = "Brier", 1.0
            score, base = (_brier(d, rows[name], column) for d in (drawn[name], baseline))
        else:
            measure, scale = "CRPS", sd_of(known[name])
            score, base = (_crps(d, rows[name]) / scale for d in (drawn[name], baseline))
        table.append(
            {
                "column": name,
                "measure": measure,
                "score": float(score.mean()),
                "baseline": float(base.mean()),
                "explained": float(1 - score.mean() / base.mean()) if base.mean() > 0 else 0.0,
            }
        )
    return pd.DataFrame(table).set_index("column")


def joint_scores(
    model: CausalModel, held_out: Any, train: Any, *, seed: int = 0
) -> dict[str, float]:
    """Energy distance of the model's rows, and of the baseline's, to held-out rows.

    The score of a perfect model is not zero but depends on chance; `vaca.check` gives a p-value
    instead. Numbers are in units of their standard deviation; two levels differ by 1.

    Returns
    -------
    dict with the keys `model` and `baseline`.
    """
    rng = np.random.default_rng([seed, 4])
    rows, known = model.schema_.encode(held_out), model.schema_.encode(train)
    n = min(JOINT_ROWS, row_count(rows), row_count(known))

    def some(columns: Columns) -> Columns:
        chosen = rng.permutation(row_count(columns))[:n]
        return take_rows(columns, chosen)

    mixed = {name: rng.permutation(values)[:n] for name, values in known.items()}
    drawn = model.simulate(model.noise(n, rng), {})
    sds = {name: sd_of(values) for name, values in known.items()}
    truth = encoded_matrix(model, some(rows), sds)
    return {
        "model": energy_distance(encoded_matrix(model, drawn, sds), truth),
        "baseline": energy_distance(encoded_matrix(model, mixed, sds), truth),
    }


def given_causes(model: CausalModel, rows: Columns, rng: np.random.Generator) -> Columns:
    """Column -> (rows, `DRAWS`): each column drawn again, its causes as they were."""
    count = row_count(rows)
    result: Columns = {}
    for node in model.graph.nodes:
        # All other columns are fixed, not only the causes: given these, the rest cannot reach the
        # node, and what is fixed need not be computed.
        own = model.graph.columns(node)
        do = {c: np.repeat(v, DRAWS) for c, v in rows.items() if c not in own}
        x = model.simulate(model.noise(count * DRAWS, rng), do)
        for name in own:
            result[name] = x[name].reshape(count, DRAWS)
    return result


def _crps(draws: np.ndarray, observed: np.ndarray) -> np.ndarray:
    count = draws.shape[1]
    ordered = np.sort(draws, axis=1)
    # Sum over pairs |x_i - x_j| of sorted values in one pass.
    weight = 2 * np.arange(1, count + 1) - count - 1
    spread = 2 * (ordered * weight).sum(axis=1) / (count * (count - 1))
    return np.abs(draws - observed[:, None]).mean(axis=1) - spread / 2


def _brier(draws: np.ndarray, observed: np.ndarray, column: Column) -> np.ndarray:
    count = draws.shape[1]
    total = np.zeros(len(draws))
    for code in range(len(column.levels)):
        p = (draws == code).mean(axis=1)
        # A share of finitely many draws scatters around the probability; take its variance off.
        total += (p - (observed == code)) ** 2 - p * (1 - p) / (count - 1)
    return total


def encoded_matrix(
    model: CausalModel, rows: Columns, sds: dict[str, float] | None = None
) -> np.ndarray:
    """Rows as one matrix: numbers in units of `sds`, levels one-hot so that two differ by 1."""
    sds = sds or {name: sd_of(values) for name, values in rows.items()}
    parts = []
    for name, column in model.schema_.items():
        values = rows[name]
        if column.discrete:
            one_hot = values[:, None] == np.arange(len(column.levels))
            parts.append(one_hot / np.sqrt(2))
        else:
            parts.append(values[:, None] / sds[name])
    return np.concatenate(parts, axis=1)
