"""Penalised maximum likelihood of log-odds that are linear in terms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.optimize import minimize
from scipy.special import expit

from vaca.engines.mechanisms.designs import Array

__all__ = ["log_ordered", "logistic", "ordered", "ordered_spread"]

#: Probabilities are at least this, for levels that thresholds leave no room.
LEAST = 1e-9
#: The precision with which intercepts and thresholds are pulled to zero.
LOOSE = 1e-4
#: The threshold below, or above, levels that never occurred.
NEVER = 50.0
#: Prior sd of what a standardised input, and of what a level, adds to the logarithm of a spread.
EVEN, EVEN_LEVEL = 1.0, 0.5
#: No spread is further from one than this, as a logarithm.
SPREADS = 4.0


def logistic(
    a: Array, y: Array, w: Array, levels: int, penalty: Array, start: Array | None
) -> Array:
    """Coefficients (terms, levels) of penalised multinomial regression.

    The first term is the intercept, and pays next to nothing.
    """
    seen = np.flatnonzero(np.bincount(y, w, levels) > 0)
    wide = np.zeros((a.shape[1], levels))
    wide[0] = -NEVER
    wide[0, seen] = 0.0
    if len(seen) < 2:
        return wide
    if len(seen) == 2:
        first = None if start is None else start[:, seen[1]] - start[:, seen[0]]
        given = None if first is None else (first[:, None], -first[:1])
        line, cut = ordered(a, (y == seen[1]).astype(int), w, 2, penalty, given)
        line[0] = -cut
        wide[:, seen[1:]] += line
    else:
        code = np.full(levels, -1)
        code[seen] = np.arange(len(seen))
        first = None if start is None else start[:, seen] - start[:, seen].mean(1, keepdims=True)
        wide[:, seen] += _multinomial(a, code[y], w, len(seen), penalty, first)
    return wide


def _multinomial(
    a: Array, y: Array, w: Array, levels: int, penalty: Array, start: Array | None
) -> Array:
    """L-BFGS in coordinates in which the terms are uncorrelated, so that few steps suffice.

    Newton's method takes longer: its matrix has (terms x levels) rows. Levels come first in all
    arrays, for sums over few neighbours are slow.
    """
    total = w.sum()
    price = penalty / total
    price[0] = LOOSE / total
    root = np.linalg.cholesky(_gram(a, w / total) + np.diag(4 * price + 1e-9))
    inverse = solve_triangular(root, np.eye(len(root)), lower=True)
    share, terms = w / total, np.ascontiguousarray(a.T)
    observed = np.zeros((levels, len(y)))
    observed[y, np.arange(len(y))] = share

    def loss(flat: Array) -> tuple[float, Array]:
        beta = flat.reshape(levels, -1) @ inverse
        f = beta @ terms
        f -= f.max(0)
        p = np.exp(f)
        every = p.sum(0)
        value = float(share @ np.log(every) - np.vdot(observed, f) + 0.5 * np.sum(price * beta**2))
        p *= share / every
        p -= observed
        return value, ((p @ a + price * beta) @ inverse.T).ravel()

    first = np.zeros((levels, a.shape[1])) if start is None else start.T @ root
    found = minimize(
        loss, first.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 50, "ftol": 1e-6}
    )
    return (found.x.reshape(levels, -1) @ inverse).T


def log_ordered(f: Array, cuts: Array, unit: Array | None = None) -> Array:
    """Log-probabilities (n, levels) of one score (n,) that is cut at thresholds, in ``unit``."""
    ends = cuts - f[:, None]
    below = expit(ends if unit is None else ends / unit[:, None])
    ends = np.zeros((len(f), 1))
    return np.log(np.maximum(np.diff(np.hstack([ends, below, ends + 1.0]), axis=1), LEAST))


def ordered(
    a: Array, y: Array, w: Array, levels: int, penalty: Array, start: tuple[Array, Array] | None
) -> tuple[Array, Array]:
    r"""Coefficients (terms, 1) and thresholds (levels - 1,) of penalised ordered regression.

    Thresholds take the intercept's place. A level that never occurred has no room between its two.

    The probability of a level between thresholds :math:`b < c` is that of two independent events,
    above the one and below the other, and a factor of the thresholds alone, so the loss is convex:

    .. math:: \sigma(c - f) - \sigma(b - f) = \sigma(c - f)\,\sigma(f - b)\,(1 - e^{b - c})
    """
    count = np.bincount(y, w, levels)
    seen = np.flatnonzero(count > 0)
    beta = np.zeros((a.shape[1], 1))
    if len(seen) < 2:
        return beta, np.where(np.arange(levels - 1) < seen[0], -NEVER, NEVER)
    code = np.zeros(levels, int)
    code[seen] = np.arange(len(seen))
    y, count, m = code[y], count[seen], len(seen) - 1
    terms, price = a[:, 1:], np.append(np.full(m, LOOSE), penalty[1:])
    within = count[1:-1]

    def loss(at: Array) -> tuple[float, Array, Any]:
        cuts, gaps = at[:m], np.diff(at[:m])
        if (gaps <= 0).any():
            return np.inf, at, None
        f, edges = terms @ at[m:], np.concatenate([[-np.inf], cuts, [np.inf]])
        room = np.stack([edges[y + 1] - f, f - edges[y]])  # below the one and above the other
        tail = np.exp(-np.abs(room))
        missed = np.where(room > 0, tail, 1.0) / (1.0 + tail)
        value = w @ (np.log1p(tail) - np.minimum(room, 0.0)).sum(0) + 0.5 * price @ at**2
        between = -np.expm1(-gaps)
        value -= within @ np.log(between)
        pull = w * missed
        slope = price * at
        slope[m:] += (pull[0] - pull[1]) @ terms
        slope[:m] += np.bincount(y, pull[1], m + 1)[1:] - np.bincount(y, pull[0], m + 1)[:-1]
        apart = within * (1.0 - between) / between
        slope[1:m] -= apart
        slope[: m - 1] += apart
        return float(value), slope, (pull * (1.0 - missed), apart / between)

    def curvature(parts: Any) -> Array:
        (high, low), apart = parts
        by_cut = np.zeros((m + 2, len(y)))
        row = np.arange(len(y))
        by_cut[y + 1, row], by_cut[y, row] = high, low
        by_cut = by_cut[1:-1]
        found = np.diag(price)
        found[m:, m:] += _gram(terms, high + low)
        found[:m, m:] = -by_cut @ terms
        found[m:, :m] = found[:m, m:].T
        found[:m, :m] += np.diag(by_cut.sum(1))
        found[:m, :m] += np.diag(np.append(apart, 0.0)) + np.diag(np.insert(apart, 0, 0.0))
        found[:m, :m] -= np.diag(apart, 1) + np.diag(apart, -1)
        return found

    first = None
    if start is not None:
        first = np.append(start[1][seen[:-1]], start[0][1:])
    if first is None or (np.diff(first[:m], prepend=-NEVER, append=NEVER) <= 0).any():
        share = np.cumsum(count + 1e-6 * w.sum())
        share = share[:-1] / share[-1]
        first = np.append(np.log(share) - np.log1p(-share), np.zeros(terms.shape[1]))
    found = _newton(loss, curvature, first)
    beta[1:, 0] = found[m:]
    upto = np.searchsorted(seen, np.arange(levels - 1), side="right")
    return beta, np.concatenate([[-NEVER], found[:m], [NEVER]])[upto]


def ordered_spread(
    a: Array,
    b: Array,
    y: Array,
    w: Array,
    levels: int,
    penalty: Array,
    start: tuple[Array, Array, Array] | None,
) -> tuple[Array, Array, Array]:
    r"""`ordered` with a spread that follows the inputs: also the coefficients (inputs,) of its log.

    .. math:: p(y \le l) = \sigma\big((c_l - a \beta) e^{-b \gamma}\big)

    Thresholds are one and the logarithms of the distances to the others, so they keep their order.
    """
    seen = np.flatnonzero(np.bincount(y, w, levels) > 0)
    if start is None:
        beta, cuts = ordered(a, y, w, levels, penalty, None)
        start = beta, cuts, np.zeros(b.shape[1])
    if len(seen) < 2:
        return start
    code = np.zeros(levels, int)
    code[seen] = np.arange(len(seen))
    y, m, share = code[y], len(seen) - 1, w / w.sum()
    terms, own = a[:, 1:], start[1][seen[:-1]]
    last = m + terms.shape[1]
    low, high = b.min(0), b.max(0)
    jumps = ((b == low) | (b == high)).all(0) & (low < high)
    even = np.where(jumps, (high - low) / EVEN_LEVEL, 1.0 / EVEN) ** 2
    price = np.concatenate([np.zeros(m), penalty[1:], even]) / w.sum()
    price[0] = LOOSE / w.sum()
    gaps = np.log(np.maximum(np.diff(own), 1e-6))
    first = np.concatenate([own[:1], gaps, start[0][1:, 0], start[2]])

    def loss(at: Array) -> tuple[float, Array]:
        gaps = np.exp(np.minimum(at[1:m], 20.0))
        edges = np.concatenate([[-np.inf], at[0] + np.append(0.0, np.cumsum(gaps)), [np.inf]])
        f, unit = terms @ at[m:last], np.exp(-np.clip(b @ at[last:], -SPREADS, SPREADS))
        ends = (edges[np.stack([y, y + 1])] - f) * unit
        below = expit(ends)
        p = np.maximum(below[1] - below[0], LEAST)
        pull = share * below * (1.0 - below) / p
        pull[0] *= -1.0  # the upper end raises the probability, the lower one lowers it
        value = -float(share @ np.log(p)) + 0.5 * float(price @ at**2)
        slope = price * at
        by_end = pull * unit
        cut = np.bincount(y, by_end[1], m + 1)[:-1] + np.bincount(y, by_end[0], m + 1)[1:]
        slope[0] -= cut.sum()
        slope[1:m] -= np.cumsum(cut[:0:-1])[::-1] * gaps
        slope[m:last] += by_end.sum(0) @ terms
        slope[last:] += (pull * np.clip(ends, -1e3, 1e3)).sum(0) @ b
        return value, slope

    found = minimize(
        loss, first, jac=True, method="L-BFGS-B", options={"maxiter": 100, "ftol": 1e-7}
    ).x
    beta = np.zeros((a.shape[1], 1))
    beta[1:, 0] = found[m:last]
    cuts = found[0] + np.append(0.0, np.cumsum(np.exp(found[1:m])))
    upto = np.searchsorted(seen, np.arange(levels - 1), side="right")
    return beta, np.concatenate([[-NEVER], cuts, [NEVER]])[upto], found[last:]


def _newton(
    loss: Callable[[Array], tuple[float, Array, Any]], curvature: Callable[[Any], Array], at: Array
) -> Array:
    """The least loss by Newton's method with halved steps; a matrix serves while it serves well."""
    value, slope, parts = loss(at)
    factor, unit, last = None, np.ones(len(at)), np.inf
    for _ in range(60):
        fresh = factor is None
        if fresh:  # scaled, so that no collinear terms are too much for it
            matrix = curvature(parts)
            unit = np.sqrt(np.diag(matrix))
            factor = cho_factor(matrix / np.outer(unit, unit) + 1e-10 * np.eye(len(unit)))
        step = cho_solve(factor, slope / unit) / unit
        gain = float(slope @ step)
        if gain < 1e-6 * (1.0 + abs(value)):
            break
        size = 1.0 if fresh or gain < 0.1 * last else 0.0
        while size > 1e-4:
            trial = loss(at - size * step)
            if trial[0] <= value - 1e-4 * size * gain:
                break
            size /= 2
        if size > 1e-4:
            at, (value, slope, parts) = at - size * step, trial
        elif fresh:
            break
        factor, last = (factor, gain) if size == 1.0 else (None, np.inf)
    return at


def _gram(a: Array, w: Array) -> Array:
    """Weighted sums of products of terms."""
    b = a * np.sqrt(w)[:, None]
    return b.T @ b
