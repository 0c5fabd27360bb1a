"""Tables in files: CSV, Parquet and Feather, read whole or piece by piece (see also `writing`)."""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from vaca.errors import SchemaError, VacaError
from vaca.graph.parts import check_path
from vaca.table.schema import Schema
from vaca.table.writing import FORMATS, TableWriter, complete, table_format, write_table

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "FORMATS",
    "TableReader",
    "TableWriter",
    "complete",
    "parquet_files",
    "read_table",
    "table_format",
    "write_table",
]

#: Rows that are read at once when a file is read piece by piece.
CHUNK = 65_536
#: What stands for a missing value in a CSV file. "None" does not: it is a common level.
MISSING = ["", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL"]
_SEPARATORS = (",", ";", "\t", "|")


# ---------------------------------------------------------------------- reading


class TableReader:
    """A table in a file, to be read piece by piece.

    CSV files may start with a byte-order mark, and may be separated by comma, semicolon, tab or
    bar, whichever splits the first line into the most parts; with semicolons, numbers may have a
    decimal comma. They must be UTF-8 (or UTF-16 with its mark).

    Parameters
    ----------
    path : path
        A .csv, .parquet or .feather file, or a folder of .parquet files: one table, in the order
        of their names.
    columns : sequence of str, optional
        Read only these; by default all.
    schema : Schema, optional
        Columns whose levels are text are then read as text, even if all values look like numbers.

    Attributes
    ----------
    columns : list of str
        The names of the columns of the file.
    rows : int or None
        How many rows there are; None if that is not known before they are read (CSV).
    """

    columns: list[str]
    rows: int | None

    def __init__(
        self,
        path: str | Path,
        columns: Sequence[str] | None = None,
        schema: Schema | None = None,
    ) -> None:
        self.path = check_path(path)
        if self.path.is_dir():
            self.format, self._files = ".parquet", parquet_files(self.path)
        else:
            self.format, self._files = table_format(self.path), [self.path]
        if not self.path.exists():
            raise VacaError(f"{path}: no such file")
        if not self.path.is_dir() and not self.path.is_file():
            raise VacaError(f"{path}: not a file but a pipe or a device; save its rows to a file")
        if self.path.stat().st_size == 0:
            raise VacaError(f"{path}: empty file; its first line must name the columns")
        self._wanted = columns
        self._schema = schema
        self._csv: dict[str, Any] = {}
        with self._explained():
            self._open()
        twice = [c for i, c in enumerate(self.columns) if c in self.columns[:i]]
        if twice:
            raise VacaError(f"{path}: two columns are named {twice[0]!r}; rename one")

    def _open(self) -> None:
        if self.format == ".csv":
            self._csv = _sniff(self.path)
            self.columns, self.rows = self._csv.pop("columns"), None
        elif self.format == ".parquet":
            import pyarrow.parquet as pq

            self.rows = 0
            for place in self._files:
                with pq.ParquetFile(place) as file:
                    names = file.schema_arrow.names
                    self.rows += file.metadata.num_rows
                names = [n for n in names if not n.startswith("__index_level_")]
                if place is self._files[0]:
                    self.columns = names
                elif set(names) != set(self.columns):
                    raise VacaError(
                        f"{place}: its columns are not those of {self._files[0].name}; the files "
                        "of a folder are one table and have the same columns"
                    )
        else:
            import pyarrow.ipc as ipc

            with ipc.open_file(self.path) as file:
                self.columns = list(file.schema.names)
                self.rows = sum(file.get_batch(i).num_rows for i in range(file.num_record_batches))

    def read(self) -> pd.DataFrame:
        """The whole table at once."""
        pieces = list(self.chunks(10_000_000))
        return pieces[0] if len(pieces) == 1 else pd.concat(pieces, ignore_index=True)

    def chunks(self, size: int = CHUNK) -> Iterator[pd.DataFrame]:
        """The table as frames of at most `size` rows, whose index counts the rows of the file."""
        start = 0
        with self._explained():
            for frame in self._pieces(size):
                if not len(frame):
                    continue
                frame.index = pd.RangeIndex(start, start + len(frame))
                start += len(frame)
                yield frame
        self.rows = start
        if start == 0:
            raise VacaError(f"{self.path}: no rows, only the names of the columns")

    def _pieces(self, size: int) -> Iterator[pd.DataFrame]:
        names = None
        if self._wanted is not None:
            names = [c for c in self.columns if c in set(self._wanted)]
        if self.format == ".csv":
            with pd.read_csv(
                self.path,
                chunksize=size,
                index_col=False,
                keep_default_na=False,
                na_values=MISSING,
                dtype=self._text_columns(),
                low_memory=False,
                **self._csv,
            ) as reader:
                # Not `usecols`, with which rows that are too long would be cut silently.
                for frame in reader:
                    yield frame if names is None else frame[names]
        elif self.format == ".parquet":
            import pyarrow.parquet as pq

            for place in self._files:
                with pq.ParquetFile(place, memory_map=True) as file:
                    for batch in file.iter_batches(size, columns=names or self.columns):
                        yield _to_pandas(batch)
        else:
            import pyarrow as pa
            import pyarrow.ipc as ipc

            with pa.memory_map(str(self.path)) as source, ipc.open_file(source) as file:
                for i in range(file.num_record_batches):
                    batch = file.get_batch(i).select(names or self.columns)
                    for a in range(0, batch.num_rows, size):
                        yield _to_pandas(batch.slice(a, size))

    def _text_columns(self) -> dict[str, Any] | None:
        if self._schema is None:
            return None
        return {
            name: str
            for name, column in self._schema.items()
            if column.discrete and all(isinstance(v, str) for v in column.levels)
        }

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn a reader's error into one sentence that names the file."""
        with warnings.catch_warnings():
            # Rows longer than the header would be cut short with this warning alone.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            try:
                yield
            except UnicodeDecodeError as error:
                raise VacaError(_not_utf8(self.path, error)) from None
            except pd.errors.EmptyDataError:
                raise VacaError(
                    f"{self.path}: empty file; its first line must name the columns"
                ) from None
            except (pd.errors.ParserWarning, pd.errors.ParserError) as error:
                raise VacaError(f"{self.path}: {self._why_unreadable(error)}") from None
            except VacaError:
                raise
            except Exception as error:
                known = (ValueError, OSError, OverflowError, csv.Error)
                if isinstance(error, OSError) and error.errno is not None:
                    raise
                if self.format == ".csv" and not isinstance(error, known):
                    raise
                # pyarrow raises many kinds of errors for damaged files.
                raise VacaError(
                    f"{self.path}: not a {self.format} file that can be read: {_line(error)[:300]}"
                ) from None

    def _why_unreadable(self, error: BaseException) -> str:
        with self.path.open(encoding=self._csv["encoding"], newline="") as file:
            rows = csv.reader(file, delimiter=self._csv["sep"])
            for row in rows:
                if len(row) > len(self.columns):
                    return (
                        f"line {rows.line_num} has {len(row)} fields, the first line names "
                        f"{len(self.columns)} columns; quote values that hold the separator"
                    )
        return f"not a CSV file that can be read: {_line(error)}"


def parquet_files(folder: str | Path) -> list[Path]:
    """The Parquet files of a folder, in the order of their names; hidden ones are left out."""
    found = sorted(p for p in Path(folder).glob("*.parquet") if p.name[0] not in "._")
    if not found:
        raise VacaError(
            f"{folder} is a folder without .parquet files; give a file ({', '.join(FORMATS)}) or "
            "a folder of .parquet files"
        )
    return found


def read_table(path: str | Path, schema: Schema | None = None) -> pd.DataFrame:
    """The table of a .csv, .parquet or .feather file; see `TableReader` for what is understood."""
    return TableReader(path, schema=schema).read()


def check_numbers(frame: pd.DataFrame, but: Iterable[str] = ()) -> None:
    """Refuse a text column most of whose cells are numbers: one bad cell made it text."""
    known = set(but)
    for name in frame.columns:
        series = frame[name]
        if name in known or not pd.api.types.is_string_dtype(series.dtype):
            continue
        values = series.dropna()
        text = values[pd.to_numeric(values, errors="coerce").isna()]
        if len(text) and len(text) < 0.5 * len(values) and values.nunique() > 10:
            raise SchemaError(
                f"column {name!r} holds numbers, but row {text.index[0]} (counted from 0) holds "
                f"the text {text.iloc[0]!r} ({len(text)} such row(s)); correct it, or say in a "
                'schema file that its kind is "categorical"'
            )


def _to_pandas(batch: pa.RecordBatch) -> pd.DataFrame:
    # A damaged file can point outside itself: reading there would crash the process.
    batch.validate(full=True)
    return batch.to_pandas()


#: How compressed files begin.
_PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zX": "xz"}


def _sniff(path: Path) -> dict[str, Any]:
    """The encoding, separator and decimal mark of a CSV file, and its column names."""
    with path.open("rb") as file:
        head = file.read(4)
    packed = next((name for start, name in _PACKED.items() if head.startswith(start)), None)
    if packed and path.suffix == ".csv":
        raise VacaError(f"{path}: compressed with {packed}, not text; decompress it first")
    encoding = "utf-16" if head[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    with path.open(encoding=encoding, newline="") as file:
        lines = []
        for line in file:
            if line.strip():
                lines.append(line)
            if len(lines) == 50:
                break
    if not lines:
        raise VacaError(f"{path}: empty file; its first line must name the columns")
    if "\x00" in lines[0]:
        raise VacaError(f"{path}: not a text file; is it a spreadsheet? Save it as CSV")
    separator = max(_SEPARATORS, key=lambda s: (len(_cut(lines, s)[0]), -_SEPARATORS.index(s)))
    names, *rest = _cut(lines, separator)
    columns = [c.strip() for c in names]
    cells = [cell for row in rest for cell in row]
    comma = separator != "," and any(re.fullmatch(r"\s*-?\d+,\d+\s*", cell) for cell in cells)
    columns = [c or f"Unnamed: {i}" for i, c in enumerate(columns)]
    return {
        "encoding": encoding,
        "sep": separator,
        "decimal": "," if comma else ".",
        "columns": columns,
        "names": columns if len(set(columns)) == len(columns) else None,
        "header": 0,
        "skip_blank_lines": True,
    }


def _cut(lines: list[str], separator: str) -> list[list[str]]:
    """The cells of these lines, row by row; a cell in quotes may go over several lines."""
    return list(csv.reader(lines, delimiter=separator)) or [[]]


def _not_utf8(path: Path, error: UnicodeDecodeError) -> str:
    where = ""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as inner:
                where = f" (byte 0x{line[inner.start]:02x} in line {number})"
                break
    del error
    return (
        f"{path}: not UTF-8 text{where}, perhaps Latin-1; save it as UTF-8, for example with "
        f"`iconv -f latin1 -t utf-8 {path.name}`"
    )


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())
