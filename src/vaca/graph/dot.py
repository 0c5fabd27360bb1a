"""The part of the DOT language that describes a causal graph: nodes, edges, `columns`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from vaca.errors import GraphError
from vaca.graph.parts import Parts, read_columns, write_columns

_WORD = re.compile(
    r"\s+|//[^\n]*|/\*.*?\*/|#[^\n]*"
    r'|(?P<token>->|--|[{}\[\];,=]|"(?:[^"\\]|\\.)*"|[A-Za-z0-9_.\u0080-\uffff]+|-?[0-9.]+)',
    re.DOTALL,
)
_SIGNS = ("->", "--", "{", "}", "[", "]", ";", ",", "=")


def quote(name: str) -> str:
    """A name as DOT text."""
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def write(graph: Parts) -> str:
    """DOT text of a graph."""
    lines = ["digraph {"]
    for node in graph.nodes:
        group = graph.columns[node]
        extra = "" if group == (node,) else f" [columns={quote(write_columns(group))}]"
        lines.append(f"  {quote(node)}{extra};")
    lines += [f"  {quote(a)} -> {quote(b)};" for a, b in graph.edges]
    return "\n".join([*lines, "}"]) + "\n"


def _tokens(text: str) -> tuple[list[str], list[int]]:
    """The words of DOT text, and where each starts."""
    tokens: list[str] = []
    starts: list[int] = []
    place = 0
    while place < len(text):
        match = _WORD.match(text, place)
        if match is None:
            raise GraphError(f"{_line(text, place)}: not DOT at {text[place : place + 20]!r}")
        if match["token"]:
            tokens.append(match["token"])
            starts.append(place)
        place = match.end()
    return tokens, starts


def _line(text: str, place: int) -> str:
    number = text.count("\n", 0, place) + 1
    return f"line {number}"


def read(text: str) -> Parts:
    """The nodes, edges and grouped columns of a `digraph`."""
    text = text.lstrip("\ufeff")
    tokens, starts = _tokens(text)
    head = [t.lower() for t in tokens[:2]]
    if head[:1] == ["strict"]:
        head = head[1:]
    if head[:1] != ["digraph"]:
        raise GraphError("DOT text must start with 'digraph' (a directed graph)")
    if "{" not in tokens or tokens[-1] != "}":
        raise GraphError("DOT text needs its edges between { and }")
    first = tokens.index("{") + 1
    return _Body(tokens[first:-1], lambda place: _line(text, starts[first + place])).read()


def _name(token: str) -> str:
    return re.sub(r"\\(.)", r"\1", token[1:-1]) if token.startswith('"') else token


class _Body:
    """The statements between the braces, read from the first to the last."""

    def __init__(self, tokens: list[str], line: Callable[[int], str]) -> None:
        self.tokens, self.line, self.place = tokens, line, 0

    def read(self) -> Parts:
        edges: list[tuple[str, str]] = []
        nodes: dict[str, None] = {}
        columns: dict[str, Any] = {}
        while self.place < len(self.tokens):
            word = self.tokens[self.place].lower()  # with its quotes, if it is a name in quotes
            chain, attributes = self.statement()
            if not chain or (len(chain) == 1 and word in {"graph", "node", "edge"}):
                continue
            nodes.update(dict.fromkeys(chain))
            edges.extend(zip(chain, chain[1:], strict=False))
            if len(chain) == 1 and "columns" in attributes:
                columns[chain[0]] = read_columns(attributes["columns"])
        return Parts(list(nodes), edges, columns)

    def wrong(self, problem: str) -> GraphError:
        return GraphError(f"{self.line(min(self.place, len(self.tokens) - 1))}: {problem}")

    def statement(self) -> tuple[list[str], dict[str, str]]:
        """One node or chain of edges with its attributes; no chain for other statements."""
        tokens = self.tokens
        chain: list[str] = []
        attributes: dict[str, str] = {}
        while self.place < len(tokens) and tokens[self.place] != ";":
            token = tokens[self.place]
            if token == "[":
                attributes = self.attributes()
                break
            if token in ("{", "}", "--"):
                raise self.wrong("DOT subgraphs and undirected edges are not understood")
            if token in ("]", ","):
                raise self.wrong(f"{token!r} is out of place")
            if token == "=":
                chain = []  # a graph attribute such as rankdir=LR
                self.place += 2
                break
            if token == "->":
                self.place += 1
                if not chain or self.place >= len(tokens) or tokens[self.place] in _SIGNS:
                    raise self.wrong("an edge has an end missing")
                chain.append(_name(tokens[self.place]))
            elif chain:
                break  # a new statement without a semicolon between
            else:
                chain.append(_name(token))
            self.place += 1
        if self.place < len(tokens) and tokens[self.place] == ";":
            self.place += 1
        return chain, attributes

    def attributes(self) -> dict[str, str]:
        """What stands between [ and ]."""
        inside: list[str] = []
        self.place += 1
        while self.place < len(self.tokens) and self.tokens[self.place] != "]":
            if self.tokens[self.place] not in (",", ";"):
                inside.append(self.tokens[self.place])
            self.place += 1
        if self.place >= len(self.tokens):
            raise self.wrong("[ has no ]")
        self.place += 1
        if len(inside) % 3 or any(sign != "=" for sign in inside[1::3]):
            raise self.wrong("attributes are written [name=value, ...]")
        return {_name(k): _name(v) for k, v in zip(inside[::3], inside[2::3], strict=True)}
