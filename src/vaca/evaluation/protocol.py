"""What a protocol asks and how it scores the answers: interventions, and metrics on samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vaca.errors import VacaError, did_you_mean
from vaca.evaluation import metrics
from vaca.evaluation.result import make_row
from vaca.model.arguments import check_names
from vaca.model.causal_model import CausalModel
from vaca.table.schema import Columns, Schema

__all__ = ["SIGMAS", "Probe", "Scorer", "choose_nodes", "probes_of"]

SIGMAS = {"paper": (-1.0, -0.5, 0.0, 0.5, 1.0), "published": (-1.0, 0.1, 0.5, 1.0)}


@dataclass(frozen=True)
class Probe:
    """One intervention: the encoded value of every column of one node."""

    node: str
    label: str
    do: dict[str, float | int]
    descendants: tuple[str, ...]

    def repeat(self, n: int) -> Columns:
        return {column: np.full(n, value) for column, value in self.do.items()}


def probes_of(truth: CausalModel, training: Columns, node: str, protocol: str) -> Iterator[Probe]:
    """The values that one node is set to: around its mean in sds, or each level of a category."""
    schema = truth.schema_
    columns = truth.graph.columns(node)
    descendants = truth.graph.descendants(node)
    values: list[dict[str, float | int]] = []
    if len(columns) == 1 and schema[columns[0]].discrete:
        values = [{columns[0]: code} for code in range(len(schema.levels(columns[0])))]
    else:
        for sigma in SIGMAS[protocol]:
            value = {c: _value(schema, c, training[c], sigma, protocol) for c in columns}
            if value not in values:
                values.append(value)
    for value in values:
        shown = ", ".join(f"{c}={_shown(schema, c, v)}" for c, v in value.items())
        yield Probe(node, f"do({shown})", value, descendants)


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
    """The nodes to intervene on, checked: those given, or the protocol's."""
    graph = truth.graph
    inner = [node for node in graph.nodes if graph.children(node)]
    if nodes is None and protocol == "published":
        nodes = getattr(truth, "published_nodes", None)
    chosen = inner if nodes is None else check_names("nodes", nodes) or inner
    for node in chosen:
        if node not in graph:
            raise VacaError(f"unknown node {node!r}; {did_you_mean(node, graph.nodes)}")
        if node not in inner:
            raise VacaError(
                f"node {node!r} has no descendants, so nothing changes when it is set; "
                f"{did_you_mean(node, inner)}"
            )
    return chosen


class Scorer:
    """The scores of one pair of samples, by protocol; remembers means for the effects."""

    MMD_ROWS = 1000

    def __init__(self, protocol: str, rows: int, resamples: int) -> None:
        self.protocol = protocol
        self._size = min(self.MMD_ROWS, rows)
        self._resamples = min(resamples, max(1, rows // self._size))
        self._means: dict[str, list[tuple[str, int, list[np.ndarray]]]] = {}

    def distribution(
        self, x: np.ndarray, y: np.ndarray, nodes: int, moments: bool, pick: int
    ) -> dict[str, tuple[float, int]]:
        rng = np.random.default_rng(pick)
        if self.protocol == "published":
            chosen = rng.integers(0, len(x), size=self._size)
            scores = {"mmd": (metrics.mmd(x[chosen], y[chosen]), 1)}
            if moments:
                # Published figures pool one value for each descendant of each intervention, and
                # for StdE one more: the sd of the distance between unrelated rows.
                unpaired = metrics.unpaired_norm_sd(x, y, nodes=nodes)
                spread = metrics.std_error(x, y, nodes=nodes)
                scores["mean_e"] = (metrics.mean_error(x, y, nodes=nodes), nodes)
                scores["std_e"] = ((spread * nodes + unpaired) / (nodes + 1), nodes + 1)
            return scores
        blocks = [slice(i * self._size, (i + 1) * self._size) for i in range(self._resamples)]
        scores = {"mmd": (float(np.mean([metrics.mmd(x[b], y[b]) for b in blocks])), 1)}
        if moments:
            scores["mean_e"] = (metrics.mean_error(x, y, nodes=nodes), 1)
            scores["std_e"] = (metrics.std_error(x, y, nodes=nodes), 1)
        few = blocks[:3]
        scores["energy"] = (float(np.mean([metrics.energy_distance(x[b], y[b]) for b in few])), 1)
        scores["c2st"] = (metrics.classifier_score(x[:2000], y[:2000], rng), 1)
        return scores

    def counterfactual(
        self, x: np.ndarray, y: np.ndarray, nodes: int
    ) -> dict[str, tuple[float, int]]:
        if self.protocol == "published":
            return {
                "mse": (metrics.cf_norm_mean(x, y, nodes=nodes), 1),
                "sse": (metrics.cf_norm_sd(x, y, nodes=nodes), 1),
            }
        return {"mse": (metrics.cf_mse(x, y, nodes=nodes), 1), "sse": (metrics.cf_sse(x, y), 1)}

    def remember(self, probe: Probe, samples: list[np.ndarray]) -> None:
        """Keep the means of [truth, model, floor], from which effects are made."""
        means = [sample.mean(axis=0, keepdims=True) for sample in samples]
        entry = (probe.label, len(probe.descendants), means)
        self._means.setdefault(probe.node, []).append(entry)

    def effects(self, sides: int) -> list[dict[str, Any]]:
        """Errors of the effect of the highest against the lowest value of each node."""
        table = []
        for node, values in self._means.items():
            (low_label, nodes, low), (high_label, _, high) = values[0], values[-1]
            errors = [
                metrics.ate_error(low[0], high[0], low[side], high[side], nodes=nodes)
                for side in range(1, sides + 1)
            ]
            label = f"{low_label} to {high_label}"
            table.append(make_row("interventional", label, node, "ate", errors, 1))
        return table
