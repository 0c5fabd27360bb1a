"""What kind a column is, decided from its dtype and values."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from vaca.errors import SchemaError, VacaWarning, did_you_mean, shorten
from vaca.table.column import KINDS, Column, Kind, check_finite, plain
from vaca.table.dtypes import dtype_name, holds_dates

#: Whole numbers with at most this many distinct values are taken for category codes.
FEW_VALUES = 10
#: Whole non-negative numbers below this are taken for counts, above it for rounded measurements.
LARGE_COUNT = 1000
#: A column may have this many levels: time and memory grow with the square. Of more texts, the most
#: frequent are kept and the rest merged into one level.
MOST_LEVELS = 300
KEPT_LEVELS = 100
#: A kept level has at least this many rows: with fewer, its effects would be noise.
LEAST_ROWS = 20
OTHER = "other"
#: A text column with more levels than this, most of them seen once, is taken for an identifier.
MANY_LEVELS = 500

_DATE = re.compile(r"\s*\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T]\d{1,2}:\d{2}.*)?\s*")
_DATES = (
    "holds dates or times that cannot be read; write dates as 2020-01-31 (in pandas: "
    "pd.to_datetime, without a time zone), durations as numbers, or leave it out of the graph"
)


def infer_column(name: str, series: pd.Series, kind: Kind | None) -> Column:
    """The column that a Series is taken for, or is by `kind`; missing values are only counted."""
    if kind is not None and (not isinstance(kind, str) or kind not in KINDS):
        raise SchemaError(f"column {name!r}: unknown kind {kind!r}; {did_you_mean(kind, KINDS)}")
    gaps = int(series.isna().sum())
    seen = series.dropna() if gaps else series
    if len(seen) == 0:
        raise SchemaError(f"column {name!r} has no values; leave it out of the graph")
    found = _look(name, seen, kind, bool(gaps))
    return replace(found, dtype=found.stored_dtype(series), missing=gaps)


def _look(name: str, series: pd.Series, kind: Kind | None, gaps: bool) -> Column:
    dtype = series.dtype
    if kind in (None, "continuous") and holds_dates(series):
        return _numbers(name, series, "continuous")
    if pd.api.types.is_datetime64_any_dtype(dtype) or pd.api.types.is_timedelta64_dtype(dtype):
        raise SchemaError(f"column {name!r} {_DATES}")
    if pd.api.types.is_complex_dtype(dtype):
        raise SchemaError(
            f"column {name!r} holds complex numbers; give the real and the imaginary part columns "
            "of their own"
        )
    if pd.api.types.is_bool_dtype(dtype):
        return _levels(name, kind or "binary", [False, True])
    if isinstance(dtype, pd.CategoricalDtype):
        levels = plain(dtype.categories)
        if kind is None:
            kind = "ordinal" if dtype.ordered else "binary" if len(levels) == 2 else "categorical"
        if kind in ("continuous", "count"):
            return _numbers(name, series.astype(dtype.categories.dtype), kind)
        if kind == "categorical" and len(levels) > MOST_LEVELS:
            return _together(name, series, levels)
        return _levels(name, kind, levels)
    if not pd.api.types.is_numeric_dtype(dtype):
        return _text(name, series, kind)
    numbers = series.to_numpy(dtype=float)
    check_finite(name, numbers, series.index)
    distinct = np.unique(numbers)
    whole = bool(np.all(distinct == np.rint(distinct)))
    if kind is None:
        # A gap turns a column of whole numbers into one of floats: the values count.
        integer = pd.api.types.is_integer_dtype(dtype) or (gaps and whole)
        kind = _number_kind(distinct, whole, integer)
    if kind in ("continuous", "count"):
        return _numbers(name, series, kind)
    if len(distinct) > MANY_LEVELS:
        raise SchemaError(
            f"column {name!r} has {len(distinct)} different numbers, too many for {kind}; "
            "use 'continuous' or 'count'"
        )
    levels = plain(pd.unique(series.sort_values()))
    # 0.0 and 1.0 are written 0 and 1; they still match, and come back as they were.
    return _levels(name, kind, [int(v) for v in levels] if whole else levels)


def _text(name: str, series: pd.Series, kind: Kind | None) -> Column:
    try:
        distinct = series.unique()
    except (TypeError, NotImplementedError):  # lists, dicts, structs
        raise SchemaError(
            f"column {name!r} holds {type(series.iloc[0]).__name__} values; a cell is one number, "
            "text or truth value"
        ) from None
    texts = [v for v in distinct[:200] if isinstance(v, str)]
    if kind is None and len(distinct) > 2 and texts and all(_DATE.fullmatch(v) for v in texts):
        raise SchemaError(f"column {name!r} {_DATES}")
    if len(distinct) > MANY_LEVELS and len(distinct) > len(series) / 2 and kind is None:
        raise SchemaError(
            f"column {name!r} has {len(distinct)} different texts in {len(series)} rows: an "
            "identifier or free text? Leave it out of the graph or group its values"
        )
    if kind in ("continuous", "count"):
        return _numbers(name, series, kind)
    levels = plain(sorted(distinct, key=str))
    if kind in (None, "categorical") and len(levels) > MOST_LEVELS:
        return _together(name, series, levels)
    return _levels(name, kind or ("binary" if len(levels) == 2 else "categorical"), levels)


def _number_kind(distinct: np.ndarray, whole: bool, integer: bool) -> Kind:
    if whole and len(distinct) == 2:
        return "binary"
    if whole and 3 <= len(distinct) <= FEW_VALUES:
        return "categorical"
    if integer and len(distinct) > 1 and distinct[0] >= 0 and distinct[-1] < LARGE_COUNT:
        return "count"
    return "continuous"


def _levels(name: str, kind: Kind, levels: list[Any]) -> Column:
    if kind == "binary" and len(levels) > 2:
        raise SchemaError(
            f"column {name!r} cannot be binary: it has {len(levels)} levels, {shorten(levels[:5])}"
        )
    if len(levels) == 1:
        _warn_constant(name, levels[0])
    check_levels(name, levels)
    try:
        return Column(kind, tuple(levels))
    except SchemaError as error:
        raise SchemaError(f"column {name!r}: {error}") from None


def _together(name: str, series: pd.Series, levels: list[Any]) -> Column:
    """The most frequent levels, and one for all the others."""
    if not all(isinstance(level, str) for level in levels):
        check_levels(name, levels)
    counts = series[series != OTHER].value_counts()
    kept = counts.index[: KEPT_LEVELS - 1][: max(1, int((counts >= LEAST_ROWS).sum()))]
    share = 1 - float(counts.iloc[: len(kept)].sum()) / len(series)
    warnings.warn(
        f"column {name!r} has {len(levels):,} levels: the {len(kept)} most frequent are kept, and "
        f"the others ({100 * share:.0f} % of the rows) count as {OTHER!r}. Group them yourself to "
        "keep what matters (a region for a postcode)",
        VacaWarning,
        stacklevel=2,
    )
    return Column("categorical", (*sorted(kept), OTHER), other=OTHER)


def check_levels(name: str, levels: Sequence[Any]) -> None:
    """Refuse more levels than can be modelled."""
    if len(levels) > MOST_LEVELS:
        raise SchemaError(
            f"column {name!r} has {len(levels):,} levels, more than the {MOST_LEVELS} that can be "
            "modelled; turn them into text (rare texts are merged into one level), group them (a "
            "region for a postcode), or leave the column out of the graph"
        )


def _numbers(name: str, series: pd.Series, kind: Kind) -> Column:
    values = Column(kind, dtype=dtype_name(series)).encode(name, series)
    low, high = float(values.min()), float(values.max())
    if low == high:
        _warn_constant(name, low)
    return Column(kind, low=low, high=high)


def _warn_constant(name: str, value: Any) -> None:
    warnings.warn(
        f"column {name!r} is constant (always {shorten(value)}): nothing can be learned about "
        "what it causes or what causes it",
        VacaWarning,
        stacklevel=2,
    )
