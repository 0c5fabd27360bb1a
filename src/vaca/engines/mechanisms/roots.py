"""Roots: columns without causes are distributed as they were observed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from vaca.engines.mechanisms.noise import NoiseCurve

__all__ = ["Root", "Together"]

#: A value with this many times the weight of a usual one is drawn as itself, not smoothed away.
ATOM = 2.5


@dataclass
class Root:
    """Quantiles of the observed values, straight between them, flat where a value repeats.

    Parameters
    ----------
    p, v : ndarray (points,)
        Probabilities and the values at them; both never fall.
    """

    p: np.ndarray
    v: np.ndarray

    @classmethod
    def fit(cls, y: np.ndarray, w: np.ndarray) -> Root:
        """The weighted quantiles of values ``y``."""
        values, place = np.unique(y, return_inverse=True)
        mass = np.bincount(place, w)
        count = np.bincount(place)
        above = np.cumsum(mass) / mass.sum()
        below = above - mass / mass.sum()
        atom = count > ATOM * np.median(count)
        if np.median(count) > 1:
            atom[:] = True  # rounded: only observed values occur
        p = np.where(atom[:, None], np.stack([below, above], 1), (below + above)[:, None] / 2)
        v = np.repeat(values[:, None], 2, 1)
        keep = np.stack([np.ones(len(values), bool), atom], 1)
        return cls(p[keep], v[keep])

    def words(self) -> str:
        """What a person reads in the leaderboard."""
        return "as observed"

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Noise of n rows."""
        return rng.standard_normal(n)

    def value(self, x: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Values (n,) of noise ``u`` (n,)."""
        p = ndtr(u)
        k = np.clip(np.searchsorted(self.p, p), 1, len(self.p) - 1) if len(self.p) > 1 else 0
        if isinstance(k, int):
            return np.full(len(u), self.v[0])
        width = self.p[k] - self.p[k - 1]
        share = np.clip((p - self.p[k - 1]) / np.where(width > 0, width, 1.0), 0.0, 1.0)
        low, high = self.v[k - 1], self.v[k]
        return np.where(low == high, low, low + (high - low) * share)

    def noise(self, x: np.ndarray, y: np.ndarray, rng: np.random.Generator | None) -> np.ndarray:
        """Noise (n,) of values; of one that repeats, anywhere within its share."""
        first = np.searchsorted(self.v, y, side="left")
        last = np.searchsorted(self.v, y, side="right") - 1
        known = last >= first
        top = len(self.p) - 1
        middle = np.interp(y, self.v, self.p) if top else np.full(len(y), 0.5)
        low = np.where(known, self.p[np.minimum(first, top)], middle)
        high = np.where(known, self.p[np.clip(last, 0, top)], middle)
        share = 0.5 if rng is None else rng.random(len(y))
        return ndtri(np.clip(low + (high - low) * share, 1e-12, 1 - 1e-12))

    def log_density(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Log-density (n,) of values, smoothed; the log-share of one that repeats."""
        first = np.searchsorted(self.v, y, side="left")
        last = np.searchsorted(self.v, y, side="right") - 1
        share = np.where(last > first, self.p[np.clip(last, 0, None)], 0.0)
        share = share - np.where(last > first, self.p[np.clip(first, 0, len(self.p) - 1)], 0.0)
        p = (np.arange(2000) + 0.5) / 2000
        values = self.value(x, ndtri(p))
        unit = float(np.abs(values).max())
        # Squares of squares are taken: of numbers beyond these they are infinite, or 0.
        unit = 1.0 if 1e-50 < unit < 1e50 or unit == 0.0 else unit
        told = NoiseCurve.fit(values / unit).log_density(y / unit) - np.log(unit)
        return np.where(share > 0, np.log(np.maximum(share, 1e-300)), told)

    def refit(self, x: Any, y: np.ndarray, w: np.ndarray, folds: Any, rng: Any) -> Root:
        """The quantiles of weighted rows."""
        return Root.fit(y, w)

    def arrays(self) -> dict[str, np.ndarray]:
        return {"p": self.p, "v": self.v}

    @classmethod
    def from_arrays(cls, state: dict[str, np.ndarray]) -> Root:
        return cls(state["p"], state["v"])


@dataclass
class Together:
    """A column of a block without causes: its noise is its value, drawn with the block's others.

    Rows of the block are drawn whole, so whatever ties its columns together is kept.
    """

    levels: int = 0

    def words(self) -> str:
        """What a person reads in the leaderboard."""
        return "as observed, row by row"

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Room for the values of n rows, which the engine draws for the whole block."""
        return np.zeros(n)

    def value(self, x: np.ndarray, u: np.ndarray) -> np.ndarray:
        """The noise itself."""
        return u

    def noise(self, x: np.ndarray, y: np.ndarray, rng: np.random.Generator | None) -> np.ndarray:
        """The value itself."""
        return np.asarray(y, float)

    def log_levels(self, x: np.ndarray) -> np.ndarray:
        """Not defined for a single column of a block."""
        return np.zeros((len(x), self.levels))

    def log_density(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Nothing: likelihoods are those of the other columns given the block."""
        return np.zeros(len(y))

    def refit(self, x: Any, y: np.ndarray, w: np.ndarray, folds: Any, rng: Any) -> Together:
        """There is nothing to fit."""
        return self

    def arrays(self) -> dict[str, np.ndarray]:
        return {"levels": np.array([self.levels])}

    @classmethod
    def from_arrays(cls, state: dict[str, np.ndarray]) -> Together:
        return cls(int(state["levels"][0]))
