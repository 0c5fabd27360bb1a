r"""Mechanisms of columns with levels: probabilities that are functions of the parents.

.. math:: \log p(x_j = l \mid x_{pa(j)}) = f_l(x_{pa(j)}) - \log \sum_k e^{f_k(x_{pa(j)})}

with :math:`f_l` lines, curves, surfaces or boosted trees. Levels that come in an order may share
one function instead, cut at thresholds:

.. math:: p(x_j \le l \mid x_{pa(j)}) = \frac{1}{1 + e^{f(x_{pa(j)}) - c_l}}

How noise picks a level is in `columnwise`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import log_softmax

from vaca.engines.mechanisms.designs import MAX_STEPS, Array, Design, snapped, with_steps
from vaca.engines.mechanisms.odds import SPREADS, log_ordered, logistic, ordered, ordered_spread
from vaca.engines.trees import Trees

__all__ = ["Levels", "LevelsRecipe", "fit_levels"]

#: Prior precision of every coefficient of a standardised term, for levels that a line separates.
PRIOR = 0.02
#: The same if coefficients are shrunk, and the prior sd of what a level of a cause, or a product
#: that few rows carry, then adds to log-odds.
SHRUNK, JUMP = 0.1, 3.0
#: A product whose largest value is this many standard deviations is carried by few rows.
FEW = 4.0
#: Prior precisions of bends that are tried.
STRENGTHS = (0.03, 1.0, 30.0)
#: Scores count log-probabilities as at least this: a level may be new with such parents.
FLOOR = -12.0


@dataclass(frozen=True)
class LevelsRecipe:
    """What is to be fitted; ``design`` None: the same frequencies for all rows."""

    curves: int = 0
    depth: int | None = None
    trees: bool = False
    frequencies: bool = False
    ordered: bool = False
    steps: bool = False
    shrunk: bool = False
    spread: bool = False

    def words(self) -> str:
        """What a person reads in the leaderboard."""
        if self.frequencies:
            return "frequencies"
        if self.trees:
            return "boosted trees"
        names = {
            (False, None): "linear", (False, 0): "linear with products",
            (True, None): "curves", (True, 0): "curves with products",
            (True, 1): "varying curves", (True, 2): "surfaces",
        }  # fmt: skip
        kind = "ordered logistic" if self.ordered else "logistic"
        steps = " with steps" if self.steps else ""
        spread = ", spread linear" if self.spread else ""
        shrunk = ", shrunk" if self.shrunk else ""
        return f"{kind}, {names[self.curves, self.depth]}{steps}{spread}{shrunk}"


@dataclass
class Levels:
    """Fitted log-odds of levels."""

    recipe: LevelsRecipe
    levels: int
    design: Design
    beta: Array  # (terms, levels); if ordered (terms, 1)
    strength: float
    trees: Trees | None
    thresholds: Array = field(default_factory=lambda: np.zeros(0))  # if ordered (levels - 1,)
    spread: Array = field(default_factory=lambda: np.zeros(0))  # if it varies (inputs,)
    limits: Array = field(default_factory=lambda: np.zeros(2))  # of its logarithm

    def log_levels(self, x: Array) -> Array:
        """Log-probabilities (n, levels)."""
        if self.recipe.ordered:
            fitted = (self.beta, self.thresholds, self.spread)
            return _told_ordered(self.design(x), fitted, self.limits)
        scores = self.design(x) @ self.beta if self.trees is None else self.trees(x)
        return log_softmax(scores, axis=1)

    def log_density(self, x: Array, y: Array) -> Array:
        return self.log_levels(x)[np.arange(len(y)), y]

    def refit(self, x: Array, y: Array, w: Array, folds: Array, rng: Any) -> Levels:
        """The same mechanism fitted to weighted rows, with the same choices."""
        if self.trees is not None:
            trees = self.trees.with_level_values(x, y, w)
            return Levels(self.recipe, self.levels, self.design, self.beta, 0.0, trees)
        terms = self.design(x)
        penalty = self.design.penalty() * self.strength + _prior(self.recipe, self.design, terms)
        start: Any = self.beta
        if self.recipe.ordered:
            start = (self.beta, self.thresholds, self.spread)
        found = _fit(self.recipe, self.design, terms, y, w, self.levels, penalty, start)
        return _made(self.recipe, self.levels, self.design, terms, found, self.strength)

    def arrays(self) -> dict[str, Array]:
        r, d = self.recipe, self.design
        depth = -1 if r.depth is None else r.depth
        plan = [r.curves, depth, r.trees, r.frequencies, self.levels, r.ordered, r.steps]
        plan += [r.shrunk, r.spread]
        state = {"plan": np.array(plan, np.int64), "beta": self.beta, **d.arrays()}
        state["thresholds"] = self.thresholds
        if r.spread:
            state["spread"] = np.concatenate([self.limits, self.spread])
        state["strength"] = np.array([self.strength])
        if self.trees is not None:
            state |= {f"trees.{k}": np.asarray(v) for k, v in vars(self.trees).items()}
        return state

    @classmethod
    def from_arrays(cls, state: dict[str, Array]) -> Levels:
        # Folders of earlier revisions end before ordered levels, before steps or before spreads.
        plan = [*(int(v) for v in state["plan"]), 0, 0, 0, 0][:9]
        curves, depth, trees, frequencies, levels, ordered, steps, shrunk, spread = plan
        recipe = LevelsRecipe(
            curves, None if depth < 0 else depth, bool(trees), bool(frequencies), bool(ordered),
            bool(steps), bool(shrunk), bool(spread),
        )  # fmt: skip
        design = Design.from_arrays(state)
        own = {k[6:]: v for k, v in state.items() if k.startswith("trees.")}
        made = Trees(**own) if own else None
        strength = float(state["strength"][0])
        thresholds = state.get("thresholds", np.zeros(0))
        wide = state.get("spread", np.zeros(2))
        return cls(
            recipe, levels, design, state["beta"], strength, made, thresholds, wide[2:], wide[:2]
        )


def fit_levels(
    recipe: LevelsRecipe, x: Array, y: Array, w: Array, folds: Array, groups: Any, levels: int
) -> tuple[Levels, Array]:
    """Fit a mechanism; also the log-probability (n,) of each row by a fit that had not seen it."""
    every = np.unique(folds)
    if recipe.trees:
        trees = Trees.classification(x, y, levels, w)
        density = np.empty(len(y))
        for k in every:
            out = folds == k
            if len(np.unique(y[~out])) < 2:
                return Levels(recipe, levels, _blank(x), np.zeros((1, levels)), 0.0, trees), (
                    np.full(len(y), FLOOR)
                )
            own = Trees.classification(x[~out], y[~out], levels, w[~out])
            found = log_softmax(own(x[out]), axis=1)
            density[out] = np.maximum(found[np.arange(out.sum()), y[out]], FLOOR)
        return Levels(recipe, levels, _blank(x), np.zeros((1, levels)), 0.0, trees), density
    if recipe.frequencies:
        design = _blank(x)
    else:
        design = Design.build(x, groups, curves=recipe.curves, depth=recipe.depth)
    designs = dict.fromkeys(every, design)
    if recipe.steps:
        bare, design = design, _stepped(design, x, y, w, levels)
        if not len(design.cuts):  # nothing new to try
            beta, cuts = np.zeros((len(design.penalty()), levels)), np.zeros(levels - 1)
            return Levels(recipe, levels, design, beta, 0.0, None, cuts), np.full(len(y), FLOOR)
        for k in every:  # steps that a row has helped to find flatter it
            other = folds != k
            own_steps = _stepped(bare, x[other], y[other], w[other], levels)
            designs[k] = snapped(own_steps, design, x)
    a, penalised = design(x), design.penalty()
    prior = _prior(recipe, design, a)
    own = dict.fromkeys(every, (a, penalised, prior))
    if recipe.steps:
        for k, d in designs.items():
            own[k] = (d(x), d.penalty(), _prior(recipe, d, d(x[folds != k])))
    best: tuple[float, float, Array] | None = None
    starts: dict[Any, Any] = {}
    # Newton's method ends at the same place from everywhere: it may start from another fold's.
    shared, near = (recipe.ordered or levels == 2) and not recipe.steps, None
    told: Any = _told_ordered if recipe.ordered else _told
    for strength in reversed(STRENGTHS) if penalised.any() else (0.0,):
        density = np.empty(len(y))
        for k in every:
            out = folds == k
            terms, pays, before = own[k]
            penalty = pays * strength + before
            rows = (terms[~out], y[~out], w[~out])
            starts[k] = _fit(recipe, design, *rows, levels, penalty, starts.get(k, near))
            near = starts[k] if shared else None
            found = told(terms[out], starts[k])
            density[out] = np.maximum(found[np.arange(out.sum()), y[out]], FLOOR)
        score = float(np.average(density, weights=w))
        if best is None or score > best[0]:
            best = (score, strength, density)
    _, strength, density = best  # type: ignore[misc]  # there is always one strength
    start = starts[every[0]] if len(every) and not recipe.steps else None
    fitted = _fit(recipe, design, a, y, w, levels, penalised * strength + prior, start)
    return _made(recipe, levels, design, a, fitted, strength), density


def _fit(
    recipe: LevelsRecipe,
    design: Design,
    a: Array,
    y: Array,
    w: Array,
    levels: int,
    penalty: Array,
    start: Any,
) -> Any:
    """Coefficients; of ordered levels also thresholds, and what the spread follows."""
    if not recipe.ordered:
        return logistic(a, y, w, levels, penalty, start)
    if recipe.spread:
        inputs = a[:, 1 : 1 + len(design.mean)]  # as they are, behind the intercept
        return ordered_spread(a, inputs, y, w, levels, penalty, start)
    return *ordered(a, y, w, levels, penalty, None if start is None else start[:2]), np.zeros(0)


def _made(
    recipe: LevelsRecipe, levels: int, design: Design, a: Array, fitted: Any, strength: float
) -> Levels:
    if not recipe.ordered:
        return Levels(recipe, levels, design, fitted, strength, None)
    beta, cuts, spread = fitted
    log_unit = a[:, 1 : 1 + len(spread)] @ spread
    limits = np.clip([log_unit.min(), log_unit.max()], -SPREADS, SPREADS)
    return Levels(recipe, levels, design, beta, strength, None, cuts, spread, limits)


def _prior(recipe: LevelsRecipe, design: Design, a: Array) -> Array:
    """Prior precision of the coefficient of each term (terms,)."""
    if not recipe.shrunk:
        return np.full(a.shape[1], PRIOR)
    low, high = a.min(0), a.max(0)
    gap = np.where(((a == low) | (a == high)).all(0), high - low, 0.0)
    products = design.products()
    reach = np.abs(a[:, products]).max(0, initial=0.0)
    few = reach > FEW * a[:, products].std(0)
    gap[products] = np.maximum(gap[products], np.where(few, reach, 0.0))
    return np.maximum(SHRUNK, (gap / JUMP) ** 2)


def _stepped(design: Design, x: Array, y: Array, w: Array, levels: int) -> Design:
    """The design with the steps of each level's share, the commonest levels first."""
    common = np.argsort(-np.bincount(y, w, levels), kind="stable")[: max(levels - 1, 1)]
    found = [with_steps(design, x, (y == k).astype(float), w).cuts for k in common[:3]]
    cuts: list[Array] = []
    for cut in np.concatenate(found):
        spread = design.scale[int(cut[0])]
        if all(c[0] != cut[0] or abs(c[1] - cut[1]) > 0.05 * spread for c in cuts):
            cuts.append(cut)
    return replace(design, cuts=np.array(cuts[:MAX_STEPS]).reshape(-1, 2))


def _told(a: Array, beta: Array) -> Array:
    return log_softmax(a @ beta, axis=1)


def _told_ordered(
    a: Array, fitted: tuple[Array, Array, Array], limits: Any = (-SPREADS, SPREADS)
) -> Array:
    beta, cuts, spread = fitted
    if not len(spread):
        return log_ordered(a @ beta[:, 0], cuts)
    unit = np.exp(np.clip(a[:, 1 : 1 + len(spread)] @ spread, *limits))
    return log_ordered(a @ beta[:, 0], cuts, unit)


def _blank(x: Array) -> Design:
    """An intercept and nothing else: every input is multiplied by zero."""
    f = x.shape[1]
    return Design(
        np.zeros(f), np.full(f, np.inf), np.zeros(0, np.int64), np.zeros((0, 3)),
        np.zeros((0, 2), np.int64), np.array([0]),
    )  # fmt: skip
