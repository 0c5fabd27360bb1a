"""Small pictures as inline SVG: they scale to a phone, print sharply and need no other file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import numpy as np
import pandas as pd

from vaca.graph.dag import CausalGraph

#: Of every picture, in its own units; small, so that letters stay readable on a phone.
WIDTH = 480
INK, MUTED, LINE = "#1c2733", "#5a6875", "#c9d2da"
BLUE, LIGHT, ORANGE = "#1f5f99", "#d5e5f3", "#b4530a"


def _text(
    x: float, y: float, words: str, *, anchor: str = "start", size: int = 14, fill: str = INK,
    weight: str = "normal",
) -> str:  # fmt: skip
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{fill}" '
        f'font-weight="{weight}">{escape(words)}</text>'
    )


def _svg(height: float, body: Sequence[str], title: str, width: int = WIDTH) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height:.0f}" role="img" aria-label="{escape(title)}" '
        f'font-family="inherit" xmlns="http://www.w3.org/2000/svg">'
        f"<title>{escape(title)}</title>{''.join(body)}</svg>"
    )


def draw_graph(graph: CausalGraph, sensitive: Sequence[str]) -> str:
    """The causal graph, causes on the left; sensitive nodes and what they reach stand out."""
    layers = graph.layers()
    reached = {d for n in sensitive for d in graph.descendants(n)}
    lines = {n: _lines(graph, n) for n in graph.nodes}
    tall = {n: 22 + 17 * len(lines[n]) for n in graph.nodes}
    gap = 18
    height = max(sum(tall[n] + gap for n in layer) for layer in layers) + gap
    width = max(WIDTH, 172 * len(layers))
    step = width / len(layers)
    box = min(180.0, step - 56)
    place: dict[str, tuple[float, float]] = {}
    for i, layer in enumerate(layers):
        y = (height - sum(tall[n] + gap for n in layer) + gap) / 2
        for node in layer:
            place[node] = (step * (i + 0.5), y + tall[node] / 2)
            y += tall[node] + gap
    tip = f'<path d="M0 0L10 5L0 10z" fill="{MUTED}"/>'
    marker = 'viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7"'
    body = [f'<defs><marker id="tip" {marker} orient="auto">{tip}</marker></defs>']
    for cause, effect in graph.edges:
        (x1, y1), (x2, y2) = place[cause], place[effect]
        ours = cause in sensitive or (cause in reached and effect in reached)
        colour, wide = (ORANGE, 2.4) if ours else (MUTED, 1.4)
        # Edges that jump a layer bend away from the boxes between.
        bend = 0.0 if x2 - x1 < 1.5 * step else (-1 if (y1 + y2) / 2 < height / 2 else 1) * 60
        mid = (x1 + x2) / 2, (y1 + y2) / 2 + bend
        body.append(
            f'<path d="M{x1 + box / 2:.1f} {y1:.1f}Q{mid[0]:.1f} {mid[1]:.1f} '
            f'{x2 - box / 2 - 2:.1f} {y2:.1f}" fill="none" stroke="{colour}" '
            f'stroke-width="{wide}" marker-end="url(#tip)"/>'
        )
    for node, (x, y) in place.items():
        own, below = node in sensitive, node in reached
        fill = "#fde8d6" if own else "#fff7ef" if below else "#f3f6f9"
        edge = ORANGE if own or below else LINE
        body.append(
            f'<rect x="{x - box / 2:.1f}" y="{y - tall[node] / 2:.1f}" width="{box:.1f}" '
            f'height="{tall[node]}" rx="8" fill="{fill}" stroke="{edge}" '
            f'stroke-width="{2 if own else 1}"/>'
        )
        for k, words in enumerate(lines[node]):
            at = y - tall[node] / 2 + 25 + 17 * k
            body.append(
                _text(
                    x,
                    at,
                    words,
                    anchor="middle",
                    size=14 if k == 0 else 12,
                    fill=INK if k == 0 else MUTED,
                    weight="600" if k == 0 else "normal",
                )
            )
    arrows = ", ".join(f"{a} to {b}" for a, b in graph.edges)
    return _svg(height, body, f"Causal graph with arrows from {arrows}", width)


def _lines(graph: CausalGraph, node: str) -> list[str]:
    columns = graph.columns(node)
    return [node] if columns == (node,) else [node, *columns]


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers from low to high, about five.

    >>> _ticks(0, 13.1), _ticks(39, 90)
    ([0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0], [40.0, 50.0, 60.0, 70.0, 80.0, 90.0])
    """
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = min((k * power for k in (1, 2, 5, 10)), key=lambda size: abs(size - rough))
    first = int(np.ceil(low / step - 1e-9))
    last = int(np.floor(high / step + 1e-9))
    return [round(step * k, 10) for k in range(first, last + 1)]


def _signed(value: float) -> str:
    return f"{value:+g}".replace("-", "−") if value else "0"


def draw_bars(table: pd.DataFrame, title: str, mark: str | None = None) -> str:
    """Horizontal bars of `unfairness` with intervals `low` to `high`, in percentage points."""
    row, top = 46, 8
    values = 100 * table[["unfairness", "low", "high"]].to_numpy(dtype=float)
    largest = max(float(np.nanmax(values)), 1e-9)
    scale = (WIDTH - 60) / largest
    body = []
    for i, (name, (value, low, high)) in enumerate(zip(table.index, values, strict=True)):
        y = top + row * i
        colour = ORANGE if name == mark else BLUE
        body.append(
            _text(0, y + 14, str(name), size=13, weight="600" if name == mark else "normal")
        )
        body.append(
            f'<rect x="0" y="{y + 20}" width="{max(value * scale, 1):.1f}" height="16" '
            f'fill="{colour}" rx="2"/>'
        )
        end = value * scale
        if np.isfinite(low) and np.isfinite(high) and high > low:
            end = max(end, high * scale)
            body.append(
                f'<path d="M{low * scale:.1f} {y + 28}H{high * scale:.1f}M{low * scale:.1f} '
                f'{y + 23}v10M{high * scale:.1f} {y + 23}v10" stroke="{INK}" stroke-width="1.6" '
                'fill="none"/>'
            )
        body.append(_text(end + 8, y + 33, f"{value:.2f}", size=13))
    return _svg(top + row * len(table) + 4, body, title)


