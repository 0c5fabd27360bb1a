"""Every experiment by name."""

from __future__ import annotations

from vaca.experiments.experiment import Experiment
from vaca.experiments.generalisation import GENERALISATION
from vaca.experiments.paper import PAPER
from vaca.experiments.studies import STUDIES

__all__ = ["EXPERIMENTS"]

EXPERIMENTS: dict[str, Experiment] = {e.name: e for e in (*PAPER, *STUDIES, *GENERALISATION)}
