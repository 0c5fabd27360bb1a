"""The schema: what kind each column is, and the way from a DataFrame to plain arrays and back."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from vaca.errors import SchemaError, VacaWarning, did_you_mean
from vaca.graph.dag import CausalGraph

Kind = Literal["continuous", "binary", "categorical", "ordinal", "count"]
KINDS: tuple[Kind, ...] = ("continuous", "binary", "categorical", "ordinal", "count")

#: Encoded rows: column name -> array of shape (n,). Continuous and count columns are float64 in the
#: user's units; binary, categorical and ordinal ones are int64 codes into the column's levels.
Columns = dict[str, np.ndarray]

#: Whole numbers with at most this many distinct values are taken for category codes.
FEW_VALUES = 10
#: Whole non-negative numbers below this are taken for counts, above it for rounded measurements.
LARGE_COUNT = 1000
#: A text column with more levels than this, most of them seen once, is taken for an identifier.
MANY_LEVELS = 500


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
    """

    kind: Kind
    levels: tuple[Any, ...] = ()
    low: float | None = None
    high: float | None = None
    dtype: str = "float64"

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise SchemaError(f"unknown kind {self.kind!r}; {did_you_mean(self.kind, KINDS)}")
        if self.discrete and not self.levels:
            raise SchemaError(f"a {self.kind} column needs its levels")
        if self.kind == "binary" and len(self.levels) > 2:
            raise SchemaError(
                f"a binary column has 2 levels; got {len(self.levels)}: {list(self.levels[:5])}. "
                "Use 'categorical' or 'ordinal'"
            )
        if len(set(self.levels)) < len(self.levels):
            raise SchemaError(f"levels are listed twice: {list(self.levels)}")

    @property
    def discrete(self) -> bool:
        """Whether values are levels (binary, categorical, ordinal) and encoded as codes."""
        return self.kind in ("binary", "categorical", "ordinal")

    @property
    def numeric_levels(self) -> bool:
        """Whether the levels are numbers, so that a mean over them makes sense."""
        return all(isinstance(v, (int, float, np.number)) for v in self.levels)


