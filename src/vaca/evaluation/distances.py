"""Distances between two samples: MMD, energy distance, and a classifier that tells them apart.

Every function takes plain arrays with rows on axis 0 and returns a float. Notation: ``x`` and ``y``
are samples of the same ``p`` coordinates, ``n`` and ``m`` rows long. Pairwise quantities are summed
block by block, so memory is ``O(block * m)`` whatever ``n`` is.

References
----------
Gretton et al., *A kernel two-sample test*, JMLR 2012.
Szekely and Rizzo, *Energy statistics*, JSPI 2013.
Lopez-Paz and Oquab, *Revisiting classifier two-sample tests*, ICLR 2017.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vaca.errors import VacaError, shorten

__all__ = [
    "KERNEL_SCALES",
    "bandwidth",
    "classifier_score",
    "energy_distance",
    "mmd",
    "sample_pair",
]

#: Bandwidths of the mixture, as multiples of the mean squared distance.
KERNEL_SCALES = (0.25, 0.5, 1.0, 2.0, 4.0)


_BLOCK = 128  # rows of one block: 128 x 1000 kernels stay in the cache


Array = NDArray[np.float64]


def _rows(x: ArrayLike, name: str) -> Array:
    """`x` as a float matrix, refused if empty or not finite."""
    try:
        out = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise VacaError(f"{name} must be a table of numbers; got {shorten(x)}") from None
    if out.ndim == 1:
        out = out[:, None]
    if out.ndim != 2 or out.shape[0] == 0:
        raise VacaError(f"{name} must be a non-empty (rows, columns) array, got shape {out.shape}")
    if not np.isfinite(out).all():
        row = int(np.flatnonzero(~np.isfinite(out).all(axis=1))[0])
        raise VacaError(f"{name} holds a value that is not finite, first in row {row}")
    return out


def sample_pair(x: ArrayLike, y: ArrayLike, *, paired: bool = False) -> tuple[Array, Array]:
    """Both samples as matrices with the same columns (and, if `paired`, the same rows)."""
    a, b = _rows(x, "x"), _rows(y, "y")
    if a.shape[1] != b.shape[1]:
        raise VacaError(f"x has {a.shape[1]} columns and y has {b.shape[1]}; compare the same ones")
    if paired and a.shape[0] != b.shape[0]:
        raise VacaError(
            f"x has {a.shape[0]} rows and y has {b.shape[0]}; both need the same number"
        )
    return a, b


def _partners(symmetric: bool, start: int, total: int) -> Iterator[tuple[slice, int]]:
    """Which rows a block is paired with, and how often each pair counts.

    In a symmetric matrix that is the block itself, and the rows after it, which count twice.
    """
    if not symmetric:
        yield slice(0, total), 1
        return
    yield slice(start, start + _BLOCK), 1
    if start + _BLOCK < total:
        yield slice(start + _BLOCK, total), 2


def bandwidth(x: ArrayLike, y: ArrayLike) -> float:
    r"""Mean squared distance between different rows of the pooled sample.

    .. math:: b = \frac{1}{N(N-1)} \sum_{i \ne j} \lVert w_i - w_j \rVert^2,
              \qquad w = (x, y),\; N = n + m

    computed in :math:`O(Np)` from :math:`\sum_{ij} \lVert w_i - w_j\rVert^2
    = 2N \sum_i \lVert w_i - \bar w \rVert^2`.

    Parameters
    ----------
    x, y : array_like, shapes (n, p) and (m, p)

    Returns
    -------
    float

    Examples
    --------
    >>> bandwidth([[0.0]], [[2.0]])
    4.0
    """
    pooled = np.concatenate(sample_pair(x, y))
    total = len(pooled)
    centred = pooled - pooled.mean(axis=0)
    return float(2.0 * np.einsum("ij,ij->", centred, centred) / (total - 1))


def _kernel_mean(a: Array, b: Array, scales: Sequence[float]) -> float:
    """Mean over all pairs of the summed kernels exp(-d2 / s) of rows in units of the bandwidth.

    Single precision is enough: a kernel lies in (0, 1], rows are summed before they are added up
    in double precision, and everything is three times as fast.
    """
    wide_first = sorted(scales, reverse=True)
    # -d2 = 2 ab - aa - bb as one product: [2a, -aa, 1] times [b, 1, -bb].
    ones = np.ones((max(len(a), len(b)), 1))
    squares_a, squares_b = (np.sum(m * m, axis=1, keepdims=True) for m in (a, b))
    left = np.hstack([2.0 * a, -squares_a, ones[: len(a)]])
    right = np.hstack([b, ones[: len(b)], -squares_b])
    left = (left / wide_first[0]).astype(np.float32)
    right_t = np.ascontiguousarray(right.astype(np.float32).T)
    total = 0.0
    for start in range(0, len(a), _BLOCK):
        for columns, times in _partners(a is b, start, len(b)):
            exponent = left[start : start + _BLOCK] @ right_t[:, columns]
            np.minimum(exponent, np.float32(0.0), out=exponent)  # rounding may leave +1e-7
            kernel = np.exp(exponent)
            total += times * float(kernel.sum(axis=1).sum(dtype=np.float64))
            for previous, scale in zip(wide_first[:-1], wide_first[1:], strict=True):
                if previous == 2.0 * scale:  # exp(-d2 / (s / 2)) is the square of exp(-d2 / s)
                    np.square(kernel, out=kernel)
                else:
                    np.exp(exponent * np.float32(wide_first[0] / scale), out=kernel)
                total += times * float(kernel.sum(axis=1).sum(dtype=np.float64))
    return total / (len(a) * len(b))


def mmd(
    x: ArrayLike,
    y: ArrayLike,
    *,
    width: float | None = None,
    scales: Sequence[float] = KERNEL_SCALES,
) -> float:
    r"""Squared maximum mean discrepancy, V-statistic, mixture of RBF kernels.

    .. math:: \mathrm{MMD}^2 = \frac{1}{n^2}\sum_{ij} k(x_i, x_j)
              + \frac{1}{m^2}\sum_{ij} k(y_i, y_j) - \frac{2}{nm}\sum_{ij} k(x_i, y_j),
              \qquad k(a, b) = \sum_{s} \exp\!\left(-\frac{\lVert a - b\rVert^2}{s\,b}\right)

    with :math:`b` the :func:`bandwidth` of the pair and :math:`s \in \{1/4, 1/2, 1, 2, 4\}`.
    The diagonal terms stay in, so two samples of one distribution score above zero: about 0.005
    with 1000 rows each.

    Parameters
    ----------
    x, y : array_like, shapes (n, p) and (m, p)
    width : float, optional
        :math:`b`; by default the :func:`bandwidth` of the pair.
    scales : sequence of float
        The factors :math:`s`; their kernels are summed.

    Returns
    -------
    float
        Zero if both samples are one and the same constant.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(500, 2)), rng.normal(size=(500, 2))
    >>> bool(mmd(x, y) < 0.02 < mmd(x, y + 1))
    True
    """
    a, b = sample_pair(x, y)
    width = bandwidth(a, b) if width is None else float(width)
    if width <= 0.0:
        return 0.0
    # Distances do not change with the origin; a centred sample loses fewer digits.
    centre = (a.sum(axis=0) + b.sum(axis=0)) / (len(a) + len(b))
    a, b = (a - centre) / np.sqrt(width), (b - centre) / np.sqrt(width)
    cross = _kernel_mean(a, b, scales)
    return _kernel_mean(a, a, scales) + _kernel_mean(b, b, scales) - 2.0 * cross


def energy_distance(x: ArrayLike, y: ArrayLike) -> float:
    r"""Energy distance, a two-sample distance without a bandwidth.

    .. math:: 2\,\overline{\lVert x_i - y_j\rVert} - \overline{\lVert x_i - x_j\rVert}
              - \overline{\lVert y_i - y_j\rVert}

    (means over all pairs, the diagonal included, so never negative). Parameters as in
    :func:`bandwidth`.

    Examples
    --------
    >>> energy_distance([[0.0]], [[3.0]])
    6.0
    """
    a, b = sample_pair(x, y)
    centre = (a.sum(axis=0) + b.sum(axis=0)) / (len(a) + len(b))
    a, b = a - centre, b - centre

    def mean_distance(left: Array, right: Array) -> float:
        total = 0.0
        squares = np.einsum("ij,ij->i", right, right)
        for start in range(0, len(left), _BLOCK):
            part = left[start : start + _BLOCK]
            for columns, times in _partners(left is right, start, len(right)):
                squared = part @ (-2.0 * right[columns]).T
                squared += np.einsum("ij,ij->i", part, part)[:, None] + squares[columns]
                np.maximum(squared, 0.0, out=squared)  # rounding may leave -1e-16
                total += times * float(np.sqrt(squared, out=squared).sum())
        return total / (len(left) * len(right))

    return 2.0 * mean_distance(a, b) - mean_distance(a, a) - mean_distance(b, b)


def classifier_score(
    x: ArrayLike, y: ArrayLike, rng: np.random.Generator, *, features: int = 200, ridge: float = 1.0
) -> float:
    r"""Accuracy with which held-out rows of `x` are told from held-out rows of `y`.

    A classifier two-sample score: 0.5 if the samples cannot be told apart, 1 if always. The
    classifier is ridge regression of the label :math:`\pm 1` on random Fourier features
    :math:`\sqrt{2}\cos(\omega^\top w + \phi)` of RBF kernels of the widths of :func:`mmd`, fitted
    on one half of the rows and scored on the other, both ways round.

    Parameters
    ----------
    x, y : array_like, shapes (n, p) and (m, p)
    rng : numpy.random.Generator
        Draws the features and the halves.
    features : int
        Number of random features.
    ridge : float
        Penalty, in rows.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(400, 1))
    >>> classifier_score(x, x + 10.0, rng)
    1.0
    """
    if not isinstance(rng, np.random.Generator):
        raise VacaError("rng is a generator, such as np.random.default_rng(0)")
    a, b = sample_pair(x, y)
    size = min(len(a), len(b)) // 2 * 2
    if size < 4:
        raise VacaError(f"a classifier needs at least 4 rows of each sample, got {size}")
    width = bandwidth(a, b)
    if width <= 0.0:
        return 0.5
    rows = np.concatenate([a[rng.permutation(len(a))[:size]], b[rng.permutation(len(b))[:size]]])
    labels = np.repeat([1.0, -1.0], size)
    widths = width * rng.choice(np.asarray(KERNEL_SCALES), size=features)
    frequencies = rng.normal(size=(rows.shape[1], features)) * np.sqrt(2.0 / widths)
    phases = rng.uniform(0.0, 2.0 * np.pi, size=features)
    design = np.sqrt(2.0) * np.cos(rows @ frequencies + phases)
    design = np.column_stack([np.ones(len(rows)), design])
    even = np.arange(len(rows)) % 2 == 0
    right = 0
    for fit in (even, ~even):
        gram = design[fit].T @ design[fit]
        gram[np.diag_indices_from(gram)] += ridge
        weights = np.linalg.solve(gram, design[fit].T @ labels[fit])
        right += int(np.sum((design[~fit] @ weights > 0.0) == (labels[~fit] > 0.0)))
    return right / len(rows)
