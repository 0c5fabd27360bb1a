"""The cells that values stand for: counts by nature, others to be scored no more finely."""

from __future__ import annotations

import numpy as np

from vaca.engines.mechanisms.scale import Scale

__all__ = ["cells", "most_of", "open_ends"]

#: A highest count that so many rows have, and more than the next ones together, which are less than
#: this part of the way to the median away, is where counts end.
CUT_ROWS, CUT_OFF = 5, 0.1


def cells(
    scale: Scale, y: np.ndarray, mean: np.ndarray, log_scale: np.ndarray, half: float = 0.5
) -> tuple[np.ndarray, np.ndarray]:
    """Residuals at the ends of a cell around each value."""
    low, high = ((scale.forward(y + end) - mean) * np.exp(-log_scale) for end in (-half, half))
    return low, high


def open_ends(
    y: np.ndarray, low: np.ndarray, high: np.ndarray, most: float
) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the cells of counts: none is below zero, or above the most that one can be."""
    return np.where(y <= 0, -np.inf, low), np.where(y >= most, np.inf, high)


def most_of(y: np.ndarray) -> float:
    """The highest count, if it repeats as if larger ones had been cut off there; else infinite.

    >>> most_of(np.array([3, 1, 4, 9, 9, 2, 9, 9, 5, 9]))
    9.0
    >>> most_of(np.array([3, 1, 4, 1, 5, 9, 2, 6]))
    inf
    """
    top = float(y.max())
    below = y >= top - max(CUT_OFF * (top - float(np.median(y))), 1.0)
    times = int((y == top).sum())
    return top if times >= CUT_ROWS and 2 * times > below.sum() else np.inf
