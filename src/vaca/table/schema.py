"""The schema: what kind each column is, and the way from a DataFrame to plain arrays and back."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pandas as pd

from vaca.errors import SchemaError, VacaWarning, did_you_mean, shorten
from vaca.graph.dag import CausalGraph
from vaca.table.column import KINDS, Column, Kind
from vaca.table.columns import Columns
from vaca.table.infer import check_levels, infer_column

__all__ = ["KINDS", "Column", "Columns", "Kind", "Schema", "as_frame"]


class Schema(Mapping[str, Column]):
    """The kind, levels and range of every column that the graph names, in table order.

    Usually made by `Schema.infer`, which an engine's `fit` calls.

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
        if not isinstance(columns, Mapping):
            raise SchemaError(
                f"a schema is a dict from column to Column; got {type(columns).__name__}"
            )
        for name, column in columns.items():
            if not isinstance(column, Column):
                raise SchemaError(
                    f"column {shorten(name)}: a Column is needed; got {shorten(column)}"
                )
        self._columns = dict(columns)

    # ------------------------------------------------------------------ making one

    @classmethod
    def infer(
        cls,
        data: Any,
        graph: CausalGraph,
        kinds: Mapping[str, Kind | Column] | None = None,
        *,
        missing: bool = False,
    ) -> Schema:
        """Decide the kind of each column that the graph names from its dtype and values.

        Rules, first match wins:

        ==================================================  =============================
        column                                              kind
        ==================================================  =============================
        named in `kinds`                                    as given
        dates, also as text such as 2020-01-31              continuous, in days
        bool                                                binary
        ordered pandas category                             ordinal
        other category, text: 2 levels / more               binary / categorical
        numbers with exactly 2 distinct whole values        binary
        whole numbers, 3 to 10 distinct                     categorical
        integers, none negative, largest under 1000         count
        other numbers                                       continuous
        ==================================================  =============================

        Integer columns that come out continuous are rounded when they are given back. A constant
        column is accepted with a warning. Infinite values are an error, and so are missing ones,
        unless `missing` says that they are expected: then `Column.missing` counts them.
        """
        frame = as_frame(data)
        if kinds is not None and not isinstance(kinds, Mapping):
            raise SchemaError(
                "the kinds of columns are a dict like {'age': 'continuous'}; got "
                f"{type(kinds).__name__}"
            )
        kinds = dict(kinds or {})
        known = set(graph.all_columns)
        for name in kinds:
            if name not in known:
                raise SchemaError(
                    f"a kind is given for {name!r}, which the graph does not name; "
                    f"{did_you_mean(name, graph.all_columns)}"
                )
        _check_present(frame, graph.all_columns)
        if not missing:
            _check_missing({name: frame[name] for name in graph.all_columns})
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
            if isinstance(given, Column) and given.unit and given.low is None:
                found = infer_column(str(name), frame[name], given.kind)
                columns[name] = replace(found, unit=given.unit)
            elif isinstance(given, Column):
                check_levels(name, given.levels)
                gaps = int(frame[name].isna().sum())
                columns[name] = replace(given, dtype=given.stored_dtype(frame[name]), missing=gaps)
            else:
                columns[name] = infer_column(str(name), frame[name], given)
        return cls(columns)

    def with_kinds(self, data: Any, **kinds: Kind) -> Schema:
        """A schema with some columns' kinds changed, their levels and ranges read off `data`."""
        frame = as_frame(data)
        changed = dict(self._columns)
        for name, kind in kinds.items():
            if name not in changed:
                raise SchemaError(f"unknown column {name!r}; {did_you_mean(name, changed)}")
            changed[name] = infer_column(name, frame[name], kind)
        return Schema(changed)

    # ------------------------------------------------------------------ table <-> arrays

    def encode(self, data: Any, missing: bool = False) -> Columns:
        """The table's columns as plain arrays (see `Columns`); checks every value.

        Missing values are an error, unless `missing` is set: then they are NaN, and -1 in columns
        with levels.

        Returns
        -------
        dict of str to ndarray of shape (n,)
        """
        frame = as_frame(data)
        _check_present(frame, self._columns)
        found = {name: frame[name] for name in self._columns}
        if not missing:
            _check_missing(found)
        return {name: c.encode(name, found[name], missing) for name, c in self._columns.items()}

    def encode_column(self, name: str, values: Any) -> np.ndarray:
        """One column's values as an array of shape (n,); codes for discrete kinds."""
        series = values if isinstance(values, pd.Series) else pd.Series(values)
        return self[name].encode(name, series)

    def encode_value(self, name: str, value: Any) -> float | int:
        """One value of a column, encoded; text is also matched with numeric levels ("1" is 1)."""
        return self[name].encode_value(name, value)

    def check_holds(self, name: str, values: np.ndarray) -> None:
        """Refuse numbers that the column's dtype cannot hold exactly."""
        self[name].check_holds(name, values)

    def decode(self, columns: Mapping[str, np.ndarray], index: Any = None) -> pd.DataFrame:
        """A DataFrame in the user's units, dtypes, level names and column order."""
        data = {n: c.decode(columns[n]) for n, c in self._columns.items() if n in columns}
        for name in data:
            if self[name].dtype == "object":  # or pandas takes text for a dtype of its own
                data[name] = pd.Series(data[name], index=index, dtype=object)
        return pd.DataFrame(data, index=index, copy=False)

    def decode_column(self, name: str, values: np.ndarray) -> Any:
        """One column's encoded values in the user's dtype and level names."""
        return self[name].decode(values)

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
                shown = f"{c.shown(c.low)} to {c.shown(c.high)}"
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
        if not isinstance(data, Mapping):
            raise SchemaError(f"a description of a schema is a dict; got {shorten(data)}")
        for name, given in data.items():
            known = set(Column.__dataclass_fields__)
            if not isinstance(given, Mapping):
                raise SchemaError(f"column {name!r}: its description is a dict")
            if set(given) - known or "kind" not in given:
                raise SchemaError(
                    f"column {name!r}: a description has kind and may have levels, low, high, "
                    f"dtype, missing, unit, other; got {sorted(given)}"
                )
            fields[name] = Column(**{**given, "levels": tuple(given.get("levels", ()))})
        return cls(fields)

    def __getitem__(self, name: str) -> Column:
        if not isinstance(name, str) or name not in self._columns:
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
    """A pandas DataFrame of a pandas or polars frame, or of another with their protocols."""
    if isinstance(data, pd.DataFrame):
        frame = data
    elif isinstance(data, pd.Series):
        raise SchemaError(
            "a table is needed, and this is one row or column of it; write df.iloc[[0]] or "
            "df[['age']], with two brackets"
        )
    elif isinstance(data, Mapping):
        try:
            frame = pd.DataFrame(data)
        except (ValueError, TypeError) as error:
            raise SchemaError(
                f"the dict is not a table: {error}; give a list of the same length for each column"
            ) from None
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
    if isinstance(frame.columns, pd.MultiIndex):
        raise SchemaError(
            f"the names of the columns have {frame.columns.nlevels} levels; join them into one "
            "name each"
        )
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise SchemaError(f"the table has two columns named {twice!r}; rename one")
    return frame


# ---------------------------------------------------------------------- checks


def _check_present(frame: pd.DataFrame, wanted: Iterable[str]) -> None:
    missing = [c for c in wanted if c not in frame.columns]
    if missing:
        raise SchemaError(
            f"the table has no column {missing[0]!r}"
            + (f" (nor {len(missing) - 1} other(s): {missing[1:6]})" if missing[1:] else "")
            + f"; {did_you_mean(missing[0], frame.columns)}"
        )


def _check_missing(columns: Mapping[str, pd.Series]) -> None:
    def gaps(column: pd.Series) -> int:
        if column.dtype == np.float64:  # most columns are, and pandas takes its time
            return int(np.count_nonzero(np.isnan(column.to_numpy())))
        return int(column.isna().sum())

    counts = {name: gaps(column) for name, column in columns.items()}
    counts = {c: k for c, k in counts.items() if k}
    if counts:
        shown = ", ".join(f"{c!r} ({k})" for c, k in counts.items())
        raise SchemaError(
            f"missing values in {shown}; fit with missing='drop', which leaves such rows out, or "
            "missing='model', which learns from them and answers for them"
        )
