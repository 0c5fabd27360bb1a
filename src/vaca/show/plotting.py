"""Pictures of graphs, answers and training; `vaca.plot` is this module.

Each picture of one panel takes an `ax` and gives an Axes; each of several panels gives a Figure.
Nothing here touches pyplot's state, so pictures can be made on a server and in threads. Series
differ by line style, marker or hatch as well as by colour, and the colours are told apart by people
with any form of colour-blindness, so that the pictures also read in black and white.
"""

from __future__ import annotations

import os
import tempfile
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path as Curve

from vaca.errors import VacaError, did_you_mean
from vaca.model.answers import do_label, shown_value
from vaca.table.schema import Schema, as_frame

if TYPE_CHECKING:
    from vaca.graph.dag import CausalGraph
    from vaca.model.answers import Effect

__all__ = [
    "plot_graph",
    "plot_person",
    "plot_population",
    "plot_densities",
    "plot_effects",
    "plot_history",
    "plot_pairs",
    "save_picture",
    "with_levels",
]

#: Colours that stay apart under all forms of colour-blindness (Okabe and Ito); darkest first.
COLOURS = ("#1a1a1a", "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00")
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)))
HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "----")
GREY, PALE, FAINT = "#666666", "#d0d0d0", "#efefef"
PICTURES = (".png", ".svg", ".pdf")
#: More rows than this add nothing that an eye can see.
ROWS = 4000


# ---------------------------------------------------------------------- the graph


def plot_graph(
    graph: CausalGraph, ax: Axes | None = None, do: Iterable[str] | Mapping[str, Any] = ()
) -> Axes:
    """Draw a causal graph, causes on the left, with an intervention drawn in.

    Parameters
    ----------
    graph : CausalGraph
    ax : Axes, optional
    do : iterable of str or mapping, optional
        Nodes that are set from outside: their box is dark, the arrows into them are cut, and what
        they reach is shaded. A mapping also writes the value that a node is set to.

    Examples
    --------
    >>> import vaca
    >>> graph = vaca.CausalGraph.from_edges([("age", "income"), ("income", "loan")])
    >>> ax = plot_graph(graph, do={"income": 40_000})
    >>> [text.get_text() for text in ax.texts if "do" in text.get_text()]
    ['do: 40000']
    """
    values = dict(do) if isinstance(do, Mapping) else {}
    cut = set(do)
    for node in cut:
        graph.parents(node)  # an unknown node is an error that names it
    reached = {below for node in cut for below in graph.descendants(node)} - cut
    places, routes = _layout(graph)
    columns = max(x for x, _ in places.values()) + 1
    heights = [y for _, y in places.values()] + [y for r in routes.values() for _, y in r]
    bottom, top = min(heights) - 0.5, max(heights) + 0.5
    if ax is None:
        size = (min(14.0, 2.1 * columns + 0.6), min(10.0, 0.8 * (top - bottom) + 0.4))
        ax = Figure(figsize=size, layout="constrained").subplots()
    half = 0.33
    for (cause, effect), route in routes.items():
        is_cut = effect in cut
        points = [places[cause], *route, places[effect]]
        path = _smooth(points, half)
        colour = GREY if is_cut else COLOURS[0]
        arrow = FancyArrowPatch(
            path=path,
            arrowstyle="-|>",
            mutation_scale=13,
            linewidth=1.0 if is_cut else 1.3,
            linestyle=":" if is_cut else "-",
            color=colour,
            zorder=1,
        )
        ax.add_patch(arrow)
        if is_cut:
            x, y = _along_last(path, 0.55)
            ax.plot(
                [x], [y], marker="x", color=COLOURS[1], markersize=8, markeredgewidth=2, zorder=4
            )
    for node, (x, y) in places.items():
        dark = node in cut
        box = FancyBboxPatch(
            (x - half, y - 0.2),
            2 * half,
            0.4,
            boxstyle="round,pad=0.02,rounding_size=0.08",
            facecolor=COLOURS[0] if dark else PALE if node in reached else "white",
            edgecolor=COLOURS[0],
            linewidth=1.3,
            zorder=2,
        )
        ax.add_patch(box)
        group = graph.columns(node)
        label = node if group == (node,) else f"{node}\n({', '.join(group)})"
        text = "\n".join(_wrap(line, 14) for line in label.split("\n"))
        longest = max(len(line) for line in text.split("\n"))
        ax.text(
            x,
            y,
            text,
            ha="center",
            va="center",
            fontsize=10 if longest <= 10 and "\n" not in text else 8,
            color="white" if dark else "black",
            zorder=3,
        )
        if dark:
            said = f"do: {shown_value(values[node])}" if node in values else "do"
            ax.text(x, y + 0.25, said, ha="center", va="bottom", fontsize=9, zorder=3)
    ax.set_xlim(-0.5, columns - 0.5)
    ax.set_ylim(bottom, top + (0.15 if cut else 0))
    ax.set_axis_off()
    return ax


