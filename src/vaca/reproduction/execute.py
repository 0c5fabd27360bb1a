"""Do one run: draw the data, fit the model, evaluate it, and give the report."""

from __future__ import annotations

import dataclasses
import math
import platform
import sys
import time
import warnings
from collections.abc import Callable
from importlib import metadata
from typing import Any

import numpy as np

from vaca.errors import VacaError, did_you_mean
from vaca.evaluation import Evaluation, evaluate
from vaca.model.causal_model import CausalModel
from vaca.reproduction.auto_study import selection_scores
from vaca.reproduction.check_cases import check_scores, graph_check_scores
from vaca.reproduction.coverage import coverage_scores
from vaca.reproduction.fairness import fairness_scores
from vaca.reproduction.missing import missing_scores
from vaca.reproduction.recipes import edit_graph, recipe
from vaca.reproduction.run import Run
from vaca.reproduction.truths import load_truth

__all__ = ["execute"]

DIGITS = 6


def execute(run: Run) -> dict[str, Any]:
    """Do the run and give its report: scores with floors, times, sizes, warnings, versions.

    Everything but the times follows from the description alone: training rows, validation rows
    and evaluation get seeds of their own, derived from the run's.

    Parameters
    ----------
    run : Run
        Its task says what is done: ``evaluate`` scores the model against the truth,
        ``parameters`` only counts what it learns, ``fairness`` measures classifiers on a dataset,
        ``selection`` scores what `vaca.auto` chooses, ``check-graph`` and ``check`` ask
        `vaca.check`, ``coverage`` asks whether intervals hold the truth, ``missing`` what
        gaps cost.

    Returns
    -------
    dict of JSON values
        ``scores[protocol][metric]`` is ``[value, floor]``, x100.

    Examples
    --------
    >>> report = execute(Run("collider-lin", "truth", protocols=("published",)))
    >>> report["scores"]["published"]["cf_mse"][0] < 1e-9
    True
    """
    if run.task not in TASKS:
        raise VacaError(f"unknown task {run.task!r}; {did_you_mean(run.task, TASKS)}")
    start = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        report = TASKS[run.task](run)
    texts = dict.fromkeys(str(warning.message) for warning in caught)
    spent = round(time.process_time() - start, 1)
    return {**report, "cpu_seconds": spent, "warnings": list(texts), "versions": _versions()}


def _fit(run: Run, truth: CausalModel) -> tuple[Any, Any, Any, dict[str, Any]]:
    """The fitted model, the rows it learned from and stopped by, and what fitting took."""
    graph = edit_graph(truth.graph, run.graph)
    train_seed, validation_seed = _seeds(run.data_seed or 0, 2)
    data = truth.sample(run.train, seed=train_seed)
    validation = truth.sample(run.validation, seed=validation_seed)
    how = recipe(run.model)
    model: Any = how.make(run.scm, graph, truth.schema_, run.seed, run.config)
    started, worked = time.perf_counter(), time.process_time()
    if not how.fitted:
        model.fit(data, validation, progress=False)
    facts = {
        "parameters": parameter_count(model),
        "epochs": _epochs(model),
        "fit_seconds": round(time.perf_counter() - started, 3),
        "fit_cpu_seconds": round(time.process_time() - worked, 3),
    }
    return model, data, validation, facts


def _evaluate(run: Run) -> dict[str, Any]:
    truth = load_truth(run.scm)
    model, data, validation, facts = _fit(run, truth)
    (evaluation_seed,) = _seeds(run.seed, 1, stream=1)
    (selection_seed,) = _seeds(run.seed, 1, stream=2)
    started = time.perf_counter()
    scores: dict[str, Any] = {}
    kept: dict[str, Evaluation] = {}
    for protocol in run.protocols:
        result = evaluate(
            model,
            truth,
            protocol,  # type: ignore[arg-type]
            seed=evaluation_seed,
            data=data,
            nodes=run.nodes or None,
            rows=run.rows if protocol == "paper" else None,
            resamples=run.resamples,
            factuals=run.factuals,
            floor=_floors.get(_floor_key(run, protocol), True),
        )
        scores[protocol] = _scores(result)
        kept[_floor_key(run, protocol)] = result
    _floors.clear()
    _floors.update(kept)
    return {
        "scores": scores,
        "validation_mmd": _number(_validation_mmd(model, truth, validation, selection_seed)),
        **facts,
        "evaluate_seconds": round(time.perf_counter() - started, 3),
    }


# The floor does not depend on the model, and a process often gets several models of one SCM and
# seed in a row: the last floors are kept. They are a cache; scores are the same without.
_floors: dict[str, Evaluation] = {}


def _floor_key(run: Run, protocol: str) -> str:
    same = dataclasses.replace(
        run, model="", config={}, graph=(), validation=0, protocols=(protocol,)
    )
    return same.key


def _parameters(run: Run) -> dict[str, Any]:
    *_, facts = _fit(run, load_truth(run.scm))
    return {"scores": {}, **facts}


TASKS: dict[str, Callable[[Run], dict[str, Any]]] = {
    "evaluate": _evaluate,
    "parameters": _parameters,
    "fairness": fairness_scores,
    "selection": selection_scores,
    "check-graph": graph_check_scores,
    "check": check_scores,
    "coverage": coverage_scores,
    "missing": missing_scores,
}


def _seeds(seed: int, count: int, stream: int = 0) -> list[int]:
    state = np.random.SeedSequence([seed, stream]).generate_state(count)
    return [int(word) for word in state]


def _scores(result: Evaluation) -> dict[str, list[float | None]]:
    table = result.summary()
    return {
        str(metric): [_number(table.at["value", metric]), _number(table.at["floor", metric])]
        for metric in table.columns
    }


def _number(value: Any) -> float | None:
    """A number with a few digits; None for what JSON cannot hold."""
    value = float(value)
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None


def _validation_mmd(model: CausalModel, truth: CausalModel, validation: Any, seed: int) -> float:
    """Observational MMD (x100) between the model and the validation rows, to choose settings by.

    It sees neither the truth's equations nor any row that scores are made from.
    """
    from vaca.evaluation.coding import Space
    from vaca.evaluation.metrics import mmd

    real = truth.schema_.encode(validation)
    made = truth.schema_.encode(model.sample(len(validation), seed=seed))

    space, nodes = Space(truth, real), truth.graph.nodes
    sides = (
        space.matrix(rows, nodes, who, "when sampled")[:1000]
        for who, rows in (("the model", made), ("the truth", real))
    )
    return 100.0 * mmd(*sides)


def parameter_count(model: Any) -> int | None:
    """How many numbers the model's networks have learned; None if it has no networks."""
    own = getattr(model, "n_parameters_", None)
    if own is not None:
        return int(own)
    if "torch" not in sys.modules:
        return None
    from torch import nn

    modules = [value for value in vars(model).values() if isinstance(value, nn.Module)]
    unique = {id(p): p.numel() for module in modules for p in module.parameters()}
    return sum(unique.values()) if modules else None


def _epochs(model: Any) -> int | None:
    history = vars(model).get("history_")
    return None if history is None else len(history)


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in ("vaca", "numpy", "torch"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
