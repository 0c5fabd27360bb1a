"""The graph against data: independences, directions, roots; what deserves a second look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from vaca.graph.dag import CausalGraph
from vaca.table.schema import Columns, Schema
from vaca.trust.arrows import arrow_changes
from vaca.trust.independence import ALPHA, independence_tests, relabelings
from vaca.trust.verdicts import PART, Verdict, line, listed, shown_p, worst

__all__ = ["GraphCheck", "check_graph"]

#: A broken independence is bad, not only doubtful, below this p and above this correlation.
BAD_P, BAD_SIZE = 1e-3, 0.1
#: A reversed arrow is preferred beyond this many standard errors and log-density per row.
TURN_Z, TURN_GAIN = 4.0, 0.01


@dataclass(frozen=True)
class GraphCheck:
    """The graph against data; see `check_graph`.

    Attributes
    ----------
    verdict : {"good", "doubtful", "bad"}
    parts : DataFrame
        As in `Check`.
    independences : DataFrame
        Every implied independence with its p-value, the most doubtful first.
    arrows : DataFrame
        What deserves a second look, ranked: `change` (add, remove, reverse), `cause`, `effect`,
        `gain` (of log-density per row, on rows not seen), `z`, and `words`.
    groups : list of tuple
        Roots that the data say are dependent, to be grouped in a node.
    """

    verdict: Verdict
    parts: pd.DataFrame
    independences: pd.DataFrame
    arrows: pd.DataFrame
    groups: list[tuple[str, ...]]


def check_graph(
    graph: CausalGraph, schema: Schema, rows: Columns, *, quick: bool = False, seed: int = 0
) -> GraphCheck:
    """Check a graph alone, on encoded rows (see `Schema.encode`): no model is needed.

    Examples
    --------
    >>> import vaca
    >>> from vaca.trust.graph_check import check_graph
    >>> scm = vaca.scms.load("chain-lin")
    >>> rows = scm.schema_.encode(scm.sample(500, seed=0))
    >>> cut = vaca.CausalGraph.from_edges([("x1", "x2")], nodes=["x1", "x2", "x3"])
    >>> check_graph(cut, scm.schema_, rows, quick=True).verdict
    'bad'
    """
    tests = independence_tests(graph, schema, rows, seed=seed)
    broken = tests[tests["adjusted"] < ALPHA]
    pairs = list(zip(broken["one"], broken["other"], strict=True))
    changes = arrow_changes(graph, schema, rows, pairs, arrows=not quick, seed=seed)
    turned = [
        change
        for change in changes.itertuples()
        if change.change == "reverse"
        and _told(change, changes, schema, graph)
        and _holds_reversed(change, graph, schema, rows, len(broken), seed)
    ]
    arrows = _second_look(broken, changes, turned)
    groups = _dependent_roots(graph, broken)
    parts = [_graph_part(tests, broken, arrows), _roots_part(graph, broken, groups)]
    if not quick:
        parts.append(_direction_part(arrows, bool(graph.edges)))
        parts.append(_relabel_part(*relabelings(graph, schema, rows, seed=seed), len(broken)))
    table = pd.DataFrame([p for p in parts if p], columns=PART)
    return GraphCheck(worst(table["verdict"]), table, tests, arrows, groups)


def _second_look(broken: pd.DataFrame, changes: pd.DataFrame, turned: list[Any]) -> pd.DataFrame:
    """What deserves a second look, ranked; for each pair, the change that the data support most."""
    found = []
    for pair in broken.itertuples():
        names = {pair.one, pair.other}
        own = [
            c for c in changes.itertuples() if c.change == "add" and {c.cause, c.effect} == names
        ]
        best = max(own, key=lambda c: c.gain, default=None)
        cause, effect = (pair.one, pair.other) if best is None else (best.cause, best.effect)
        gain, z = (0.0, 0.0) if best is None else (best.gain, best.z)
        found.append(["add", cause, effect, gain, z, _related(pair)])
    # The arrow that explains most stands first: what goes through it looks broken as well.
    found.sort(key=lambda row: -row[3])
    for c in sorted(turned, key=lambda c: -c.z):
        words = f"data would rather have {c.effect} -> {c.cause} than {c.cause} -> {c.effect}"
        found.append(["reverse", c.cause, c.effect, c.gain, c.z, words])
    idle = [c for c in changes.itertuples() if c.change == "remove" and c.gain > -1e-4]
    for c in idle:
        words = f"{c.cause} -> {c.effect}: nothing is predicted worse without it"
        found.append(["remove", c.cause, c.effect, c.gain, c.z, words])
    return pd.DataFrame(found, columns=["change", "cause", "effect", "gain", "z", "words"])


def _told(change: Any, changes: pd.DataFrame, schema: Schema, graph: CausalGraph) -> bool:
    """Whether the form of the noise shows this arrow's direction: only for numbers, if clear."""
    same = changes[["change", "cause", "effect"]] == ["remove", change.cause, change.effect]
    if change.gain < changes.loc[same.all(axis=1), "gain"].max() + TURN_GAIN:
        return False  # without the arrow it would be as good: nothing is learned from turning it
    columns = [c for node in (change.cause, change.effect) for c in graph.columns(node)]
    numbers = len(columns) == 2 and all(schema[c].kind == "continuous" for c in columns)
    return numbers and change.z > TURN_Z and change.gain > TURN_GAIN


