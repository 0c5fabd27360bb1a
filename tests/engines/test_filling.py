"""Draws for missing values, column by column."""

import numpy as np
import pytest

from vaca import CausalGraph, Column, Schema
from vaca.engines.filling import Filler

RNG = np.random.default_rng(0)
N = 600
X = RNG.normal(size=N)


def filled(y, column: Column, gap) -> np.ndarray:
    """What stands in the gaps of y, an effect of x."""
    schema = Schema({"x": Column("continuous"), "y": column})
    rows = {"x": X, "y": np.array(y)}
    rows["y"][gap] = -1 if column.discrete else np.nan
    return Filler(CausalGraph.from_edges([("x", "y")]), schema, 0).learn(rows)["y"]


def test_draws_have_the_spread_of_the_column_given_its_causes():
    y = 2 * X + RNG.normal(size=N)
    gap = X > 0.3  # gone where x is high: random given x
    found = filled(y, Column("continuous"), gap)
    assert np.array_equal(found[~gap], y[~gap])
    left = found[gap] - 2 * X[gap]
    assert abs(left.mean()) < 0.35
    assert 0.7 < left.std() < 1.4


def test_levels_are_drawn_by_their_probability():
    y = (RNG.random(N) < 1 / (1 + np.exp(-3 * X))).astype(int)
    gap = RNG.random(N) < 0.3
    found = filled(y, Column("binary", (0, 1)), gap)
    assert set(found) == {0, 1}
    assert abs(found[gap].mean() - y[gap].mean()) < 0.12
    assert np.corrcoef(found[gap], X[gap])[0, 1] > 0.4


def test_counts_stay_counts_and_many_zeros_stay_zeros():
    count = RNG.poisson(np.exp(0.5 * X)).astype(float)
    gap = RNG.random(N) < 0.3
    found = filled(count, Column("count"), gap)
    assert (found[gap] >= 0).all()
    assert (found[gap] == np.rint(found[gap])).all()
    income = np.where(RNG.random(N) < 0.4, 0.0, np.exp(7 + 0.3 * X))
    found = filled(income, Column("continuous"), gap)
    assert (found[gap] >= 0).all()
    assert (found[gap] == 0).mean() > 0.15


def test_gaps_in_a_cause_are_filled_from_its_effect():
    y = 2 * X + 0.1 * RNG.normal(size=N)
    rows = {"x": np.where(RNG.random(N) < 0.3, np.nan, X), "y": y}
    schema = Schema(dict.fromkeys(rows, Column("continuous")))
    filler = Filler(CausalGraph.from_edges([("x", "y")]), schema, 0)
    found = filler.learn(rows)["x"]
    assert np.abs(found - X).max() < 0.4
    other = filler.again(np.ones(N), 1, {"x": found, "y": y})["x"]
    gap = np.isnan(rows["x"])
    assert np.array_equal(other[~gap], found[~gap])
    assert (other[gap] != found[gap]).all()


@pytest.mark.parametrize("draws", [False, True])
def test_other_rows_are_filled_from_rows_without_gaps(draws):
    y = 2 * X + 0.1 * RNG.normal(size=N)
    schema = Schema(dict.fromkeys(["x", "y"], Column("continuous")))
    filler = Filler(CausalGraph.from_edges([("x", "y")]), schema, 0)
    filler.remember({"x": X, "y": y})
    rng = np.random.default_rng(0) if draws else None
    found = filler.fill({"x": np.array([1.0, np.nan]), "y": np.array([np.nan, -2.0])}, rng)
    assert found["y"][0] == pytest.approx(2, abs=0.5)
    assert found["x"][1] == pytest.approx(-1, abs=0.3)
