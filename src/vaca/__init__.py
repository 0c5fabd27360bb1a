"""vaca: interventional and counterfactual answers from a table and a causal graph.

>>> import vaca
>>> graph = vaca.CausalGraph.from_edges([("x1", "x2"), ("x2", "x3")])
>>> graph.longest_path
2
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Names are looked up on first use, so that `import vaca` stays quick and loads neither torch nor
# pandas before they are needed.
_HOME = {
    "CausalGraph": "graph",
    "CausalModel": "model",
    "Column": "schema",
    "Schema": "schema",
    "Shift": "intervention",
    "Effect": "answers",
    "CounterfactualFrame": "answers",
    "StructuralCausalModel": "scm",
    "VacaError": "errors",
    "VacaWarning": "errors",
    "SupportWarning": "errors",
    "VACA": "models.vaca",
    "MultiCVAE": "models.multicvae",
    "CAREFL": "models.carefl",
    "CausalFlow": "models.causal_flow",
    "AdditiveNoise": "models.additive_noise",
    "Ensemble": "models.ensemble",
    "auto": "selection",
    "load": "persistence",
    "save": "persistence",
    "evaluate": "evaluation",
    "audit": "fairness",
}
_MODULES = (
    "datasets",
    "evaluation",
    "experiments",
    "fairness",
    "interop",
    "metrics",
    "plotting",
    "report",
    "scms",
)

__all__ = [*_HOME, *_MODULES, "plot", "__version__"]

if TYPE_CHECKING:
    from vaca import plotting as plot
    from vaca import scms
    from vaca.answers import CounterfactualFrame, Effect
    from vaca.errors import SupportWarning, VacaError, VacaWarning
    from vaca.graph import CausalGraph
    from vaca.intervention import Shift
    from vaca.model import CausalModel
    from vaca.persistence import load, save
    from vaca.schema import Column, Schema
    from vaca.scm import StructuralCausalModel


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"vaca.{_HOME[name]}"), name)
    if name in _MODULES:
        return importlib.import_module(f"vaca.{name}")
    if name == "plot":
        return importlib.import_module("vaca.plotting")
    raise AttributeError(f"module 'vaca' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
