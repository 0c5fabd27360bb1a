r"""Engines with one mechanism per column: :math:`x_j = F_j(u_j, x_{pa(j)})`.

What is common to them is here: drawing and abducting the noise of discrete columns, and running
the mechanisms in causal order under `do`. A subclass gives the mechanisms themselves.

A column's parent columns are all columns of its node's parents and the columns before it in its own
node (columns of a node are ordered as the graph lists them and fully connected).
"""

from __future__ import annotations

import abc
from collections.abc import Collection
from functools import cached_property

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

from vaca.engines.engine import Engine
from vaca.engines.gumbel import TINY, gumbel_noise, level_of
from vaca.engines.walls import keep_within
from vaca.model.primitives import Noise
from vaca.table.columns import row_count
from vaca.table.schema import Columns

__all__ = ["ColumnwiseEngine", "normal_between", "threshold_noise"]


class ColumnwiseEngine(Engine, abc.ABC):
    """Noise, abduction and simulation column by column.

    Noise of a row: ``noise/<column>`` for every column, and after abduction also
    ``value/<column>``, the factual value; for point answers, ``left/<column>`` may take the place
    of the noise. A mechanism whose inputs are those of the factual row gives back the factual value
    itself, to the last bit: floating-point inversion never shows.
    """

    # ------------------------------------------------------------------ the graph by columns

    @cached_property
    def _parents(self) -> dict[str, tuple[str, ...]]:
        """Parent columns of each column, in causal order of the columns."""
        result: dict[str, tuple[str, ...]] = {}
        for node in self.graph.order:
            above = [c for p in self.graph.parents(node) for c in self.graph.columns(p)]
            for column in self.graph.columns(node):
                result[column] = tuple(above)
                above = [*above, column]
        return result

    @cached_property
    def _layers(self) -> list[list[str]]:
        """Columns that can be computed together: by the longest path that leads to them."""
        depth: dict[str, int] = {}
        for column, parents in self._parents.items():
            if column not in self._observed:
                depth[column] = 1 + max((depth.get(p, -1) for p in parents), default=-1)
        return [
            [c for c in depth if depth[c] == k] for k in range(1 + max(depth.values(), default=-1))
        ]

    def _discrete(self, column: str) -> bool:
        return self.schema_[column].discrete

    # ------------------------------------------------------------------ for subclasses

    @abc.abstractmethod
    def _draw(self, column: str, n: int, rng: np.random.Generator) -> np.ndarray:
        """Noise (n,) of a numeric column."""

    @abc.abstractmethod
    def _noise_of(
        self, columns: list[str], x: Columns, rng: np.random.Generator | None
    ) -> dict[str, np.ndarray]:
        """Noise (n,) of the values of numeric columns, given their parents in ``x``."""

    @abc.abstractmethod
    def _value_of(
        self, columns: list[str], u: dict[str, np.ndarray], x: Columns
    ) -> dict[str, np.ndarray]:
        """Values (n,) of numeric columns from their noise and their parents in ``x``."""

    def _left_of(self, columns: list[str], x: Columns) -> dict[str, np.ndarray]:
        """For columns with additive noise: the residuals (n,) given their parents in ``x``.

        They say as much as the noise does, and cost less.
        """
        return {}

    def _with_left(self, left: dict[str, np.ndarray], x: Columns) -> dict[str, np.ndarray]:
        """Values (n,) from what `_left_of` gave and the parents in ``x``."""
        raise NotImplementedError

    @abc.abstractmethod
    def _log_levels(self, columns: list[str], x: Columns, n: int) -> dict[str, np.ndarray]:
        """Log-probabilities (n, levels) of discrete columns given their parents in ``x``."""

    # ------------------------------------------------------------------ the three primitives

    def noise(self, n: int, rng: np.random.Generator) -> Noise:
        """Draw independent noise for every column, and whole rows of blocks without causes."""
        u: Noise = {}
        for column in self._parents:
            if column in self._observed:
                continue
            spec = self.schema_[column]
            if spec.kind == "categorical":
                u[f"noise/{column}"] = rng.gumbel(size=(n, len(spec.levels)))
            elif spec.discrete:
                u[f"noise/{column}"] = rng.random(n)
            else:
                u[f"noise/{column}"] = self._draw(column, n, rng)
        return u | {f"noise/{column}": values for column, values in self._drawn(n, rng).items()}

    def abduct(self, x: Columns, rng: np.random.Generator | None = None) -> Noise:
        """Noise under which the mechanisms give the rows ``x``."""
        return self._abducted(x, rng, list(self._parents))

    def _abduct_frame(
        self,
        frame: pd.DataFrame,
        x: Columns,
        rng: np.random.Generator | None,
        below: Collection[str] | None = None,
    ) -> Noise:
        if below is None:
            return self.abduct(x, rng)
        columns = [c for node in below for c in self.graph.columns(node)]
        left = self._left_of(columns, x)
        u = self._abducted(x, rng, [c for c in columns if c not in left])
        return u | {f"left/{c}": values for c, values in left.items()}

    def _abducted(self, x: Columns, rng: np.random.Generator | None, columns: list[str]) -> Noise:
        """Noise of the given columns, and the factual values of all."""
        columns = [c for c in columns if c not in self._observed]
        n = row_count(x)
        numeric = [c for c in columns if not self._discrete(c)]
        discrete = [c for c in columns if self._discrete(c)]
        u: Noise = {}
        if numeric:
            for column, values in self._noise_of(numeric, x, rng).items():
                u[f"noise/{column}"] = values
        if discrete:
            for column, log_p in self._log_levels(discrete, x, n).items():
                categorical = self.schema_.kind(column) == "categorical"
                posterior = gumbel_noise if categorical else threshold_noise
                u[f"noise/{column}"] = posterior(log_p, x[column], rng)
        for column in self._parents:
            u[f"value/{column}"] = np.array(x[column])
        return u | {f"noise/{c}": u[f"value/{c}"] for c in self._observed}

    def simulate(self, u: Noise, do: Columns) -> Columns:
        """Run the mechanisms in causal order; blocks without causes are as they were drawn."""
        n = row_count(u)
        do = {c: u[f"noise/{c}"] for c in self._observed} | do
        x: Columns = {column: np.asarray(values) for column, values in do.items()}
        for layer in self._layers:
            todo = [c for c in layer if c not in x]
            kept = {c: self._unchanged(c, u, x) for c in todo}
            run = [c for c in todo if not kept[c].all()]
            numeric = [c for c in run if not self._discrete(c)]
            discrete = [c for c in run if self._discrete(c)]
            fresh: Columns = {}
            left = {c: u[f"left/{c}"] for c in numeric if f"left/{c}" in u}
            noise = {c: u[f"noise/{c}"] for c in numeric if c not in left}
            found = self._with_left(left, x) if left else {}
            found |= self._value_of(list(noise), noise, x) if noise else {}
            for column, values in found.items():
                fresh[column] = keep_within(values, self.schema_[column])
            if discrete:
                for column, log_p in self._log_levels(discrete, x, n).items():
                    own = u[f"noise/{column}"]
                    level = _threshold_level if own.ndim == 1 else level_of
                    fresh[column] = level(log_p, own)
            for column in todo:
                if column not in fresh:
                    x[column] = u[f"value/{column}"].copy()
                elif kept[column].any():
                    x[column] = np.where(kept[column], u[f"value/{column}"], fresh[column])
                else:
                    x[column] = fresh[column]
        return {column: x[column] for column in self._parents}

    def _counted(self, column: str, value: np.ndarray) -> np.ndarray:
        """Whole numbers of at least 0 in a column of counts."""
        return np.maximum(np.rint(value), 0.0) if self.schema_.kind(column) == "count" else value

    def _unchanged(self, column: str, u: Noise, x: Columns) -> np.ndarray:
        """Rows (n,) whose parents of ``column`` have their factual values."""
        if f"value/{column}" not in u:
            return np.zeros(len(u[f"noise/{column}"]), dtype=bool)
        n = len(u[f"value/{column}"])
        same = np.ones(n, dtype=bool)
        for parent in self._parents[column]:
            same &= x[parent] == u[f"value/{parent}"]
        return same

    # ------------------------------------------------------------------ in words

    def _assumption(self, column: str) -> tuple[bool, str]:
        kind = self.schema_.kind(column)
        if kind == "continuous":
            return True, "the column is monotone in its own noise"
        if kind == "categorical":
            return False, (
                "levels are chosen by a Gumbel-max: a level that becomes more likely relative to "
                "the others is never left for one that becomes less likely"
            )
        return False, "the column is monotone in its own noise; within a level the noise is unknown"


