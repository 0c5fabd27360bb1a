"""What is left of some columns once others are known: out-of-sample residuals, for tests.

Columns of any kind become a few numbers each (`features`), and all of them are predicted at once
from the given columns by two learners: ridge regression on curves, products and random waves, whose
leave-one-out errors are exact, and extremely random trees with out-of-bag errors. Each target takes
the mixture of the two that errs least. No row's residual comes from a fit that saw the row.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from scipy.stats import norm, rankdata
from sklearn.ensemble import ExtraTreesRegressor

from vaca.engines.predictors import Polynomial, Splines
from vaca.table.columns import row_count, take_rows
from vaca.table.schema import Columns, Schema
from vaca.table.standard import Standard

__all__ = [
    "chances",
    "features",
    "inputs",
    "leftover",
    "leftover_and_freedom",
    "normal_scores",
    "some_rows",
]

#: Terms of the second degree that a design has at most.
MAX_PRODUCTS = 150
#: Random waves, for what neither curves nor products catch.
WAVES = 60
TREES = 60
#: Levels with an indicator of their own; rarer ones do not say enough.
MAX_LEVELS = 8
ALPHAS = np.array([1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0])


def some_rows(rows: Columns, most: int, seed: int) -> Columns:
    """At most this many rows, drawn without replacement."""
    n = row_count(rows)
    if n <= most:
        return rows
    keep = np.sort(np.random.default_rng([seed, 21]).permutation(n)[:most])
    return take_rows(rows, keep)


def normal_scores(values: np.ndarray) -> np.ndarray:
    """Numbers as normal quantiles of their ranks: the same order, no outliers."""
    scores = norm.ppf(rankdata(values) / (len(values) + 1))
    return Standard.of(scores).to(scores)


def features(rows: Columns, schema: Schema, columns: Sequence[str]) -> tuple[np.ndarray, int]:
    """Numbers (n, k) that stand for the columns, and how many of them lead.

    The leading ones are normal scores of numbers and indicators of levels; then come the squares of
    the scores, which show a change of spread, or an effect that goes both ways.
    """
    lead, squares = [], []
    for name in columns:
        if schema[name].discrete:
            codes = np.asarray(rows[name])
            counts = np.bincount(codes, minlength=len(schema[name].levels))
            # All but the most frequent level, which follows from the others.
            order = np.argsort(-counts, kind="stable")[1 : MAX_LEVELS + 1]
            lead += [_standard(codes == k) for k in order if counts[k] >= 5]
        else:
            scores = normal_scores(rows[name])
            lead.append(scores)
            if len(np.unique(rows[name])) > 2:
                squares.append(_standard(scores**2))
    n = row_count(rows)
    parts = [*lead, *squares]
    return (np.column_stack(parts) if parts else np.empty((n, 0))), len(lead)


def inputs(rows: Columns, schema: Schema, columns: Sequence[str]) -> np.ndarray:
    """The given columns as numbers (n, features): scores, and an indicator for each level."""
    n = row_count(rows)
    parts = [np.empty((n, 0))]
    for name in columns:
        if schema[name].discrete:
            levels = len(schema[name].levels)
            one_hot = np.asarray(rows[name])[:, None] == np.arange(levels)
            parts.append(one_hot[:, 1:].astype(float) if levels <= 2 else one_hot.astype(float))
        else:
            parts.append(normal_scores(rows[name])[:, None])
    return np.concatenate(parts, axis=1)


def leftover(x: np.ndarray, targets: np.ndarray, seed: int, *, trees: bool = True) -> np.ndarray:
    """Targets (n, m) minus their prediction from the inputs (n, k), on rows not seen."""
    return leftover_and_freedom(x, targets, seed, trees=trees)[0]


def leftover_and_freedom(
    x: np.ndarray, targets: np.ndarray, seed: int, *, trees: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """`leftover`, and the share of the rows (m,) that the fit of each target used up."""
    if not targets.shape[1]:
        return targets, np.zeros(0)
    if not x.shape[1] or not np.ptp(x, axis=0).any():
        return targets - targets.mean(axis=0), np.zeros(targets.shape[1])
    smooth, used = _ridge(_design(x, seed), targets)
    if not trees:
        return smooth, used
    rough = _trees(x, targets, seed)
    # The mixture of two errors that is shortest, for each target.
    apart = smooth - rough
    size = np.maximum((apart**2).sum(axis=0), 1e-300)
    weight = np.clip(1.0 - (smooth * apart).sum(axis=0) / size, 0.0, 1.0)
    return weight * smooth + (1 - weight) * rough, used


def chances(x: np.ndarray, one_hot: np.ndarray, seed: int) -> np.ndarray:
    """The probability of each group (n, groups) given the inputs, by trees that saw other rows.

    Regression on curves would do for a test, but it leaves [0, 1] where a group is rare.
    """
    return np.clip(one_hot - _trees(x, one_hot, seed), 0.0, 1.0)


def _design(x: np.ndarray, seed: int) -> np.ndarray:
    n, k = x.shape
    parts = [Splines.blank(x).design(x)]
    products = k * (k + 1) // 2
    if products <= min(MAX_PRODUCTS, n // 10):
        parts.append(Polynomial.blank(x, 2).design(x)[:, k:])
    rng = np.random.default_rng([seed, 22])
    waves = min(WAVES, n // 10)
    scale = np.where(x.std(axis=0) > 0, x.std(axis=0), 1.0) * np.sqrt(k)
    mix = rng.normal(size=(k, waves)) * rng.uniform(0.5, 2.0, waves)
    parts.append(np.cos((x / scale) @ mix + rng.uniform(0, 2 * np.pi, waves)))
    design = np.concatenate(parts, axis=1)
    spread = design.std(axis=0)
    design = design[:, spread > 1e-8]
    return (design - design.mean(axis=0)) / design.std(axis=0)


def _ridge(design: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Leave-one-out errors (n, m), the strength chosen by them for each target; mean leverage."""
    n = len(design)
    centred = targets - targets.mean(axis=0)
    size, turn = np.linalg.eigh(design.T @ design)
    turned = design @ turn
    aimed = turned.T @ centred
    best, errors = np.full(targets.shape[1], np.inf), np.empty_like(targets)
    used = np.zeros(targets.shape[1])
    for alpha in ALPHAS * n:
        shrink = 1.0 / (np.maximum(size, 0.0) + alpha)
        own = (turned**2) @ shrink + 1.0 / n
        loo = (centred - turned @ (shrink[:, None] * aimed)) / np.maximum(1.0 - own, 1e-3)[:, None]
        score = (loo**2).mean(axis=0)
        better = score < best
        errors[:, better], best = loo[:, better], np.minimum(score, best)
        used[better] = own.mean()
    return errors, used


def _trees(x: np.ndarray, targets: np.ndarray, seed: int) -> np.ndarray:
    forest = ExtraTreesRegressor(
        TREES,
        # Not by the size of leaves: a random cut that breaks that rule would end the branch.
        min_samples_split=max(10, len(x) // 200),
        bootstrap=True,
        oob_score=True,
        max_features=None,
        random_state=seed % 2**31,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a row that every tree happened to draw
        forest.fit(x, targets if targets.shape[1] > 1 else targets[:, 0])
    guess = np.asarray(forest.oob_prediction_).reshape(targets.shape)
    return targets - np.where(np.isfinite(guess), guess, targets.mean(axis=0))


def _standard(values: np.ndarray) -> np.ndarray:
    values = np.asarray(values, float)
    return Standard.of(values).to(values)
