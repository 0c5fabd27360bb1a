"""Do intervals hold what they promise: many tables of a known truth, each answered as by default.

A run is one table. Its report has the answers with their intervals beside the truth; the shares
and ratios are made when the reports of all tables are shown.
"""

from __future__ import annotations

import time
import warnings
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from vaca.engines.registry import engine_class
from vaca.errors import VacaWarning
from vaca.model.intervention import Shift
from vaca.reproduction.coverage_cases import KINDS, Kind
from vaca.reproduction.experiment import Experiment, Options, Reports
from vaca.reproduction.figures import Picture
from vaca.reproduction.result_tables import Cell, Table, Tone
from vaca.reproduction.run import Run

__all__ = ["COVERAGE", "coverage_scores"]

#: Fresh rows that are asked for their counterfactuals.
ASKED = 60
DRAWS = 90
REFITS = 8
#: Rows by which the truth is known.
TRUTH = 400_000
#: Of the larger ones 40 at first; after 85 % of one kind, 100 of each, the first 40 among them.
TABLES = {500: 80, 2000: 100}
#: The first table. Those before it were looked at while intervals were made, as were those from
#: 10,000 on; nothing was chosen on these.
FIRST = 3000
LARGE = ("linear", "curved", "mixed", "mediated")


def coverage_scores(run: Run) -> dict[str, Any]:
    """Fit the default engine to one table; its answers, their intervals and the truth."""
    kind = KINDS[run.scm.partition(":")[2]]
    known = _truth(kind.name)
    rng = np.random.default_rng([run.data_seed or 0, 21])
    table, _ = _rows(kind, run.train, rng)
    engine = engine_class(run.model)(kind.truth.graph, kind.truth.schema_, seed=run.seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VacaWarning)
        started = time.process_time()
        engine.fit(table, progress=False)
        once = time.process_time()
        # The same as fit(table, refits=REFITS), whose two parts cannot be timed apart.
        engine.refits_ = engine._refits(engine.rows_, engine.weights_, int(run.config["refits"]))
        both = time.process_time()
        effect = engine.effect(
            kind.outcome, kind.treatment, kind.control, level=kind.level, seed=run.seed
        )
        found: dict[str, Any] = {
            "effect": [known["effect"], effect.value, *effect.interval()],
            "slack": [effect.slack],
            "fit": [once - started, both - started],
            "rows": _row_answers(kind, engine, rng),
        }
        check = getattr(effect, "cross_check", None)
        if check is not None:
            found["cross-check"] = [known["effect"], check.value, *check.interval()]
        if kind.audited:
            found["audit"] = [known["audit"], *_audit(kind, engine, table)]
    found["fit"].append(time.process_time() - both)
    return {"scores": {name: [_short(v) for v in values] for name, values in found.items()}}


def _short(value: float) -> float:
    return float(f"{float(value):.6g}")


def _rows(
    kind: Kind, n: int, rng: np.random.Generator
) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
    """A table and the noise behind it."""
    u = kind.truth.noise(n, rng)
    x = kind.truth.simulate(u, {})
    return kind.truth.schema_.decode(x, index=pd.RangeIndex(n)), u


def _under(kind: Kind, u: dict[str, np.ndarray], node: str, values: np.ndarray) -> Any:
    """The truth's rows with the same noise and other values of a node, encoded."""
    return kind.truth.simulate(u, {node: values})


@cache
def _truth(name: str) -> dict[str, float]:
    """The average effect and the unfairness, by very many rows with their noise."""
    kind = KINDS[name]
    u = kind.truth.noise(TRUTH, np.random.default_rng(20))
    (node,) = kind.treatment
    arms = []
    for do in (kind.treatment, kind.control):
        value = kind.truth.schema_.encode_value(node, do[node])
        arms.append(_under(kind, u, node, np.full(TRUTH, value)))
    found = {"effect": float(np.mean(arms[0][kind.outcome]) - np.mean(arms[1][kind.outcome]))}
    if kind.audited:
        scores = [_score(kind, arm[kind.followed]) for arm in arms]
        found["audit"] = float(np.mean(np.abs(scores[0] - scores[1])))
    return found


def _score(kind: Kind, values: np.ndarray) -> np.ndarray:
    """The chance that a known classifier gives: a curve of the followed column."""
    middle, width = kind.scale
    return expit((np.asarray(values, dtype=float) - middle) / width)


def _row_answers(kind: Kind, engine: Any, rng: np.random.Generator) -> list[float]:
    """Of fresh rows: the share whose true counterfactual is in the nominal 90 %, and the width."""
    rows, u = _rows(kind, ASKED, rng)
    x = engine.schema_.encode(rows)
    (node,) = kind.treatment
    if engine.schema_[node].discrete:
        values: np.ndarray = 1 - x[node]
        do: dict[str, Any] = {node: [engine.schema_[node].levels[v] for v in values]}
    else:
        values, do = x[node] + 1.0, {node: Shift(1.0)}
    truth = _under(kind, u, node, values)[kind.followed]
    summary = engine.counterfactual(rows, do, draws=DRAWS, seed=0).summary()[kind.followed]
    low, high = summary["5%"].to_numpy(), summary["95%"].to_numpy()
    return [float(np.mean((low <= truth) & (truth <= high))), float(np.mean(high - low))]


