r"""The default engine: every column gets the mechanism that its rows support.

.. math:: p(x) = \prod_j p(x_j \mid x_{pa(j)})

The likelihood is a product over columns that share nothing, so the choice of a mechanism belongs to
each column alone. Roots are as observed, and so are blocks of columns without causes: rows of these
are drawn whole. For other columns, lines, curves, products, surfaces, trees, spreads that change
with the parents, and scales compete by their log-density on held-out rows.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from vaca.engines.columnwise import ColumnwiseEngine
from vaca.engines.engine import KEPT_ROWS
from vaca.engines.fit_input import FitInput
from vaca.engines.forecast import Forecast
from vaca.engines.mechanisms.blend import Mixture
from vaca.engines.mechanisms.choosing import choose_hurdle, choose_numeric
from vaca.engines.mechanisms.choosing_levels import choose_levels
from vaca.engines.mechanisms.hurdle import Hurdle, edge_of
from vaca.engines.mechanisms.levels import Levels
from vaca.engines.mechanisms.numeric import Numeric
from vaca.engines.mechanisms.roots import Root, Together
from vaca.engines.mechanisms.trials import Inputs, Trial, make_folds
from vaca.errors import VacaError, did_you_mean
from vaca.model.workers import each
from vaca.table.columns import row_count, take_rows
from vaca.table.progress import progress_bar
from vaca.table.schema import Columns, as_frame

__all__ = ["FAMILIES", "Composite"]

#: What may compete with straight lines; see `Composite`.
FAMILIES = (
    "curves", "products", "steps", "trees", "spread", "robust", "scales", "edges", "flow", "blends",
)  # fmt: skip
_KINDS: dict[str, Any] = {
    "numeric": Numeric,
    "levels": Levels,
    "mixture": Mixture,
    "root": Root,
    "together": Together,
    "hurdle": Hurdle,
}
Mechanism = Numeric | Levels | Mixture | Root | Together | Hurdle


@dataclass(eq=False, repr=False, kw_only=True)
class Composite(ColumnwiseEngine):
    """Column by column: the simplest mechanism that predicts held-out rows about best.

    What all engines take is in `vaca.engines.parameters.EngineParameters`.

    Parameters
    ----------
    families : sequence of str, optional
        What may compete with straight lines: "curves", "products" (of two causes), "steps" (where a
        cause passes a value), "trees", "spread" (noise whose size changes with the causes),
        "robust" (far residuals count less), "scales" (logarithm and logit of positive and bounded
        columns), "edges" (a lowest or highest value that repeats has a probability of its own),
        "flow" (a network, for columns whose noise changes its shape with the causes), "blends"
        (several candidates together, each with its share). By default all.
    max_rows : int
        Rows to choose and fit mechanisms with; of a longer table, this many are drawn.
    time_budget : float, optional
        Seconds. When half of it is used up, the columns that are left choose only between lines and
        curves.

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
    >>> import vaca
    >>> scm = vaca.scms.load("chain-lin")
    >>> model = vaca.Composite(scm.graph).fit(scm.sample(3000, seed=0))
    >>> model.columns_["mechanism"].to_dict()
    {'x1': 'as observed', 'x2': 'linear', 'x3': 'linear'}
    """

    revision = 10
    columns_: pd.DataFrame = field(init=False)
    leaderboard_: pd.DataFrame = field(init=False)

    families: Sequence[str] | None = None
    max_rows: int = 20_000
    time_budget: float | None = None

    # ------------------------------------------------------------------ learning

    def _fit(self, given: FitInput) -> None:
        families = FAMILIES if self.families is None else tuple(self.families)
        for name in families:
            if name not in FAMILIES:
                raise VacaError(f"unknown family {name!r}; {did_you_mean(name, FAMILIES)}")
        rows, w = given.together()  # cross-validation holds out rows of its own
        if not (w > 0).all():  # such rows would still count as rows, where these are few
            rows, w = take_rows(rows, np.flatnonzero(w > 0)), w[w > 0]
            w = w / w.mean()
        n = self.n_rows_ = len(w)
        if n > self.max_rows:
            keep = np.random.default_rng([self.seed, 5]).permutation(n)[: self.max_rows]
            rows, w = take_rows(rows, keep), w[keep]
        self._mechanisms: dict[str, Mechanism] = {}
        self._block_weights = None
        boards = []
        bare = copy.copy(self)  # the rows are sent only once
        bare.rows_, bare.weights_ = {}, None
        bare._mechanisms = {}  # its own: ours grows while it is sent to other processes
        half = None if self.time_budget is None else time.time() + 0.5 * self.time_budget
        shared = (bare, rows, w, frozenset(families), half)
        columns = list(self._parents)
        with progress_bar("fit", len(columns), unit="columns", wanted=given.progress) as bar:
            chosen = each(_choose_column, shared, columns, **self._where)
            advice = "a time_budget, or jobs= or cluster= to share columns out, would shorten it"
            watch = Forecast("Composite", len(columns), advice)
            for done, column in enumerate(columns):
                bar.begin(column)
                if given.progress is not False and self.time_budget is None:
                    watch.tell(done)
                self._mechanisms[column], board = next(chosen)
                boards.append(board)
        self._set_board(pd.concat(boards, ignore_index=True))

    def _rows_wanted(self) -> int:
        return max(self.max_rows, KEPT_ROWS)

    def _choose(
        self, column: str, rows: Columns, w: np.ndarray, families: frozenset[str]
    ) -> tuple[Mechanism, list[Trial]]:
        y = rows[column]
        if column in self._observed:
            together = Together(len(self.schema_.levels(column)))
            return together, [Trial(together.words(), y, 1, together, chosen=True)]
        if not self._parents[column] and not self._discrete(column):
            root = Root.fit(y, w)
            density = root.log_density(np.zeros((len(y), 0)), y)
            score = float(np.average(density, weights=w))
            trial = Trial(root.words(), density, 1, root, score=score, error=0.0, chosen=True)
            return root, [trial]
        x, groups = self._inputs(column, rows)
        given = Inputs(x, groups, y, w, self._folds(len(y)), self.seed)
        if self._discrete(column):
            ordered = self.schema_.kind(column) == "ordinal"
            levels = len(self.schema_.levels(column))
            return choose_levels(given, levels, families, ordered=ordered)
        count = self.schema_.kind(column) == "count"
        edge = edge_of(y, count=count) if "edges" in families else None
        if edge is not None:
            return choose_hurdle(given, edge, count=count, families=families)
        return choose_numeric(given, count=count, families=families)

    def _folds(self, n: int) -> np.ndarray:
        return make_folds(n, [self.seed, 7])

    def _inputs(self, column: str, x: Columns, n: int = 0) -> tuple[np.ndarray, list[int]]:
        """Parents of a column as numbers (n, features), and which parent each belongs to."""
        parts, groups = [np.zeros((row_count(x) if x else n, 0))], []
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
        """The chosen mechanisms fitted to weighted rows, with the same choices."""
        n = len(weights)
        result = copy.copy(self)
        result._mechanisms = {}
        result._weigh_blocks(weights)
        if n > self.max_rows:
            keep = np.random.default_rng([self.seed, 5]).permutation(n)[: self.max_rows]
            train, weights = take_rows(train, keep), weights[keep]
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
            result[column] = self._counted(column, value)
        return result

    def _left_of(self, columns: list[str], x: Columns) -> dict[str, np.ndarray]:
        result = {}
        for column in columns:
            mechanism = self._mechanisms[column]
            if isinstance(mechanism, Numeric) and mechanism.adds:
                result[column] = mechanism.left(self._by_column(column, x), x[column])
        return result

    def _with_left(self, left: dict[str, np.ndarray], x: Columns) -> dict[str, np.ndarray]:
        return {
            column: self._mechanisms[column].with_left(self._by_column(column, x), values)  # type: ignore[union-attr]
            for column, values in left.items()
        }

    def _by_column(self, column: str, x: Columns) -> np.ndarray:
        """`_inputs` (n, features) with each feature in one piece of memory."""
        parts: list[np.ndarray] = []
        for parent in self._parents[column]:
            values, levels = x[parent], len(self.schema_.levels(parent))
            parts += [values == k for k in range(1, levels)] if levels > 2 else [values]
        return np.array(parts, float).T

    def _log_levels(self, columns: list[str], x: Columns, n: int) -> dict[str, np.ndarray]:
        result = {}
        for column in columns:
            inputs, _ = self._inputs(column, x, n)
            result[column] = self._mechanisms[column].log_levels(inputs)  # type: ignore[union-attr]
        return result

    def log_prob(self, data: Any) -> pd.Series:
        """Log-likelihood of each row, in the user's units.

        Densities of continuous columns times probabilities of the others, given the columns of
        blocks without causes.

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
        if column in self._observed:
            return True, "nothing: rows of its block are drawn as they were observed"
        exact, text = super()._assumption(column)
        mechanism = self._mechanisms.get(column)
        if isinstance(mechanism, Numeric) and mechanism.recipe.additive:
            return True, "noise is added to a function of the parents, with the same spread"
        return exact, text

    # ------------------------------------------------------------------ save and load

    def _set_board(self, board: pd.DataFrame) -> None:
        self.leaderboard_ = board
        best = board[board["chosen"]].groupby("column", sort=False)
        self.columns_ = pd.DataFrame(
            {
                "mechanism": best["mechanism"].agg("; ".join),  # a hurdle has two parts
                "score": best["score"].sum(),
                "tried": board.groupby("column", sort=False).size(),
            }
        )

    def _state(self) -> dict[str, np.ndarray]:
        names = {kind: name for name, kind in _KINDS.items()}
        state = {}
        for number, mechanism in enumerate(self._mechanisms.values()):
            prefix = f"mechanism/{number}/{names[type(mechanism)]}/"
            state |= {prefix + k: np.asarray(v) for k, v in mechanism.arrays().items()}
        text = self.leaderboard_.to_json(orient="split", double_precision=15)
        if self._block_weights is not None:
            state["block_weights"] = self._block_weights
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
        self._block_weights = state.get("block_weights")
        text = io.StringIO(bytes(state["leaderboard"]).decode())
        self._set_board(pd.read_json(text, orient="split", dtype={"column": str}))


def _choose_column(
    shared: tuple[Composite, Columns, np.ndarray, frozenset[str], float | None], column: str
) -> tuple[Mechanism, pd.DataFrame]:
    """A column's mechanism and its leaderboard; only lines and curves, if half the time is over."""
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
