"""What a graph is made of, as a file or a user gives it, and the checks that it must pass."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from vaca.errors import GraphError, VacaError, did_you_mean, shorten

#: How deep brackets may nest: no graph needs more, and recursive readers cannot take many.
DEEPEST = 40


class Parts(NamedTuple):
    """What a text says of a graph, unchecked."""

    nodes: list[Any]
    edges: list[Any]
    columns: Any  # node -> its columns, or None


def check_name(given: Any, what: str) -> str:
    """A name that files can hold, or an error."""
    if not isinstance(given, str) or not given:
        raise GraphError(f"{what} must be non-empty strings; got {shorten(given)}")
    if not given.isascii() and any("\ud800" <= c <= "\udfff" for c in given):
        raise GraphError(
            f"{what} must be text that can be written; {shorten(given)} holds half of a character"
        )
    return str(given)


def check_text(given: Any) -> str:
    """The text of a graph; a file is read by `CausalGraph.read`."""
    if not isinstance(given, str):
        raise GraphError(f"the text of a graph is needed; got {shorten(given)}")
    return given


def check_list(given: Any, what: str) -> Iterable[Any]:
    """A list: anything to loop over except text and dicts."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise GraphError(f"{what} must be a list; got {shorten(given)}")
    return given


def check_dict(columns: Any) -> Mapping[str, Any]:
    """The columns of some nodes; None for none."""
    if columns is None:
        return {}
    if not isinstance(columns, Mapping):
        raise GraphError(
            f"columns is a dict from node to its columns; got {type(columns).__name__}"
        )
    return columns


def check_path(path: Any) -> Path:
    """The place of a file or folder: a text or a `Path`."""
    if not isinstance(path, str | Path) and not hasattr(path, "__fspath__"):
        raise VacaError(f"a path is a text or a Path; got {shorten(path)}")
    if isinstance(os.fspath(path), bytes):
        raise VacaError(f"a path is a text or a Path; got bytes. Write os.fsdecode({path!r})")
    if "\0" in os.fspath(path):
        raise VacaError(f"no file can be called {shorten(path)}: the name holds a zero byte")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise VacaError(f"no file can be called {shorten(path)}: it cannot be written") from None
    return Path(path)


def check_edges(edges: Any) -> list[tuple[Any, ...]]:
    """Pairs (cause, effect)."""
    pairs = []
    for edge in check_list(edges, "edges"):
        pair = () if isinstance(edge, str) else tuple(check_list(edge, "an edge"))
        if len(pair) != 2:
            raise GraphError(f"an edge is a pair (cause, effect); got {shorten(edge)}")
        pairs.append(pair)
    return pairs


def cycle_error(cycle: Iterable[str]) -> GraphError:
    """What is wrong with a graph in which these nodes cause one another."""
    names = list(cycle)
    if len(names) > 20:
        names = [*names[:10], f"({len(names) - 20} more nodes)", *names[-10:]]
    return GraphError(
        f"the graph has a cycle: {' -> '.join(names)}. A causal graph must be acyclic; "
        "remove one of these edges"
    )


def check_parents(node: str, direct: Any, nodes: Collection[str]) -> tuple[str, ...]:
    """The direct causes of a node: names of nodes, each once."""
    if isinstance(direct, str):
        raise GraphError(
            f"the parents of {shorten(node)} must be a list of names, not the string "
            f"{shorten(direct)}; write [{shorten(direct)}]"
        )
    seen: dict[str, None] = {}
    for parent in check_list(direct, f"the parents of {shorten(node)}"):
        if not isinstance(parent, str) or parent not in nodes:
            raise GraphError(
                f"node {shorten(node)} has the unknown parent {shorten(parent)}; "
                f"{did_you_mean(parent, nodes)}. Add {shorten(parent)} as a node of "
                "its own, with [] if nothing causes it"
            )
        if parent in seen:
            raise GraphError(
                f"the edge {shorten(parent)} -> {shorten(node)} is given twice; remove one"
            )
        seen[parent] = None
    return tuple(seen)


def check_columns(columns: Any, nodes: Collection[str]) -> dict[str, tuple[str, ...]]:
    """The columns of every node: its own name, or those that were given for it."""
    columns = check_dict(columns)
    for node in columns:
        if node not in nodes:
            raise GraphError(
                f"columns were given for the unknown node {shorten(node)}; "
                f"{did_you_mean(node, nodes)}"
            )
    result: dict[str, tuple[str, ...]] = {}
    owner: dict[str, str] = {}
    for node in nodes:
        group = columns.get(node, (node,))
        what = f"the columns of node {shorten(node)}"
        group = (group,) if isinstance(group, str) else tuple(check_list(group, what))
        if not group:
            raise GraphError(f"node {shorten(node)} has no columns; give it at least one")
        for column in group:
            if check_name(column, what) in owner:
                raise GraphError(
                    f"column {shorten(column)} is in two nodes, {shorten(owner[column])} and "
                    f"{shorten(node)}; a column belongs to one node. Draw the arrows of a block "
                    "from and to the whole of it, or take the column out of it"
                    if owner[column] != node
                    else f"column {shorten(column)} is listed twice in node {shorten(node)}"
                )
            owner[column] = node
        result[node] = group
    for column, node in owner.items():
        if column != node and column in nodes:
            raise GraphError(
                f"column {shorten(column)} of node {shorten(node)} has the name of another node; "
                "rename that node, or draw the arrow between the two with ->"
            )
    return result


def check_depth(text: str, what: str) -> None:
    """Refuse text with brackets nested deeper than `DEEPEST`, whatever its quotes."""
    depth = 0
    # The closing quote is optional, or text without one would be searched again from each quote.
    for match in re.finditer(r'"(?:[^"\\]|\\.)*"?|[\[{(]|[\]})]', text, re.DOTALL):
        sign = match[0]
        depth += (sign in ("[", "{", "(")) - (sign in ("]", "}", ")"))
        if depth > DEEPEST:
            line = text.count("\n", 0, match.start()) + 1
            raise GraphError(
                f"line {line}: brackets are nested more than {DEEPEST} deep; a graph in {what} "
                "does not need that"
            )


def write_columns(columns: Iterable[str]) -> str:
    """A node's columns as one attribute: `a,b`, or a JSON list if a name holds a comma."""
    columns = list(columns)
    plain = not any("," in c or c.startswith("[") or c != c.strip() for c in columns)
    return ",".join(columns) if plain else json.dumps(columns)


def read_columns(given: Any) -> Any:
    """The columns of an attribute that `write_columns` made, or a list as it is."""
    if not isinstance(given, str):
        return given
    if given.startswith("["):
        try:
            columns = json.loads(given)
        except (ValueError, RecursionError):
            columns = None
        if isinstance(columns, list):
            return columns
    return [c.strip() for c in given.split(",")]
