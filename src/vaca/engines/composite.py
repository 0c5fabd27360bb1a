r"""The default engine: every column gets the mechanism that its rows speak for.

.. math:: p(x) = \prod_j p(x_j \mid x_{pa(j)})

The likelihood is a product over columns that share nothing, so the choice of a mechanism belongs to
each column alone. Roots are as observed; other columns compete lines, curves, products, surfaces,
trees, spreads that change with the parents, and scales, by their log-density on held-out rows.
"""

from __future__ import annotations

import copy
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vaca.engines.columnwise import ColumnwiseEngine
from vaca.engines.engine import RowWeights
from vaca.engines.mechanisms.choosing import (
    Inputs,
    Trial,
    choose_levels,
    choose_numeric,
    make_folds,
)
from vaca.engines.mechanisms.levels import Levels
from vaca.engines.mechanisms.numeric import Numeric
from vaca.engines.mechanisms.roots import Root
from vaca.engines.workers import each
from vaca.errors import VacaError, did_you_mean
from vaca.graph.dag import CausalGraph
from vaca.table.schema import Column, Columns, Kind, Schema, as_frame

__all__ = ["FAMILIES", "Composite"]

#: What may compete beside straight lines; see `Composite`.
FAMILIES = ("curves", "products", "trees", "spread", "robust", "scales")
_KINDS: dict[str, Any] = {"numeric": Numeric, "levels": Levels, "root": Root}
Mechanism = Numeric | Levels | Root