# ---------------------------------------------------------------------- discrete noise


def threshold_noise(
    log_p: np.ndarray, level: np.ndarray, rng: np.random.Generator | None
) -> np.ndarray:
    r"""Uniform noise (n,) in the interval :math:`(F_{k-1}, F_k)` of the observed level.

    Without ``rng``, its midpoint.

    >>> import numpy as np
    >>> threshold_noise(np.log([[0.25, 0.75]]), np.array([1]), None)
    array([0.625])
    """
    edges = _edges(log_p)
    at = np.arange(len(log_p))
    low, high = edges[at, level], edges[at, level + 1]
    share = 0.5 if rng is None else rng.random(len(log_p))
    return low + (high - low) * share


def _edges(log_p: np.ndarray) -> np.ndarray:
    p = np.maximum(np.exp(log_p), TINY)
    edges = np.zeros((len(p), p.shape[1] + 1))
    np.cumsum(p, axis=1, out=edges[:, 1:])
    return edges / edges[:, -1:]


def _threshold_level(log_p: np.ndarray, noise: np.ndarray) -> np.ndarray:
    return (noise[:, None] > _edges(log_p)[:, 1:-1]).sum(axis=1).astype(np.int64)


def normal_between(
    low: np.ndarray, high: np.ndarray, rng: np.random.Generator | None
) -> np.ndarray:
    """A standard normal between ``low`` and ``high`` (n,): a draw, or without ``rng`` the median.

    >>> import numpy as np
    >>> normal_between(np.array([-1.0]), np.array([1.0]), None)
    array([0.])
    """
    flip = low > 0  # work in the lower tail, where probabilities do not round to one
    a, b = np.where(flip, -high, low), np.where(flip, -low, high)
    share = 0.5 if rng is None else rng.random(len(low))
    p = ndtr(a) + (ndtr(b) - ndtr(a)) * share
    with np.errstate(invalid="ignore"):
        z = np.where(p > 0, ndtri(p), b)
    z = np.clip(z, np.maximum(a, -40.0), np.maximum(b, -40.0))
    return np.where(flip, -z, z)
