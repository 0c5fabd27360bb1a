"""The page of a check: one file, no script, nothing from the network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

import vaca
from vaca.show.pages import picture, render, template
from vaca.show.plot.parts import COLOURS, wrap
from vaca.show.words import number
from vaca.table.files import complete

if TYPE_CHECKING:
    from vaca.trust.check import Check

__all__ = ["page", "write_page"]

SAYS = {
    "good": "Nothing in the data speaks against it.",
    "doubtful": "With care: something deserves a second look.",
    "bad": "Not as it stands.",
}


def write_page(found: Check, path: Path) -> Path:
    """Write the page, all or nothing."""
    with complete(path) as part:
        part.write_text(page(found), encoding="utf-8")
    return path


def page(found: Check) -> str:
    """The whole page as HTML."""
    parts = found.parts
    worst = parts[parts["verdict"] == found.verdict] if found.verdict != "good" else parts.head(0)
    return render(
        "check.html",
        "trust",
        style=template("page.css"),
        found=found,
        says=SAYS[found.verdict],
        looks=[f"{line.part}: {line.words}." for line in worst.itertuples()],
        parts=parts.assign(figure=parts["figure"].map(number)).to_dict("records"),
        overlap=_overlap(found),
        tables=[_table(*named) for named in _tables(found) if len(named[2])],
        version=vaca.__version__,
    )


def _tables(found: Check) -> list[tuple[str, str, pd.DataFrame]]:
    """Title, what its columns mean, and the rows of each table."""
    arrows = found.graph.arrows
    tests = found.graph.independences.head(15).copy()
    if len(tests):
        tests["given"] = [", ".join(names) or "nothing" for names in tests["given"]]
    return [
        (
            "Arrows that deserve a second look",
            "Hints only: the graph is yours. gain: log-density per row, on rows not seen, that the "
            "change would bring.",
            arrows.reindex(columns=["words", "change", "cause", "effect", "gain"]).head(8),
        ),
        (
            "Independences that the graph implies",
            "p: corrected for the number of tests; a small one contradicts the graph.",
            tests,
        ),
        (
            "Each column, given its causes",
            "off: distance from calibrated. explained: share of the variance that the model "
            "explains; explainable: the share that a plain regression does.",
            found.columns.reset_index(),
        ),
        (
            "What can be asked",
            "extrapolates: share of rows for which no similar row has the other value.",
            found.questions.reset_index(),
        ),
        (
            "Axioms of counterfactuals",
            "In standard deviations of the columns. noise: what chance alone explains.",
            found.axioms.reset_index(),
        ),
        (
            "Main effects by another engine",
            "apart: distance of the two, in standard deviations of the outcome.",
            found.engines,
        ),
    ]


def _table(title: str, words: str, frame: pd.DataFrame) -> dict[str, Any]:
    def cell(value: Any) -> tuple[bool, str]:
        if isinstance(value, float):
            return True, "" if value != value else f"{value:.3g}"
        return False, str(value)

    rows = [[cell(value) for value in row] for row in frame.itertuples(index=False, name=None)]
    return {"title": title, "words": words, "head": list(frame.columns), "rows": rows}


def _overlap(found: Check) -> str:
    """For each treatment, the chance of its second value, by who has it."""
    from matplotlib.figure import Figure

    pictures = []
    for name, chance in list(found.chances.items())[:6]:
        compared = str(found.questions.loc[name, "compared"])
        figure = Figure(figsize=(4.0, 2.5), layout="constrained")
        ax = figure.subplots()
        groups = {has: chance["chance"][chance["has"] == has] for has in (False, True)}
        for has, colour, hatch in ((False, COLOURS[2], ""), (True, COLOURS[1], "//")):
            ax.hist(
                groups[has], bins=20, range=(0, 1), alpha=0.6,
                color=colour, hatch=hatch, label="have it" if has else "do not have it",
            )  # fmt: skip
        title = wrap(f"{name}: {compared}", 44)
        ax.set_title(title, fontsize=10, loc="left", fontweight="bold")
        ax.set_yticks([])
        ax.set_xlabel("chance of the second value, given the causes", fontsize=9)
        for side in ("left", "right", "top"):
            ax.spines[side].set_visible(False)
        ax.legend(fontsize=8, frameon=False)
        apart = " and ".join(number(float(group.median())) for group in groups.values())
        words = f"Two histograms of {name} ({compared}), the second's chance: median {apart} "
        pictures.append(picture(figure, words + "for rows that do not have it and that do."))
    return "".join(pictures)
