"""The regressor or classifier of a column, by cross-validation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import log_softmax

from vaca.engines.predictors import Corrected, Polynomial, Predictor, Splines
from vaca.engines.trees import Trees, leaves_trace

__all__ = ["choose_classifier", "choose_regressor", "refit_classifier", "refit_regressor"]

#: Polynomials with more terms than this are not tried.
MAX_TERMS = 300
#: The same for tables of many columns.
BRIEF_TERMS = 80
#: Boosted classifiers grow trees for each level: beyond this many they are not tried.
MAX_BOOSTED_LEVELS = 12
FOLDS = 3

Fit = Callable[[np.ndarray, np.ndarray, np.ndarray], Predictor]


def _regressors(x: np.ndarray) -> dict[str, Fit]:
    """Regressors to try on this many rows, simpler ones first."""
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
    x: np.ndarray, y: np.ndarray, w: np.ndarray, seed: int, *, brief: bool = False
) -> tuple[Predictor, np.ndarray, str]:
    """The regressor with the lowest cross-validated squared error on weighted rows.

    ``brief``: short polynomials only, and trees only where small ones find something in what the
    others leave.

    Returns
    -------
    predictor, residuals (n,) on rows that the predictor had not seen, name
    """
    fits = _regressors(x)
    best: tuple[float, str, np.ndarray] | None = None
    for name, fit in fits.items():
        if brief and best is not None and _too_long(name, x, best[2], w):
            continue
        residual = _residuals(fit, x, y, w, seed)
        score = float(np.average(residual**2, weights=w))
        # Simpler ones come first: a later one has to be clearly better.
        if best is None or score < 0.995 * best[0]:
            best = (score, name, residual)
    _, name, residual = best  # type: ignore[misc]  # there is always a polynomial of degree 1
    return fits[name](x, y, w), residual, name


def _too_long(name: str, x: np.ndarray, left: np.ndarray, w: np.ndarray) -> bool:
    """Whether a predictor is expensive, and nothing is left that calls for it."""
    if "trees" in name:
        return not leaves_trace(x, left, w, [np.arange(len(left)) % FOLDS == 0])
    return name.startswith("polynomial") and _terms(x.shape[1], int(name.split()[1])) > BRIEF_TERMS


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
    """Classifiers to try on this many rows, simpler ones first."""
    fits: dict[str, Fit] = {"frequencies": lambda a, b, w: _frequencies(a, b, w, levels)}
    if len(np.unique(y)) < 2 or not np.ptp(x, axis=0).any():  # one level, or constant inputs
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
    x: np.ndarray, y: np.ndarray, w: np.ndarray, levels: int, seed: int, *, brief: bool = False
) -> tuple[Predictor, str]:
    """The classifier with the lowest cross-validated log-loss; scores are unnormalised logs.

    ``brief``: see `choose_regressor`.
    """
    fits = _classifiers(x, y, levels)
    best: tuple[float, str] | None = None
    surprise = np.zeros(len(x))
    for name, fit in fits.items():
        if brief and best is not None and _too_long(name, x, surprise, w):
            continue
        losses, missed = np.empty(len(x)), np.empty(len(x))
        for keep, out in _folds(len(x), seed):
            one_class = len(np.unique(y[keep])) < 2
            model = (fits["frequencies"] if one_class else fit)(x[keep], y[keep], w[keep])
            log_p = log_softmax(model(x[out]), axis=1)
            losses[out] = -np.maximum(log_p[np.arange(len(out)), y[out]], -20.0)
            common = int(np.bincount(y[keep], minlength=levels).argmax())
            missed[out] = (y[out] == common) - np.exp(log_p[:, common])
        score = float(np.average(losses, weights=w))
        if best is None or score < best[0] - 1e-3:
            best, surprise = (score, name), missed
    _, name = best  # type: ignore[misc]  # there are always the frequencies
    return fits[name](x, y, w), name


def refit_classifier(
    model: Predictor, name: str, x: np.ndarray, y: np.ndarray, w: np.ndarray, levels: int
) -> Predictor:
    """The same kind of classifier for other weights; trees keep their splits."""
    if isinstance(model, Trees):
        return model.with_level_values(x, y, w)
    return _classifiers(x, y, levels)[name](x, y, w)


def _frequencies(x: np.ndarray, y: np.ndarray, w: np.ndarray, levels: int) -> Polynomial:
    model = Polynomial.blank(x, 1)
    counts = np.bincount(y, w, levels)
    model.bias = np.log(np.maximum(counts, 1e-9))
    model.weights = np.zeros((len(model.terms), levels))
    return model


def _degrees(x: np.ndarray, most: int) -> list[int]:
    """Degrees of polynomials that have few enough terms for the rows; always 1."""
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
