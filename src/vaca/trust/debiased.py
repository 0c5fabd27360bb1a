r"""A cross-fitted, doubly robust estimate of the mean difference between two interventions.

The quantity is a linear functional of the regression :math:`g(a, z) = E[Y \mid A = a, Z = z]` of
the outcome on the treatment and the columns adjusted for,

.. math:: \theta = E[g(a_1, Z) - g(a_0, Z)] = E[\alpha(A, Z) \, Y],

with a weight :math:`\alpha` that depends only on the question (for two levels the inverse
propensity, for a shift a ratio of densities). Both are learned on four fifths of the rows and used
on the rest,

.. math:: \psi_i = g(a_1, z_i) - g(a_0, z_i) + \alpha_i \, (y_i - g(a_i, z_i)),

so that each corrects the errors of the other: the bias is the product of both errors. Chances of
levels are learned by logistic regressions. Other weights are learned without any density, as the
minimum of :math:`E[\alpha^2] - 2 E[\alpha(a_1, Z) - \alpha(a_0, Z)]` (Chernozhukov, Newey and
Singh, 2022).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np

from vaca.table.columns import row_count
from vaca.table.schema import Columns
from vaca.trust.features import SPANS, Features
from vaca.trust.regressions import PENALTIES, chances, mix, ridge, trees

__all__ = ["About", "Debiased", "debiased", "rule_of"]

#: Which rows a question is about.
About = Callable[[Columns], np.ndarray]

FOLDS = 5


@dataclass(frozen=True)
class Debiased:
    """An estimate, its error, and what it was made of, row by row.

    Attributes
    ----------
    value, standard_error, degrees : float
        The mean of the scores, its error, and the degrees of freedom of that error: few, if a few
        rows decide.
    influence : array of shape (n,)
        How much each row moves the estimate; its mean is zero.
    residual, weight : array of shape (n,)
        y - g and α.
    weight_moment : array of shape (n,)
        Its mean is E[α²], debiased.
    span : str or None
        The regression that was chosen, if there was a choice.
    """

    value: float
    standard_error: float
    degrees: float
    influence: np.ndarray
    residual: np.ndarray
    weight: np.ndarray
    weight_moment: np.ndarray
    span: str | None = None


def debiased(
    rows: Columns,
    y: np.ndarray,
    features: Features,
    arms: tuple[Columns, Columns],
    *,
    about: About | None = None,
    row_weights: np.ndarray | None = None,
    seed: int = 0,
    boosted: bool = True,
    span: str | None = None,
) -> Debiased:
    """Estimate E[Y(arm 1) - Y(arm 0)] among the rows that `about` chooses.

    Parameters
    ----------
    rows : Columns
        Encoded rows.
    y : array of shape (n,)
        The outcome in numbers.
    features : Features
    arms : pair of Columns
        The treated columns under the two interventions, one value for each row; none for an arm
        that leaves things as they are.
    about : callable, optional
        Rows -> which of them (n,) the question is about; by default all.
    row_weights : array, optional
        How many rows each stands for.
    boosted : bool
        Whether boosted trees are among the regressions.
    span : str, optional
        The regression of `SPANS` to use, where there is a choice.
    """
    n = len(y)
    base = np.ones(n) if row_weights is None else row_weights / row_weights.mean()
    target = np.ones(n) if about is None else about(rows).astype(float)
    share = float(np.mean(base * target))
    target = target / share
    centre = float(np.average(y, weights=base))
    scale = float(np.sqrt(np.average((y - centre) ** 2, weights=base))) or 1.0
    outcome = (y - centre) / scale
    versions = (rows, {**rows, **arms[0]}, {**rows, **arms[1]})
    folds = _folds(rows, features, seed)

    predicted = np.zeros((len(SPANS) + boosted, 3, n))
    weights = np.zeros((len(SPANS), len(PENALTIES), 3, n))
    for k, kind in enumerate(SPANS):
        matrices = [features.span(version, kind) for version in versions]
        for test in folds:
            predicted[k][:, test], weights[k][:, :, test] = ridge(
                matrices, outcome, target, base, test
            )
    if boosted:
        matrices = [features.raw(version) for version in versions]
        for test in folds:
            predicted[-1][:, test] = trees(matrices, outcome, base, test, seed)

    rule, used = rule_of(features, arms), None
    if rule == "one value":
        # No estimate of E[g(a, Z)] at one value of a number is both free of a model and of use at
        # such sizes: a curve of the treatment is taken only if the outcome asks for it, and the
        # weight is the one of that model.
        if span is None:
            k = _chosen(base * (predicted[: len(SPANS), 0] - outcome) ** 2)
        else:
            k = SPANS.index(span)
        used = SPANS[k]
        g, alpha = predicted[k], _best_weight(weights[k], target, base)
    else:
        g = np.tensordot(mix(predicted[:, 0], outcome, base), predicted, 1)
        if rule == "levels":
            g[1:] = np.clip(g[1:], outcome.min(), outcome.max())  # few rows of a level, wild lines
            alpha = _inverse_chances(rows, features, arms, about, share, base, folds)
        else:
            alpha = _best_weight(weights.reshape(-1, 3, n), target, base)
    residual = outcome - g[0]
    scores = target * (g[1] - g[2]) + alpha[0] * residual
    value = float(np.mean(base * scores))
    influence = base * (scores - target * value)
    error, degrees = _error(influence, base * alpha[0])
    return Debiased(
        value=value * scale,
        standard_error=error * scale,
        degrees=degrees,
        influence=influence * scale,
        residual=residual * scale,
        weight=alpha[0],
        weight_moment=base * _moment(alpha, target),
        span=used,
    )


def _moment(alpha: np.ndarray, target: np.ndarray) -> np.ndarray:
    """For weights (..., 3, n) in the rows and in both arms: its mean is E[α²], were α right."""
    ask = alpha[..., 1, :] - alpha[..., 2, :]
    return 2 * target * ask - alpha[..., 0, :] ** 2


def _best_weight(weights: np.ndarray, target: np.ndarray, base: np.ndarray) -> np.ndarray:
    """Of weights (k, 3, n) the one with the largest gain on unseen rows, less its error."""
    moments = base * _moment(weights, target)
    # The mean alone would choose weights that a handful of rows makes look good by chance.
    gains = moments.mean(-1) - moments.std(-1) / np.sqrt(moments.shape[-1])
    return weights[int(gains.argmax())]


def _inverse_chances(
    rows: Columns,
    features: Features,
    arms: tuple[Columns, Columns],
    about: About | None,
    share: float,
    base: np.ndarray,
    folds: list[np.ndarray],
) -> np.ndarray:
    r"""The weight (3, n) for levels: :math:`s(z) \, (1[A = a_1] / e_1(z) - 1[A = a_0] / e_0(z))`.

    :math:`s(z)` is the chance to be among those asked about, over their share. A chance e is kept
    above its mean over the root of the number of rows at that level, so that no row counts for more
    than that root's part; the weights of each level are then scaled to their right sum.
    """
    n = len(base)
    only = Features(rows, features.schema, (), features.covariates)
    spans = [only.span(rows, span) for span in ("plain", "curved")]
    seen = [np.unique(rows[name]) for name in features.treated]
    found: dict[tuple[int, ...], np.ndarray] = {}

    def chance(level: tuple[int, ...]) -> np.ndarray:
        if level not in found:
            taken = _has(rows, features.treated, level)
            found[level] = chances(spans, taken, base, folds)
        return found[level]

    if about is None:
        asked = np.ones(n)
    else:
        asked = np.zeros(n)
        for level in product(*(map(int, codes) for codes in seen)):
            if _has(rows, features.treated, level).any():
                put = {c: np.full(n, v) for c, v in zip(features.treated, level, strict=True)}
                chosen = about({**rows, **put})
                if chosen.any():
                    asked += chance(level) * chosen
    alpha = np.zeros((3, n))
    for arm, sign in zip(arms, (1.0, -1.0), strict=True):
        if not arm:  # as things are: the weight is that of being asked about
            alpha += sign * (np.ones(n) if about is None else about(rows)) / share
            continue
        level = tuple(int(arm[name][0]) for name in features.treated)
        taken = _has(rows, features.treated, level)
        mean = float(np.mean(base * taken))
        e = np.maximum(chance(level), mean / np.sqrt(max(taken.sum(), 1)))
        weight = asked / e / share
        weight *= 1 / max(float(np.mean(base * taken * weight)), 1e-12)
        alpha[0] += sign * taken * weight
        alpha[1 if sign > 0 else 2] += sign * weight
    return alpha


def _has(rows: Columns, names: tuple[str, ...], level: tuple[int, ...]) -> np.ndarray:
    return np.logical_and.reduce(
        [rows[name] == code for name, code in zip(names, level, strict=True)]
    )


def rule_of(features: Features, arms: tuple[Columns, Columns]) -> str:
    """Which rule applies: "levels", "one value" of a number, or "moved" for the rest."""
    if all(name in features.levels for name in features.treated) and all(
        len(arm) in (0, len(features.treated)) and all(np.ptp(v) == 0 for v in arm.values())
        for arm in arms
    ):
        return "levels"
    fixed = (
        name in features.scale and np.ptp(values) == 0
        for arm in arms
        for name, values in arm.items()
    )
    return "one value" if any(fixed) else "moved"


def _error(influence: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """The standard error of a mean, and its degrees of freedom by the fourth moment.

    Where the weights leave a side worth only k rows, its error is that of k rows with two
    parameters fitted to them.
    """
    n = len(influence)
    total, fourth = float(np.sum(influence**2)), float(np.sum(influence**4))
    if total == 0:
        return 0.0, n - 1.0
    sides = [part[part > 0] for part in (weight, -weight)]
    k = min([float(part.sum() ** 2 / np.sum(part**2)) for part in sides if len(part)], default=n)
    k = max(k, 4.0)
    degrees = 2 * total**2 / max(fourth - total**2 / n, 1e-12 * total**2)
    variance = total / (n - 1) / n * k / (k - 2)
    return float(np.sqrt(variance)), float(np.clip(degrees, 2.0, n - 1.0))


def _folds(rows: Columns, features: Features, seed: int) -> list[np.ndarray]:
    """Rows of each part; every part gets its share of each level, however few they are."""
    n = row_count(rows)
    order = np.random.default_rng(seed).permutation(n)
    levels = [rows[name][order] for name in features.treated if name in features.levels]
    if levels:
        order = order[np.lexsort(levels)]
    return [np.sort(order[k::FOLDS]) for k in range(FOLDS)]


def _chosen(misses: np.ndarray) -> int:
    """Which of the regressions of `SPANS` (4, n) predicts best.

    Products of treatment and covariates are taken only if they help by more than one standard
    error: they make estimates much wider, and without them an average effect is hardly biased. A
    curve of the treatment needs no such lead, as an effect without it can be far off.
    """
    means = misses.mean(-1)
    best, without = int(means.argmin()), int(means[:2].argmin())
    more = misses[without] - misses[best]
    return without if more.mean() <= more.std() / np.sqrt(len(more)) else best