def draw_histogram(gaps: pd.Series, title: str) -> str:
    """How many people have which gap, in percentage points."""
    values = 100 * gaps.to_numpy(dtype=float)
    reach = max(float(np.abs(values).max()), 0.5)
    edges = np.linspace(-reach, reach, 32)
    counts, _ = np.histogram(values, edges)
    height, base, left = 220, 176, 6
    wide = (WIDTH - 2 * left) / (len(edges) - 1)
    tallest = max(int(counts.max()), 1)
    body = []
    for i, count in enumerate(counts):
        if count:
            tall = 150 * count / tallest
            body.append(
                f'<rect x="{left + i * wide + 1:.1f}" y="{base - tall:.1f}" '
                f'width="{wide - 2:.1f}" height="{tall:.1f}" fill="{BLUE}"/>'
            )
    body.append(f'<path d="M{left} {base}H{WIDTH - left}" stroke="{MUTED}"/>')
    middle = WIDTH / 2
    body.append(f'<path d="M{middle} 14V{base}" stroke="{INK}" stroke-dasharray="3 4"/>')
    for value in _ticks(-reach, reach):
        x = middle + value / reach * (WIDTH / 2 - left)
        x = min(max(x, 14.0), WIDTH - 14.0)  # room for the digits
        body.append(_text(x, base + 18, _signed(value), anchor="middle", size=13))
    body.append(
        _text(middle, base + 38, "change in probability, percentage points", anchor="middle",
              size=13, fill=MUTED)
    )  # fmt: skip
    body.append(_text(left, 12, f"most in one bar: {tallest:,} people", size=12, fill=MUTED))
    return _svg(height, body, title)


def draw_frontier(table: pd.DataFrame, title: str, measure: str = "f1") -> str:
    """A point for each classifier: unfairness to the right, accuracy upwards."""
    height, left, right, top, bottom = 360, 56, 24, 16, 48
    x = 100 * table["unfairness"].to_numpy(dtype=float)
    y = 100 * table[measure].to_numpy(dtype=float)
    far = max(float(x.max()) * 1.08, 0.5)
    low, high = float(y.min()), float(y.max())
    pad = max(0.15 * (high - low), 1.0)
    low, high = low - pad, min(100.0, high + pad)

    def at(a: float, b: float) -> tuple[float, float]:
        across = left + (WIDTH - left - right) * a / far
        return across, height - bottom - (height - top - bottom) * (b - low) / (high - low)

    body = [
        f'<path d="M{left} {top}V{height - bottom}H{WIDTH - right}" stroke="{MUTED}" fill="none"/>'
    ]
    for a in _ticks(0, far):
        body.append(_text(at(a, low)[0], height - bottom + 18, f"{a:g}", anchor="middle", size=12))
    for b in _ticks(low, high):
        body.append(_text(left - 8, at(0, b)[1] + 4, f"{b:g}", anchor="end", size=12))
    body.append(
        _text((left + WIDTH) / 2, height - 8, "unfairness (uf), percentage points: less is left",
              anchor="middle", size=13, fill=MUTED)
    )  # fmt: skip
    body.append(_text(left + 6, top + 8, f"{measure}, %", size=13, fill=MUTED))
    points = [at(a, b) for a, b in zip(x, y, strict=True)]
    taken = [(px - 7, py - 7, px + 7, py + 7) for px, py in points]
    taken.append((left, top - 8, left + 56, top + 12))  # the name of the axis
    for name, (px, py), source in zip(table.index, points, table["source"], strict=True):
        body.append(
            f'<circle cx="{px:.1f}" cy="{py:.1f}" r="6" fill="{BLUE}"/>'
            if source == "paper"
            else f'<rect x="{px - 5:.1f}" y="{py - 5:.1f}" width="10" height="10" fill="{ORANGE}"/>'
        )
        left_at, base = _free_place(px, py, str(name), taken)
        if abs(base - py) > 24:  # far from its point: a line leads there
            end = base + 4 if base < py else base - 12
            middle = left_at + 3.7 * len(str(name))
            body.append(f'<path d="M{px:.1f} {py:.1f}L{middle:.1f} {end:.1f}" stroke="{MUTED}"/>')
        body.append(_text(left_at, base, str(name), size=13))
    return _svg(height, body, title)


def _free_place(
    x: float, y: float, words: str, taken: list[tuple[float, float, float, float]]
) -> tuple[float, float]:
    """Where a point's name goes: beside, above or below it, clear of other names and points."""
    wide = 7.4 * len(words)
    places = [(x + 11, y + 4), (x - 11 - wide, y + 4)]
    for step in range(1, 8):
        places += [(x - wide / 2, y - 4 - 14 * step), (x - wide / 2, y + 6 + 14 * step)]
    for left, base in places:
        left = min(max(left, 58.0), WIDTH - wide)
        box = (left, base - 11, left + wide, base + 3)
        clear = all(box[2] < t[0] or t[2] < box[0] or box[3] < t[1] or t[3] < box[1] for t in taken)
        if clear:
            break
    taken.append(box)
    return left, base
