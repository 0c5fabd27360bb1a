"""Candidates of one column: what was scored is what answers."""

import numpy as np
import pytest

from vaca.engines.composite import FAMILIES
from vaca.engines.mechanisms.choosing import choose_numeric
from vaca.engines.mechanisms.numeric import fit_numeric
from vaca.engines.mechanisms.recipe import Recipe
from vaca.engines.mechanisms.trials import Inputs, make_folds
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
