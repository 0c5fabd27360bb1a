"""Values that a column cannot pass: no income is negative, no share above one."""

from __future__ import annotations

import math

import numpy as np

from vaca.table.column import Column

__all__ = ["keep_within", "walls"]

#: Ends of columns that come near both: shares and percentages.
WHOLE = (1.0, 100.0)
#: How near, as a part of the whole.
NEAR = 0.05


def walls(low: float | None, high: float | None) -> tuple[float, float]:
    """The limits of a column that was seen from ``low`` to ``high``.

    A column without negative values stays so, and so does one without positive values. One that
    fills 0 to 1 or 0 to 100 stays within these. Other columns have no limits.

    >>> walls(3.0, 70.0)
    (0.0, inf)
    >>> walls(0.01, 0.98)
    (0.0, 1.0)
    >>> walls(-2.0, 5.0)
    (-inf, inf)
    """
    if low is None or high is None:
        return -math.inf, math.inf
    if low >= 0.0:
        full = (w for w in WHOLE if low <= NEAR * w and (1 - NEAR) * w <= high <= w)
        return 0.0, next(full, math.inf)
    return -math.inf, 0.0 if high <= 0.0 else math.inf


def keep_within(values: np.ndarray, column: Column) -> np.ndarray:
    """The values of a numeric column, cut off at its walls."""
    ends = walls(column.low, column.high)
    return values if ends == (-math.inf, math.inf) else np.clip(values, *ends)
