"""The audit as one page for a reader who does not program: self-contained HTML."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd

from vaca.fairness import charts
from vaca.fairness.result import AuditResult
from vaca.graph.dag import CausalGraph

_METRIC_WORDS = {
    "people": "people",
    "selection_rate": "favourable decisions",
    "accuracy": "correct decisions",
    "true_positive_rate": "favourable among those with a good outcome",
    "false_positive_rate": "favourable among those with a bad outcome",
}


def render(
    result: AuditResult,
    *,
    title: str | None = None,
    graph_robustness: pd.DataFrame | None = None,
    engine_robustness: pd.DataFrame | None = None,
    frontier: pd.DataFrame | None = None,
) -> str:
    """The report as HTML text.

    Parameters
    ----------
    result : AuditResult
    title : str, optional
    graph_robustness, engine_robustness, frontier : DataFrame, optional
        From the functions of the same names in `vaca.fairness`.
    """
    import jinja2

    from vaca import __version__

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["points"] = _points
    environment.filters["percent"] = _percent
    environment.filters["signed"] = _signed
    source = (files("vaca.fairness") / "templates" / "audit.html").read_text(encoding="utf-8")
    s = result.settings
    words = " and ".join(s["sensitive"])
    nodes = [n for n in result.graph.nodes if set(result.graph.columns(n)) & set(s["sensitive"])]
    below = {d for n in nodes for d in result.graph.descendants(n)} - set(nodes)
    mediated = [n for n in result.graph.order if n in below]
    outcome = "the favourable answer" if s["positive"] is None else f"“{s['positive']}”"
    low, high = result.interval
    pictures = {
        "graph": charts.draw_graph(result.graph, nodes),
        "histogram": charts.draw_histogram(
            result.per_person["gap"], "How many people have which change in probability"
        ),
    }
    if result.decomposition is not None:
        pictures["paths"] = charts.draw_bars(
            result.decomposition, "Size of each part, percentage points", mark="total"
        )
    if graph_robustness is not None:
        pictures["graphs"] = charts.draw_bars(
            graph_robustness, "Unfairness under changed graphs", mark="as assumed"
        )
    if frontier is not None:
        pictures["frontier"] = charts.draw_frontier(frontier, "Accuracy against unfairness")
    return environment.from_string(source).render(
        title=title or f"What {s['predictor']} would have said, had {words} been another",
        version=__version__,
        r=result,
        s=s,
        words=words,
        outcome=outcome,
        low=low,
        high=high,
        pictures=pictures,
        mediated=[_node_words(result.graph, n) for n in mediated],
        unmentioned=[
            _node_words(result.graph, n)
            for n in result.graph.nodes
            if n not in nodes and n not in mediated
        ],
        groups=result.by_group.reset_index().to_dict("records"),
        signed_parts=_signed_parts(result),
        metrics=_metrics(result),
        twins=[_twin(t) for t in result.twins],
        assumptions=_assumptions(result, mediated),
        engines=_engines(engine_robustness),
        verdict=None if engine_robustness is None else engine_robustness.attrs.get("verdict"),
        graph_range=None
        if graph_robustness is None
        else (graph_robustness["unfairness"].min(), graph_robustness["unfairness"].max()),
        frontier=None if frontier is None else frontier.reset_index().to_dict("records"),
        definition_level=f"{100 * s['level']:g}",
    )


def _node_words(graph: CausalGraph, node: str) -> str:
    columns = graph.columns(node)
    return node if columns == (node,) else f"{node} ({', '.join(columns)})"


def _percent(value: float) -> str:
    return f"{100 * value:.1f}\N{NO-BREAK SPACE}%"


def _points(value: float) -> str:
    return "–" if not np.isfinite(value) else f"{100 * value:.2f}"


def _signed(value: float) -> str:
    return "–" if not np.isfinite(value) else f"{100 * value:+.2f}".replace("-", "−")


def _assumptions(result: AuditResult, mediated: list[str]) -> list[dict[str, Any]]:
    """For each column that can differ in a twin: whether it is determined, and by what."""
    changing = {c for n in mediated for c in result.graph.columns(n)}
    rows = result.assumptions.reset_index().to_dict("records")
    return [row for row in rows if row["column"] in changing]


def _signed_parts(result: AuditResult) -> list[dict[str, Any]]:
    table = result.decomposition_by_group
    return [] if table is None else table.reset_index().to_dict("records")


def _metrics(result: AuditResult) -> dict[str, Any]:
    table = result.group_metrics
    names = [c for c in table.columns if c in _METRIC_WORDS]
    rows = []
    for group, row in table.iterrows():
        cells = [f"{int(row[c]):,}" if c == "people" else _percent(row[c]) for c in names]
        rows.append({"group": group, "cells": cells})
    return {"names": [_METRIC_WORDS[c] for c in names], "rows": rows}


def _twin(twin: dict[str, Any]) -> dict[str, Any]:
    """What changed between a person and the twin, in the original units."""
    changed = [
        {"column": c, "before": _shown(before), "after": _shown(twin["after"][c])}
        for c, before in twin["before"].items()
        if before != twin["after"][c]
    ]
    same = [
        {"column": c, "value": _shown(v)}
        for c, v in twin["before"].items()
        if v == twin["after"][c]
    ]
    return {**twin, "changed": changed, "same": same}


def _shown(value: Any) -> str:
    if isinstance(value, float | np.floating) and not float(value).is_integer():
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    if isinstance(value, int | float | np.number) and not isinstance(value, bool):
        return f"{value:,.0f}"
    return str(value)


def _engines(table: pd.DataFrame | None) -> dict[str, Any] | None:
    if table is None:
        return None
    rows = [{"name": n, "cells": [_points(v) for v in r]} for n, r in table.iterrows()]
    first = table.iloc[0]
    return {
        "names": [str(c) for c in table.columns],
        "rows": rows,
        "first": str(table.index[0]),
        "low": first.min(),
        "high": first.max(),
    }
