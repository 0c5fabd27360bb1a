"""Figures from scores: pure functions that give a matplotlib figure and touch no global state."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vaca.reproduction.comparison import TITLES, label
from vaca.show.plot import ENGINE_COLOURS
from vaca.show.words import number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Picture", "bar_words", "bars", "box", "box_words", "lines", "trend_words"]


@dataclass(frozen=True)
class Picture:
    """A figure with the name of its file, what to say about it, and words in its place.

    `alt` says in a sentence what the picture shows, for those who do not see it.
    """

    name: str
    title: str
    figure: Figure
    caption: str = ""
    alt: str = ""

    def png(self) -> bytes:
        """The picture as a PNG file, the same bytes for the same data."""
        out = io.BytesIO()
        self.figure.savefig(out, format="png", dpi=110, metadata={"Software": None})
        return out.getvalue()

    def html(self) -> str:
        """The picture inside a page, without a file of its own."""
        data = base64.b64encode(self.png()).decode()
        return (
            f"<h2>{html.escape(self.title)}</h2>\n<figure>"
            f'<img alt="{html.escape(self.alt or self.title)}" src="data:image/png;base64,{data}">'
            f"<figcaption>{html.escape(self.caption)}</figcaption></figure>"
        )


def _grid(panels: int, width: float = 4.2, height: float = 3.3) -> tuple[Figure, list[Any]]:
    from matplotlib.figure import Figure

    columns = min(3, panels)
    rows = -(-panels // columns)
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    axes = np.atleast_1d(figure.subplots(rows, columns, squeeze=False)).ravel().tolist()
    for axis in axes[panels:]:
        axis.set_visible(False)
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="y", color="#e4e8ee", linewidth=0.8)
        axis.set_axisbelow(True)
    return figure, axes[:panels]


def lines(
    frame: pd.DataFrame,
    x: str,
    panels: Sequence[tuple[str, str]],
    *,
    xlabel: str,
    hue: str = "model",
    log_x: bool = False,
    floor: bool = True,
) -> Figure:
    """Scores against a number, one line for each model, with a band of one sd over seeds.

    Parameters
    ----------
    frame : DataFrame
        See `vaca.reproduction.comparison.score_frame`; `x` is a numeric column of it.
    panels : sequence of (scm, metric)
        One panel each.
    floor : bool
        Also draw the floor, dashed.
    """
    figure, axes = _grid(len(panels))
    hues = list(dict.fromkeys(frame[hue]))
    for axis, (scm, metric) in zip(axes, panels, strict=True):
        part = frame[(frame["metric"] == metric) & ((frame["scm"] == scm) | (scm == ""))]
        for colour, name in zip(ENGINE_COLOURS, hues, strict=False):
            mine = part[part[hue] == name].groupby(x)["value"]
            mean, sd = mine.mean(), mine.std().fillna(0.0)
            at = mean.index.to_numpy(dtype=float)
            shown = label(name) if hue == "model" else str(name)
            axis.plot(at, mean, "o-", color=colour, label=shown, markersize=4)
            axis.fill_between(at, mean - sd, mean + sd, color=colour, alpha=0.15, linewidth=0)
        if floor:
            lowest = part.groupby(x)["floor"].mean().dropna()
            if len(lowest) and (lowest > 1e-6).any():
                axis.plot(lowest.index, lowest, "--", color="#5a6577", label="floor (truth)")
        _scale(axis, part["value"])
        if log_x:
            axis.set_xscale("log")
        settings = sorted(float(v) for v in part[x].unique())
        axis.set_xticks(settings, [f"{v:,g}" if v < 1e5 else f"{v:,.0f}" for v in settings])
        axis.minorticks_off()
        axis.set(xlabel=xlabel, ylabel=f"{TITLES.get(metric, metric)} (x100)")
        axis.set_title(scm or "all", fontsize=10)
    axes[0].legend(fontsize=8, frameon=False)
    return figure


def trend_words(frame: pd.DataFrame, x: str, xlabel: str, metric: str = "int_mmd") -> str:
    """How a score goes from the least to the greatest of a number, over all panels, per model."""
    part = frame[frame["metric"] == metric]
    low, high = float(part[x].min()), float(part[x].max())
    said = []
    for model in dict.fromkeys(part["model"]):
        mean = part[part["model"] == model].groupby(x)["value"].mean()
        first, last = (number(float(mean.iloc[k])) for k in (0, -1))
        end = float(mean.index[-1])
        until = "" if end == high else f" (at {end:,g})"
        said.append(f"from {first} to {last}{until} for {label(model)}")
    return (
        f"Lines against the {xlabel}, {low:g} to {high:g}: {TITLES[metric]} x100 goes "
        f"{' and '.join(said)}, on average over the panels."
    )


def bar_words(
    frame: pd.DataFrame, group: str, order: Sequence[str], metric: str = "int_mmd"
) -> str:
    """The mean score of each group, over all panels, per model."""
    part = frame[frame["metric"] == metric]
    said = []
    for model in dict.fromkeys(part["model"]):
        mean = part[part["model"] == model].groupby(group)["value"].mean()
        values = ", ".join(f"{name} {mean[name]:.2g}" for name in order if name in mean)
        said.append(f"{label(model)}: {values}")
    return f"Bars of {TITLES[metric]} x100, on average over the panels. {'; '.join(said)}."


def box_words(values: Mapping[str, Mapping[str, Sequence[float]]], what: str) -> str:
    """The median of each model over all graphs."""
    joined: dict[str, list[float]] = {}
    for models in values.values():
        for name, found in models.items():
            joined.setdefault(name, []).extend(found)
    said = [f"{label(name)} {number(float(np.median(found)))}" for name, found in joined.items()]
    return f"Boxes for each graph and model; median {what} over all graphs: {', '.join(said)}."


def _scale(axis: Any, values: pd.Series) -> None:
    finite = values[np.isfinite(values) & (values > 0)]
    if len(finite) and finite.max() > 30 * finite.min():
        axis.set_yscale("log")
    else:
        axis.set_ylim(0, max(axis.get_ylim()[1], 1.08 * float(values.max())))


def bars(
    frame: pd.DataFrame, group: str, panels: Sequence[tuple[str, str]], *, order: Sequence[str]
) -> Figure:
    """Mean score of each group (with one sd), models side by side, one panel per (scm, metric)."""
    figure, axes = _grid(len(panels))
    models = list(dict.fromkeys(frame["model"]))
    width = 0.8 / max(1, len(models))
    for axis, (scm, metric) in zip(axes, panels, strict=True):
        part = frame[(frame["metric"] == metric) & (frame["scm"] == scm)]
        shown = [name for name in order if (part[group] == name).any()]
        for i, (colour, model) in enumerate(zip(ENGINE_COLOURS, models, strict=False)):
            mine = part[part["model"] == model].groupby(group)["value"]
            mean, sd = mine.mean().reindex(shown), mine.std().fillna(0.0).reindex(shown)
            at = np.arange(len(shown)) + (i - (len(models) - 1) / 2) * width
            axis.bar(at, mean, width, yerr=sd, color=colour, label=label(model), capsize=2)
        lowest = float(part["floor"].mean())
        if lowest > 1e-6:
            axis.axhline(lowest, ls="--", color="#5a6577", label="floor (truth)")
        axis.set_xticks(np.arange(len(shown)), shown, fontsize=8)
        axis.set_ylabel(f"{TITLES.get(metric, metric)} (x100)")
        axis.set_title(scm, fontsize=10)
        _scale(axis, part["value"])
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=4, frameon=False, fontsize=8)
    return figure


def box(values: Mapping[str, Mapping[str, Sequence[float]]], *, ylabel: str) -> Figure:
    """Box plots, one panel for each graph and one box for each model; the scale is logarithmic."""
    figure, axes = _grid(max(1, len(values)), width=3.4)
    for axis, (graph, models) in zip(axes, values.items(), strict=False):
        names = list(models)
        boxes = axis.boxplot([models[name] for name in names], widths=0.6, patch_artist=True)
        for patch, colour in zip(boxes["boxes"], ENGINE_COLOURS, strict=False):
            patch.set_facecolor(colour + "55")
            patch.set_edgecolor(colour)
        shown = [label(n) for n in names]
        turned = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
        axis.set_xticks(range(1, len(names) + 1), shown, fontsize=8, **turned)
        axis.set_title(graph, fontsize=10)
        axis.set_ylabel(ylabel)
        axis.set_yscale("log")
    return figure
