"""One column of a table: its kind, and the way from a Series to an array of numbers or codes."""

from __future__ import annotations

import decimal
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from vaca.errors import SchemaError, did_you_mean, shorten
from vaca.table.dtypes import (
    DATE,
    LARGEST_EXACT,
    TIME,
    days,
    dtype_name,
    dtype_range,
    holds_dates,
    number_array,
    read_dtype,
)
from vaca.table.words import shown_number

Kind = Literal["continuous", "binary", "categorical", "ordinal", "count"]
KINDS: tuple[Kind, ...] = ("continuous", "binary", "categorical", "ordinal", "count")

#: Beyond this, squares and their sums are infinite, and below its inverse they are 0.
LARGEST = 1e150
#: The code of a value that is missing from a column with levels; in other columns it is NaN. Both
#: occur only where gaps are allowed (`missing=True`).
GAP = -1


@dataclass(frozen=True)
class Column:
    """What is known of one column.

    Attributes
    ----------
    kind : {"continuous", "binary", "categorical", "ordinal", "count"}
    levels : tuple
        The values a binary, categorical or ordinal column may take, in code order.
    low, high : float, optional
        The observed range of a continuous or count column; None if no data was seen.
    dtype : str
        The pandas dtype to give back.
    missing : int
        How many values were missing in the data that the column was read from.
    unit : str
        Of a continuous or count column: shown with its numbers in answers.
    other : str
        Of a categorical column: the level that every text not listed counts as.
    """

    kind: Kind
    levels: tuple[Any, ...] = ()
    low: float | None = None
    high: float | None = None
    dtype: str = "float64"
    missing: int = 0
    unit: str = ""
    other: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or self.kind not in KINDS:
            raise SchemaError(f"unknown kind {self.kind!r}; {did_you_mean(self.kind, KINDS)}")
        if isinstance(self.levels, str | bytes) or not isinstance(self.levels, Iterable):
            raise SchemaError(f"levels are a list; got {shorten(self.levels)}")
        object.__setattr__(self, "levels", tuple(plain(self.levels)))
        for level in self.levels:
            # What JSON and TOML can write and give back; NaN is a missing value and no level.
            if not isinstance(level, (str, int, float)) or level != level:
                raise SchemaError(
                    f"a level is a text, a number or a truth value; got {shorten(level)} "
                    f"({type(level).__name__}). Turn the column into text or numbers first"
                )
            if isinstance(level, str):
                _check_text(level)
            elif not abs(level) <= LARGEST:
                raise SchemaError(
                    f"a level that is a number is at most {LARGEST:g}; got {shorten(level)}. Turn "
                    "the column into text first"
                )
        if self.discrete and not self.levels:
            raise SchemaError(f"a {self.kind} column needs its levels")
        if self.kind == "binary" and len(self.levels) > 2:
            raise SchemaError(
                f"a binary column has 2 levels; got {len(self.levels)}: "
                f"{shorten(list(self.levels[:5]))}. Use 'categorical' or 'ordinal'"
            )
        if not isinstance(self.unit, str) or (self.unit and self.discrete):
            raise SchemaError(f"a unit is a text, of a column of numbers; got {shorten(self.unit)}")
        if self.other and (self.kind != "categorical" or self.other not in self.levels):
            raise SchemaError(
                f"`other` is one of the levels of a categorical column; got {shorten(self.other)}"
            )
        if len({isinstance(v, bool) for v in self.levels if not isinstance(v, str)}) > 1:
            raise SchemaError(
                f"levels are truth values or numbers, not both, as True is 1 to Python; got "
                f"{shorten(list(self.levels))}. Turn the column into text first"
            )
        if len(set(self.levels)) < len(self.levels):
            raise SchemaError(f"levels are listed twice: {shorten(list(self.levels))}")

    @property
    def discrete(self) -> bool:
        """Whether values are levels (binary, categorical, ordinal) and encoded as codes."""
        return self.kind in ("binary", "categorical", "ordinal")

    @property
    def numeric_levels(self) -> bool:
        """Whether the levels are numbers, so that a mean over them makes sense."""
        return all(isinstance(v, (int, float, np.number)) for v in self.levels)

    @property
    def dates(self) -> bool:
        """Whether values are dates, which are encoded as days since 1970-01-01."""
        return not self.discrete and self.dtype in (DATE, TIME)

    def outside(self, values: np.ndarray) -> np.ndarray:
        """Which encoded values (n,) lie outside the observed range; never those of levels.

        >>> Column("continuous", low=0.0, high=1.0).outside(np.array([0.5, 2.0])).tolist()
        [False, True]
        """
        if self.discrete or self.low is None or self.high is None:
            return np.zeros(np.shape(values), dtype=bool)
        return (values < self.low) | (values > self.high)

    def stored_dtype(self, series: pd.Series) -> str:
        """The name of the dtype in which values of this column are given back."""
        name = dtype_name(series)
        return str(series.dtype) if self.discrete and name in (DATE, TIME) else name

    def shown(self, value: float | None) -> str:
        """A number of the column as text: as a date if the column holds dates."""
        if value is None:
            return ""
        if not self.dates:
            return shown_number(value, 6)
        text = str(number_array(np.array([value]), self.dtype)[0]).replace("T", " ")
        return text[:10] if self.dtype == DATE else text

    # ------------------------------------------------------------------ values <-> numbers

    def encode(self, name: str, series: pd.Series, missing: bool = False) -> np.ndarray:
        """The values (n,) as numbers or codes; `name` is used in error messages."""
        if self.discrete:
            return _encode_levels(name, self, series, missing)
        return _encode_numbers(name, self, series, missing)

    def encode_value(self, name: str, value: Any) -> float | int:
        """One value, encoded; text is also matched with levels that are numbers ("1" is 1)."""
        if self.discrete:
            return self._code(name, value)
        if self.dates and not isinstance(value, (int, float, np.number)):
            value = self._day(name, value)
        try:
            if isinstance(value, bytes):
                raise TypeError  # Python would read them as text
            number = float(value)
        except (TypeError, ValueError):
            raise SchemaError(
                f"{name!r} is {self.kind}: a number is needed, got {shorten(value)}"
            ) from None
        except OverflowError:
            raise SchemaError(f"{name!r}: the number is too large to compute with") from None
        if not np.isfinite(number):
            raise SchemaError(f"{name!r} needs a finite number; got {shorten(value)}")
        if "decimal" in self.dtype and isinstance(value, decimal.Decimal):
            self._check_digits(name, value, number)
        if abs(number) > LARGEST:
            raise SchemaError(
                f"{name!r}: {number:g} is too large to compute with; at most {LARGEST:g}"
            )
        if self.kind == "count" and (number < 0 or number != round(number)):
            raise SchemaError(
                f"{name!r} is a count: a whole number >= 0 is needed, got {shorten(value)}"
            )
        return number

    @staticmethod
    def _check_digits(name: str, value: decimal.Decimal, number: float) -> None:
        if decimal.Decimal(repr(number)) != value:
            raise SchemaError(
                f"{name!r}: {shorten(value)} has more digits than are computed with (15)"
            )

    def _day(self, name: str, value: Any) -> float:
        """A date, or a number of days as text, in days."""
        number = _as_number(value) if isinstance(value, str) else None
        if number is not None:
            return number
        try:
            one = pd.Series([value])
            if holds_dates(one):
                return float(days(one)[0])
        except (TypeError, ValueError, OverflowError):
            pass
        raise SchemaError(
            f"{name!r} holds dates: one such as 2020-01-31 is needed, got {shorten(value)}"
        )

    def _code(self, name: str, value: Any) -> int:
        for code, level in enumerate(self.levels):
            if level is value or (type(level) is type(value) and level == value):
                return code
        for code, level in enumerate(self.levels):
            if level == value:
                return code
        if isinstance(value, str):
            text = value.strip()
            number = _as_number(text)
            for code, level in enumerate(self.levels):
                same = str(level) == text or (
                    isinstance(level, bool) and str(level).lower() == text
                )
                if same or (number is not None and not isinstance(level, str) and level == number):
                    return code
        together = f". All levels not listed count as {self.other!r}." if self.other else ""
        numbers = all(type(level) is int for level in self.levels)
        if numbers and len(self.levels) > 2 and _as_number(str(value).strip()) is not None:
            together += f'. If {name!r} is a count, say kind "count" in the schema.'
        raise SchemaError(
            f"{shorten(value)} is not a level of {name!r}; {did_you_mean(value, self.levels)}"
            + together
        )

    def decode(self, values: np.ndarray) -> Any:
        """Encoded values in the user's dtype and level names."""
        if self.discrete:
            if self.dtype in ("category", "ordered category"):
                return pd.Categorical.from_codes(
                    np.asarray(values),
                    categories=list(self.levels),
                    ordered=self.dtype == "ordered category",
                )
            dtype = None if self.numeric_levels else object
            levels = np.asarray(self.levels, dtype=dtype)
            return pd.Series(levels.take(np.asarray(values))).astype(read_dtype(self.dtype)).array
        return number_array(np.asarray(values, dtype=float), self.dtype)

    def check_holds(self, name: str, values: np.ndarray) -> None:
        """Refuse numbers that the column's dtype cannot hold exactly, such as 300 in an int8."""
        low, high = (-np.inf, np.inf) if self.discrete else dtype_range(self.dtype)
        wrong = values[(values < low) | (values > high)]
        if len(wrong):
            raise SchemaError(
                f"{wrong[0]:.17g} does not fit in {name!r}: a column of {self.dtype} holds "
                f"{low:.17g} to {high:.17g}" + (" exactly" if abs(high) == LARGEST_EXACT else "")
            )