def _audit(kind: Kind, engine: Any, table: pd.DataFrame) -> list[float]:
    from vaca.fairness.auditing import audit

    (node,) = kind.treatment
    result = audit(
        engine,
        lambda frame: _score(kind, frame[kind.followed]),
        table,
        sensitive=node,
        draws=None,
        paths=False,
        most_affected=0,
    )
    return [result.unfairness, *result.interval]


# ---------------------------------------------------------------------- runs and what they show


def _runs(options: Options) -> list[Run]:
    kinds = options.scms or tuple(KINDS)
    models = options.models or ("Composite",)
    sizes = {200: 2} if options.quick else TABLES
    runs = []
    for n, tables in sizes.items():
        for seed in options.seeds or range(FIRST, FIRST + tables):
            for kind in kinds:
                if n == min(sizes) or kind in LARGE:
                    runs += [_run(kind, model, seed, n) for model in models]
    return runs


def _run(kind: str, model: str, seed: int, n: int) -> Run:
    # What a run does not use is set to nothing, so that no default of another study names it.
    unused: dict[str, Any] = {"validation": 0, "factuals": 0, "rows": 0, "resamples": 0}
    return Run(
        f"coverage:{kind}",
        model,
        seed,
        config={"refits": REFITS},
        train=n,
        protocols=(),
        task="coverage",
        **unused,
    )


def cells(reports: Reports) -> pd.DataFrame:
    """One row for each kind of table and number of rows."""
    groups: dict[tuple[str, int], list[dict[str, list[float]]]] = {}
    for report in reports:
        key = report["run"]["scm"].partition(":")[2], report["run"]["train"]
        groups.setdefault(key, []).append(report["scores"])
    rows = []
    for (name, n), found in groups.items():
        row: dict[str, Any] = {"kind": name, "n": n, "tables": len(found)}
        for what in ("effect", "cross-check", "audit"):
            parts = np.array([one[what] for one in found if what in one])
            if len(parts):
                truth, value, low, high = parts.T
                row[what] = 100 * float(np.mean((low <= truth) & (truth <= high)))
                sd = float(np.std(value, ddof=1)) if len(value) > 1 else float("nan")
                row[f"{what} width"] = float(np.mean(high - low)) / (3.92 * sd)
                row[f"{what} bias"] = float(np.mean(value - truth)) / sd
        row["rows"] = 100 * float(np.mean([one["rows"][0] for one in found]))
        fit = np.array([one["fit"] for one in found])
        row["cost"] = float(fit[:, 1].sum() / fit[:, 0].sum())
        row["seconds"] = float(fit.sum(1).mean() - fit[:, 0].mean())
        rows.append(row)
    return pd.DataFrame(rows)


#: What is good enough, from and to.
BARS: dict[str, tuple[float, float]] = {
    "effect": (90, 99),
    "effect width": (0, 1.5),
    "cross-check": (90, 99),
    "rows": (80, 97),
    "audit": (88, 99),
    "cost": (0, 3),
}


def _tone(what: str, value: float) -> Tone:
    if what not in BARS:
        return "none"
    low, high = BARS[what]
    return "better" if low <= value <= high else "worse"


def _show(reports: Reports, options: Options) -> list[Table | Picture]:
    head = {
        "effect": "Effect, 95 %",
        "effect width": "Width",
        "effect bias": "Bias / sd",
        "cross-check": "Cross-check, 95 %",
        "rows": "Rows, 90 %",
        "audit": "Audit, 95 %",
        "cost": "Cost / one fit",
    }
    rows = []
    for row in cells(reports).to_dict("records"):
        shown = [Cell(text=row["kind"]), Cell(text=str(row["n"])), Cell(text=str(row["tables"]))]
        for what in head:
            value = row.get(what, float("nan"))
            if not np.isfinite(value):
                shown.append(Cell(text="-"))
                continue
            shown.append(Cell(value, tone=_tone(what, value)))
        rows.append(tuple(shown))
    table = Table(
        title="Do intervals hold what they promise?",
        caption="Per cent of tables whose interval holds the truth: of an average effect and of "
        "its cross-check (nominal 95 %), of an audit's unfairness (95 %), and of the "
        f"counterfactuals of {ASKED} fresh rows of each table (90 %). Width: of the effect's "
        "interval, in 3.92 sd of the estimate over tables. Bias: in the same sd. Cost: CPU seconds "
        f"of the fit with {REFITS} refits over those of the fit without, which gives the same "
        "point answer. By chance alone, 95 % shows as 90 to 99 % of 80 tables nine times in ten.",
        head=("Table", "n", "Tables", *head.values()),
        rows=tuple(rows),
        names=3,
    )
    return [table]


COVERAGE = Experiment(
    "coverage", "How often intervals hold the truth, on tables of eight kinds.", _runs, _show
)
