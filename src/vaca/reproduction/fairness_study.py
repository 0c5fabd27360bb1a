"""The fairness runs, and their tables: what was measured, and which of the aims it reaches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from vaca.model.answers import half_width
from vaca.reproduction.comparison import label, score_frame, spread
from vaca.reproduction.experiment import Options, Reports, plan
from vaca.reproduction.fairness import CLASSIFIERS, LEARNERS, MEASURES, PUBLISHED_FAIRNESS
from vaca.reproduction.result_tables import Cell, Table
from vaca.reproduction.run import Run

__all__ = ["fairness_runs", "fairness_show"]

MODELS = ("vaca-paper", "vaca-small", "flow")

FIGURES = """\
x100; mean ± sd and [95 % interval of the mean] over seeds. A seed is a stratified 80/10/10 split
of the 1000 people and a causal model of its own; every figure is of the 100 test rows. "Changed
decisions" is the share of people who would get the other one; "gap between two people" is what the
probabilities of two random people differ by: where it is smaller too, part of a smaller uf is only
that. fair-z-plain reads the latents as the published fair-z does; fair-z holds back directions in
which they change with sex."""

WHY_DIFFERENT = """\
The published figures are of one split in the order of the file, so no interval is known for the
accuracy of full, unaware and fair-x. Their uf compares a decoded counterfactual row with the raw
factual one, so that what VACA does not reconstruct counts as unfairness: 13 to 18 for full and
unaware. Here both rows come from one abduction, and what remains is the effect of sex. The low uf
of the published fair-z could not be repeated with the latents as they are (fair-z-plain)."""

AIMS = """\
Differences are taken within each split, then averaged; [95 % interval]. "Well above" is read as:
the interval of the difference lies above 0. The aim for f1 is one for the mean over splits."""


@dataclass(frozen=True)
class _Aim:
    """Something to be reached: `first`, less `second` if there is one, against a limit."""

    words: str
    measure: str
    first: str
    second: str | None = None
    most: float | None = None
    above: bool = False  # the whole interval, not only the mean

    def values(self, frame: pd.DataFrame, learner: str) -> np.ndarray:
        found = _values(frame, learner, self.first, self.measure)
        return (
            found
            if self.second is None
            else found - _values(frame, learner, self.second, self.measure)
        )

    def met(self, values: np.ndarray) -> bool:
        mean = float(values.mean())
        if self.most is not None:
            return mean <= self.most
        low = _interval(values)[0] if len(values) > 1 else mean
        return low > 0 if self.above else mean >= 0


_AIMS = (
    _Aim("uf: full at least that of unaware", "uf", "full", "unaware"),
    _Aim("uf: unaware well above fair-z", "uf", "unaware", "fair-z", above=True),
    _Aim("uf: unaware well above fair-x", "uf", "unaware", "fair-x", above=True),
    _Aim("uf of fair-z at most 1.0", "uf", "fair-z", most=1.0),
    _Aim("uf of fair-x at most 0.2", "uf", "fair-x", most=0.2),
    _Aim("f1: fair-z at most 3 below full", "f1", "full", "fair-z", most=3.0),
)


def fairness_runs(options: Options) -> list[Run]:
    """German Credit with each causal model, ten seeds."""
    seeds, _, models = options.choose(seeds=10, scms=(), models=MODELS)
    return plan(options, seeds, ("german-credit",), models, task="fairness", protocols=())


def fairness_show(reports: Reports, options: Options) -> list[Any]:
    """The figures beside the published ones, and the aims with whether they are reached."""
    frame = score_frame(reports)
    return [_figures(frame), _aims(frame)]


def _values(frame: pd.DataFrame, learner: str, classifier: str, measure: str) -> np.ndarray:
    """One value for each seed, in the order of the seeds."""
    mine = frame[frame["metric"] == f"{learner} {classifier} {measure}"]
    return mine.sort_values("seed")["value"].to_numpy(dtype=float)


def _interval(values: Sequence[float] | np.ndarray) -> tuple[float, float]:
    """95 % interval of a mean, by Student's t."""
    n = len(values)
    half = half_width(float(np.std(values, ddof=1)), n - 1) / np.sqrt(n)
    return float(np.mean(values)) - half, float(np.mean(values)) + half


def _cell(values: np.ndarray) -> Cell:
    interval = _interval(values) if len(values) > 1 else None
    return Cell(float(values.mean()), spread(values.tolist()), interval=interval)


def _figures(frame: pd.DataFrame) -> Table:
    rows = []
    models = list(dict.fromkeys(frame["model"]))
    for measure, words in MEASURES.items():
        for learner in LEARNERS:
            name = Cell(text=f"{learner}: {words}")
            for model in models:
                mine = frame[frame["model"] == model]
                cells = [_cell(_values(mine, learner, c, measure)) for c in CLASSIFIERS]
                seeds = Cell(text=str(mine["seed"].nunique()))
                rows.append((name, Cell(text=label(model)), *cells, seeds))
            told = PUBLISHED_FAIRNESS.get((learner, measure))
            if told:
                cells = [Cell(*pair) for pair in told] + [Cell(text="-")]
                rows.append((name, Cell(text="VACA, published"), *cells, Cell(text="10")))
    return Table(
        title="Classifiers on German Credit",
        caption=_line(FIGURES),
        head=("Measure", "Causal model", *CLASSIFIERS, "Seeds"),
        rows=tuple(rows),
        names=2,
        notes=(_line(WHY_DIFFERENT),),
    )


def _aims(frame: pd.DataFrame) -> Table:
    rows = []
    for aim in _AIMS:
        for model in dict.fromkeys(frame["model"]):
            row = [Cell(text=aim.words), Cell(text=label(model))]
            for learner in LEARNERS:
                values = aim.values(frame[frame["model"] == model], learner)
                met = aim.met(values)
                row.append(_cell(values))
                row.append(
                    Cell(text="reached" if met else "missed", tone="none" if met else "worse")
                )
            rows.append(tuple(row))
    return Table(
        title="Aims on German Credit",
        caption=_line(AIMS),
        head=("Aim", "Causal model", "lr", "lr: reached?", "svm", "svm: reached?"),
        rows=tuple(rows),
        names=2,
    )


def _line(text: str) -> str:
    return " ".join(text.split())
