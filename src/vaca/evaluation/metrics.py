"""All metrics: errors of answers here, distances between distributions in `distances`.

Every function takes plain arrays with rows on axis 0, returns a float, and draws no random number
unless it is handed a generator. Nothing here knows what a causal model is; `vaca.evaluation`
decides which rows are compared with which.

"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vaca.evaluation.distances import (
    bandwidth,
    classifier_score,
    energy_distance,
    mmd,
    sample_pair,
)

__all__ = [
    "ate_error",
    "bandwidth",
    "classifier_score",
    "cf_mse",
    "cf_norm_mean",
    "cf_norm_sd",
    "cf_sse",
    "energy_distance",
    "mean_error",
    "mmd",
    "std_error",
    "unpaired_norm_sd",
]


def mean_error(x: ArrayLike, y: ArrayLike, *, nodes: int | None = None) -> float:
    r"""MeanE of one intervention: squared difference of the means, averaged over nodes.

    .. math:: \frac{1}{d}\sum_{i}\left(\bar x_i - \bar y_i\right)^2

    Parameters
    ----------
    x, y : array_like, shapes (n, p) and (m, p)
        Columns of the descendants.
    nodes : int, optional
        :math:`d`, the number of descendants; by default the number of columns. A node of several
        columns, or the indicators of a category, contributes the sum over its columns.

    Returns
    -------
    float

    Examples
    --------
    >>> mean_error([[0.0, 1.0], [2.0, 1.0]], [[3.0, 1.0]])
    2.0
    """
    a, b = sample_pair(x, y)
    return float(np.sum((a.mean(axis=0) - b.mean(axis=0)) ** 2)) / (nodes or a.shape[1])


def std_error(x: ArrayLike, y: ArrayLike, *, nodes: int | None = None) -> float:
    r"""StdE of one intervention: squared difference of the sds, averaged over nodes.

    .. math:: \frac{1}{d}\sum_{i}\left(\tilde\sigma(x_i) - \tilde\sigma(y_i)\right)^2

    with :math:`\tilde\sigma` the sample sd (divisor :math:`n - 1`). Parameters as in
    :func:`mean_error`.

    Examples
    --------
    >>> std_error([[1.0], [2.0], [3.0]], [[2.0], [5.0], [8.0]])
    4.0
    """
    a, b = sample_pair(x, y)
    gap = a.std(axis=0, ddof=1) - b.std(axis=0, ddof=1)
    return float(np.sum(gap**2)) / (nodes or a.shape[1])


def _norms(x: ArrayLike, y: ArrayLike) -> NDArray[np.float64]:
    a, b = sample_pair(x, y, paired=True)
    return np.linalg.norm(a - b, axis=1)


def unpaired_norm_sd(x: ArrayLike, y: ArrayLike, *, nodes: int | None = None) -> float:
    r"""Sd over rows of :math:`\lVert y_j - x_j\rVert / d`, where rows j have nothing in common.

    The published StdE averages this value in with the squared differences of the sds. It is far
    from zero for a perfect model, so it is kept for comparison with published numbers only.
    Parameters as in :func:`mean_error`, with as many rows in `x` as in `y`.

    Examples
    --------
    >>> unpaired_norm_sd([[0.0], [0.0], [0.0]], [[1.0], [2.0], [3.0]])
    1.0
    """
    norms = _norms(x, y)
    return float(norms.std(ddof=1)) / (nodes or _columns(x))


def cf_mse(x: ArrayLike, y: ArrayLike, *, nodes: int | None = None) -> float:
    r"""Counterfactual MSE of one intervention, as the paper defines it.

    .. math:: \frac{1}{d}\,\mathrm{E}[T], \qquad T = \lVert x^{CF} - \hat x^{CF}\rVert_2^2

    Parameters
    ----------
    x, y : array_like, shape (n, p)
        True and estimated counterfactuals of the descendants; row i of both has the same factual.
    nodes : int, optional
        :math:`d`, the number of descendants; by default the number of columns.

    Examples
    --------
    >>> cf_mse([[0.0, 0.0]], [[3.0, 4.0]])
    12.5
    """
    norms = _norms(x, y)
    return float(np.mean(norms**2)) / (nodes or _columns(x))


def cf_sse(x: ArrayLike, y: ArrayLike) -> float:
    r"""Counterfactual SSE of one intervention: the sd of the squared error :math:`T`.

    .. math:: \frac{1}{d}\sum_{i \in des} \tilde\sigma(T) = \tilde\sigma(T)

    The sum in the paper runs over the :math:`d` descendants while its summand does not depend on
    the descendant, so the division cancels. Parameters as in :func:`cf_mse`.

    Examples
    --------
    >>> cf_sse([[0.0], [0.0], [0.0]], [[1.0], [2.0], [3.0]])  # the sd of 1, 4, 9
    4.041451884327381
    """
    return float(np.std(_norms(x, y) ** 2, ddof=1))


def cf_norm_mean(x: ArrayLike, y: ArrayLike, *, nodes: int | None = None) -> float:
    r"""Published counterfactual "MSE": the mean of :math:`\lVert x^{CF} - \hat x^{CF}\rVert_2 / d`.

    Parameters as in :func:`cf_mse`.

    Examples
    --------
    >>> cf_norm_mean([[0.0, 0.0]], [[3.0, 4.0]])
    2.5
    """
    return float(np.mean(_norms(x, y))) / (nodes or _columns(x))


def cf_norm_sd(x: ArrayLike, y: ArrayLike, *, nodes: int | None = None) -> float:
    r"""Published counterfactual "SSE": the sd of :math:`\lVert x^{CF} - \hat x^{CF}\rVert_2 / d`.

    Parameters as in :func:`cf_mse`.

    Examples
    --------
    >>> cf_norm_sd([[0.0], [0.0], [0.0]], [[1.0], [2.0], [3.0]])
    1.0
    """
    return float(np.std(_norms(x, y), ddof=1)) / (nodes or _columns(x))


def ate_error(
    x_low: ArrayLike,
    x_high: ArrayLike,
    y_low: ArrayLike,
    y_high: ArrayLike,
    *,
    nodes: int | None = None,
) -> float:
    r"""Error of the average treatment effect between two settings of one node.

    .. math:: \frac{1}{d}\sum_i \left| (\bar x^{high}_i - \bar x^{low}_i)
              - (\bar y^{high}_i - \bar y^{low}_i) \right|

    Parameters
    ----------
    x_low, x_high : array_like, shape (n, p)
        True descendants under the low and the high setting.
    y_low, y_high : array_like, shape (m, p)
        The same from the model.
    nodes : int, optional
        :math:`d`; by default the number of columns.

    Examples
    --------
    >>> ate_error([[0.0]], [[1.0]], [[0.0]], [[1.5]])
    0.5
    """
    low, low_hat = sample_pair(x_low, y_low)
    high, high_hat = sample_pair(x_high, y_high)
    effect = high.mean(axis=0) - low.mean(axis=0)
    estimate = high_hat.mean(axis=0) - low_hat.mean(axis=0)
    return float(np.sum(np.abs(effect - estimate))) / (nodes or low.shape[1])


def _columns(x: ArrayLike) -> int:
    return sample_pair(x, x)[0].shape[1]