def _holds_reversed(
    change: Any, graph: CausalGraph, schema: Schema, rows: Columns, broken: int, seed: int
) -> bool:
    """Whether the graph with the arrow reversed breaks no more independences than it does now."""
    parents = {node: list(graph.parents(node)) for node in graph.nodes}
    parents[change.effect].remove(change.cause)
    parents[change.cause].append(change.effect)
    other = CausalGraph(parents, {node: graph.columns(node) for node in graph.nodes})
    tests = independence_tests(other, schema, rows, seed=seed)
    return int((tests["adjusted"] < ALPHA).sum()) <= broken


def _related(pair: Any) -> str:
    given = f" given {listed(pair.given)}" if pair.given else ""
    still = "still related" if pair.given else "related"
    return (
        f"{pair.one} and {pair.other} are {still}{given} ({shown_p(pair.adjusted)}): an arrow or a "
        "hidden common cause is missing between them"
    )


def _dependent_roots(graph: CausalGraph, broken: pd.DataFrame) -> list[tuple[str, ...]]:
    """Roots that are dependent, directly or through one another, in the order of the graph."""
    groups: list[set[str]] = []
    for pair in broken.itertuples():
        if {pair.one, pair.other} <= set(graph.roots):
            touched = [g for g in groups if g & {pair.one, pair.other}]
            groups = [g for g in groups if g not in touched]
            groups.append({pair.one, pair.other}.union(*touched))
    return [tuple(n for n in graph.nodes if n in group) for group in groups]


def _graph_part(tests: pd.DataFrame, broken: pd.DataFrame, arrows: pd.DataFrame) -> dict[str, Any]:
    bad = (broken["adjusted"] < BAD_P) & (broken["size"] >= BAD_SIZE)
    verdict: Verdict = "bad" if bad.any() else "doubtful" if len(broken) else "good"
    if not len(tests):
        words = "every pair of columns has an arrow: nothing that data could contradict"
    elif not len(broken):
        words = f"all {len(tests)} independences that it implies hold"
    else:
        words = arrows["words"].iloc[0]
        words += f" (and {len(broken) - 1} more)" if len(broken) > 1 else ""
    return line("graph", verdict, len(broken), f"0 of {len(tests)} independences broken", words)


def _roots_part(
    graph: CausalGraph, broken: pd.DataFrame, groups: list[tuple[str, ...]]
) -> dict[str, Any]:
    if len(graph.roots) < 2:
        return {}
    if not groups:
        return line("roots", "good", 0, "0 dependent", "separate roots are independent, as drawn")
    names = "; ".join(listed(group) for group in groups)
    count = sum(len(group) for group in groups)
    below = [n for n in graph.nodes if set(graph.parents(n)) & set(groups[0])]
    blocks = [n for n in groups[0] if len(graph.columns(n)) > 1]
    alone = [n for n in groups[0] if n not in blocks]
    if blocks and alone:  # a column in a block can no longer be asked about
        advice = f"draw an arrow: {blocks[0]} -> {alone[0]}"
    else:
        columns = ", ".join(c for n in groups[0] for c in graph.columns(n))
        advice = f"group them: {{{columns}}}" + (f" -> {below[0]}" if below else "")
    words = f"separate roots claim to be independent, but {names} are not; {advice}"
    return line("roots", "doubtful", count, "0 dependent", words)


def _direction_part(arrows: pd.DataFrame, any_arrow: bool) -> dict[str, Any]:
    if not any_arrow:
        return {}
    turned = arrows[arrows["change"] == "reverse"]
    if not len(turned):
        return line("directions", "good", 0, "0 arrows reversed", "no arrow looks reversed")
    words = turned["words"].iloc[0] + (f" (and {len(turned) - 1} more)" if len(turned) > 1 else "")
    return line("directions", "doubtful", len(turned), "0 arrows reversed", words)


def _relabel_part(violations: int, share: float, broken: int) -> dict[str, Any]:
    words = f"{100 * share:.0f} % of graphs with the nodes shuffled break no more by a quick test"
    verdict: Verdict = "doubtful" if broken and violations and share > 0.05 else "good"
    return line("shuffled graphs", verdict, share, "below 0.05, if it is a strong claim", words)
