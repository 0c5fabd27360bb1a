r"""Categories as a deterministic map of Gumbel noise: the Gumbel-max trick.

A level is chosen as :math:`\arg\max_k \log p_k + g_k` with one standard Gumbel :math:`g_k` for each
level. Columnwise engines call this with arrays, networks with tensors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["ASSUMPTION", "gumbel_noise", "level_of", "noise_given"]

#: What a counterfactual of a category rests on, in words.
ASSUMPTION = "Gumbel-max noise: no move to a level that became relatively less likely"
#: Probabilities are kept away from zero by this much, so that any level can be abducted.
TINY = 1e-12


def level_of(log_p: Any, noise: Any) -> Any:
    """The level (...) that noise (..., levels) chooses, given log-probabilities of the same shape.

    >>> level_of(np.log([[0.7, 0.3]]), np.array([[0.0, 2.0]]))
    array([1])
    """
    return (log_p + noise).argmax(-1)


def noise_given(log_p: Any, chosen: Any, top: Any, rest: Any, *, xp: Any = np) -> Any:
    r"""Gumbel noise :math:`g` given which level is the arg-max of :math:`\log p + g`.

    The largest sum :math:`T` is itself a standard Gumbel. Given it, the other noises are Gumbels
    truncated so that their sums stay below it: :math:`g_k = -\log(p_k e^{-T} + E_k)` with
    :math:`E_k` standard exponential.

    Parameters
    ----------
    log_p : ndarray or Tensor of shape (..., levels)
        Finite log-probabilities.
    chosen : bool, same shape
        True at the observed level.
    top : shape (..., 1)
        T: a draw, or the median of a standard Gumbel.
    rest : shape (..., levels)
        E, above 0; the one at the observed level is not used.
    xp : module
        `numpy` or `torch`, for functions of arrays that autograd can follow.
    """
    others = -xp.log(xp.exp(log_p - top) + rest)
    return xp.where(chosen, top - log_p, others)


def gumbel_noise(
    log_p: np.ndarray, level: np.ndarray, rng: np.random.Generator | None
) -> np.ndarray:
    """A draw (n, levels) of `noise_given`; without ``rng``, top and rest are at their medians.

    >>> log_p = np.log([[0.7, 0.2, 0.1]])
    >>> level_of(log_p, gumbel_noise(log_p, np.array([2]), None))
    array([2])
    """
    log_p = np.maximum(log_p, np.log(TINY))
    n, levels = log_p.shape
    if rng is None:
        top = np.full((n, 1), -np.log(np.log(2.0)))
        rest = np.full(log_p.shape, np.log(2.0))
    else:
        top = rng.gumbel(size=(n, 1))
        rest = np.maximum(rng.standard_exponential(log_p.shape), TINY)
    return noise_given(log_p, level[:, None] == np.arange(levels), top, rest)
