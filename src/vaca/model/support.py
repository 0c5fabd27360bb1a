"""Which combinations of causes the data hold.

Values that are each usual can be unheard of together: a child's income with a pensioner's age. An
intervention sets one cause and leaves the other, so it often asks for such pairs, and what an
engine then says about their common effect is its assumption, not what the data show.

Every pair of columns that act on the same node is laid out in cells: levels, or ranges of values
with about as many rows each. A cell is *unseen* if no row is in it although `EXPECTED` or more
would be, were the two columns independent.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from vaca.graph.dag import CausalGraph
from vaca.model.regions import Regions
from vaca.table.columns import row_count, take_rows
from vaca.table.schema import Columns, Schema

__all__ = ["Comparable", "Overlap"]

#: An empty cell says something only if independent columns would put this many rows into it.
EXPECTED = 5
#: Ranges a numeric column is cut into at most.
RANGES = 10
#: Warn when at least this share of an answer's rows extrapolates.
SHARE = 0.1
#: A level this many times rarer among similar rows than overall counts as out of reach for them.
RARER = 20
#: Fewer rows than this are not cut into regions.
FEWEST = 200
#: Rows of an answer that are checked.
ROWS = 10_000


@dataclass(frozen=True)
class Overlap:
    """Pairs of causes with the cells that no row is in.

    Attributes
    ----------
    edges : dict of array
        Where the ranges of a numeric column end; none for levels.
    unseen : dict of array
        For two columns with a common effect a table of booleans, cells of the one by the other's.

    Examples
    --------
    >>> import numpy as np, pandas as pd, vaca
    >>> from vaca.model.support import Overlap
    >>> graph = vaca.CausalGraph.from_edges([("age", "pay"), ("years", "pay")])
    >>> age = np.linspace(20, 60, 500)
    >>> rows = {"age": age, "years": age - 20, "pay": age}
    >>> schema = vaca.Schema.infer(pd.DataFrame(rows), graph)
    >>> asked = {"age": np.full(3, 25.0), "years": np.full(3, 35.0)}
    >>> (found,) = Overlap.of(rows, graph, schema).sentences(asked, graph, do=["years"])
    >>> found.partition(", ")[0]
    "do on 'years': 100 % of the rows combine 'age' and 'years'"
    """

    edges: Mapping[str, np.ndarray]
    unseen: Mapping[tuple[str, str], np.ndarray]

    @classmethod
    def of(cls, rows: Columns, graph: CausalGraph, schema: Schema) -> Overlap:
        """Look at the rows of a table, encoded."""
        n = row_count(rows)
        ranges = int(min(RANGES, np.sqrt(n / EXPECTED)))
        pairs = _pairs(graph)
        edges: dict[str, np.ndarray] = {}
        cells: dict[str, np.ndarray] = {}
        for column in {column for pair in pairs for column in pair}:
            if not schema[column].discrete:
                inner = np.linspace(0, 1, ranges + 1)[1:-1]
                edges[column] = np.unique(np.quantile(rows[column], inner))
            cells[column] = _cells(rows[column], edges.get(column))
        unseen = {}
        for one, other in pairs:
            shape = cells[one].max() + 1, cells[other].max() + 1
            count = np.zeros(shape)
            np.add.at(count, (cells[one], cells[other]), 1.0)
            expected = np.outer(count.sum(1), count.sum(0)) / n
            empty = (count == 0) & (expected >= EXPECTED)
            if empty.any():
                unseen[one, other] = empty
        return cls(edges, unseen)

    def to_dict(self) -> dict[str, Any]:
        """For JSON; see `from_dict`."""
        return {
            "edges": {column: edges.tolist() for column, edges in self.edges.items()},
            "unseen": [
                [*names, empty.astype(int).tolist()] for names, empty in self.unseen.items()
            ],
        }

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Overlap:
        """The overlap of `to_dict`."""
        return cls(
            {column: np.array(edges) for column, edges in found["edges"].items()},
            {(one, other): np.array(empty, bool) for one, other, empty in found["unseen"]},
        )

    def sentences(self, rows: Columns, graph: CausalGraph, do: Collection[str]) -> list[str]:
        """One for each pair of causes that `do` combines in a new way, the worst first.

        One cause of a pair is set, the other is set too or stays as it was; a cause downstream of
        the one that is set moves with it, by the model's own mechanism.
        """
        effects = self._torn(rows, graph, do)
        looked = take_rows(rows, slice(None, ROWS))
        shares = {
            pair: float(np.mean(self._in_cells(looked, pair, self.unseen[pair])))
            for pair in effects
        }
        return [
            f"do on {', '.join(map(repr, do))}: {100 * shares[pair]:.0f} % of the rows combine "
            f"{pair[0]!r} and {pair[1]!r}, causes of {', '.join(map(repr, effects[pair]))}, "
            "as no row of the data does"
            for pair in sorted(shares, key=lambda pair: -shares[pair])
            if shares[pair] >= SHARE
        ]

    def beyond(self, rows: Columns, graph: CausalGraph, do: Collection[str]) -> np.ndarray:
        """Which rows (n,) have, under `do`, a pair of causes that is not even close to any row.

        A cell next to one with rows is at the edge of the data, not beyond it.
        """
        found = np.zeros(row_count(rows), dtype=bool)
        for pair in self._torn(rows, graph, do):
            far = self.unseen[pair]
            for axis, column in enumerate(pair):
                if column in self.edges:
                    padded = np.pad(far, [(1, 1) if k == axis else (0, 0) for k in (0, 1)],
                                    constant_values=True)  # fmt: skip
                    ends = padded.take(range(len(far) if axis == 0 else far.shape[1]), axis)
                    last = padded.take(range(2, padded.shape[axis]), axis)
                    far = far & ends & last
            found |= self._in_cells(rows, pair, far)
        return found

    def _torn(
        self, rows: Columns, graph: CausalGraph, do: Collection[str]
    ) -> dict[tuple[str, str], list[str]]:
        """Pairs of causes of which one is set and the other stays -> the nodes they act on."""
        if not self.unseen:
            return {}
        below = graph.descendants(*do)
        fixed = {column for node in do for column in graph.columns(node)}
        stays = set(rows) - {column for node in below for column in graph.columns(node)}
        torn = {pair for pair in self.unseen if set(pair) & fixed and set(pair) <= stays}
        effects = {
            pair: [node for node in nodes if node not in do]
            for pair, nodes in (_pairs(graph) if torn else {}).items()
            if pair in torn
        }
        return {pair: nodes for pair, nodes in effects.items() if nodes}

    def _in_cells(self, rows: Columns, pair: tuple[str, str], empty: np.ndarray) -> np.ndarray:
        """Which rows (n,) are in the marked cells of the pair."""
        a, b = (_cells(rows[c], self.edges.get(c)) for c in pair)
        known = (a < empty.shape[0]) & (b < empty.shape[1])  # else a level without rows
        found = np.zeros(len(a), dtype=bool)
        found[known] = empty[a[known], b[known]]
        return found


class Comparable:
    """How likely a level of a column is for rows like the given ones, by a logistic regression.

    In a large table, trees also look for regions without it.

    Examples
    --------
    >>> import numpy as np, pandas as pd, vaca
    >>> age = np.linspace(0, 60, 400)
    >>> rows = {"age": age, "retired": (age > 50).astype(int)}
    >>> graph = vaca.CausalGraph.from_edges([("age", "retired")])
    >>> schema = vaca.Schema.infer(pd.DataFrame(rows), graph)
    >>> likely = Comparable(rows, "retired", ["age"], schema)
    >>> likely.lacking({"age": np.array([5.0, 55.0])}, 1)
    array([ True, False])
    """

    def __init__(
        self,
        rows: Columns,
        column: str,
        causes: Sequence[str],
        schema: Schema,
        weights: np.ndarray | None = None,
    ) -> None:
        from sklearn.linear_model import LogisticRegression

        self.causes, self.schema = list(causes), schema
        design = self._numbers(rows)
        self.mean, self.scale = design.mean(0), np.maximum(design.std(0), 1e-12)
        self.model = self.regions = None
        self.share = np.bincount(rows[column], weights, len(schema.levels(column)))
        self.share = self.share / self.share.sum()
        if len(np.unique(rows[column])) > 1:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a rough answer is enough
                self.model = LogisticRegression(max_iter=200).fit(
                    self._design(rows), rows[column], weights
                )
            if len(design) >= FEWEST:
                self.regions = Regions(design, rows[column], len(self.share), weights)

    def lacking(self, rows: Columns, level: int) -> np.ndarray:
        """For which rows (n,) the level is at least `RARER` times rarer than overall."""
        n = len(rows[self.causes[0]])
        if self.share[level] == 0 or self.model is None:
            return np.full(n, self.share[level] == 0)
        place = int(np.flatnonzero(self.model.classes_ == level)[0])
        chance = self.model.predict_proba(self._design(rows))[:, place]
        if self.regions is not None:
            chance = np.minimum(chance, self.regions.at_most(self._numbers(rows), level))
        return chance * RARER < self.share[level]

    def _numbers(self, rows: Columns) -> np.ndarray:
        parts = []
        for cause in self.causes:
            values, column = rows[cause], self.schema[cause]
            if column.discrete:
                parts += [(values == k).astype(float) for k in range(1, len(column.levels))]
            else:
                parts.append(np.asarray(values, float))
        return np.stack(parts, 1)

    def _design(self, rows: Columns) -> np.ndarray:
        z = np.clip((self._numbers(rows) - self.mean) / self.scale, -10, 10)
        return np.concatenate([z, z**2], axis=1)


def _pairs(graph: CausalGraph) -> dict[tuple[str, str], list[str]]:
    """Two columns -> the nodes that both act on."""
    found: dict[tuple[str, str], list[str]] = {}
    for node in graph.nodes:
        causes = {column for parent in graph.parents(node) for column in graph.columns(parent)}
        for pair in combinations([c for c in graph.all_columns if c in causes], 2):
            found.setdefault(pair, []).append(node)
    return found


def _cells(values: np.ndarray, edges: np.ndarray | None) -> np.ndarray:
    return values.astype(np.int64) if edges is None else np.searchsorted(edges, values)