class Composite(ColumnwiseEngine):
    """Column by column: the simplest mechanism that predicts held-out rows about best.

    Parameters
    ----------
    graph : CausalGraph
    schema : Schema or mapping, optional
        Kinds of columns; by default inferred from the data.
    seed : int
        For the folds of the cross-validation.
    missing : {"error", "drop", "model"}
        What to do about missing values: refuse them, leave their rows out, or learn from those rows
        too, with draws for what is missing.
    families : sequence of str, optional
        What may compete beside straight lines: "curves", "products" (of two causes), "trees",
        "spread" (noise whose size changes with the causes), "robust" (far residuals count less),
        "scales" (logarithm and logit of positive and bounded columns). By default all.
    max_rows : int
        Of more rows than this, so many are drawn to choose and fit mechanisms.
    time_budget : float, optional
        Seconds. Columns that are reached after half of it choose between lines and curves only.

    Attributes
    ----------
    columns_ : DataFrame
        For each column the chosen mechanism, its score (mean log-density of held-out rows, for
        levels log-probability) and how many were tried.
    leaderboard_ : DataFrame
        One row per column and mechanism that was tried, best first: ``score``, ``se`` (the
        standard error of its distance to the column's best), ``chosen``.

    Examples
    --------
    >>> import numpy as np, pandas as pd, vaca
    >>> rng = np.random.default_rng(0)
    >>> x1 = rng.normal(size=300)
    >>> df = pd.DataFrame({"x1": x1, "x2": 2 * x1 + rng.normal(size=300)})
    >>> model = vaca.Composite(vaca.CausalGraph.from_edges([("x1", "x2")])).fit(df)
    >>> model.columns_["mechanism"].to_dict()
    {'x1': 'as observed', 'x2': 'linear'}
    """

    columns_: pd.DataFrame
    leaderboard_: pd.DataFrame

    def __init__(
        self,
        graph: CausalGraph,
        schema: Schema | Mapping[str, Kind | Column] | None = None,
        *,
        seed: int = 0,
        missing: str = "error",
        families: Sequence[str] | None = None,
        max_rows: int = 20_000,
        time_budget: float | None = None,
    ) -> None:
        self.graph = graph
        self.schema = schema
        self.seed = seed
        self.missing = missing
        self.families = families
        self.max_rows = max_rows
        self.time_budget = time_budget

    # ------------------------------------------------------------------ learning

    def _fit(
        self,
        train: Columns,
        validation: Columns,
        progress: bool | None,
        checkpoint: str | Path | None,
        weights: RowWeights | None = None,
    ) -> None:
        families = FAMILIES if self.families is None else tuple(self.families)
        for name in families:
            if name not in FAMILIES:
                raise VacaError(f"unknown family {name!r}; {did_you_mean(name, FAMILIES)}")
        # Cross-validation holds out rows of its own, so all rows serve.
        rows = {c: np.concatenate([train[c], validation[c]]) for c in train}
        n = self.n_rows_ = len(next(iter(rows.values())))
        w = np.ones(n) if weights is None else np.concatenate(weights)
        if n > self.max_rows:
            keep = np.random.default_rng([self.seed, 5]).permutation(n)[: self.max_rows]
            rows, w = {c: v[keep] for c, v in rows.items()}, w[keep]
        self._mechanisms: dict[str, Mechanism] = {}
        boards = []
        bare = copy.copy(self)  # the rows go along once
        bare.rows_, bare.weights_ = {}, None
        half = None if self.time_budget is None else time.time() + 0.5 * self.time_budget
        shared = (bare, rows, w, frozenset(families), half)
        columns = list(self._parents)
        with _bar(len(columns), progress) as show:
            chosen = each(_choose_column, shared, columns, **self._where)
            for column in columns:
                show(column)
                self._mechanisms[column], board = next(chosen)
                boards.append(board)
        self._set_board(pd.concat(boards, ignore_index=True))

    def _choose(
        self, column: str, rows: Columns, w: np.ndarray, families: frozenset[str]
    ) -> tuple[Mechanism, list[Trial]]:
        y = rows[column]
        if not self._parents[column] and not self._discrete(column):
            root = Root.fit(y, w)
            density = root.log_density(np.zeros((len(y), 0)), y)
            trial = Trial(root.words(), density, 1, root, float(density.mean()), 0.0, True)
            return root, [trial]
        x, groups = self._inputs(column, rows)
        given = Inputs(x, groups, y, w, self._folds(len(y)), self.seed)
        if self._discrete(column):
            return choose_levels(given, len(self.schema_.levels(column)), families)
        count = self.schema_.kind(column) == "count"
        return choose_numeric(given, count=count, families=families)

    def _folds(self, n: int) -> np.ndarray:
        return make_folds(n, [self.seed, 7])

    def _inputs(self, column: str, x: Columns, n: int = 0) -> tuple[np.ndarray, list[int]]:
        """Parents of a column as numbers (n, features), and which parent each belongs to."""
        parts, groups = [np.zeros((len(next(iter(x.values()))) if x else n, 0))], []
        for number, parent in enumerate(self._parents[column]):
            values, levels = x[parent], len(self.schema_.levels(parent))
            if levels > 2:
                part = (values[:, None] == np.arange(1, levels)).astype(float)
            else:
                part = np.asarray(values, float)[:, None]
            parts.append(part)
            groups += [number] * part.shape[1]
        return np.concatenate(parts, axis=1), groups

    def _refit(self, train: Columns, weights: np.ndarray, seed: int) -> Composite:
        """The chosen mechanisms fitted to weighted rows; nothing is chosen anew."""
        n = len(weights)
        if n > self.max_rows:
            keep = np.random.default_rng([self.seed, 5]).permutation(n)[: self.max_rows]
            train, weights = {c: v[keep] for c, v in train.items()}, weights[keep]
        result = copy.copy(self)
        result._mechanisms = {}
        for column, mechanism in self._mechanisms.items():
            x, _ = self._inputs(column, train)
            rng = np.random.default_rng([seed, 6])
            result._mechanisms[column] = mechanism.refit(
                x, train[column], weights, self._folds(len(weights)), rng
            )
        return result

    # ------------------------------------------------------------------ mechanisms

    def _draw(self, column: str, n: int, rng: np.random.Generator) -> np.ndarray:
        return self._mechanisms[column].draw(n, rng)  # type: ignore[union-attr]

    def _noise_of(
        self, columns: list[str], x: Columns, rng: np.random.Generator | None
    ) -> dict[str, np.ndarray]:
        result = {}
        for column in columns:
            inputs, _ = self._inputs(column, x)
            result[column] = self._mechanisms[column].noise(inputs, x[column], rng)  # type: ignore[union-attr]
        return result

    def _value_of(
        self, columns: list[str], u: dict[str, np.ndarray], x: Columns
    ) -> dict[str, np.ndarray]:
        result = {}
        for column in columns:
            inputs, _ = self._inputs(column, x, len(u[column]))
            value = self._mechanisms[column].value(inputs, u[column])  # type: ignore[union-attr]
            if self.schema_.kind(column) == "count":
                value = np.maximum(np.rint(value), 0.0)
            result[column] = value
        return result

    def _log_levels(self, columns: list[str], x: Columns, n: int) -> dict[str, np.ndarray]:
        result = {}
        for column in columns:
            inputs, _ = self._inputs(column, x, n)
            result[column] = self._mechanisms[column].log_levels(inputs)  # type: ignore[union-attr]
        return result

    def log_prob(self, data: Any) -> pd.Series:
        """Log-likelihood of each row, in the user's units.

        Densities of continuous columns times probabilities of the others.

        Returns
        -------
        Series of shape (n,) with the index of ``data``.
        """
        frame = as_frame(data)
        x = self.schema_.encode(frame)
        total = np.zeros(len(frame))
        for column, mechanism in self._mechanisms.items():
            total += mechanism.log_density(self._inputs(column, x)[0], x[column])
        return pd.Series(total, index=frame.index, name="log_prob")

    def _assumption(self, column: str) -> tuple[bool, str]:
        exact, text = super()._assumption(column)
        mechanism = self._mechanisms.get(column)
        if isinstance(mechanism, Numeric) and mechanism.recipe.additive:
            return True, "noise is added to a function of the parents, with the same spread"
        return exact, text

    # ------------------------------------------------------------------ save and load

    def _set_board(self, board: pd.DataFrame) -> None:
        self.leaderboard_ = board
        best = board[board["chosen"]].set_index("column")
        tried = board.groupby("column", sort=False).size()
        self.columns_ = best[["mechanism", "score"]].assign(tried=tried.reindex(best.index))

    def _state(self) -> dict[str, np.ndarray]:
        names = {kind: name for name, kind in _KINDS.items()}
        state = {}
        for number, mechanism in enumerate(self._mechanisms.values()):
            prefix = f"mechanism/{number}/{names[type(mechanism)]}/"
            state |= {prefix + k: np.asarray(v) for k, v in mechanism.arrays().items()}
        text = self.leaderboard_.to_json(orient="split", double_precision=15)
        return state | {"leaderboard": np.frombuffer(text.encode(), np.uint8)}

    def _set_state(self, state: dict[str, np.ndarray]) -> None:
        import io

        parts: dict[tuple[int, str], dict[str, np.ndarray]] = {}
        for key, values in state.items():
            if key.startswith("mechanism/"):
                _, number, kind, name = key.split("/")
                parts.setdefault((int(number), kind), {})[name] = values
        found = {number: _KINDS[kind].from_arrays(own) for (number, kind), own in parts.items()}
        self._mechanisms = {c: found[k] for k, c in enumerate(self._parents)}
        text = io.StringIO(bytes(state["leaderboard"]).decode())
        self._set_board(pd.read_json(text, orient="split", dtype={"column": str}))


