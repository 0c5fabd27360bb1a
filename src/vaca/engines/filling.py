"""Fill gaps in a table with draws given what is observed.

Given its *blanket* (its causes, its effects, their other causes, and the other columns of its
block) a column depends on nothing else in the table. So a gap is filled from the blanket: a
mechanism of the column given its blanket is learned from the rows in which it was seen, and a value
is drawn from it. With gaps in several columns these draws take turns (chained equations). That is
right if gaps are *missing at random*: whether a value is missing may depend on what is observed in
its row, but not on the value itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from vaca.engines.gumbel import level_of
from vaca.engines.mechanisms.choosing import choose_numeric
from vaca.engines.mechanisms.choosing_levels import choose_levels
from vaca.engines.mechanisms.trials import Inputs, make_folds
from vaca.engines.missing import gaps_of
from vaca.errors import SchemaError
from vaca.graph.dag import CausalGraph
from vaca.table.columns import row_count
from vaca.table.schema import Columns, Schema

__all__ = ["Filler"]

#: Turns over the columns: the first ones learn straight lines, the second ones choose.
ROUNDS = 6
#: Turns for another set of draws, and for rows that a fitted model is asked about.
ROUNDS_AGAIN = 3
#: Rows that a mechanism is learned from, at most.
ROWS = 5000
#: Mechanisms that compete in the second turn.
FAMILIES = frozenset({"curves", "products", "spread", "scales"})
#: Of a column with more levels, only this many of the commonest are used as inputs.
LEVELS = 20
#: A number that this share of the rows has is a value of its own (no income), and stays one.
ATOM = 0.05


class Filler:
    """Draws of missing values given what is observed.

    Parameters
    ----------
    graph : CausalGraph
    schema : Schema
    seed : int

    Examples
    --------
    >>> import numpy as np
    >>> from vaca import CausalGraph, Column, Schema
    >>> x = np.random.default_rng(0).normal(size=400)
    >>> rows = {"x": x, "y": np.where(x > 0.5, np.nan, 3 * x)}
    >>> schema = Schema(dict.fromkeys(["x", "y"], Column("continuous")))
    >>> filler = Filler(CausalGraph.from_edges([("x", "y")]), schema, 0)
    >>> bool(np.abs(filler.learn(rows)["y"] - 3 * x).max() < 0.1)
    True
    """

    def __init__(self, graph: CausalGraph, schema: Schema, seed: int) -> None:
        self.graph, self.schema, self.seed = graph, schema, seed
        self._mechanisms: dict[str, Any] = {}
        self._rows: Columns = {}
        self._weights: np.ndarray | None = None
        self._gaps: dict[str, np.ndarray] = {}

    def learn(self, rows: Columns, weights: np.ndarray | None = None) -> Columns:
        """The same rows with their gaps filled; what was learned of them is kept."""
        self._gaps, self._weights = gaps_of(rows, self.schema), weights
        rng = np.random.default_rng([self.seed, 8])
        x = {c: np.array(v) for c, v in rows.items()}
        for column, gap in self._gaps.items():
            seen = x[column][~gap]
            if not len(seen):
                raise SchemaError(f"column {column!r} has no values; leave it out of the graph")
            x[column][gap] = rng.choice(seen, size=int(gap.sum()))
        # Columns with few gaps first: what fills them rests least on other fills.
        order = sorted(self._gaps, key=lambda c: int(self._gaps[c].sum()))
        for turn in range(ROUNDS):
            for column in order:
                if turn < 2:
                    families = frozenset() if turn == 0 else FAMILIES
                    self._mechanisms[column] = self._choose(column, x, families)
                else:
                    self._mechanisms[column] = self._refit(column, x, weights, turn)
                self._draw(column, self._mechanisms[column], x, self._gaps[column], rng)
        self._rows = x
        return x

    def again(self, weights: np.ndarray, seed: int, rows: Columns) -> Columns:
        """Rows with other draws, under mechanisms that are fitted to weighted rows.

        `rows` are those of `learn`, and perhaps others after them, which stay as they are.
        """
        rng = np.random.default_rng([seed, 9])
        n = row_count(self._rows)
        x = {c: v[:n].copy() if c in self._gaps else v[:n] for c, v in rows.items()}
        for turn in range(ROUNDS_AGAIN):
            for column, gap in self._gaps.items():
                mechanism = self._refit(column, x, weights, seed + turn)
                self._draw(column, mechanism, x, gap, rng)
        return {c: np.concatenate([x[c], v[n:]]) if c in self._gaps else v for c, v in rows.items()}

    def remember(self, rows: Columns, weights: np.ndarray | None = None) -> Filler:
        """Use rows without gaps as what is known, as after `learn`."""
        self._rows, self._weights, self._gaps = rows, weights, {}
        return self

    def fill(self, rows: Columns, rng: np.random.Generator | None) -> Columns:
        """Other rows with their gaps filled: by draws, or without ``rng`` by what is likeliest."""
        gaps = gaps_of(rows, self.schema)
        if not gaps:
            return rows
        x = {c: np.array(v) for c, v in rows.items()}
        start = np.random.default_rng([self.seed, 10]) if rng is None else rng
        for column, gap in gaps.items():
            if column not in self._mechanisms:
                self._mechanisms[column] = self._choose(column, self._rows, FAMILIES)
            known = self._rows[column]
            if rng is None and self.schema[column].discrete:
                x[column][gap] = np.bincount(known).argmax()
            elif rng is None:
                x[column][gap] = np.median(known)
            else:
                x[column][gap] = start.choice(known, size=int(gap.sum()))
        for _ in range(ROUNDS_AGAIN if len(gaps) > 1 else 1):
            for column, gap in gaps.items():
                self._draw(column, self._mechanisms[column], x, gap, rng)
        return x

    # ------------------------------------------------------------------ one column

    def _blanket(self, column: str) -> list[str]:
        node, graph = self.graph.node_of(column), self.graph
        nodes = {node, *graph.parents(node), *graph.children(node)}
        nodes |= {p for child in graph.children(node) for p in graph.parents(child)}
        return [c for n in graph.nodes if n in nodes for c in graph.columns(n) if c != column]

    def _inputs(self, column: str, x: Columns) -> tuple[np.ndarray, list[int]]:
        """The blanket of a column as numbers (n, features), and which column each belongs to."""
        parts, groups = [np.zeros((len(x[column]), 0))], []
        for number, name in enumerate(self._blanket(column)):
            levels = len(self.schema[name].levels)
            if levels > 2:
                common = np.argsort(-np.bincount(self._known(name, x), minlength=levels))
                part = (x[name][:, None] == common[1 : LEVELS + 1]).astype(float)
            else:
                part = np.asarray(x[name], float)[:, None]
            parts.append(part)
            groups += [number] * part.shape[1]
        return np.concatenate(parts, axis=1), groups

    def _known(self, name: str, x: Columns) -> np.ndarray:
        """Values of a column to count levels in: the same ones at every call."""
        known = self._rows.get(name, x[name])
        return known[~self._gaps[name]] if name in self._gaps else known

    def _seen(self, column: str, x: Columns) -> np.ndarray:
        """Rows to learn a column from: those in which it was seen, or a sample of them."""
        gap = self._gaps.get(column)
        rows = np.arange(len(x[column])) if gap is None else np.flatnonzero(~gap)
        if len(rows) > ROWS:
            rows = np.random.default_rng([self.seed, 11]).choice(rows, ROWS, replace=False)
        return rows

    def _choose(self, column: str, x: Columns, families: frozenset[str]) -> Any:
        rows = self._seen(column, x)
        inputs, groups = self._inputs(column, x)
        weights = np.ones(len(rows)) if self._weights is None else self._weights[rows]
        folds = make_folds(len(rows), [self.seed, 13])
        given = Inputs(inputs[rows], groups, x[column][rows], weights, folds, self.seed)
        if self.schema[column].discrete:
            return choose_levels(given, len(self.schema[column].levels), families)[0]
        count = self.schema[column].kind == "count"
        return choose_numeric(given, count=count, families=families)[0]

    def _refit(self, column: str, x: Columns, weights: np.ndarray | None, seed: int) -> Any:
        rows = self._seen(column, x)
        inputs, _ = self._inputs(column, x)
        own = np.ones(len(rows)) if weights is None else weights[rows]
        return self._mechanisms[column].refit(
            inputs[rows],
            x[column][rows],
            own,
            make_folds(len(rows), [self.seed, 13]),
            np.random.default_rng([seed, 14]),
        )

    def _draw(
        self,
        column: str,
        mechanism: Any,
        x: Columns,
        gap: np.ndarray,
        rng: np.random.Generator | None,
    ) -> None:
        """Put new values where a column has gaps."""
        inputs, _ = self._inputs(column, x)
        inputs, n = inputs[gap], int(gap.sum())
        if self.schema[column].discrete:
            log_p = mechanism.log_levels(inputs)
            noise = 0.0 if rng is None else rng.gumbel(size=log_p.shape)
            x[column][gap] = level_of(log_p, noise)
            return
        u = np.zeros(n) if rng is None else mechanism.draw(n, rng)
        x[column][gap] = self._usual(column, mechanism.value(inputs, u), x)

    def _usual(self, column: str, values: np.ndarray, x: Columns) -> np.ndarray:
        """Values as the column has them: not below zero, rounded, or one that occurs often."""
        seen = self._known(column, x)
        low, high = seen.min(), seen.max()
        if low >= 0:
            values = np.maximum(values, 0.0)
        values = np.clip(values, low - (high - low), high + (high - low))
        distinct, count = np.unique(seen, return_counts=True)
        if count.max() >= ATOM * len(seen) or len(distinct) <= 50:
            place = np.clip(np.searchsorted(distinct, values), 1, max(len(distinct) - 1, 1))
            if len(distinct) == 1:
                return np.full(len(values), distinct[0])
            below, above = distinct[place - 1], distinct[place]
            return np.where(values - below <= above - values, below, above)
        return values
