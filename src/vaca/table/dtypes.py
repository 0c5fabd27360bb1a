"""pandas dtypes by name: reading them back from a file, and what numbers each can hold."""

from __future__ import annotations

import datetime
import re
from typing import Any

import numpy as np
import pandas as pd

from vaca.errors import SchemaError, shorten

#: What dates and times are called among dtypes: whole days, and days with a time.
DATE, TIME = "date", "datetime"
#: Days since 1970-01-01 of the first and the last date that can be written.
FIRST_DAY, LAST_DAY = -719162.0, 2932896.0
_ISO = re.compile(r"\s*\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d+)?)?)?\s*")
#: Up to here every whole number has its own float64, and no other is rounded to it.
LARGEST_EXACT = 2.0**53 - 1
_DECIMAL = re.compile(r"decimal(128|256)\((\d{1,2}), ?(\d{1,2})\)\[pyarrow\]")


def read_dtype(name: Any) -> Any:
    """The dtype of a name that `dtype_name` gave; an error for any other text."""
    if not isinstance(name, str) or len(name) > 100:
        raise SchemaError(f"the dtype of a column is a short text; got {shorten(name)}")
    if name in (DATE, TIME):
        return np.dtype("datetime64[s]")
    try:
        decimal = _DECIMAL.fullmatch(name)
        if decimal:
            import pyarrow as pa

            size, digits, scale = (int(part) for part in decimal.groups())
            make = pa.decimal128 if size == 128 else pa.decimal256
            return pd.ArrowDtype(make(digits, scale))
        dtype = pd.api.types.pandas_dtype(name)
    except (TypeError, ValueError, NotImplementedError, ImportError):
        raise SchemaError(f"{shorten(name)} is not the dtype of a column") from None
    kinds = (
        pd.api.types.is_numeric_dtype,
        pd.api.types.is_string_dtype,
        pd.api.types.is_object_dtype,
    )
    if not any(is_kind(dtype) for is_kind in kinds) or pd.api.types.is_complex_dtype(dtype):
        raise SchemaError(f"a column of {shorten(name)} cannot be used")
    return dtype


