"""Which interventions a protocol asks about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from vaca.errors import VacaError, did_you_mean
from vaca.model.causal_model import CausalModel
from vaca.table.schema import Columns, Schema

__all__ = ["SIGMAS", "Question", "choose_nodes", "interventions_on"]

SIGMAS = {"paper": (-1.0, -0.5, 0.0, 0.5, 1.0), "published": (-1.0, 0.1, 0.5, 1.0)}


@dataclass(frozen=True)
class Question:
    """One intervention: the encoded value of every column of one node."""

    node: str
    label: str
    do: dict[str, float | int]
    descendants: tuple[str, ...]

    def repeat(self, n: int) -> Columns:
        return {column: np.full(n, value) for column, value in self.do.items()}


def interventions_on(
    truth: CausalModel, training: Columns, node: str, protocol: str
) -> Iterator[Question]:
    """The settings of one node: around its mean in sds, or each level of a category."""
    schema = truth.schema_
    columns = truth.graph.columns(node)
    descendants = truth.graph.descendants(node)
    settings: list[dict[str, float | int]] = []
    if len(columns) == 1 and schema[columns[0]].discrete:
        settings = [{columns[0]: code} for code in range(len(schema.levels(columns[0])))]
    else:
        for sigma in SIGMAS[protocol]:
            setting = {c: _value(schema, c, training[c], sigma, protocol) for c in columns}
            if setting not in settings:
                settings.append(setting)
    for setting in settings:
        shown = ", ".join(f"{c}={_shown(schema, c, v)}" for c, v in setting.items())
        yield Question(node, f"do({shown})", setting, descendants)


def _value(
    schema: Schema, column: str, values: np.ndarray, sigma: float, protocol: str
) -> float | int:
    if schema[column].discrete:  # a category beside others in one node stays at its mode
        return int(np.bincount(values).argmax())
    value = float(values.mean() + sigma * values.std())
    if schema.kind(column) == "count":
        return float(max(0, round(value)))
    return round(value, 2) if protocol == "published" else value


def _shown(schema: Schema, column: str, value: float | int) -> str:
    return str(schema.levels(column)[int(value)]) if schema[column].discrete else f"{value:.4g}"


def choose_nodes(truth: CausalModel, protocol: str, nodes: Sequence[str] | None) -> list[str]:
    """The nodes to intervene on, checked: the person's, or the protocol's."""
    graph = truth.graph
    inner = [node for node in graph.nodes if graph.children(node)]
    if nodes is None and protocol == "published":
        nodes = getattr(truth, "published_nodes", None)
    chosen = list(nodes or inner)
    for node in chosen:
        if node not in graph:
            raise VacaError(f"unknown node {node!r}; {did_you_mean(node, graph.nodes)}")
        if node not in inner:
            raise VacaError(
                f"node {node!r} has no descendants, so nothing changes when it is set; "
                f"{did_you_mean(node, inner)}"
            )
    return chosen
