"""Write tables to files, all or nothing: CSV, Parquet and Feather.

A file that is written appears under its name only when it is complete; until then it has a
temporary name beside it, which is removed when something goes wrong.
"""

from __future__ import annotations

import csv
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from vaca.errors import VacaError
from vaca.graph.parts import check_path
from vaca.table.atomic import complete

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

FORMATS = (".csv", ".parquet", ".feather")


def table_format(path: str | Path) -> str:
    """The kind of a table's file by its ending.

    >>> table_format("people.CSV")
    '.csv'
    """
    suffix = check_path(path).suffix.lower()
    if suffix not in FORMATS:
        raise VacaError(
            f"{path}: unknown kind of file {Path(path).suffix!r}; end its name in "
            f"{', '.join(FORMATS)}"
        )
    return suffix


def csv_quoting(frame: pd.DataFrame) -> Any:
    """How a table is quoted in CSV: all of its text, if some holds a carriage return.

    Python before 3.13 writes that bare, and readers take it for the end of a row.
    """
    import pandas as pd

    texts = [c for c in frame.columns if not pd.api.types.is_numeric_dtype(frame[c].dtype)]
    values = (v for c in texts for v in pd.unique(frame[c]))
    bare = any("\r" in v for v in (*map(str, frame.columns), *values) if isinstance(v, str))
    return csv.QUOTE_NONNUMERIC if bare else csv.QUOTE_MINIMAL


class TableWriter:
    """Writes a table to a file piece by piece; use it in a `with` block.

    The file appears under its name when the block ends without an error.

    Examples
    --------
    >>> import pandas as pd, tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with TableWriter(folder / "a.parquet") as writer:
    ...     writer.write(pd.DataFrame({"x": [1, 2]}))
    ...     writer.write(pd.DataFrame({"x": [3]}))
    >>> pd.read_parquet(folder / "a.parquet")["x"].tolist()
    [1, 2, 3]
    """

    def __init__(self, path: str | Path) -> None:
        self.path = check_path(path)
        self.format = table_format(self.path)
        self.rows = 0
        self._file: Any = None
        self._schema: Any = None

    def __enter__(self) -> TableWriter:
        self._complete = complete(self.path)
        self._part = self._complete.__enter__()
        return self

    def write(self, frame: pd.DataFrame) -> None:
        """Add rows; the first ones decide the columns and their types. The index is left out."""
        if self.format == ".csv":
            frame.to_csv(
                self._part,
                mode="a",
                header=self.rows == 0,
                index=False,
                lineterminator="\n",
                quoting=csv_quoting(frame),
            )
        else:
            import pyarrow as pa

            try:
                table = pa.Table.from_pandas(frame, schema=self._schema, preserve_index=False)
            except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
                raise VacaError(
                    f"{self.path}: the types of row {self.rows} and on differ from those before: "
                    f"{' '.join(str(error).split())}. Give the column one type, or write .csv"
                ) from None
            if self._file is None:
                self._schema = table.schema
                self._file = self._start(table.schema)
            self._file.write_table(table)
        self.rows += len(frame)

    def _start(self, schema: pa.Schema) -> Any:
        if self.format == ".parquet":
            import pyarrow.parquet as pq

            return pq.ParquetWriter(self._part, schema)
        import pyarrow.ipc as ipc

        return ipc.new_file(self._part, schema, options=ipc.IpcWriteOptions(compression="lz4"))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        if self._file is not None:
            try:
                self._file.close()  # the end of the file, which may also not fit on the disk
            except OSError as late:
                if error is None:
                    kind, error, trace = type(late), late, late.__traceback__
        return self._complete.__exit__(kind, error, trace)


def write_table(frame: pd.DataFrame, path: str | Path, *, index: bool = False) -> None:
    """Write a whole table, all or nothing; with `index`, its index as the first columns."""
    with TableWriter(path) as writer:
        writer.write(frame.reset_index() if index else frame)
