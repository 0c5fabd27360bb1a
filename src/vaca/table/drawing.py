"""A random part of a table that is larger than memory, in one pass over its file or folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vaca.table.files import CHUNK, TableReader

__all__ = ["Drawn", "draw_rows"]

#: How many distinct values to remember of a column of numbers, and of one of text.
NUMBERS, TEXTS = 64, 1000


@dataclass(frozen=True)
class Drawn:
    """Rows drawn from a table.

    Attributes
    ----------
    frame : DataFrame
        The rows, in the order of the table.
    edges : DataFrame
        More rows that a model has to know: those with the smallest and the largest value of a
        column, one for each level, one with a gap. They show what can occur, not how often.
    rows : int
        Rows of the whole table.
    """

    frame: pd.DataFrame
    edges: pd.DataFrame
    rows: int


def draw_rows(
    path: str | Path,
    n: int,
    *,
    columns: Sequence[str] | None = None,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Drawn:
    """Draw `n` rows of a table at random, or all of them if there are no more.

    Parameters
    ----------
    path : path
        A .parquet file or a folder of them is read piece by piece; other tables are read whole.
    n : int
        Rows to draw.
    columns : sequence of str, optional
        Read only these, if they exist.
    seed : int
        The same seed draws the same rows.
    progress : callable, optional
        Called after each piece with its number of rows.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.parquet"
    >>> pd.DataFrame({"x": range(1000)}).to_parquet(path)
    >>> drawn = draw_rows(path, 10)
    >>> len(drawn.frame), drawn.edges["x"].tolist(), drawn.rows
    (10, [0, 999], 1000)
    """
    reader = TableReader(path, columns=columns)
    if reader.rows is None or reader.rows <= n:
        frame = pd.concat(list(reader.chunks(10_000_000)), ignore_index=True)
        return Drawn(frame, frame.iloc[:0], len(frame))
    rng = np.random.default_rng([seed, 21])
    left, wanted = reader.rows, n
    taken, edges = [], _Edges()
    for piece in reader.chunks(CHUNK):
        count = int(rng.hypergeometric(wanted, left - wanted, len(piece)))
        places = np.sort(rng.choice(len(piece), count, replace=False))
        taken.append(piece.iloc[places])
        edges.look(piece)
        left, wanted = left - len(piece), wanted - count
        if progress is not None:
            progress(len(piece))
    return Drawn(pd.concat(taken), edges.rows(), reader.rows)


class _Edges:
    """Rows that show what the columns of a table can hold."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], pd.DataFrame] = {}
        self._range: dict[str, tuple[Any, Any]] = {}
        self._levels: dict[str, set[Any] | None] = {}
        self._new: list[pd.DataFrame] = []

    def look(self, piece: pd.DataFrame) -> None:
        for name in piece.columns:
            values = piece[name]
            gaps = values.isna().to_numpy()
            if gaps.any() and (name, "gap") not in self._kept:
                self._kept[name, "gap"] = piece.iloc[[int(gaps.argmax())]]
            numeric = pd.api.types.is_numeric_dtype(values.dtype)
            if numeric and not pd.api.types.is_bool_dtype(values.dtype) and not gaps.all():
                self._extremes(name, piece, values)
            self._unseen(name, piece, values, NUMBERS if numeric else TEXTS)

    def _extremes(self, name: str, piece: pd.DataFrame, values: pd.Series) -> None:
        low, high = values.min(), values.max()
        before = self._range.get(name)
        if before is None or low < before[0]:
            self._kept[name, "low"] = piece.loc[[values.idxmin()]]
        if before is None or high > before[1]:
            self._kept[name, "high"] = piece.loc[[values.idxmax()]]
        self._range[name] = (
            (low, high) if before is None else (min(low, before[0]), max(high, before[1]))
        )

    def _unseen(self, name: str, piece: pd.DataFrame, values: pd.Series, most: int) -> None:
        known = self._levels.setdefault(name, set())
        if known is None:  # too many to be levels
            return
        try:
            found = values.dropna().drop_duplicates()
            fresh = found[[value not in known for value in found]] if len(found) <= most else found
            self._levels[name] = known | set(fresh) if len(known) + len(fresh) <= most else None
        except TypeError:  # no value that could be a level
            self._levels[name] = None
        if self._levels[name] is not None and len(fresh):
            self._new.append(piece.loc[fresh.index])

    def rows(self) -> pd.DataFrame:
        every = pd.concat([*self._kept.values(), *self._new])
        return every[~every.index.duplicated()].sort_index()
