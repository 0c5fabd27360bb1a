"""Graphs as JSON, GML and matrices (edge lists and DOT have files of their own).

Readers give the parts of a graph; `CausalGraph` checks them. Whatever the text, a reader gives
parts or a `GraphError`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from vaca.errors import GraphError, shorten
from vaca.graph import dot, text
from vaca.graph.parts import (
    Parts,
    check_depth,
    check_list,
    check_name,
    read_columns,
    write_columns,
)

if TYPE_CHECKING:
    import networkx as nx

Graph = TypeVar("Graph")


# ---------------------------------------------------------------------- JSON


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise GraphError(f"{shorten(key)} is given twice in one JSON object; remove one")
        found[key] = value
    return found


def read_json(text: str) -> Parts:
    """The parts of the JSON of a graph, see `CausalGraph.from_json`."""
    check_depth(text.lstrip("\ufeff"), "JSON")
    try:
        data = json.loads(text.lstrip("\ufeff"), object_pairs_hook=_no_repeats)
    except GraphError:
        raise
    except (ValueError, RecursionError) as error:
        raise GraphError(f"not JSON: {error}") from None
    if isinstance(data, dict) and "edges" in data and not _is_parents(data):
        nodes, edges, columns = data.get("nodes", []), data["edges"], data.get("columns")
        if not isinstance(edges, list) or not isinstance(nodes, list | dict):
            raise GraphError(
                '"edges" of a graph in JSON is a list of pairs, "nodes" an object or a list; got '
                f"{shorten(edges if not isinstance(edges, list) else nodes)}"
            )
        if isinstance(nodes, dict):
            return Parts(list(nodes), edges, nodes)
        if columns is not None and not isinstance(columns, dict):
            raise GraphError(f'"columns" of a graph in JSON is an object; got {shorten(columns)}')
        return Parts(nodes, edges, columns)
    if isinstance(data, dict) and all(isinstance(v, list) for v in data.values()):
        edges = [(parent, node) for node, direct in data.items() for parent in direct]
        unknown = next((e for e in edges if isinstance(e[0], str) and e[0] not in data), None)
        if unknown:
            raise GraphError(
                f"node {shorten(unknown[1])} has the unknown parent {shorten(unknown[0])}; add it "
                "as a node of its own, with [] if nothing causes it"
            )
        return Parts(list(data), edges, None)
    raise GraphError(
        'JSON of a graph is {"nodes": {"a": ["a"], ...}, "edges": [["a", "b"], ...]} '
        'or {"node": ["parent", ...], ...}'
    )


def _is_parents(data: dict[str, Any]) -> bool:
    """Whether "edges" is the name of a node among others, with names of parents as its value."""
    others = [v for k, v in data.items() if k not in ("nodes", "columns")]
    return len(others) > 1 and all(
        isinstance(v, list) and all(isinstance(e, str) for e in v) for v in others
    )


def write_json(graph: Parts) -> str:
    """JSON with the nodes (and their columns) and the edges."""
    nodes = {node: list(graph.columns[node]) for node in graph.nodes}
    return json.dumps({"nodes": nodes, "edges": [list(e) for e in graph.edges]}, indent=2)


# ---------------------------------------------------------------------- matrices


def read_adjacency(adjacency: Any, nodes: Any = None) -> Parts:
    """The parts of an adjacency matrix, see `CausalGraph.from_adjacency`."""
    if hasattr(adjacency, "columns") and hasattr(adjacency, "index"):
        labels = [str(c) for c in adjacency.columns]
        rows = [str(r) for r in adjacency.index]
        if labels != rows:
            raise GraphError(
                "an adjacency DataFrame needs the same labels, in the same order, on rows and "
                f"columns; got rows {shorten(rows)} and columns {shorten(labels)}"
            )
        nodes = labels if nodes is None else nodes
    try:
        matrix = np.asarray(adjacency)
    except ValueError:
        raise GraphError("an adjacency matrix is square; got rows of several lengths") from None
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise GraphError(f"an adjacency matrix is square; got the shape {matrix.shape}")
    if not np.isin(matrix, (0, 1)).all():
        raise GraphError("an adjacency matrix holds only 0 and 1 (A[i, j] = 1: j causes i)")
    names = (
        [f"x{i + 1}" for i in range(len(matrix))]
        if nodes is None
        else list(check_list(nodes, "nodes"))
    )
    if len(names) != len(matrix):
        raise GraphError(f"{len(names)} node names for a {len(matrix)}-row adjacency matrix")
    names = [check_name(name, "node names") for name in names]
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise GraphError(f"the node name {shorten(twice)} is given twice")
    edges = [(names[j], names[i]) for i, j in np.argwhere(matrix != 0) if i != j]
    return Parts(names, edges, None)


# ---------------------------------------------------------------------- networkx and GML


def read_networkx(graph: nx.DiGraph) -> Parts:
    """The parts of a networkx `DiGraph`, see `CausalGraph.from_networkx`."""
    if not hasattr(graph, "is_directed") or not graph.is_directed() or graph.is_multigraph():
        raise GraphError(f"a networkx DiGraph is needed; got {type(graph).__name__}")
    columns: dict[str, Any] = {}
    names: dict[Any, str] = {}
    taken: set[str] = set()
    for node, data in graph.nodes(data=True):
        name = str(node)
        if name in taken:
            raise GraphError(f"two nodes are called {shorten(name)}; rename one")
        names[node] = name
        taken.add(name)
        if data.get("columns"):
            columns[name] = read_columns(data["columns"])
    edges = [(names[p], names[n]) for n in graph.nodes for p in graph.predecessors(n)]
    return Parts(list(names.values()), edges, columns)


def write_networkx(graph: Parts) -> nx.DiGraph:
    """A networkx `DiGraph` with each node's columns as the attribute `columns`."""
    import networkx as nx

    result = nx.DiGraph()
    for node in graph.nodes:
        result.add_node(node, columns=write_columns(graph.columns[node]))
    result.add_edges_from(graph.edges)
    return result


