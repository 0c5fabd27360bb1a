"""Pictures of an audit: signed paths, changes by direction, sizes, accuracy against unfairness."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vaca.show.plot.parts import COLOURS, GREY, HATCHES, LINES, PALE, beside, wrap
from vaca.show.words import points

__all__ = ["plot_frontier", "plot_gaps", "plot_sizes", "plot_waterfall"]

LOSS, GAIN = COLOURS[1], COLOURS[2]


def plot_waterfall(parts: pd.DataFrame, ax: Axes | None = None, total: str = "total") -> Axes:
    """Signed parts that add up to a whole, each starting where the one before ended.

    Parameters
    ----------
    parts : DataFrame
        By path: `effect`, `low` and `high`, as probabilities; the row `total` is the whole.

    Examples
    --------
    >>> parts = pd.DataFrame({"effect": [0.05, -0.02, 0.03]}, index=["direct", "income", "total"])
    >>> ax = plot_waterfall(parts.assign(low=parts["effect"], high=parts["effect"]))
    >>> [round(float(bar.get_x()), 2) for bar in ax.patches]
    [0.0, 5.0, 0.0]
    """
    ways = [name for name in parts.index if name != total]
    ways.sort(key=lambda name: -abs(float(parts.loc[name, "effect"])))  # type: ignore[arg-type]
    names = [*ways, total] if total in parts.index else ways
    if ax is None:
        ax = Figure(figsize=(6.4, 0.42 * len(names) + 0.9), layout="constrained").subplots()
    start = 0.0
    for i in range(len(names)):
        ax.axhline(i, color=PALE, lw=0.6, zorder=0)
    for i, name in enumerate(names):
        y = len(names) - 1 - i
        value = 100 * float(parts.loc[name, "effect"])  # type: ignore[arg-type]
        whole = name == total
        begin = 0.0 if whole else start
        ax.barh(
            y,
            value,
            0.55,
            begin,
            facecolor=COLOURS[0] if whole else GAIN if value >= 0 else LOSS,
            edgecolor=COLOURS[0],
            hatch="" if value >= 0 or whole else HATCHES[1],
            linewidth=0.8,
        )
        if not whole:
            ax.plot([start + value] * 2, [y - 0.28, y - 1 + 0.28], color=GREY, lw=0.8)
            start += value
        low, high = (100 * float(parts.loc[name, end]) for end in ("low", "high"))  # type: ignore[arg-type]
        text = points(value / 100)
        if np.isfinite(low) and np.isfinite(high) and high - low > 1e-6:
            text += f"  ({points(low / 100)} to {points(high / 100)})"
        beside(ax, y, text)
    ax.axvline(0, color=GREY, lw=1)
    ax.set_yticks(range(len(names)), [wrap(str(n), 26) for n in reversed(names)], fontsize=9)
    ax.set_ylim(-0.6, len(names) - 0.4)
    ax.set_xlabel("change of the probability, percentage points", fontsize=9)
    ax.tick_params(axis="y", length=0)
    for side in ("right", "top", "left"):
        ax.spines[side].set_visible(False)
    return ax


def plot_gaps(gaps: Mapping[str, np.ndarray], ax: Axes | None = None) -> Axes:
    """How many people have which change, with a line of its own for each direction.

    Parameters
    ----------
    gaps : mapping of str to array (n,)
        Direction -> changes of the probability.
    """
    if ax is None:
        ax = Figure(figsize=(6.4, 2.6), layout="constrained").subplots()
    reach = max([0.5, *(100 * float(np.abs(g).max()) for g in gaps.values() if len(g))])
    edges = np.linspace(-reach, reach, 33).tolist()
    for k, (label, values) in enumerate(gaps.items()):
        ax.hist(
            100 * np.asarray(values),
            edges,
            histtype="stepfilled",
            facecolor="none" if k else PALE,
            edgecolor=COLOURS[k % 6],
            linestyle=LINES[k % 6],
            hatch=HATCHES[k % 6],
            linewidth=1.4,
            label=wrap(label, 40),
        )
    ax.axvline(0, color=GREY, lw=1, linestyle="--")
    ax.set_xlabel("change of the probability, percentage points", fontsize=9)
    ax.set_ylabel("people", fontsize=9)
    ax.legend(frameon=False, fontsize=8)
    for side in ("right", "top"):
        ax.spines[side].set_visible(False)
    return ax


def plot_sizes(table: pd.DataFrame, ax: Axes | None = None, mark: str | None = None) -> Axes:
    """Bars of `unfairness` with their intervals `low` to `high`, in percentage points."""
    if ax is None:
        ax = Figure(figsize=(6.4, 0.4 * len(table) + 0.8), layout="constrained").subplots()
    for i, (name, row) in enumerate(table[::-1].iterrows()):
        value, low, high = (100 * float(row[c]) for c in ("unfairness", "low", "high"))
        colour = COLOURS[1] if name == mark else COLOURS[2]
        ax.barh(i, value, 0.55, color=colour)
        if np.isfinite(low) and np.isfinite(high) and high > low:
            ax.plot([low, high], [i, i], color=COLOURS[0], lw=1.6, marker="|")
        beside(ax, i, f"{value:.2f}")
    ax.set_yticks(range(len(table)), [wrap(str(n), 34) for n in table.index[::-1]], fontsize=8)
    ax.set_xlabel("unfairness, percentage points", fontsize=9)
    for side in ("right", "top"):
        ax.spines[side].set_visible(False)
    return ax


def plot_frontier(table: pd.DataFrame, ax: Axes | None = None, measure: str = "f1") -> Axes:
    """A point for each classifier: unfairness to the right, accuracy upwards."""
    if ax is None:
        ax = Figure(figsize=(6.4, 4.0), layout="constrained").subplots()
    ordered = table.sort_values(measure)
    for i, (name, row) in enumerate(ordered.iterrows()):
        ours = row["source"] == "paper"
        x, y = 100 * float(row["unfairness"]), 100 * float(row[measure])
        ax.plot([x], [y], "o" if ours else "s", color=COLOURS[2] if ours else COLOURS[1], ms=7)
        ax.annotate(
            wrap(str(name), 22),
            (x, y),
            xytext=(7, -9 if i % 2 else 6),
            textcoords="offset points",
            fontsize=8,
        )
    ax.set_xlabel("unfairness (uf), percentage points: less is left", fontsize=9)
    ax.set_ylabel(f"{measure}, %", fontsize=9)
    ax.set_xlim(left=min(0.0, 100 * float(table["unfairness"].min())))
    ax.margins(x=0.2, y=0.15)
    for side in ("right", "top"):
        ax.spines[side].set_visible(False)
    return ax
