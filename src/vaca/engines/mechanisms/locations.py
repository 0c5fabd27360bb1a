"""Locations and spreads of numbers by least squares, each row's by rows of the other folds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vaca.engines.mechanisms.curves import Pieces
from vaca.engines.mechanisms.designs import Array, Design
from vaca.engines.mechanisms.least_squares import Sums, solve
from vaca.engines.mechanisms.noise import FLAT, TAILED, WIDTHS, NoiseCurve
from vaca.engines.mechanisms.recipe import SPREADS, Recipe
from vaca.engines.mechanisms.scale import Scale
from vaca.engines.trees import Trees

__all__ = [
    "Linear", "add_trees", "alone", "crossfit", "fit_location", "fit_spread", "on_scale",
    "stepwise",
]  # fmt: skip

#: A scale that is fitted directly gets no smaller than this share of the mean residual.
PLAIN_LEAST = 1e-3
#: A row is alone if an input is further than this beyond those of all other folds, in distances
#: between the input's first and last tenth.
ALONE = 1.0
#: A log-scale whose coefficients move by less is found.
STILL = 1e-3
#: With at least this many rows, trees are scored on one fold.
FEW_FOR_TREES = 2000


@dataclass
class Linear:
    """Coefficients over a design, and the strength of their penalty."""

    design: Design
    beta: Array
    strength: float
    _curves: dict[int, Pieces] | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def terms(self) -> int:
        """Numbers that were fitted."""
        return len(self.beta) + len(self.design.cuts)

    def __call__(self, x: Array) -> Array:
        if self._curves is None:
            self._curves = self.design.curves_of(self.beta)
        return self.design.combined(x, self.beta, self._curves)


def linear_arrays(model: Linear) -> dict[str, Array]:
    own = {"beta": model.beta, "strength": np.array([model.strength])}
    return own | model.design.arrays()


def linear_of(state: dict[str, Array]) -> Linear:
    return Linear(Design.from_arrays(state), state["beta"], float(state["strength"][0]))


def crossfit(
    design: Design, a: Array, t: Array, w: Array, folds: Array | None, strength: float | None
) -> tuple[Linear, Array]:
    """Coefficients from all rows, and each row's value by the rows of the other folds, if any."""
    if folds is None:
        beta, strength = solve(Sums.of(a, t, w), design.penalty(), strength)
        return Linear(design, beta, strength), a @ beta
    parts = {k: Sums.of(a[folds == k], t[folds == k], w[folds == k]) for k in np.unique(folds)}
    penalty = design.penalty()
    total = sum(list(parts.values())[1:], start=next(iter(parts.values())))
    beta, strength = solve(total, penalty, strength)
    mean = np.empty(len(t))
    for k, part in parts.items():
        # The same strength: it is one number out of all rows, and choosing it is most of the work.
        mean[folds == k] = a[folds == k] @ solve(total - part, penalty, strength)[0]
    return Linear(design, beta, strength), mean


def alone(x: Array, folds: Array) -> Array:
    """Rows (n,) that are far outside the rows which tell their location.

    What is missed there is the fault of a location beyond its data, and no noise: one such row can
    double the noise of all others.

    >>> x = np.append(np.arange(9.0), 100.0)[:, None]
    >>> np.flatnonzero(alone(x, np.arange(10) % 2)).tolist()
    [9]
    """
    far = np.zeros(len(x), bool)
    if not x.size:
        return far
    low, high = np.quantile(x, [0.1, 0.9], axis=0)
    reach = ALONE * (high - low)
    for k in np.unique(folds):
        out = folds == k
        other = x[~out]
        if not len(other):
            return far
        far[out] = ((x[out] < other.min(0) - reach) | (x[out] > other.max(0) + reach)).any(1)
    return far & (far.mean() < 0.5)


def stepwise(
    designs: Mapping[int, Design], x: Array, t: Array, w: Array, folds: Array, strength: float
) -> Array:
    """Each row's value by the design of its fold, whose steps other rows have placed."""
    mean = np.empty(len(t))
    for k, design in designs.items():
        out = folds == k
        sums = Sums.of(design(x[~out]), t[~out], w[~out])
        mean[out] = design(x[out]) @ solve(sums, design.penalty(), strength)[0]
    return mean


def fit_location(
    recipe: Recipe,
    scale: Scale,
    design: Design,
    a: Array,
    t: Array,
    w: Array,
    folds: Array | None,
    strength: float | None,
) -> tuple[Linear, Array]:
    """The location by all rows, and each row's by the rows of the other folds."""
    if not recipe.proportional:
        return crossfit(design, a, t, w, folds, strength)
    size = np.exp(np.minimum(t * scale.unit, 50.0))
    fitted, mean = _plain_spread(design, a, size, w, folds, strength, PLAIN_LEAST)
    return fitted, mean / scale.unit


def on_scale(recipe: Recipe, scale: Scale, value: Array) -> Array:
    """What a location gives, on the scale that residuals are taken on."""
    if not recipe.proportional:
        return value
    return np.log(np.maximum(value, PLAIN_LEAST)) / scale.unit


