"""Candidates of one column: what was scored is what answers."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr

from vaca.engines.composite import FAMILIES
from vaca.engines.mechanisms.choosing import choose_numeric
from vaca.engines.mechanisms.choosing_levels import PLAIN_LEAD, PRODUCTS_LEAD, choose_levels
from vaca.engines.mechanisms.numeric import Numeric, fit_numeric
from vaca.engines.mechanisms.recipe import Recipe
from vaca.engines.mechanisms.trials import Inputs, lead, make_folds
from vaca.reproduction.truths import load_truth


def _blocks(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Positive values in proportion to a function of two causes that only trees can follow."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    size = np.where((x[:, 0] > 0) == (x[:, 1] > 0.3), 3.0, 1.0) + np.abs(x[:, 0])
    return x, size * np.exp(0.3 * rng.normal(size=n))


@pytest.mark.parametrize("proportional", [False, True])
def test_trees_add_to_what_the_location_leaves(proportional):
    (x, y), (fresh, own) = _blocks(1500, 0), _blocks(1500, 1)
    w, folds = np.ones(len(y)), make_folds(len(y), [0])
    recipe = Recipe(curves=1, trees=True, scale=(1, 0.0, 1.0), proportional=proportional)
    rng = np.random.default_rng(0)
    fitted, density, *_ = fit_numeric(recipe, x, y, w, folds, [0, 1], rng)
    promised = np.nanmean(density)
    assert np.mean(fitted.log_density(fresh, own)) > promised - 0.1
    again = fitted.refit(x, y, rng.exponential(size=len(y)), folds, rng)
    assert np.mean(again.log_density(fresh, own)) > promised - 0.15


@pytest.mark.parametrize("number", [13, 37])
def test_no_candidate_is_worse_than_its_score(number):
    truth = load_truth(f"wild:{number}")
    rows, fresh = (truth.schema_.encode(truth.sample(1000, seed=seed)) for seed in (1, 2))
    for column in truth.graph.nodes:
        parents = truth.graph.parents(column)
        if not parents or truth.schema_[column].discrete:
            continue
        x, new = (np.column_stack([r[p] for p in parents]).astype(float) for r in (rows, fresh))
        y, w = rows[column], np.ones(1000)
        given = Inputs(x, list(range(len(parents))), y, w, make_folds(1000, [0]), 0)
        count = truth.schema_.kind(column) == "count"
        _, tried = choose_numeric(given, count=count, families=frozenset(FAMILIES) - {"flow"})
        for trial in tried:
            known = trial.mechanism.log_density(new, fresh[column])
            # One far row in fresh data may cost any amount: it counts as scores count it.
            assert np.mean(np.maximum(known, -12.0)) > trial.score - 0.2, (column, trial.words)


def test_wide_draws_of_few_rows_count_if_they_lead_clearly():
    truth = load_truth("wild:2042")
    parts = truth.sample(200, seed=128483101), truth.sample(50, seed=1886789768)
    rows = truth.schema_.encode(pd.concat(parts, ignore_index=True))
    parents = truth.graph.parents("x5")
    x = np.column_stack([rows[p] for p in parents]).astype(float)
    folds = make_folds(250, [500, 7])
    given = Inputs(x, list(range(len(parents))), rows["x5"], np.ones(250), folds, 500)
    found, tried = choose_numeric(given, count=False, families=frozenset(FAMILIES))
    # The true spread goes from 0.5 to 4, and drawn values spread a little further than these rows.
    assert found.recipe.spread
    assert next(t for t in tried if t.chosen).wide


def test_noise_in_proportion_does_not_vanish_beyond_the_data():
    rng = np.random.default_rng(0)
    x = rng.uniform(0.5, 3.0, size=(500, 1))
    y = x[:, 0] * np.exp(0.3 * rng.normal(size=500))
    recipe = Recipe(scale=(1, 0.0, 1.0), proportional=True)
    fitted, *_ = fit_numeric(recipe, x, y, np.ones(500), make_folds(500, [0]), [0], rng)
    beyond = fitted.value(np.array([[-2.0], [0.0]]), np.zeros(2))
    assert (beyond > 0.4 * np.median(y[x[:, 0] < 0.6])).all()
    inside = fitted.value(np.array([[1.0], [2.5]]), np.zeros(2))
    np.testing.assert_allclose(inside, [1.0, 2.5], rtol=0.1)


def test_products_with_one_cause_that_has_levels_need_no_clear_lead():
    rng = np.random.default_rng(3)
    level, number = rng.integers(0, 2, 3000), rng.normal(size=3000)
    odds = np.where(level == 1, 0.25, 0.0) * number
    y = (rng.random(3000) < 1 / (1 + np.exp(-odds))).astype(np.int64)
    x = np.column_stack([level, number]).astype(float)
    given = Inputs(x, [0, 1], y, np.ones(3000), make_folds(3000, [0]), 0)
    _, tried = choose_levels(given, 2, frozenset(FAMILIES) - {"blends"})
    chosen = next(t for t in tried if t.chosen)
    line = next(t for t in tried if t.words == "logistic, linear")
    product = next(t for t in tried if t.words == "logistic, linear with products")
    assert PLAIN_LEAD < lead(product, line, given.w) < PRODUCTS_LEAD
    assert chosen.mechanism.recipe.depth == 0


def test_counts_that_end_are_cut_off_there():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 1))
    whole = np.floor(np.exp(1.5 + 0.7 * x[:, 0] + 0.5 * rng.normal(size=3000)))
    y, w, folds = np.minimum(whole, 15.0), np.ones(3000), make_folds(3000, [0])
    recipe = Recipe(scale=(1, -1.0, 1.0), count=True)
    fitted, *_ = fit_numeric(recipe, x, y, w, folds, [0], rng)
    assert fitted.most == 15.0
    at = np.full((16, 1), 1.0)  # a sixth of these rows is cut off
    share = np.exp(fitted.log_density(at, np.arange(16.0)))
    assert share.sum() == pytest.approx(1.0, abs=1e-6)
    assert share[15] == pytest.approx(
        (np.exp(1.5 + 0.7 + 0.5 * rng.normal(size=9999)) > 15).mean(), abs=0.05
    )
    assert fitted.value(np.array([[4.0]]), np.array([3.0])) == 15.0
    again = Numeric.from_arrays(fitted.arrays())
    np.testing.assert_array_equal(again.log_density(x, y), fitted.log_density(x, y))
    assert np.isinf(fit_numeric(recipe, x, whole, w, folds, [0], rng)[0].most)


def test_counts_of_a_few_values_are_not_blurred_by_their_cells():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 1))
    y = np.floor(np.exp(1.0 + 0.4 * x[:, 0] + 0.1 * rng.normal(size=2000)))
    w, folds = np.ones(2000), make_folds(2000, [0])
    recipe = Recipe(scale=(1, -0.5, 1.0), count=True)
    fitted, density, *_ = fit_numeric(recipe, x, y, w, folds, [0], rng)
    edges = (np.log(np.stack([y, y + 1.0]).clip(1e-9)) - 1.0 - 0.4 * x[:, 0]) / 0.1
    truth = np.log(np.diff(ndtr(edges), axis=0)[0].clip(1e-12))
    assert density.mean() > truth.mean() - 0.05
    # Even noise within cells, which is where it starts, spreads more than twice as far.
    even = np.log(y + rng.uniform(0.0, 1.0, 2000)) - 1.0 - 0.4 * x[:, 0]
    assert fitted.curve.spread * fitted.scale.unit < 0.14 < 0.2 < even.std()


def test_a_spread_that_far_rows_hide_is_found():
    truth = load_truth("wild:100")
    parts = truth.sample(1000, seed=1835504127), truth.sample(250, seed=1731038949)
    rows = truth.schema_.encode(pd.concat(parts, ignore_index=True))
    x = np.column_stack([rows["x1"], rows["x2"]])
    given = Inputs(x, [0, 1], rows["x3"], np.ones(1250), make_folds(1250, [1, 7]), 1)
    found, _ = choose_numeric(given, count=False, families=frozenset(FAMILIES) - {"flow"})
    assert found.recipe.spread


def test_odds_that_ran_off_do_not_move_an_average():
    rng = np.random.default_rng(0)
    n, one = 2000, np.zeros(2000)
    one[:40] = 1.0
    other = np.where(np.arange(n) < 36, 1.0, 0.0)  # never without the one
    z = rng.normal(size=n)
    y = (rng.random(n) < np.where(other == 1, 0.7, 0.03)).astype(np.int64)
    order = rng.permutation(n)
    x, y = np.column_stack([z, one, other])[order], y[order]
    given = Inputs(x, [0, 1, 2], y, np.ones(n), make_folds(n, [0]), 0)
    found, tried = choose_levels(given, 2, frozenset(FAMILIES))
    # What two causes do that come together is shared out between them, not all of it given to one.
    p = np.exp(found.log_levels(np.array([[0.0, 0.0, 1.0]])))[0, 1]
    loose = next(t for t in tried if t.words == "logistic, linear").mechanism
    assert np.exp(loose.log_levels(np.array([[0.0, 0.0, 1.0]])))[0, 1] > 0.9
    assert 0.03 < p < 0.6


def test_a_rare_level_does_not_make_draws_wide():
    rng = np.random.default_rng(0)
    x = (np.arange(4000) < 40).astype(float)[:, None]  # a hundredth, but more of the first rows
    y = np.exp(4.0 * x[:, 0] + 0.3 * rng.normal(size=4000))
    recipe = Recipe(scale=(1, 0.0, 1.0))
    fitted, *_ = fit_numeric(recipe, x, y, np.ones(4000), make_folds(4000, [0]), [0], rng)
    assert fitted.overshoot(x, y, np.random.default_rng(1)) < 1.0
