"""Curves asked piece by piece."""

import numpy as np
import pytest

from vaca.engines.mechanisms.curves import Pieces, Places
from vaca.engines.mechanisms.designs import Design
from vaca.engines.mechanisms.locations import Linear


@pytest.mark.parametrize(
    "knots",
    [
        np.array([-1.0, 1.0]),
        np.sort(np.random.default_rng(0).normal(size=18)),
        np.array([0.0, 1e-9, 1.0]),  # closer than a cell of the table
        np.array([-1e200, 1e200]),
    ],
)
def test_places_are_those_of_a_search(knots: np.ndarray) -> None:
    rng = np.random.default_rng(1)
    span = knots[-1] - knots[0]
    at = np.concatenate([knots, rng.uniform(knots[0] - span / 9, knots[-1] + span / 9, 20_000)])
    assert np.array_equal(Places(knots)(at), np.searchsorted(knots, at, side="right"))


def test_pieces_are_the_sum_of_cubes() -> None:
    knots = np.sort(np.random.default_rng(0).normal(size=9))
    weights = np.random.default_rng(1).normal(size=9)
    # Straight beyond the last knot: neither the cubes nor their slopes' slopes are left there.
    ends = np.stack([np.ones(2), knots[-2:]])
    weights[-2:] = -np.linalg.solve(ends, np.stack([np.ones(7), knots[:-2]]) @ weights[:-2])
    z = np.linspace(-5, 5, 2001)
    whole = (weights * np.maximum(z[:, None] - knots, 0.0) ** 3).sum(1)
    assert Pieces(knots, weights)(z) == pytest.approx(whole, abs=1e-9 * np.abs(weights).max())


@pytest.mark.parametrize("settings", [{}, {"curves": 1}, {"curves": 3}, {"curves": 1, "depth": 2}])
def test_a_line_or_curve_is_the_product_with_its_matrix(settings: dict) -> None:
    rng = np.random.default_rng(0)
    x = np.stack([rng.normal(size=4000), rng.gamma(2.0, size=4000), rng.integers(0, 2, 4000)], 1)
    design = Design.build(x, [0, 1, 2], **settings)
    design.cuts = np.array([[0.0, 0.3], [1.0, 2.0]])
    beta = rng.normal(size=design(x).shape[1])
    asked = np.concatenate([x, 5 * x])  # at 1e6 sds, cubes in a matrix have no digits left
    told = Linear(design, beta, 0.0)(np.asfortranarray(asked))
    whole = design(asked) @ beta
    assert np.abs(told - whole).max() <= 1e-11 * np.abs(whole).max()
    assert told[:4000] == pytest.approx(whole[:4000], abs=1e-9)
