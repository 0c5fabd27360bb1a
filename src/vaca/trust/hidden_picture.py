"""The picture of a sensitivity analysis: the effect that hidden causes of each strength leave."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from vaca.show.plot.parts import COLOURS, GREY
from vaca.show.words import number

if TYPE_CHECKING:
    from vaca.trust.hidden import Sensitivity

__all__ = ["plot_sensitivity"]


def plot_sensitivity(found: Sensitivity, ax: Axes | None = None) -> Axes:
    """Contours of the effect that is left; beyond the thick line it can be zero or change sign.

    Points are the observed causes: a hidden cause as strong as that one.
    """
    if ax is None:
        ax = Figure(figsize=(6.4, 4.8), layout="constrained").subplots()
    value = found.check.value
    marks = found.benchmarks
    far = [1.6 * found.robustness_value, *(1.25 * marks["treatment"]), *(1.25 * marks["outcome"])]
    most = float(np.clip(max(far), 0.05, 0.95))
    grid = np.linspace(0, most, 160)
    across, up = np.meshgrid(grid, grid)
    left = value - np.sign(value) * found.scale * np.sqrt(up * across / (1 - across))
    steps = MaxNLocator(8).tick_values(left.min(), left.max())
    # Zero has a line of its own, and the effect itself lies along both axes.
    shown = [v for v in steps if v != 0 and abs(v - value) > 0.05 * abs(value)]
    lines = ax.contour(across, up, left, levels=shown, colors=GREY, linewidths=0.8)
    lines.set_linestyle("solid")
    ax.clabel(lines, fmt=number, fontsize=8)
    if np.sign(left.min()) != np.sign(left.max()):
        ax.contour(across, up, left, levels=[0.0], colors=COLOURS[1], linewidths=2.5)
    handles = [Line2D([], [], color=COLOURS[1], lw=2.5, label="effect brought to zero")]
    if len(marks):
        ax.plot(
            marks["treatment"], marks["outcome"], "D", color=COLOURS[2], ms=6, clip_on=False,
            zorder=3,
        )  # fmt: skip
        handles.append(
            Line2D([], [], color=COLOURS[2], marker="D", ls="", label="as strong as this cause")
        )
        for name, row in marks.head(4).iterrows():
            ax.annotate(
                str(name), (row["treatment"], row["outcome"]), xytext=(7, 5),
                textcoords="offset points", fontsize=9, color=COLOURS[2],
                bbox={"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.8},
            )  # fmt: skip
    ax.set_xlim(0, most)
    ax.set_ylim(0, most)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
    ax.set_xlabel("of what is left of the treatment, explained by the hidden cause")
    ax.set_ylabel("of what is left of the outcome, explained by it")
    ax.set_title(f"Effect that is left of {number(value)}", loc="left", fontsize=11)
    ax.legend(handles=handles, loc="upper right", fontsize=9, framealpha=0.9)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
