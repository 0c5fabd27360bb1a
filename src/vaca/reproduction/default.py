"""Whether the default engine is as good as the best of all, on every table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from vaca.reproduction.comparison import TITLES, label, score_frame
from vaca.reproduction.experiment import Experiment, Options, Reports, plan
from vaca.reproduction.result_tables import Cell, Table
from vaca.reproduction.run import Run
from vaca.reproduction.wild import rows_of
from vaca.scm import library as scms

__all__ = ["DEFAULT"]

#: Single engines that the default is held against.
SINGLE = ("additive", "flow", "vaca")
#: Numbers of the random tables; smaller ones may be used to choose, these only to report.
TABLES = tuple(range(145, 190))
#: What the quick form of the study takes: it is to see that the whole works, within minutes.
QUICK_SCMS, QUICK_TABLES = ("triangle-nlin", "collider-nadd"), TABLES[:3]
NAMES = {**TITLES, "int_ate": "Effects"}
SHOWN = ("obs_mmd", "int_mmd", "int_ate", "cf_mse")
SIZES: dict[str, Any] = {"protocols": ("paper",), "rows": 5000, "resamples": 5, "factuals": 1000}


def _runs(options: Options) -> list[Run]:
    scale = (
        {"seeds": 1, "scms": QUICK_SCMS} if options.quick else {"seeds": 5, "scms": scms.names()}
    )
    seeds, names, models = options.choose(**scale, models=("composite", *SINGLE))
    # The table of the paper's SCMs is that of `reproduce table`: its stored runs serve here too.
    runs = plan(options, seeds, names, models)
    if options.scms is None:
        for number in sorted(QUICK_TABLES if options.quick else TABLES, key=rows_of):
            train = rows_of(number)
            sizes = {**SIZES, "train": train, "validation": max(train // 4, 20)}
            if options.quick:
                sizes |= {"train": min(train, 500), "rows": 1000, "factuals": 200}
            single = [m for m in models if m != "vaca"]
            for seed in list(seeds)[:2]:
                runs += plan(options, [seed], [f"wild:{number}"], single, **sizes)
    return runs


def _show(reports: Reports, options: Options) -> list[Table]:
    frame = score_frame(reports)
    frame = frame[(frame["protocol"] == "paper") & frame["metric"].isin(SHOWN)]
    tables = []
    for title, wild in (("The paper's SCMs", False), ("Random tables", True)):
        part = frame[frame["scm"].str.startswith("wild:") == wild]
        if not part.empty:
            tables.append(_against(part, title))
    return tables


def _against(frame: pd.DataFrame, title: str) -> Table:
    """One row per table: the default's score, the best single engine's, and their ratio.

    Only seeds that the default has been run on count: on others a table is another table.
    """
    own = frame[frame["model"] == "composite"]
    every, paired = (pd.MultiIndex.from_frame(f[["scm", "seed"]]) for f in (frame, own))
    frame = frame[every.isin(paired) | ~frame["scm"].isin(own["scm"])]
    mean = frame.groupby(["scm", "model", "metric"], sort=False)["value"].mean().unstack("model")
    floor = frame.groupby(["scm", "metric"], sort=False)["floor"].mean()
    rows, ratios = [], {metric: [] for metric in SHOWN}
    others = [m for m in mean.columns if m != "composite"]
    for scm in dict.fromkeys(frame["scm"]):
        cells = [Cell(text=str(scm))]
        for metric in SHOWN:
            found = mean.loc[(scm, metric)] if (scm, metric) in mean.index else None
            if found is None or not others or found.reindex(["composite", *others]).isna().any():
                cells += [Cell(text="-")] * 3
                continue
            best = str(found[others].astype(float).idxmin())
            ratio = (found["composite"] + 1e-3) / (found[best] + 1e-3)
            ratios[metric].append(float(ratio))
            note = f"floor {floor.loc[(scm, metric)]:.3g}"
            cells += [
                Cell(float(found["composite"]), note=note),
                Cell(float(found[best]), note=label(best)),
                Cell(float(ratio), tone="better" if ratio <= 1.15 else "worse"),
            ]
        rows.append(tuple(cells))
    words = "; ".join(
        f"{NAMES[m]}: {np.exp(np.mean(np.log(r))):.2f} (geometric mean of {len(r)}), at "
        f"most 1.15 on {100 * np.mean(np.array(r) <= 1.15):.0f} %, worst {max(r):.2f}"
        for m, r in ratios.items()
        if r
    )
    head = ["Table"]
    for metric in SHOWN:
        name = NAMES[metric]
        head += [name, f"{name}, best single", "Ratio"]
    return Table(
        title=f"The default engine against the best single one: {title}",
        caption=f"x100, protocol paper, means over seeds. Default / best single engine. {words}. "
        "Effects: the error of mean effects. The best is picked with the truth in hand, for each "
        "table and score anew.",
        head=tuple(head),
        rows=tuple(rows),
        names=1,
    )


DEFAULT: Sequence[Experiment] = (
    Experiment("default", "The default engine against every single one.", _runs, _show),
)