class Schema(Mapping[str, Column]):
    """The kind, levels and range of every column that the graph names, in table order.

    Mostly made by `Schema.infer`, or left to an engine's `fit`, which calls it.

    Examples
    --------
    >>> import pandas as pd
    >>> df = pd.DataFrame({"sex": ["f", "m", "f"], "income": [1.5, 2.5, 0.5]})
    >>> schema = Schema.infer(df, CausalGraph.from_edges([("sex", "income")]))
    >>> schema["sex"].kind, schema["sex"].levels
    ('binary', ('f', 'm'))
    >>> schema.encode(df)["sex"]
    array([0, 1, 0])
    """

    def __init__(self, columns: Mapping[str, Column]) -> None:
        self._columns = dict(columns)

    # ------------------------------------------------------------------ making one

    @classmethod
    def infer(
        cls,
        data: Any,
        graph: CausalGraph,
        kinds: Mapping[str, Kind | Column] | None = None,
    ) -> Schema:
        """Decide the kind of each column that the graph names from its dtype and values.

        Rules, first match wins:

        ==================================================  =============================
        column                                              kind
        ==================================================  =============================
        named in `kinds`                                    as given
        bool                                                binary
        ordered pandas category                             ordinal
        other category, text: 2 levels / more               binary / categorical
        numbers with exactly 2 distinct whole values        binary
        whole numbers, 3 to 10 distinct                     categorical
        integer dtype, none negative, largest under 1000    count
        other numbers                                       continuous
        ==================================================  =============================

        Integer columns that come out continuous are rounded when they are given back. A constant
        column is accepted with a warning. Missing or infinite values are an error.
        """
        frame = as_frame(data)
        kinds = dict(kinds or {})
        known = set(graph.all_columns)
        for name in kinds:
            if name not in known:
                raise SchemaError(
                    f"a kind is given for {name!r}, which the graph does not name; "
                    f"{did_you_mean(name, graph.all_columns)}"
                )
        _check_present(frame, graph.all_columns)
        _check_missing(frame, graph.all_columns)
        if len(frame) == 0:
            raise SchemaError("the table has no rows")
        left_out = [str(c) for c in frame.columns if c not in known]
        if left_out:
            shown = ", ".join(repr(c) for c in left_out[:8]) + (", ..." if left_out[8:] else "")
            warnings.warn(
                f"{len(left_out)} column(s) that the graph does not name are left out: {shown}",
                VacaWarning,
                stacklevel=2,
            )
        columns: dict[str, Column] = {}
        for name in frame.columns:
            if name not in known:
                continue
            given = kinds.get(name)
            if isinstance(given, Column):
                columns[name] = replace(given, dtype=_dtype_name(frame[name]))
            else:
                columns[name] = _infer_column(str(name), frame[name], given)
        return cls(columns)

    def with_kinds(self, data: Any, **kinds: Kind) -> Schema:
        """A schema with some columns' kinds changed, their levels and ranges read off `data`."""
        frame = as_frame(data)
        changed = dict(self._columns)
        for name, kind in kinds.items():
            if name not in changed:
                raise SchemaError(f"unknown column {name!r}; {did_you_mean(name, changed)}")
            changed[name] = _infer_column(name, frame[name], kind)
        return Schema(changed)

    # ------------------------------------------------------------------ table <-> arrays

    def encode(self, data: Any) -> Columns:
        """The table's columns as plain arrays (see `Columns`); checks every value.

        Returns
        -------
        dict of str to ndarray of shape (n,)
        """
        frame = as_frame(data)
        _check_present(frame, self._columns)
        _check_missing(frame, self._columns)
        return {name: self.encode_column(name, frame[name]) for name in self._columns}

    def encode_column(self, name: str, values: Any) -> np.ndarray:
        """One column's values as an array of shape (n,); codes for discrete kinds."""
        column = self[name]
        series = values if isinstance(values, pd.Series) else pd.Series(values)
        if column.discrete:
            return _encode_levels(name, column, series)
        return _encode_numbers(name, column, series)

    def encode_value(self, name: str, value: Any) -> float | int:
        """One value of a column, encoded; text is also matched with numeric levels ("1" is 1)."""
        column = self[name]
        if column.discrete:
            for code, level in enumerate(column.levels):
                if level == value:
                    return code
            if isinstance(value, str):
                for code, level in enumerate(column.levels):
                    if str(level) == value:
                        return code
            raise SchemaError(
                f"{value!r} is not a level of {name!r}; {did_you_mean(value, column.levels)}"
            )
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise SchemaError(
                f"{name!r} is {column.kind}: a number is needed, got {value!r}"
            ) from None
        if not np.isfinite(number):
            raise SchemaError(f"{name!r} needs a finite number; got {value!r}")
        if column.kind == "count" and (number < 0 or number != round(number)):
            raise SchemaError(f"{name!r} is a count: a whole number >= 0 is needed, got {value!r}")
        return number

    def decode(self, columns: Mapping[str, np.ndarray], index: Any = None) -> pd.DataFrame:
        """A DataFrame in the user's units, dtypes, level names and column order."""
        data = {
            name: self.decode_column(name, columns[name])
            for name in self._columns
            if name in columns
        }
        return pd.DataFrame(data, index=index, copy=False)

    def decode_column(self, name: str, values: np.ndarray) -> Any:
        """One column's encoded values in the user's dtype and level names."""
        column = self[name]
        if column.discrete:
            if column.dtype in ("category", "ordered category"):
                return pd.Categorical.from_codes(
                    np.asarray(values),
                    categories=list(column.levels),
                    ordered=column.dtype == "ordered category",
                )
            dtype = None if column.numeric_levels else object
            levels = np.asarray(column.levels, dtype=dtype)
            return pd.Series(levels.take(np.asarray(values))).astype(column.dtype).array
        array = np.asarray(values, dtype=float)
        dtype = pd.api.types.pandas_dtype(column.dtype)
        if pd.api.types.is_integer_dtype(dtype):
            array = np.rint(array)
        if column.dtype == "float64":
            return array
        return pd.Series(array).astype(dtype).array

    # ------------------------------------------------------------------ as a value

    def kind(self, name: str) -> Kind:
        """The kind of a column."""
        return self[name].kind

    def levels(self, name: str) -> tuple[Any, ...]:
        """The levels of a discrete column, in code order; empty for the others."""
        return self[name].levels

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in table order."""
        return tuple(self._columns)

    def table(self) -> pd.DataFrame:
        """One row per column: its kind, levels or range, and dtype."""
        rows = []
        for name, c in self._columns.items():
            if c.discrete:
                shown = ", ".join(str(v) for v in c.levels[:6]) + (", ..." if c.levels[6:] else "")
            elif c.low is None:
                shown = ""
            else:
                shown = f"{c.low:.6g} to {c.high:.6g}"
            rows.append({"column": name, "kind": c.kind, "values": shown, "dtype": c.dtype})
        return pd.DataFrame(rows).set_index("column")

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """A JSON-able description; `from_dict` reads it back."""
        return {
            name: {k: list(v) if k == "levels" else v for k, v in asdict(c).items()}
            for name, c in self._columns.items()
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Mapping[str, Any]]) -> Schema:
        """The schema of a description made by `to_dict`."""
        fields = {}
        for name, given in data.items():
            unknown = set(given) - {"kind", "levels", "low", "high", "dtype"}
            if unknown or "kind" not in given:
                raise SchemaError(
                    f"column {name!r}: a description has kind and may have levels, low, high, "
                    f"dtype; got {sorted(given)}"
                )
            fields[name] = Column(**{**given, "levels": tuple(given.get("levels", ()))})
        return cls(fields)

    def __getitem__(self, name: str) -> Column:
        if name not in self._columns:
            raise SchemaError(f"unknown column {name!r}; {did_you_mean(name, self._columns)}")
        return self._columns[name]

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        return "Schema(" + ", ".join(f"{n}: {c.kind}" for n, c in self._columns.items()) + ")"


# ---------------------------------------------------------------------- from other frames


def as_frame(data: Any) -> pd.DataFrame:
    """A pandas DataFrame of a pandas or polars frame, or of what speaks their protocols."""
    if isinstance(data, pd.DataFrame):
        frame = data
    elif isinstance(data, Mapping):
        frame = pd.DataFrame(data)
    elif hasattr(data, "__arrow_c_stream__"):
        import pyarrow

        frame = pyarrow.table(data).to_pandas()
    elif hasattr(data, "__dataframe__"):
        import pyarrow.interchange

        frame = pyarrow.interchange.from_dataframe(data).to_pandas()
    else:
        raise SchemaError(
            f"a table is needed (pandas or polars DataFrame); got {type(data).__name__}"
        )
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise SchemaError(f"the table has two columns named {twice!r}; rename one")
    return frame


# ---------------------------------------------------------------------- one column


def _infer_column(name: str, series: pd.Series, kind: Kind | None) -> Column:
    if kind is not None and kind not in KINDS:
        raise SchemaError(f"column {name!r}: unknown kind {kind!r}; {did_you_mean(kind, KINDS)}")
    dtype = series.dtype
    if pd.api.types.is_datetime64_any_dtype(dtype) or pd.api.types.is_timedelta64_dtype(dtype):
        raise SchemaError(
            f"column {name!r} holds dates or times; turn it into a number (for example days since "
            "a fixed day) or a category first"
        )
    if pd.api.types.is_bool_dtype(dtype):
        return _level_column(name, series, kind or "binary", [False, True])
    if isinstance(dtype, pd.CategoricalDtype):
        levels = _plain(dtype.categories)
        if kind is None:
            kind = "ordinal" if dtype.ordered else "binary" if len(levels) == 2 else "categorical"
        if kind in ("continuous", "count"):
            return _number_column(name, series.astype(dtype.categories.dtype), kind)
        return _level_column(name, series, kind, levels)
    if not pd.api.types.is_numeric_dtype(dtype):
        distinct = series.unique()
        if len(distinct) > MANY_LEVELS and len(distinct) > len(series) / 2 and kind is None:
            raise SchemaError(
                f"column {name!r} has {len(distinct)} different texts in {len(series)} rows: an "
                "identifier or free text? Leave it out of the graph or group its values"
            )
        levels = _plain(sorted(distinct, key=str))
        if kind in ("continuous", "count"):
            return _number_column(name, series, kind)
        return _level_column(
            name, series, kind or ("binary" if len(levels) == 2 else "categorical"), levels
        )
    numbers = series.to_numpy(dtype=float)
    _check_finite(name, numbers, series.index)
    distinct = np.unique(numbers)
    whole = bool(np.all(distinct == np.rint(distinct)))
    if kind is None:
        kind = _number_kind(series, distinct, whole)
    if kind in ("continuous", "count"):
        return _number_column(name, series, kind)
    if len(distinct) > MANY_LEVELS:
        raise SchemaError(
            f"column {name!r} has {len(distinct)} different numbers, too many for {kind}; "
            "use 'continuous' or 'count'"
        )
    return _level_column(name, series, kind, _plain(pd.unique(series.sort_values())))


def _number_kind(series: pd.Series, distinct: np.ndarray, whole: bool) -> Kind:
    if whole and len(distinct) == 2:
        return "binary"
    if whole and 3 <= len(distinct) <= FEW_VALUES:
        return "categorical"
    is_integer = pd.api.types.is_integer_dtype(series.dtype)
    if is_integer and len(distinct) > 1 and distinct[0] >= 0 and distinct[-1] < LARGE_COUNT:
        return "count"
    return "continuous"


def _level_column(name: str, series: pd.Series, kind: Kind, levels: list[Any]) -> Column:
    if kind == "binary" and len(levels) > 2:
        raise SchemaError(
            f"column {name!r} cannot be binary: it has {len(levels)} levels, {levels[:5]}"
        )
    if len(levels) == 1:
        _warn_constant(name, levels[0])
    return Column(kind, tuple(levels), dtype=_dtype_name(series))


def _number_column(name: str, series: pd.Series, kind: Kind) -> Column:
    blank = Column(kind)
    values = _encode_numbers(name, blank, series)
    low, high = float(values.min()), float(values.max())
    if low == high:
        _warn_constant(name, low)
    return replace(blank, low=low, high=high, dtype=_dtype_name(series))


def _warn_constant(name: str, value: Any) -> None:
    warnings.warn(
        f"column {name!r} is constant (always {value!r}): nothing can be learned of what it causes "
        "or what causes it",
        VacaWarning,
        stacklevel=2,
    )


def _dtype_name(series: pd.Series) -> str:
    if isinstance(series.dtype, pd.CategoricalDtype):
        return "ordered category" if series.dtype.ordered else "category"
    return str(series.dtype)


def _plain(values: Iterable[Any]) -> list[Any]:
    """Plain Python values, so that levels can be written as JSON."""
    return [v.item() if isinstance(v, np.generic) else v for v in values]


def _first(index: pd.Index) -> Any:
    """The first label, plain, so that a message says `row 1` with any numpy."""
    return _plain(index[:1])[0]


def _encode_levels(name: str, column: Column, series: pd.Series) -> np.ndarray:
    if isinstance(series.dtype, pd.CategoricalDtype):
        positions = _match(column, _plain(series.dtype.categories))
        codes = positions[series.cat.codes.to_numpy()]
    else:
        inverse, distinct = pd.factorize(series)
        codes = _match(column, _plain(distinct))[inverse]
    unseen = codes < 0
    if unseen.any():
        bad = series[unseen]
        value = _plain(bad.iloc[:1])[0]
        raise SchemaError(
            f"column {name!r}, row {_first(bad.index)!r}: {value!r} is not one of its levels "
            f"({int(unseen.sum())} such row(s)); {did_you_mean(value, column.levels)}"
        )
    return codes


def _match(column: Column, values: list[Any]) -> np.ndarray:
    position = {level: code for code, level in enumerate(column.levels)}
    return np.array([position.get(v, -1) for v in values], dtype=np.int64)


def _encode_numbers(name: str, column: Column, series: pd.Series) -> np.ndarray:
    if pd.api.types.is_numeric_dtype(series.dtype):
        values = series.to_numpy(dtype=float)
    else:
        converted = pd.to_numeric(series, errors="coerce")
        bad = series[converted.isna().to_numpy()]
        if len(bad):
            raise SchemaError(
                f"column {name!r} is {column.kind}, but row {_first(bad.index)!r} holds "
                f"{bad.iloc[0]!r} ({len(bad)} such row(s)); a number is needed"
            )
        values = converted.to_numpy(dtype=float)
    _check_finite(name, values, series.index)
    if column.kind == "count":
        wrong = (values < 0) | (values != np.rint(values))
        if wrong.any():
            raise SchemaError(
                f"column {name!r} is a count, but row {_first(series.index[wrong])!r} holds "
                f"{values[wrong][0]:g} ({int(wrong.sum())} such row(s)); whole numbers >= 0 are "
                "needed, or the kind 'continuous'"
            )
    return values


# ---------------------------------------------------------------------- checks


def _check_finite(name: str, values: np.ndarray, index: pd.Index) -> None:
    wrong = ~np.isfinite(values)
    if wrong.any():
        raise SchemaError(
            f"column {name!r} has {int(wrong.sum())} infinite or missing value(s), the first in "
            f"row {_first(index[wrong])!r}; remove or replace them"
        )


def _check_present(frame: pd.DataFrame, wanted: Iterable[str]) -> None:
    missing = [c for c in wanted if c not in frame.columns]
    if missing:
        raise SchemaError(
            f"the table has no column {missing[0]!r}"
            + (f" (nor {len(missing) - 1} other(s): {missing[1:6]})" if missing[1:] else "")
            + f"; {did_you_mean(missing[0], frame.columns)}"
        )


def _check_missing(frame: pd.DataFrame, wanted: Iterable[str]) -> None:
    counts = {c: int(frame[c].isna().sum()) for c in wanted}
    counts = {c: k for c, k in counts.items() if k}
    if counts:
        shown = ", ".join(f"{c!r} ({k})" for c, k in counts.items())
        raise SchemaError(
            f"missing values in {shown}; drop these rows (df.dropna()) or fill them in first"
        )
