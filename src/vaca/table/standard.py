"""Standardising numbers: minus their mean, in units of their standard deviation."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

__all__ = ["Standard", "sd_of"]


def sd_of(values: np.ndarray) -> Any:
    """Standard deviation of each column, as a unit to divide by: 1 where it is zero.

    >>> float(sd_of(np.array([1.0, 5.0]))), float(sd_of(np.array([7.0, 7.0])))
    (2.0, 1.0)
    """
    sd = values.std(0)
    return np.where(sd == 0, 1.0, sd)[()]


class Standard(NamedTuple):
    """Mean and unit of a column (numbers), or of each column of a matrix (arrays).

    >>> one = Standard.of(np.array([0.0, 10.0]))
    >>> one.to(np.array([15.0])), one.back(np.array([2.0]))
    (array([2.]), array([15.]))
    """

    mean: Any
    sd: Any

    @classmethod
    def of(cls, values: np.ndarray) -> Standard:
        """The mean and `sd_of` of the rows."""
        return cls(values.mean(0), sd_of(values))

    def to(self, values: Any) -> np.ndarray:
        """Standardised values."""
        return (np.asarray(values, dtype=float) - self.mean) / self.sd

    def back(self, values: np.ndarray) -> np.ndarray:
        """Standardised values in the user's units again."""
        return values * self.sd + self.mean
