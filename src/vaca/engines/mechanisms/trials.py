"""Candidates for a column's mechanism: their inputs, how they score, which is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vaca.engines.mechanisms.designs import MAX_TERMS, WIDE_TERMS, Design, too_many_pairs

__all__ = ["Inputs", "Trial", "choose", "lead", "make_folds", "possible_designs"]

#: (curves, depth) of designs; 2 and 3 are powers up to that (see `designs.Design`).
DESIGNS = ((0, None), (0, 0), (1, None), (1, 0), (1, 1), (1, 2))
POWERS = ((2, None), (2, 0), (3, None), (3, 0))
#: Fewer rows than this are not bent.
ROWS_FOR_CURVES = 40
#: Fewer rows than this make no steps.
ROWS_FOR_STEPS = 100
#: Standard errors by which steps must beat everything without them: a bend looks like a step.
STEPS_LEAD = 2.0
#: Fewer rows than this are few: more folds, and candidates that cannot be told apart.
FEW_ROWS = 3000
#: Standard errors by which several candidates together must beat the chosen one, and where rows are
#: many: there, what is better is so clearly.
BLEND_LEAD, MANY_LEAD = 1.0, 2.0
#: Fewer rows than this grow no trees.
ROWS_FOR_TREES = 200
#: The mean distance of values from their medians may be this many times the best candidate's.
MISSES = 1.1
#: Columns with more inputs than this are not asked for surfaces.
SURFACE_INPUTS = 6
#: With more inputs than that, varying curves may have this many terms.
VARYING_TERMS = 160


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


@dataclass(eq=False)
class Trial:
    """One candidate: what it is, how it does on rows that it has not seen, how much it needs."""

    words: str
    density: np.ndarray
    terms: int
    mechanism: Any
    miss: np.ndarray | None = None
    told: np.ndarray | None = None  # its location of each row, on the mechanism's scale
    wide: bool = False  # its draws spread further than the data
    score: float = field(default=np.nan)
    error: float = field(default=np.nan)
    chosen: bool = False


def make_folds(n: int, seed: Sequence[int]) -> np.ndarray:
    """The fold of each row: five, or three where rows are many."""
    count = 5 if n < FEW_ROWS else 3
    return np.random.default_rng(seed).permutation(n) % count


def choose(trials: list[Trial], w: np.ndarray, allowed: list[Trial] | None = None) -> Trial:
    """The simplest trial within a standard error (or a hair: 2 / n) of the best one.

    Only `allowed` ones can be chosen, if given; the others get scores too.
    """
    for trial in trials:
        trial.score = score(trial, trials[0], w)
        trial.chosen = False
    fair = near_the_mark(trials if allowed is None else allowed, w)
    best = max(fair, key=lambda t: t.score)
    for trial in trials:
        trial.error = gain(best, trial, w)[1]
    near = [t for t in fair if best.score - t.score <= max(t.error, 2.0 / len(w))]
    found = min(near, key=lambda t: (t.terms, -t.score))
    found.chosen = True
    return found


def near_the_mark(trials: Sequence[Trial], w: np.ndarray) -> list[Trial]:
    """Trials whose medians are about as near to the held-out values as the best one's.

    Where a column is nearly a function of its causes, a density can be high because most rows are
    met exactly, while the others are missed by far.
    """
    first = trials[0].miss
    if first is None:
        return list(trials)
    ratio = []
    for trial in trials:
        known = np.isfinite(trial.miss) & np.isfinite(first)  # type: ignore[arg-type]
        own, base = (float(np.average(m[known], weights=w[known])) for m in (trial.miss, first))  # type: ignore[index]
        ratio.append(own / max(base, 1e-300))
    return [t for t, r in zip(trials, ratio, strict=True) if r <= MISSES * min(ratio) + 1e-9]


def score(trial: Trial, first: Trial, w: np.ndarray) -> float:
    """Mean log-density; of a trial that was scored on some rows, by its gain over the first."""
    known = np.isfinite(first.density)
    return float(np.average(first.density[known], weights=w[known])) + gain(trial, first, w)[0]


def gain(one: Trial, other: Trial, w: np.ndarray) -> tuple[float, float]:
    """By how much one trial is better than another where both are known; the standard error."""
    gap = one.density - other.density
    known = np.isfinite(gap)
    gap, w = gap[known], w[known] / w[known].mean()
    return float(np.mean(w * gap)), float(np.std(w * gap) / np.sqrt(len(gap)))


def lead(one: Trial, other: Trial, w: np.ndarray) -> float:
    """By how many standard errors one trial is better than another."""
    better, error = gain(one, other, w)
    return better / max(error, 1e-12)


def together(trial: Trial, chosen: Trial, w: np.ndarray) -> Trial:
    """Several candidates as one trial; chosen in place of the simplest good one if better."""
    better, trial.error = gain(trial, chosen, w)
    trial.score = chosen.score + better
    if better > (BLEND_LEAD if len(w) < FEW_ROWS else MANY_LEAD) * trial.error:
        chosen.chosen, trial.chosen = False, True
    return trial


def possible_designs(
    given: Inputs, families: frozenset[str], *, wide: bool = False
) -> list[tuple[int, int | None]]:
    """Designs that the families allow and the rows can carry.

    ``wide``: also powers, curves of many inputs, and products of those pairs that explain
    something.
    """
    n, result = len(given.y), []
    several = len(set(given.groups)) > 1
    inputs = given.x.shape[1]
    many = too_many_pairs(inputs, n)
    for curves, depth in DESIGNS + (POWERS if wide else ()):
        if curves and ("curves" not in families or n < ROWS_FOR_CURVES):
            continue
        if depth is not None and ("products" not in families or not several):
            continue
        if depth is not None and depth >= 1 + wide and inputs > SURFACE_INPUTS:
            continue
        if depth is not None and many and not wide:
            continue
        pairs = [] if many else None  # they are looked for at the fit
        design = Design.build(given.x, given.groups, curves=curves, depth=depth, pairs=pairs)
        if curves and not design.curves:
            continue  # levels only: there is nothing to bend
        free = (design.penalty() == 0).sum()
        most = WIDE_TERMS if wide and (many or depth is None) else MAX_TERMS
        if depth == 1 and not many and inputs > SURFACE_INPUTS:
            most = VARYING_TERMS
        if (curves, depth) == (0, None) or (len(design.penalty()) <= most and free <= n / 4):
            result.append((curves, depth))
    return result
