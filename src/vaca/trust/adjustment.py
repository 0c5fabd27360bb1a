"""Which columns to adjust for: the adjustment sets that a graph implies."""

from __future__ import annotations

from collections.abc import Collection

from vaca.errors import VacaError
from vaca.graph.dag import CausalGraph

__all__ = ["adjustment_set"]


def adjustment_set(graph: CausalGraph, treated: Collection[str], outcome: str) -> tuple[str, ...]:
    r"""The nodes to adjust for: of all valid sets, the one with the smallest variance.

    .. math:: O = pa(cn) \setminus (de(cn) \cup A)

    with the treated nodes :math:`A` and the nodes :math:`cn` on directed paths from them to the
    outcome, the outcome included (Henckel, Perković and Maathuis, 2022). If any set is valid, this
    one is. For a single node one always is; for several there is none if one of them moves a cause
    of another.

    Parameters
    ----------
    graph : CausalGraph
    treated : collection of str
        The nodes that are set.
    outcome : str
        A node below at least one of them.

    Examples
    --------
    >>> import vaca
    >>> graph = vaca.CausalGraph.from_text("age -> pay\nskill -> pay\nage -> course\ncourse -> pay")
    >>> adjustment_set(graph, ["course"], "pay")
    ('age', 'skill')
    """
    done = set(treated)
    on_path = {
        node
        for node in graph.descendants(*done)
        if node == outcome or outcome in _below(graph, node, done)
    }
    # A path that passes through another treated node counts from that node on.
    on_path &= {node for start in done for node in _below(graph, start, done)}
    if outcome not in on_path:
        raise VacaError(
            f"no arrow leads from {', '.join(map(repr, treated))} to {outcome!r}: by the graph the "
            "effect is zero, and there is nothing to estimate"
        )
    forbidden = done | on_path.union(graph.descendants(*on_path))
    chosen = {parent for node in on_path for parent in graph.parents(node)} - forbidden
    if len(done) > 1 and not _valid(graph, done, outcome, on_path, chosen):
        raise VacaError(
            f"no set of columns can be adjusted for: one of {', '.join(map(repr, treated))} moves "
            "a cause of another of them"
        )
    return tuple(node for node in graph.nodes if node in chosen)


def _below(graph: CausalGraph, start: str, stop: set[str]) -> set[str]:
    """Nodes reached from `start` by arrows that do not enter a node of `stop`."""
    found: set[str] = set()
    todo = [start]
    while todo:
        for child in graph.children(todo.pop()):
            if child not in found and child not in stop:
                found.add(child)
                todo.append(child)
    return found


def _valid(
    graph: CausalGraph, treated: set[str], outcome: str, on_path: set[str], chosen: set[str]
) -> bool:
    """Whether the set closes every path that is not causal (the adjustment criterion)."""
    kept = [(a, b) for a, b in graph.edges if not (a in treated and b in on_path)]
    cut = CausalGraph.from_edges(kept, graph.nodes)
    return cut.is_d_separated(treated, outcome, chosen)
