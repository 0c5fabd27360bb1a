"""Against plain likelihoods that a general optimiser climbs slowly."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_softmax

from vaca.engines.mechanisms.odds import log_ordered, logistic, ordered, ordered_spread

Rows = tuple[np.ndarray, np.ndarray, np.ndarray]


def _rows(levels: int, slope: float = 1.0, n: int = 300) -> Rows:
    """Terms, levels that follow two of them, weights."""
    rng = np.random.default_rng(levels)
    x = rng.normal(size=(n, 3))
    f = slope * (x[:, 0] - 0.5 * x[:, 1]) + rng.logistic(size=n) * (0.0 if slope > 5 else 1.0)
    y = np.searchsorted(np.quantile(f, np.arange(1, levels) / levels), f)
    return np.column_stack([np.ones(n), x]), y, rng.uniform(0.2, 3.0, n)


def _least(loss, size: int) -> np.ndarray:
    at = np.zeros(size)
    for _ in range(3):
        at = minimize(loss, at, method="BFGS", options={"gtol": 1e-7, "maxiter": 5000}).x
    return at


def _plain_ordered(a: np.ndarray, y: np.ndarray, w: np.ndarray, levels: int, penalty: np.ndarray):
    """The same by differences of two sigmoids; the first threshold, then logarithms of gaps."""

    def cuts(at: np.ndarray) -> np.ndarray:
        return np.cumsum(np.append(at[0], np.exp(at[1 : levels - 1])))

    def loss(at: np.ndarray) -> float:
        beta, edges = at[levels - 1 :], np.concatenate([[-np.inf], cuts(at), [np.inf]])
        f = a[:, 1:] @ beta
        p = expit(edges[y + 1] - f) - expit(edges[y] - f)
        pays = penalty[1:] @ beta**2 + 1e-4 * np.sum(cuts(at) ** 2)
        return float(-w @ np.log(np.maximum(p, 1e-300)) + 0.5 * pays)

    at = _least(loss, levels - 1 + a.shape[1] - 1)
    return at[levels - 1 :], cuts(at)


@pytest.mark.parametrize(("levels", "slope"), [(2, 1.0), (3, 1.0), (5, 2.0), (3, 20.0)])
def test_ordered_levels_are_as_likely_as_can_be(levels: int, slope: float) -> None:
    a, y, w = _rows(levels, slope)  # a slope of 20: no noise, a line separates all levels
    penalty = np.array([0.0, 0.02, 0.5, 0.02])
    beta, cuts = ordered(a, y, w, levels, penalty, None)
    truth, edges = _plain_ordered(a, y, w, levels, penalty)
    np.testing.assert_allclose(beta[:, 0], np.append(0.0, truth), atol=0.01, rtol=0.01)
    np.testing.assert_allclose(cuts, edges, atol=0.01, rtol=0.01)
    # From anywhere else, also from thresholds that are no start, it comes to the same.
    for start in (-cuts, cuts + 1.0, np.full(levels - 1, 50.0)):
        again = ordered(a, y, w, levels, penalty, (-beta, np.sort(start)))
        np.testing.assert_allclose(again[0], beta, atol=0.01, rtol=0.01)
        np.testing.assert_allclose(again[1], cuts, atol=0.01, rtol=0.01)


def test_ordered_levels_that_never_occurred_change_nothing() -> None:
    a, y, w = _rows(3)
    penalty = np.full(4, 0.02)
    beta, cuts = ordered(a, y, w, 3, penalty, None)
    wide, more = ordered(a, 2 * y + 1, w, 7, penalty, None)
    np.testing.assert_allclose(wide, beta)
    np.testing.assert_allclose(more, [-50.0, *np.repeat(cuts, 2), 50.0])
    p = np.exp(log_ordered(a @ wide[:, 0], more))
    np.testing.assert_allclose(p[:, 1::2], np.exp(log_ordered(a @ beta[:, 0], cuts)), atol=1e-8)
    # Rows without weight are none, whatever their level, and so is an only level's slope.
    unheard = np.append(y, [4, 3]), np.append(w, [0.0, 0.0])
    again = ordered(
        np.vstack([a, 9 * a[:2]]), *unheard, 5, penalty, (beta, np.append(cuts, [60, 61]))
    )
    np.testing.assert_allclose(again[0], beta, rtol=1e-3, atol=1e-3)
    only, edges = ordered(a, np.full(300, 1), w, 3, penalty, None)
    assert not only.any()
    assert edges.tolist() == [-50.0, 50.0]


def test_collinear_terms_share_a_slope() -> None:
    a, y, w = _rows(3)
    beta, cuts = ordered(a, y, w, 3, np.full(4, 0.02), None)
    twice = np.column_stack([a, a[:, 1], 1e6 * a[:, 2]])
    both, edges = ordered(twice, y, w, 3, np.append(np.full(4, 0.02), [0.02, 1e9]), None)
    assert both[1, 0] == pytest.approx(both[4, 0], abs=1e-3)
    assert 2 * both[1, 0] == pytest.approx(beta[1, 0], rel=0.01)
    np.testing.assert_allclose(edges, cuts, rtol=0.01, atol=0.01)


@pytest.mark.parametrize(("levels", "slope"), [(2, 1.0), (2, 20.0), (3, 1.0), (4, 2.0)])
def test_levels_without_an_order_are_as_likely_as_can_be(levels: int, slope: float) -> None:
    a, y, w = _rows(levels, slope)
    penalty = np.array([1e-4, 0.02, 0.5, 0.02])

    def loss(flat: np.ndarray) -> float:
        beta = flat.reshape(4, -1)
        if levels == 2:  # two levels have one line, which pays once
            beta = np.column_stack([np.zeros(4), beta])
        found = w @ log_softmax(a @ beta, axis=1)[np.arange(len(y)), y]
        return float(0.5 * np.sum(penalty[:, None] * beta**2) - found)

    beta = logistic(a, y, w, levels, penalty, None)
    truth = _least(loss, 4 * (levels if levels > 2 else 1))
    mine = beta if levels > 2 else beta[:, 1]
    assert loss(mine.ravel()) < loss(truth) + 1e-4 * (1 + loss(truth))
    p, q = (
        log_softmax(a @ b, axis=1)
        for b in (
            beta,
            truth.reshape(4, -1) if levels > 2 else np.column_stack([np.zeros(4), truth]),
        )
    )
    np.testing.assert_allclose(np.exp(p), np.exp(q), atol=0.02)
    # Other levels, which nobody has seen, take nothing from these.
    wide = logistic(a, 2 * y, w, 2 * levels, penalty, None)
    np.testing.assert_allclose(wide[:, ::2], beta, atol=1e-6)
    assert wide[0, 1::2].tolist() == [-50.0] * levels
    again = logistic(a, y, w, levels, penalty, beta)
    np.testing.assert_allclose(again, beta, rtol=0.02, atol=0.05)


@pytest.mark.parametrize("levels", [2, 4])
def test_levels_whose_spread_follows_a_cause_are_as_likely_as_can_be(levels: int) -> None:
    rng = np.random.default_rng(levels)
    x = rng.normal(size=(4000, 2))
    f = 1.5 * x[:, 0] + np.exp(0.6 * x[:, 1]) * rng.logistic(size=4000)
    y = np.searchsorted(np.quantile(f, np.arange(1, levels) / levels), f)
    a, w, penalty = np.column_stack([np.ones(4000), x]), np.ones(4000), np.full(3, 0.01)
    beta, cuts, spread = ordered_spread(a, x, y, w, levels, penalty, None)
    assert (np.diff(cuts) > 0).all()
    np.testing.assert_allclose(spread, [0.0, 0.6], atol=0.15)
    np.testing.assert_allclose(beta[1:, 0], [1.5, 0.0], atol=0.25)

    def loss(at: np.ndarray) -> float:
        own = np.append(at[0], at[0] + np.cumsum(np.exp(at[1 : levels - 1])))
        told = log_ordered(x @ at[levels - 1 : -2], own, np.exp(x @ at[-2:]))
        return float(-told[np.arange(4000), y].mean())

    found = np.concatenate([cuts[:1], np.log(np.diff(cuts)), beta[1:, 0], spread])
    best = minimize(loss, found, method="Nelder-Mead", options={"maxiter": 3000}).fun
    assert loss(found) < best + 1e-3
    # Where nothing follows a cause, the spread stays one.
    even = np.searchsorted([0.0], x[:, 0] + rng.logistic(size=4000))
    assert np.abs(ordered_spread(a, x, even, w, 2, penalty, None)[2]).max() < 0.25
