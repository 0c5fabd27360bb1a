"""The regressions of a cross-check: each is learned on four fifths of the rows, for the rest."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls
from scipy.special import expit

from vaca.engines.trees import grown, one_thread

__all__ = ["chances", "mix", "ridge", "trees"]

#: Penalties tried, per row, on standardised features.
PENALTIES = (1e-4, 1e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0, 10.0)
#: The same for the chances of a treatment.
CHANCE_PENALTIES = (1.0, 1e-1, 1e-2, 1e-3)
STEPS = 12


def mix(predictions: np.ndarray, y: np.ndarray, base: np.ndarray) -> np.ndarray:
    """Shares of the regressions (k, n) whose mixture predicts the rows they have not seen best."""
    root = np.sqrt(base)
    shares, _ = nnls((predictions * root).T, y * root)
    return shares / shares.sum() if shares.sum() > 0 else np.full(len(shares), 1 / len(shares))


def ridge(
    matrices: list[np.ndarray],
    y: np.ndarray,
    target: np.ndarray,
    base: np.ndarray,
    test: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """For the rows of a part: g (3, m) by generalised cross-validation, α (penalties, 3, m)."""
    train = np.ones(len(y), dtype=bool)
    train[test] = False
    w = base[train] / base[train].mean()
    x = matrices[0][train]
    mean = np.average(x, axis=0, weights=w)
    sd = np.sqrt(np.average((x - mean) ** 2, axis=0, weights=w))
    take = sd > 1e-9

    def standard(matrix: np.ndarray) -> np.ndarray:
        return (matrix[:, take] - mean[take]) / sd[take]

    x, inner = standard(x), [standard(matrix[test]) for matrix in matrices]
    m = len(x)
    values, vectors = np.linalg.eigh((x * w[:, None]).T @ x / m)
    values = np.maximum(values, 0.0)
    inner = [part @ vectors for part in inner]
    centre = np.average(y[train], weights=w)
    cross = vectors.T @ ((x * (w * (y[train] - centre))[:, None]).mean(0))
    ask = vectors.T @ (
        (standard(matrices[1][train]) - standard(matrices[2][train])) * (w * target[train])[:, None]
    ).mean(0)
    scores, alphas = [], []
    for penalty in PENALTIES:
        shrunk = values + penalty
        miss = -np.sum(cross**2 * (values + 2 * penalty) / shrunk**2) + np.average(
            (y[train] - centre) ** 2, weights=w
        )
        scores.append(miss / (1 - min((1 + np.sum(values / shrunk)) / m, 0.99)) ** 2)
        alphas.append([part @ (ask / shrunk) for part in inner])
    chosen = cross / (values + PENALTIES[int(np.argmin(scores))])
    return np.stack([centre + part @ chosen for part in inner]), np.array(alphas)


def trees(
    matrices: list[np.ndarray], y: np.ndarray, base: np.ndarray, test: np.ndarray, seed: int
) -> np.ndarray:
    """For the rows of a part: g (3, m) by boosted trees."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    train = np.setdiff1d(np.arange(len(y)), test)
    model = HistGradientBoostingRegressor(
        max_iter=60, max_leaf_nodes=8, min_samples_leaf=10, random_state=seed
    )
    grown(model, matrices[0][train], y[train], base[train])
    with one_thread():
        return np.stack([model.predict(matrix[test]) for matrix in matrices])


def chances(
    spans: list[np.ndarray], taken: np.ndarray, base: np.ndarray, folds: list[np.ndarray]
) -> np.ndarray:
    """P(taken | covariates) for each row (n,), by the part that it is not in.

    Logistic regressions with a ridge penalty, of which the one with the best likelihood on unseen
    rows is taken.
    """
    n = len(taken)
    found = np.zeros((len(spans), len(CHANCE_PENALTIES), n))
    for k, span in enumerate(spans):
        for test in folds:
            train = np.setdiff1d(np.arange(n), test)
            found[k][:, test] = _logistic(span[train], taken[train], base[train], span[test])
    found = np.clip(found, 1e-6, 1 - 1e-6)
    fits = base * np.where(taken, np.log(found), np.log1p(-found))
    best = np.unravel_index(int(fits.mean(-1).argmax()), fits.shape[:2])
    return found[best]


def _logistic(x: np.ndarray, taken: np.ndarray, base: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Chances (penalties, m) of new rows, by Newton steps from each penalty to the next."""
    mean, sd = x.mean(0), x.std(0)
    take = sd > 1e-9
    x, new = ((part[:, take] - mean[take]) / sd[take] for part in (x, new))
    x, new = (np.column_stack([np.ones(len(part)), part]) for part in (x, new))
    share = float(np.average(taken, weights=base))
    beta = np.zeros(x.shape[1])
    beta[0] = np.log(max(share, 1e-6) / max(1 - share, 1e-6))
    # The penalty is in units of a row's information: with few treated, each says little.
    unit = len(x) * max(share * (1 - share), 1e-6)
    result = []
    for penalty in CHANCE_PENALTIES:
        ridge_part = np.full(x.shape[1], penalty * unit)
        ridge_part[0] = 1e-9
        for _ in range(STEPS):
            p = expit(np.clip(x @ beta, -30, 30))
            curve = base * np.maximum(p * (1 - p), 1e-6)
            slope = x.T @ (base * (taken - p)) - ridge_part * beta
            step = np.linalg.solve((x * curve[:, None]).T @ x + np.diag(ridge_part), slope)
            step *= min(1.0, 5.0 / max(float(np.abs(step).max()), 1e-12))
            beta = beta + step
            if np.abs(step).max() < 1e-4:
                break
        result.append(expit(np.clip(new @ beta, -30, 30)))
    return np.array(result)