def _layout(
    graph: CausalGraph,
) -> tuple[dict[str, tuple[float, float]], dict[tuple[str, str], list[tuple[float, float]]]]:
    """Places of nodes, and the points that an edge over several layers passes through.

    Nodes stand in the layer of their longest path from a root. Within a layer they are sorted by
    the mean place of their neighbours, a few times back and forth, which removes most crossings.
    """
    layers: list[list[Any]] = [list(layer) for layer in graph.layers()]
    depth = {node: i for i, layer in enumerate(layers) for node in layer}
    above: dict[Any, list[Any]] = {node: [] for node in graph.nodes}
    below: dict[Any, list[Any]] = {node: [] for node in graph.nodes}
    passing: dict[tuple[str, str], list[Any]] = {}
    for cause, effect in graph.edges:
        chain: list[Any] = [cause]
        for level in range(depth[cause] + 1, depth[effect]):
            point = (cause, effect, level)
            layers[level].append(point)
            above[point], below[point] = [], []
            chain.append(point)
        chain.append(effect)
        passing[cause, effect] = chain[1:-1]
        for a, b in pairwise(chain):
            below[a].append(b)
            above[b].append(a)
    place: dict[Any, float] = {}
    for layer in layers:
        place.update(_spread(layer))
    for sweep in range(8):
        neighbours = above if sweep % 2 == 0 else below
        for layer in layers if sweep % 2 == 0 else layers[::-1]:
            wish = {
                p: float(np.mean([place[q] for q in neighbours[p]])) if neighbours[p] else place[p]
                for p in layer
            }
            layer.sort(key=lambda p: wish[p])
            place.update(_spread(layer))
    nodes = {node: (float(depth[node]), -place[node]) for node in graph.nodes}
    routes = {
        edge: [(float(point[2]), -place[point]) for point in points]
        for edge, points in passing.items()
    }
    return nodes, routes


def _spread(layer: Sequence[Any]) -> dict[Any, float]:
    """Heights of the points of a layer around 0; an edge that passes takes less room than a box."""
    room = [1.0 if isinstance(point, str) else 0.4 for point in layer]
    ends = np.cumsum(room)
    return {
        p: float(end - r / 2 - ends[-1] / 2) for p, end, r in zip(layer, ends, room, strict=True)
    }


