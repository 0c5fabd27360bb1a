"""Does the model fit rows it has not seen: all columns together, and each one given its causes.

- **together**: can rows drawn from the model be told from held-out rows? A boosted classifier tries
  (figure: in how many of 100 pairs it picks the drawn one; 50 is guessing), and the energy distance
  is compared with that of 499 shuffles. Both give a p-value.
- **each column**: with its causes as they were, the column is drawn again many times. The rank of
  the observed value among the draws is uniform, whatever the causes, if the column is right.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import kstest, norm, rankdata

from vaca.engines.trees import grown, one_thread
from vaca.evaluation.heldout import encoded_matrix, given_causes
from vaca.model.causal_model import CausalModel
from vaca.table.columns import row_count
from vaca.table.schema import Columns
from vaca.table.standard import sd_of
from vaca.trust.independence import adjusted, together
from vaca.trust.leftover import features, inputs, leftover, some_rows

__all__ = ["Drawn", "column_fit", "draw_again", "noise_tests", "two_samples"]

#: Held-out rows that are compared with the model's, at most.
ROWS = 1000
#: Rows of the model for each of them: these cost nothing, and sharpen the comparison.
TIMES = 3
#: Held-out rows whose columns are drawn again, at most.
AGAIN = 500
#: Rows whose distances to all others are held at once.
BLOCK = 250
SHUFFLES = 499


def two_samples(model: CausalModel, held_out: Columns, *, seed: int = 0) -> tuple[float, float]:
    """Held-out rows against rows of the model: the share of pairs told apart, and p."""
    rng = np.random.default_rng([seed, 31])
    rows = some_rows(held_out, ROWS, seed)
    n = row_count(rows)
    drawn = model.simulate(model.noise(TIMES * n, rng), {})
    sds = {name: sd_of(values) for name, values in rows.items()}
    matrix = np.concatenate([encoded_matrix(model, part, sds) for part in (rows, drawn)])
    # A few wild values must not hide all else from the distances.
    matrix = np.clip(matrix, -20 + np.median(matrix, axis=0), 20 + np.median(matrix, axis=0))
    told, p_told = _classifier(matrix, n, seed)
    p_energy = _energy(matrix, n, rng)
    return told, float(min(1.0, 2 * min(p_told, p_energy)))


def _classifier(matrix: np.ndarray, n: int, seed: int) -> tuple[float, float]:
    """Share of (held-out, drawn) pairs that a classifier orders rightly, out of fold, and its p."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.model_selection import StratifiedKFold

    label = np.arange(len(matrix)) >= n
    if n < 25:
        return 0.5, 1.0
    shares = []
    for keep, out in StratifiedKFold(5, shuffle=True, random_state=seed).split(matrix, label):
        trees = HistGradientBoostingClassifier(
            max_iter=60, max_leaf_nodes=12, min_samples_leaf=max(5, n // 50), random_state=seed
        )
        grown(trees, matrix[keep], label[keep])
        with one_thread():
            score = rankdata(trees.predict_proba(matrix[out])[:, 1])
        ones = label[out]
        count = ones.sum()
        shares.append((score[ones].sum() / count - (count + 1) / 2) / (~ones).sum())
    told = float(np.mean(shares))
    # Of the Mann-Whitney statistic, over the folds.
    spread = np.sqrt((len(matrix) + 5) / (12 * n * (len(matrix) - n)))
    return told, float(norm.sf((told - 0.5) / spread))


def _energy(matrix: np.ndarray, n: int, rng: np.random.Generator) -> float:
    """p-value of the energy distance between the first n rows and the others, by shuffling."""
    from scipy.spatial.distance import cdist

    sign = np.full(len(matrix), -1.0 / (len(matrix) - n), np.float32)
    sign[:n] = 1.0 / n
    signs = np.column_stack([sign, *(rng.permutation(sign) for _ in range(SHUFFLES))])
    # The energy distance is minus the sum of sign * sign * distance over pairs; all distances at
    # once would take more memory than the fit did.
    energy = np.zeros(signs.shape[1])
    for first in range(0, len(matrix), BLOCK):
        own = slice(first, first + BLOCK)
        far = cdist(matrix[own], matrix).astype(np.float32)
        energy -= np.einsum("ij,ij->j", signs[own], far @ signs)
    return float(np.mean(energy >= energy[0] - 1e-6 * abs(energy[0])))


# ---------------------------------------------------------------------- each column, drawn again


@dataclass(frozen=True)
class Drawn:
    """Held-out rows, and each of their columns drawn again given its causes: (rows, draws)."""

    rows: Columns
    again: Columns
    ranks: Columns  # of the observed value among the draws, in (0, 1), ties broken at random


def draw_again(model: CausalModel, held_out: Columns, *, seed: int = 0) -> Drawn:
    """Draw each column again for at most `AGAIN` rows."""
    rng = np.random.default_rng([seed, 32])
    rows = some_rows(held_out, AGAIN, seed)
    again = given_causes(model, rows, rng)
    ranks = {}
    for name, draws in again.items():
        below = (draws < rows[name][:, None]).sum(axis=1)
        equal = (draws == rows[name][:, None]).sum(axis=1)
        ranks[name] = (below + rng.random(len(below)) * (equal + 1)) / (draws.shape[1] + 1)
    return Drawn(rows, again, ranks)


def column_fit(model: CausalModel, drawn: Drawn, rows: Columns, *, seed: int = 0) -> pd.DataFrame:
    """How each column fits, given its causes.

    Returns
    -------
    DataFrame
        Per column: `off`, how far ranks are from uniform (Kolmogorov's distance) with `p`, adjusted
        over columns; `unreliable`, for levels the mean gap between the stated probability and how
        often the level occurs; `explained` by the model and `explainable` by a regression on the
        same causes (shares of the variance); `outside`, the share of impossible draws: negative
        where data never are, or beyond their range by half of it.
    """
    table = []
    again, ranks = drawn.again, drawn.ranks
    for name, column in model.schema_.items():
        result = kstest(ranks[name], "uniform")
        values, observed = again[name], drawn.rows[name]
        if column.discrete:
            said = _levels(values, len(column.levels))
            seen = _levels(observed[:, None], len(column.levels))
            unreliable = _reliability(said, seen)
            outside = 0.0
        else:
            said, seen = values.mean(axis=1)[:, None], observed[:, None].astype(float)
            unreliable = np.nan
            outside = _impossible(values, rows[name])
        # The mean of some draws scatters around the expectation; take that off.
        extra = (said * (1 - said) if column.discrete else values.var(axis=1)[:, None]) / 49
        error = float(((said - seen) ** 2 - extra).sum(axis=1).mean())
        total = float(seen.var(axis=0).sum())
        table.append(
            {
                "column": name,
                "off": float(result.statistic),
                "p": float(result.pvalue),
                "unreliable": unreliable,
                "explained": 1 - error / total if total > 0 else 0.0,
                "explainable": _explainable(model, name, rows, seed),
                "outside": outside,
            }
        )
    frame = pd.DataFrame(table).set_index("column")
    frame["p"] = adjusted(frame["p"].to_numpy())
    return frame


def _levels(codes: np.ndarray, count: int) -> np.ndarray:
    """Share of each level (rows, levels) among the draws (rows, draws)."""
    return np.stack([(codes == k).mean(axis=1) for k in range(count)], axis=1)


def _reliability(said: np.ndarray, seen: np.ndarray) -> float:
    """Mean gap between stated and seen shares, over five groups of rows for each level."""
    gaps, sizes = [], []
    for p, y in zip(said.T, seen.T, strict=True):
        for group in np.array_split(np.argsort(p, kind="stable"), 5):
            if len(group):
                gaps.append(abs(p[group].mean() - y[group].mean()))
                sizes.append(len(group))
    return float(np.average(gaps, weights=sizes))


def _impossible(draws: np.ndarray, data: np.ndarray) -> float:
    low, high = data.min(), data.max()
    reach = 0.5 * (high - low)
    floor = 0.0 if low >= 0 else low - reach
    return float(((draws < floor) | (draws > high + reach)).mean())


def _explainable(model: CausalModel, name: str, rows: Columns, seed: int) -> float:
    """Share of the variance that a regression on the column's causes explains, out of sample."""
    graph = model.graph
    causes = [c for parent in graph.parents(graph.node_of(name)) for c in graph.columns(parent)]
    if not causes:
        return 0.0
    rows = some_rows(rows, 2 * ROWS, seed)
    if model.schema_[name].discrete:
        y = _levels(rows[name][:, None], len(model.schema_[name].levels))
    else:
        y = np.asarray(rows[name], float)[:, None]
    total = y.var(axis=0).sum()
    if total == 0:
        return 0.0
    rest = leftover(inputs(rows, model.schema_, causes), y, seed)
    return max(0.0, 1 - float((rest**2).mean(axis=0).sum() / total))


# ---------------------------------------------------------------------- the noise


def noise_tests(model: CausalModel, drawn: Drawn) -> pd.DataFrame:
    """Test that the noise of a column is independent of its causes and of other noise.

    The noise of a row is the rank of its value among the draws: for a model that is increasing in
    its noise, that is the abducted noise itself.

    Returns
    -------
    DataFrame
        `column`, `other` (a cause, or a column with a noise of its own), `kind` ("cause" or
        "noise"), `p`, `adjusted`, `size`; the most doubtful first.
    """
    graph, schema = model.graph, model.schema_
    noise = {}
    for name, ranks in drawn.ranks.items():
        z = norm.ppf(ranks)
        noise[name] = np.column_stack([z, (z**2 - 1) / np.sqrt(2)])
        noise[name] = noise[name] - noise[name].mean(axis=0)
    found = []
    names = list(schema)
    for place, name in enumerate(names):
        node = graph.node_of(name)
        for cause in (c for parent in graph.parents(node) for c in graph.columns(parent)):
            values, _ = features(drawn.rows, schema, [cause])
            found.append((name, cause, "cause", *together(noise[name], values)))
        # The graph claims nothing of the columns of one block.
        for other in (c for c in names[:place] if graph.node_of(c) != node):
            found.append((name, other, "noise", *together(noise[name], noise[other])))
    table = pd.DataFrame(found, columns=["column", "other", "kind", "p", "size"])
    table["adjusted"] = adjusted(table["p"].to_numpy(float))
    return table.sort_values("p", kind="stable").reset_index(drop=True)
