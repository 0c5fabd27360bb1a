"""The paper's tables and figures, and studies beyond them, as lists of runs.

An experiment is data: a list of frozen `Run` descriptions. `run_all` does those that are not done
yet, here or on a cluster, and a `Store` keeps one report for each. Tables and figures are pure
functions of the reports.
"""

from __future__ import annotations

from vaca.reproduction.run import Run, Store
from vaca.reproduction.runner import Outcome, run_all

__all__ = ["Outcome", "Run", "Store", "run_all"]
