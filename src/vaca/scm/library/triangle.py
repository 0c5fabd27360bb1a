"""Triangle: x1 -> x2 -> x3 and x1 -> x3."""

from __future__ import annotations

import numpy as np

from vaca.scm.library._parts import invert_jump, invert_signed_square, sigmoid, three_node_noise
from vaca.scm.structural import StructuralCausalModel

__all__ = ["lin", "nadd", "nlin"]


def lin() -> StructuralCausalModel:
    """Linear, additive noise."""
    return StructuralCausalModel(
        {
            "x1": lambda u: u,
            "x2": lambda x1, u: -x1 + u,
            "x3": lambda x1, x2, u: x1 + 0.25 * x2 + u,
        },
        three_node_noise("lin"),
        name="triangle-lin",
    )


def nlin() -> StructuralCausalModel:
    """Non-linear, additive noise."""
    return StructuralCausalModel(
        {
            "x1": lambda u: u,
            "x2": lambda x1, u: -1 + 3 * sigmoid(2 * x1) + u,
            "x3": lambda x1, x2, u: x1 + 0.25 * x2**2 + u,
        },
        three_node_noise("nlin"),
        name="triangle-nlin",
    )


def nadd() -> StructuralCausalModel:
    """Non-additive noise: increasing in u with a jump at 0, hence invertible."""
    return StructuralCausalModel(
        {
            "x1": lambda u: u,
            "x2": lambda x1, u: 0.25 * np.sign(u) * x1**2 * (1 + u**2),
            "x3": lambda x1, x2, u: -1 + 0.1 * np.sign(u) * (x1**2 + x2**2) + u,
        },
        three_node_noise("nadd"),
        inverse={
            "x2": lambda x1, x2: invert_signed_square(x2, 0.25 * x1**2),
            "x3": lambda x1, x2, x3: invert_jump(x3 + 1, 0.1 * (x1**2 + x2**2)),
        },
        name="triangle-nadd",
    )
