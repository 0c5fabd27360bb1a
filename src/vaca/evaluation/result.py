"""What an evaluation gives: a tidy table of scores, and its summary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["METRICS", "Evaluation", "make_row", "ratio_to"]

METRICS = ("obs_mmd", "int_mmd", "int_mean_e", "int_std_e", "cf_mse", "cf_sse")
"""The columns of the paper's table of results, in its order."""

PREFIX = {"observational": "obs", "interventional": "int", "counterfactual": "cf"}
TINY = 1e-12  # a squared error below this is rounding


class Evaluation(pd.DataFrame):
    """Scores as a tidy table: one row for each (query, intervention, metric).

    Columns: ``query``, ``intervention``, ``node``, ``metric``, ``value``, ``floor``, ``ratio`` and
    ``weight`` (how many pooled values the row stands for when rows are averaged).
    """

    _metadata = ["protocol"]
    protocol: str = "paper"

    @property
    def _constructor(self) -> type[Evaluation]:
        return Evaluation

    def summary(self, scale: float = 100.0) -> pd.DataFrame:
        """One column for each metric, averaged over interventions, like a row of the paper's table.

        Parameters
        ----------
        scale : float
            Scores are multiplied by this; the paper shows them x100.

        Returns
        -------
        DataFrame with the rows ``value``, ``floor``, ``ratio``
        """
        table: dict[str, list[float]] = {}
        for (query, metric), part in self.groupby(["query", "metric"], sort=False):
            weight = part["weight"].to_numpy(dtype=float)
            value = float(np.average(part["value"], weights=weight)) * scale
            floor = float(np.average(part["floor"], weights=weight)) * scale
            table[f"{PREFIX[str(query)]}_{metric}"] = [value, floor, ratio_to(value, floor, scale)]
        order = [m for m in METRICS if m in table] + [m for m in table if m not in METRICS]
        return pd.DataFrame(table, index=["value", "floor", "ratio"])[order]


def make_row(
    query: str, label: str, node: str, metric: str, values: Sequence[float], weight: int
) -> dict[str, Any]:
    """One row of the table; `values` is the model's score and, if known, the floor."""
    floor = values[1] if len(values) > 1 else float("nan")
    return {
        "query": query,
        "intervention": label,
        "node": node,
        "metric": metric,
        "value": values[0],
        "floor": floor,
        "ratio": ratio_to(values[0], floor),
        "weight": weight,
    }


def ratio_to(value: float, floor: float, scale: float = 1.0) -> float:
    """Value over floor; 1 where both are nothing but rounding."""
    if np.isnan(floor):
        return float("nan")
    if floor < TINY * scale:
        return 1.0 if value < TINY * scale else float("inf")
    return value / floor
