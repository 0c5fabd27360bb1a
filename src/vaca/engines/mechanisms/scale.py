"""Scales on which a column is fitted: as it is, a logarithm, a logit, or folded at its walls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["PLAIN", "Scale"]

#: Kinds of `Scale` that leave a column as it is, except next to a wall.
PLAIN = (0, 4)
#: How near to a wall a column is folded: this share of the rows, or of the standard deviation.
FOLDED, FOLD = 0.05, 0.25


@dataclass
class Scale:
    """From a column's own units to the ones in which its mechanism is fitted, and back.

    ``kind`` 0: as it is; 1: logarithm above ``low``; 2: logit between ``low`` and ``high``; 3:
    logarithm below ``high``, turned so that it rises; 4: as it is further than ``fold`` from
    ``low`` and ``high``, where these are finite, and logarithms of the distance from them nearer.
    Logarithms are straight beyond ``end``, the largest distance from the wall that was seen: what
    goes on there as an exponential soon is anything.
    """

    kind: int
    low: float
    high: float
    mean: float
    unit: float
    fold: float = 0.0
    end: float = np.inf

    @classmethod
    def of(cls, y: np.ndarray, kind: int = 0, low: float = 0.0, high: float = 1.0) -> Scale:
        fold = 0.0
        if kind == 4:
            near = [np.quantile(d, FOLDED) for d in (y - low, high - y) if np.isfinite(d[0])]
            fold = float(max(min(*near, FOLD * y.std()), 1e-3 * FOLD * y.std()))
        end = float({1: y - low, 3: high - y}.get(kind, np.array([np.inf])).max())
        t = cls(kind, low, high, 0.0, 1.0, fold, end).forward(y)
        unit = float(t.std())
        if not unit > 1e-12 * float(np.abs(t).max(initial=0.0)):
            return cls(kind, low, high, float(t[0]), 0.0, fold, end)  # rounding is no spread
        return cls(kind, low, high, float(t.mean()), unit, fold, end)

    def forward(self, y: np.ndarray) -> np.ndarray:
        if self.kind == 1:
            y = self._log(y - self.low)
        elif self.kind == 3:
            y = -self._log(self.high - y)
        elif self.kind == 2:
            p = np.clip((y - self.low) / (self.high - self.low), 1e-15, 1 - 1e-15)
            y = np.log(p) - np.log1p(-p)
        elif self.kind == 4 and self.fold:
            below, above = self._near(y)
            y = (
                y
                + self.fold * (np.log(below) + 1.0 - below)
                - self.fold * (np.log(above) + 1.0 - above)
            )
        return (y - self.mean) / (self.unit or 1.0)

    def back(self, t: np.ndarray) -> np.ndarray:
        y = t * self.unit + self.mean
        if self.kind == 1:
            return self.low + self._exp(y)
        if self.kind == 3:
            return self.high - self._exp(-y)
        if self.kind == 2:
            return self.low + (self.high - self.low) / (1.0 + np.exp(np.clip(-y, -700, 700)))
        if self.kind == 4 and self.fold:
            for wall, sign in ((self.low, 1.0), (self.high, -1.0)):
                if np.isfinite(wall):
                    far = np.minimum(sign * (y - wall) / self.fold - 1.0, 0.0)
                    y = np.where(far < 0.0, wall + sign * self.fold * np.exp(far), y)
        return y

    def _log(self, distance: np.ndarray) -> np.ndarray:
        straight = np.maximum(distance / self.end - 1.0, 0.0)
        return np.log(np.clip(distance, 1e-300, self.end)) + straight

    def _exp(self, t: np.ndarray) -> np.ndarray:
        last = min(float(np.log(self.end)), 700.0)
        value = np.exp(np.minimum(t, last))
        return value if np.isinf(self.end) else value * (1.0 + np.maximum(t - last, 0.0))

    def _near(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Distances (n,) from the walls in units of the fold, at most 1."""
        below, above = (np.clip(d / self.fold, 1e-6, 1.0) for d in (y - self.low, self.high - y))
        return below, above

    def log_slope(self, y: np.ndarray) -> np.ndarray:
        """Logarithm of the slope of `forward`."""
        slope = np.full(len(y), -np.log(self.unit or 1.0))
        if self.kind == 1:
            slope -= np.log(np.clip(y - self.low, 1e-300, self.end))
        elif self.kind == 3:
            slope -= np.log(np.clip(self.high - y, 1e-300, self.end))
        elif self.kind == 2:
            p = np.clip((y - self.low) / (self.high - self.low), 1e-15, 1 - 1e-15)
            slope -= np.log(p) + np.log1p(-p) + np.log(self.high - self.low)
        elif self.kind == 4 and self.fold:
            below, above = self._near(y)
            slope -= np.log(below) + np.log(above)
        return slope

    def array(self) -> np.ndarray:
        own = [self.kind, self.low, self.high, self.mean, self.unit, self.fold, self.end]
        return np.array(own, float)

    @classmethod
    def from_array(cls, values: np.ndarray) -> Scale:
        return cls(int(values[0]), *(float(v) for v in values[1:]))
