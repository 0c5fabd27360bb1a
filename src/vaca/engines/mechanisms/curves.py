"""Curves of one number, evaluated at many: piece by piece, with no matrix of terms.

A natural cubic spline is a sum of cubes above its knots, and so between two knots one cubic. To
find the piece of a number costs one look into a table, and its value four coefficients, however
many knots there are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Pieces", "Places"]

#: Cells of the table in which the place of a number is looked up.
CELLS = 4096


@dataclass
class Places:
    """Between which of some increasing knots a number lies.

    Parameters
    ----------
    knots : ndarray (knots,)

    Examples
    --------
    >>> Places(np.array([0.0, 1.0, 3.0]))(np.array([-1.0, 0.0, 0.5, 1.0, 2.9, 7.0]))
    array([0, 1, 1, 2, 2, 3])
    """

    knots: np.ndarray

    def __post_init__(self) -> None:
        span = self.knots[-1] - self.knots[0]
        # A column of numbers near the end of what a float holds has no table.
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            self._steps = (CELLS - 2) / span
            cell = (self.knots - self.knots[0]) * self._steps
        self._table: np.ndarray | None = None
        if np.isfinite(self._steps) and np.diff(np.floor(cell)).min(initial=np.inf) > 0:
            # The knots below a cell; the knot inside it, if there is one, is compared with.
            self._table = np.searchsorted(np.floor(cell), np.arange(-1, CELLS - 1), side="left")
            self._next = np.append(self.knots, np.inf)

    def __call__(self, at: np.ndarray) -> np.ndarray:
        """How many knots (n,) are not above each number."""
        if self._table is None:
            return np.searchsorted(self.knots, at, side="right")
        cell = (at - self.knots[0]) * self._steps
        cell += 1.0
        np.clip(cell, 0.0, CELLS - 1.0, out=cell)
        below = self._table.take(cell.astype(np.int32))
        return below + (at >= self._next.take(below))


@dataclass
class Pieces:
    """A sum of weighted cubes above knots that is straight beyond the last.

    Parameters
    ----------
    knots, weights : ndarray (knots,)
        The function is the sum of ``weights * max(z - knots, 0) ** 3``.
    """

    knots: np.ndarray
    weights: np.ndarray

    def __post_init__(self) -> None:
        away = np.maximum(self.knots[:, None] - self.knots, 0.0)
        reached = np.tri(len(self.knots)) * self.weights
        terms = np.stack([
            (reached * away**3).sum(1), 3 * (reached * away**2).sum(1),
            3 * (reached * away).sum(1), reached.sum(1),
        ])  # fmt: skip
        terms[2:, -1] = 0.0  # straight, but for rounding
        self._terms = np.concatenate([np.zeros((4, 1)), terms], axis=1)
        self._start = np.append(self.knots[0], self.knots)
        self._places = Places(self.knots)

    def __call__(self, z: np.ndarray) -> np.ndarray:
        """Values (n,) at ``z``."""
        k = self._places(z)
        t = z - self._start.take(k)
        value = self._terms[3].take(k)
        for power in (2, 1, 0):
            value *= t
            value += self._terms[power].take(k)
        return value
