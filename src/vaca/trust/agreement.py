"""Engines asked the same question, and how far apart their answers are.

Engines make different assumptions beyond the graph. Where their answers differ by more than the
interval says, the answer rests on one of those assumptions, and the interval does not cover that.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vaca.engines.registry import engine_class, engine_names, named_by
from vaca.errors import VacaError, VacaWarning
from vaca.graph.dag import CausalGraph
from vaca.model.causal_model import CausalModel
from vaca.model.effects import score
from vaca.show.words import number
from vaca.table.schema import Schema

if TYPE_CHECKING:
    from vaca.model.answers import Effect

__all__ = ["ask_engines", "engines_words", "other_engine"]

#: Rows that a second engine learns from: enough for an opinion.
ROWS = 4000
#: And for a look at all effects of a model.
CHECK_ROWS = 2000
#: Asked for every report, which should not wait for a flow to be polished.
BRIEF: dict[str, dict[str, Any]] = {
    "AdditiveNoise": {},
    "CausalFlow": {"steps": 300, "polish_steps": 0},
}


def ask_engines(
    effect: Effect,
    engines: Sequence[str],
    *,
    brief: bool = False,
    seed: int = 0,
    progress: Callable[[str], Any] | None = None,
) -> pd.DataFrame:
    """Fit other engines to the model's rows and ask each the question of the effect.

    Parameters
    ----------
    effect : Effect
        Of a fitted engine.
    engines : sequence of str
        Names of engines, as classes ("CausalFlow") or as the command line has them ("flow").
    brief : bool
        Train a flow for fewer steps than by default.
    progress : callable, optional
        Called with the name of each engine before it is fitted.

    Returns
    -------
    DataFrame
        Index `engine`, the model's own first; `effect`, `low`, `high` (95 %, empty where an engine
        has no interval) and `apart`: the distance to the model's effect, with half of its interval
        as the unit (of a wider interval, if the others were fitted to fewer rows).
    """
    model = effect.model
    rows = getattr(model, "rows_", None) if model is not None and model._learned else None
    if model is None or not rows:
        raise VacaError("other engines learn from the model's rows, and it keeps none")
    if effect.per_row is not None and effect.rows is None:
        raise VacaError("other engines answer for everyone or with among=, not for given rows")
    known = engine_names(alone=True)
    names = [named_by().get(name, name) for name in engines]
    classes = {name: engine_class(name, known) for name in names if name != type(model).__name__}
    graph, schema = _needed(effect, model)
    frame = model.schema_.decode(rows)[list(graph.all_columns)]
    fewer = min(1.0, ROWS / len(frame))
    if fewer < 1:
        frame = frame.sample(ROWS, random_state=seed)
    found = {type(model).__name__: effect}
    for name, cls in classes.items():
        if progress is not None:
            progress(name)
        settings = BRIEF.get(name, {}) if brief else {}
        engine: Any = cls(graph, schema=schema, seed=seed, **settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", VacaWarning)  # said by the model's own answer
            engine.fit(frame, progress=False)
            found[name] = engine.effect(
                effect.outcome, effect.treatment, effect.control,
                level=effect.level, among=effect.among, seed=seed,
            )  # fmt: skip
    low, high = effect.interval()
    half = (high - low) / 2 / fewer**0.5 if effect.covers_fit else float("nan")
    table = pd.DataFrame(
        {
            "effect": [one.value for one in found.values()],
            "low": [one.interval()[0] if one.covers_fit else np.nan for one in found.values()],
            "high": [one.interval()[1] if one.covers_fit else np.nan for one in found.values()],
        },
        index=pd.Index(found, name="engine"),
    )
    table["apart"] = (table["effect"] - effect.value).abs() / half
    return table


def _needed(effect: Effect, model: CausalModel) -> tuple[CausalGraph, Schema]:
    """The part of the graph that decides the answer: treatment, outcome, and what causes them.

    What comes after the outcome does not change it; a group (`among`) may be made of any column.
    """
    graph, schema = model.graph, model.schema_
    if effect.among is not None:
        return graph, schema
    named = {graph.node_of(effect.outcome)}
    for do in (effect.treatment, effect.control):
        named |= {node if node in graph else graph.node_of(node) for node in do or {}}
    kept = named.union(*(graph.ancestors(node) for node in named))
    nodes = [node for node in graph.nodes if node in kept]
    part = CausalGraph(
        {node: graph.parents(node) for node in nodes}, {node: graph.columns(node) for node in nodes}
    )
    return part, Schema({name: schema[name] for name in schema if name in part.all_columns})


def engines_words(table: pd.DataFrame) -> str:
    """How far apart the engines are, in words.

    >>> import pandas as pd
    >>> columns = {"effect": [1.0, 3.0], "low": [0.5, float("nan")], "high": [1.5, float("nan")]}
    >>> table = pd.DataFrame({**columns, "apart": [0.0, 4.0]}, index=["CausalFlow", "VACA"])
    >>> engines_words(table)
    'engines give 1 to 3: more than the interval says. The answer rests on what an engine assumes'
    """
    low, high = float(table["effect"].min()), float(table["effect"].max())
    if len(table) < 2:
        return "no other engine was asked"
    said = f"engines give {number(low)} to {number(high)}"
    if table["apart"].isna().all():
        return said
    if table["apart"].max() > 1:
        return f"{said}: more than the interval says. The answer rests on what an engine assumes"
    return f"{said}: within the interval"


def other_engine(model: CausalModel, data: pd.DataFrame, *, seed: int = 0) -> pd.DataFrame:
    """The effects of each cause on the last outcome, by the model and by a quick second engine.

    The second engine is additive noise; nothing is compared for a model that is one itself.

    Returns
    -------
    DataFrame
        `effect` (in words), `model`, `other`, `other engine`, and `apart`: their difference in
        standard deviations of the outcome.
    """
    from vaca.engines.additive_noise import AdditiveNoise
    from vaca.show.report import default_effects

    if isinstance(model, AdditiveNoise) or not model.graph.edges:
        return pd.DataFrame()
    rows = data.sample(min(len(data), CHECK_ROWS), random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VacaWarning)
        try:
            other: Any = AdditiveNoise(model.graph, model.schema_, seed=seed)
            other.fit(rows, progress=False)
            mine, theirs = (default_effects(m, rows, seed=seed) for m in (model, other))
        except VacaError:
            return pd.DataFrame()
    table = []
    for a, b in zip(mine, theirs, strict=True):
        values = model.schema_.encode_column(a.outcome, rows[a.outcome])
        spread = float(np.std(score(model.schema_, a.outcome, a.level, values))) or 1.0
        table.append(
            {
                "effect": str(a).partition(":")[0],
                "model": a.value,
                "other": b.value,
                "other engine": type(other).__name__,
                "apart": abs(a.value - b.value) / spread,
            }
        )
    return pd.DataFrame(table)
