"""The part of the DOT language that describes a causal graph: nodes, edges, `columns`."""

from __future__ import annotations

import re

from vaca.errors import GraphError

_WORD = re.compile(
    r"\s+|//[^\n]*|/\*.*?\*/|#[^\n]*"
    r'|(?P<token>->|--|[{}\[\];,=]|"(?:[^"\\]|\\.)*"|[A-Za-z0-9_.\u0080-\uffff]+|-?[0-9.]+)',
    re.DOTALL,
)


def quote(name: str) -> str:
    """A name as DOT text."""
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _tokens(text: str) -> list[str]:
    tokens, place = [], 0
    while place < len(text):
        match = _WORD.match(text, place)
        if match is None:
            raise GraphError(f"not DOT at {text[place : place + 20]!r}")
        if match["token"]:
            tokens.append(match["token"])
        place = match.end()
    return tokens


def read(text: str) -> tuple[list[str], list[tuple[str, str]], dict[str, list[str]]]:
    """The nodes, edges and grouped columns of a `digraph`."""
    tokens = _tokens(text)
    head = [t.lower() for t in tokens[:4]]
    if head[:1] == ["strict"]:
        tokens, head = tokens[1:], head[1:]
    if head[:1] != ["digraph"]:
        raise GraphError("DOT text must start with 'digraph' (a directed graph)")
    if "{" not in tokens or tokens[-1] != "}":
        raise GraphError("DOT text needs its edges between { and }")
    body = tokens[tokens.index("{") + 1 : -1]
    edges: list[tuple[str, str]] = []
    nodes: dict[str, None] = {}
    columns: dict[str, list[str]] = {}

    def name(token: str) -> str:
        return re.sub(r"\\(.)", r"\1", token[1:-1]) if token.startswith('"') else token

    place = 0
    while place < len(body):
        chain: list[str] = []
        attributes: dict[str, str] = {}
        while place < len(body) and body[place] not in ";":
            token = body[place]
            if token == "[":
                end = body.index("]", place)
                inside = [t for t in body[place + 1 : end] if t not in ",;"]
                attributes.update(
                    {name(k): name(v) for k, _, v in zip(*[iter(inside)] * 3, strict=False)}
                )
                place = end + 1
                break
            if token in "{}--":
                raise GraphError("DOT subgraphs and undirected edges are not understood")
            if token == "=":
                chain = []  # a graph attribute such as rankdir=LR
                place += 2
                break
            if token == "->":
                place += 1
                if not chain or place >= len(body):
                    raise GraphError("DOT text has an edge with an end missing")
                chain.append(name(body[place]))
            elif chain:
                break  # a new statement without a semicolon between
            else:
                chain.append(name(token))
            place += 1
        if place < len(body) and body[place] == ";":
            place += 1
        if not chain or (len(chain) == 1 and chain[0].lower() in {"graph", "node", "edge"}):
            continue
        nodes.update(dict.fromkeys(chain))
        edges.extend(zip(chain, chain[1:], strict=False))
        if len(chain) == 1 and "columns" in attributes:
            columns[chain[0]] = attributes["columns"].split(",")
    return list(nodes), edges, columns
