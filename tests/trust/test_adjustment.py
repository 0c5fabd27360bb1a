"""Adjustment sets: against the true total effects of random linear graphs."""

import numpy as np
import pytest

import vaca
from vaca.errors import VacaError
from vaca.trust.adjustment import adjustment_set


def random_linear(rng, size):
    """Coefficients B (lower triangle, x = B x + u), covariance, and the graph."""
    coefficients = np.tril(rng.normal(size=(size, size)), -1) * (rng.random((size, size)) < 0.5)
    names = [f"v{k}" for k in range(size)]
    graph = vaca.CausalGraph(
        {names[i]: [names[j] for j in np.flatnonzero(coefficients[i])] for i in range(size)}
    )
    total = np.linalg.inv(np.eye(size) - coefficients)
    return graph, coefficients, total @ np.diag(rng.uniform(0.5, 2, size)) @ total.T


def slopes(covariance, y, inputs):
    return np.linalg.solve(covariance[np.ix_(inputs, inputs)], covariance[inputs, y])


def under_do(coefficients, treated, y):
    """The true effect on y of a unit of each treated variable, the others of them held."""
    cut = coefficients.copy()
    cut[treated] = 0
    return np.linalg.inv(np.eye(len(cut)) - cut)[y, treated]


@pytest.mark.parametrize("seed", range(10))
def test_regression_on_the_set_gives_the_total_effect(seed):
    rng = np.random.default_rng(seed)
    graph, coefficients, covariance = random_linear(rng, 7)
    checked = refused = 0
    for y in range(2, 7):
        for treated in ([0], [1], [y - 1], [0, 1], [0, y - 1], [1, y - 1]):
            names = sorted({f"v{k}" for k in treated})
            if not any(f"v{y}" in graph.descendants(name) for name in names):
                continue
            try:
                chosen = adjustment_set(graph, names, f"v{y}")
            except VacaError:
                refused += 1
                continue
            inputs = [int(name[1:]) for name in (*names, *chosen)]
            true = under_do(coefficients, inputs[: len(names)], y)
            assert slopes(covariance, y, inputs)[: len(names)] == pytest.approx(true, abs=1e-8)
            checked += 1
    assert checked > 5


def test_causes_of_the_outcome_are_taken_and_those_of_the_treatment_alone_are_not():
    graph = vaca.CausalGraph.from_text("a -> t\nb -> t\nb -> y\nc -> y\nt -> m\nm -> y\nd -> m")
    assert adjustment_set(graph, ["t"], "y") == ("b", "c", "d")


def test_no_path_and_no_valid_set_are_said():
    graph = vaca.CausalGraph.from_text("a -> m\nm -> b\nh -> m\nh -> y\na -> y\nb -> y")
    with pytest.raises(VacaError, match="no arrow leads from 'y' to 'm'"):
        adjustment_set(graph, ["y"], "m")
    with pytest.raises(VacaError, match="moves a cause of another"):
        adjustment_set(
            vaca.CausalGraph.from_text("a -> m\nm -> b\nm -> y\na -> y\nb -> y"), ["a", "b"], "y"
        )
