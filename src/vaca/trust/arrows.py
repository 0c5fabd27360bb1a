r"""Which arrow the data would change: add, remove or reverse one, and see what is predicted better.

Every column has a score given its parents: the log-density of its value on rows not seen. Numbers
are :math:`x = m(pa) + s(pa)\,e` with a mean, a spread and a smooth density of e that are learned;
levels have probabilities. A change of an arrow touches one or two columns, and its `gain` is the
mean difference of their scores per row, with `z`, the gain in standard errors. A reversal that
leaves all independences as they were can gain only because of this form of the noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd

from vaca.errors import GraphError
from vaca.graph.dag import CausalGraph
from vaca.table.columns import row_count
from vaca.table.schema import Columns, Schema
from vaca.table.standard import Standard, sd_of
from vaca.trust.leftover import inputs, leftover, some_rows

__all__ = ["arrow_changes"]

#: Rows that scores are made of.
ROWS = 4000
#: Bins of the density of the noise.
GRID = 400

Edge = tuple[str, str]


def arrow_changes(
    graph: CausalGraph,
    schema: Schema,
    rows: Columns,
    pairs: Iterable[Edge] = (),
    *,
    arrows: bool = True,
    seed: int = 0,
    done: Callable[[], None] = lambda: None,
) -> pd.DataFrame:
    """Score the removal and the reversal of each arrow, and an arrow between each given pair.

    Without `arrows` those of the graph are left alone.

    Returns
    -------
    DataFrame
        `change` ("add", "remove", "reverse"), `cause`, `effect` (of the arrow as it is in the
        graph, or as it would be added), `gain`, `z`; the best gain first.
    """
    rows = some_rows(rows, ROWS, seed)
    known: dict[tuple[str, frozenset[str]], np.ndarray] = {}

    def score(node: str, parents: Iterable[str]) -> np.ndarray:
        key = node, frozenset(parents)
        if key not in known:
            known[key] = _node_score(node, sorted(key[1]), graph, schema, rows, seed)
        return known[key]

    def row(change: str, edge: Edge, new: dict[str, set[str]]) -> dict[str, object]:
        gain = sum(score(n, direct) - score(n, graph.parents(n)) for n, direct in new.items())
        return {
            "change": change, "cause": edge[0], "effect": edge[1],
            "gain": float(np.mean(gain)), "z": _z(np.asarray(gain)),
        }  # fmt: skip

    found = []
    for cause, effect in graph.edges if arrows else ():
        without = {effect: set(graph.parents(effect)) - {cause}}
        found.append(row("remove", (cause, effect), without))
        turned = {**without, cause: {*graph.parents(cause), effect}}
        if _acyclic(graph, turned):
            found.append(row("reverse", (cause, effect), turned))
        done()
    for pair in pairs:
        for cause, effect in (pair, pair[::-1]):
            more = {effect: {*graph.parents(effect), cause}}
            if _acyclic(graph, more):
                found.append(row("add", (cause, effect), more))
        done()
    table = pd.DataFrame(found, columns=["change", "cause", "effect", "gain", "z"])
    return table.sort_values("gain", ascending=False, kind="stable").reset_index(drop=True)


def _acyclic(graph: CausalGraph, changed: dict[str, set[str]]) -> bool:
    try:
        CausalGraph({n: sorted(changed.get(n, graph.parents(n))) for n in graph.nodes})
    except GraphError:
        return False
    return True


def _z(gain: np.ndarray) -> float:
    spread = float(gain.std())
    return float(gain.mean() / spread * np.sqrt(len(gain))) if spread > 0 else 0.0


# ---------------------------------------------------------------------- scores of a node


def _node_score(
    node: str, parents: list[str], graph: CausalGraph, schema: Schema, rows: Columns, seed: int
) -> np.ndarray:
    """Log-density (n,) of a node given its parents; of several columns, one after the other."""
    given = [c for parent in parents for c in graph.columns(parent)]
    total = np.zeros(row_count(rows))
    for column in graph.columns(node):
        x = inputs(rows, schema, given)
        if schema[column].discrete:
            total += _level_score(x, rows[column], len(schema[column].levels), seed)
        else:
            total += _number_score(x, rows[column], seed)
        given.append(column)
    return total


def _level_score(x: np.ndarray, codes: np.ndarray, levels: int, seed: int) -> np.ndarray:
    one_hot = (codes[:, None] == np.arange(levels)).astype(float)
    guess = np.clip(one_hot - leftover(x, one_hot, seed, trees=False), 0.005, None)
    guess /= guess.sum(axis=1, keepdims=True)
    return np.log(guess[np.arange(len(codes)), codes])


def _number_score(x: np.ndarray, values: np.ndarray, seed: int) -> np.ndarray:
    y = np.clip(Standard.of(values).to(values), -8, 8)
    rest = leftover(x, y[:, None], seed, trees=False)[:, 0]
    floor = 1e-4 * (rest**2).mean() + 1e-12
    size = np.log(rest**2 + floor)
    log_scale = (
        0.5 * (size - leftover(x, size[:, None], seed, trees=False)[:, 0])
        if x.shape[1]
        else 0.0 * rest
    )
    log_scale = np.clip(log_scale - log_scale.mean(), -4, 4)
    noise = rest / np.exp(log_scale)
    scale = sd_of(noise)
    return _log_density(noise / scale) - np.log(scale) - log_scale


def _log_density(values: np.ndarray) -> np.ndarray:
    """Smooth log-density of the others at each value; wide tails, so that none is impossible."""
    n = len(values)
    inside = np.clip(values, -6, 6)
    edges = np.linspace(-6.5, 6.5, GRID + 1)
    step = edges[1] - edges[0]
    quarter = np.subtract(*np.quantile(inside, [0.75, 0.25])) / 1.34
    width = max(0.9 * min(inside.std(), quarter or 1.0) * n**-0.2, step)
    reach = np.arange(-GRID, GRID + 1) * step
    kernel = np.exp(-0.5 * (reach / width) ** 2) / (width * np.sqrt(2 * np.pi))
    counts, _ = np.histogram(inside, edges)
    density = np.convolve(counts, kernel)[GRID : 2 * GRID]
    at = np.clip(((inside - edges[0]) / step).astype(int), 0, GRID - 1)
    others = np.maximum(density[at] - kernel[GRID], 0.0) / (n - 1)
    wide = 1.0 / (np.pi * (1 + values**2))
    return np.log(0.98 * others + 0.02 * wide)
