"""Does it hold elsewhere: SCMs that nothing was tuned on, and the choice that `vaca.auto` makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from vaca.engines.selection import choose
from vaca.reproduction.auto_study import CANDIDATES
from vaca.reproduction.comparison import TITLES, label, score_frame, spread
from vaca.reproduction.experiment import Experiment, Options, Reports, plan
from vaca.reproduction.figures import Picture
from vaca.reproduction.recipes import recipe
from vaca.reproduction.result_tables import Cell, Table
from vaca.reproduction.run import Run
from vaca.reproduction.truths import load_truth
from vaca.scm import library as scms

__all__ = ["GENERALISATION"]

#: Numbers of random SCMs that no setting was ever chosen on.
UNSEEN = tuple(f"random:{number}" for number in range(100, 110))
#: Seeds of data on which `auto` is judged: the rule by which it chooses was settled on 0 to 4.
FRESH = tuple(range(5, 8))


# ---------------------------------------------------------------------- SCMs drawn at random


def _unseen_runs(options: Options) -> list[Run]:
    seeds, names, models = options.choose(seeds=1, scms=UNSEEN, models=("vaca", "flow", "additive"))
    return plan(options, seeds, names, models, protocols=("paper",))


def _unseen_show(reports: Reports, options: Options) -> list[Table | Picture]:
    frame = score_frame(reports)
    rows = []
    for model, part in frame.groupby("model", sort=False):
        for scm, own in part.groupby("scm", sort=False):
            rows.append(_ratios(str(scm), str(model), own))
        rows.append(_ratios("worst", str(model), part, worst=True))
    table = Table(
        title="SCMs drawn at random",
        caption="Score / floor, protocol paper (CF MSE x100, whose floor is 0). 3 to 9 nodes, "
        "smooth equations, noise whose spread may depend on the parents; no setting was chosen "
        "on them. Parents explain a third to two thirds of a node: with causes that are nearly "
        "collinear (correlation 0.98) interventions leave the data, and Int. MMD of CausalFlow was "
        "up to 6.4 times the floor.",
        head=("SCM", "Nodes", "Model", *TITLES.values()),
        rows=tuple(rows),
        names=3,
    )
    return [table]


def _ratios(scm: str, model: str, part: pd.DataFrame, *, worst: bool = False) -> tuple[Cell, ...]:
    cells = [Cell(text=scm)]
    cells.append(Cell(text="" if worst else str(len(load_truth(scm).graph.nodes))))
    cells.append(Cell(text=label(model)))
    for metric in TITLES:
        values = part[part["metric"] == metric]
        shown = values["value"] / values["floor"] if (values["floor"] > 1e-6).all() else None
        shown = values["value"] if shown is None else shown
        found = shown.max() if worst else shown.mean()
        cells.append(Cell(float(found), None if worst else spread(shown.tolist())))
    return tuple(cells)


# ---------------------------------------------------------------------- who wins a contest


def _auto_runs(options: Options) -> list[Run]:
    seeds, names, _ = options.choose(seeds=5, scms=scms.names(), models=())
    if options.seeds is None and not options.quick:
        seeds = FRESH
    quick = {name: dict(recipe(name).quick) for name in CANDIDATES} if options.quick else {}
    fields: dict[str, Any] = {"task": "selection", "protocols": ("paper",), "factuals": 200}
    return [
        Run(scm, "auto", seed, config=quick, rows=10_000, **fields)
        for seed in seeds
        for scm in names
    ]


def _auto_show(reports: Reports, options: Options) -> list[Table | Picture]:
    rows, good = [], 0
    names = list(dict.fromkeys(report["run"]["scm"] for report in reports))
    for scm in names:
        own = [r for r in reports if r["run"]["scm"] == scm]
        truth = {
            name: float(np.mean([_int(r, name) for r in own]))
            for name in CANDIDATES
            if all(f"{name} int_mmd" in r["scores"]["selection"] for r in own)
        }
        best = min(truth, key=lambda name: truth[name])
        picks = [choose({name: _score(r, name) for name in truth}) for r in own]
        found = [_int(r, pick) for r, pick in zip(own, picks, strict=True)]
        ratios = [x / min(_int(r, n) for n in truth) for x, r in zip(found, own, strict=True)]
        mean = float(np.mean(found))
        ratio = mean / truth[best]
        good += ratio <= 1.3
        chosen = pd.Series([label(pick) for pick in picks]).value_counts()
        rows.append(
            (
                Cell(text=scm),
                Cell(text=", ".join(f"{name} {count}" for name, count in chosen.items())),
                Cell(text=label(best)),
                *(Cell(truth[name]) if name in truth else Cell(text="-") for name in CANDIDATES),
                Cell(mean),
                Cell(ratio, tone="better" if ratio <= 1.3 else "worse"),
                Cell(float(np.max(ratios))),
                Cell(text=str(len(own))),
            )
        )
    engines = [label(name) for name in CANDIDATES]
    seeds = [report["run"]["seed"] for report in reports]
    table = Table(
        title="Contests of whole engines",
        caption=f"What `vaca.auto(..., engines=[...])` does, where whole engines compete. Int. MMD "
        f"x100 (protocol paper) of every candidate and of the one chosen without "
        f"knowing the truth; the ratio of its mean to that of the best engine is at most 1.3 on "
        f"{good} of {len(names)} SCMs. Engines see three quarters of 5000 rows. These are "
        f"seeds {min(seeds)} to {max(seeds)}; the rule of choice was settled on 0 to 4.",
        head=("SCM", "Chosen (times)", "Best", *engines, "Chosen", "Ratio", "Worst seed", "Seeds"),
        rows=tuple(rows),
        names=3,
    )
    return [table]


def _int(report: Any, name: str) -> float:
    return float(report["scores"]["selection"][f"{name} int_mmd"][0])


def _score(report: Any, name: str) -> float:
    value = report["scores"]["selection"][f"{name} score"][0]
    return float("nan") if value is None else float(value)


GENERALISATION: Sequence[Experiment] = (
    Experiment(
        "unseen", "SCMs drawn at random, on which nothing was tuned.", _unseen_runs, _unseen_show
    ),
    Experiment("auto", "How good the engine is that wins a contest.", _auto_runs, _auto_show),
)
