"""The causal graph: which node is a direct cause of which.

A node is a named, ordered group of one or more columns. Most nodes are a single column and carry
its name; columns whose mutual relations are unknown share a node: a block.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vaca.errors import GraphError, did_you_mean, shorten
from vaca.graph import dot, formats, paths
from vaca.graph import text as plain
from vaca.graph.parts import (
    Parts,
    check_columns,
    check_dict,
    check_edges,
    check_list,
    check_name,
    check_parents,
    check_path,
    check_text,
    cycle_error,
)

if TYPE_CHECKING:
    import networkx as nx
    from matplotlib.axes import Axes

Edge = tuple[str, str]


class CausalGraph:
    """A directed acyclic graph over named nodes; immutable.

    Parameters
    ----------
    parents : mapping of str to sequence of str
        Each node's direct causes. The order of the keys is the order of the nodes.
    columns : mapping of str to sequence of str, optional
        The columns that make up a node, for nodes of several columns or whose column has another
        name. A node not named here is the column of its own name.

    Examples
    --------
    >>> graph = CausalGraph.from_edges([("sex", "income"), ("age", "income"), ("income", "loan")])
    >>> graph.parents("income")
    ('sex', 'age')
    >>> graph.descendants("age")
    ('income', 'loan')
    >>> graph.longest_path
    2
    >>> grouped = CausalGraph({"sex": [], "credit": ["sex"]}, {"credit": ["amount", "history"]})
    >>> grouped.all_columns
    ('sex', 'amount', 'history')
    """

    def __init__(
        self,
        parents: Mapping[str, Sequence[str]],
        columns: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        if not isinstance(parents, Mapping):
            raise GraphError(
                f"parents maps every node to its causes; got {type(parents).__name__}. Edges go "
                'to CausalGraph.from_edges([("cause", "effect"), ...]), a file to CausalGraph.read'
            )
        if not parents:
            raise GraphError("a causal graph needs at least one node; none was given")
        names = [check_name(node, "node names") for node in parents]
        self._parents: dict[str, tuple[str, ...]] = dict.fromkeys(names, ())
        for node, direct in parents.items():
            self._parents[node] = check_parents(node, direct, self._parents)
        self._columns = check_columns(columns, self._parents)
        self._nodes = tuple(self._parents)
        self._number = {node: i for i, node in enumerate(self._parents)}
        self._numbers = [[self._number[p] for p in direct] for direct in self._parents.values()]
        places = paths.topological_order(self._numbers)
        if len(places) < len(self._parents):
            raise cycle_error(self._named(paths.find_cycle(self._numbers, places)))
        self._places = places
        self._order = self._named(places)

    # ------------------------------------------------------------------ making one

    @classmethod
    def from_edges(
        cls,
        edges: Iterable[Sequence[Any]],
        nodes: Iterable[Any] = (),
        columns: Mapping[str, Sequence[str]] | None = None,
    ) -> CausalGraph:
        """The graph with the given (cause, effect) pairs, and `nodes` that may have no edge.

        A tuple of columns instead of a name is a block: columns that are modelled together,
        without a claim about what causes what among them.

        >>> CausalGraph.from_edges([("x1", "x2"), ("x2", "x3")]).order
        ('x1', 'x2', 'x3')
        >>> graph = CausalGraph.from_edges([(("age", "educ"), "treat"), ("treat", "pay")])
        >>> graph.nodes, graph.all_columns
        (('{age, educ}', 'treat', 'pay'), ('age', 'educ', 'treat', 'pay'))
        """
        given = Parts(list(check_list(nodes, "nodes")), check_edges(edges), check_dict(columns))
        parts = plain.name_blocks(given)
        names = dict.fromkeys([*parts.nodes, *(n for pair in parts.edges for n in pair)])
        parents: dict[str, list[str]] = {name: [] for name in names}
        for cause, effect in parts.edges:
            parents[effect].append(cause)
        return cls(parents, parts.columns)

    @classmethod
    def from_parents(
        cls,
        parents: Mapping[str, Sequence[str]],
        columns: Mapping[str, Sequence[str]] | None = None,
    ) -> CausalGraph:
        """The graph in which each node has the given parents.

        >>> CausalGraph.from_parents({"a": [], "b": ["a"]}).edges
        (('a', 'b'),)
        """
        return cls(parents, columns)

    @classmethod
    def from_adjacency(cls, adjacency: Any, nodes: Sequence[str] | None = None) -> CausalGraph:
        """The graph of an adjacency matrix: A[i, j] = 1 if j is a parent of i (as in the paper).

        `adjacency` is an array (then `nodes` names its rows; default x1, x2, ...) or a DataFrame
        with equal row and column labels. Ones on the diagonal (self-loops) are ignored.

        >>> CausalGraph.from_adjacency([[0, 0], [1, 0]]).edges
        (('x1', 'x2'),)
        """
        return cls._of(formats.read_adjacency(adjacency, nodes))

    @classmethod
    def from_networkx(cls, graph: nx.DiGraph) -> CausalGraph:
        """The graph of a networkx `DiGraph`; a node attribute `columns` groups columns."""
        return cls._of(formats.read_networkx(graph))

    @classmethod
    def from_json(cls, text: str) -> CausalGraph:
        """The graph of the JSON that `to_json` writes, or of {"node": ["parent", ...], ...}."""
        return cls._of(formats.read_json(check_text(text)))

    @classmethod
    def from_dot(cls, text: str) -> CausalGraph:
        """The graph of DOT text: `digraph { a -> b; b -> c }`.

        Understood: node and edge statements, chains (a -> b -> c), quoted names, comments and
        attributes, of which only a node's `columns="u,v"` counts.
        """
        return cls._of(dot.read(check_text(text)))

    @classmethod
    def from_gml(cls, text: str) -> CausalGraph:
        """The graph of GML text, as networkx reads it (nodes named by their label)."""
        return cls._of(formats.read_gml(check_text(text)))

    @classmethod
    def from_text(cls, text: str) -> CausalGraph:
        """The graph of an edge list: one `cause -> effect` per line; `#` starts a comment.

        A name alone on a line is a node. `{column, column}` is a block, which may go over several
        lines; `name: column, column` gives it a name. Quote a name that contains one of these
        marks: `"a # b" -> c`.

        >>> CausalGraph.from_text("sex -> income  # direct").edges
        (('sex', 'income'),)
        >>> CausalGraph.from_text("{age, educ} -> treat").columns("{age, educ}")
        ('age', 'educ')
        """
        return cls._of(plain.read(check_text(text)))

    @classmethod
    def read(cls, path: str | Path) -> CausalGraph:
        """The graph of a file: `.txt` (edge list), `.dot`/`.gv`, `.gml` or `.json`."""
        return formats.read_file(check_path(path), cls._of)

    @classmethod
    def _of(cls, parts: Parts) -> CausalGraph:
        return cls.from_edges(parts.edges, parts.nodes, parts.columns)

    @property
    def _parts(self) -> Parts:
        return Parts(list(self.nodes), list(self.edges), self._columns)

    # ------------------------------------------------------------------ going back

    def to_networkx(self) -> nx.DiGraph:
        """A networkx `DiGraph` with each node's columns as the attribute `columns`."""
        return formats.write_networkx(self._parts)

    def to_json(self) -> str:
        """JSON with the nodes (and their columns) and the edges."""
        return formats.write_json(self._parts)

    def to_dot(self) -> str:
        """DOT text, for Graphviz and others."""
        return dot.write(self._parts)

    def to_gml(self) -> str:
        """GML text, as networkx writes it."""
        return formats.write_gml(self._parts)

    def to_text(self) -> str:
        """An edge list: one `cause -> effect` per line."""
        return plain.write(self._parts)

    def write(self, path: str | Path) -> None:
        """Write to a file, in the format that its ending says: .txt, .dot, .gv, .gml or .json.

        An existing file is replaced, or left as it was if writing fails.
        """
        formats.write_file(self._parts, check_path(path))

    # ------------------------------------------------------------------ facts

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes, in the order given."""
        return self._nodes

    @property
    def order(self) -> tuple[str, ...]:
        """The nodes with every cause before its effects."""
        return self._order

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """All (cause, effect) pairs, by effect."""
        return tuple((p, node) for node in self.nodes for p in self._parents[node])

    @cached_property
    def all_columns(self) -> tuple[str, ...]:
        """The columns of all nodes, node by node."""
        return tuple(c for node in self.nodes for c in self._columns[node])

    @cached_property
    def _owner(self) -> dict[str, str]:
        return {c: node for node, group in self._columns.items() for c in group}

    def _known(self, node: str) -> str:
        if not isinstance(node, str) or node not in self._parents:
            raise GraphError(f"unknown node {shorten(node)}; {did_you_mean(node, self.nodes)}")
        return node

    def columns(self, node: str) -> tuple[str, ...]:
        """The columns that make up a node."""
        return self._columns[self._known(node)]

    def node_of(self, column: str) -> str:
        """The node a column belongs to."""
        if not isinstance(column, str) or column not in self._owner:
            raise GraphError(
                f"no node has the column {shorten(column)}; "
                f"{did_you_mean(column, self.all_columns)}"
            )
        return self._owner[column]

    def parents(self, node: str) -> tuple[str, ...]:
        """The direct causes of a node."""
        return self._parents[self._known(node)]

    def children(self, node: str) -> tuple[str, ...]:
        """The direct effects of a node."""
        return self._children[self._number[self._known(node)]]

    def ancestors(self, node: str) -> tuple[str, ...]:
        """All direct and indirect causes of a node, without itself, in topological order."""
        return self._named(self._reach.above(self._number[self._known(node)]))

    def descendants(self, *nodes: str) -> tuple[str, ...]:
        """All direct and indirect effects of the nodes, without themselves, in topological order.

        >>> CausalGraph.from_edges([("a", "b"), ("b", "c"), ("d", "c")]).descendants("a", "b")
        ('c',)
        """
        if len(nodes) == 1:
            return self._named(self._reach.below(self._number[self._known(nodes[0])]))
        found = {below for node in nodes for below in self.descendants(node)} - set(nodes)
        return tuple(node for node in self.order if node in found)

    def _named(self, numbers: Iterable[int]) -> tuple[str, ...]:
        return tuple(self._nodes[i] for i in numbers)

    @cached_property
    def _children(self) -> list[tuple[str, ...]]:
        return [self._named(group) for group in paths.children_of(self._numbers)]

    @property
    def roots(self) -> tuple[str, ...]:
        """The nodes without parents."""
        return tuple(n for n in self.nodes if not self._parents[n])

    @property
    def leaves(self) -> tuple[str, ...]:
        """The nodes without children."""
        return tuple(n for n in self.nodes if not self.children(n))

    @cached_property
    def _reach(self) -> paths.Reach:
        return paths.Reach(self._numbers, self._places)

    @cached_property
    def _depth(self) -> list[int]:
        return paths.depths(self._numbers, self._places)

    @cached_property
    def longest_path(self) -> int:
        """gamma: edges on the longest directed path; the decoder needs gamma - 1 hidden layers."""
        return max(self._depth)

    @cached_property
    def longest_shortest_path(self) -> int:
        """delta: the largest distance, along directed edges, between two connected nodes."""
        return self._reach.longest_distance()

    def adjacency(self, self_loops: bool = False) -> np.ndarray:
        """A[i, j] = 1 if j is a parent of i (or, with `self_loops`, if i = j); int, (d, d)."""
        matrix = np.eye(len(self), dtype=int) * int(self_loops)
        for effect, causes in enumerate(self._numbers):
            matrix[effect, causes] = 1
        return matrix

    def do(self, nodes: str | Iterable[str]) -> CausalGraph:
        """The graph after an intervention: the edges into `nodes` are removed.

        >>> CausalGraph.from_edges([("a", "b"), ("b", "c")]).do("b").edges
        (('b', 'c'),)
        """
        cut = {nodes} if isinstance(nodes, str) else set(nodes)
        for node in cut:
            self._known(node)
        parents = {n: () if n in cut else direct for n, direct in self._parents.items()}
        return CausalGraph(parents, self._columns)

    def is_d_separated(
        self, x: str | Iterable[str], y: str | Iterable[str], given: str | Iterable[str] = ()
    ) -> bool:
        """Whether `given` blocks every path between the node sets `x` and `y`.

        >>> chain = CausalGraph.from_edges([("a", "b"), ("b", "c")])
        >>> chain.is_d_separated("a", "c", given="b"), chain.is_d_separated("a", "c")
        (True, False)
        """
        import networkx as nx

        sets = [{s} if isinstance(s, str) else set(s) for s in (x, y, given)]
        for node in set().union(*sets):
            self._known(node)
        if sets[0] & sets[1] or sets[0] & sets[2] or sets[1] & sets[2]:
            raise GraphError("x, y and given must not share a node")
        return bool(nx.is_d_separator(self.to_networkx(), *sets))

    def layers(self) -> list[list[str]]:
        """The nodes by the length of the longest path that leads to them; roots first."""
        return [list(self._named(layer)) for layer in paths.depth_layers(self._numbers)]

    def plot(self, ax: Axes | None = None, do: Iterable[str] = ()) -> Axes:
        """Draw the graph with matplotlib; nodes in `do` are drawn cut off from their causes."""
        from vaca.show.plot import plot_graph

        return plot_graph(self, ax=ax, do=do)

    # ------------------------------------------------------------------ as a value

    def __contains__(self, node: object) -> bool:
        return node in self._parents

    def __len__(self) -> int:
        return len(self._parents)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CausalGraph):
            return NotImplemented
        return (
            self.nodes == other.nodes
            and self._columns == other._columns
            and set(self.edges) == set(other.edges)
        )

    def __hash__(self) -> int:
        return hash((self.nodes, frozenset(self.edges), tuple(self._columns.items())))

    def __setattr__(self, name: str, value: Any) -> None:
        if hasattr(self, "_order"):
            raise AttributeError(
                "a CausalGraph does not change; make a new one (for example with .do or from_edges)"
            )
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        shown = ", ".join(f"{a} -> {b}" for a, b in self.edges[:6])
        more = ", ..." if len(self.edges) > 6 else ""
        return f"CausalGraph({len(self)} nodes, {len(self.edges)} edges: {shown}{more})"
