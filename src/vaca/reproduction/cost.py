"""How long a list of runs will take, judged by runs that were done before."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from importlib import resources
from statistics import median
from typing import Any

from vaca.reproduction.recipes import RECIPES
from vaca.reproduction.run import Run, Store
from vaca.reproduction.truths import load_truth

__all__ = ["cpu_seconds", "measured"]

#: Rows to fit in the runs that the shipped costs were measured on.
USUAL_ROWS = 5000
#: Share of the time that does not grow with the rows, for a model that passes over all of them.
FIXED_SHARE = 0.15
#: Others take a number of steps, or only the rows they need: their time grows to this at most.
MOST = 1.5


def cpu_seconds(runs: Iterable[Run], store: Store) -> float:
    """CPU seconds that the runs will take; 0 if nothing like them was ever measured.

    Each run counts as the median of the runs that are most like it, in the store or among those
    that vaca ships: of the same model (or task) and SCM, else of the same model, else of all.
    """
    known = _shipped()
    known.update(measured(store.reports()))
    if not known:
        return 0.0
    whole = median(known.values())
    by_first: dict[str, list[float]] = {}  # a model, or a task other than evaluating one
    for key, seconds in known.items():
        by_first.setdefault(key.partition(" ")[0], []).append(seconds)
    total = 0.0
    for run in runs:
        if run.task in by_first:
            total += known.get(f"{run.task} {run.scm}", median(by_first[run.task]))
            continue
        usual = by_first.get(run.model, [whole])
        total += known.get(f"{run.model} {run.scm}", median(usual)) * _share(run)
    return total


def _share(run: Run) -> float:
    """Share of the usual time, by the number of rows and for training that is cut short."""
    if run.task == "parameters":
        return 0.01
    rows = run.train / USUAL_ROWS
    if run.model.endswith("-paper"):
        return FIXED_SHARE + (1 - FIXED_SHARE) * rows * _epochs(run)
    steps = run.config.get("steps")
    brief = 0.25 if steps is not None and steps <= 500 else 1.0
    return brief * min(MOST, 0.5 + 0.5 * rows)


def _epochs(run: Run) -> float:
    """Share of its epochs that a model in the paper's configuration is trained for."""
    if "epochs" not in run.config:
        return 1.0
    truth = load_truth(run.scm)
    plain: Any = RECIPES[run.model].make(run.scm, truth.graph, truth.schema_, 0, {})
    return run.config["epochs"] / plain.epochs


def measured(reports: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Median CPU seconds of a run by "model scm", over reports of runs at their usual size.

    Runs with a task of their own, such as coverage, go by "task scm", whatever their size.
    """
    found: dict[str, list[float]] = {}
    for report in reports:
        run = report["run"]
        if run.get("task", "evaluate") not in ("evaluate", "parameters"):
            if report.get("cpu_seconds") is not None:
                key = f"{run['task']} {run['scm']}"
                found.setdefault(key, []).append(float(report["cpu_seconds"]))
            continue
        cpu = report.get("fit_cpu_seconds", report.get("fit_seconds"))
        if cpu is None or run.get("train") != USUAL_ROWS or run.get("task") == "parameters":
            continue
        if {"epochs", "steps"} & set(run.get("config", {})):  # training that was cut short
            continue
        # Older reports have the time of evaluating by the clock, which a busy machine stretches.
        whole = float(cpu) + float(report.get("evaluate_seconds", 0.0))
        seconds = float(report.get("cpu_seconds", whole))
        found.setdefault(f"{run['model']} {run['scm']}", []).append(seconds)
    return {key: round(median(values), 1) for key, values in sorted(found.items())}


def _shipped() -> dict[str, float]:
    file = resources.files("vaca.reproduction").joinpath("costs.json")
    return json.loads(file.read_text("utf-8")) if file.is_file() else {}
