r"""Does the graph hold: every independence that it implies, tested.

Given its parents, a node is independent of all nodes that come before it in causal order. For each
pair of nodes without an arrow between them that is one test: what the parents of the later one
explain is removed from both (`vaca.trust.leftover`), and what is left must be unrelated: in its
values, in its spread, and separately for different values of the parents (the generalised
covariance measure of Shah and Peters, 2020, on several transforms, Bonferroni within a pair). Over
pairs, Benjamini and Hochberg's rule keeps the share of false alarms at `ALPHA`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import log_ndtr
from scipy.stats import norm

from vaca.graph.dag import CausalGraph
from vaca.table.schema import Columns, Schema
from vaca.trust.leftover import features, inputs, leftover_and_freedom, some_rows

__all__ = ["adjusted", "implied_pairs", "independence_tests", "relabelings", "together"]

#: False alarms among the pairs that are named, at most this share.
ALPHA = 0.05
#: Rows that tests look at. More would find dependences too small to matter.
ROWS = 5000
#: Parents across whose values the strength of a relation is compared.
MAX_WEIGHTS = 6


@dataclass(frozen=True)
class Pair:
    """Two nodes that the graph says are independent given the parents of the second."""

    one: str
    other: str
    given: tuple[str, ...]


def implied_pairs(graph: CausalGraph) -> list[Pair]:
    """The independences that together imply all others of the graph.

    >>> graph = CausalGraph.from_edges([("a", "b"), ("b", "c")])
    >>> implied_pairs(graph)
    [Pair(one='a', other='c', given=('b',))]
    """
    order = graph.order
    return [
        Pair(one, other, graph.parents(other))
        for place, other in enumerate(order)
        for one in order[:place]
        if one not in graph.parents(other)
    ]


def independence_tests(
    graph: CausalGraph,
    schema: Schema,
    rows: Columns,
    *,
    seed: int = 0,
    done: Callable[[], None] = lambda: None,
) -> pd.DataFrame:
    """Test each implied independence.

    Parameters
    ----------
    graph, schema
    rows : Columns
        Encoded rows; at most `ROWS` of them are used.
    done : callable
        Called after each node.

    Returns
    -------
    DataFrame
        One row per pair, the most doubtful first: `one`, `other`, `given`, `p` and `adjusted` (for
        the false discovery rate), and `size`, the correlation that is left.
    """
    rows = some_rows(rows, ROWS, seed)
    found = []
    for node in graph.order:
        pairs = [pair for pair in implied_pairs(graph) if pair.other == node]
        if pairs:
            for pair, (p, size) in zip(
                pairs, _tests(pairs, graph, schema, rows, seed), strict=True
            ):
                found.append({**vars(pair), "p": p, "size": size})
        done()
    table = pd.DataFrame(found, columns=["one", "other", "given", "p", "size"])
    table["adjusted"] = adjusted(table["p"].to_numpy(float))
    table = table.sort_values(["p", "size"], ascending=[True, False], kind="stable")
    return table.reset_index(drop=True)


def _tests(
    pairs: list[Pair], graph: CausalGraph, schema: Schema, rows: Columns, seed: int
) -> list[tuple[float, float]]:
    """p and size for pairs that share their second node, and so what they are given."""
    node = pairs[0].other
    own, lead = features(rows, schema, graph.columns(node))
    theirs = [features(rows, schema, graph.columns(pair.one)) for pair in pairs]
    given = [c for parent in pairs[0].given for c in graph.columns(parent)]
    x = inputs(rows, schema, given)
    targets = np.concatenate([own, *(values for values, _ in theirs)], axis=1)
    rest, used = leftover_and_freedom(x, targets, seed)
    # Errors of different rows share one fit, so their products scatter more than independent ones.
    slack = np.sqrt(1.0 - np.minimum(used, 0.5))
    mine, at = rest[:, : own.shape[1]], own.shape[1]
    result = []
    for values, their_lead in theirs:
        theirs_at = slice(at, at + values.shape[1])
        other, at = rest[:, theirs_at], at + values.shape[1]
        shrink = np.maximum.outer(slack[: own.shape[1]], slack[theirs_at])
        statistics = [(shrink * _statistics(mine, other)).ravel()]
        for weight in x[:, :MAX_WEIGHTS].T:
            if weight.std() > 0:
                tilt = (weight - weight.mean()) / weight.std()
                leading = mine[:, :lead] * tilt[:, None], other[:, :their_lead]
                statistics.append((shrink[:lead, :their_lead] * _statistics(*leading)).ravel())
        result.append(_summary(np.concatenate(statistics), len(x)))
    return result


def together(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """p and size of the strongest relation between columns of a (n, k) and of b (n, l), centred."""
    return _summary(_statistics(a, b).ravel(), len(a))


def _statistics(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """z statistics (k, l) of the mean products of centred errors (n, k) and (n, l)."""
    n = len(a)
    mean = a.T @ b / n
    spread = np.sqrt(np.maximum((a**2).T @ (b**2) / n - mean**2, 1e-12))
    return np.sqrt(n) * mean / spread


def _summary(z: np.ndarray, n: int) -> tuple[float, float]:
    if not len(z):
        return 1.0, 0.0
    worst = float(np.abs(z).max())
    # In logarithms, so that p stays comparable when it is very small.
    log_p = min(0.0, float(log_ndtr(-worst)) + np.log(2.0 * len(z)))
    return float(np.exp(log_p)), min(1.0, worst / np.sqrt(n + worst**2))


def adjusted(p: np.ndarray) -> np.ndarray:
    """p-values adjusted for the false discovery rate (Benjamini and Hochberg, 1995).

    >>> adjusted(np.array([0.01, 0.02, 0.9])).round(3).tolist()
    [0.03, 0.03, 0.9]
    """
    count = len(p)
    order = np.argsort(p)
    scaled = p[order] * count / np.arange(1, count + 1)
    result = np.empty(count)
    result[order] = np.minimum.accumulate(scaled[::-1])[::-1]
    return np.minimum(result, 1.0)


# ---------------------------------------------------------------------- other graphs of its shape


def relabelings(
    graph: CausalGraph, schema: Schema, rows: Columns, *, count: int = 200, seed: int = 0
) -> tuple[int, float]:
    """How many implied independences fail, and the share of shuffled graphs where no more do.

    The nodes trade places at random, as in dowhy's `falsify_graph`. So many tests need a quick
    one: partial correlations of normal scores (of several columns of a node, the strongest).
    """
    rows = some_rows(rows, ROWS, seed)
    parts = [features(rows, schema, graph.columns(node)) for node in graph.nodes]
    lead = [values[:, :k] for values, k in parts]
    where = np.cumsum([0, *(values.shape[1] for values in lead)])
    own = {node: np.arange(where[i], where[i + 1]) for i, node in enumerate(graph.nodes)}
    matrix = np.concatenate(lead, axis=1)
    correlation = np.corrcoef(matrix, rowvar=False) + 1e-6 * np.eye(matrix.shape[1])
    rng = np.random.default_rng([seed, 23])
    found = _violations(graph.nodes, graph, own, correlation, len(matrix))
    shuffles = [rng.permutation(len(graph.nodes)) for _ in range(count)]
    fewer = [
        _violations([graph.nodes[i] for i in order], graph, own, correlation, len(matrix)) <= found
        for order in shuffles
    ]
    return found, float(np.mean(fewer))


def _violations(
    names: list[str] | tuple[str, ...],
    graph: CausalGraph,
    own: dict[str, np.ndarray],
    correlation: np.ndarray,
    n: int,
) -> int:
    """Independences at the 5 % level that fail once each node is called by its new name."""
    new = dict(zip(graph.nodes, names, strict=True))
    failed = 0
    for place, node in enumerate(graph.order):
        parents = graph.parents(node)
        others = [a for a in graph.order[:place] if a not in parents]
        if not others:
            continue
        given = np.concatenate([np.empty(0, int), *(own[new[p]] for p in parents)])
        mine = own[new[node]]
        theirs = [own[new[other]] for other in others]
        every = np.concatenate([mine, *theirs])
        left = correlation[np.ix_(every, every)]
        if len(given):
            across = correlation[np.ix_(every, given)]
            inner = correlation[np.ix_(given, given)]
            left = left - across @ np.linalg.solve(inner, across.T)
        scale = np.sqrt(np.maximum(np.diag(left), 1e-9))
        partial = np.abs(left / np.outer(scale, scale))[: len(mine), len(mine) :]
        at = 0
        for block in theirs:
            part = partial[:, at : at + len(block)]
            at += len(block)
            if part.size:
                z = np.arctanh(min(part.max(), 0.999999)) * np.sqrt(max(n - len(given) - 3, 1))
                failed += bool(2 * norm.sf(z) * part.size < 0.05)
    return failed
