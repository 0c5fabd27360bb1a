"""How good the engine is that `vaca.auto` chooses without knowing the truth."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from vaca.engines.selection import PARTS, contest
from vaca.evaluation import evaluate
from vaca.reproduction.recipes import recipe
from vaca.reproduction.run import Run
from vaca.reproduction.truths import load_truth

__all__ = ["CANDIDATES", "selection_scores"]

#: What `auto` chooses from, in its order of preference, as recipes of the experiments.
CANDIDATES = ("additive", "flow", "vaca", "carefl")


def selection_scores(run: Run) -> dict[str, Any]:
    """Fit and score the candidates as `vaca.auto` does, then ask the truth how good each one is."""
    truth = load_truth(run.scm)
    (data_seed,) = np.random.SeedSequence([run.data_seed or 0, 5]).generate_state(1)
    data = truth.sample(run.train, seed=int(data_seed))
    candidates: dict[str, Any] = {}
    for name in CANDIDATES:
        config = dict(run.config.get(name, {}))
        candidates[name] = recipe(name).make(run.scm, truth.graph, truth.schema_, run.seed, config)
    started = time.perf_counter()
    board, fitted = contest(data, candidates, seed=run.seed, progress=False)
    seconds = time.perf_counter() - started
    scores: dict[str, list[float | None]] = {}
    floor: Any = True
    for name, model in fitted.items():
        found = evaluate(
            model,
            truth,
            "paper",
            seed=run.seed,
            data=data,
            rows=run.rows,
            resamples=run.resamples,
            factuals=run.factuals,
            floor=floor,
        )
        floor = found
        table = found.summary()
        scores[f"{name} int_mmd"] = [float(table.at[k, "int_mmd"]) for k in ("value", "floor")]
        for part in ("score", *PARTS):
            value = float(board.loc[name, part])
            scores[f"{name} {part}"] = [value if np.isfinite(value) else None, None]
    return {"scores": {"selection": scores}, "fit_seconds": round(seconds, 3)}
