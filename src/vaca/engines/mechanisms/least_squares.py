"""Penalised least squares, from sums over rows that can be added and subtracted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Sums", "solve"]

#: Strengths of the penalty on bends that are tried.
STRENGTHS = 10.0 ** np.arange(-7.0, 2.5, 0.75)
#: On every coefficient, against collinear columns only.
TINY = 1e-9


@dataclass
class Sums:
    """What least squares needs of some rows: sums that can be added and subtracted."""

    gram: np.ndarray  # (terms, terms)
    cross: np.ndarray  # (terms,)
    square: float
    weight: float

    @classmethod
    def of(cls, a: np.ndarray, y: np.ndarray, w: np.ndarray) -> Sums:
        """Sums over rows of terms ``a``, targets and weights."""
        root = np.sqrt(w)
        b = a * root[:, None]  # times itself, which takes half as long as times another
        return cls(b.T @ b, b.T @ (root * y), float(w @ y**2), float(w.sum()))

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.gram + other.gram,
            self.cross + other.cross,
            self.square + other.square,
            self.weight + other.weight,
        )

    def __sub__(self, other: Sums) -> Sums:
        return Sums(
            self.gram - other.gram,
            self.cross - other.cross,
            self.square - other.square,
            self.weight - other.weight,
        )


def solve(sums: Sums, penalty: np.ndarray, strength: float | None) -> tuple[np.ndarray, float]:
    """Coefficients of penalised least squares, and the strength of the penalty.

    Without a strength it is chosen by generalised cross-validation.
    """
    gram, cross = sums.gram / sums.weight, sums.cross / sums.weight
    ridge = TINY * max(1.0, float(np.diag(gram).max())) * np.ones(len(cross))
    ridge[0] = 0.0
    if strength is not None or not penalty.any():
        strength = strength or 0.0
        return _coefficients(gram, cross, ridge + strength * penalty), strength
    best, found = np.inf, (np.zeros(len(cross)), float(STRENGTHS[-1]))
    n = sums.weight
    for tried in STRENGTHS:
        inverse = np.linalg.inv(gram + np.diag(ridge + tried * penalty))
        beta = inverse @ cross
        loss = sums.square / n - 2 * beta @ cross + beta @ gram @ beta
        used = 1.3 * float(np.sum(inverse * gram))  # a little stricter than plain: fewer wiggles
        if used < 0.9 * n:
            score = max(loss, 1e-15) / (1.0 - used / n) ** 2
            if score < best:
                best, found = score, (beta, float(tried))
    return found


def _coefficients(gram: np.ndarray, cross: np.ndarray, ridge: np.ndarray) -> np.ndarray:
    matrix = gram + np.diag(ridge)
    try:
        return np.linalg.solve(matrix, cross)
    except np.linalg.LinAlgError:
        return np.linalg.lstsq(matrix, cross, rcond=None)[0]
