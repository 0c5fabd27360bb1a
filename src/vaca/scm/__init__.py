"""Models whose equations a person wrote down, and the built-in ones in `vaca.scm.library`."""

from vaca.scm.distributions import Bernoulli, Categorical, Distribution, Gamma, Mixture, Normal
from vaca.scm.structural import AbductionError, StructuralCausalModel

__all__ = [
    "AbductionError",
    "Bernoulli",
    "Categorical",
    "Distribution",
    "Gamma",
    "Mixture",
    "Normal",
    "StructuralCausalModel",
]
