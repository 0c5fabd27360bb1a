"""Noise of which a part is the same for all rows, and a part follows the spread."""

from __future__ import annotations

import numpy as np
import pytest

from vaca.engines.mechanisms.added import (
    SMOOTHINGS,
    Quantiles,
    TwoCurves,
    choose_smoothing,
)
from vaca.engines.mechanisms.choosing import choose_numeric
from vaca.engines.mechanisms.noise import NoiseCurve
from vaca.engines.mechanisms.numeric import Numeric
from vaca.engines.mechanisms.trials import Inputs, make_folds

FAMILIES = frozenset({"curves", "products", "spread"})


def rows(n: int, seed: int, jump: float = 1.0) -> tuple[np.ndarray, ...]:
    """Spreads, noise, and residuals: a jump that follows the spread, and normal noise."""
    rng = np.random.default_rng(seed)
    s, u = 0.5 + rng.gamma(2.0, 1.0, n), rng.normal(size=n)
    return s, u, jump * (s - 0.5) * np.sign(u) + 0.5 * u


def both(n: int = 5000, seed: int = 0) -> tuple[TwoCurves, Quantiles]:
    s, _, r = rows(n, seed)
    found = Quantiles.of(r / s, 1 / s, np.ones(n))
    return found.smoothed(len(SMOOTHINGS) - 1), found


def test_every_quantile_is_a_line_in_the_spread() -> None:
    curves, _ = both()
    u = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
    for s in (0.6, 1.0, 2.0, 4.0):
        truth = (s - 0.5) * np.sign(u) + 0.5 * u
        found = s * curves.at(np.full(6, np.log(s))).residual(u)
        np.testing.assert_allclose(found, truth, rtol=0.05, atol=0.1)


def test_curves_increase_give_noise_back_and_are_densities() -> None:
    curves, _ = both(500)
    for s in (1e-3, 0.5, 2.0, 100.0):
        u = np.linspace(-6, 6, 401)
        own = curves.at(np.full(401, np.log(s)))
        e = own.residual(u)
        assert (np.diff(e) > 0).all()
        np.testing.assert_allclose(own.noise(e), u, atol=1e-6)
        grid = np.linspace(-8, 8, 40_001)
        density = np.exp(curves.at(np.full(len(grid), np.log(s))).log_density(grid))
        assert density.sum() * (grid[1] - grid[0]) == pytest.approx(1.0, abs=0.01)


def test_held_out_rows_are_likelier_than_with_one_curve() -> None:
    s, _, r = rows(3000, 0)
    w, folds = np.ones(3000), make_folds(3000, [0])
    parts = {k: Quantiles.of(*(v[folds != k] for v in (r / s, 1 / s, w))) for k in np.unique(folds)}
    number = choose_smoothing(parts, r / s, np.log(s), w, folds)
    curves = Quantiles.of(r / s, 1 / s, w).smoothed(number)
    s, _, r = rows(3000, 1)
    two = curves.at(np.log(s)).log_density(r / s).mean()
    first = rows(3000, 0)
    one = max(
        NoiseCurve.fit(first[2] / first[0], w, width).log_density(r / s).mean()
        for width in (0.35, 0.12, 0.04)
    )
    assert two > one + 0.08
    # Where nothing jumps and nothing is added, the smoothest is as good.
    s, u, _ = rows(3000, 2)
    parts = {k: Quantiles.of(*(v[folds != k] for v in (u, 1 / s, w))) for k in np.unique(folds)}
    assert choose_smoothing(parts, u, np.log(s), w, folds) == 0


def test_weights_count_and_an_earlier_fit_is_where_a_new_one_starts() -> None:
    s, u, r = rows(3000, 0)
    other = 0.5 * s * u
    w = np.append(np.ones(3000), np.zeros(3000))
    mixed = Quantiles.of(np.append(r / s, other / s), np.tile(1 / s, 2), np.where(w > 0, 1.0, 1e-9))
    alone = Quantiles.of(r / s, 1 / s, np.ones(3000))
    inner = (np.abs(alone.u) < 2) & (np.abs(alone.u) > 0.1)  # not at the jump itself
    np.testing.assert_allclose(mixed.middle[inner], alone.middle[inner], atol=0.1)
    again = Quantiles.of(r / s, 1 / s, np.ones(3000), alone.smoothed(6))
    np.testing.assert_allclose(again.middle[inner], alone.middle[inner], atol=0.1)


def test_it_is_chosen_where_it_is_so_and_saved_and_fitted_again() -> None:
    rng = np.random.default_rng(0)
    x, u = rng.normal(size=(2000, 1)), rng.normal(size=2000)
    y = 0.5 * x[:, 0] + x[:, 0] ** 2 * np.sign(u) + 0.3 * u
    given = Inputs(x, [0], y, np.ones(2000), make_folds(2000, [0]), 0)
    found, trials = choose_numeric(given, count=False, families=FAMILIES)
    assert found.recipe.added and isinstance(found.curve, TwoCurves)
    chosen = next(t for t in trials if t.chosen)
    assert "partly added" in chosen.words
    fresh, v = rng.normal(size=(4000, 1)), rng.normal(size=4000)
    truth = 0.5 * fresh[:, 0] + fresh[:, 0] ** 2 * np.sign(v) + 0.3 * v
    assert np.mean((found.value(fresh, v) - truth) ** 2) < 0.05 * truth.var()
    np.testing.assert_allclose(found.value(x, found.noise(x, y, None)), y, atol=1e-6)
    # What it was scored by holds for rows that nobody had seen.
    assert chosen.score == pytest.approx(found.log_density(fresh, truth).mean(), abs=0.15)
    again = Numeric.from_arrays(found.arrays())
    np.testing.assert_array_equal(again.value(fresh, v), found.value(fresh, v))
    w = rng.exponential(size=2000)
    refitted = found.refit(x, y, w, given.folds, rng)
    moved = refitted.value(fresh, v) - found.value(fresh, v)
    assert 0 < np.mean(moved**2) < 0.05 * truth.var()
    even = 0.5 * x[:, 0] + np.exp(0.5 * x[:, 0]) * u
    plain, _ = choose_numeric(
        Inputs(x, [0], even, np.ones(2000), given.folds, 0), count=False, families=FAMILIES
    )
    assert plain.recipe.spread and not plain.recipe.added


def test_spreads_that_are_all_the_same_leave_one_curve() -> None:
    e = np.random.default_rng(0).normal(size=2000)
    found = Quantiles.of(e, np.full(2000, 2.0), np.ones(2000))
    assert not found.slope.any()
    assert found.smoothed(0).spread == pytest.approx(1.0, abs=0.05)


def test_steps_have_to_beat_what_is_smooth_with_the_same_noise() -> None:
    rng = np.random.default_rng(1)
    x, z, u = rng.normal(size=(3, 2000))
    y = x + z**2 * np.sign(u) + 0.3 * u
    given = Inputs(np.c_[x, z], [0, 1], y, np.ones(2000), make_folds(2000, [0]), 0)
    found, _ = choose_numeric(given, count=False, families=FAMILIES | {"steps"})
    assert found.recipe.added and not found.recipe.steps
    # A power, which has to beat its line, does not keep such noise out.
    bent = Inputs(given.x, [0, 1], y + x**2, given.w, given.folds, 0)
    found, _ = choose_numeric(bent, count=False, families=FAMILIES)
    assert found.recipe.added and found.recipe.curves > 1
