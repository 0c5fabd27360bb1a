"""The audit as one page for a reader who does not program: self-contained HTML."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from vaca.fairness.result import AuditResult
from vaca.graph.dag import CausalGraph
from vaca.show.pages import picture, template
from vaca.show.pages import render as render_page
from vaca.show.plot import plot_frontier, plot_gaps, plot_graph, plot_sizes, plot_waterfall
from vaca.show.plot.parts import check_text
from vaca.show.words import number, points

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
    from vaca import __version__

    check_text("title", title)
    s = result.settings
    words = " and ".join(s["sensitive"])
    nodes = [n for n in result.graph.nodes if set(result.graph.columns(n)) & set(s["sensitive"])]
    below = set(result.graph.descendants(*nodes))
    mediated = [n for n in result.graph.order if n in below]
    outcome = "the favourable answer" if s["positive"] is None else f"“{s['positive']}”"
    low, high = result.interval
    evidence = {}
    if graph_robustness is not None:
        evidence["graphs"] = picture(
            plot_sizes(graph_robustness, mark="as assumed"),
            "Bars of the unfairness under each changed graph, between "
            f"{_points(graph_robustness['unfairness'].min())} and "
            f"{_points(graph_robustness['unfairness'].max())} points.",
        )
    if frontier is not None:
        least = str(frontier["unfairness"].idxmin())
        evidence["frontier"] = picture(
            plot_frontier(frontier),
            "A point for each predictor, unfairness to the right and accuracy upwards; the least "
            f"unfair is {least}.",
        )
    return render_page(
        "audit.html",
        "fairness",
        {"points": _points, "percent": _percent, "signed": _signed, "about": _about},
        title=title or f"What {s['predictor']} would have said if {words} had been different",
        style=template("page.css"),
        version=__version__,
        r=result,
        s=s,
        words=words,
        outcome=outcome,
        headline=headline(result),
        low=low,
        high=high,
        directions=_directions(result, nodes),
        graph=picture(
            plot_graph(result.graph, do=nodes),
            f"The causal graph; {words} is dark, and what it reaches is shaded: "
            f"{', '.join(mediated) or 'nothing'}.",
        ),
        gaps=picture(
            plot_gaps({f"{a} → {b}": g["gap"].to_numpy() for (a, b), g in _pairs(result)}),
            f"How many people have which change in probability, a line for each direction; "
            f"{headline(result)}",
        ),
        pictures=evidence,
        mediated=[_node_words(result.graph, n) for n in mediated],
        unmentioned=[
            _node_words(result.graph, n)
            for n in result.graph.nodes
            if n not in nodes and n not in mediated
        ],
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


def headline(result: AuditResult) -> str:
    """Who would gain and who would lose, in one sentence, the largest first.

    The sign is of the change that the other attribute would bring.
    """
    parts = []
    ordered = result.by_group.reindex(
        result.by_group["mean_gap"].abs().sort_values(ascending=False).index
    )
    many = len(ordered) > 2
    for (source, to), row in ordered.head(4).iterrows():  # type: ignore[misc]
        gap = float(row["mean_gap"])
        size = points(gap).lstrip("+−")
        way = "gain" if gap > 0 else "lose"
        said = f"{source} would {way} {size} points"
        if not size.strip("0."):
            said = f"{source} would see no change"
        parts.append(f"{said} as {to}" if many else said)
    text = ", ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else "There is nobody to compare."


def _pairs(result: AuditResult) -> Any:
    return result.per_person.groupby(["from", "to"], sort=True)


def _directions(result: AuditResult, nodes: list[str]) -> list[dict[str, Any]]:
    """For each group and each other value: the change with its sign, by path, and whom it turns."""
    found = []
    threshold = result.settings["threshold"]
    parts = result.decomposition_by_group
    for (source, to), people in _pairs(result):
        row = result.by_group.loc[(source, to)]
        one: dict[str, Any] = {"from": source, "to": to, **row.to_dict(), "paths": "", "rows": []}
        one["change"] = ""
        if parts is not None:
            table = parts.loc[(source, to)]
            one["rows"] = table.reset_index().to_dict("records")
            whole = table.loc["total"]
            one["change"] = f"{_signed(whole['low'])} to {_signed(whole['high'])}"
            ways = table.drop(index="total")["effect"]
            top = str(ways.abs().idxmax()) if len(ways) else ""
            one["paths"] = picture(
                plot_waterfall(table),
                f"A waterfall of the change for {source} as {to}: "
                + ", ".join(f"{n} {points(float(v))}" for n, v in ways.items())
                + f", in all {points(float(whole['effect']))} points; most of it {top}.",
            )
            notes = {
                n: points(float(table.loc[f"through {n}", "effect"]))
                for n in result.graph.nodes
                if f"through {n}" in table.index
            }
            if "direct" in table.index:
                notes |= {
                    n: f"direct {points(float(table.loc['direct', 'effect']))}" for n in nodes
                }
            one["graph"] = picture(
                plot_graph(result.graph, do=nodes, notes=notes),
                f"The same parts written below the nodes of the graph, for {source} as {to}.",
            )
        approved = people["factual"] >= threshold
        turned = people[people["flip"] >= 0.5]
        one["wins"] = float((people["flip"] * ~approved).sum())
        one["losses"] = float((people["flip"] * approved).sum())
        turned = turned.sort_values("unfairness", ascending=False)
        one["who"] = [
            {"person": label, **r}
            for label, r in zip(turned.index[:25], turned.head(25).to_dict("records"), strict=True)
        ]
        one["turned"] = len(turned)
        found.append(one)
    return found


def _node_words(graph: CausalGraph, node: str) -> str:
    columns = graph.columns(node)
    return node if columns == (node,) else f"{node} ({', '.join(columns)})"


def _percent(value: float) -> str:
    return f"{100 * value:.1f}\N{NO-BREAK SPACE}%"


def _about(count: float) -> str:
    return f"About {count:.0f}" if round(count) else "Nobody" if count == 0 else "Fewer than one"


def _points(value: float) -> str:
    return "–" if not np.isfinite(value) else f"{100 * value:.2f}"


def _signed(value: float) -> str:
    return "–" if not np.isfinite(value) else f"{100 * value:+.2f}".replace("-", "−")


def _assumptions(result: AuditResult, mediated: list[str]) -> list[dict[str, Any]]:
    """For each column that can differ in a twin: whether it is determined, and by what."""
    changing = {c for n in mediated for c in result.graph.columns(n)}
    rows = result.assumptions.reset_index().to_dict("records")
    return [row for row in rows if row["column"] in changing]


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
    numeric = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return number(float(value)) if numeric else str(value)


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
