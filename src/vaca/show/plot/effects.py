"""Effects with their intervals, and losses by epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vaca.errors import VacaError, shorten
from vaca.model.answers import Effect, do_label
from vaca.show.plot.parts import (
    COLOURS,
    GREY,
    LINES,
    as_written,
    beside,
    check_axes,
    wrap,
)
from vaca.show.words import number, span


@as_written
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
    >>> [" ".join(tick.get_text().split()) for tick in ax.get_yticklabels()]
    ['y: do(x = 1) against do(x = 0)']
    """
    check_axes(ax)
    given = effects.values() if isinstance(effects, Mapping) else effects
    if not isinstance(effects, Mapping | list | tuple) or not all(
        isinstance(effect, Effect) for effect in given
    ):
        raise VacaError(f"effects are what model.effect gives; got {shorten(effects)}")
    if isinstance(effects, Mapping):
        named = {str(label): effect for label, effect in effects.items()}
    else:
        named = {effect_label(effect): effect for effect in effects}
    if not named:
        raise VacaError("there are no effects to draw")
    outcomes = {_outcome(effect) for effect in named.values()}
    # Changes of a probability in percentage points, as sentences say them.
    shares = all(effect.level is not None for effect in named.values())
    scale = 100.0 if shares else 1.0
    if ax is None:
        size = (5.0, 0.5 * len(named) + 1.0)
        ax = Figure(figsize=size, layout="constrained").subplots()
    for i, effect in enumerate(reversed(list(named.values()))):
        low, high = (scale * end for end in effect.interval(level))
        value = scale * effect.value
        outside = bool(effect.outside_support)
        ax.plot([low, high], [i, i], color=COLOURS[0], lw=1.6, linestyle=":" if outside else "-")
        face = "white" if outside else COLOURS[1]
        ax.plot([value], [i], "s", mec=COLOURS[0], mfc=face, ms=8, zorder=3)
        said = number(value)
        if effect.covers_fit:
            said, *ends = span(value, low, high)
            said += f" [{ends[0]}, {ends[1]}]"
        said += " *" if outside else ""
        beside(ax, i, said)
    ax.axvline(0, color=GREY, lw=1, linestyle="--", zorder=0)
    ax.set_yticks(range(len(named)), [wrap(text, 22) for text in reversed(named)], fontsize=9)
    ax.set_ylim(-0.6, len(named) - 0.4)
    what = f"effect on {outcomes.pop()}" if len(outcomes) == 1 else "effect"
    what += ", percentage points" if shares else ""
    sure = any(effect.covers_fit for effect in named.values())
    end = f", with its {100 * level:g} % interval" if sure else "; no interval, one fit alone"
    ax.set_xlabel(wrap(what + end, 48), fontsize=9)
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


@as_written
def plot_history(history: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Training and validation loss by epoch, with the best epoch marked.

    Parameters
    ----------
    history : DataFrame
        `model.history_`. Columns whose name holds "loss" or "val" are drawn (all numbers, if none
        does); with a column `member`, the members of an ensemble are drawn one by one.
    """
    check_axes(ax)
    if not isinstance(history, pd.DataFrame):
        raise VacaError(f"a history is a table, such as model.history_; got {shorten(history)}")
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
    for member, (_, part) in enumerate(groups):
        epochs = part["epoch"].to_numpy() if "epoch" in part else np.arange(1, len(part) + 1)
        for k, name in enumerate(curves):
            values = part[name].to_numpy(dtype=float)
            kept = np.isfinite(values)
            ax.plot(
                epochs[kept],
                values[kept],
                color=COLOURS[k % 6],
                linestyle=LINES[k % 6],
                lw=1.6 if member == 0 else 0.8,
                label=str(name).replace("_", " ") if member == 0 else None,
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
