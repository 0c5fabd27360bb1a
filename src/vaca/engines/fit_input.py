"""What an engine learns from: checked, described by a schema, split for early stopping."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vaca.errors import SchemaError, VacaError
from vaca.graph.dag import CausalGraph
from vaca.model.arguments import check_count
from vaca.table.column import LARGEST
from vaca.table.columns import join_rows, row_count
from vaca.table.schema import Columns, Schema, as_frame

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["FitInput", "RowWeights", "weight_tensors"]

#: Fewer rows than this teach a model nothing.
MIN_ROWS = 10
#: The share of rows held out for early stopping when no validation table is given.
VALIDATION_SHARE = 0.15
#: Weights of the training rows and of the validation rows.
RowWeights = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class FitInput:
    """What an engine learns from: encoded rows, with their weights if there are any.

    Attributes
    ----------
    train, validation : dict of array
    weights : tuple of array (n,), optional
        Of the training rows and of the validation rows.
    progress : bool, optional
        False for no progress bar.
    checkpoint : path, optional
        A file to resume from and to update.
    """

    train: Columns
    validation: Columns
    weights: RowWeights | None = None
    progress: bool | None = None
    checkpoint: str | Path | None = None

    def together(self) -> tuple[Columns, np.ndarray]:
        """All rows, and the weight of each."""
        rows = join_rows([self.train, self.validation])
        n = row_count(rows)
        return rows, np.ones(n) if self.weights is None else np.concatenate(self.weights)


def weight_tensors(weights: RowWeights | None, device: str) -> tuple[Tensor | None, Tensor | None]:
    """The weights, of mean 1, where a network is trained on them."""
    if weights is None:
        return None, None
    import torch

    own, others = (
        torch.as_tensor(w / w.mean(), dtype=torch.float32, device=device) for w in weights
    )
    return own, others


def choose_schema(given: Any, frame: pd.DataFrame, graph: CausalGraph, missing: bool) -> Schema:
    """The schema of the columns: what the user gave of it, the rest from the table."""
    if isinstance(given, Schema):
        lacking = [c for c in graph.all_columns if c not in given]
        if lacking:
            raise SchemaError(f"the schema lacks the column {lacking[0]!r} of the graph")
        extra = [c for c in given if c not in graph.all_columns]
        if extra:
            raise SchemaError(f"the schema names {extra[0]!r}, which the graph does not have")
        # Ranges and dtypes come from the data; kinds and levels from the user.
        given = {name: given[name] for name in given}
    return _with_ranges(Schema.infer(frame, graph, given, missing=missing), frame)


def _with_ranges(schema: Schema, frame: pd.DataFrame) -> Schema:
    """The schema with the observed range of columns that the user described without one."""
    columns = {}
    for name, column in schema.items():
        if not column.discrete and column.low is None:
            values = column.encode(name, frame[name].dropna())
            column = replace(column, low=float(values.min()), high=float(values.max()))
        if column.low is not None and column.high is not None:
            width = column.high - column.low
            if 0 < width < 1 / LARGEST:
                raise SchemaError(
                    f"column {name!r}: its values, {width:g} apart at most, are too close to "
                    "compute with; use another unit"
                )
        columns[name] = column
    return Schema(columns)


def complete(validation: Any, graph: CausalGraph) -> pd.DataFrame:
    """The rows of a validation table that have no gaps."""
    frame = as_frame(validation)
    return frame.dropna(subset=[c for c in graph.all_columns if c in frame.columns])


def check_refits(refits: int) -> int:
    """The number of refits, checked."""
    refits = check_count("refits", refits, 0, 10_000)
    if refits == 1:
        raise VacaError("one refit has no spread: refits is 0, or at least 2 (8 is usual)")
    return refits


def check_weights(weights: Any, frame: pd.DataFrame) -> np.ndarray | None:
    """The weights of the rows with the mean 1."""
    if weights is None:
        return None
    if isinstance(weights, pd.Series) and not weights.index.equals(frame.index):
        raise VacaError("weights is a Series with another index than the table; align them first")
    try:
        found = np.asarray(weights, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise VacaError("weights has to be one number for each row of the table") from None
    if found.shape != (len(frame),):
        raise VacaError(f"weights has the shape {found.shape}; the table has {len(frame)} rows")
    wrong = np.flatnonzero(~np.isfinite(found) | (found < 0))
    if len(wrong):
        raise VacaError(
            f"weights are numbers of at least 0; row {wrong[0]} has {found[wrong[0]]:g}"
        )
    if np.count_nonzero(found) < MIN_ROWS:
        raise VacaError(
            f"only {np.count_nonzero(found)} rows have a weight above 0; at least "
            f"{MIN_ROWS} are needed to learn from"
        )
    return found / found.mean()


def split_rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Which rows to train on, and which to hold out."""
    order = np.random.default_rng([seed, 1]).permutation(n)
    held_out = max(1, round(VALIDATION_SHARE * n))
    return order[held_out:], order[:held_out]
