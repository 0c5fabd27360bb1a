r"""The distribution of what a location-scale mechanism leaves, as a smooth increasing curve.

.. math:: e = Q(u), \qquad u \sim N(0, 1)

:math:`Q` is a rational-quadratic spline through smoothed quantiles, straight beyond the outermost
ones. It is increasing and has a closed inverse, so noise is abducted exactly, and it has a density.
Quantiles are smoothed as :math:`\operatorname{arsinh}` of the residuals, in which heavy tails are
nearly straight; one line through all of them is Johnson's :math:`S_U` distribution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

__all__ = ["NoiseCurve", "RowValues", "log_between"]

#: A width beyond all quantiles: one curve with two tails through all of them.
TAILED = 9.0
#: Widths, in standard deviations of u, over which quantiles are averaged; infinite: a normal.
WIDTHS = (np.inf, TAILED, 0.35, 0.12, 0.04)
#: Where residuals begin to count by their logarithm, in standard deviations of their middle, for
#: the one curve and for averages: straight lines through far quantiles would draw tails out.
BENDS_AT, AVERAGES_BEND_AT = 1.0, 2.0
#: The least slope of the curve, in units of the column: what counts as no noise.
FLAT = 1e-7
_BINS = 800
#: Noise at evenly spread probabilities, for averages.
_EVEN = ndtri((np.arange(1000) + 0.5) / 1000)


@dataclass
class NoiseCurve:
    """An increasing curve from standard normal noise to residuals.

    Parameters
    ----------
    u, e, slope : ndarray (knots,)
        The curve and its slope at the knots; e and slope may be `RowValues`, each row's own.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> residual = np.where(rng.random(2000) < 0.5, -2, 2) + 0.3 * rng.normal(size=2000)
    >>> curve = NoiseCurve.fit(residual)
    >>> bool(np.allclose(curve.residual(curve.noise(residual)), residual))
    True
    """

    u: np.ndarray
    e: Any
    slope: Any

    @classmethod
    def fit(
        cls,
        residual: np.ndarray,
        weights: np.ndarray | None = None,
        width: float = 0.12,
        order: np.ndarray | None = None,
    ) -> NoiseCurve:
        """The curve of residuals (n,), smoothed over ``width``; ``order`` sorts them, if known."""
        if weights is not None and 0 < (counts := weights > 0).sum() < len(weights):
            residual, weights, order = residual[counts], weights[counts], None
        order = np.argsort(residual, kind="stable") if order is None else order
        e = residual[order]
        w = np.ones(len(e)) if weights is None else np.maximum(weights[order], 1e-12)
        if np.isinf(width):
            mean = float(np.average(e, weights=w))
            spread = max(float(np.sqrt(np.average((e - mean) ** 2, weights=w))), FLAT)
            return cls(
                np.array([-1.0, 1.0]), mean + spread * np.array([-1.0, 1.0]), np.full(2, spread)
            )
        share = (np.cumsum(w) - 0.5 * w) / w.sum()
        u = ndtri(share)
        low, middle, high = np.interp([0.16, 0.5, 0.84], share, e)
        unit = (BENDS_AT if width == TAILED else AVERAGES_BEND_AT) * (high - low) / 2 or 1.0
        e = np.arcsinh((e - middle) / unit)
        if len(e) > 2 * _BINS:
            edges = np.linspace(u[0], u[-1], _BINS + 1)
            place = np.clip(np.searchsorted(edges, u, side="right") - 1, 0, _BINS - 1)
            total = np.bincount(place, w, _BINS)
            some = total > 0
            u = np.bincount(place, w * u, _BINS)[some] / total[some]
            e = np.bincount(place, w * e, _BINS)[some] / total[some]
            w = total[some]
        most = min(float(-u[0]), float(u[-1]), 3.5)
        count = 13 if width == TAILED else max(5, int(np.ceil(2 * most / (1.3 * width))))
        knots = np.linspace(-most, most, count)
        # Local lines: for normal residuals they are the line itself, whatever the width. In the
        # tails rows are few, so the width grows there.
        spread = np.maximum(width, 0.7 * np.abs(knots) * width**0.5)
        near = np.exp(-0.5 * ((u - knots[:, None]) / spread[:, None]) ** 2)
        # Quantiles, not rows, count the same: else tails would lean on the middle. The one curve
        # has the tails that most rows speak for.
        near *= w if width == TAILED or len(u) <= 2 else np.gradient(u)
        total = near.sum(1)
        u0, e0 = near @ u / total, near @ e / total
        var = near @ u**2 / total - u0**2
        slope = (near @ (u * e) / total - u0 * e0) / np.maximum(var, 1e-12)
        e0 = e0 + slope * (knots - u0)
        curve = cls._increasing(knots, middle + unit * np.sinh(e0), slope * unit * np.cosh(e0))
        # Averages of quantiles blur, but must not move the mean: effects are differences of means.
        shift = np.average(residual, weights=weights) - curve.residual(_EVEN).mean()
        curve.e = curve.e + np.clip(shift, -0.2 * curve.spread, 0.2 * curve.spread)
        return curve

    @classmethod
    def _increasing(cls, u: np.ndarray, e: np.ndarray, slope: np.ndarray) -> NoiseCurve:
        step = np.diff(u)
        e = np.maximum.accumulate(e)
        e = e + FLAT * (u - u[0])
        secant = np.diff(e) / step
        low = np.minimum(np.append(secant, np.inf), np.append(np.inf, secant))
        high = np.maximum(np.append(secant, 0.0), np.append(0.0, secant))
        return cls(u, e, np.clip(slope, np.maximum(low / 2, FLAT), 2 * high + FLAT))

    def at(self, log_scale: np.ndarray) -> NoiseCurve:
        """The curve of rows of these spreads: the same for all."""
        return self

    def array(self) -> np.ndarray:
        """Rows of numbers that make it again."""
        return np.stack([self.u, self.e, self.slope])

    @property
    def typical(self) -> NoiseCurve:
        """The curve of a usual row."""
        return self

    @property
    def spread(self) -> float:
        """Half the distance between the residuals at one standard deviation of noise."""
        low, high = self.residual(np.array([-1.0, 1.0]))
        return float(high - low) / 2

    def residual(self, u: np.ndarray) -> np.ndarray:
        """The residual of noise ``u``."""
        k, inside = self._place(u, self.u)
        width, height, d0, d1 = self._segment(k)
        t = (u - self.u[k]) / width
        s = height / width
        rise = height * (s * t**2 + d0 * t * (1 - t)) / (s + (d0 + d1 - 2 * s) * t * (1 - t))
        return np.where(inside, self.e[k] + rise, self._beyond(u, self.u, self.e, self.slope))

    def noise(self, e: np.ndarray) -> np.ndarray:
        """The noise of a residual: the inverse of `residual`."""
        k, inside = self._place(e, self.e)
        return np.where(
            inside, self.u[k] + self._share(e, k) * self._segment(k)[0],
            self._beyond(e, self.e, self.u, (1.0 / self.slope[0], 1.0 / self.slope[-1])),
        )  # fmt: skip

    def log_density(self, e: np.ndarray) -> np.ndarray:
        """Log-density of a residual."""
        k, inside = self._place(e, self.e)
        width, height, d0, d1 = self._segment(k)
        t = np.where(inside, self._share(e, k), 0.5)
        s = height / width
        top = s**2 * (d1 * t**2 + 2 * s * t * (1 - t) + d0 * (1 - t) ** 2)
        slope = top / (s + (d0 + d1 - 2 * s) * t * (1 - t)) ** 2
        ends = np.where(e < self.e[0], self.slope[0], self.slope[-1])
        slope = np.where(inside, slope, ends)
        u = self.noise(e)
        return -0.5 * u**2 - 0.5 * np.log(2 * np.pi) - np.log(np.maximum(slope, 1e-300))

    def ends(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The noise of two residuals, which may be infinite."""
        a, b = (
            np.where(np.isinf(v), v, self.noise(np.where(np.isinf(v), 0.0, v))) for v in (low, high)
        )
        return a, b

    def cell(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Log-probability of a residual between ``low`` and ``high``."""
        return log_between(*self.ends(low, high))

    def _place(self, at: np.ndarray, knots: Any) -> tuple[np.ndarray, np.ndarray]:
        own = isinstance(knots, RowValues)
        before = knots.before(at) if own else np.searchsorted(knots, at, side="right")
        k = np.clip(before - 1, 0, len(knots) - 2)
        return k, (at >= knots[0]) & (at <= knots[-1])

    def _segment(self, k: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return (
            np.diff(self.u)[k], self.e[k + 1] - self.e[k], self.slope[k], self.slope[k + 1],
        )  # fmt: skip

    def _share(self, e: np.ndarray, k: np.ndarray) -> np.ndarray:
        """Where in its segment a residual lies, 0 to 1: a root of a quadratic."""
        width, height, d0, d1 = self._segment(k)
        s, y = height / width, (e - self.e[k])
        bend = d0 + d1 - 2 * s
        a = height * (s - d0) + y * bend
        b = height * d0 - y * bend
        c = -s * y
        root = np.sqrt(np.maximum(b**2 - 4 * a * c, 0.0))
        return np.clip(2 * c / np.minimum(-b - root, -1e-300), 0.0, 1.0)

    @staticmethod
    def _beyond(at: np.ndarray, knots: Any, values: Any, slope: Any) -> np.ndarray:
        low = values[0] + slope[0] * (at - knots[0])
        return np.where(at < knots[0], low, values[-1] + slope[-1] * (at - knots[-1]))


@dataclass
class RowValues:
    """Increasing numbers at knots, every row's between those of two curves.

    They are worked out where they are asked for: of many rows a table of all would not fit.

    Parameters
    ----------
    low, high : ndarray (knots,)
    share : ndarray (n,)
        How far each row is on the way from one to the other.
    least : float
        No number is below it.
    """

    low: np.ndarray
    high: np.ndarray
    share: np.ndarray
    least: float = -np.inf

    def __len__(self) -> int:
        return len(self.low)

    def __getitem__(self, k: Any) -> np.ndarray:
        """Each row's number at its knot ``k`` (n,), or at one that is the same for all."""
        return np.maximum(self.low[k] + (self.high[k] - self.low[k]) * self.share, self.least)

    def before(self, at: np.ndarray) -> np.ndarray:
        """How many of each row's numbers are at most ``at`` (n,)."""
        low, high = np.zeros(len(at), int), np.full(len(at), len(self))
        for _ in range(len(self).bit_length()):
            middle = (low + high) // 2
            found = (low < high) & (self[np.minimum(middle, len(self) - 1)] <= at)
            low, high = np.where(found, middle + 1, low), np.where(found, high, middle)
        return low


def log_between(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Log-probability of a standard normal between two ends; at least that of a trillionth."""
    flip = low > 0
    low, high = np.where(flip, -high, low), np.where(flip, -low, high)
    return np.log(np.maximum(ndtr(high) - ndtr(low), 1e-12))
