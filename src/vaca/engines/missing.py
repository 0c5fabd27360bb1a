"""Tables with gaps: what to do about them, and what is lost when their rows are left out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from vaca.errors import SchemaError, VacaError, VacaWarning, did_you_mean
from vaca.table.column import GAP
from vaca.table.schema import Columns, Schema

__all__ = ["MISSING", "check_missing", "complete_rows", "drop_gaps", "gaps_of"]

#: What an engine may do about missing values.
MISSING = ("error", "drop", "model")
#: Standardised differences of at least this are reported.
DIFFERENT = 0.2


def check_missing(choice: Any) -> str:
    """What to do about missing values, or an error."""
    if choice not in MISSING:
        raise VacaError(f"missing={choice!r} is unknown; {did_you_mean(choice, MISSING)}")
    return choice


def gaps_of(rows: Columns, schema: Schema) -> dict[str, np.ndarray]:
    """Where values are missing: booleans (n,) for each column that has a gap."""
    found = {c: v == GAP if schema[c].discrete else np.isnan(v) for c, v in rows.items()}
    return {c: gap for c, gap in found.items() if gap.any()}


def complete_rows(model: Any, frame: pd.DataFrame, rng: np.random.Generator) -> Columns:
    """Encoded rows without gaps: those that have none, or all with draws, as the model learned."""
    if getattr(model, "missing", "error") == "drop":
        frame = frame.dropna(subset=[c for c in model.schema_ if c in frame.columns])
    return model._filled(model._encode(frame), rng)


# ---------------------------------------------------------------------- leaving rows out


def drop_gaps(frame: pd.DataFrame, columns: Sequence[str]) -> np.ndarray:
    """Which rows (n,) are complete; warns how many are not, and how they differ from the others."""
    names = [c for c in columns if c in frame.columns]
    complete = frame[names].notna().all(axis=1).to_numpy()
    lost = int((~complete).sum())
    if lost == len(frame):
        raise SchemaError(
            "every row has a missing value: nothing is left to learn from. Leave columns with many "
            "gaps out of the graph, or fit with missing='model'"
        )
    if lost:
        warnings.warn(dropped_words(frame[names], complete), VacaWarning, stacklevel=3)
    return complete


def dropped_words(frame: pd.DataFrame, complete: np.ndarray) -> str:
    """One sentence on rows that are left out."""
    lost = int((~complete).sum())
    text = (
        f"{lost:,} of {len(frame):,} rows ({100 * lost / len(frame):.0f} %) have a missing value "
        "and are left out"
    )
    found = []
    for name in frame.columns:
        for label, values in _as_numbers(name, frame[name]):
            inside, outside = (values[rows].dropna() for rows in (complete, ~complete))
            if len(inside) < 2 or len(outside) < 2 or not inside.std() > 0:
                continue
            apart = abs(outside.mean() - inside.mean()) / inside.std()
            chance = 3 * np.sqrt(1 / len(inside) + 1 / len(outside))
            if apart >= max(DIFFERENT, chance):
                found.append((apart, f"{label} {outside.mean():.3g} against {inside.mean():.3g}"))
    if not found:
        return f"{text}; their known values are like the rest"
    shown = ", ".join(words for _, words in sorted(found, key=lambda pair: -pair[0])[:3])
    return (
        f"{text}. They differ from the rest: {shown} (means). Answers are about the "
        "rows that stay; missing='model' keeps all of them"
    )


def _as_numbers(name: str, series: pd.Series) -> list[tuple[str, pd.Series]]:
    """A column as one or more columns of numbers, with what to call them."""
    if pd.api.types.is_numeric_dtype(series.dtype):
        return [(name, series.astype(float))]
    levels = series.value_counts().index[:5]
    return [(f"share of {name} = {v}", (series == v).where(series.notna())) for v in levels]
