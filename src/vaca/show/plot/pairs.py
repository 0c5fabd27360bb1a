"""All pairs of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vaca.show.plot.parts import (
    COLOURS,
    PALE,
    as_written,
    bars_of,
    clip,
    is_discrete,
    levels_of,
    plain,
    shared_columns,
    some_rows,
    wrap,
)
from vaca.table.dtypes import as_numbers
from vaca.table.schema import as_frame


@as_written
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
    names = shared_columns(tables, columns)[: None if columns is not None else 8]
    count = len(names)
    figure = Figure(figsize=(1.55 * count + 0.8, 1.45 * count + 0.7), layout="constrained")
    axes = figure.subplots(count, count, squeeze=False)
    first = tables[labels[0]]
    discrete = {name: is_discrete(first[name]) for name in names}
    levels = {
        name: levels_of(pd.concat([plain(t[name]) for t in tables.values()]), first[name])
        for name in names
        if discrete[name]
    }
    rng = np.random.default_rng(0)
    points = [
        {name: _positions(t[name], levels.get(name), rng) for name in names}
        for t in (table.iloc[some_rows(len(table), 700)] for table in tables.values())
    ]
    for i, low in enumerate(names):
        for j, left in enumerate(names):
            ax = axes[i, j]
            if i == j:
                series = {label: table[low] for label, table in tables.items()}
                if discrete[low]:
                    bars_of(ax, series, levels[low])
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
                    ax.set_yticks(range(len(levels[low])), [clip(str(v)) for v in levels[low]])
            if discrete[left]:
                ax.set_xticks(range(len(levels[left])), [clip(str(v)) for v in levels[left]])
            ax.tick_params(labelsize=6, labelbottom=i == count - 1, labelleft=j == 0 and i > 0)
            if discrete[left] and i == count - 1 and len(levels[left]) > 2:
                ax.tick_params(axis="x", labelrotation=60)
            if i == count - 1:
                ax.set_xlabel(wrap(left, 16), fontsize=8)
            if j == 0:
                ax.set_ylabel(wrap(low, 16), fontsize=8)
    if len(tables) > 1:
        figure.suptitle(
            f"below the diagonal, and bars: {labels[0]}; above, and lines: {labels[1]}", fontsize=9
        )
    return figure


def _steps(ax: Axes, series: Mapping[str, pd.Series]) -> None:
    joined = np.concatenate([as_numbers(s) for s in series.values()])
    low, high = np.quantile(joined, (0.002, 0.998))
    bins = np.linspace(low, high if high > low else low + 1, 25)
    for k, values in enumerate(series.values()):
        numbers = as_numbers(values)
        if k == 0:
            ax.hist(numbers, bins, density=True, color=PALE)
        else:
            ax.hist(numbers, bins, density=True, histtype="step", color=COLOURS[k], lw=1.4)


def _positions(values: pd.Series, levels: list[Any] | None, rng: np.random.Generator) -> np.ndarray:
    if levels is None:
        return as_numbers(values)
    place = {level: i for i, level in enumerate(levels)}
    codes = np.array([place[v] for v in values.astype(object)], dtype=float)
    return codes + rng.uniform(-0.25, 0.25, len(codes))  # so that equal points do not hide