def _choose_column(
    shared: tuple[Composite, Columns, np.ndarray, frozenset[str], float | None], column: str
) -> tuple[Mechanism, pd.DataFrame]:
    """A column's mechanism and its leaderboard; lines and curves only, if half the time is over."""
    engine, rows, w, families, half = shared
    late = half is not None and time.time() > half
    mechanism, tried = engine._choose(column, rows, w, frozenset({"curves"}) if late else families)
    return mechanism, _board(column, tried)


def _board(column: str, tried: list[Trial]) -> pd.DataFrame:
    rows = [
        {
            "column": column,
            "mechanism": t.words,
            "score": t.score,
            "se": t.error,
            "chosen": t.chosen,
        }
        for t in sorted(tried, key=lambda t: -t.score)
    ]
    return pd.DataFrame(rows)


@contextmanager
def _bar(total: int, progress: bool | None) -> Iterator[Any]:
    """A progress bar on a terminal, for work that takes more than a moment."""
    if progress is False or not sys.stderr.isatty():
        yield lambda name: None
        return
    from rich.console import Console
    from rich.progress import Progress

    started = time.perf_counter()
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("fit", total=total, visible=False)
        done = [0]

        def show(name: str) -> None:
            late = time.perf_counter() - started > 2.0
            bar.update(task, description=f"fit: {name}", completed=done[0], visible=late)
            done[0] += 1

        yield show
