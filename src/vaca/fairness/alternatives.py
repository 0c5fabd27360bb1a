"""What a sensitive attribute may be changed to, and the `do` that changes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from vaca.errors import VacaError, did_you_mean
from vaca.graph.dag import CausalGraph
from vaca.model.arguments import check_names
from vaca.model.causal_model import CausalModel
from vaca.table.columns import row_count
from vaca.table.schema import Columns

#: More alternatives than this make an audit nobody can read.
MAX_ALTERNATIVES = 40


@dataclass(frozen=True)
class Alternative:
    """Values of the sensitive columns, encoded, and how they are shown."""

    label: str
    codes: dict[str, float]


@dataclass(frozen=True)
class Sensitive:
    """The sensitive columns, everyone's own group, and the alternatives people are moved to.

    Attributes
    ----------
    columns : tuple of str
    nodes : tuple of str
        The nodes these columns belong to.
    groups : ndarray of str, shape (n,)
        Each row's own alternative.
    alternatives : list of Alternative
    mediators : tuple of str
        Every node that the sensitive ones can reach, in causal order.
    """

    columns: tuple[str, ...]
    nodes: tuple[str, ...]
    groups: np.ndarray
    alternatives: list[Alternative]
    mediators: tuple[str, ...]
    caveats: list[str]

    def do(
        self, alternative: Alternative, x: Columns, graph: CausalGraph, model: CausalModel
    ) -> dict:
        """The intervention for rows `x`; other columns of a sensitive node keep their values."""
        schema = model.schema_
        n = row_count(x)
        result: dict[str, Any] = {}
        for node in self.nodes:
            values = {
                c: schema.decode_column(
                    c,
                    np.full(n, alternative.codes[c], dtype=x[c].dtype)
                    if c in self.columns
                    else x[c],
                )
                for c in graph.columns(node)
            }
            arrays = {c: np.asarray(v) for c, v in values.items()}
            result[node] = arrays if len(arrays) > 1 else next(iter(arrays.values()))
        return result

    def differs(self, alternative: Alternative, x: Columns) -> np.ndarray:
        """Rows (n,) whose own values are not those of the alternative."""
        same = np.ones(len(self.groups), dtype=bool)
        for c in self.columns:
            same &= x[c] == alternative.codes[c]
        return ~same


def sensitive_columns(graph: CausalGraph, names: Sequence[str]) -> list[str]:
    """The columns that the names stand for: a column for itself, a node for all of its own."""
    columns: list[str] = []
    for name in names:
        if name in graph.all_columns:
            columns.append(name)
        elif name in graph:
            columns.extend(graph.columns(name))
        else:
            raise VacaError(
                f"the sensitive attribute {name!r} is not in the causal graph, so nothing can be "
                f"said of its effects; {did_you_mean(name, graph.all_columns)}. Add it to the "
                "graph and fit the model again"
            )
    return list(dict.fromkeys(columns))


def read_sensitive(
    model: CausalModel,
    sensitive: str | Sequence[str],
    alternatives: Sequence[Any] | None,
    x: Columns,
) -> Sensitive:
    """Check the sensitive attribute(s) and list the alternatives that people are moved to."""
    graph, schema = model.graph, model.schema_
    names = check_names("sensitive", sensitive)
    if not names:
        raise VacaError("name at least one sensitive attribute, like sensitive='sex'")
    columns = sensitive_columns(graph, names)
    nodes = tuple(n for n in graph.order if set(graph.columns(n)) & set(columns))
    below = set(graph.descendants(*nodes))
    caveats: list[str] = []
    if alternatives is not None:
        found = _given(model, columns, alternatives)
    else:
        found = _observed(model, columns, x, caveats)
    if len(found) > MAX_ALTERNATIVES:
        raise VacaError(
            f"{', '.join(columns)}: {len(found)} combinations of values; more than "
            f"{MAX_ALTERNATIVES} cannot be read. Name those of interest with alternatives=[...]"
        )
    numeric = [c for c in columns if not schema[c].discrete]
    shown = [c for c in columns if c not in numeric]
    labels = [
        [f"{c} = {v}" if len(columns) > 1 else str(v) for v in _decoded(model, c, x)] for c in shown
    ]
    n = len(x[columns[0]])
    groups = (
        np.array([", ".join(parts) for parts in zip(*labels, strict=True)], dtype=object)
        if labels
        else np.array(["as observed"] * n, dtype=object)
    )
    mediators = tuple(node for node in graph.order if node in below)
    return Sensitive(tuple(columns), nodes, groups, found, mediators, caveats)


def _decoded(model: CausalModel, column: str, x: Columns) -> list[Any]:
    levels = np.asarray(model.schema_.levels(column), dtype=object)
    return levels.take(x[column]).tolist()


def _alternative(model: CausalModel, values: Mapping[str, Any]) -> Alternative:
    many = len(values) > 1
    codes = {c: model.schema_.encode_value(c, v) for c, v in values.items()}
    label = ", ".join(f"{c} = {v}" if many else str(v) for c, v in values.items())
    return Alternative(label, codes)


def _given(
    model: CausalModel, columns: list[str], alternatives: Sequence[Any]
) -> list[Alternative]:
    if isinstance(alternatives, str) or not isinstance(alternatives, Sequence | np.ndarray):
        raise VacaError(
            "alternatives is a list of values, like ['female', 'male'], or for several attributes "
            "a list of dicts, like [{'sex': 'female', 'race': 'black'}]"
        )
    found = []
    for given in alternatives:
        values = given if isinstance(given, Mapping) else {columns[0]: given}
        if set(values) != set(columns):
            raise VacaError(
                f"an alternative must give a value for each of {columns}; got {given!r}"
            )
        found.append(_alternative(model, {c: values[c] for c in columns}))
    if not found:
        raise VacaError("alternatives is empty; name at least one value to change to")
    return found


def _observed(
    model: CausalModel, columns: list[str], x: Columns, caveats: list[str]
) -> list[Alternative]:
    schema = model.schema_
    for c in columns:
        if not schema[c].discrete:
            raise VacaError(
                f"the sensitive attribute {c!r} is {schema.kind(c)}: say which values to compare "
                "with, like alternatives=[30, 60]"
            )
    codes = pd.DataFrame({c: x[c] for c in columns}).drop_duplicates().sort_values(columns)
    if len(codes) < 2:
        only = {c: schema.levels(c)[int(codes[c].iloc[0])] for c in columns}
        if len(columns) > 1 or len(schema.levels(columns[0])) < 2:
            raise VacaError(
                f"everyone in the data has {only}, so there is nobody to compare with; give rows "
                "of at least two groups, or name the other values with alternatives=[...]"
            )
        caveats.append(
            f"Everyone in the audited rows has {columns[0]} = {only[columns[0]]}; they are "
            "compared with the other levels that the model was fitted on."
        )
        codes = pd.DataFrame({columns[0]: range(len(schema.levels(columns[0])))})
    return [
        _alternative(model, {c: schema.levels(c)[int(row[c])] for c in columns})
        for row in codes.to_dict("records")
    ]