def _along_last(path: Curve, t: float) -> tuple[float, float]:
    """The point at the share `t` of the last curve of a path, which is a cubic Bézier curve."""
    a, b, c, d = np.asarray(path.vertices)[-4:]
    at = (1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t**2 * c + t**3 * d
    return float(at[0]), float(at[1])


def _smooth(points: list[tuple[float, float]], half: float) -> Curve:
    """A curve from the right side of the first box to the left side of the last."""
    start, end = points[0], points[-1]
    vertices = [(start[0] + half + 0.02, start[1])]
    codes = [Curve.MOVETO]
    inner = [p for x, y in points[1:-1] for p in ((x - half, y), (x + half, y))]
    stops = [*inner, (end[0] - half - 0.03, end[1])]
    for i, (x, y) in enumerate(stops):
        before = vertices[-1]
        if i % 2 == 1:  # straight on past a layer
            vertices.append((x, y))
            codes.append(Curve.LINETO)
        else:
            middle = (before[0] + x) / 2
            vertices += [(middle, before[1]), (middle, y), (x, y)]
            codes += [Curve.CURVE4] * 3
    return Curve(vertices, codes)


# ---------------------------------------------------------------------- one person


def plot_person(
    factual: Any,
    counterfactual: Any,
    row: Any = None,
    *,
    columns: Sequence[str] | None = None,
    population: Any = None,
    quantiles: tuple[float, float] = (0.05, 0.95),
) -> Figure:
    """One row as it was and as it would have been: a ladder with a rung for each column.

    Parameters
    ----------
    factual, counterfactual : DataFrame
        The row as given to `counterfactual`, and the answer: one row, or many draws (then the bar
        shows the range of the draws between two quantiles, and the marker their median; for a
        discrete column the bars show the share of each level).
    row : label, optional
        Which row, by its label in the index; the first one by default.
    columns : sequence of str, optional
        Which columns, in which order; by default all of the answer.
    population : DataFrame, optional
        Other rows, whose range gives each rung its scale.
    """
    facts, answers = as_frame(factual), as_frame(counterfactual)
    row = facts.index[0] if row is None else row
    if row not in facts.index:
        raise VacaError(f"there is no factual row {row!r}")
    fact = facts.loc[[row]].iloc[0]
    if "draw" in answers.index.names:
        answers = answers.xs(row, level=0, drop_level=False)
    else:
        answers = answers.loc[[row]]
    names = _chosen(answers, columns)
    others = None if population is None else as_frame(population)
    figure = Figure(figsize=(7.5, 0.78 * len(names) + 1.0), layout="constrained")
    axes = figure.subplots(len(names), 1, squeeze=False)[:, 0]
    for ax, name in zip(axes, names, strict=True):
        _rung(ax, name, fact[name], answers[name], others, facts[name], quantiles)
    axes[0].set_title(f"Row {row}: as it was, and as it would have been", loc="left", fontsize=11)
    handles = [
        axes[0].plot([], [], "o", mfc="white", mec=COLOURS[0], ms=9, label="factual")[0],
        axes[0].plot([], [], "D", color=COLOURS[1], ms=7, label="counterfactual")[0],
    ]
    if len(answers) > 1:
        low, high = (f"{100 * q:g}" for q in quantiles)
        label = f"{low} to {high} % of {len(answers)} draws"
        handles.append(axes[0].plot([], [], color=COLOURS[1], lw=3, alpha=0.6, label=label)[0])
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    return figure


def _rung(
    ax: Axes,
    name: str,
    fact: Any,
    answer: pd.Series,
    others: pd.DataFrame | None,
    facts: pd.Series,
    quantiles: tuple[float, float],
) -> None:
    pool = facts if others is None or name not in others else others[name]
    # A few draws of a number may look like levels; the whole range says what it is.
    discrete = _is_discrete(pool) and _is_discrete(answer) and _is_discrete(_joined(pool, answer))
    if discrete:
        levels = _levels(pd.concat([pool.astype(object), answer.astype(object)]), pool)
        place = {level: i for i, level in enumerate(levels)}
        shares = _shares(answer)
        if len(answer) > 1:
            for level, share in shares.items():
                ax.bar(place[level], 0.75 * share, 0.5, -0.4, color=COLOURS[1], alpha=0.45)
        best = max(levels, key=lambda v: shares.get(v, 0.0))
        start, end = float(place[fact]), float(place[best])
        ax.set_xlim(-0.6, len(levels) - 0.4)
        ax.set_xticks(range(len(levels)), [_wrap(str(v), 12) for v in levels], fontsize=8)
    else:
        numbers = answer.to_numpy(dtype=float)
        start, end = float(fact), float(np.median(numbers))
        low, high = np.quantile(numbers, quantiles)
        if len(numbers) > 1 and high > low:
            ax.plot([low, high], [0, 0], color=COLOURS[1], lw=5, alpha=0.45, solid_capstyle="butt")
        ends = [start, *np.quantile(numbers, (0.0, 1.0)), *np.quantile(pool.astype(float), (0, 1))]
        _limits(ax, min(ends), max(ends))
        ax.tick_params(axis="x", labelsize=8)
    same = bool(np.isclose(start, end, rtol=1e-9, atol=0.0))
    if not same:
        ax.annotate(
            "",
            (end, 0),
            (start, 0),
            arrowprops={
                "arrowstyle": "->",
                "color": COLOURS[0],
                "lw": 1,
                "shrinkA": 5,
                "shrinkB": 4,
            },
        )
        ax.plot([end], [0], "D", color=COLOURS[1], ms=7, zorder=4)
    else:
        ax.plot([end], [0], "D", color=COLOURS[1], ms=4, zorder=5)
    ax.plot([start], [0], "o", mfc="white", mec=COLOURS[0], ms=9, zorder=4 if same else 3)
    ax.axhline(0, color=PALE, lw=1, zorder=0)
    ax.set_ylim(-0.6, 0.6)
    ax.set_yticks([0], [_wrap(name, 16)])
    ax.tick_params(axis="y", length=0)
    for side in ("left", "right", "top"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set_color(PALE)


# ---------------------------------------------------------------------- populations


def plot_population(
    before: Any | Mapping[str, Any],
    after: Any = None,
    *,
    columns: Sequence[str] | None = None,
    labels: tuple[str, str] = ("before", "after"),
) -> Figure:
    """A population before and after, as ridges: one panel per column, one ridge per table.

    Parameters
    ----------
    before, after : DataFrame
        The two tables; or, as `before` alone, a mapping from label to table with any number.
    columns : sequence of str, optional
        Which columns; by default all that the tables share.
    labels : pair of str
        The names of the two tables.
    """
    tables = _tables(before, after, labels)
    names = _shared(tables, columns)
    wide = 2 if len(names) > 3 else 1
    deep = -(-len(names) // wide)
    size = (4.6 * wide + 1.2, (0.5 * len(tables) + 0.75) * deep + 0.5)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(deep, wide, squeeze=False)
    for ax, name in zip(axes.flat, names, strict=False):
        series = {label: table[name] for label, table in tables.items()}
        joined = pd.concat([_plain(s) for s in series.values()])
        discrete = _is_discrete(next(iter(series.values())))
        for k, values in enumerate(series.values()):
            base = len(series) - 1 - k
            if discrete:
                tallest = max(float(_shares(s).max()) for s in series.values())
                _bar_ridge(ax, values, _levels(joined, values), base, k, tallest)
            else:
                _ridge(ax, values, _grid(joined), base, k)
        ax.set_yticks(range(len(series)), [_wrap(t, 18) for t in list(series)[::-1]], fontsize=8)
        ax.tick_params(axis="y", length=0)
        ax.set_ylim(-0.05, len(series) + 0.05)
        ax.set_title(name, loc="left", fontsize=10, fontweight="bold")
        ax.tick_params(axis="x", labelsize=8)
        for side in ("left", "right", "top"):
            ax.spines[side].set_visible(False)
    for ax in axes.flat[len(names) :]:
        ax.set_visible(False)
    return figure


def _ridge(ax: Axes, values: pd.Series, grid: np.ndarray, base: int, k: int) -> None:
    numbers = values.to_numpy(dtype=float)
    curve = _density(numbers, grid)
    if curve is None:
        ax.plot([numbers[0]] * 2, [base, base + 0.85], color=COLOURS[k % 6], lw=2.5)
    else:
        top = base + 0.85 * curve / curve.max()
        ax.fill_between(
            grid,
            base,
            top,
            facecolor=FAINT if k == 0 else "white",
            edgecolor=COLOURS[k % 6],
            hatch=HATCHES[k % 6],
            linewidth=0,
            alpha=0.6,
        )
        ax.plot(grid, top, color=COLOURS[k % 6], linestyle=LINES[k % 6], lw=1.6)
        ax.plot([float(np.mean(numbers))] * 2, [base, base + 0.2], color=COLOURS[k % 6], lw=2.5)
    ax.axhline(base, color=GREY, lw=0.6)
    _limits(ax, float(grid[0]), float(grid[-1]), 0.0)


def _bar_ridge(
    ax: Axes, values: pd.Series, levels: list[Any], base: int, k: int, tallest: float
) -> None:
    shares = _shares(values)
    heights = [float(shares.get(level, 0.0)) for level in levels]
    bars = ax.bar(
        range(len(levels)),
        [0.7 * h / tallest for h in heights],
        0.6,
        base,
        facecolor=PALE if k == 0 else "white",
        edgecolor=COLOURS[k % 6],
        hatch=HATCHES[k % 6],
        linewidth=1,
    )
    if len(levels) <= 8:
        for bar, h in zip(bars, heights, strict=True):
            place = (bar.get_x() + 0.3, base + 0.7 * h / tallest + 0.03)
            ax.text(*place, f"{h:.0%}", ha="center", va="bottom", fontsize=7)
    ax.axhline(base, color=GREY, lw=0.6)
    _level_ticks(ax, levels)


def plot_densities(
    observational: Any,
    interventional: Any | Mapping[str, Any],
    *,
    columns: Sequence[str] | None = None,
    labels: tuple[str, str] = ("observational", "interventional"),
) -> Figure:
    """Each column's distribution as observed and under interventions, one over the other.

    Parameters
    ----------
    observational : DataFrame
    interventional : DataFrame or mapping of str to DataFrame
        One table, or several by name, such as {"do(age = 40)": model.sample(2000, {"age": 40})}.
    """
    if isinstance(interventional, Mapping) and not isinstance(interventional, pd.DataFrame):
        tables = {labels[0]: as_frame(observational)}
        tables.update({str(k): as_frame(v) for k, v in interventional.items()})
    else:
        tables = _tables(observational, interventional, labels)
    names = _shared(tables, columns)
    wide = min(3, len(names))
    deep = -(-len(names) // wide)
    figure = Figure(figsize=(3.4 * wide + 0.4, 2.3 * deep + 0.6), layout="constrained")
    axes = figure.subplots(deep, wide, squeeze=False)
    handles: dict[str, Any] = {}
    for ax, name in zip(axes.flat, names, strict=False):
        series = {label: table[name] for label, table in tables.items()}
        joined = pd.concat([_plain(s) for s in series.values()])
        first = next(iter(series.values()))
        if _is_discrete(first):
            handles |= _bars(ax, series, _levels(joined, first))
        else:
            handles |= _curves(ax, series, _grid(joined))
        ax.set_title(name, loc="left", fontsize=10, fontweight="bold")
        ax.tick_params(labelsize=8)
        for side in ("right", "top"):
            ax.spines[side].set_visible(False)
    for ax in axes.flat[len(names) :]:
        ax.set_visible(False)
    figure.legend(
        list(handles.values()),
        list(handles),
        loc="outside lower center",
        ncols=min(3, len(handles)),
        frameon=False,
    )
    return figure


def _curves(ax: Axes, series: Mapping[str, pd.Series], grid: np.ndarray) -> dict[str, Any]:
    handles: dict[str, Any] = {}
    for k, (label, values) in enumerate(series.items()):
        numbers = values.to_numpy(dtype=float)
        curve = _density(numbers, grid)
        colour, style = COLOURS[k % 6], LINES[k % 6]
        if curve is None:
            handles[label] = ax.axvline(numbers[0], color=colour, linestyle=style, lw=1.8)
            continue
        if k == 0:
            ax.fill_between(grid, 0, curve, facecolor=FAINT, linewidth=0)
        (handles[label],) = ax.plot(grid, curve, color=colour, linestyle=style, lw=1.8)
    ax.set_ylim(bottom=0)
    ax.set_yticks([])
    _limits(ax, float(grid[0]), float(grid[-1]), 0.0)
    return handles


def _bars(ax: Axes, series: Mapping[str, pd.Series], levels: list[Any]) -> dict[str, Any]:
    handles: dict[str, Any] = {}
    width = 0.8 / len(series)
    for k, (label, values) in enumerate(series.items()):
        shares = _shares(values)
        handles[label] = ax.bar(
            np.arange(len(levels)) - 0.4 + width * (k + 0.5),
            [float(shares.get(level, 0.0)) for level in levels],
            width,
            facecolor=PALE if k == 0 else "white",
            edgecolor=COLOURS[k % 6],
            hatch=HATCHES[k % 6],
            linewidth=1,
        )
    _level_ticks(ax, levels)
    ax.yaxis.set_major_formatter(lambda v, _: f"{v:.0%}")
    return handles


# ---------------------------------------------------------------------- effects and training


def plot_effects(
    effects: Sequence[Effect] | Mapping[str, Effect], ax: Axes | None = None, level: float = 0.95
) -> Axes:
    """Effects with their confidence intervals, one above the other (a forest plot).

    Parameters
    ----------
    effects : sequence of Effect, or mapping of label to Effect
    ax : Axes, optional
    level : float
        Of the intervals.

    Examples
    --------
    >>> from vaca.model.answers import Effect
    >>> ax = plot_effects([Effect(1.0, 0.2, "y", {"x": 1}, {"x": 0})])
    >>> [tick.get_text() for tick in ax.get_yticklabels()]
    ['y: do(x = 1) against do(x = 0)']
    """
    if isinstance(effects, Mapping):
        named = {str(label): effect for label, effect in effects.items()}
    else:
        named = {effect_label(effect): effect for effect in effects}
    if not named:
        raise VacaError("there are no effects to draw")
    outcomes = {_outcome(effect) for effect in named.values()}
    if ax is None:
        size = (8.0, 0.5 * len(named) + 1.1)
        ax = Figure(figsize=size, layout="constrained").subplots()
    for i, effect in enumerate(reversed(list(named.values()))):
        low, high = effect.interval(level)
        outside = bool(effect.outside_support)
        ax.plot([low, high], [i, i], color=COLOURS[0], lw=1.6, linestyle=":" if outside else "-")
        face = "white" if outside else COLOURS[1]
        ax.plot([effect.value], [i], "s", mec=COLOURS[0], mfc=face, ms=8, zorder=3)
        said = f"{_number(effect.value)} [{_number(low)}, {_number(high)}]" + (
            " *" if outside else ""
        )
        ax.annotate(
            said,
            (1.01, i),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=8,
            annotation_clip=False,
        )
    ax.axvline(0, color=GREY, lw=1, linestyle="--", zorder=0)
    ax.set_yticks(range(len(named)), [_wrap(text, 42) for text in reversed(named)], fontsize=8)
    ax.set_ylim(-0.6, len(named) - 0.4)
    what = f"effect on {outcomes.pop()}" if len(outcomes) == 1 else "effect"
    ax.set_xlabel(f"{what}, with its {100 * level:g} % interval", fontsize=9)
    if any(effect.outside_support for effect in named.values()):
        ax.set_title("* hollow: outside the data", loc="right", fontsize=8)
    for side in ("right", "top", "left"):
        ax.spines[side].set_visible(False)
    return ax


def effect_label(effect: Effect) -> str:
    """Say in a line what an effect is of.

    >>> from vaca.model.answers import Effect
    >>> effect_label(Effect(0.1, 0.0, "ok", {"age": 40}, {}, level="yes"))
    'P(ok = yes): do(age = 40)'
    """
    text = f"{_outcome(effect)}: do({do_label(effect.treatment)})"
    return f"{text} against do({do_label(effect.control)})" if effect.control else text


def _outcome(effect: Effect) -> str:
    return effect.outcome if effect.level is None else f"P({effect.outcome} = {effect.level})"


def plot_history(history: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Training and validation loss by epoch, with the best epoch marked.

    Parameters
    ----------
    history : DataFrame
        `model.history_`. Columns whose name holds "loss" or "val" are drawn (all numbers, if none
        does); with a column `member`, the members of an ensemble are drawn one by one.
    """
    if not len(history):
        raise VacaError("there is no history: this engine is not trained by gradient steps")
    numeric = [
        c
        for c in history.columns
        if c not in ("epoch", "member") and pd.api.types.is_numeric_dtype(history[c].dtype)
    ]
    curves = [c for c in numeric if "loss" in str(c) or "val" in str(c)] or numeric
    if ax is None:
        ax = Figure(figsize=(6.4, 3.4), layout="constrained").subplots()
    groups = history.groupby("member") if "member" in history else [(None, history)]
    for number, (_, part) in enumerate(groups):
        epochs = part["epoch"].to_numpy() if "epoch" in part else np.arange(1, len(part) + 1)
        for k, name in enumerate(curves):
            values = part[name].to_numpy(dtype=float)
            kept = np.isfinite(values)
            ax.plot(
                epochs[kept],
                values[kept],
                color=COLOURS[k % 6],
                linestyle=LINES[k % 6],
                lw=1.6 if number == 0 else 0.8,
                label=str(name).replace("_", " ") if number == 0 else None,
            )
            if "val" in str(name) and kept.any():
                best = int(np.nanargmin(values))
                ax.plot(epochs[best], values[best], "o", mfc="white", mec=COLOURS[k % 6], ms=7)
    ax.set_xlabel("epoch")
    ax.set_ylabel("loss" if any("loss" in str(c) for c in curves) else "")
    ax.legend(frameon=False, fontsize=9)
    for side in ("right", "top"):
        ax.spines[side].set_visible(False)
    return ax


# ---------------------------------------------------------------------- pairs


def plot_pairs(
    data: Any,
    model: Any = None,
    *,
    columns: Sequence[str] | None = None,
    labels: tuple[str, str] = ("data", "model"),
) -> Figure:
    """A matrix of all pairs of columns: histograms on the diagonal, points below it.

    Parameters
    ----------
    data : DataFrame
    model : DataFrame, optional
        Rows drawn from a model: its histograms are lines over the data's bars, and its points
        stand above the diagonal, mirrored, to be compared with the data's below.
    columns : sequence of str, optional
        Which columns; by default the first 8.
    """
    tables = {labels[0]: as_frame(data)}
    if model is not None:
        tables[labels[1]] = as_frame(model)
    names = _shared(tables, columns)[: None if columns is not None else 8]
    count = len(names)
    figure = Figure(figsize=(1.55 * count + 0.8, 1.45 * count + 0.7), layout="constrained")
    axes = figure.subplots(count, count, squeeze=False)
    first = tables[labels[0]]
    discrete = {name: _is_discrete(first[name]) for name in names}
    levels = {
        name: _levels(pd.concat([_plain(t[name]) for t in tables.values()]), first[name])
        for name in names
        if discrete[name]
    }
    rng = np.random.default_rng(0)
    points = [
        {name: _positions(t[name], levels.get(name), rng) for name in names}
        for t in (table.iloc[_some(len(table), 700)] for table in tables.values())
    ]
    for i, low in enumerate(names):
        for j, left in enumerate(names):
            ax = axes[i, j]
            if i == j:
                series = {label: table[low] for label, table in tables.items()}
                if discrete[low]:
                    _bars(ax, series, levels[low])
                else:
                    _steps(ax, series)
                ax.set_yticks([])
            else:
                k = 0 if j < i else 1
                if k < len(points):
                    x, y = points[k][left], points[k][low]
                    mark = {"marker": "o", "s": 5} if k == 0 else {"marker": "x", "s": 8, "lw": 0.6}
                    ax.scatter(x, y, color=COLOURS[k], alpha=0.35, **mark)  # type: ignore[arg-type]
                else:
                    ax.set_visible(False)
                if discrete[low]:
                    ax.set_yticks(range(len(levels[low])), [_clip(str(v)) for v in levels[low]])
            if discrete[left]:
                ax.set_xticks(range(len(levels[left])), [_clip(str(v)) for v in levels[left]])
            ax.tick_params(labelsize=6, labelbottom=i == count - 1, labelleft=j == 0 and i > 0)
            if discrete[left] and i == count - 1 and len(levels[left]) > 2:
                ax.tick_params(axis="x", labelrotation=60)
            if i == count - 1:
                ax.set_xlabel(_wrap(left, 16), fontsize=8)
            if j == 0:
                ax.set_ylabel(_wrap(low, 16), fontsize=8)
    if len(tables) > 1:
        figure.suptitle(
            f"below the diagonal, and bars: {labels[0]}; above, and lines: {labels[1]}", fontsize=9
        )
    return figure


def _steps(ax: Axes, series: Mapping[str, pd.Series]) -> None:
    joined = np.concatenate([s.to_numpy(dtype=float) for s in series.values()])
    low, high = np.quantile(joined, (0.002, 0.998))
    bins = np.linspace(low, high if high > low else low + 1, 25)
    for k, values in enumerate(series.values()):
        numbers = values.to_numpy(dtype=float)
        if k == 0:
            ax.hist(numbers, bins, density=True, color=PALE)
        else:
            ax.hist(numbers, bins, density=True, histtype="step", color=COLOURS[k], lw=1.4)


def _positions(values: pd.Series, levels: list[Any] | None, rng: np.random.Generator) -> np.ndarray:
    if levels is None:
        return values.to_numpy(dtype=float)
    place = {level: i for i, level in enumerate(levels)}
    codes = np.array([place[v] for v in values.astype(object)], dtype=float)
    return codes + rng.uniform(-0.25, 0.25, len(codes))  # so that equal points do not hide


# ---------------------------------------------------------------------- saving


def save_picture(picture: Axes | Figure, path: str | Path, dpi: int = 150) -> Path:
    """Write a picture to a .png, .svg or .pdf file, all or nothing, and give its path."""
    path = Path(path)
    if path.suffix.lower() not in PICTURES:
        raise VacaError(f"{path}: unknown kind of picture; use {', '.join(PICTURES)}")
    if not path.parent.is_dir():
        raise VacaError(f"{path}: there is no folder {path.parent}; make it first")
    figure = picture if isinstance(picture, Figure) else picture.get_figure(root=True)
    if figure is None:
        raise VacaError("these axes belong to no figure")
    # Matplotlib writes the day and its own address into a file unless told not to.
    clean: dict[str, Any] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
        part = Path(folder) / path.name
        figure.savefig(part, dpi=dpi, metadata=clean.get(path.suffix.lower()))
        os.replace(part, path)
    return path


# ---------------------------------------------------------------------- small parts


def with_levels(frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """The frame with discrete columns as categories, so that pictures keep the schema's order."""
    changed = {
        name: pd.Categorical(frame[name], categories=list(column.levels), ordered=True)
        for name, column in schema.items()
        if column.discrete and name in frame.columns
    }
    return frame.assign(**changed)


def _tables(before: Any, after: Any, labels: tuple[str, str]) -> dict[str, pd.DataFrame]:
    if after is None:
        if not isinstance(before, Mapping) or isinstance(before, pd.DataFrame):
            raise VacaError("give two tables, or a dict from label to table")
        return {str(label): as_frame(table) for label, table in before.items()}
    return {labels[0]: as_frame(before), labels[1]: as_frame(after)}


def _shared(tables: Mapping[str, pd.DataFrame], columns: Sequence[str] | None) -> list[str]:
    first, *rest = tables.values()
    common = [c for c in first.columns if all(c in t.columns for t in rest)]
    for label, table in tables.items():
        if not len(table):
            raise VacaError(f"the table {label!r} has no rows")
    return _chosen(first[common], columns)


def _chosen(frame: pd.DataFrame, columns: Sequence[str] | None) -> list[str]:
    if columns is None:
        names = list(frame.columns)
    else:
        names = list(columns)
        for name in names:
            if name not in frame.columns:
                raise VacaError(f"there is no column {name!r}; {did_you_mean(name, frame.columns)}")
    if not names:
        raise VacaError("there is no column to draw")
    return names


def _is_discrete(values: pd.Series) -> bool:
    """Whether to draw bars: not numbers, or whole numbers of few kinds."""
    if not pd.api.types.is_numeric_dtype(values.dtype) or pd.api.types.is_bool_dtype(values.dtype):
        return True
    if not pd.api.types.is_integer_dtype(values.dtype):
        return False
    return bool(values.nunique() <= 10 and values.max() - values.min() <= 20)


def _levels(joined: pd.Series, like: pd.Series) -> list[Any]:
    if isinstance(like.dtype, pd.CategoricalDtype):
        return list(like.dtype.categories)
    found = joined.astype(object).unique()
    return sorted(found, key=lambda v: (isinstance(v, str), v))


def _joined(first: pd.Series, second: pd.Series) -> pd.Series:
    same = first.dtype == second.dtype
    return pd.concat([first, second] if same else [s.astype(object) for s in (first, second)])


def _shares(values: pd.Series) -> pd.Series:
    return values.astype(object).value_counts(normalize=True)


def _plain(values: pd.Series) -> pd.Series:
    return values.astype(object) if _is_discrete(values) else values.astype(float)


def _grid(joined: pd.Series) -> np.ndarray:
    numbers = joined.to_numpy(dtype=float)
    low, high = np.quantile(numbers, (0.001, 0.999))
    if high <= low:
        return np.linspace(low - 0.1 * max(abs(low), 1.0), low + 0.1 * max(abs(low), 1.0), 200)
    pad = 0.06 * (high - low)  # but not beyond what there is: no income below zero
    return np.linspace(max(low - pad, numbers.min()), min(high + pad, numbers.max()), 200)


def _density(numbers: np.ndarray, grid: np.ndarray) -> np.ndarray | None:
    """A kernel estimate of the density on a grid; None if all values are one."""
    from scipy.stats import gaussian_kde

    if np.ptp(numbers) <= 1e-9 * max(1.0, float(np.abs(numbers).max())):
        return None
    taken = numbers[_some(len(numbers), ROWS)]
    if np.ptp(taken) == 0:
        return None
    return gaussian_kde(taken)(grid)


def _some(n: int, most: int) -> np.ndarray:
    """At most so many row numbers, evenly spread, the same each time."""
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).astype(int)


def _level_ticks(ax: Axes, levels: list[Any]) -> None:
    crowded = sum(min(12, len(str(v))) + 1 for v in levels) > 38
    ax.set_xticks(
        range(len(levels)),
        [_wrap(str(v), 12) for v in levels],
        rotation=40 if crowded else 0,
        ha="right" if crowded else "center",
        fontsize=8,
    )


def _limits(ax: Axes, low: float, high: float, pad: float = 0.05) -> None:
    width = (high - low) or max(abs(low), 1.0)
    ax.set_xlim(low - pad * width, high + pad * width)


def _wrap(text: str, width: int) -> str:
    # Names such as loan_duration may break after an underscore.
    broken = "\n".join(textwrap.wrap(text.replace("_", "_\u200b "), width))
    return broken.replace("\u200b ", "").replace("\u200b", "")


def _clip(text: str) -> str:
    return text if len(text) <= 10 else text[:9] + "…"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
