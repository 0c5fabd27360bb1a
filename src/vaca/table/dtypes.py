"""pandas dtypes by name: reading them back from a file, and what numbers each can hold."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

from vaca.errors import SchemaError, shorten

#: Up to here every whole number is a float64 of its own.
LARGEST_EXACT = 2.0**53
_DECIMAL = re.compile(r"decimal(128|256)\((\d{1,2}), ?(\d{1,2})\)\[pyarrow\]")


def read_dtype(name: Any) -> Any:
    """The dtype of a name that `dtype_name` gave; an error for any other text."""
    if not isinstance(name, str) or len(name) > 100:
        raise SchemaError(f"the dtype of a column is a short text; got {shorten(name)}")
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
    """A name to give back the column's dtype by, with a plain one for what has no name."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        return "ordered category" if series.dtype.ordered else "category"
    name = str(series.dtype)
    try:
        read_dtype(name)
    except SchemaError:
        return "float64" if pd.api.types.is_numeric_dtype(series.dtype) else "object"
    return name


def dtype_range(name: str) -> tuple[float, float]:
    """The numbers that a dtype holds, whole ones as far as a float can count."""
    dtype = read_dtype(name)
    bits = getattr(dtype, "numpy_dtype", dtype)  # Int64 and int64[pyarrow] are int64 inside
    if pd.api.types.is_integer_dtype(dtype):
        info = np.iinfo(bits)
        return max(float(info.min), -LARGEST_EXACT), min(float(info.max), LARGEST_EXACT)
    arrow: Any = getattr(dtype, "pyarrow_dtype", None)
    if hasattr(arrow, "scale"):
        largest = 10.0 ** (arrow.precision - arrow.scale) * (1 - 1e-15)
        return -largest, largest
    if pd.api.types.is_float_dtype(dtype):
        return float(np.finfo(bits).min), float(np.finfo(bits).max)
    return -np.inf, np.inf


def number_array(values: np.ndarray, name: str) -> Any:
    """Numbers in a dtype, or in a wider one if they do not fit: never another number."""
    if name == "float64":
        return values
    dtype = read_dtype(name)
    if pd.api.types.is_integer_dtype(dtype):
        values = np.rint(values)
    # What was seen was seen in this dtype; only the ends of a narrower one can be passed.
    low, high = dtype_range(name)
    if pd.api.types.is_integer_dtype(dtype) and high == LARGEST_EXACT:
        info = np.iinfo(getattr(dtype, "numpy_dtype", dtype))
        low, high = float(info.min), np.nextafter(float(info.max), 0)
    if len(values) and not (low <= values.min() and values.max() <= high):
        whole = pd.api.types.is_integer_dtype(dtype) and np.abs(values).max() <= LARGEST_EXACT
        return values.astype(np.int64) if whole else values
    digits = getattr(getattr(dtype, "pyarrow_dtype", None), "scale", None)
    if digits is not None:  # a decimal, which does not round by itself
        import decimal

        exact = [decimal.Decimal(f"{value:.{digits}f}") for value in values]
        return pd.array(exact, dtype=dtype)
    return pd.Series(values).astype(dtype).array
