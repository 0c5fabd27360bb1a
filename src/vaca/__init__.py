"""vaca: interventional and counterfactual answers from a table and a causal graph.

>>> import vaca
>>> graph = vaca.CausalGraph.from_edges([("x1", "x2"), ("x2", "x3")])
>>> graph.longest_path
2
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from vaca.engines.registry import ENGINES

__version__ = "0.1.0"

# Names are looked up on first use, so that `import vaca` stays quick and loads neither torch nor
# pandas before they are needed.
_HOME = {
    "CausalGraph": "graph.dag",
    "CausalModel": "model.causal_model",
    "Column": "table.schema",
    "Schema": "table.schema",
    "Shift": "model.intervention",
    "Effect": "model.answers",
    "CounterfactualFrame": "model.answers",
    "StructuralCausalModel": "scm.structural",
    "VacaError": "errors",
    "VacaWarning": "errors",
    "SupportWarning": "errors",
    **{name: entry.module for name, entry in ENGINES.items()},
    "auto": "engines.selection",
    "load": "engines.persistence",
    "save": "engines.persistence",
    "evaluate": "evaluation",
    "audit": "fairness",
    "check": "trust.check",
    "Check": "trust.check",
}
_MODULES = {
    "datasets": "datasets",
    "distributions": "scm.distributions",
    "evaluation": "evaluation",
    "fairness": "fairness",
    "interop": "interop",
    "metrics": "evaluation.metrics",
    "plot": "show.plot",
    "report": "show.report",
    "reproduction": "reproduction",
    "scm": "scm",
    "scms": "scm.library",
}

__all__ = [*_HOME, *_MODULES, "__version__"]

if TYPE_CHECKING:
    from vaca import datasets as datasets
    from vaca import evaluation as evaluation
    from vaca import fairness as fairness
    from vaca import interop as interop
    from vaca import reproduction as reproduction
    from vaca import scm as scm
    from vaca.engines.additive_noise import AdditiveNoise as AdditiveNoise
    from vaca.engines.carefl import CAREFL as CAREFL
    from vaca.engines.causal_flow import CausalFlow as CausalFlow
    from vaca.engines.composite import Composite as Composite
    from vaca.engines.ensemble import Ensemble as Ensemble
    from vaca.engines.multicvae import MultiCVAE as MultiCVAE
    from vaca.engines.paper_vaca import PaperVACA as PaperVACA
    from vaca.engines.persistence import load as load
    from vaca.engines.persistence import save as save
    from vaca.engines.selection import auto as auto
    from vaca.engines.vaca import VACA as VACA
    from vaca.errors import SupportWarning as SupportWarning
    from vaca.errors import VacaError as VacaError
    from vaca.errors import VacaWarning as VacaWarning
    from vaca.evaluation import evaluate as evaluate
    from vaca.evaluation import metrics as metrics
    from vaca.fairness import audit as audit
    from vaca.graph.dag import CausalGraph as CausalGraph
    from vaca.model.answers import CounterfactualFrame as CounterfactualFrame
    from vaca.model.answers import Effect as Effect
    from vaca.model.causal_model import CausalModel as CausalModel
    from vaca.model.intervention import Shift as Shift
    from vaca.scm import distributions as distributions
    from vaca.scm import library as scms
    from vaca.scm.structural import StructuralCausalModel as StructuralCausalModel
    from vaca.show import plot as plot
    from vaca.show import report as report
    from vaca.table.schema import Column as Column
    from vaca.table.schema import Schema as Schema
    from vaca.trust.check import Check as Check
    from vaca.trust.check import check as check


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"vaca.{_HOME[name]}"), name)
    if name in _MODULES:
        return importlib.import_module(f"vaca.{_MODULES[name]}")
    raise AttributeError(f"module 'vaca' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
