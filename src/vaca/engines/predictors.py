"""Regressors and classifiers that are nothing but arrays once fitted.

scikit-learn does the fitting and the choice by cross-validation; what is kept are coefficients and
tree tables, evaluated here. So a model is saved without pickle and a loaded one gives the same
numbers as the fitted one.
"""

from __future__ import annotations

import abc
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from scipy.special import log_softmax

from vaca.errors import VacaError

if TYPE_CHECKING:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

__all__ = ["Corrected", "Polynomial", "Splines", "Trees", "choose_classifier", "choose_regressor"]

#: Polynomials with more terms than this are not tried.
MAX_TERMS = 300
#: Boosted classifiers grow trees for each level: beyond this many they are not tried.
MAX_BOOSTED_LEVELS = 12
FOLDS = 3
#: Of a spline, at quantiles of its input.
KNOTS = 8
#: Of what a tree finds, this much is taken: in regression and in classification.
RATE, LEVEL_RATE = 0.06, 0.08

L = TypeVar("L", bound="_Linear")


@dataclass
class _Linear(abc.ABC):
    """Linear in a design matrix of standardised inputs; a subclass says which."""

    mean: np.ndarray
    scale: np.ndarray
    weights: np.ndarray  # (terms, outputs)
    bias: np.ndarray  # (outputs,)

    @abc.abstractmethod
    def design(self, x: np.ndarray) -> np.ndarray:
        """The matrix (n, terms) in which the predictor is linear."""

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return self.design(x) @ self.weights + self.bias

    def regress(self: L, x: np.ndarray, y: np.ndarray, w: np.ndarray | None = None) -> L:
        """Ridge regression; its strength is chosen by leave-one-out."""
        from sklearn.linear_model import RidgeCV

        ridge = RidgeCV(alphas=np.logspace(-3, 3, 7)).fit(self.design(x), y, unequal(w))
        self.weights = np.asarray(ridge.coef_, float).reshape(-1, 1)
        self.bias = np.atleast_1d(np.asarray(ridge.intercept_, float))
        return self

    def classify(
        self: L, x: np.ndarray, y: np.ndarray, levels: int, w: np.ndarray | None = None
    ) -> L:
        """Logistic regression; levels that never occur get a very low score."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
            logistic = LogisticRegression(max_iter=200).fit(self.design(x), y, unequal(w))
        weights, bias = logistic.coef_.T, logistic.intercept_
        if len(logistic.classes_) == 2:  # scikit-learn keeps one score for two classes
            weights = np.concatenate([np.zeros_like(weights), weights], 1)
            bias = np.concatenate([[0.0], bias])
        self.weights, self.bias = _spread(weights, bias, logistic.classes_, levels)
        return self


@dataclass
class Polynomial(_Linear):
    r"""Linear in monomials: :math:`y = b + \sum_k w_k \prod_i z_i^{p_{ki}}`, z standardised.

    Inputs are cut to the range seen in training (widened by half a standard deviation) when the
    degree is above one: a polynomial says nothing outside it.

    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 50)[:, None]
    >>> model = Polynomial.blank(x, degree=2).regress(x, x[:, 0] ** 2)
    >>> bool(np.allclose(model(x)[:, 0], x[:, 0] ** 2, atol=1e-2))
    True
    """

    low: np.ndarray
    high: np.ndarray
    terms: np.ndarray  # (terms, degree): which inputs are multiplied; -1: none

    def design(self, x: np.ndarray) -> np.ndarray:
        z = (x - self.mean) / self.scale
        if self.terms.shape[1] > 1:
            z = np.clip(z, self.low, self.high)
        z = np.concatenate([z, np.ones((len(z), 1))], axis=1)  # column -1
        product = z[:, self.terms[:, 0]]
        for k in range(1, self.terms.shape[1]):
            product = product * z[:, self.terms[:, k]]
        return product

    @classmethod
    def blank(cls, x: np.ndarray, degree: int) -> Polynomial:
        """Monomials up to the degree, without weights yet."""
        mean, scale = _standard(x)
        z = (x - mean) / scale
        terms = [
            [*combo, *[-1] * (degree - len(combo))]
            for d in range(1, degree + 1)
            for combo in combinations_with_replacement(range(x.shape[1]), d)
        ]
        empty = np.zeros((len(terms), 1))
        ends = z.min(0) - 0.5, z.max(0) + 0.5
        return cls(mean, scale, empty, np.zeros(1), *ends, np.array(terms))


@dataclass
class Splines(_Linear):
    """A sum of smooth curves, one per input: natural cubic splines, straight beyond the data.

    Without products of inputs it says what an input does also where the others have values that
    were never seen with it.

    >>> import numpy as np
    >>> x = np.linspace(-3, 3, 400)[:, None]
    >>> model = Splines.blank(x).regress(x, np.sin(x[:, 0]))
    >>> bool(np.allclose(model(x)[:, 0], np.sin(x[:, 0]), atol=0.05))
    True
    """

    inputs: np.ndarray  # (curves,) the input that is bent; all inputs enter as they are besides
    knots: np.ndarray  # (curves, KNOTS)

    def design(self, x: np.ndarray) -> np.ndarray:
        z = (x - self.mean) / self.scale
        parts = [z]
        for i, knots in zip(self.inputs, self.knots, strict=True):
            # Cubic beyond each knot; differences that are straight beyond the last.
            cubes = np.maximum(z[:, [i]] - knots, 0.0) ** 3
            bends = (cubes[:, :-1] - cubes[:, -1:]) / (knots[-1] - knots[:-1])
            parts.append(bends[:, :-1] - bends[:, -1:])
        return np.concatenate(parts, axis=1)

    @classmethod
    def blank(cls, x: np.ndarray) -> Splines:
        """Knots at quantiles of the inputs, without weights yet."""
        mean, scale = _standard(x)
        z = (x - mean) / scale
        knots = np.quantile(z, np.linspace(0.02, 0.98, KNOTS), axis=0).T
        bent = np.flatnonzero((np.diff(knots, axis=1) > 1e-3).all(1))  # not levels, not counts
        terms = x.shape[1] + len(bent) * (KNOTS - 2)
        return cls(mean, scale, np.zeros((terms, 1)), np.zeros(1), bent, knots[bent])


@dataclass
class Trees:
    """Boosted trees as tables: for each node an input, a threshold, two successors and a value."""

    start: np.ndarray  # (trees,) root of each tree in the tables
    output: np.ndarray  # (trees,) the output a tree adds to
    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    value: np.ndarray
    depth: np.ndarray  # (trees,)
    bias: np.ndarray  # (outputs,)

    def __post_init__(self) -> None:
        # A file may say anything: a depth beyond the nodes would keep a question going for ever.
        if len(self.depth) and not 0 <= self.depth.min() <= self.depth.max() <= len(self.left):
            raise VacaError("a tree is deeper than it has nodes")

    def __call__(self, x: np.ndarray) -> np.ndarray:
        result = np.tile(self.bias, (len(x), 1))
        for root, output, depth in zip(self.start, self.output, self.depth, strict=True):
            result[:, output] += self.value[self._leaf(x, root, depth)]
        return result

    @classmethod
    def regression(cls, x: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None) -> Trees:
        """Histogram gradient boosting."""
        from sklearn.ensemble import HistGradientBoostingRegressor

        model = HistGradientBoostingRegressor(
            max_iter=150, learning_rate=RATE, max_leaf_nodes=16, early_stopping=False,
            random_state=0,
        ).fit(x, y, unequal(weights))  # fmt: skip
        return cls._read(model, np.array([0]), 1)

    @classmethod
    def classification(
        cls, x: np.ndarray, y: np.ndarray, levels: int, weights: np.ndarray | None = None
    ) -> Trees:
        """Histogram gradient boosting on the log-odds of the levels."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        model = HistGradientBoostingClassifier(
            max_iter=80, learning_rate=LEVEL_RATE, max_leaf_nodes=16, early_stopping=False,
            random_state=0,
        ).fit(x, y, unequal(weights))  # fmt: skip
        return cls._read(model, model.classes_, levels)

    def with_values(self, x: np.ndarray, y: np.ndarray, w: np.ndarray) -> Trees:
        """The same splits, with leaves that hold the means of weighted rows."""
        value, bias = self.value.copy(), np.array([np.average(y, weights=w)])
        left = y - bias
        for root, depth in zip(self.start, self.depth, strict=True):
            at = self._leaf(x, root, depth)
            total = np.bincount(at, w, len(value))
            mean = np.bincount(at, w * left, len(value)) / np.maximum(total, 1e-12)
            value = np.where(total > 0, RATE * mean, value)
            left = left - value[at]
        return replace(self, value=value, bias=bias)

    def with_level_values(self, x: np.ndarray, y: np.ndarray, w: np.ndarray) -> Trees:
        """The same splits, with leaves that hold Newton steps on the log-odds of weighted rows."""
        levels, value, bias = len(self.bias), self.value.copy(), self.bias.copy()
        pair = len(np.unique(self.output)) == 1  # two levels: one score is enough
        share = np.bincount(y, w, levels) / w.sum()
        known = np.flatnonzero(self.bias > -40.0)
        if pair:
            one = self.output[0]
            bias[one] = np.log(max(share[one], 1e-9)) - np.log(max(1 - share[one], 1e-9))
        else:
            bias[known] = np.log(np.maximum(share[known], 1e-9))
        score, first = np.tile(bias, (len(x), 1)), self.output[0]
        p = np.empty_like(score)
        for root, output, depth in zip(self.start, self.output, self.depth, strict=True):
            if output == first:
                p = np.exp(log_softmax(score, axis=1))
            own = p[:, output]
            at = self._leaf(x, root, depth)
            steep = np.bincount(at, w * own * (1 - own), len(value))
            slope = np.bincount(at, w * ((y == output) - own), len(value))
            fresh = LEVEL_RATE * slope / np.maximum(steep, 1e-3)
            value = np.where(np.bincount(at, w, len(value)) > 0, np.clip(fresh, -4, 4), value)
            score[:, output] += value[at]
        return replace(self, value=value, bias=bias)

    def _leaf(self, x: np.ndarray, root: int, depth: int) -> np.ndarray:
        """The leaf (n,) of every row in one tree."""
        rows, at = np.arange(len(x)), np.full(len(x), root)
        for _ in range(depth):  # leaves are their own successors
            go_left = x[rows, self.feature[at]] <= self.threshold[at]
            at = np.where(go_left, self.left[at], self.right[at])
        return at

    @classmethod
    def _read(
        cls,
        model: HistGradientBoostingRegressor | HistGradientBoostingClassifier,
        classes: np.ndarray,
        levels: int,
    ) -> Trees:
        # scikit-learn has no public way to its boosted trees; tests compare with `predict`.
        base = np.asarray(model._baseline_prediction, float).ravel()
        pair = len(classes) == 2 and levels >= 2
        outputs = np.array([classes[1]]) if pair else np.asarray(classes)
        parts: dict[str, list[np.ndarray]] = {
            k: [] for k in ("feature", "threshold", "left", "right", "value")
        }
        start, output, depth, size = [], [], [], 0
        for trees in model._predictors:
            for k, tree in enumerate(trees):
                nodes = tree.nodes
                leaf, own = nodes["is_leaf"].astype(bool), np.arange(len(nodes)) + size
                parts["feature"].append(np.where(leaf, 0, nodes["feature_idx"]).astype(np.int64))
                parts["threshold"].append(np.where(leaf, 0.0, nodes["num_threshold"]))
                parts["left"].append(np.where(leaf, own, nodes["left"].astype(np.int64) + size))
                parts["right"].append(np.where(leaf, own, nodes["right"].astype(np.int64) + size))
                parts["value"].append(nodes["value"].astype(float))
                start.append(size)
                output.append(outputs[k])
                depth.append(int(nodes["depth"].max()))
                size += len(nodes)
        bias = np.zeros(levels)
        if levels >= 2:
            bias[:] = -50.0  # a level that never occurred
            bias[classes] = 0.0
        bias[outputs] = base
        return cls(
            np.array(start), np.array(output), depth=np.array(depth), bias=bias,
            **{k: np.concatenate(v) for k, v in parts.items()},
        )  # fmt: skip


