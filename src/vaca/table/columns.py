"""Encoded rows: a dict from column name to array, and what is done with all of its arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

#: Encoded rows: column name -> array of shape (n,). Continuous and count columns are float64 in the
#: user's units; binary, categorical and ordinal ones are int64 codes into the column's levels.
Columns = dict[str, np.ndarray]


def row_count(rows: Mapping[str, np.ndarray]) -> int:
    """How many rows there are.

    >>> row_count({"age": np.array([31, 44])})
    2
    """
    return len(next(iter(rows.values())))


def take_rows(rows: Columns, at: Any) -> Columns:
    """The rows at some places: numbers, a mask or a slice.

    >>> take_rows({"age": np.array([31, 44])}, [1])
    {'age': array([44])}
    """
    return {name: values[at] for name, values in rows.items()}


def join_rows(pieces: Sequence[Columns]) -> Columns:
    """The rows of several pieces, one after the other.

    >>> join_rows([{"age": np.array([31])}, {"age": np.array([44])}])
    {'age': array([31, 44])}
    """
    if len(pieces) == 1:
        return dict(pieces[0])
    return {name: np.concatenate([p[name] for p in pieces]) for name in pieces[0]}
