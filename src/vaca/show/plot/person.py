"""One row as it was and as it would have been."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vaca.errors import VacaError
from vaca.model.answers import check_pair
from vaca.show.plot.parts import (
    COLOURS,
    PALE,
    as_written,
    check_text,
    chosen_columns,
    is_discrete,
    joined,
    levels_of,
    set_limits,
    shares_of,
    wrap,
)
from vaca.table.dtypes import as_numbers
from vaca.table.schema import as_frame


@as_written
def plot_person(
    factual: Any,
    counterfactual: Any,
    row: Any = None,
    *,
    columns: Sequence[str] | None = None,
    population: Any = None,
    quantiles: tuple[float, float] = (0.05, 0.95),
    title: str | None = None,
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
    title : str, optional
    """
    facts, answers = as_frame(factual), as_frame(counterfactual)
    check_text("title", title)
    quantiles = check_pair(quantiles)
    if not len(facts) or not len(answers):
        raise VacaError("there is no row to draw")
    row = facts.index[0] if row is None else row
    if not isinstance(row, Hashable) or row not in facts.index:
        raise VacaError(f"there is no factual row {row!r}")
    fact = facts.loc[[row]].iloc[0]
    if "draw" in answers.index.names:
        answers = answers.xs(row, level=0, drop_level=False)
    else:
        answers = answers.loc[[row]]
    names = chosen_columns(answers, columns)
    lacking = [name for name in names if name not in facts.columns]
    if lacking:
        raise VacaError(f"the factual row has no column {lacking[0]!r}")
    others = None if population is None else as_frame(population)
    figure = Figure(figsize=(7.5, 0.78 * len(names) + 1.0), layout="constrained")
    axes = figure.subplots(len(names), 1, squeeze=False)[:, 0]
    for ax, name in zip(axes, names, strict=True):
        _rung(ax, name, fact[name], answers[name], others, facts[name], quantiles)
    said = title or f"Row {row}: as it was, and as it would have been"
    axes[0].set_title(wrap(said, 80), loc="left", fontsize=11)
    handles = [
        axes[0].plot([], [], "o", mfc="white", mec=COLOURS[0], ms=9, label="factual")[0],
        axes[0].plot([], [], "D", color=COLOURS[1], ms=7, label="counterfactual")[0],
    ]
    if len(answers) > 1:
        low, high = (f"{100 * q:g}" for q in quantiles)
        label = f"{low} to {high} % of {len(answers)} draws; of levels: their shares"
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
    discrete = is_discrete(pool) and is_discrete(answer) and is_discrete(joined(pool, answer))
    if discrete:
        levels = levels_of(pd.concat([pool.astype(object), answer.astype(object)]), pool)
        place = {level: i for i, level in enumerate(levels)}
        shares = shares_of(answer)
        if len(shares) > 1:  # one level alone is no news
            for level, share in shares.items():
                ax.bar(place[level], 0.75 * share, 0.12, 0, color=COLOURS[1], alpha=0.45)
        best = max(levels, key=lambda v: shares.get(v, 0.0))
        start, end = float(place[fact]), float(place[best])
        ax.set_xlim(-0.6, len(levels) - 0.4)
        ax.set_xticks(range(len(levels)), [wrap(str(v), 12) for v in levels], fontsize=8)
    else:
        numbers = as_numbers(answer)
        start, end = float(as_numbers(pd.Series([fact]))[0]), float(np.median(numbers))
        low, high = np.quantile(numbers, quantiles)
        if len(numbers) > 1 and high > low:
            ax.plot([low, high], [0, 0], color=COLOURS[1], lw=5, alpha=0.45, solid_capstyle="butt")
        ends = [start, *np.quantile(numbers, (0.0, 1.0)), *np.quantile(as_numbers(pool), (0, 1))]
        set_limits(ax, min(ends), max(ends))
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
    ax.set_yticks([0], [wrap(name, 16)])
    ax.tick_params(axis="y", length=0)
    for side in ("left", "right", "top"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set_color(PALE)