@dataclass
class Corrected:
    """Curves, and boosted trees for what they leave.

    Trees alone answer for a combination of inputs that was never seen as for the nearest one that
    was. Here the curves go on, and trees only add what data speak for.
    """

    curves: Splines
    trees: Trees

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return self.curves(x) + self.trees(x)

    @classmethod
    def regression(cls, x: np.ndarray, y: np.ndarray, w: np.ndarray | None = None) -> Corrected:
        curves = Splines.blank(x).regress(x, y, w)
        return cls(curves, Trees.regression(x, y - curves(x)[:, 0], w))


Predictor = Polynomial | Splines | Trees | Corrected
Fit = Callable[[np.ndarray, np.ndarray, np.ndarray], Predictor]


def _regressors(x: np.ndarray) -> dict[str, Fit]:
    """Ways to fit a regressor to as many rows as these, simpler ones first."""
    fits: dict[str, Fit] = {}
    for degree in _degrees(x, 3):
        fits[f"polynomial {degree}"] = lambda a, b, w, d=degree: Polynomial.blank(a, d).regress(
            a, b, w
        )
    if len(x) >= 60:
        fits["splines"] = lambda a, b, w: Splines.blank(a).regress(a, b, w)
        fits["boosted trees"] = Trees.regression
        fits["splines, then boosted trees"] = Corrected.regression
    return fits


