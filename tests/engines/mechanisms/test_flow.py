"""A network for what a mechanism leaves: of counts it learns the probability of cells."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from vaca.engines.composite import FAMILIES
from vaca.engines.mechanisms.choosing import choose_numeric
from vaca.engines.mechanisms.numeric import Numeric
from vaca.engines.mechanisms.trials import Inputs, make_folds


@pytest.fixture(scope="module")
def given() -> Inputs:
    """Counts with one hump where the cause is negative and with two where it is positive."""
    rng = np.random.default_rng(0)
    n = 4000
    x = rng.normal(size=(n, 1))
    hump = np.where(rng.random(n) < 0.5, 3.0, 12.0)
    mean = np.where(x[:, 0] > 0, hump, 7.5)
    y = rng.poisson(mean).astype(float)
    return Inputs(x, [0], y, np.ones(n), make_folds(n, [0]), 0)


@pytest.fixture(scope="module")
def mechanism(given: Inputs) -> Numeric:
    found, tried = choose_numeric(given, count=True, families=frozenset(FAMILIES))
    assert "then a flow" in next(t.words for t in tried if t.chosen)
    return found


def test_probabilities_of_all_counts_add_up(mechanism: Numeric) -> None:
    for at in (-1.0, 1.0):
        counts = np.arange(200.0)
        log_p = mechanism.log_density(np.full((200, 1), at), counts)
        assert np.exp(log_p).sum() == pytest.approx(1.0, abs=1e-6)


def test_two_humps_are_found_where_they_are(mechanism: Numeric) -> None:
    middle = np.array([7.0])
    p = {at: np.exp(mechanism.log_density(np.array([[at]]), middle))[0] for at in (-1.0, 1.0)}
    assert p[-1.0] > 2 * p[1.0]  # the truth: 0.146 and 0.033
    plain = replace(mechanism, flow=None)
    assert np.exp(plain.log_density(np.array([[1.0]]), middle))[0] > 1.4 * p[1.0]


@pytest.mark.parametrize("seed", [None, 1])
def test_noise_gives_its_count_back(given: Inputs, mechanism: Numeric, seed: int | None) -> None:
    rng = None if seed is None else np.random.default_rng(seed)
    u = mechanism.noise(given.x, given.y, rng)
    np.testing.assert_array_equal(mechanism.value(given.x, u), given.y)
    if rng is not None:  # drawn within cells, noise is that of a standard normal
        assert abs(u.mean()) < 0.1
        assert abs(u.std() - 1) < 0.1


def test_a_refit_follows_the_weights(given: Inputs, mechanism: Numeric) -> None:
    w = np.where(given.y > 8, 3.0, 0.3)
    again = mechanism.refit(given.x, given.y, w / w.mean(), given.folds, np.random.default_rng(0))
    low, high = (m.value(np.ones((500, 1)), np.linspace(-2, 2, 500)).mean()
                 for m in (mechanism, again))  # fmt: skip
    assert high > low + 1
