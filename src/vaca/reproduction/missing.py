"""What gaps in a table cost: complete rows, and rows with gaps learned from, against the truth."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from vaca.engines.composite import Composite
from vaca.graph.dag import CausalGraph
from vaca.reproduction.experiment import Experiment, Options, Reports
from vaca.reproduction.figures import Picture
from vaca.reproduction.result_tables import Cell, Table
from vaca.reproduction.run import Run

__all__ = ["MISSING", "missing_scores"]

GRAPH = CausalGraph.from_text("{w, z} -> t -> y\n{w, z} -> y")
ROWS = 2000
WAYS = ("full", "drop", "model")


def _logistic(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _linear(n: int, rng: np.random.Generator) -> pd.DataFrame:
    w = rng.normal(size=n)
    z = 0.5 * w + rng.normal(size=n)
    t = (rng.random(n) < _logistic(w)).astype(int)
    return pd.DataFrame({"w": w, "z": z, "t": t, "y": t + w + z + rng.normal(size=n)})


def _curved(n: int, rng: np.random.Generator) -> pd.DataFrame:
    w = rng.normal(size=n)
    z = 0.5 * w + rng.normal(size=n)
    t = (rng.random(n) < _logistic(w + 0.5 * z)).astype(int)
    y = t * (1 + 0.5 * w) + np.sin(2 * w) + 0.5 * z**2 + rng.normal(size=n)
    return pd.DataFrame({"w": w, "z": z, "t": t, "y": y})


def _levels(n: int, rng: np.random.Generator) -> pd.DataFrame:
    w = rng.integers(0, 3, n)
    z = rng.gamma(2.0, 1.0 + 0.5 * w)
    t = (rng.random(n) < _logistic(w - 1.0 + 0.2 * (z - 3))).astype(int)
    y = t * (0.5 + 0.5 * w) + 0.4 * z + w + rng.normal(size=n)
    return pd.DataFrame({"w": w.astype(float), "z": z, "t": t, "y": y})


SCMS: dict[str, tuple[Callable[..., pd.DataFrame], float]] = {
    # With the average effect: E[1 + w / 2] and E[(1 + w) / 2] over w.
    "linear": (_linear, 1.0),
    "curved": (_curved, 1.0),
    "levels": (_levels, 1.0),
}


def _standard(values: pd.Series) -> np.ndarray:
    return ((values - values.mean()) / values.std()).to_numpy()


def _by_outcome(df: pd.DataFrame) -> tuple[str, np.ndarray]:
    return "w", 0.9 * _logistic(4 * (_standard(df["y"]) - 0.5))


def _by_both(df: pd.DataFrame) -> tuple[str, np.ndarray]:
    side = np.where(df["t"] == 1, 1.0, -1.0)
    return "w", 0.9 * _logistic(4 * (side * _standard(df["y"]) - 0.9))


def _outcome_by_causes(df: pd.DataFrame) -> tuple[str, np.ndarray]:
    return "y", 0.9 * _logistic(4 * (_standard(df["z"]) - 0.5))


def _by_chance(df: pd.DataFrame) -> tuple[str, np.ndarray]:
    return "w", np.full(len(df), 0.3)


#: What goes missing, in words, and what complete rows then give. All are missing at random given
#: what is observed, in about 30 % of the rows. Where effects differ between rows, complete rows
#: chosen by a cause are another population, so that the average over them is another as well.
GAPS: dict[str, tuple[Callable[..., Any], str, str]] = {
    "by-outcome": (_by_outcome, "a cause, by the outcome", "biased"),
    "by-both": (_by_both, "a cause, by outcome and treatment", "biased"),
    "outcome": (_outcome_by_causes, "the outcome, by a cause", "another population"),
    "by-chance": (_by_chance, "a cause, by chance", "right"),
}
#: Tables of each kind.
TABLES = 8


def missing_scores(run: Run) -> dict[str, Any]:
    """The effects that tables give: in full, from complete rows, and with gaps modelled."""
    scm, gaps = run.scm.removeprefix("missing:").split("/")
    count = int(run.config.get("tables", TABLES))
    found = [_one(scm, gaps, run.seed * count + k) for k in range(count)]
    return {"truth": SCMS[scm][1], "tables": found}


def _one(scm: str, gaps: str, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng([seed, 21])
    full = SCMS[scm][0](ROWS, rng)
    column, chance = GAPS[gaps][0](full)
    gappy = full.copy()
    gappy.loc[rng.random(ROWS) < chance, column] = np.nan
    found: dict[str, Any] = {"touched": round(float(gappy.isna().any(axis=1).mean()), 3)}
    for way in WAYS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            engine = Composite(GRAPH, missing="error" if way == "full" else way, seed=seed)
            engine.fit(full if way == "full" else gappy, refits=8, progress=False)
            effect = engine.effect("y", {"t": 1}, {"t": 0}, seed=seed)
        found[way] = [round(v, 4) for v in (effect.value, *effect.interval())]
    return found


def _runs(options: Options) -> list[Run]:
    seeds, _, _ = options.choose(seeds=1, scms=("",), models=("",))
    config = {"tables": 2 if options.quick else TABLES}
    names = [f"missing:{scm}/{gaps}" for gaps in GAPS for scm in SCMS]
    return [
        Run(scm=name, model="Composite", task="missing", seed=seed, config=config)
        for name in names
        for seed in list(seeds)[:1]
    ]


def _show(reports: Reports, options: Options) -> list[Table | Picture]:
    by_name = {report["run"]["scm"]: report for report in reports}
    rows = []
    for gaps, (_, what, kind) in GAPS.items():
        for scm in SCMS:
            report = by_name.get(f"missing:{scm}/{gaps}")
            if report is None:
                continue
            truth, tables = report["truth"], report["tables"]
            cells = [Cell(text=what), Cell(text=kind), Cell(text=scm)]
            missed = {}
            for way in WAYS:
                errors = np.array([table[way][0] - truth for table in tables])
                missed[way] = float(np.sqrt(np.mean(errors**2)))
                cells.append(Cell(text=f"{missed[way]:.3f}"))
            cells.append(Cell(text=f"{missed['model'] / missed['drop']:.2f}"))
            for way in WAYS[1:]:
                held = sum(table[way][1] <= truth <= table[way][2] for table in tables)
                cells.append(Cell(text=f"{held} of {len(tables)}"))
            touched = np.mean([table["touched"] for table in tables])
            rows.append((*cells, Cell(text=f"{100 * touched:.0f} %")))
    return [
        Table(
            title="Missing values: error of the average effect",
            caption="Root mean squared error over tables of 2000 rows: all values known, complete "
            "rows alone, gaps modelled; and how often the 95 % interval holds the truth. "
            "With so few tables, a ratio near 1 tells neither way.",
            head=(
                "Missing",
                "Complete rows",
                "SCM",
                "Full",
                "drop",
                "model",
                "model / drop",
                "drop covers",
                "model covers",
                "Rows touched",
            ),
            rows=tuple(rows),
            names=3,
        )
    ]


MISSING = Experiment(
    "missing", "What gaps in a table cost, and what modelling them saves.", _runs, _show
)
