"""The figures of an audit with their intervals: by group, by path, and whether draws suffice."""

from __future__ import annotations

import numpy as np
import pandas as pd

from vaca.fairness.decomposition import TOTAL
from vaca.fairness.people import Inquiry

#: Draws are too few when half of them would give a figure this many times as large.
STEADY = 1.1


def per_row(pairs: pd.DataFrame, column: str) -> np.ndarray:
    """A person's average over the alternatives, so that everyone counts once."""
    return pairs.groupby("row", sort=True)[column].mean().to_numpy()


def by_group(pairs: pd.DataFrame, run: Inquiry, level: float) -> pd.DataFrame:
    """By ordered pair of alternatives: people, unfairness, the mean gap and changed decisions."""
    rows = {}
    for key, group in pairs.groupby(["from", "to"], sort=False):
        low, high = run.interval(group, group["unfairness"].to_numpy(), level)
        rows[key] = {
            "people": len(group),
            "unfairness": group["unfairness"].mean(),
            "low": low,
            "high": high,
            "mean_gap": group["gap"].mean(),
            "flips": group["flip"].mean(),
        }
    table = pd.DataFrame.from_dict(rows, orient="index")
    table.index = pd.MultiIndex.from_tuples(rows, names=["from", "to"])
    return table.sort_index()


def decomposition(pairs: pd.DataFrame, run: Inquiry, level: float) -> pd.DataFrame:
    """By path: the size of its part."""
    rows = {}
    for part in run.parts:
        each = pairs.assign(size=pairs[f"share:{part.label}"].abs())
        size = per_row(each, "size")
        low, high = run.interval(pairs, size, level, part.label)
        alone = per_row(pairs.assign(size=pairs[f"alone:{part.label}"].abs()), "size")
        rows[part.label] = {"unfairness": size.mean(), "low": low, "high": high}
        rows[part.label]["alone"] = alone.mean()
    total = per_row(pairs, "unfairness")
    low, high = run.interval(pairs, total, level)
    rows[TOTAL] = {"unfairness": total.mean(), "low": low, "high": high, "alone": total.mean()}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("path")


def decomposition_by_group(pairs: pd.DataFrame, run: Inquiry, level: float) -> pd.DataFrame:
    """By pair of alternatives and path: signed parts."""
    rows = {}
    for key, group in pairs.groupby(["from", "to"], sort=True):
        for part in run.parts:
            share = group[f"share:{part.label}"].to_numpy()
            low, high = run.interval(group, share, level, part.label, size=False)
            alone = group[f"alone:{part.label}"].mean()
            rows[(*key, part.label)] = {
                "effect": share.mean(),
                "low": low,
                "high": high,
                "alone": alone,
            }
        gap = group["gap"].to_numpy()
        low, high = run.interval(group, gap, level, size=False)
        rows[(*key, TOTAL)] = {"effect": gap.mean(), "low": low, "high": high, "alone": gap.mean()}
    table = pd.DataFrame.from_dict(rows, orient="index")
    table.index = pd.MultiIndex.from_tuples(rows, names=["from", "to", "path"])
    return table


def chance(pairs: pd.DataFrame, draws: int | None) -> list[str]:
    """Whether the draws are too few: the average of a few is off by chance, and uf counts that."""
    figure, half = (float(per_row(pairs, c).mean()) for c in ("unfairness", "half"))
    if draws is None or half <= STEADY * figure:
        return []
    return [
        f"By half of the {draws} draws for each person the figure would be {100 * half:.2f} "
        f"percentage points instead of {100 * figure:.2f}: part of it is chance, and more draws "
        "would make it smaller."
    ]
