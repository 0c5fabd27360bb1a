"""The one interface of all causal models: what can be asked, and what comes back."""

from vaca.model.causal_model import CausalModel
from vaca.model.primitives import Noise

__all__ = ["CausalModel", "Noise"]
