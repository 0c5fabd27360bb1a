"""Two tables side by side, column by column: as observed, and under an intervention."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from vaca.table.schema import Schema, as_frame

__all__ = ["contrast"]


def contrast(before: Any, after: Any, schema: Schema, *, paired: bool = False) -> pd.DataFrame:
    r"""The mean of each column in two tables, and the difference with its standard error.

    A column with levels gives a row for each level, with its share; a binary one only for its
    second level.

    Parameters
    ----------
    before, after : DataFrame
    schema : Schema
    paired : bool
        Row i of both tables is the same unit (the same noise): the error of the difference is then
        that of the mean of the row-wise differences.

    Returns
    -------
    DataFrame
        Index `quantity`: "age", or "P(sex = female)"; columns `before`, `after`, `difference` and
        `standard_error`.

    Examples
    --------
    >>> import pandas as pd
    >>> from vaca import Column
    >>> a, b = pd.DataFrame({"x": [0.0, 2.0]}), pd.DataFrame({"x": [1.0, 3.0]})
    >>> contrast(a, b, Schema({"x": Column("continuous")}), paired=True).loc["x"].tolist()
    [1.0, 2.0, 1.0, 0.0]
    """
    first, second = as_frame(before), as_frame(after)
    table = []
    for name, column in schema.items():
        x, y = (schema.encode_column(name, f[name]) for f in (first, second))
        if not column.discrete:
            table.append((name, x.astype(float), y.astype(float)))
            continue
        codes = [1] if len(column.levels) == 2 else range(len(column.levels))
        for code in codes:
            label = f"P({name} = {column.levels[code]})"
            table.append((label, (x == code).astype(float), (y == code).astype(float)))
    rows = []
    for label, x, y in table:
        if paired:
            error = (y - x).std(ddof=1) / np.sqrt(len(x)) if len(x) > 1 else np.nan
        else:
            error = np.sqrt(x.var(ddof=1) / len(x) + y.var(ddof=1) / len(y))
        rows.append(
            {
                "quantity": label,
                "before": float(x.mean()),
                "after": float(y.mean()),
                "difference": float(y.mean() - x.mean()),
                "standard_error": float(error),
            }
        )
    return pd.DataFrame(rows).set_index("quantity")
