"""The mechanism of a column: the simplest of those that predict held-out rows about best.

Every candidate is scored on rows that it had not seen by its log-density there (of levels and
counts: log-probability), a proper score: in expectation the truth has the highest. Candidates whose
mean falls behind the best one's by less than a standard error of the paired difference cannot be
told from it; of these the one with the fewest terms is taken. Outside the data, where no score
reaches, what needs less has less to go wrong.

The search is greedy, so that most columns try a dozen cheap candidates and no trees or network:
the scale first (as it is, logarithm, logit), then the location, trees if they find something in
what is left, the spread, and less weight for far residuals if tails are heavy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from vaca.engines.mechanisms.designs import MAX_TERMS, Design
from vaca.engines.mechanisms.levels import Levels, LevelsRecipe, fit_levels
from vaca.engines.mechanisms.numeric import Numeric, Recipe, fit_numeric
from vaca.engines.predictors import unequal

__all__ = ["Inputs", "Trial", "choose_levels", "choose_numeric", "make_folds"]

#: (curves, depth) of designs, from the simplest on.
DESIGNS = ((False, None), (False, 0), (True, None), (True, 0), (True, 1), (True, 2))
#: Fewer rows than this are not bent.
ROWS_FOR_CURVES = 40
#: Fewer rows than this grow no trees.
ROWS_FOR_TREES = 200
#: Levels beyond which no trees are tried: they grow for each level.
MAX_TREE_LEVELS = 12
#: Columns with more inputs than this are not asked for surfaces.
SURFACE_INPUTS = 6


@dataclass
class Inputs:
    """The rows a column is fitted to.

    Attributes
    ----------
    x : ndarray (n, features)
        Its parents as numbers.
    groups : list of int
        The parent that each feature belongs to.
    y, w, folds : ndarray (n,)
        Values (codes of levels), weights, and the fold each row is held out with.
    """

    x: np.ndarray
    groups: Sequence[int]
    y: np.ndarray
    w: np.ndarray
    folds: np.ndarray
    seed: int


@dataclass
class Trial:
    """One candidate: what it is, how it does on rows that it has not seen, how much it needs."""

    words: str
    density: np.ndarray
    terms: int
    mechanism: Any
    score: float = field(default=np.nan)
    error: float = field(default=np.nan)
    chosen: bool = False


def make_folds(n: int, seed: Sequence[int]) -> np.ndarray:
    """The fold of each row: five, or three where rows are many."""
    count = 5 if n < 3000 else 3
    return np.random.default_rng(seed).permutation(n) % count


def choose(trials: list[Trial], w: np.ndarray) -> Trial:
    """The simplest trial within a standard error (or a hair: 2 / n) of the best one."""
    best = max(trials, key=lambda t: float(np.average(t.density, weights=w)))
    for trial in trials:
        gap = best.density - trial.density
        trial.score = float(np.average(trial.density, weights=w))
        trial.error = float(np.std(w * gap) / np.sqrt(len(gap)))
        trial.chosen = False
    near = [t for t in trials if best.score - t.score <= max(t.error, 2.0 / len(w))]
    found = min(near, key=lambda t: (t.terms, -t.score))
    found.chosen = True
    return found


def lead(one: Trial, other: Trial, w: np.ndarray) -> float:
    """By how many standard errors one trial is better than another."""
    gap = w * (one.density - other.density)
    return float(gap.mean() / max(gap.std() / np.sqrt(len(gap)), 1e-12))


# ---------------------------------------------------------------------- numbers


def choose_numeric(
    given: Inputs, *, count: bool, families: frozenset[str]
) -> tuple[Numeric, list[Trial]]:
    """The mechanism of a continuous column or a count with causes, and all that were tried."""
    trials: dict[Recipe, Trial] = {}

    def attempt(recipe: Recipe) -> Trial:
        if recipe not in trials:
            rng = np.random.default_rng([given.seed, 6])  # the same dither for all
            fitted, density = fit_numeric(
                recipe, given.x, given.y, given.w, given.folds, given.groups, rng
            )
            terms = len(fitted.location.beta) + 300 * recipe.trees + recipe.robust
            terms += 0 if fitted.spread is None else len(fitted.spread.beta)
            terms += recipe.scale[0] != 0
            density = np.logaddexp(density, anywhere)  # else one far row outweighs all others
            trials[recipe] = Trial(recipe.words(), density, terms, fitted)
        return trials[recipe]

    anywhere = _background(given.y)

    def best() -> Recipe:
        return max(trials, key=lambda r: float(np.average(trials[r].density, weights=given.w)))

    designs = _designs(given, families)
    bend = max(c for c, d in designs if d is None)
    start = Recipe(curves=bend, count=count)
    first = attempt(start)
    if first.mechanism.exact or first.mechanism.scale.unit == 0.0:
        attempt(replace(start, curves=False))
        return choose(list(trials.values()), given.w).mechanism, list(trials.values())
    scale = _scale(given, start, attempt, families)
    base = replace(start, scale=scale)
    for curves, depth in designs:
        attempt(replace(base, curves=curves, depth=depth))
    if "trees" in families and _trees_help(given, trials[best()].mechanism):
        for recipe in (best(), base, replace(base, curves=False)):
            attempt(replace(recipe, trees=True))
    if "spread" in families:
        top = best()
        names = ["linear"] + (["curves"] if bend else [])
        names += ["surfaces"] if designs[-1] == (True, 2) else []
        for name in names:
            attempt(replace(top, spread=name))
        found = best()
        if found.spread and lead(trials[found], trials[top], given.w) > 1.0:
            for curves, depth in designs:
                attempt(replace(found, curves=curves, depth=depth, trees=False))
    if "robust" in families and _heavy(trials[best()].mechanism):
        top = best()
        if lead(attempt(replace(top, robust=True, trees=False)), trials[top], given.w) > 0:
            for curves, depth in designs:
                for spread in {"", best().spread}:
                    attempt(replace(base, curves=curves, depth=depth, spread=spread, robust=True))
    found = list(trials.values())
    return choose(found, given.w).mechanism, found


def _background(y: np.ndarray) -> np.ndarray:
    """Log-density (n,) of a wide Cauchy distribution that one row in a thousand may come from."""
    low, middle, high = np.quantile(y, [0.1, 0.5, 0.9])
    unit = (high - low) or float(y.std()) or 1.0
    return np.log(1e-3 / (np.pi * unit)) - np.log1p(((y - middle) / unit) ** 2)


def _designs(given: Inputs, families: frozenset[str]) -> list[tuple[bool, int | None]]:
    """Designs that the families allow and the rows can carry."""
    n, result = len(given.y), []
    several = len(set(given.groups)) > 1
    inputs = given.x.shape[1]
    for curves, depth in DESIGNS:
        if curves and ("curves" not in families or n < ROWS_FOR_CURVES):
            continue
        if depth is not None and ("products" not in families or not several):
            continue
        if depth is not None and depth >= 1 and inputs > SURFACE_INPUTS:
            continue
        if depth is not None and inputs**2 / 2 > min(MAX_TERMS, n / 3):
            continue
        design = Design.build(given.x, given.groups, curves=curves, depth=depth)
        if curves and not design.curves:
            continue  # levels only: there is nothing to bend
        free = (design.penalty() == 0).sum()
        if (curves, depth) == (False, None) or (
            len(design.penalty()) <= MAX_TERMS and free <= n / 4
        ):
            result.append((curves, depth))
    return result


def _scale(
    given: Inputs, start: Recipe, attempt: Callable[[Recipe], Trial], families: frozenset[str]
) -> tuple[int, float, float]:
    """The scale on which held-out rows are predicted best; as it is, unless another is clearly."""
    y = given.y
    if "scales" not in families:
        return start.scale
    low, high = float(y.min()), float(y.max())
    others = []
    if start.count:
        if high > 5:
            others.append((1, -1.0, 1.0))
    elif low > 0:
        others.append((1, 0.0, 1.0))
        if 0.8 < high < 1:
            others.append((2, 0.0, 1.0))
    best = start.scale
    reach = ["", "linear"] if "spread" in families else [""]
    top = max((attempt(replace(start, spread=s)) for s in reach), key=lambda t: t.density.mean())
    for scale in others:
        for spread in reach:
            trial = attempt(replace(start, scale=scale, spread=spread))
            if lead(trial, top, given.w) > 2.0:
                top, best = trial, scale
    return best


def _trees_help(given: Inputs, mechanism: Numeric) -> bool:
    """Whether small trees find something in the noise of rows they have not seen."""
    if len(given.y) < ROWS_FOR_TREES or mechanism.exact:
        return False
    u = mechanism.noise(given.x, given.y, None)
    return _leaves_trace(given, np.clip(u, -4, 4))


def _leaves_trace(given: Inputs, target: np.ndarray) -> bool:
    out = given.folds == 0
    keep = np.flatnonzero(~out)[:6000]
    small = HistGradientBoostingRegressor(
        max_iter=40, learning_rate=0.15, max_leaf_nodes=12, early_stopping=False, random_state=0
    ).fit(given.x[keep], target[keep], unequal(given.w[keep]))
    told = small.predict(given.x[out])
    gain = given.w[out] * (target[out] ** 2 - (target[out] - told) ** 2)
    return bool(gain.mean() > 1.5 * gain.std() / np.sqrt(len(gain)))


def _heavy(mechanism: Numeric) -> bool:
    """Whether residuals have tails that squares would follow."""
    if mechanism.exact:
        return False
    far = mechanism.curve.residual(np.array([-2.5, -0.6745, 0.6745, 2.5]))
    return bool(far[3] - far[0] > 1.6 * 3.706 * (far[2] - far[1]))


# ---------------------------------------------------------------------- levels


def choose_levels(
    given: Inputs, levels: int, families: frozenset[str]
) -> tuple[Levels, list[Trial]]:
    """The mechanism of a column with levels, and all that were tried."""
    trials: dict[LevelsRecipe, Trial] = {}

    def attempt(recipe: LevelsRecipe) -> Trial:
        if recipe not in trials:
            fitted, density = fit_levels(
                recipe, given.x, given.y, given.w, given.folds, given.groups, levels
            )
            terms = 300 if recipe.trees else 1 if recipe.frequencies else len(fitted.beta)
            trials[recipe] = Trial(recipe.words(), density, terms, fitted)
        return trials[recipe]

    told = given.x.shape[1] and np.ptp(given.x, axis=0).any() and len(np.unique(given.y)) > 1
    # Where rows can carry the causes at all they stay: what is left out has an effect of zero, and
    # no honest interval.
    if not told or len(given.y) < 10 * given.x.shape[1]:
        attempt(LevelsRecipe(frequencies=True))
    if told:
        for curves, depth in _designs(given, families):
            # Surfaces are dear here: only where plain products have found something.
            plain, product = (trials.get(LevelsRecipe(curves, d)) for d in (None, 0))
            if not depth or (plain and product and lead(product, plain, given.w) > 0):
                attempt(LevelsRecipe(curves, depth))
        top = choose(list(trials.values()), given.w)
        if "trees" in families and levels <= MAX_TREE_LEVELS and _levels_left(given, top.mechanism):
            attempt(LevelsRecipe(trees=True))
    found = list(trials.values())
    return choose(found, given.w).mechanism, found


def _levels_left(given: Inputs, mechanism: Levels) -> bool:
    """Whether small trees find something in what a mechanism leaves of its commonest levels."""
    if len(given.y) < ROWS_FOR_TREES:
        return False
    p = np.exp(mechanism.log_levels(given.x))
    common = np.argsort(-np.bincount(given.y, minlength=p.shape[1]))[: min(3, p.shape[1] - 1)]
    return any(_leaves_trace(given, (given.y == k) - p[:, k]) for k in common)