def read_gml(text: str) -> Parts:
    """The parts of GML text, as networkx reads it."""
    import networkx as nx

    check_depth(text, "GML")
    try:
        graph = nx.parse_gml(text.lstrip("\ufeff"))
    except Exception as error:  # networkx raises whatever wrong types lead to
        raise GraphError(f"not GML: {shorten(str(error), 200)}") from None
    if not graph.is_directed() or graph.is_multigraph():
        raise GraphError(
            "the GML graph is undirected or has several edges between two nodes; "
            "add `directed 1` to it and leave `multigraph` out"
        )
    return read_networkx(graph)


def write_gml(graph: Parts) -> str:
    """GML text, as networkx writes it."""
    import networkx as nx

    return "\n".join(nx.generate_gml(write_networkx(graph))) + "\n"


# ---------------------------------------------------------------------- files

READERS: dict[str, Callable[[str], Parts]] = {
    ".txt": text.read,
    ".dot": dot.read,
    ".gv": dot.read,
    ".gml": read_gml,
    ".json": read_json,
}
WRITERS: dict[str, Callable[[Parts], str]] = {
    ".txt": text.write,
    ".dot": dot.write,
    ".gv": dot.write,
    ".gml": write_gml,
    ".json": write_json,
}


def ending(path: Path) -> str:
    """The ending of a graph file's name, which says how it is written."""
    if path.suffix.lower() not in READERS:
        raise GraphError(
            f"{path}: unknown kind of graph file {path.suffix!r}; use {', '.join(READERS)}"
        )
    return path.suffix.lower()


def read_file(path: Path, make: Callable[[Parts], Graph]) -> Graph:
    """What `make` makes of a graph file; whatever is wrong, the error says in which file."""
    reader = READERS[ending(path)]
    try:
        return make(reader(path.read_bytes().decode("utf-8-sig")))
    except UnicodeDecodeError:
        raise GraphError(f"{path}: not UTF-8 text; save it as UTF-8") from None
    except OSError as error:
        raise GraphError(f"{path}: {error.strerror or error}") from None
    except GraphError as error:
        raise GraphError(f"{path}: {error}") from None
    except ValueError as error:  # a name that no file can have
        raise GraphError(f"{shorten(str(path))}: {error}") from None


def write_file(graph: Parts, path: Path) -> None:
    """Write a graph file, all or nothing."""
    from vaca.table.atomic import complete

    text = WRITERS[ending(path)](graph)
    with complete(path) as part:
        part.write_bytes(text.encode())
