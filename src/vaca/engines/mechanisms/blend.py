r"""Several candidates for one column, each with its share.

.. math:: m(x) = \sum_k a_k m_k(x), \qquad a_k \ge 0, \quad \sum_k a_k = 1

Where rows are few, the candidate that predicts held-out rows best does so partly by chance, and
what several agree on is nearer to the truth. Locations of numbers are averaged, and probabilities
of levels, with the shares that predict best the rows which no candidate had seen. Beyond the data,
and in thin tails, the first goes on alone: the simplest that cannot be told from the best one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import nnls
from scipy.special import log_softmax, logsumexp

from vaca.engines.mechanisms.designs import Array, moved_steps
from vaca.engines.mechanisms.levels import Levels
from vaca.engines.mechanisms.locations import Linear, crossfit, linear_arrays, linear_of

__all__ = [
    "Blend",
    "Mixture",
    "ends",
    "in_words",
    "kept",
    "levels_of",
    "likeliest_shares",
    "location_of",
    "nearest_shares",
]

#: The share of rows at each end of an input where the first goes on alone.
TAIL = 0.01
#: Candidates with a smaller share are left out, and all but so many.
LEAST_SHARE, MOST_PARTS = 0.05, 4


@dataclass
class Blend:
    """Locations of a number, each with its share.

    Attributes
    ----------
    parts : list of Linear
        The first goes on alone beyond the data.
    shares : ndarray (parts,)
    weighted : ndarray (parts,)
        Whether a part is fitted with more weight on rows with less noise.
    low, high : ndarray (features,)
        See `ends`.
    """

    parts: list[Linear]
    shares: Array
    weighted: Array
    low: Array
    high: Array

    @property
    def terms(self) -> int:
        """Numbers that were fitted."""
        return sum(part.terms for part in self.parts)

    def __call__(self, x: Array) -> Array:
        near = np.clip(x, self.low, self.high)
        first = self.parts[0](near)
        mean = self.shares[0] * first
        for part, share in zip(self.parts[1:], self.shares[1:], strict=True):
            mean += share * part(near)
        beyond = (near != x).any(1)
        if beyond.any():
            mean[beyond] += self.parts[0](x[beyond]) - first[beyond]
        return mean

    def refit(self, x: Array, t: Array, w: Array, own: Array, folds: Array) -> tuple[Blend, Array]:
        """The same parts with the same shares, and each row's location by the other folds' rows.

        ``own`` (n,) is what rows count by their noise, besides their weights ``w``.
        """
        parts, mean = [], np.zeros(len(t))
        for part, share, weighted in zip(self.parts, self.shares, self.weighted, strict=True):
            design = moved_steps(part.design, x, t, w)
            by = w * own if weighted else w
            fitted, told = crossfit(design, design(x), t, by, folds, part.strength)
            parts.append(fitted)
            mean += share * told
        return replace(self, parts=parts), mean

    def arrays(self) -> dict[str, Array]:
        """All numbers; see `location_of`."""
        state = {k: np.asarray(v) for k, v in vars(self).items() if k != "parts"}
        for number, part in enumerate(self.parts):
            state |= {f"{number}.{k}": v for k, v in linear_arrays(part).items()}
        return state


def location_of(state: dict[str, Array]) -> Linear | Blend:
    """The location of `Blend.arrays` or `linear_arrays`."""
    if "shares" not in state:
        return linear_of(state)
    parts = [linear_of(_part(state, f"{k}.")) for k in range(len(state["shares"]))]
    return Blend(parts, **{k: state[k] for k in ("shares", "weighted", "low", "high")})


@dataclass
class Mixture:
    """Mechanisms of a column with levels, each with its share; see `Blend`."""

    parts: list[Levels]
    shares: Array
    low: Array
    high: Array

    def log_levels(self, x: Array) -> Array:
        """Log-probabilities (n, levels)."""
        near = np.clip(x, self.low, self.high)
        told = np.stack([part.log_levels(near) for part in self.parts])
        with np.errstate(divide="ignore"):  # the first may have no share
            log_p = logsumexp(told + np.log(self.shares)[:, None, None], axis=0)
        beyond = (near != x).any(1)
        if beyond.any():
            further = self.parts[0].log_levels(x[beyond]) - told[0, beyond]
            log_p[beyond] = log_softmax(log_p[beyond] + further, axis=1)
        return log_p

    def log_density(self, x: Array, y: Array) -> Array:
        """Log-probability (n,) of levels."""
        return self.log_levels(x)[np.arange(len(y)), y]

    def refit(self, x: Array, y: Array, w: Array, folds: Array, rng: Any) -> Mixture:
        """The same parts fitted to weighted rows, with the same shares."""
        return replace(self, parts=[part.refit(x, y, w, folds, rng) for part in self.parts])

    def arrays(self) -> dict[str, Array]:
        """All numbers; see `from_arrays`."""
        state = {k: np.asarray(v) for k, v in vars(self).items() if k != "parts"}
        for number, part in enumerate(self.parts):
            state |= {f"{number}.{k}": v for k, v in part.arrays().items()}
        return state

    @classmethod
    def from_arrays(cls, state: dict[str, Array]) -> Mixture:
        """The mixture of `arrays`."""
        parts = [Levels.from_arrays(_part(state, f"{k}.")) for k in range(len(state["shares"]))]
        return cls(parts, **{k: state[k] for k in ("shares", "low", "high")})


def levels_of(state: dict[str, Array]) -> Levels | Mixture:
    """The mechanism of `Levels.arrays` or `Mixture.arrays`."""
    return (Mixture if "shares" in state else Levels).from_arrays(state)


def _part(state: dict[str, Array], prefix: str) -> dict[str, Array]:
    return {k[len(prefix) :]: v for k, v in state.items() if k.startswith(prefix)}


# ---------------------------------------------------------------------- shares


def nearest_shares(told: Array, t: Array, w: Array) -> Array:
    """Shares (k,) whose sum of ``told`` (n, k) is nearest to ``t``; they add up to one.

    >>> t = np.arange(6.0)
    >>> nearest_shares(np.stack([t + 1, t - 3, -t], 1), t, np.ones(6)).round(3)
    array([0.75, 0.25, 0.  ])
    """
    root = np.sqrt(w)
    middle = float(np.average(t, weights=w))  # of shares that add up to one it takes nothing away
    a, b = (told - middle) * root[:, None], (t - middle) * root
    size = 1e4 * (float(np.linalg.norm(b)) or 1.0)
    found = nnls(np.vstack([a, np.full(told.shape[1], size)]), np.append(b, size))[0]
    return found / found.sum()


def likeliest_shares(log_p: Array, w: Array) -> Array:
    """Shares (k,) of the mixture of densities ``log_p`` (n, k) that is likeliest.

    >>> likeliest_shares(np.log([[0.9, 0.1], [0.9, 0.1], [0.1, 0.9]]), np.ones(3)).round(2)
    array([0.71, 0.29])
    """
    p = np.exp(log_p - log_p.max(1, keepdims=True))
    shares = np.full(p.shape[1], 1.0 / p.shape[1])
    for _ in range(300):  # expectation and maximisation
        own = p * shares
        shares = w @ (own / own.sum(1, keepdims=True)) / w.sum()
    return shares


def kept(shares: Array) -> Array:
    """The numbers of the candidates with large shares, and of the first in any case.

    >>> kept(np.array([0.0, 0.02, 0.2, 0.78]))
    array([0, 2, 3])
    """
    largest = np.argsort(-shares, kind="stable")[:MOST_PARTS]
    return np.union1d([0], largest[shares[largest] > LEAST_SHARE])


def ends(x: Array) -> tuple[Array, Array]:
    """Between which values of each input rows are dense enough to average candidates."""
    low, high = np.quantile(x, [TAIL, 1.0 - TAIL], axis=0)
    return low, high


def in_words(shares: Array, names: Sequence[str]) -> str:
    """What a person reads in the leaderboard.

    >>> in_words(np.array([0.25, 0.75]), ["linear", "curves"])
    '75 % curves + 25 % linear'
    """
    total = dict.fromkeys(names, 0.0)  # two may differ in their spread only
    for share, name in zip(shares, names, strict=True):
        total[name] += share
    some = sorted(((s, n) for n, s in total.items() if s > 0), key=lambda part: -part[0])
    if len(some) == 1:
        return some[0][1]
    return " + ".join(f"{100 * share:.0f} % {name}" for share, name in some)
