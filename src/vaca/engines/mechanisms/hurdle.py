r"""A value that repeats at the edge of a column, such as no earnings or no hours: a hurdle.

.. math:: x_j = c \text{ if } \Phi(u_j) < p(x_{pa(j)}), \text{ else } F\big(u_j'\big), \quad
          \Phi(u_j') = \frac{\Phi(u_j) - p}{1 - p}

with :math:`c` the edge (here the lowest value), :math:`p` its probability and :math:`F` a mechanism
of the other values. The column is increasing in its noise; at the edge the noise is known up to an
interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from vaca.engines.mechanisms.blend import Mixture, levels_of
from vaca.engines.mechanisms.levels import Levels
from vaca.engines.mechanisms.numeric import Numeric

__all__ = ["Hurdle", "edge_of"]

#: A value is an edge if it is this share of the rows, and this many times as common as any other.
SHARE, TIMES = 0.02, 5.0
#: The same for counts, whose values all repeat.
COUNT_TIMES = 1.2
_LEAST = 1e-9


@dataclass
class Hurdle:
    """Whether a row is at the edge, and what it is if not."""

    edge: float
    top: bool
    at: Levels | Mixture
    other: Numeric

    def _share(self, x: np.ndarray) -> np.ndarray:
        """Probability (n,) of the edge."""
        return np.clip(np.exp(self.at.log_levels(x)[:, 1]), _LEAST, 1 - _LEAST)

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Noise of n rows."""
        return rng.standard_normal(n)

    def value(self, x: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Values (n,) from inputs and noise."""
        u, p = (-u if self.top else u), self._share(x)
        rest = np.clip((ndtr(u) - p) / (1 - p), _LEAST, 1 - _LEAST)
        inner = ndtri(rest)
        # Far up the upper tail the difference from one is what counts.
        inner = np.where(u > 3, -ndtri(np.clip(ndtr(-u) / (1 - p), 1e-300, 1 - _LEAST)), inner)
        value = self.other.value(x, -inner if self.top else inner)
        return np.where(ndtr(u) <= p, self.edge, value)

    def noise(self, x: np.ndarray, y: np.ndarray, rng: np.random.Generator | None) -> np.ndarray:
        """Noise (n,) of values; at the edge, anywhere within its share."""
        p, edge = self._share(x), y == self.edge
        share = 0.5 if rng is None else rng.random(len(y))
        below = ndtri(np.clip(p * share, 1e-300, 1.0))
        inner = self.other.noise(x, np.where(edge, self._usual, y), rng)
        inner = -inner if self.top else inner
        above = -ndtri(np.clip((1 - p) * ndtr(-inner), 1e-300, 1 - _LEAST))
        u = np.where(edge, below, above)
        return -u if self.top else u

    @property
    def _usual(self) -> float:
        """A value that is not the edge."""
        return float(self.other.scale.back(np.zeros(1))[0])

    def log_density(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Log-probability (n,) of the edge, log-density of other values."""
        p, edge = self._share(x), y == self.edge
        other = self.other.log_density(x, np.where(edge, self._usual, y))
        return np.where(edge, np.log(p), np.log1p(-p) + other)

    def refit(
        self, x: np.ndarray, y: np.ndarray, w: np.ndarray, folds: np.ndarray, rng: Any
    ) -> Hurdle:
        """The same mechanism fitted to weighted rows, with the same choices."""
        edge = y == self.edge
        at = self.at.refit(x, edge.astype(np.int64), w, folds, rng)
        rest = ~edge
        other = self.other.refit(x[rest], y[rest], w[rest] / w[rest].mean(), folds[rest], rng)
        return Hurdle(self.edge, self.top, at, other)

    def arrays(self) -> dict[str, np.ndarray]:
        """The mechanism as named arrays; see `from_arrays`."""
        state = {"edge": np.array([self.edge, float(self.top)])}
        state |= {f"at:{k}": v for k, v in self.at.arrays().items()}
        return state | {f"other:{k}": v for k, v in self.other.arrays().items()}

    @classmethod
    def from_arrays(cls, state: dict[str, np.ndarray]) -> Hurdle:
        """The mechanism of `arrays`."""
        at, other = (
            {k.partition(":")[2]: v for k, v in state.items() if k.startswith(part)}
            for part in ("at:", "other:")
        )
        edge, top = state["edge"]
        return cls(float(edge), bool(top), levels_of(at), Numeric.from_arrays(other))


def edge_of(y: np.ndarray, *, count: bool = False) -> tuple[float, bool] | None:
    """The lowest or highest value if it repeats as no other does, and whether it is the highest."""
    values, place = np.unique(y, return_inverse=True)
    if len(values) < (5 if count else 12):
        return None
    rows, times = np.bincount(place), COUNT_TIMES if count else TIMES
    for k, top in ((0, False), (len(values) - 1, True)):
        others = np.delete(rows, k).max()
        if rows[k] >= max(10, SHARE * len(y)) and rows[k] > times * others:
            return float(values[k]), top
    return None
