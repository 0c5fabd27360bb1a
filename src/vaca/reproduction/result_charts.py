"""The results at a glance: each model beside the floor and the published figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vaca.reproduction.comparison import TITLES, Comparison, label
from vaca.reproduction.figures import Picture
from vaca.show.plot import ENGINE_COLOURS

__all__ = ["chart", "glance", "growth"]

MARKS = ("o", "s", "D", "^", "v", "P", "*")
#: Below this a figure (x100) is zero for the eye, and a logarithm needs an end.
LEAST = 0.02
WORDS = {
    "int_mmd": "How far interventions are from the truth",
    "cf_mse": "How far counterfactuals are from the truth",
}


def glance(cells: Sequence[Comparison]) -> list[Picture]:
    """A picture for interventions and one for counterfactuals."""
    found = [chart([c for c in cells if c.metric == metric], metric) for metric in WORDS]
    return [picture for picture in found if picture is not None]


def chart(cells: Sequence[Comparison], metric: str) -> Picture | None:
    """One line for each SCM: our models, the best published figure, and the floor."""
    from matplotlib.figure import Figure

    if not cells:
        return None
    scms = list(dict.fromkeys(c.scm for c in cells))
    models = list(dict.fromkeys(c.model for c in cells))
    size = (7.6, 0.36 * len(scms) + 1.5)
    figure = Figure(figsize=size, layout="constrained")
    ax: Any = figure.subplots()
    published: dict[str, float] = {}
    for c in cells:
        published[c.scm] = min(published.get(c.scm, float("inf")), c.published)
    handles: dict[str, Any] = {}
    for i, scm in enumerate(reversed(scms)):
        ax.axhline(i, color="#e4e4e4", lw=0.8, zorder=0)
        floor = next(c.floor for c in cells if c.scm == scm)
        if floor > LEAST:
            (handles["floor: the truth itself"],) = ax.plot(
                [floor] * 2, [i - 0.35, i + 0.35], color="#666666", lw=2.5
            )
        (handles["best published"],) = ax.plot(
            [max(published[scm], LEAST)], [i], "x", color="black", ms=9, mew=2.2, ls="none"
        )
        for k, model in enumerate(models):
            for c in cells:
                if c.scm == scm and c.model == model:
                    (handles[label(model)],) = ax.plot(
                        [max(c.mean, LEAST)],
                        [i + 0.24 * ((k + 0.5) / len(models) - 0.5) * 2],
                        MARKS[k % 7],
                        color=ENGINE_COLOURS[k % 7],
                        ms=6,
                        mec="black",
                        mew=0.5,
                        ls="none",
                    )
    ax.set_xscale("log")
    ax.set_yticks(range(len(scms)), list(reversed(scms)), fontsize=9)
    ax.set_xlabel(f"{TITLES[metric]} x100, on a logarithmic scale: less is better", fontsize=9)
    ax.spines[["top", "right"]].set_visible(False)
    figure.legend(
        list(handles.values()),
        list(handles),
        loc="outside lower center",
        ncols=4,
        frameon=False,
        fontsize=8,
    )
    counts = []
    for model in models:
        below = sum(c.mean < published[c.scm] for c in cells if c.model == model)
        counts.append(f"{label(model)} in {below}")
    said = (
        f"{WORDS[metric]}. Below the best published figure (cross), of {len(scms)} true models: "
        f"{', '.join(counts)}."
    )
    return Picture(f"results-{metric.replace('_', '-')}", said, figure, said)


#: Engines in `benchmarks/results/growth.json`, and what of each is timed.
GROWING = {
    "flow": "CausalFlow, a step",
    "vaca": "VACA, a step",
    "default": "Composite, a whole fit",
}


def growth(points: Mapping[str, Sequence[Mapping[str, Any]]]) -> Picture | None:
    """CPU time and speed of answers against the number of columns, engine by engine."""
    from matplotlib.figure import Figure

    lines = {name: points[name] for name in GROWING if points.get(name)}
    if not lines:
        return None
    figure = Figure(figsize=(7.6, 3.6), layout="constrained")
    cost, speed = figure.subplots(1, 2)
    for k, (name, found) in enumerate(lines.items()):
        sizes = [p["nodes"] for p in found]
        style = {"color": ENGINE_COLOURS[k], "marker": MARKS[k], "label": GROWING[name]}
        cost.plot(sizes, [p["seconds"] for p in found], **style)
        speed.plot(sizes, [p["queries"] for p in found], **style)
        if "limit" in found[0]:
            cost.plot(sizes, [p["limit"] for p in found], "k:", label="its matrix products alone")
    cost.set_ylabel("CPU seconds", fontsize=9)
    speed.set_ylabel("counterfactual rows per second", fontsize=9)
    for ax in (cost, speed):
        ax.set(xscale="log", yscale="log")
        ax.set_xlabel("columns, three causes each", fontsize=9)
        ax.spines[["top", "right"]].set_visible(False)
    handles, labels = cost.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False, fontsize=8)
    told = []
    for name, found in lines.items():
        large = [p for p in found if p["nodes"] >= 30]
        sizes, seconds = (np.log([p[key] for p in large]) for key in ("nodes", "seconds"))
        told.append(f"{GROWING[name]}: {np.polyfit(sizes, seconds, 1)[0]:.2f}")
    said = (
        "CPU time, and counterfactual rows per second, against the number of columns. From 30 "
        f"columns on, time grows with their number to the power of: {'; '.join(told)}."
    )
    alt = (
        "Two charts with logarithmic scales against the number of columns: CPU seconds rise along "
        f"straight lines ({'; '.join(told)} as slopes), and rows answered per second fall."
    )
    return Picture("growth", "How cost grows", figure, said, alt)
