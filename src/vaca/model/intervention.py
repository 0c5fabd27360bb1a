"""What `do` may be, and how each form turns into one value per row.

A `do` maps nodes to interventions. Forms of an intervention on a column:

- a value: every row gets it (a label, for a discrete column);
- an array or Series: one value per row;
- `Shift(delta)`: the value the row would have had, plus delta;
- a callable: a policy; it gets the frame of the node's non-descendants, returns a value per row;
- an object with `rvs` (a `scipy.stats` distribution): drawn for each row.

A node of several columns (a block) takes a dict with one of these for each of its columns, or each
column under its own name; a part of a block cannot be set.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from vaca.errors import InterventionError, SchemaError, SupportWarning, did_you_mean, shorten
from vaca.graph.dag import CausalGraph
from vaca.model.arguments import check_number
from vaca.table.column import first
from vaca.table.schema import Columns, Schema


@dataclass(frozen=True)
class Shift:
    """An intervention that adds `delta` to the value a row would have had.

    >>> Shift(5)
    Shift(delta=5)
    """

    delta: float

    def __post_init__(self) -> None:
        number = check_number("the delta of a Shift", self.delta, what=InterventionError)
        # A plain number, whatever kind it came as: decimals and arrays do not add up with columns.
        whole = isinstance(self.delta, int | np.integer)
        object.__setattr__(self, "delta", int(self.delta) if whole else number)


#: Gives the columns of all nodes, as they are under the interventions resolved so far.
Natural = Callable[[Columns], Columns]


@dataclass(frozen=True)
class Intervention:
    """A checked `do`: node -> column -> what was given. Made by `Intervention.parse`."""

    graph: CausalGraph
    schema: Schema
    parts: dict[str, dict[str, Any]]

    @classmethod
    def parse(
        cls, do: Mapping[str, Any] | None, graph: CausalGraph, schema: Schema
    ) -> Intervention:
        """Check the names in a `do` and that every column of an intervened node has its part."""
        if do is None:
            do = {}
        if not isinstance(do, Mapping):
            raise InterventionError(
                f"do is a dict from node to value, like do={{'age': 40}}; got {type(do).__name__}"
            )
        parts: dict[str, dict[str, Any]] = {}
        for name, given in _gather(do, graph).items():
            node = _node_of(name, graph)
            columns = graph.columns(node)
            if isinstance(given, Mapping):
                missing = [c for c in columns if c not in given]
                extra = [c for c in given if c not in columns]
                if extra:
                    raise InterventionError(
                        f"do on node {node!r} needs exactly its columns {list(columns)}; "
                        f"unknown {extra}"
                    )
                if missing:
                    raise InterventionError(_part_of_block(node, list(given), missing))
                parts[node] = {c: given[c] for c in columns}
            elif len(columns) == 1:
                parts[node] = {columns[0]: given}
            else:
                first = next(iter(columns))
                raise InterventionError(
                    f"node {node!r} has the columns {list(columns)}: give a dict with a value for "
                    f"each, like do={{{node!r}: {{{first!r}: ...}}}}"
                )
        order = [n for n in graph.order if n in parts]
        return cls(graph, schema, {n: parts[n] for n in order})

    @property
    def nodes(self) -> tuple[str, ...]:
        """The intervened nodes, causes first."""
        return tuple(self.parts)

    @property
    def affected(self) -> set[str]:
        """The intervened nodes and all their descendants."""
        return {*self.nodes, *self.below}

    @property
    def below(self) -> list[str]:
        """The descendants of intervened nodes, in causal order."""
        found = {d for node in self.nodes for d in self.graph.descendants(node)}
        return [node for node in self.graph.order if node in found]

    def has_policy(self) -> bool:
        """Whether a part is a callable, which must see all rows at once."""
        return any(
            callable(p) and not hasattr(p, "rvs") for c in self.parts.values() for p in c.values()
        )

    def draw_random(self, n: int, rng: np.random.Generator) -> Intervention:
        """The same intervention with every random part drawn, one value for each of `n` rows."""
        parts = {
            node: {
                c: self._encode(c, np.asarray(p.rvs(size=n, random_state=rng)), n, None)
                if hasattr(p, "rvs")
                else p
                for c, p in columns.items()
            }
            for node, columns in self.parts.items()
        }
        return Intervention(self.graph, self.schema, parts)

    def encode_rows(self, n: int, index: pd.Index | None = None) -> Intervention:
        """The same intervention with values and arrays checked and encoded, one for each row.

        A Series is aligned with `index`, the labels of the factual rows, if they are given.
        """
        parts: dict[str, dict[str, Any]] = {}
        for node, columns in self.parts.items():
            parts[node] = {
                c: part
                if isinstance(part, Shift) or callable(part) or hasattr(part, "rvs")
                else self._encode(c, part, n, index)
                for c, part in columns.items()
            }
            for c, part in columns.items():
                if isinstance(part, Shift) and self.schema[c].discrete:
                    raise InterventionError(
                        f"Shift on {c!r}: it is {self.schema[c].kind}; a shift needs a continuous "
                        "or count column. Give a level or one level per row instead"
                    )
        return Intervention(self.graph, self.schema, parts)

    def _encode(self, column: str, part: Any, n: int, index: pd.Index | None) -> np.ndarray:
        try:
            if isinstance(part, pd.Series) and index is not None:
                if not part.index.is_unique:
                    raise InterventionError(f"do on {column!r}: the Series' index has duplicates")
                gone = index.difference(part.index)
                if len(gone):
                    raise InterventionError(
                        f"do on {column!r}: the Series has no value for row {first(gone)!r}"
                    )
                part = part.reindex(index)
            if pd.api.types.is_list_like(part):
                if np.ndim(part) != 1 or len(part) != n:
                    raise InterventionError(
                        f"do on {column!r}: one value per row is needed, {n} in all; got the shape "
                        f"{np.shape(part)}"
                    )
                # A copy: the answer holds these very values, and may be written into.
                values = np.array(self.schema.encode_column(column, part))
            else:
                value = self.schema.encode_value(column, part)
                kind = np.int64 if self.schema[column].discrete else float
                values = np.full(n, value, dtype=kind)
            self.schema.check_holds(column, values)
            return values
        except SchemaError as error:
            raise InterventionError(f"do on {column!r}: {error}") from None

    def rows(self, take: slice | np.ndarray) -> Intervention:
        """The part of an encoded intervention that belongs to the given rows."""
        parts = {
            node: {c: p[take] if isinstance(p, np.ndarray) else p for c, p in columns.items()}
            for node, columns in self.parts.items()
        }
        return Intervention(self.graph, self.schema, parts)

    def resolve(self, natural: Natural) -> Columns:
        """The value of every intervened column in every row, encoded.

        Nodes are taken causes first, so that a shift or a policy sees the interventions above it.
        """
        done: Columns = {}
        for node, columns in self.parts.items():
            now: Columns | None = None
            values: Columns = {}
            for column, part in columns.items():
                if isinstance(part, np.ndarray):
                    values[column] = part
                    continue
                now = natural(done) if now is None else now
                if isinstance(part, Shift):
                    values[column] = self._shift(column, now[column], part.delta)
                else:
                    values[column] = self._policy(node, column, now, part)
            done.update(values)
        return done

    def _shift(self, column: str, values: np.ndarray, delta: float) -> np.ndarray:
        moved = values + delta
        if self.schema[column].kind == "count":
            moved = np.maximum(np.rint(moved), 0.0)  # a count stays a count
        try:
            self.schema.check_holds(column, moved)
        except SchemaError as error:
            raise InterventionError(f"do on {column!r}, Shift({delta!r}): {error}") from None
        return moved

    def _policy(self, node: str, column: str, now: Columns, policy: Any) -> np.ndarray:
        below = {node, *self.graph.descendants(node)}
        seen = {
            c: now[c] for n in self.graph.nodes if n not in below for c in self.graph.columns(n)
        }
        n = len(now[column])
        answer = policy(self.schema.decode(seen, index=pd.RangeIndex(n)))
        if isinstance(answer, pd.Series):
            answer = answer.to_numpy()
        return self._encode(column, answer, n, None)

    def outside_support(self, values: Columns) -> list[str]:
        """A sentence for each numeric column whose values leave the range seen in the data."""
        found = []
        for name in (c for columns in self.parts.values() for c in columns):
            column, value = self.schema[name], values[name]
            rows = int(column.outside(value).sum())
            if rows and column.low is not None and column.high is not None:
                low, high = float(np.min(value)), float(np.max(value))
                beyond, width = max(column.low - low, high - column.high), column.high - column.low
                share = f", {beyond / width:.2g} times the width of that range" if width else ""
                found.append(
                    f"do on {name!r}: {rows:,} of {len(value):,} row(s) lie outside the observed "
                    "range "
                    f"[{column.low:.6g}, {column.high:.6g}], by up to {beyond:.3g}{share}"
                )
        return found


def warn_outside_support(sentences: list[str], stacklevel: int = 3) -> None:
    """One warning for all columns that leave the data's range."""
    if sentences:
        warnings.warn(
            "; ".join(sentences) + ". The answer is an extrapolation",
            SupportWarning,
            stacklevel=stacklevel,
        )