def choose_regressor(
    x: np.ndarray, y: np.ndarray, w: np.ndarray, seed: int
) -> tuple[Predictor, np.ndarray, str]:
    """The regressor with the lowest cross-validated squared error on weighted rows.

    Returns
    -------
    predictor, residuals (n,) on rows that the predictor had not seen, name
    """
    fits = _regressors(x)
    best: tuple[float, str, np.ndarray] | None = None
    for name, fit in fits.items():
        residual = _residuals(fit, x, y, w, seed)
        score = float(np.average(residual**2, weights=w))
        # Simpler ones come first: a later one has to be clearly better.
        if best is None or score < 0.995 * best[0]:
            best = (score, name, residual)
    _, name, residual = best  # type: ignore[misc]  # there is always a polynomial of degree 1
    return fits[name](x, y, w), residual, name


def refit_regressor(
    model: Predictor, name: str, x: np.ndarray, y: np.ndarray, w: np.ndarray, seed: int
) -> tuple[Predictor, np.ndarray | None]:
    """The same kind of regressor for other weights; trees keep their splits.

    Its residuals are those on rows that it had not seen; None where trees have seen all rows.
    """
    if isinstance(model, Trees):
        return model.with_values(x, y, w), None
    if isinstance(model, Corrected):
        curves = Splines.blank(x).regress(x, y, w)
        return Corrected(curves, model.trees.with_values(x, y - curves(x)[:, 0], w)), None
    fit = _regressors(x)[name]
    return fit(x, y, w), _residuals(fit, x, y, w, seed)


