"""The causal graph as boxes and arrows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path as Curve

from vaca.errors import VacaError, shorten
from vaca.graph.dag import CausalGraph
from vaca.model.answers import shown_value
from vaca.model.arguments import check_names
from vaca.show.plot.parts import (
    COLOURS,
    GREY,
    PALE,
    as_written,
    check_axes,
    wrap,
)


@as_written
def plot_graph(
    graph: CausalGraph,
    ax: Axes | None = None,
    do: Iterable[str] | Mapping[str, Any] = (),
    notes: Mapping[str, str] | None = None,
) -> Axes:
    """Draw a causal graph, causes on the left, with an intervention drawn in.

    Parameters
    ----------
    graph : CausalGraph
    ax : Axes, optional
    do : iterable of str or mapping, optional
        Nodes that are set from outside: their box is dark, the arrows into them are cut, and what
        they reach is shaded. A mapping also writes the value that a node is set to.
    notes : mapping of str to str, optional
        Node -> a few words to write below its box.

    Examples
    --------
    >>> import vaca
    >>> graph = vaca.CausalGraph.from_edges([("age", "income"), ("income", "loan")])
    >>> ax = plot_graph(graph, do={"income": 40_000})
    >>> [text.get_text() for text in ax.texts if "do" in text.get_text()]
    ['do: 40000']
    """
    check_axes(ax)
    if not isinstance(graph, CausalGraph):
        raise VacaError(f"a CausalGraph is needed; got {shorten(graph)}")
    if not isinstance(do, Mapping):
        do = check_names("do", do)
    values = dict(do) if isinstance(do, Mapping) else {}
    cut = set(do)
    for node in cut:
        graph.parents(node)  # an unknown node is an error that names it
    reached = set(graph.descendants(*cut))
    places, routes = layout(graph)
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
        label = _label(node, graph.columns(node))
        text = "\n".join(wrap(line, 14) for line in label.split("\n"))
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
        if notes and node in notes:
            below = y - 0.24
            ax.text(x, below, notes[node], ha="center", va="top", fontsize=9, zorder=3)
        if dark:
            said = f"do: {shown_value(values[node])}" if node in values else "do"
            ax.text(x, y + 0.25, said, ha="center", va="bottom", fontsize=9, zorder=3)
    ax.set_xlim(-0.5, columns - 0.5)
    ax.set_ylim(bottom, top + (0.15 if cut else 0))
    ax.set_axis_off()
    return ax


def _label(node: str, group: Sequence[str]) -> str:
    """A node's name and its columns; of many, how many they are: a box holds three lines."""
    if tuple(group) == (node,):
        return node
    listed = ", ".join(group)
    if len(listed) > 24:
        listed = f"{len(group)} columns"
    return f"block of\n{listed}" if node.startswith("{") else f"{node}\n({listed})"


def layout(
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
