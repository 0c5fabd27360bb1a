"""The mechanism of a column with levels: the simplest that predicts held-out rows about best."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vaca.engines.mechanisms.blend import Mixture, ends, in_words, kept, likeliest_shares
from vaca.engines.mechanisms.designs import Array
from vaca.engines.mechanisms.levels import Levels, LevelsRecipe, fit_levels
from vaca.engines.mechanisms.trials import (
    FEW_ROWS,
    ROWS_FOR_STEPS,
    ROWS_FOR_TREES,
    STEPS_LEAD,
    Inputs,
    Trial,
    choose,
    lead,
    possible_designs,
    score,
    together,
)
from vaca.engines.trees import leaves_trace

__all__ = ["choose_levels"]

#: Standard errors by which products of causes must beat all without them, where two causes have
#: levels, and elsewhere.
PRODUCTS_LEAD, PLAIN_LEAD = 3.0, 1.0
#: A level with a smaller share of the rows is rare.
RARE = 0.05
#: Levels beyond which no trees are tried: they grow for each level.
MAX_TREE_LEVELS = 12


def choose_levels(
    given: Inputs, levels: int, families: frozenset[str], *, ordered: bool = False
) -> tuple[Levels | Mixture, list[Trial]]:
    """The mechanism of a column with levels, and all that were tried.

    Levels that are not known to be ordered are treated as ordered only if that predicts best.
    """
    trials: dict[LevelsRecipe, Trial] = {}

    def attempt(recipe: LevelsRecipe) -> Trial:
        if recipe not in trials:
            fitted, density = fit_levels(
                recipe, given.x, given.y, given.w, given.folds, given.groups, levels
            )
            terms = 300 if recipe.trees else 1 if recipe.frequencies else len(fitted.beta)
            terms += len(fitted.spread)
            terms *= 1 if recipe.ordered and ordered else levels - 1
            terms -= recipe.shrunk  # the simpler of two that cannot be told apart
            trials[recipe] = Trial(recipe.words(), density, terms, fitted)
        return trials[recipe]

    told = given.x.shape[1] and np.ptp(given.x, axis=0).any() and len(np.unique(given.y)) > 1
    # Causes stay wherever the rows allow it: one that is left out has an effect of exactly zero,
    # and no honest interval.
    if not told or len(given.y) < 10 * given.x.shape[1]:
        attempt(LevelsRecipe(frequencies=True))
    if told:
        for curves, depth in possible_designs(given, families):
            # Surfaces are expensive here: only where plain products have found something.
            plain, product = (trials.get(LevelsRecipe(curves, d)) for d in (None, 0))
            if not depth or (plain and product and lead(product, plain, given.w) > 0):
                attempt(LevelsRecipe(curves, depth))
                if levels > 2:
                    attempt(LevelsRecipe(curves, depth, ordered=True))
        top = choose(list(trials.values()), given.w, _clear(trials, given))
        if "steps" in families and len(given.y) >= ROWS_FOR_STEPS:
            for recipe in dict.fromkeys((LevelsRecipe(), top.mechanism.recipe)):
                if not recipe.frequencies and recipe.depth in (None, 0):
                    attempt(replace(recipe, steps=True))
            top = choose(list(trials.values()), given.w, _clear(trials, given))
        if "spread" in families:
            for recipe in dict.fromkeys((LevelsRecipe(), top.mechanism.recipe)):
                if recipe.depth in (None, 0) and not recipe.frequencies:
                    attempt(replace(recipe, ordered=True, spread=True))
            top = choose(list(trials.values()), given.w, _clear(trials, given))
        if "trees" in families and levels <= MAX_TREE_LEVELS and _levels_left(given, top.mechanism):
            attempt(LevelsRecipe(trees=True))
    recipe = choose(list(trials.values()), given.w, _clear(trials, given)).mechanism.recipe
    if told and not recipe.trees and not recipe.frequencies:
        # Odds of a level that hardly occurs, or only together with another, run off, and show
        # where interventions part the two. Rows that follow a strict rule say so clearly.
        attempt(replace(recipe, shrunk=True))
    found = list(trials.values())
    clear = _clear(trials, given)
    chosen = choose(found, given.w, clear)
    # Products may say anything about pairs that hardly occur; of many rows, good ones are clear.
    rare = _rare(given.x)
    few = len(given.y) < FEW_ROWS and not rare
    pool = [
        trial
        for recipe, trial in trials.items()
        if (recipe.depth is None or few or trial in clear) and not recipe.frequencies
    ]
    if "blends" in families and chosen in pool:
        pool, _ = _shares(given, chosen, pool)
        if rare and chosen.mechanism.recipe.shrunk:
            # The odds of one part that ran off would move the average anywhere.
            own = [t.mechanism.recipe for t in pool]
            pool = [attempt(r if r.trees else replace(r, shrunk=True)) for r in own]
            found = list(trials.values())
            choose(found, given.w, clear)  # the same one; the others get scores
    mixed = _mixed(given, chosen, pool) if "blends" in families else None
    found += [] if mixed is None else [mixed]
    return next(t for t in found if t.chosen).mechanism, found


def _shares(given: Inputs, chosen: Trial, found: list[Trial]) -> tuple[list[Trial], Array]:
    """The trials that belong in a mixture, the chosen one first, and their shares."""
    trials = list(dict.fromkeys([chosen, *found]))
    log_p = np.stack([trial.density for trial in trials], 1)
    keep = kept(likeliest_shares(log_p, given.w))
    return [trials[k] for k in keep], likeliest_shares(log_p[:, keep], given.w)


def _mixed(given: Inputs, chosen: Trial, found: list[Trial]) -> Trial | None:
    """Probabilities of several candidates; chosen if that is better."""
    if chosen not in found:
        return None
    trials, shares = _shares(given, chosen, found)
    if len(trials) == 1:
        return None
    log_p = np.stack([trial.density for trial in trials], 1)
    parts = [trial.mechanism for trial in trials]
    mixture = Mixture(parts, shares, *ends(given.x))
    words = in_words(shares, [trial.words for trial in trials])
    density = np.log(np.exp(log_p) @ shares)
    terms = sum(trial.terms for trial in trials)
    return together(Trial(words, density, terms, mixture), chosen, given.w)


def _clear(trials: dict[LevelsRecipe, Trial], given: Inputs) -> list[Trial]:
    """All trials except products and steps that are not clearly better than those without.

    Interventions ask for pairs of levels that hardly occur together, and there a product of nearly
    certain levels can say anything.
    """
    w, groups = given.w, np.asarray(given.groups)
    have_levels = [np.isin(given.x[:, groups == k], (0.0, 1.0)).all() for k in np.unique(groups)]
    bar = PRODUCTS_LEAD if sum(have_levels) > 1 else PLAIN_LEAD
    smooth = {r: t for r, t in trials.items() if not r.steps}
    plain = [t for r, t in smooth.items() if r.depth is None]
    top = max(plain, key=lambda t: score(t, plain[0], w))
    pairs = [t for r, t in smooth.items() if r.depth is not None]
    clear = plain + [t for t in pairs if lead(t, top, w) > bar]
    top = max(clear, key=lambda t: score(t, plain[0], w))
    steps = [t for r, t in trials.items() if r.steps]
    return clear + [t for t in steps if lead(t, top, w) > STEPS_LEAD]


def _rare(x: np.ndarray) -> bool:
    """Whether a level of a cause has few rows: a product with it is a guess about most others."""
    share = ((x == x.min(0)).mean(0), (x == x.max(0)).mean(0))
    return bool(((share[0] + share[1] == 1.0) & (np.minimum(*share) < RARE)).any())


def _levels_left(given: Inputs, mechanism: Levels) -> bool:
    """Whether small trees find something in what a mechanism leaves of its commonest levels."""
    if len(given.y) < ROWS_FOR_TREES:
        return False
    p = np.exp(mechanism.log_levels(given.x))
    common = np.argsort(-np.bincount(given.y, minlength=p.shape[1]))[: min(3, p.shape[1] - 1)]
    out = [given.folds == 0]
    return any(leaves_trace(given.x, (given.y == k) - p[:, k], given.w, out) for k in common)