def _residuals(fit: Fit, x: np.ndarray, y: np.ndarray, w: np.ndarray, seed: int) -> np.ndarray:
    residual = np.empty(len(x))
    for keep, out in _folds(len(x), seed):
        residual[out] = y[out] - fit(x[keep], y[keep], w[keep])(x[out])[:, 0]
    return residual


def _classifiers(x: np.ndarray, y: np.ndarray, levels: int) -> dict[str, Fit]:
    """Ways to fit a classifier to as many rows as these, simpler ones first."""
    fits: dict[str, Fit] = {"frequencies": lambda a, b, w: _frequencies(a, b, w, levels)}
    if len(np.unique(y)) < 2 or not np.ptp(x, axis=0).any():  # nothing to tell, or to tell it from
        return fits
    for degree in _degrees(x, 2):
        fits[f"polynomial {degree}"] = lambda a, b, w, d=degree: Polynomial.blank(a, d).classify(
            a, b, levels, w
        )
    if len(x) >= 60:
        fits["splines"] = lambda a, b, w: Splines.blank(a).classify(a, b, levels, w)
    if levels <= MAX_BOOSTED_LEVELS and len(x) >= 60:
        fits["boosted trees"] = lambda a, b, w: Trees.classification(a, b, levels, w)
    return fits


