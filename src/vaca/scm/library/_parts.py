"""What the equations of several models share: a function, two inverses, a noise table."""

from __future__ import annotations

import numpy as np

from vaca.scm.distributions import Distribution, Mixture, Normal

__all__ = ["invert_jump", "invert_signed_square", "sigmoid", "three_node_noise"]


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Give 1 / (1 + exp(-x)); far in the left tail exp overflows to inf and the result is 0."""
    with np.errstate(over="ignore"):
        return 1.0 / (1.0 + np.exp(-x))


def invert_signed_square(x: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Solve x = factor sgn(u) (1 + u^2) for u, with factor >= 0; NaN where factor = 0."""
    # A magnitude below the factor by rounding alone means u = 0+, hence the floor; a value that
    # is really out of the equation's range is caught when the solution is put back into it.
    square = np.maximum(np.abs(x) / factor - 1, np.finfo(float).tiny)
    return np.where(factor > 0, np.sign(x) * np.sqrt(square), np.nan)


def invert_jump(y: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Solve y = step sgn(u) + u for u, with step >= 0."""
    return np.sign(y) * np.maximum(np.abs(y) - step, np.finfo(float).tiny)


def three_node_noise(variant: str) -> dict[str, Distribution]:
    """Give the noise that collider, triangle and chain share (second arguments are variances)."""
    table: dict[str, tuple[Distribution, Distribution, Distribution]] = {
        "lin": (Mixture([Normal(-2, 1.5), Normal(1.5, 1)]), Normal(0, 1), Normal(0, 1)),
        "nlin": (Mixture([Normal(-2, 1.5), Normal(1.5, 1)]), Normal(0, 0.1), Normal(0, 1)),
        "nadd": (Mixture([Normal(-2.5, 1), Normal(2.5, 1)]), Normal(0, 0.25), Normal(0, 0.0625)),
    }
    return dict(zip(("x1", "x2", "x3"), table[variant], strict=True))