def add_trees(
    old: Trees | None,
    own: Array,
    mean: Array,
    x: Array,
    t: Array,
    w: Array,
    folds: Array,
) -> tuple[Trees, Array]:
    """Trees for what the location ``own`` leaves, and each row's mean by trees without that row.

    ``mean``: each row's location by the rows of the other folds.
    """
    left = t - own
    if old is not None:
        return old.with_values(x, left, w), mean
    trees = Trees.regression(x, left, w)
    mean, told = np.full(len(t), np.nan), mean
    # Of many rows one fold is enough to score them.
    for k in np.unique(folds)[: 1 if len(t) >= FEW_FOR_TREES else None]:
        out = folds == k
        mean[out] = (
            told[out] + Trees.regression(x[~out], t[~out] - told[~out], w[~out])(x[out])[:, 0]
        )
    return trees, mean


def fit_spread(
    recipe: Recipe,
    x: Array,
    residual: Array,
    w: Array,
    folds: Array | None,
    groups: Any,
    old: Linear | None,
) -> tuple[Linear, Array]:
    r"""The log-scale: minimises :math:`\sum s + |r| e^{-s}`, which outliers do not dominate."""
    if old is not None:
        design, strength = old.design, old.strength
    else:
        design, strength = Design.build(x, groups, **SPREADS[recipe.spread]), None
    a, penalty = design(x), design.penalty()
    size = np.maximum(np.abs(residual), FLAT)
    if recipe.spread.startswith("plain"):
        return _plain_spread(design, a, size, w, folds, strength)
    own = np.zeros(len(size), int) if folds is None else folds
    parts = {k: Sums.of(a[own == k], np.log(size[own == k]), w[own == k]) for k in np.unique(own)}
    total = sum(list(parts.values())[1:], start=next(iter(parts.values())))
    start, strength = solve(total, penalty, strength)
    found = _newton(a, size, w, total.gram, start, penalty, strength)
    log_scale = a @ found
    if folds is None:
        parts = {}
    for k, part in parts.items():
        keep = folds != k
        own = _newton(
            a[keep], size[keep], w[keep], total.gram - part.gram, found, penalty, strength
        )
        log_scale[~keep] = a[~keep] @ own
    low, high = np.quantile(log_scale, [0.002, 0.998])
    return Linear(design, found, strength), np.clip(log_scale, low - 0.5, high + 0.5)


def _plain_spread(
    design: Design,
    a: Array,
    size: Array,
    w: Array,
    folds: Array | None,
    strength: float | None,
    least: float | None = None,
) -> tuple[Linear, Array]:
    """The scale itself, by least squares on the size of residuals, each by its own scale."""
    if least is None:
        least = PLAIN_LEAST * float(np.average(size, weights=w))
    fitted, found = crossfit(design, a, size, w, folds, strength)
    for _ in range(4):
        own = w / np.maximum(found, 20 * least) ** 2
        fitted, found = crossfit(design, a, size, own / own.mean(), folds, strength)
    return fitted, np.log(np.maximum(found, least))


def logged(recipe: Recipe, value: Array) -> Array:
    return np.log(np.maximum(value, 1e-12)) if recipe.spread.startswith("plain") else value


def _newton(
    a: Array, size: Array, w: Array, gram: Array, beta: Array, penalty: Array, strength: float
) -> Array:
    total = w.sum()
    ridge = strength * penalty + 1e-9
    inverse = np.linalg.inv(gram / total + np.diag(ridge))
    for _ in range(12):
        ratio = np.minimum(size * np.exp(-a @ beta), 5.0)
        step = inverse @ (a.T @ (w * (ratio - 1.0)) / total - ridge * beta)
        beta = beta + step
        if np.abs(step).max() < STILL:
            break
    return beta


def near(e: Array) -> Array:
    """Huber's weights."""
    middle = np.median(e)
    unit = 1.4826 * np.median(np.abs(e - middle)) or 1.0
    return 1.345 / np.maximum(np.abs(e - middle) / unit, 1.345)


def width(e: Array, w: Array, folds: Array, tails: bool = True) -> float:
    """How smooth the curve of noise is: the smoothest that held-out residuals do not contradict.

    ``tails``: whether the one curve with two tails may be chosen.
    """
    widths = [width for width in WIDTHS if tails or width != TAILED]
    scores = np.empty((len(widths), len(e)))
    for k in np.unique(folds):
        out = folds == k
        kept, own, left = e[~out], w[~out], e[out]
        order = np.argsort(kept, kind="stable")
        for density, width in zip(scores, widths, strict=True):
            density[out] = NoiseCurve.fit(kept, own, width, order).log_density(left)
    best = int(np.argmax([np.average(s, weights=w) for s in scores]))
    for k in range(best):
        gain = scores[best] - scores[k]
        if np.average(gain, weights=w) <= gain.std() / np.sqrt(len(gain)):
            return widths[k]
    return widths[best]
