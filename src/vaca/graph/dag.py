"""The causal graph: which node is a direct cause of which.

A node is a named, ordered group of one or more columns. Most nodes are a single column and carry
its name; columns whose mutual relations are unknown share a node.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vaca.errors import GraphError, did_you_mean
from vaca.graph import dot

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
        if not parents:
            raise GraphError("a causal graph needs at least one node; none was given")
        self._parents: dict[str, tuple[str, ...]] = {}
        for node, direct in parents.items():
            if not isinstance(node, str) or not node:
                raise GraphError(f"node names must be non-empty strings; got {node!r}")
            if isinstance(direct, str):
                raise GraphError(
                    f"the parents of {node!r} must be a list of names, not the string {direct!r}; "
                    f"write [{direct!r}]"
                )
            self._parents[node] = tuple(direct)
        for node, direct in self._parents.items():
            for parent in direct:
                if parent not in self._parents:
                    raise GraphError(
                        f"node {node!r} has the unknown parent {parent!r}; "
                        f"{did_you_mean(parent, self._parents)}. Add {parent!r} as a node of its "
                        "own, with [] if nothing causes it"
                    )
            if len(set(direct)) < len(direct):
                twice = next(p for p in direct if direct.count(p) > 1)
                raise GraphError(f"the edge {twice!r} -> {node!r} is given twice; remove one")
        self._columns = self._check_columns(columns or {})
        self._order = self._topological_order()

    def _check_columns(self, columns: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
        for node in columns:
            if node not in self._parents:
                raise GraphError(
                    f"columns were given for the unknown node {node!r}; "
                    f"{did_you_mean(node, self._parents)}"
                )
        result: dict[str, tuple[str, ...]] = {}
        owner: dict[str, str] = {}
        for node in self._parents:
            group = columns.get(node, (node,))
            group = (group,) if isinstance(group, str) else tuple(group)
            if not group:
                raise GraphError(f"node {node!r} has no columns; give it at least one")
            for column in group:
                if column in owner:
                    raise GraphError(
                        f"column {column!r} is in two nodes, {owner[column]!r} and {node!r}; "
                        "a column belongs to one node"
                        if owner[column] != node
                        else f"column {column!r} is listed twice in node {node!r}"
                    )
                owner[column] = node
            result[node] = group
        return result

    def _topological_order(self) -> tuple[str, ...]:
        # Kahn's method, always taking the earliest node in the given order: deterministic.
        waiting = {node: set(direct) for node, direct in self._parents.items()}
        order: list[str] = []
        while waiting:
            ready = next((node for node, direct in waiting.items() if not direct), None)
            if ready is None:
                raise GraphError(self._cycle_message(waiting))
            order.append(ready)
            del waiting[ready]
            for direct in waiting.values():
                direct.discard(ready)
        return tuple(order)

    def _cycle_message(self, waiting: Mapping[str, set[str]]) -> str:
        # Every waiting node has a waiting parent, so walking upwards must meet itself.
        path = [next(iter(waiting))]
        while True:
            parent = next(p for p in self._parents[path[-1]] if p in waiting)
            if parent in path:
                cycle = [*path[path.index(parent) :], parent][::-1]
                return (
                    f"the graph has a cycle: {' -> '.join(cycle)}. A causal graph must be acyclic; "
                    "remove one of these edges"
                )
            path.append(parent)

    # ------------------------------------------------------------------ making one

    @classmethod
    def from_edges(
        cls,
        edges: Iterable[Sequence[str]],
        nodes: Iterable[str] = (),
        columns: Mapping[str, Sequence[str]] | None = None,
    ) -> CausalGraph:
        """The graph with the given (cause, effect) pairs, and `nodes` that may have no edge.

        >>> CausalGraph.from_edges([("x1", "x2"), ("x2", "x3")]).order
        ('x1', 'x2', 'x3')
        """
        pairs = []
        for edge in edges:
            pair = tuple(edge)
            if isinstance(edge, str) or len(pair) != 2:
                raise GraphError(f"an edge is a pair (cause, effect); got {edge!r}")
            pairs.append(pair)
        names = dict.fromkeys([*nodes, *(n for pair in pairs for n in pair)])
        parents: dict[str, list[str]] = {name: [] for name in names}
        for cause, effect in pairs:
            parents[effect].append(cause)
        return cls(parents, columns)

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
        if hasattr(adjacency, "columns") and hasattr(adjacency, "index"):
            labels = [str(c) for c in adjacency.columns]
            rows = [str(r) for r in adjacency.index]
            if labels != rows:
                raise GraphError(
                    "an adjacency DataFrame needs the same labels, in the same order, on rows and "
                    f"columns; got rows {rows} and columns {labels}"
                )
            nodes = labels if nodes is None else nodes
        matrix = np.asarray(adjacency)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise GraphError(f"an adjacency matrix is square; got the shape {matrix.shape}")
        if not np.isin(matrix, (0, 1)).all():
            raise GraphError("an adjacency matrix holds only 0 and 1 (A[i, j] = 1: j causes i)")
        names = [f"x{i + 1}" for i in range(len(matrix))] if nodes is None else list(nodes)
        if len(names) != len(matrix):
            raise GraphError(f"{len(names)} node names for a {len(matrix)}-row adjacency matrix")
        if len(set(names)) < len(names):
            twice = next(n for n in names if names.count(n) > 1)
            raise GraphError(f"the node name {twice!r} is given twice")
        return cls(
            {
                name: [names[j] for j in np.flatnonzero(matrix[i]) if j != i]
                for i, name in enumerate(names)
            }
        )

    @classmethod
    def from_networkx(cls, graph: nx.DiGraph) -> CausalGraph:
        """The graph of a networkx `DiGraph`; a node attribute `columns` groups columns."""
        if not graph.is_directed() or graph.is_multigraph():
            raise GraphError(f"a networkx DiGraph is needed; got {type(graph).__name__}")
        columns = {}
        for node, data in graph.nodes(data=True):
            group = data.get("columns")
            if group:
                columns[str(node)] = group.split(",") if isinstance(group, str) else list(group)
        return cls({str(n): [str(p) for p in graph.predecessors(n)] for n in graph.nodes}, columns)

    @classmethod
    def from_json(cls, text: str) -> CausalGraph:
        """The graph of the JSON that `to_json` writes, or of {"node": ["parent", ...], ...}."""
        try:
            data = json.loads(text)
        except json.JSONDecodeError as error:
            raise GraphError(f"not JSON: {error}") from None
        if isinstance(data, dict) and "edges" in data:
            nodes = data.get("nodes", [])
            if isinstance(nodes, dict):
                return cls.from_edges(data["edges"], nodes, nodes)
            return cls.from_edges(data["edges"], nodes, data.get("columns"))
        if isinstance(data, dict) and all(isinstance(v, list) for v in data.values()):
            return cls(data)
        raise GraphError(
            'JSON of a graph is {"nodes": {"a": ["a"], ...}, "edges": [["a", "b"], ...]} '
            'or {"node": ["parent", ...], ...}'
        )

    @classmethod
    def from_dot(cls, text: str) -> CausalGraph:
        """The graph of DOT text: `digraph { a -> b; b -> c }`.

        Understood: node and edge statements, chains (a -> b -> c), quoted names, comments and
        attributes, of which only a node's `columns="u,v"` counts.
        """
        nodes, edges, columns = dot.read(text)
        return cls.from_edges(edges, nodes, columns)

    @classmethod
    def from_gml(cls, text: str) -> CausalGraph:
        """The graph of GML text, as networkx reads it (nodes named by their label)."""
        import networkx as nx

        try:
            graph = nx.parse_gml(text)
        except nx.NetworkXError as error:
            raise GraphError(f"not GML: {error}") from None
        if not graph.is_directed():
            raise GraphError("the GML graph is undirected; add `directed 1` to it")
        return cls.from_networkx(graph)

    @classmethod
    def from_text(cls, text: str) -> CausalGraph:
        """The graph of an edge list: one `cause -> effect` per line; `#` starts a comment.

        A name alone on a line is a node; `node: column, column` groups columns in a node.

        >>> CausalGraph.from_text("sex -> income  # direct").edges
        (('sex', 'income'),)
        """
        edges: list[Edge] = []
        nodes: list[str] = []
        columns: dict[str, list[str]] = {}
        for number, raw in enumerate(text.lstrip("\ufeff").splitlines(), start=1):
            line = raw.split("#", 1)[0].strip()
            if not line:
                continue
            if "->" in line:
                names = [part.strip().strip('"') for part in line.split("->")]
                if not all(names):
                    raise GraphError(
                        f"line {number}: {raw.strip()!r} is not of the form 'cause -> effect'"
                    )
                edges.extend(zip(names, names[1:], strict=False))
                nodes.extend(names)
            elif ":" in line:
                node, _, group = line.partition(":")
                columns[node.strip()] = [c.strip() for c in group.split(",") if c.strip()]
                nodes.append(node.strip())
            elif "<-" in line or "--" in line:
                raise GraphError(
                    f"line {number}: {raw.strip()!r}: write 'cause -> effect', one per line"
                )
            else:
                nodes.append(line.strip('"'))
        if not nodes:
            raise GraphError("the text names no node; write one 'cause -> effect' per line")
        return cls.from_edges(edges, nodes, columns)

    @classmethod
    def read(cls, path: str | Path) -> CausalGraph:
        """The graph of a file: `.txt` (edge list), `.dot`/`.gv`, `.gml` or `.json`."""
        path = Path(path)
        readers = {
            ".txt": cls.from_text,
            ".dot": cls.from_dot,
            ".gv": cls.from_dot,
            ".gml": cls.from_gml,
            ".json": cls.from_json,
        }
        if path.suffix.lower() not in readers:
            raise GraphError(
                f"{path}: unknown kind of graph file {path.suffix!r}; use {', '.join(readers)}"
            )
        try:
            return readers[path.suffix.lower()](path.read_text(encoding="utf-8"))
        except UnicodeDecodeError:
            raise GraphError(f"{path}: not UTF-8 text; save it as UTF-8") from None
        except GraphError as error:
            raise GraphError(f"{path}: {error}") from None

    # ------------------------------------------------------------------ going back

    def to_networkx(self) -> nx.DiGraph:
        """A networkx `DiGraph` with each node's columns as the attribute `columns`."""
        import networkx as nx

        graph = nx.DiGraph()
        for node in self.nodes:
            graph.add_node(node, columns=",".join(self.columns(node)))
        graph.add_edges_from(self.edges)
        return graph

    def to_json(self) -> str:
        """JSON with the nodes (and their columns) and the edges."""
        nodes = {node: list(self.columns(node)) for node in self.nodes}
        return json.dumps({"nodes": nodes, "edges": [list(e) for e in self.edges]}, indent=2)

    def to_dot(self) -> str:
        """DOT text, for Graphviz and others."""
        lines = ["digraph {"]
        for node in self.nodes:
            group = self.columns(node)
            extra = "" if group == (node,) else f" [columns={dot.quote(','.join(group))}]"
            lines.append(f"  {dot.quote(node)}{extra};")
        lines += [f"  {dot.quote(a)} -> {dot.quote(b)};" for a, b in self.edges]
        return "\n".join([*lines, "}"]) + "\n"

    def to_gml(self) -> str:
        """GML text, as networkx writes it."""
        import networkx as nx

        return "\n".join(nx.generate_gml(self.to_networkx())) + "\n"

    def to_text(self) -> str:
        """An edge list: one `cause -> effect` per line."""
        lines = [
            node if self.columns(node) == (node,) else f"{node}: {', '.join(self.columns(node))}"
            for node in self.nodes
        ]
        return "\n".join([*lines, *(f"{a} -> {b}" for a, b in self.edges)]) + "\n"

    def write(self, path: str | Path) -> None:
        """Write to a file in the format of its ending: .txt, .dot, .gv, .gml or .json."""
        path = Path(path)
        writers = {
            ".txt": self.to_text,
            ".dot": self.to_dot,
            ".gv": self.to_dot,
            ".gml": self.to_gml,
            ".json": self.to_json,
        }
        if path.suffix.lower() not in writers:
            raise GraphError(
                f"{path}: unknown kind of graph file {path.suffix!r}; use {', '.join(writers)}"
            )
        path.write_text(writers[path.suffix.lower()](), encoding="utf-8")

    # ------------------------------------------------------------------ facts

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes, in the order given."""
        return tuple(self._parents)

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
        if node not in self._parents:
            raise GraphError(f"unknown node {node!r}; {did_you_mean(node, self.nodes)}")
        return node

    def columns(self, node: str) -> tuple[str, ...]:
        """The columns that make up a node."""
        return self._columns[self._known(node)]

    def node_of(self, column: str) -> str:
        """The node a column belongs to."""
        if column not in self._owner:
            raise GraphError(
                f"no node has the column {column!r}; {did_you_mean(column, self.all_columns)}"
            )
        return self._owner[column]

    def parents(self, node: str) -> tuple[str, ...]:
        """The direct causes of a node."""
        return self._parents[self._known(node)]

    def children(self, node: str) -> tuple[str, ...]:
        """The direct effects of a node."""
        self._known(node)
        return tuple(n for n in self.nodes if node in self._parents[n])

    def ancestors(self, node: str) -> tuple[str, ...]:
        """All direct and indirect causes of a node, without itself, in topological order."""
        self._known(node)
        return tuple(n for n in self._order if self._reach[n][node] > 0)

    def descendants(self, node: str) -> tuple[str, ...]:
        """All direct and indirect effects of a node, without itself, in topological order."""
        self._known(node)
        return tuple(n for n in self._order if self._reach[node][n] > 0)

    @property
    def roots(self) -> tuple[str, ...]:
        """The nodes without parents."""
        return tuple(n for n in self.nodes if not self._parents[n])

    @property
    def leaves(self) -> tuple[str, ...]:
        """The nodes without children."""
        causes = {cause for cause, _ in self.edges}
        return tuple(n for n in self.nodes if n not in causes)

    @cached_property
    def _reach(self) -> dict[str, dict[str, int]]:
        """Length of the longest path from a node to another (0: no path)."""
        reach = {node: dict.fromkeys(self.nodes, 0) for node in self.nodes}
        for node in self._order:  # parents are complete before their children
            for parent in self._parents[node]:
                for start in self.nodes:
                    before = reach[start][parent]
                    if before or start == parent:
                        reach[start][node] = max(reach[start][node], before + 1)
        return reach

    @cached_property
    def longest_path(self) -> int:
        """gamma: edges on the longest directed path; the decoder needs gamma - 1 hidden layers."""
        return max(max(row.values()) for row in self._reach.values())

    @cached_property
    def longest_shortest_path(self) -> int:
        """delta: the largest distance, along directed edges, between two connected nodes."""
        longest = 0
        for start in self.nodes:
            distance, frontier = {start: 0}, [start]
            while frontier:
                level = distance[frontier[0]] + 1
                frontier = [c for n in frontier for c in self.children(n) if c not in distance]
                distance.update(dict.fromkeys(frontier, level))
            longest = max(longest, *distance.values())
        return longest

    def adjacency(self, self_loops: bool = False) -> np.ndarray:
        """A[i, j] = 1 if j is a parent of i (or, with `self_loops`, if i = j); int, (d, d)."""
        index = {node: i for i, node in enumerate(self.nodes)}
        matrix = np.eye(len(index), dtype=int) * int(self_loops)
        for cause, effect in self.edges:
            matrix[index[effect], index[cause]] = 1
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
        depth = {n: max((self._reach[s][n] for s in self.nodes), default=0) for n in self.nodes}
        return [
            [n for n in self.nodes if depth[n] == level] for level in range(max(depth.values()) + 1)
        ]

    def plot(self, ax: Axes | None = None, do: Iterable[str] = ()) -> Axes:
        """Draw the graph with matplotlib; nodes in `do` are drawn cut off from their causes."""
        from vaca.show.plotting import plot_graph

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
