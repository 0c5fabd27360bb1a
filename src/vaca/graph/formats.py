"""Graphs as text: edge lists, JSON and GML (DOT has a file of its own).

Readers give the parts of a graph; `CausalGraph` checks them. Whatever the text, a reader gives
parts or a `GraphError`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vaca.errors import GraphError, shorten
from vaca.graph import dot
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


# ---------------------------------------------------------------------- edge lists

# A quoted name, where a name can start and end; or a sign between names.
_SIGN = re.compile(
    r'(?P<quoted>(?<![^\s,:>{])"(?:[^"\\]|\\.)*"(?=\s*(?:->|[#:,}]|$)))|(?P<sign>->|[#:,])'
)


def _pieces(line: str) -> tuple[list[str], list[str]]:
    """The names of a line and the signs between them; a comment is left out."""
    names, signs, start = [], [], 0
    for match in _SIGN.finditer(line):
        sign = match["sign"]
        if sign is None or (sign == ":" and "->" in signs) or (sign == "," and ":" not in signs):
            continue  # a colon or comma that belongs to a name
        names.append(line[start : match.start()])
        if sign == "#":
            return names, signs
        signs.append(sign)
        start = match.end()
    return [*names, line[start:]], signs


def _unquoted(name: str) -> str:
    name = name.strip()
    if len(name) > 1 and name[0] == name[-1] == '"':
        return re.sub(r"\\(.)", r"\1", name[1:-1])
    return name.strip('"')


def read_text(text: str) -> Parts:
    """The parts of an edge list, see `CausalGraph.from_text`."""
    edges: list[tuple[str, str]] = []
    nodes: list[str] = []
    columns: dict[str, list[str]] = {}
    for number, raw in enumerate(re.split(r"\r\n?|\n", text.lstrip("\ufeff")), start=1):
        pieces, signs = _pieces(raw)
        names = [_unquoted(piece) for piece in pieces]
        if not any(names) and not signs:
            continue
        if "->" in signs:
            if not all(names) or ":" in signs:
                raise GraphError(
                    f"line {number}: {shorten(raw.strip())} is not of the form 'cause -> effect'"
                )
            edges.extend(zip(names, names[1:], strict=False))
            nodes.extend(names)
        elif ":" in signs:
            if names[0] in columns:
                raise GraphError(
                    f"line {number}: the columns of {shorten(names[0])} are given twice"
                )
            columns[names[0]] = [name for name in names[1:] if name]
            nodes.append(names[0])
        elif '"' not in raw and ("<-" in raw or "--" in raw):
            raise GraphError(
                f"line {number}: {shorten(raw.strip())}: write 'cause -> effect', one per line"
            )
        else:
            nodes.append(names[0])
    if not nodes:
        raise GraphError("the text names no node; write one 'cause -> effect' per line")
    return Parts(nodes, edges, columns)


def write_text(graph: Parts) -> str:
    """An edge list that `read_text` understands, names quoted where they must be."""
    lines = []
    for node in graph.nodes:
        group = graph.columns[node]
        named = f": {', '.join(_quoted(c) for c in group)}" if group != (node,) else ""
        lines.append(_quoted(node) + named)
    lines += [f"{_quoted(a)} -> {_quoted(b)}" for a, b in graph.edges]
    return "\n".join(lines) + "\n"


def _quoted(name: str) -> str:
    if "\n" in name or "\r" in name:
        raise GraphError(f"an edge list cannot hold {shorten(name)}; write .json or .dot instead")
    if name == name.strip() and not re.search(r'->|<-|--|[#:,"{}]', name):
        return name
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


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
    if not graph.is_directed() or graph.is_multigraph():
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
    except Exception as error:  # networkx meets wrong types with whatever they lead to
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
    ".txt": read_text,
    ".dot": dot.read,
    ".gv": dot.read,
    ".gml": read_gml,
    ".json": read_json,
}
WRITERS: dict[str, Callable[[Parts], str]] = {
    ".txt": write_text,
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
