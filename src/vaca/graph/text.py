"""Graphs as plain text: `cause -> effect` lines, and blocks of columns in braces."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from vaca.errors import GraphError, shorten
from vaca.graph.parts import Parts, check_name

#: One end of an arrow: a node's name, or the columns of a block.
End = str | tuple[str, ...]

_TOKEN = re.compile(
    r"\#[^\n]*|(?P<space>[^\S\n]+)"
    r'|"(?P<quoted>(?:[^"\\\n]|\\.)*)"(?=[^\S\n]*(?:->|[#:,}\n]|$))'  # where a name can end
    r"|(?P<mark>->|[{},:\n])|(?P<word>(?:(?!->)[^{},:\n\#])+)"
)
#: What somebody may have meant as an arrow; a name that contains it has to be quoted.
_ARROW = re.compile(r"->|<-|--|=>|~>|[\u2190-\u21ff\u27f5-\u27ff]|-\s+>|^>|[<-]$")
#: What else a name without quotes may not contain.
_MARKS = re.compile(_ARROW.pattern + r'|[{},:"#\\\n\r]|^\s|\s$')
#: Escapes, inside quotes, for what a line cannot hold.
_ESCAPED = {"n": "\n", "r": "\r"}
#: Block names longer than this are shortened.
_SHORT = 40


@dataclass(frozen=True)
class _Token:
    kind: str  # "name", "quoted" or the mark itself
    text: str
    line: int
    space: str = ""  # before it


def block_name(columns: Sequence[str]) -> str:
    """The name of a block that was not given one.

    >>> block_name(["age", "educ"])
    '{age, educ}'
    """
    whole = "{" + ", ".join(columns) + "}"
    if len(whole) <= _SHORT or len(columns) <= 2:
        return whole
    return f"{{{columns[0]}, {columns[1]} and {len(columns) - 2} more}}"


def name_blocks(parts: Parts) -> Parts:
    """The same parts with every block under its name.

    A block that has the columns of a named node is that node, whatever their order.
    """
    found = dict(parts.columns or {})
    names = {
        frozenset(group): node
        for node, group in found.items()
        if isinstance(group, (tuple, list)) and all(isinstance(c, str) for c in group)
    }

    def named(end: Any) -> str:
        if not isinstance(end, (tuple, list)):
            return check_name(end, "node names")
        if len(end) < 2:
            raise GraphError(f"a block is two or more names of columns; got {shorten(end)}")
        columns = [check_name(column, "columns of a block") for column in end]
        if len(set(columns)) < len(columns):
            twice = next(c for c in columns if columns.count(c) > 1)
            raise GraphError(f"column {shorten(twice)} is listed twice in a block")
        key = frozenset(columns)
        if key not in names:
            names[key] = block_name(columns)
            found[names[key]] = tuple(columns)
        return names[key]

    edges = [(named(a), named(b)) for a, b in parts.edges]
    return Parts([named(node) for node in parts.nodes], edges, found)


# ---------------------------------------------------------------------- reading


def read(text: str) -> Parts:
    """The parts of an edge list, see `CausalGraph.from_text`."""
    edges: list[tuple[End, End]] = []
    nodes: list[End] = []
    columns: dict[str, list[str]] = {}
    for tokens in _statements(re.sub(r"\r\n?", "\n", text.lstrip("\ufeff"))):
        line = tokens[0].line
        if any(t.kind == "->" for t in tokens):
            ends = [_end(part, line) for part in _cut(_joined(tokens), "->")]
            edges.extend(zip(ends, ends[1:], strict=False))
            nodes.extend(ends)
            continue
        group = _group(tokens)
        if group is not None:
            if group[0] in columns:
                raise GraphError(f"line {line}: the columns of {shorten(group[0])} are given twice")
            columns[group[0]] = group[1]
            nodes.append(group[0])
            continue
        nodes.append(_end(tokens, line))
    if not nodes:
        raise GraphError("the text names no node; write one 'cause -> effect' per line")
    return Parts(nodes, edges, columns)


def _statements(text: str) -> Iterable[list[_Token]]:
    """The tokens of each line; a block in braces may go over several lines."""
    found: list[_Token] = []
    place, line, opened, space = 0, 1, 0, ""
    while place < len(text):
        match = _TOKEN.match(text, place)
        assert match is not None  # every character is a mark or part of a word
        place = match.end()
        if match["mark"] == "\n":
            if not opened and found:
                yield found
                found = []
            line += 1
        elif match["mark"]:
            if match["mark"] in "{}":
                if (match["mark"] == "{") == bool(opened):
                    raise GraphError(f"line {line}: a {match['mark']} that does not fit")
                opened = line if match["mark"] == "{" else 0
            found.append(_Token(match["mark"], match["mark"], line, space))
        elif match["quoted"] is not None:
            name = re.sub(r"\\(.)", lambda m: _ESCAPED.get(m[1], m[1]), match["quoted"])
            found.append(_Token("quoted", name, line, space))
        elif match["word"]:
            word = match["word"]
            found.append(_Token("name", word.rstrip(), line, space))
            place -= len(word) - len(word.rstrip())
        space = match["space"] or ""
    if opened:
        raise GraphError(f"line {opened}: a {{ that is not closed")
    if found:
        yield found


def _joined(tokens: list[_Token]) -> list[_Token]:
    """The tokens with a colon that stands in a bare name as part of it: `at 10:30`."""
    result: list[_Token] = []
    for token in tokens:
        last = result[-1] if result else None
        if (
            last is not None
            and (last.kind, token.kind) in {("name", ":"), ("name", "name"), (":", "name")}
            and (token.kind == ":" or last.text.endswith(":"))
        ):
            result[-1] = _Token("name", last.text + token.space + token.text, last.line, last.space)
        else:
            result.append(token)
    return result


def _group(tokens: list[_Token]) -> tuple[str, list[str]] | None:
    """The name and columns of `name: column, column` or `name: {column, column}`."""
    if len(tokens) < 2 or tokens[1].kind != ":" or tokens[0].kind not in ("name", "quoted"):
        return None
    inside = tokens[2:]
    if [t.kind for t in inside[:1] + inside[-1:]] == ["{", "}"]:
        inside = inside[1:-1]
    return _text(tokens[0]), _names(_joined(inside), tokens[0].line)


def _end(tokens: list[_Token], line: int) -> End:
    if len(tokens) == 1 and tokens[0].kind in ("name", "quoted") and _text(tokens[0]):
        return _text(tokens[0])
    if tokens and tokens[0].kind == "{" and tokens[-1].kind == "}":
        inside = _names(tokens[1:-1], line)
        return inside[0] if len(inside) == 1 else tuple(inside)
    if any(t.kind == "," for t in tokens):
        shown = "".join(t.text + (" " if t.kind == "," else "") for t in tokens)
        raise GraphError(
            f"line {line}: {shorten(shown)} holds a comma; write {{...}} around a block of "
            "columns, or one arrow per line"
        )
    shown = " ".join(t.text for t in tokens)
    raise GraphError(f"line {line}: {shorten(shown)} is not of the form 'cause -> effect'")


def _text(token: _Token) -> str:
    text = token.text
    if token.kind == "quoted":
        return text
    if _ARROW.search(text):
        raise GraphError(
            f"line {token.line}: {shorten(text)}: write 'cause -> effect'; put "
            "quotes around a name that contains such a sign"
        )
    if text.startswith('"') and (len(text) == 1 or not text.endswith('"')):
        raise GraphError(f"line {token.line}: {shorten(text)}: a quote that is not closed")
    return text[1:-1] if text.startswith('"') else text


def _names(tokens: list[_Token], line: int) -> list[str]:
    result = []
    for part in _cut(tokens, ","):
        if not part:
            continue  # a comma at the end
        if len(part) > 1 or part[0].kind not in ("name", "quoted"):
            shown = " ".join(t.text for t in part)
            raise GraphError(
                f"line {line}: columns are listed with commas between; got {shorten(shown)}"
            )
        result.append(_text(part[0]))
    if not result:
        raise GraphError(f"line {line}: no columns are listed")
    return result


def _cut(tokens: list[_Token], mark: str) -> list[list[_Token]]:
    parts: list[list[_Token]] = [[]]
    for token in tokens:
        if token.kind == mark:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


# ---------------------------------------------------------------------- writing


def quote(name: str) -> str:
    """A name as a graph's text has it: in quotes where it holds a mark of the format.

    >>> quote("k = 1"), quote("a, b")
    ('k = 1', '"a, b"')
    """
    if not _MARKS.search(name):
        return name
    inside = name.replace("\\", "\\\\").replace('"', '\\"')
    inside = inside.replace("\n", "\\n").replace("\r", "\\r")
    return f'"{inside}"'


def write(graph: Parts) -> str:
    """An edge list that `read` understands: a line for each node, then one for each arrow."""
    shown: dict[str, str] = {}
    lines = []
    for node in graph.nodes:
        group = graph.columns[node]
        listed = ", ".join(quote(c) for c in group)
        block = len(group) > 1 and node == block_name(group)
        shown[node] = f"{{{listed}}}" if block else quote(node)
        alone = block or tuple(group) == (node,)
        lines.append(shown[node] if alone else f"{shown[node]}: {listed}")
    return "\n".join([*lines, *(f"{shown[a]} -> {shown[b]}" for a, b in graph.edges)]) + "\n"
