"""What made a result: the engine of a run with all its settings and the revision of its code.

The description of a run says what was asked ("vaca on triangle-lin, seed 3"). What a recipe's name
stands for changes as defaults change. So the maker is part of a run's name: a changed default, or a
change of code that alters answers (`Engine.revision`), gives new runs, and old results never mix
with new ones.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from vaca.engines.registry import ENGINES, engine_class
from vaca.errors import VacaError
from vaca.graph.dag import CausalGraph
from vaca.reproduction.recipes import edit_graph, recipe
from vaca.reproduction.run import Run, Store
from vaca.reproduction.truths import load_truth

__all__ = ["maker", "stale", "stamped"]

#: Part of every run's description already, or without influence on the answer.
_ELSEWHERE = ("graph", "schema", "seed", "jobs", "missing")


def stamped(runs: Iterable[Run]) -> list[Run]:
    """The runs with their makers filled in, where they name none."""
    return [run if run.maker else dataclasses.replace(run, maker=maker(run)) for run in runs]


def maker(run: Run) -> str:
    """The engine's name, the revision of its code and a digest of all its settings.

    >>> maker(Run("triangle-lin", "additive")).startswith("AdditiveNoise-r")
    True
    >>> maker(Run("triangle-lin", "truth"))
    'truth'
    """
    config = json.dumps(run.config, sort_keys=True)
    return _maker(run.scm, run.model, run.task, run.graph, config)


@lru_cache(maxsize=4096)
def _maker(scm: str, model: str, task: str, edits: tuple[str, ...], config: str) -> str:
    if task == "selection":
        from vaca.reproduction.auto_study import CANDIDATES

        given = json.loads(config)
        parts = [
            _maker(scm, name, "evaluate", edits, json.dumps(given.get(name, {}), sort_keys=True))
            for name in CANDIDATES
        ]
        return "auto-" + _digest(parts)
    if model in ENGINES:  # a study that makes its own tables and takes the engine as it comes
        return _name(engine_class(model)(CausalGraph.from_edges([("x", "y")])))
    try:
        how = recipe(model)
    except VacaError:
        return ""  # not made by an engine of the recipes; the study names what made it
    if how.fitted:
        return "truth"
    graph: CausalGraph
    schema: Any
    if task == "fairness":
        from vaca.datasets import german_credit

        data: Any = german_credit()
        graph, schema = data.graph, data.schema
    elif task in ("evaluate", "parameters"):
        truth = load_truth(scm)
        graph, schema = edit_graph(truth.graph, edits), truth.schema_
    else:  # studies with tables of their own; default settings do not depend on the graph
        graph, schema = CausalGraph.from_edges([("x", "y")]), None
    return _name(how.make(scm, graph, schema, 0, json.loads(config)))


def _name(engine: Any) -> str:
    settings = {
        name: value
        for name, value in engine.get_params(deep=False).items()
        if name not in _ELSEWHERE
    }
    return f"{type(engine).__name__}-r{getattr(engine, 'revision', 1)}-{_digest(settings)}"


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def stale(runs: Iterable[Run], store: Store) -> list[tuple[str, str]]:
    """Stored runs that another maker made than the present one, with who made them.

    Parameters
    ----------
    runs : iterable of Run
        What an experiment asks for now.
    store : Store

    Returns
    -------
    list of (name, maker)
    """
    wanted = {_asked(run): run.maker for run in stamped(runs)}
    found = []
    for report in store.reports():
        run = Run.from_dict(report["run"])
        now = wanted.get(_asked(run))
        if now is not None and run.maker != now:
            found.append((run.name, run.maker or "an earlier version"))
    return found


def _asked(run: Run) -> str:
    return dataclasses.replace(run, maker="").key
