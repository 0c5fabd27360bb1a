"""Metrics against slow, literal versions of their definitions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from vaca.evaluation import distances, metrics


def slow_mmd(x: np.ndarray, y: np.ndarray) -> float:
    """The published MMD, pair by pair: sum of five kernels exp(-d2 / b), biased V-statistic."""
    pooled = [tuple(row) for row in np.concatenate([x, y])]
    squared = [
        [sum((p - q) ** 2 for p, q in zip(a, b, strict=True)) for b in pooled] for a in pooled
    ]
    total = len(pooled)
    mean = sum(map(sum, squared)) / (total * (total - 1))
    kernel = [
        [sum(math.exp(-d / (mean * s)) for s in (0.25, 0.5, 1, 2, 4)) for d in row]
        for row in squared
    ]
    n = len(x)
    first, second = range(n), range(n, total)

    def average(rows, columns):
        return sum(kernel[i][j] for i, j in itertools.product(rows, columns)) / (
            len(rows) * len(columns)
        )

    return average(first, first) + average(second, second) - 2 * average(first, second)


@pytest.mark.parametrize("shape", [(40, 1, 40), (30, 3, 55), (7, 5, 4)])
def test_mmd_is_the_sum_over_pairs(shape):
    n, columns, m = shape
    rng = np.random.default_rng(n)
    x = rng.normal(size=(n, columns)) * 3 + 100
    y = rng.gamma(2.0, size=(m, columns)) + 100
    assert metrics.mmd(x, y) == pytest.approx(slow_mmd(x, y), abs=1e-6)


def test_mmd_is_the_same_whatever_the_block(monkeypatch):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(300, 2)), rng.normal(size=(257, 2)) + 0.3
    whole = metrics.mmd(x, y), metrics.energy_distance(x, y)
    monkeypatch.setattr(distances, "_BLOCK", 17)
    assert (metrics.mmd(x, y), metrics.energy_distance(x, y)) == pytest.approx(whole, abs=1e-7)


def test_mmd_with_scales_that_do_not_double():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(50, 2)), rng.normal(size=(60, 2)) + 1
    parts = [metrics.mmd(x, y, scales=(s,)) for s in (0.3, 1.0, 5.0)]
    assert metrics.mmd(x, y, scales=(1.0, 0.3, 5.0)) == pytest.approx(sum(parts), abs=1e-6)


def test_mmd_memory_is_bounded():
    import tracemalloc

    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(4000, 2)), rng.normal(size=(4000, 2))
    tracemalloc.start()
    metrics.mmd(x, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6  # the whole matrix of distances alone is 128 MB


def test_mmd_of_constants():
    assert metrics.mmd(np.ones((5, 2)), np.ones((6, 2))) == 0.0
    assert metrics.mmd(np.ones((5, 1)), np.zeros((5, 1))) > 1.0


def test_mmd_ignores_origin_and_scale():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(100, 2)), rng.normal(size=(100, 2)) * 2
    assert metrics.mmd(x * 7 + 1e4, y * 7 + 1e4) == pytest.approx(metrics.mmd(x, y), abs=1e-6)


def test_bandwidth_leaves_out_the_diagonal():
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(9, 3)) + 5, rng.normal(size=(6, 3))
    pooled = np.concatenate([x, y])
    pairs = [np.sum((a - b) ** 2) for a, b in itertools.permutations(pooled, 2)]
    assert metrics.bandwidth(x, y) == pytest.approx(np.mean(pairs))


def test_energy_distance_is_the_mean_over_pairs():
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(30, 2)), rng.normal(size=(20, 2)) + 1

    def mean(a, b):
        return np.mean([np.linalg.norm(p - q) for p in a for q in b])

    expected = 2 * mean(x, y) - mean(x, x) - mean(y, y)
    assert metrics.energy_distance(x, y) == pytest.approx(expected, abs=1e-6)


def test_classifier_score_at_chance_between_and_at_one():
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(2000, 2)), rng.normal(size=(2000, 2))
    assert metrics.classifier_score(x, y, rng) == pytest.approx(0.5, abs=0.03)
    # same means and sds, another shape: a linear classifier would stay at one half
    angle = rng.uniform(0, 2 * np.pi, 2000)
    ring = np.sqrt(2) * np.column_stack([np.cos(angle), np.sin(angle)])
    assert 0.65 < metrics.classifier_score(x, ring, rng) < 1.0
    assert metrics.classifier_score(x, y + 20, rng) == 1.0


def test_moment_errors_by_hand():
    x = np.array([[1.0, 10.0], [3.0, 10.0], [5.0, 13.0]])
    y = np.array([[2.0, 10.0], [2.0, 11.0]])
    assert metrics.mean_error(x, y) == pytest.approx(((3 - 2) ** 2 + (11 - 10.5) ** 2) / 2)
    sd = np.sqrt(3.0) - np.sqrt(0.5)
    assert metrics.std_error(x, y) == pytest.approx((2.0**2 + sd**2) / 2)
    # one node of two columns: the sum over its columns, divided by one node
    assert metrics.mean_error(x, y, nodes=1) == pytest.approx(2 * metrics.mean_error(x, y))
    assert metrics.std_error(x, y, nodes=1) == pytest.approx(2 * metrics.std_error(x, y))


def test_counterfactual_errors_by_hand():
    truth = np.zeros((4, 2))
    answer = np.array([[3.0, 4.0], [0.0, 0.0], [6.0, 8.0], [0.0, 1.0]])
    norms = [5.0, 0.0, 10.0, 1.0]
    squares = [25.0, 0.0, 100.0, 1.0]

    def sd(values):
        mean = sum(values) / len(values)
        return math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1))

    assert metrics.cf_mse(truth, answer) == pytest.approx(sum(squares) / 4 / 2)
    assert metrics.cf_sse(truth, answer) == pytest.approx(sd(squares))
    assert metrics.cf_norm_mean(truth, answer) == pytest.approx(sum(norms) / 4 / 2)
    assert metrics.cf_norm_sd(truth, answer) == pytest.approx(sd(norms) / 2)
    assert metrics.unpaired_norm_sd(truth, answer) == pytest.approx(sd(norms) / 2)


def test_ate_error_by_hand():
    low, high = np.array([[0.0, 1.0], [2.0, 1.0]]), np.array([[5.0, 1.0]])
    low_hat, high_hat = np.array([[1.0, 1.0]]), np.array([[4.0, 3.0]])
    # true effects 4 and 0, answered 3 and 2
    assert metrics.ate_error(low, high, low_hat, high_hat) == pytest.approx((1.0 + 2.0) / 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.mmd(np.ones((3, 2)), np.ones((3, 1))), "2 columns and y has 1"),
        (lambda: metrics.mmd(np.ones((0, 2)), np.ones((3, 2))), "non-empty"),
        (lambda: metrics.mmd([[0.0], [np.nan]], [[1.0]]), "row 1"),
        (lambda: metrics.cf_mse(np.ones((3, 1)), np.ones((2, 1))), "3 rows and y has 2"),
        (
            lambda: metrics.classifier_score([[1.0]], [[2.0]], np.random.default_rng(0)),
            "at least 4",
        ),
    ],
)
def test_errors_say_what_is_wrong(call, message):
    with pytest.raises(ValueError, match=message):
        call()
