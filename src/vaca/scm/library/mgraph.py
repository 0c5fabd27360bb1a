"""M-graph: x3 <- x1 -> x4 <- x2 -> x5."""

from __future__ import annotations

from vaca.scm.distributions import Distribution, Normal
from vaca.scm.structural import StructuralCausalModel

__all__ = ["lin", "nadd", "nlin"]


def _noise() -> dict[str, Distribution]:
    return {f"x{i}": Normal(0, 1) for i in range(1, 6)}


def lin() -> StructuralCausalModel:
    """Linear, additive noise."""
    return StructuralCausalModel(
        {
            "x1": lambda u: u,
            "x2": lambda u: u,
            "x3": lambda x1, u: x1 + u,
            "x4": lambda x1, x2, u: -x2 + 0.5 * x1 + u,
            "x5": lambda x2, u: -1.5 * x2 + u,
        },
        _noise(),
        name="mgraph-lin",
    )


def nlin() -> StructuralCausalModel:
    """Non-linear, additive noise."""
    return StructuralCausalModel(
        {
            "x1": lambda u: u,
            "x2": lambda u: u,
            "x3": lambda x1, u: x1 + 0.5 * x1**2 + u,
            "x4": lambda x1, x2, u: -x2 + 0.5 * x1**2 + u,
            "x5": lambda x2, u: -1.5 * x2**2 + u,
        },
        _noise(),
        name="mgraph-nlin",
    )


def nadd() -> StructuralCausalModel:
    """Multiplicative noise: invertible wherever the factor of u is not 0."""
    return StructuralCausalModel(
        {
            "x1": lambda u: u,
            "x2": lambda u: u,
            "x3": lambda x1, u: x1 * u,
            "x4": lambda x1, x2, u: (-x2 + 0.5 * x1**2) * u,
            "x5": lambda x2, u: -1.5 * x2**2 * u,
        },
        _noise(),
        inverse={
            "x3": lambda x1, x3: x3 / x1,
            "x4": lambda x1, x2, x4: x4 / (-x2 + 0.5 * x1**2),
            "x5": lambda x2, x5: x5 / (-1.5 * x2**2),
        },
        name="mgraph-nadd",
    )
