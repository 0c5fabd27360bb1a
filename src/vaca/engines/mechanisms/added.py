r"""Noise of which one part is the same for all rows and another follows the spread.

.. math:: r = A(u) + s(x_{pa})\, B(u), \qquad u \sim N(0, 1)

Every quantile of the residual is a line in the spread, and is found as one, by quantile regression.
Divided by the spread, as all noise is kept here, it is :math:`B(u) + A(u) / s`: a line in the
inverse. It increases in u for all rows if it does so where spreads are smallest and largest; beyond
these the shape of the noise stays what it is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from vaca.engines.mechanisms.noise import FLAT, NoiseCurve, RowValues

__all__ = ["Quantiles", "TwoCurves", "choose_smoothing"]

#: Quantiles that are regressed, how far out, and the rows that are asked.
LEVELS, FURTHEST, ROWS = 101, 3.0, 4000
#: Rounds of the regressions, of a first fit and of one that starts near.
ROUNDS, AGAIN = 40, 8
#: Inverses that differ by less, in units of themselves, are all the same.
EVEN = 1e-6
#: How finely quantiles are fitted, in standard deviations of what is divided by the spread.
FINE = 1e-3
#: The share of rows whose spreads count as smallest, and as largest.
ENDS = 0.01
#: Over which standard deviations of u quantiles are averaged where spreads are smallest, and where
#: they are usual; infinite: a line. The simplest first.
SMOOTHINGS = (
    (np.inf, np.inf), (np.inf, 0.35), (0.35, 0.35), (np.inf, 0.12), (0.12, 0.12), (np.inf, 0.04),
    (0.04, 0.04),
)  # fmt: skip


@dataclass
class Quantiles:
    """Quantiles of residuals as lines in the inverse of the spread.

    Attributes
    ----------
    u, middle, slope : ndarray (levels,)
        Where the quantiles are, their values where the inverse of the spread is usual, and how they
        follow it.
    usual, low, high : float
        The inverse of the spread: its mean, and its first and last hundredth.
    mean : float
        Of the residuals, divided by the spread.
    """

    u: np.ndarray
    middle: np.ndarray
    slope: np.ndarray
    usual: float
    low: float
    high: float
    mean: float

    @classmethod
    def of(
        cls, e: np.ndarray, inverse: np.ndarray, w: np.ndarray, start: TwoCurves | None = None
    ) -> Quantiles:
        """The lines of residuals ``e`` (n,), divided by the spread, whose ``inverse`` is given."""
        some = slice(None, None, -(-len(e) // ROWS))
        e, h, w = e[some], inverse[some], w[some]
        least, largest = np.quantile(h, [ENDS, 1.0 - ENDS])
        h = np.clip(h, least, largest)
        # Rows of little spread have large inverses: in units of the column they count as others do.
        w = w / (1.0 + h / np.median(h))
        w = w / w.sum()
        usual, mean = float(w @ h), float(w @ e)
        h = h - usual
        most = min(FURTHEST, float(-ndtri(1.0 / len(e))))
        u = np.linspace(-most, most, LEVELS) if start is None else start.u
        lift = 2.0 * ndtr(u) - 1.0
        order = np.argsort(e)
        middle = np.interp(ndtr(u), np.cumsum(w[order]) - 0.5 * w[order], e[order])
        slope = np.zeros_like(middle)
        if start is not None:
            slope = start.slope
            middle = start.wide + slope * (usual - start.low)
        unit = float(np.sqrt(w @ (e - mean) ** 2)) * FINE or FLAT
        square = float(w @ h**2)
        even = square <= (EVEN * usual) ** 2
        for _ in range(ROUNDS if start is None else AGAIN):
            # Each weighted square touches the check function where it is, and lies above it.
            v = w / (unit + np.abs(e - middle[:, None] - slope[:, None] * h))
            sums, first, second = v.sum(1), v @ h, v @ h**2
            left, right = v @ e + lift, v @ (h * e)
            if even:
                middle = left / sums
                continue
            det = sums * second - first**2 + 1e-9 * sums * square
            middle = (second * left - first * right) / det
            slope = (sums * right - first * left) / det
        return cls(u, middle, slope, usual, float(least), float(largest), mean)

    def smoothed(self, smoothing: int) -> TwoCurves:
        """Increasing curves through the quantiles, averaged."""
        over, wide = SMOOTHINGS[smoothing]
        middle = _averaged(self.u, self.middle, wide)
        narrow = _averaged(self.u, self.middle + (self.high - self.usual) * self.slope, over)
        share = (self.usual - self.low) / max(self.high - self.usual, 1e-9)
        ends = [np.maximum.accumulate(end) for end in (middle - share * (narrow - middle), narrow)]
        lifted = [end + FLAT * (self.u - self.u[0]) for end in ends]
        curves = TwoCurves(self.u, lifted[0], lifted[1], self.low, self.high)
        # Averages of quantiles blur, but must not move the mean.
        one = curves.of_row(self.usual)
        even = ndtri((np.arange(1000) + 0.5) / 1000)
        most = 0.2 * one.spread
        shift = float(np.clip(self.mean - one.residual(even).mean(), -most, most))
        return TwoCurves(self.u, lifted[0] + shift, lifted[1] + shift, self.low, self.high)


@dataclass
class TwoCurves:
    """Two increasing curves of normal noise and those between; see the module's description.

    Attributes
    ----------
    u, wide, narrow : ndarray (knots,)
        Noise, and residuals divided by the spread where that is largest, and smallest.
    low, high : float
        The inverse of the spread there.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> u, s = rng.normal(size=4000), rng.uniform(0.5, 4, size=4000)
    >>> both = Quantiles.of(np.sign(u) + u / s, 1 / s, np.ones(4000)).smoothed(5)
    >>> (both.at(np.log(np.array([2.0]))).residual(np.ones(1)) * 2).round(1)
    array([3.])
    """

    u: np.ndarray
    wide: np.ndarray
    narrow: np.ndarray
    low: float
    high: float

    @property
    def slope(self) -> np.ndarray:
        """How quantiles follow the inverse of the spread."""
        return (self.narrow - self.wide) / max(self.high - self.low, 1e-9)

    def at(self, log_scale: np.ndarray) -> NoiseCurve:
        """The curve of each row, divided by its spread."""
        inverse = np.clip(np.exp(-log_scale), self.low, self.high)
        share = (inverse - self.low) / max(self.high - self.low, 1e-9)
        low, high = _slopes(self.u, self.wide), _slopes(self.u, self.narrow)
        e, slope = RowValues(self.wide, self.narrow, share), RowValues(low, high, share, FLAT)
        return NoiseCurve(self.u, e, slope)

    def of_row(self, inverse: float) -> NoiseCurve:
        """The curve of one row, by the inverse of its spread."""
        row, every = self.at(-np.log(np.full(1, inverse))), np.arange(len(self.u))
        return NoiseCurve(self.u, row.e[every], row.slope[every])

    @property
    def typical(self) -> NoiseCurve:
        """The curve of a row whose spread is neither small nor large."""
        return self.of_row(float(np.sqrt(self.low * self.high)))

    @property
    def spread(self) -> float:
        """Half the distance between the residuals at one standard deviation of noise."""
        return self.typical.spread

    def array(self) -> np.ndarray:
        """Rows of numbers, from which `from_array` makes it again."""
        ends = np.resize([self.low, self.high], len(self.u))
        return np.stack([self.u, self.wide, self.narrow, ends])

    @classmethod
    def from_array(cls, rows: np.ndarray) -> TwoCurves:
        return cls(rows[0], rows[1], rows[2], float(rows[3, 0]), float(rows[3, 1]))


def choose_smoothing(
    parts: Mapping[int, Quantiles],
    e: np.ndarray,
    log_scale: np.ndarray,
    w: np.ndarray,
    folds: np.ndarray,
) -> int:
    """The simplest smoothing that held-out rows do not contradict; ``parts``: without each fold."""
    scores = np.empty((len(SMOOTHINGS), len(e)))
    for k, part in parts.items():
        out = folds == k
        for number, density in enumerate(scores):
            density[out] = part.smoothed(number).at(log_scale[out]).log_density(e[out])
    best = int(np.argmax(scores @ w))
    for number in range(best):
        gain = scores[best] - scores[number]
        if np.average(gain, weights=w) <= gain.std() / np.sqrt(len(gain)):
            return number
    return best


def _averaged(u: np.ndarray, values: np.ndarray, width: float) -> np.ndarray:
    """Local lines through values at even places, weighted by how sure their quantiles are."""
    sure = np.exp(-0.5 * u**2)
    if np.isinf(width):
        near = np.broadcast_to(sure, (len(u), len(u)))
    else:
        # In the tails rows are few, so the width grows there.
        wide = np.maximum(width, 0.7 * np.abs(u) * width**0.5)
        near = np.exp(-0.5 * ((u - u[:, None]) / wide[:, None]) ** 2) * sure**0.25
    total = near.sum(1)
    u0, v0 = near @ u / total, near @ values / total
    slope = (near @ (u * values) / total - u0 * v0) / np.maximum(near @ u**2 / total - u0**2, 1e-12)
    return v0 + slope * (u - u0)


def _slopes(u: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Slopes at the knots of an increasing curve: harmonic means, so that it stays increasing."""
    secant = np.diff(values) / np.diff(u)
    inner = 2.0 * secant[1:] * secant[:-1] / np.maximum(secant[1:] + secant[:-1], 1e-300)
    return np.concatenate([secant[:1], inner, secant[-1:]])
