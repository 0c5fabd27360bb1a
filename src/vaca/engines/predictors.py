"""Regressors and classifiers that are nothing but arrays once fitted.

scikit-learn does the fitting and the choice by cross-validation; what is kept are coefficients and
tree tables, evaluated here. So a model is saved without pickle and a loaded one gives the same
numbers as the fitted one.
"""

from __future__ import annotations

import abc
import warnings
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import TypeVar

import numpy as np

from vaca.engines.trees import Trees, unequal
from vaca.table.standard import Standard

__all__ = ["Corrected", "Polynomial", "Predictor", "Splines", "from_arrays", "to_arrays"]

#: Of a spline, at quantiles of its input.
KNOTS = 8

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
        standard = Standard.of(x)
        z = standard.to(x)
        terms = [
            [*combo, *[-1] * (degree - len(combo))]
            for d in range(1, degree + 1)
            for combo in combinations_with_replacement(range(x.shape[1]), d)
        ]
        empty = np.zeros((len(terms), 1))
        ends = z.min(0) - 0.5, z.max(0) + 0.5
        return cls(*standard, empty, np.zeros(1), *ends, np.array(terms))


@dataclass
class Splines(_Linear):
    """A sum of smooth curves, one per input: natural cubic splines, straight beyond the data.

    Without products of inputs, it says what an input does even where the others have values never
    seen with it.

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
        standard = Standard.of(x)
        z = standard.to(x)
        knots = np.quantile(z, np.linspace(0.02, 0.98, KNOTS), axis=0).T
        bent = np.flatnonzero((np.diff(knots, axis=1) > 1e-3).all(1))  # not levels, not counts
        terms = x.shape[1] + len(bent) * (KNOTS - 2)
        return cls(*standard, np.zeros((terms, 1)), np.zeros(1), bent, knots[bent])


@dataclass
class Corrected:
    """Curves, and boosted trees for what they leave.

    For a combination of inputs that was never seen, trees alone answer as for the nearest one that
    was. Here the curves go on, and trees only add what the data support.
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


def _spread(
    weights: np.ndarray, bias: np.ndarray, classes: np.ndarray, levels: int
) -> tuple[np.ndarray, np.ndarray]:
    wide, offset = np.zeros((len(weights), levels)), np.full(levels, -50.0)
    wide[:, classes], offset[classes] = weights, bias
    return wide, offset
