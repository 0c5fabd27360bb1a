"""Every experiment by name."""

from __future__ import annotations

from vaca.reproduction.check_study import CHECKS
from vaca.reproduction.coverage import COVERAGE
from vaca.reproduction.cross_validation import CROSS_VALIDATION
from vaca.reproduction.default import DEFAULT
from vaca.reproduction.experiment import Experiment
from vaca.reproduction.generalisation import GENERALISATION
from vaca.reproduction.missing import MISSING
from vaca.reproduction.paper import PAPER
from vaca.reproduction.studies import STUDIES

__all__ = ["EXPERIMENTS"]

EXPERIMENTS: dict[str, Experiment] = {
    e.name: e
    for e in (
        *PAPER,
        CROSS_VALIDATION,
        *STUDIES,
        *GENERALISATION,
        *CHECKS,
        COVERAGE,
        MISSING,
        *DEFAULT,
    )
}
