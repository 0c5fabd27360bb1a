"""Candidates of one column: what was scored is what answers."""

import numpy as np
import pandas as pd
import pytest

from vaca.engines.composite import FAMILIES
from vaca.engines.mechanisms.choosing import choose_numeric
from vaca.engines.mechanisms.choosing_levels import PLAIN_LEAD, PRODUCTS_LEAD, choose_levels
from vaca.engines.mechanisms.numeric import fit_numeric
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
    assert found.recipe.spread == "linear"
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