def _check_text(level: str) -> None:
    try:
        level.encode()
    except UnicodeEncodeError:
        raise SchemaError(
            f"a level is text that can be written; {shorten(level)} holds half of a character"
        ) from None


def _as_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _encode_levels(name: str, column: Column, series: pd.Series, missing: bool) -> np.ndarray:
    if isinstance(series.dtype, pd.CategoricalDtype):
        inverse, distinct = series.cat.codes.to_numpy(), list(series.dtype.categories)
    else:
        try:
            inverse, distinct = pd.factorize(series)
        except (TypeError, NotImplementedError):  # lists, dicts, structs
            raise SchemaError(
                f"column {name!r} holds {type(series.iloc[0]).__name__} values, which cannot be "
                "levels"
            ) from None
    position = {level: code for code, level in enumerate(column.levels)}
    unlisted = position[column.other] if column.other else -2
    codes = np.array([position.get(v, unlisted) for v in plain(distinct)] + [GAP], dtype=np.int64)
    codes = codes[inverse]  # a gap has the code -1: the last one
    unseen = codes < (GAP if missing else 0)
    if unseen.any():
        bad = series[unseen]
        value = plain(bad.iloc[:1])[0]
        raise SchemaError(
            f"column {name!r}, row {first(bad.index)!r}: {shorten(value)} is not one of its levels "
            f"({int(unseen.sum())} such row(s)); {did_you_mean(value, column.levels)}"
        )
    return codes


