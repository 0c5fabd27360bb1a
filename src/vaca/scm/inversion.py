"""Solving x = f(u) for the noise u, one value per row, when nobody wrote the inverse down.

Three cases are tried in turn: f(u) = c + u (subtract), integer noise with few values (try them
all), and f monotone in u (bisection). Where more than one u gives x, or none can be found, the
answer is NaN: the caller decides what to do without it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = ["solve_noise"]

#: Noise values with which an equation is probed for being additive or monotone.
_PROBES = 33
#: More distinct integer values than this are not tried one by one.
_FEW = 256
#: Two solutions further apart than this (relative to 1 + |u|) count as two.
_SAME = 1e-6


def solve_noise(
    f: Callable[[np.ndarray], np.ndarray], x: np.ndarray, draws: np.ndarray
) -> np.ndarray:
    """Give the u with f(u) = x in every row, NaN where it is not determined.

    Parameters
    ----------
    f
        The equation with its parents filled in: array (n,) of noise -> array (n,) of values.
    x
        The values to explain, shape (n,).
    draws
        A sample from the noise distribution; tells its type and where to look.

    Returns
    -------
    u : array of shape (n,)

    Examples
    --------
    >>> draws = np.random.default_rng(0).standard_normal(1000)
    >>> solve_noise(lambda u: 2.0 + u, np.array([1.5, 3.0]), draws)
    array([-0.5,  1. ])
    >>> solve_noise(lambda u: u**3, np.array([8.0, -1.0]), draws).round(9)
    array([ 2., -1.])
    >>> solve_noise(lambda u: u**2, np.array([4.0]), draws)
    array([nan])
    """
    if not len(x):
        return np.zeros(0)
    whole = np.issubdtype(draws.dtype, np.integer)
    distinct = np.unique(draws)
    probes = distinct[np.unique(np.linspace(0, len(distinct) - 1, _PROBES).astype(int))]
    with np.errstate(all="ignore"):
        found = np.full(len(x), np.nan)
        if whole and len(distinct) <= _FEW:
            found = _try_all(f, x, distinct)
            if np.isfinite(found).all():
                return found
        offset = _additive(f, x, probes)
        if offset is not None:
            return x - offset
        return found if whole else _bisect(f, x, probes)


def _try_all(
    f: Callable[[np.ndarray], np.ndarray], x: np.ndarray, values: np.ndarray
) -> np.ndarray:
    hits = np.zeros(len(x), dtype=int)
    found = np.full(len(x), np.nan)
    for value in values:
        hit = f(np.full(len(x), value)) == x
        hits += hit
        found[hit] = value
    found[hits > 1] = np.nan
    return found


def _additive(
    f: Callable[[np.ndarray], np.ndarray], x: np.ndarray, probes: np.ndarray
) -> np.ndarray | None:
    first, *others = probes
    base = f(np.full(len(x), first))
    for value in others:
        rise = f(np.full(len(x), value)) - base
        tolerance = 1e-9 * (1 + np.abs(base) + abs(value) + abs(first))
        if not (np.abs(rise - (value - first)) <= tolerance).all():
            return None
    return base - first


def _bisect(f: Callable[[np.ndarray], np.ndarray], x: np.ndarray, probes: np.ndarray) -> np.ndarray:
    n = len(x)
    values = np.stack([f(np.full(n, value)) for value in probes])
    steps = np.diff(values, axis=0)
    rising, falling = (steps >= 0).all(axis=0), (steps <= 0).all(axis=0)
    monotone = rising != falling  # both: constant in u; neither: it turns around
    sign = np.where(falling, -1.0, 1.0)
    middle = probes[len(probes) // 2]

    def gap(u: np.ndarray) -> np.ndarray:
        """How far f(u) lies beyond x, rising in u; outside the domain of f, infinitely far."""
        beyond = sign * (f(u) - x)
        return np.where(np.isnan(beyond), np.where(u < middle, -np.inf, np.inf), beyond)

    low, high = _bracket(gap, np.full(n, probes[0]), np.full(n, probes[-1]))
    least = _boundary(low, high, lambda u: gap(u) < 0)[1]
    most = _boundary(low, high, lambda u: gap(u) <= 0)[0]
    u = np.where(np.abs(gap(least)) <= np.abs(gap(most)), least, most)
    one = np.abs(most - least) <= _SAME * (1 + np.abs(u))
    return np.where(monotone & one, u, np.nan)


def _bracket(
    gap: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    width = high - low
    for _ in range(60):
        short, far = gap(low) >= 0, gap(high) <= 0
        if not (short.any() or far.any()):
            break
        low = np.where(short, low - width, low)
        high = np.where(far, high + width, high)
        width = 2 * width
    return low, high


def _boundary(
    low: np.ndarray, high: np.ndarray, below: Callable[[np.ndarray], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Narrow [low, high] down to neighbouring numbers with below(low) and not below(high)."""
    for _ in range(90):
        middle = low + (high - low) / 2
        if ((middle == low) | (middle == high)).all():
            break
        is_below = below(middle)
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    return low, high
