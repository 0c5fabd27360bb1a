"""Models whose equations a person wrote down, and the built-in ones in `vaca.scm.library`."""

from vaca.errors import AbductionError
from vaca.scm.distributions import Bernoulli, Categorical, Distribution, Gamma, Mixture, Normal
from vaca.scm.structural import StructuralCausalModel

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
