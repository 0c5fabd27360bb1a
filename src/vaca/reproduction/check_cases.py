"""Cases for `vaca.check`: right graphs, wrong graphs, and models that were hardly trained.

A case is a truth, rows drawn from it, and a graph with at most one thing wrong. What the check says
is compared with two things that it cannot know: how far the graph's own interventional answers are
off, and whether the truth contradicts an independence that the graph claims.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy.stats import norm

from vaca.engines.gumbel import level_of
from vaca.engines.predictors import Polynomial, Splines
from vaca.graph.dag import CausalGraph
from vaca.model.causal_model import CausalModel
from vaca.reproduction.recipes import edit_graph, recipe
from vaca.reproduction.run import Run
from vaca.reproduction.truths import Marginal, load_truth
from vaca.table.columns import row_count, take_rows
from vaca.table.schema import Columns, Schema
from vaca.table.standard import Standard, sd_of

__all__ = ["case", "check_scores", "graph_check_scores"]

#: Rows that interventions are compared on, and rows of the plain tests.
DRAWN, PLAIN_ROWS = 5000, 1000


def graph_check_scores(run: Run) -> dict[str, Any]:
    """What the check says about a graph, and what is really wrong with it."""
    from vaca.trust.graph_check import check_graph

    truth, graph, rows = case(run)
    started = time.process_time()
    found = check_graph(graph, truth.schema_, rows, seed=run.seed)
    seconds = time.process_time() - started
    first = found.arrows.head(1)
    report = {
        "verdict": found.verdict,
        "by_part": dict(zip(found.parts["part"], found.parts["verdict"], strict=True)),
        "broken": int((found.independences["adjusted"] < 0.05).sum()),
        "first": [str(v) for v in first[["change", "cause", "effect"]].to_numpy().ravel()],
        "nodes": len(graph),
        "cpu_seconds": round(seconds, 2),
    }
    if run.graph or isinstance(truth, Marginal):
        report["harm"] = round(harm(truth, graph, rows, run.seed), 4)
        report["contradicted"] = contradicted(truth, graph)
        if report["harm"] > 0.25 and found.verdict == "good":
            report["plain"] = plain_tests(graph, truth.graph, truth.schema_, rows, run.seed)
    return {"scores": {}, "check": report}


def case(run: Run) -> tuple[CausalModel, CausalGraph, Columns]:
    """The truth of a run, the graph that is given, and encoded rows."""
    truth = load_truth(run.scm)
    rows = truth.schema_.encode(truth.sample(run.train, seed=_seed(run)))
    return truth, edit_graph(truth.graph, run.graph), rows


def check_scores(run: Run) -> dict[str, Any]:
    """What the check says about a fitted model under the right graph."""
    import vaca

    truth = load_truth(run.scm)
    data = truth.sample(run.train, seed=_seed(run))
    model: Any = recipe(run.model).make(run.scm, truth.graph, truth.schema_, run.seed, run.config)
    started = time.process_time()
    model.fit(data, progress=False)
    fitted = time.process_time()
    fresh = truth.sample(run.train // 2, seed=_seed(run) + 1)
    found = vaca.check(model, data, held_out=fresh, seed=run.seed)
    report = {
        "verdict": found.verdict,
        "by_part": dict(zip(found.parts["part"], found.parts["verdict"], strict=True)),
        "figures": {
            p: float(f"{v:.3g}")
            for p, v in zip(found.parts["part"], found.parts["figure"], strict=True)
        },
        "fit_cpu_seconds": round(fitted - started, 2),
        "cpu_seconds": round(time.process_time() - fitted, 2),
    }
    return {"scores": {}, "check": report}


def _seed(run: Run) -> int:
    return int(np.random.SeedSequence([run.data_seed or 0, 6]).generate_state(1)[0])


# ---------------------------------------------------------------------- what is really wrong


def contradicted(truth: CausalModel, graph: CausalGraph) -> bool:
    """Whether the true graph, hidden nodes and all, contradicts an independence of the graph."""
    from vaca.trust.independence import implied_pairs

    whole = truth.whole.graph if isinstance(truth, Marginal) else truth.graph
    return any(not whole.is_d_separated(p.one, p.other, p.given) for p in implied_pairs(graph))


def harm(truth: CausalModel, graph: CausalGraph, rows: Columns, seed: int) -> float:
    """The largest error of a mean under an intervention, in standard deviations of the column.

    Every node with effects, in the truth or in the graph, is set to its quartiles (levels: to the
    two most frequent); answers of the graph come from curves and products fitted to the rows, with
    their own residuals as noise.
    """
    rng = np.random.default_rng([seed, 41])
    quick = _Quick(graph, truth.schema_, rows)
    noise = truth.noise(DRAWN, np.random.default_rng([seed, 42]))
    worst = 0.0
    causes = {a for a, _ in (*truth.graph.edges, *graph.edges)}
    for node in sorted(causes):
        if truth.schema_[node].discrete:
            values = np.argsort(-np.bincount(rows[node]), kind="stable")[:2].tolist()
        else:
            values = np.quantile(rows[node], [0.25, 0.75]).tolist()
        for value in values:
            do = {node: np.full(DRAWN, value, dtype=rows[node].dtype)}
            right, mine = truth.simulate(noise, do), quick.simulate(do, DRAWN, rng)
            worst = max(
                [
                    worst,
                    *(
                        _apart(truth.schema_, c, right[c], mine[c], rows[c])
                        for c in rows
                        if c != node
                    ),
                ]
            )
    return worst


def _apart(schema: Schema, name: str, a: np.ndarray, b: np.ndarray, data: np.ndarray) -> float:
    if not schema[name].discrete:
        # A few wild rows of a skewed column say little about a mean.
        low, high = np.quantile(data, [0.001, 0.999])
        return abs(float(np.clip(a, low, high).mean() - np.clip(b, low, high).mean())) / sd_of(data)
    shares = [np.bincount(x, minlength=len(schema[name].levels)) / len(x) for x in (a, b, data)]
    sd = np.sqrt(np.maximum(shares[2] * (1 - shares[2]), 0.01))
    return float(np.max(np.abs(shares[0] - shares[1]) / sd))


class _Quick:
    """An additive-noise model that takes milliseconds: enough to see what a graph would answer."""

    def __init__(self, graph: CausalGraph, schema: Schema, rows: Columns) -> None:
        self.graph, self.schema, self.models, self.rest = graph, schema, {}, {}
        n = min(row_count(rows), 3000)
        rows = take_rows(rows, slice(None, n))
        for node in graph.order:
            y, parents = rows[node], graph.parents(node)
            levels = len(schema[node].levels)
            if not parents:
                self.rest[node] = y
                continue
            x = self._inputs(rows, parents)
            keep = np.arange(n) % 4 > 0
            fits = [lambda a: Splines.blank(a), lambda a: Polynomial.blank(a, 2)]
            if levels:
                models = [f(x[keep]).classify(x[keep], y[keep], levels) for f in fits]
                losses = [
                    -_log_chance(m(x[~keep]))[np.arange((~keep).sum()), y[~keep]].mean()
                    for m in models
                ]
                self.models[node] = models[int(np.argmin(losses))]
            else:
                models = [f(x[keep]).regress(x[keep], y[keep]) for f in fits]
                losses = [((y[~keep] - m(x[~keep])[:, 0]) ** 2).mean() for m in models]
                self.models[node] = models[int(np.argmin(losses))]
                self.rest[node] = y - self.models[node](x)[:, 0]

    def _inputs(self, rows: Columns, parents: tuple[str, ...]) -> np.ndarray:
        parts = []
        for p in parents:
            levels = len(self.schema[p].levels)
            parts.append(
                np.eye(levels)[rows[p]][:, 1:]
                if levels > 2
                else np.asarray(rows[p], float)[:, None]
            )
        return np.concatenate(parts, axis=1)

    def simulate(self, do: Columns, n: int, rng: np.random.Generator) -> Columns:
        x: Columns = {}
        for node in self.graph.order:
            if node in do:
                x[node] = do[node]
            elif node not in self.models:
                x[node] = rng.choice(self.rest[node], n)
            elif self.schema[node].discrete:
                log_p = _log_chance(self.models[node](self._inputs(x, self.graph.parents(node))))
                x[node] = level_of(log_p, rng.gumbel(size=log_p.shape))
            else:
                mean = self.models[node](self._inputs(x, self.graph.parents(node)))[:, 0]
                x[node] = mean + rng.choice(self.rest[node], n)
        return x


def _log_chance(scores: np.ndarray) -> np.ndarray:
    from scipy.special import log_softmax

    return log_softmax(scores, axis=1)


# ---------------------------------------------------------------------- plain tests


def plain_tests(
    graph: CausalGraph, right: CausalGraph, schema: Schema, rows: Columns, seed: int
) -> bool:
    """Whether plain tests tell the graph from the right one, at 5 % by Bonferroni.

    For each implied independence, errors of random forests must be uncorrelated, and the one column
    must not help to predict the other. Errors of continuous columns must have no distance
    correlation with a parent; that counts only where the right graph passes, since noise need not
    be additive. (Of two columns it would be no test: their errors may share a changing spread.)
    """
    rows = take_rows(rows, slice(None, PLAIN_ROWS))
    if _rejects(_independences(graph, schema, rows, seed)):
        return True
    return _rejects(_directions(graph, schema, rows, seed)) and not _rejects(
        _directions(right, schema, rows, seed)
    )


def _rejects(p: list[float]) -> bool:
    return bool(p) and min(p) * len(p) < 0.05


def _numbers(rows: Columns, schema: Schema, names: Any) -> np.ndarray:
    parts = [np.empty((row_count(rows), 0))]
    for name in names:
        levels = len(schema[name].levels)
        values = np.eye(levels)[rows[name]] if levels else np.asarray(rows[name], float)[:, None]
        parts.append(Standard.of(values).to(values))
    return np.concatenate(parts, axis=1)


def _forest_rest(x: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
    from sklearn.ensemble import RandomForestRegressor

    if not x.shape[1]:
        return y - y.mean(0)
    forest = RandomForestRegressor(50, min_samples_leaf=5, oob_score=True, random_state=seed)
    guess = forest.fit(x, y if y.shape[1] > 1 else y[:, 0]).oob_prediction_
    return y - np.asarray(guess).reshape(y.shape)


def _independences(graph: CausalGraph, schema: Schema, rows: Columns, seed: int) -> list[float]:
    from vaca.trust.independence import implied_pairs

    found = []
    for pair in implied_pairs(graph):
        x, a, b = (
            _numbers(rows, schema, names) for names in (pair.given, [pair.one], [pair.other])
        )
        rest = _forest_rest(x, np.concatenate([a, b], axis=1), seed)
        mine, other = rest[:, : a.shape[1]], rest[:, a.shape[1] :]
        product = (mine[:, :, None] * other[:, None, :]).reshape(len(a), -1)
        z = np.abs(product.mean(0)) / product.std(0) * np.sqrt(len(a))
        linear = 2 * norm.sf(z.max()) * len(z)
        more = _forest_rest(np.concatenate([x, a], axis=1), b, seed)
        gain = (_forest_rest(x, b, seed) ** 2 - more**2).sum(axis=1)
        helps = norm.sf(gain.mean() / (gain.std() or 1.0) * np.sqrt(len(gain)))
        found.append(min(1.0, 2 * min(linear, helps)))
    return found


def _directions(graph: CausalGraph, schema: Schema, rows: Columns, seed: int) -> list[float]:
    found = []
    for node in graph.nodes:
        parents = graph.parents(node)
        if parents and schema[node].kind == "continuous":
            rest = _forest_rest(
                _numbers(rows, schema, parents), _numbers(rows, schema, [node]), seed
            )
            found += [_distance_p(rest, _numbers(rows, schema, [p])) for p in parents]
    return found


def _distance_p(a: np.ndarray, b: np.ndarray) -> float:
    """The t-test of the bias-corrected distance correlation (Szekely and Rizzo, 2013)."""
    from scipy.spatial.distance import cdist
    from scipy.stats import t

    n = len(a)
    centred = []
    for values in (a, b):
        d = cdist(values, values)
        rows, total = d.sum(1), d.sum()
        u = d - rows[:, None] / (n - 2) - rows / (n - 2) + total / ((n - 1) * (n - 2))
        np.fill_diagonal(u, 0.0)
        centred.append(u)
    ab, aa, bb = (
        float((x * y).sum())
        for x, y in ((centred[0], centred[1]), (centred[0], centred[0]), (centred[1], centred[1]))
    )
    r = ab / np.sqrt(aa * bb) if aa * bb > 0 else 0.0
    freedom = n * (n - 3) / 2 - 1
    return float(t.sf(np.sqrt(freedom) * r / np.sqrt(max(1 - r * r, 1e-12)), freedom))


# ---------------------------------------------------------------------- which cases


def wrong_edit(graph: CausalGraph, kind: str, seed: int) -> tuple[str, ...] | None:
    """An edit that removes, reverses or adds an arrow drawn at random; None if none can be."""
    rng = np.random.default_rng([seed, 43])
    pairs = graph.edges
    if kind == "add":
        near = {frozenset(edge) for edge in graph.edges}
        pairs = [(a, b) for a in graph.nodes for b in graph.nodes if a != b and {a, b} not in near]
    sign = {"remove": "-", "reverse": "~", "add": "+"}[kind]
    for place in rng.permutation(len(pairs)):
        edit = f"{sign}{pairs[place][0]}->{pairs[place][1]}"
        try:
            edit_graph(graph, (edit,))
        except Exception:
            continue
        return (edit,)
    return None
