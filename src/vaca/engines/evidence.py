"""What the rows that an engine keeps say about a question: where it leaves the data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vaca.engines.fit_input import MIN_ROWS
from vaca.model.answers import Effect
from vaca.model.effects import EXTRAPOLATED
from vaca.model.intervention import Intervention
from vaca.model.support import Comparable
from vaca.table.columns import row_count
from vaca.table.schema import Columns

if TYPE_CHECKING:
    from vaca.engines.engine import Engine


def extrapolated(
    engine: Engine,
    treatment: Mapping[str, Any],
    control: Mapping[str, Any],
    rows: pd.DataFrame | None,
) -> np.ndarray | None:
    """For which rows (n,), by default those kept, nothing like treatment or control was seen.

    None if that cannot be known, because the values belong to rows that are drawn.
    """
    x = engine.rows_ if rows is None else engine._filled(engine._encode(rows), None)
    n = row_count(x)
    found = np.zeros(n, dtype=bool)
    for do in (treatment, control):
        intervention = engine._parse(do)
        for value in (p for parts in intervention.parts.values() for p in parts.values()):
            if rows is None and (callable(value) or pd.api.types.is_list_like(value)):
                return None
        index = None if rows is None else rows.index
        intervention = intervention.encode_rows(n, index)
        intervention = intervention.draw_random(n, np.random.default_rng(0))
        asked = {**x, **intervention.resolve(lambda done: {**x, **done})}
        found |= _beyond(engine, x, asked, intervention)
    return found


def _beyond(engine: Engine, x: Columns, asked: Columns, intervention: Intervention) -> np.ndarray:
    """Which rows `asked` are unlike any in the data, though their factual rows `x` are not."""
    graph, schema = engine.graph, engine.schema_
    found = engine.overlap_.beyond(asked, graph, intervention.nodes)
    for node in intervention.nodes:
        causes = [c for p in graph.parents(node) for c in graph.columns(p)]
        for column in graph.columns(node):
            spec, values = schema[column], asked[column]
            found |= spec.outside(values)
            if spec.discrete and causes:
                likely = Comparable(engine.rows_, column, causes, schema, engine.weights_)
                for level in np.unique(values):
                    moved = (values == level) & (x[column] != level)
                    found |= moved & likely.lacking(asked, int(level))
    return found


def answerable(engine: Engine, effect: Effect) -> dict[str, Any] | None:
    """A group for which the data can answer an effect's question, if not for everyone."""
    if effect.among is not None:
        return None
    schema = engine.schema_
    rows, _, _ = engine._population(0, 0)
    best: tuple[int, dict[str, Any]] | None = None
    for do in (effect.treatment, effect.control):
        for name, value in do.items():
            if name not in schema or not schema[name].discrete:
                continue
            if pd.api.types.is_list_like(value) or callable(value) or hasattr(value, "rvs"):
                continue
            part = rows[engine.rows_[name] == schema.encode_value(name, value)]
            if len(part) < MIN_ROWS or (best is not None and len(part) <= best[0]):
                continue
            far = extrapolated(engine, effect.treatment, effect.control, part)
            if far is not None and far.mean() < EXTRAPOLATED:
                best = len(part), {name: value}
    return None if best is None else best[1]