def _gather(do: Mapping[str, Any], graph: CausalGraph) -> dict[str, Any]:
    """The same `do`, with the columns of a block gathered under its node."""
    result: dict[str, Any] = {}
    for name, given in do.items():
        if not isinstance(name, str):
            raise InterventionError(f"do names nodes by text; got {shorten(name)}")
        node = None if name in graph or name not in graph.all_columns else graph.node_of(name)
        if node is None or len(graph.columns(node)) == 1:
            result[name] = given
            continue
        if node in do:
            raise InterventionError(f"do sets {name!r} twice: by its own name and by {node!r}")
        result.setdefault(node, {})[name] = given
    return result


def _part_of_block(node: str, given: list[str], rest: list[str]) -> str:
    named = ", ".join(map(repr, given)) or "nothing"
    others = ", ".join(map(repr, rest[:5])) + (f" and {len(rest) - 5} more" if rest[5:] else "")
    block = f"the block {node}" if node.startswith("{") else f"the block {node!r}"
    return (
        f"do sets {named} alone, which stands in {block} with {others}. The graph does not say "
        "what causes what inside a block, so what that would change is not known. Take the column "
        "out of the block and draw its arrows in the graph, or set all columns of the block"
    )


def _node_of(name: str, graph: CausalGraph) -> str:
    if name in graph:
        return name
    if name in graph.all_columns:
        return graph.node_of(name)
    raise InterventionError(f"do on unknown node {name!r}; {did_you_mean(name, graph.nodes)}")