def _encode_numbers(name: str, column: Column, series: pd.Series, missing: bool) -> np.ndarray:
    gaps = series.isna().to_numpy() if missing else np.zeros(len(series), dtype=bool)
    if pd.api.types.is_complex_dtype(series.dtype):
        raise SchemaError(f"column {name!r} is {column.kind}, but holds complex numbers")
    if pd.api.types.is_numeric_dtype(series.dtype):
        values = series.to_numpy(dtype=float, na_value=np.nan)
    else:
        if column.dates:
            converted = pd.Series(days(series))
        else:
            converted = pd.to_numeric(series, errors="coerce")
        bad = series[converted.isna().to_numpy() & ~gaps]
        if len(bad):
            raise SchemaError(
                f"column {name!r} is {column.kind}, but row {first(bad.index)!r} holds "
                f"{shorten(bad.iloc[0])} ({len(bad)} such row(s)); a "
                + ("date such as 2020-01-31 is needed" if column.dates else "number is needed")
            )
        values = converted.to_numpy(dtype=float)
    known = ~gaps if gaps.any() else slice(None)
    check_finite(name, values[known], series.index[known])
    if column.kind == "count":
        with np.errstate(invalid="ignore"):
            wrong = (values < 0) | ((values != np.rint(values)) & ~gaps)
        if wrong.any():
            raise SchemaError(
                f"column {name!r} is a count, but row {first(series.index[wrong])!r} holds "
                f"{values[wrong][0]:g} ({int(wrong.sum())} such row(s)); whole numbers >= 0 are "
                "needed, or the kind 'continuous'"
            )
    return values


def check_finite(name: str, values: np.ndarray, index: pd.Index) -> None:
    """Refuse values that are not finite, and numbers too large to square."""
    wrong = ~np.isfinite(values)
    if wrong.any():
        raise SchemaError(
            f"column {name!r} has {int(wrong.sum())} infinite or missing value(s), the first in "
            f"row {first(index[wrong])!r}; remove or replace them"
        )
    large = np.abs(values) > LARGEST
    if large.any():
        raise SchemaError(
            f"column {name!r}, row {first(index[large])!r}: {values[large][0]:g} is too large to "
            f"compute with (at most {LARGEST:g}); use another unit"
        )


def plain(values: Iterable[Any]) -> list[Any]:
    """Plain Python values, so that levels can be written as JSON."""
    return [v.item() if isinstance(v, np.generic) else v for v in values]


def first(index: pd.Index) -> Any:
    """The first label, plain, so that a message says `row 1` with any numpy."""
    return plain(index[:1])[0]