def dtype_name(series: pd.Series) -> str:
    """A name that restores the column's dtype; a plain one if the dtype has no name."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        return "ordered category" if series.dtype.ordered else "category"
    if holds_dates(series):
        found = days(series)
        return DATE if np.all(found == np.floor(found), where=~np.isnan(found)) else TIME
    # Answers are dense, also where the table was sparse.
    name = str(getattr(series.dtype, "subtype", series.dtype))
    try:
        read_dtype(name)
    except SchemaError:
        return "float64" if pd.api.types.is_numeric_dtype(series.dtype) else "object"
    return name


def dtype_range(name: str) -> tuple[float, float]:
    """The smallest and largest number of a dtype; of integers, those that a float holds exactly."""
    if name in (DATE, TIME):
        return FIRST_DAY, LAST_DAY
    dtype = read_dtype(name)
    bits = getattr(dtype, "numpy_dtype", dtype)  # Int64 and int64[pyarrow] are int64 inside
    if pd.api.types.is_integer_dtype(dtype):
        info = np.iinfo(bits)
        return max(float(info.min), -LARGEST_EXACT), min(float(info.max), LARGEST_EXACT)
    arrow: Any = getattr(dtype, "pyarrow_dtype", None)
    if hasattr(arrow, "scale"):
        largest = min(10.0 ** (arrow.precision - arrow.scale) * (1 - 1e-15), LARGEST_EXACT)
        return -largest, largest
    if pd.api.types.is_float_dtype(dtype):
        return float(np.finfo(bits).min), float(np.finfo(bits).max)
    return -np.inf, np.inf


def number_array(values: np.ndarray, name: str) -> Any:
    """Numbers in a dtype, or in a wider one if they do not fit."""
    if name == "float64":
        return values
    if name in (DATE, TIME):
        values = np.clip(np.floor(values + 0.5) if name == DATE else values, FIRST_DAY, LAST_DAY)
        return np.rint(86_400 * values).astype("datetime64[s]")
    dtype = read_dtype(name)
    if pd.api.types.is_integer_dtype(dtype):
        values = np.rint(values)
    # Values that were seen fit into this dtype; only answers beyond them may not.
    low, high = dtype_range(name)
    digits = getattr(getattr(dtype, "pyarrow_dtype", None), "scale", None)
    if pd.api.types.is_integer_dtype(dtype) and high == LARGEST_EXACT:
        info = np.iinfo(getattr(dtype, "numpy_dtype", dtype))
        low, high = float(info.min), np.nextafter(float(info.max), 0)
    elif digits is not None:
        high = 10.0 ** (dtype.pyarrow_dtype.precision - digits) * (1 - 1e-15)
        low = -high
    if len(values) and not (low <= values.min() and values.max() <= high):
        whole = pd.api.types.is_integer_dtype(dtype) and np.abs(values).max() <= LARGEST_EXACT
        return values.astype(np.int64) if whole else values
    if digits is not None:  # a decimal, which does not round by itself
        import decimal

        # By way of the shortest text, so that the float nearest to 0.34 becomes 0.34.
        rules, least = decimal.Context(prec=90), decimal.Decimal(1).scaleb(-digits)
        exact = [decimal.Decimal(repr(float(v))).quantize(least, context=rules) for v in values]
        return pd.array(exact, dtype=dtype)
    return pd.Series(values).astype(dtype).array


# ---------------------------------------------------------------------- dates


def holds_dates(series: pd.Series) -> bool:
    """Whether a column holds dates: as such, or all as text such as 2020-01-31 or 2020-01-31 09:30.

    >>> holds_dates(pd.Series(["2020-01-31", "2021-12-01"])), holds_dates(pd.Series(["31.1.20"]))
    (True, False)
    """
    dtype = series.dtype
    if isinstance(dtype, np.dtype) and dtype.kind == "M":
        return True
    if isinstance(dtype, pd.CategoricalDtype) or not (
        pd.api.types.is_object_dtype(dtype) or pd.api.types.is_string_dtype(dtype)
    ):
        return False
    seen = series.dropna()
    few = list(seen.iloc[:200])
    if not few or not all(_is_date(value) for value in few):
        return False
    return all(_is_date(value) for value in seen.unique()) and not np.isnan(days(seen)).any()


def _is_date(value: Any) -> bool:
    if isinstance(value, datetime.date):
        return getattr(value, "tzinfo", None) is None
    return isinstance(value, str) and _ISO.fullmatch(value) is not None


def days(series: pd.Series) -> np.ndarray:
    """Dates as days (n,) since 1970-01-01; NaN for what is missing or no date."""
    if not (isinstance(series.dtype, np.dtype) and series.dtype.kind == "M"):
        series = pd.to_datetime(series, errors="coerce", format="ISO8601")
    found = series.to_numpy().astype("datetime64[us]")
    return np.where(np.isnat(found), np.nan, found.astype(np.int64) / 86_400e6)


def as_numbers(series: pd.Series) -> np.ndarray:
    """A column (n,) of numbers as floats, one of dates in days since 1970-01-01.

    >>> as_numbers(pd.Series(["1970-01-02", "1970-01-11"]))
    array([ 1., 10.])
    """
    if pd.api.types.is_numeric_dtype(series.dtype) or not holds_dates(series):
        return series.to_numpy(dtype=float)
    return days(series)


def like(values: pd.Series, given: pd.Series) -> pd.Series:
    """Texts in the dtype of a given Series, with new categories if it needs any."""
    if isinstance(given.dtype, pd.CategoricalDtype):
        known = list(given.dtype.categories)
        known += [v for v in values.unique() if v not in given.dtype.categories and v == v]
        return values.astype(pd.CategoricalDtype(known, given.dtype.ordered))
    return values.astype(given.dtype)
