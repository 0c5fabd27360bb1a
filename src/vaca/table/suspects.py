"""Columns that seldom belong in a model: identifiers, and near copies of the treatment."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from vaca.table.schema import Columns, Schema

__all__ = ["copies_in", "copies_words", "near_copies", "why_identifier"]

_ID = re.compile(r"(^|_|\b)(id|ids|uuid|guid|key|seqn|index|rownum|row|unnamed: \d+)$", re.I)
#: Fewer rows than this are all different by chance.
ROWS = 20
#: A column that gives the treatment away in this share of the rows is a near copy of it.
TELLS = 0.995
#: Cells that a numeric column is cut into.
CELLS = 20


def why_identifier(values: pd.Series) -> str:
    """Why a column looks like an identifier; empty if it does not.

    >>> import pandas as pd
    >>> why_identifier(pd.Series(range(100, 200), name="person"))
    'it numbers the rows: an identifier?'
    >>> why_identifier(pd.Series([1.5, 2.5, 3.0] * 40))
    ''
    """
    if len(values) < ROWS or not values.is_unique:
        return ""
    if pd.api.types.is_integer_dtype(values.dtype):
        steps = np.diff(values.to_numpy(dtype=float))
        if np.all(steps == 1):
            return "it numbers the rows: an identifier?"
        if np.all(steps > 0) or _ID.search(str(values.name).strip()):
            return "all its values are different: an identifier?"
    elif pd.api.types.is_string_dtype(values.dtype) and not isinstance(
        values.dtype, pd.CategoricalDtype
    ):
        numbers = pd.to_numeric(values, errors="coerce").notna().mean()
        if numbers < 0.5:
            return "all its values are different: an identifier?"
    return ""


def near_copies(rows: Columns, schema: Schema, treatment: str) -> list[str]:
    """Columns that (nearly) determine the treatment, whether it has levels or is a number.

    >>> import numpy as np
    >>> from vaca import Column
    >>> t = np.arange(200) % 2
    >>> schema = Schema({n: Column("binary", (0, 1)) for n in ("t", "same", "other")})
    >>> near_copies({"t": t, "same": 1 - t, "other": np.arange(200) // 100}, schema, "t")
    ['same']
    """
    target = rows[treatment]
    found = []
    for name in schema:
        if name == treatment:
            continue
        if schema[treatment].discrete:
            copy = _tells(_cells(rows[name], schema[name].discrete), target)
        elif schema[name].discrete:
            copy = False
        else:
            a, b = (pd.Series(v).rank().to_numpy() for v in (rows[name], target))
            copy = a.std() > 0 and b.std() > 0 and abs(np.corrcoef(a, b)[0, 1]) > TELLS
        if copy:
            found.append(name)
    return found


def copies_in(frame: pd.DataFrame, schema: Schema, treatment: str) -> list[str]:
    """The near copies of the treatment in a table, among rows where both are known."""
    found = []
    for name in schema:
        pair = Schema({name: schema[name], treatment: schema[treatment]})
        rows = frame[list(pair)].dropna()
        if name != treatment and len(rows):
            found += near_copies(pair.encode(rows), pair, treatment)
    return found


def copies_words(names: list[str], treatment: str) -> str:
    """A warning about near copies of the treatment.

    >>> print(copies_words(["same"], "t").partition(":")[0])
    same (nearly) tells t in every row
    """
    shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if names[8:] else "")
    tell, what = ("tells", "a copy of it") if len(names) == 1 else ("tell", "copies of it")
    return (
        f"{shown} (nearly) {tell} {treatment} in every row: {what}, or the rule that set it?\n"
        f"Nobody comparable is left to learn what {treatment} does; take copies out of the graph."
    )


def _cells(values: np.ndarray, discrete: bool) -> np.ndarray:
    if discrete:
        return values.astype(np.int64)
    return np.searchsorted(np.unique(np.quantile(values, np.linspace(0, 1, CELLS)[1:-1])), values)


def _tells(cells: np.ndarray, target: np.ndarray) -> bool:
    table = np.zeros((cells.max() + 1, target.max() + 1))
    np.add.at(table, (cells, target), 1.0)
    known, guess = table.max(axis=1).sum() / len(cells), table.sum(axis=0).max() / len(cells)
    # If few are treated, guessing "untreated" is nearly always right: a copy must also find most of
    # the treated.
    told = known - guess > 0.9 * (1.0 - guess)
    return bool(known > TELLS and told and guess < 0.5 + TELLS / 2 and len(table) < len(cells) / 5)