def choose_classifier(
    x: np.ndarray, y: np.ndarray, w: np.ndarray, levels: int, seed: int
) -> tuple[Predictor, str]:
    """The classifier with the lowest cross-validated log-loss; scores are unnormalised logs."""
    fits = _classifiers(x, y, levels)
    best: tuple[float, str] | None = None
    for name, fit in fits.items():
        losses = np.empty(len(x))
        for keep, out in _folds(len(x), seed):
            one_class = len(np.unique(y[keep])) < 2
            model = (fits["frequencies"] if one_class else fit)(x[keep], y[keep], w[keep])
            log_p = log_softmax(model(x[out]), axis=1)
            losses[out] = -np.maximum(log_p[np.arange(len(out)), y[out]], -20.0)
        score = float(np.average(losses, weights=w))
        if best is None or score < best[0] - 1e-3:
            best = (score, name)
    _, name = best  # type: ignore[misc]  # there are always the frequencies
    return fits[name](x, y, w), name


def refit_classifier(
    model: Predictor, name: str, x: np.ndarray, y: np.ndarray, w: np.ndarray, levels: int
) -> Predictor:
    """The same kind of classifier for other weights; trees keep their splits."""
    if isinstance(model, Trees):
        return model.with_level_values(x, y, w)
    return _classifiers(x, y, levels)[name](x, y, w)


def to_arrays(model: Predictor) -> dict[str, np.ndarray]:
    """The predictor as named arrays; see `from_arrays`."""
    if isinstance(model, Corrected):
        parts = {"curves": model.curves, "trees": model.trees}
        return {f"{part}.{k}": v for part, own in parts.items() for k, v in to_arrays(own).items()}
    return {k: np.asarray(v) for k, v in vars(model).items()}


def from_arrays(arrays: dict[str, np.ndarray]) -> Predictor:
    """The predictor of `to_arrays`."""
    if "trees.threshold" in arrays:
        curves, trees = (
            {k.partition(".")[2]: v for k, v in arrays.items() if k.startswith(part)}
            for part in ("curves.", "trees.")
        )
        return Corrected(Splines(**curves), Trees(**trees))
    if "knots" in arrays:
        return Splines(**arrays)
    return Trees(**arrays) if "threshold" in arrays else Polynomial(**arrays)


def unequal(weights: np.ndarray | None) -> np.ndarray | None:
    """Weights, unless they are all the same: bins are found much faster without."""
    return weights if weights is not None and np.ptp(weights) > 0 else None


def _frequencies(x: np.ndarray, y: np.ndarray, w: np.ndarray, levels: int) -> Polynomial:
    model = Polynomial.blank(x, 1)
    counts = np.bincount(y, w, levels)
    model.bias = np.log(np.maximum(counts, 1e-9))
    model.weights = np.zeros((len(model.terms), levels))
    return model


def _spread(
    weights: np.ndarray, bias: np.ndarray, classes: np.ndarray, levels: int
) -> tuple[np.ndarray, np.ndarray]:
    wide, offset = np.zeros((len(weights), levels)), np.full(levels, -50.0)
    wide[:, classes], offset[classes] = weights, bias
    return wide, offset


def _standard(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scale = x.std(0)
    return x.mean(0), np.where(scale > 0, scale, 1.0)


def _degrees(x: np.ndarray, most: int) -> list[int]:
    """Degrees of polynomials that are not too long for the rows; always 1."""
    allowed = min(MAX_TERMS, len(x) // 5)
    return [d for d in range(1, most + 1) if d == 1 or _terms(x.shape[1], d) <= allowed]


def _terms(inputs: int, degree: int) -> int:
    count, total = 1, 0
    for d in range(1, degree + 1):
        count = count * (inputs + d - 1) // d
        total += count
    return total


def _folds(n: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    from sklearn.model_selection import KFold

    return list(KFold(FOLDS, shuffle=True, random_state=seed).split(np.arange(n)))
