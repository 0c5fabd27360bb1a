"""Populations before and after, as ridges or one over the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vaca.errors import VacaError, shorten
from vaca.model.arguments import check_number
from vaca.show.plot.parts import (
    COLOURS,
    FAINT,
    GREY,
    HATCHES,
    LINES,
    PALE,
    as_written,
    bars_of,
    density,
    grid_of,
    is_discrete,
    level_ticks,
    levels_of,
    plain,
    set_limits,
    shared_columns,
    shares_of,
    tables_of,
    wrap,
)
from vaca.table.dtypes import as_numbers
from vaca.table.schema import as_frame


@as_written
def plot_population(
    before: Any | Mapping[str, Any],
    after: Any = None,
    *,
    columns: Sequence[str] | None = None,
    labels: tuple[str, str] = ("before", "after"),
    limits: Mapping[str, tuple[float, float]] | None = None,
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
    limits : mapping, optional
        Column -> range of the data, which its axis keeps to; see `data_limits`.
    """
    tables = tables_of(before, after, labels)
    names = shared_columns(tables, columns)
    _check_limits(limits)
    wide = 2 if len(names) > 3 else 1
    deep = -(-len(names) // wide)
    across = 9.2 if wide == 2 else 4.6  # one column has to be read on a phone as well
    size = (across + (1.2 if wide == 2 else 0.0), (0.5 * len(tables) + 0.75) * deep + 0.5)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(deep, wide, squeeze=False)
    for ax, name in zip(axes.flat, names, strict=False):
        series = {label: table[name] for label, table in tables.items()}
        joined = pd.concat([plain(s) for s in series.values()])
        discrete = is_discrete(next(iter(series.values())))
        for k, values in enumerate(series.values()):
            base = len(series) - 1 - k
            if discrete:
                tallest = max(float(shares_of(s).max()) for s in series.values())
                _bar_ridge(ax, values, levels_of(joined, values), base, k, tallest)
            else:
                grid = grid_of(series.values(), (limits or {}).get(name))
                _ridge(ax, values, grid, base, k)
        ax.set_yticks(range(len(series)), [wrap(t, 18) for t in list(series)[::-1]], fontsize=8)
        ax.tick_params(axis="y", length=0)
        ax.set_ylim(-0.05, len(series) + 0.05)
        ax.set_title(wrap(name, 40), loc="left", fontsize=10, fontweight="bold")
        ax.tick_params(axis="x", labelsize=8)
        for side in ("left", "right", "top"):
            ax.spines[side].set_visible(False)
    for ax in axes.flat[len(names) :]:
        ax.set_visible(False)
    return figure


def _check_limits(limits: Any) -> None:
    """A mapping from column to its two ends."""
    if limits is None:
        return
    if not isinstance(limits, Mapping):
        raise VacaError(f"limits are a dict from column to two ends; got {shorten(limits)}")
    for name, ends in limits.items():
        if not isinstance(ends, tuple | list) or len(ends) != 2:
            raise VacaError(f"limits of {name!r} are two numbers; got {shorten(ends)}")
        for end in ends:
            check_number(f"a limit of {name!r}", end)


def _ridge(ax: Axes, values: pd.Series, grid: np.ndarray, base: int, k: int) -> None:
    numbers = as_numbers(values)
    curve = density(numbers, grid)
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
    set_limits(ax, float(grid[0]), float(grid[-1]), 0.0)


def _bar_ridge(
    ax: Axes, values: pd.Series, levels: list[Any], base: int, k: int, tallest: float
) -> None:
    shares = shares_of(values)
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
    level_ticks(ax, levels)


@as_written
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
        tables = tables_of(observational, interventional, labels)
    names = shared_columns(tables, columns)
    wide = min(3, len(names))
    deep = -(-len(names) // wide)
    figure = Figure(figsize=(3.4 * wide + 0.4, 2.3 * deep + 0.6), layout="constrained")
    axes = figure.subplots(deep, wide, squeeze=False)
    handles: dict[str, Any] = {}
    for ax, name in zip(axes.flat, names, strict=False):
        series = {label: table[name] for label, table in tables.items()}
        joined = pd.concat([plain(s) for s in series.values()])
        first = next(iter(series.values()))
        if is_discrete(first):
            handles |= bars_of(ax, series, levels_of(joined, first))
        else:
            handles |= _curves(ax, series, grid_of(series.values()))
        ax.set_title(wrap(name, 40), loc="left", fontsize=10, fontweight="bold")
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
        numbers = as_numbers(values)
        curve = density(numbers, grid)
        colour, style = COLOURS[k % 6], LINES[k % 6]
        if curve is None:
            handles[label] = ax.axvline(numbers[0], color=colour, linestyle=style, lw=1.8)
            continue
        if k == 0:
            ax.fill_between(grid, 0, curve, facecolor=FAINT, linewidth=0)
        (handles[label],) = ax.plot(grid, curve, color=colour, linestyle=style, lw=1.8)
    ax.set_ylim(bottom=0)
    ax.set_yticks([])
    set_limits(ax, float(grid[0]), float(grid[-1]), 0.0)
    return handles
