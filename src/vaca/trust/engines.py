"""Do engines agree: the model's main effects beside those of another engine on the same rows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd

from vaca.errors import VacaError, VacaWarning
from vaca.model.causal_model import CausalModel
from vaca.model.effects import score

__all__ = ["other_engine"]

ROWS = 2000


def other_engine(model: CausalModel, data: pd.DataFrame, *, seed: int = 0) -> pd.DataFrame:
    """The effects of each cause on the last outcome, by the model and by a quick second engine.

    The second engine is additive noise; nothing is compared for a model that is one itself.

    Returns
    -------
    DataFrame
        `effect` (in words), `model`, `other`, `other engine`, and `apart`: their difference in
        standard deviations of the outcome.
    """
    from vaca.engines.additive_noise import AdditiveNoise
    from vaca.show.report import default_effects

    if isinstance(model, AdditiveNoise) or not model.graph.edges:
        return pd.DataFrame()
    rows = data.sample(min(len(data), ROWS), random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VacaWarning)
        try:
            other: Any = AdditiveNoise(model.graph, model.schema_, seed=seed)
            other.fit(rows, progress=False)
            mine, theirs = (default_effects(m, rows, seed=seed) for m in (model, other))
        except VacaError:
            return pd.DataFrame()
    table = []
    for a, b in zip(mine, theirs, strict=True):
        values = model.schema_.encode_column(a.outcome, rows[a.outcome])
        spread = float(np.std(score(model.schema_, a.outcome, a.level, values))) or 1.0
        table.append(
            {
                "effect": str(a).partition(":")[0],
                "model": a.value,
                "other": b.value,
                "other engine": type(other).__name__,
                "apart": abs(a.value - b.value) / spread,
            }
        )
    return pd.DataFrame(table)
