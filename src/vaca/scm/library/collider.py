"""Collider: x1 -> x3 <- x2."""

from __future__ import annotations

import numpy as np

from vaca.scm.library._parts import three_node_noise
from vaca.scm.structural import StructuralCausalModel

__all__ = ["lin", "nadd", "nlin"]


def lin() -> StructuralCausalModel:
    """Linear, additive noise."""
    return StructuralCausalModel(
        {
            "x1": lambda u: u,
            "x2": lambda u: u,
            "x3": lambda x1, x2, u: 0.05 * x1 + 0.25 * x2 + u,
        },
        three_node_noise("lin"),
        name="collider-lin",
    )


def nlin() -> StructuralCausalModel:
    """Non-linear, additive noise."""
    return StructuralCausalModel(
        {
            "x1": lambda u: u,
            "x2": lambda u: u,
            "x3": lambda x1, x2, u: 0.05 * x1 + 0.25 * x2**2 + u,
        },
        three_node_noise("nlin"),
        name="collider-nlin",
    )


def nadd() -> StructuralCausalModel:
    """Non-additive noise.

    sgn(u) u = abs(u): the noise of x3 acts through its magnitude alone, so data reveal
    abs(u) and nothing more is needed for any counterfactual. The inverse gives abs(u).
    """
    return StructuralCausalModel(
        {
            "x1": lambda u: u,
            "x2": lambda u: u,
            "x3": lambda x1, x2, u: -1 + 0.1 * np.sign(u) * (x1**2 + x2**2) * u,
        },
        three_node_noise("nadd"),
        inverse={"x3": lambda x1, x2, x3: (x3 + 1) / (0.1 * (x1**2 + x2**2))},
        name="collider-nadd",
    )
