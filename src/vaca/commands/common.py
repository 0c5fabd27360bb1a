"""What several commands share: finding the model, reading `--do`, tables in and out."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vaca.errors import InterventionError, VacaError, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

    from vaca.model import CausalModel

ModelArgument = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A saved model's folder, or the name of a built-in SCM (see `vaca scms`).",
        show_default=False,
    ),
]
DoOption = Annotated[
    list[str] | None,
    typer.Option(
        "--do",
        metavar="COLUMN=VALUE",
        help="Set a column: `x2=0.5`, `sex=female`; or shift it: `age+=5`. May be repeated.",
        show_default=False,
    ),
]
SeedOption = Annotated[
    int | None,
    typer.Option(help="Same seed, same numbers.", show_default="a new one each time"),
]
OutOption = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        help="File to write: .csv, .parquet or .feather.",
        show_default="CSV on the terminal",
    ),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace --out if it exists.")]

FORMATS = (".csv", ".parquet", ".feather")


def load_model(name: str) -> CausalModel:
    """Give the SCM of that name, or the model saved in that folder."""
    from vaca import scms

    if name in scms.names():
        return scms.load(name)
    if Path(name).exists():
        import vaca

        return vaca.load(name)
    raise VacaError(
        f"{name!r} is neither a built-in SCM nor a saved model's folder; "
        f"{did_you_mean(name, scms.names())}"
    )


def parse_do(texts: Iterable[str] | None, model: CausalModel) -> dict[str, Any]:
    """Turn `--do` texts into the `do` of the library.

    `column=value` sets, `column+=delta` and `column-=delta` shift. The columns of a node of several
    are gathered under the node.
    """
    from vaca import Shift

    graph = model.graph
    result: dict[str, Any] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        sign = name[-1:] if name[-1:] in ("+", "-") else ""
        name, value = name.removesuffix(sign).strip(), value.strip()
        if not equals or not name or not value:
            raise InterventionError(
                f"--do {text}: write COLUMN=VALUE to set a column or COLUMN+=DELTA to shift it"
            )
        if name not in graph.all_columns:
            raise InterventionError(
                f"--do {text}: there is no column {name!r}; {did_you_mean(name, graph.all_columns)}"
            )
        if sign:
            delta = _number(value, text, name)
            answer: Any = Shift(-delta if sign == "-" else delta)
        else:
            answer = value  # the library reads it as a number or a level, by the column's kind
        node = graph.node_of(name)
        if graph.columns(node) == (node,):
            slot = result
        else:
            slot = result.setdefault(node, {})
        if name in slot:
            raise InterventionError(f"--do {text}: {name!r} is set twice; keep one of the two")
        slot[name] = answer
    return result


def _number(value: str, text: str, name: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise InterventionError(
            f"--do {text}: {value!r} is not a number, and column {name!r} holds numbers"
        ) from None


def read_table(path: Path) -> pd.DataFrame:
    """Give the table of a .csv, .parquet or .feather file."""
    import pandas as pd

    suffix = _format(path)
    if path.is_dir():
        raise VacaError(f"{path} is a folder; give a file ({', '.join(FORMATS)})")
    if not path.exists():
        raise VacaError(f"{path}: no such file")
    try:
        if suffix == ".csv":
            return pd.read_csv(path, encoding="utf-8-sig")
        return pd.read_parquet(path) if suffix == ".parquet" else pd.read_feather(path)
    except UnicodeDecodeError:
        raise VacaError(f"{path}: not UTF-8 text; save it as UTF-8") from None
    except pd.errors.EmptyDataError:
        raise VacaError(f"{path}: empty file; its first line must name the columns") from None
    except pd.errors.ParserError as error:
        raise VacaError(f"{path}: not a CSV file that can be read: {_line(error)}") from None
    except ImportError:
        raise
    except (ValueError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise VacaError(f"{path}: not a {suffix} file that can be read: {_line(error)}") from None


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _format(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise VacaError(
            f"{path}: unknown kind of file {path.suffix!r}; end its name in {', '.join(FORMATS)}"
        )
    return suffix


def check_out(path: Path | None, force: bool) -> None:
    """Refuse an output that cannot be written before any work is done."""
    if path is None:
        return
    _format(path)
    check_writable(path, force)


def check_writable(path: Path, force: bool) -> None:
    """Refuse a file that exists (unless forced) or whose folder is missing."""
    if path.is_dir():
        raise VacaError(f"--out {path} is a folder; give the name of a file")
    if path.exists() and not force:
        raise VacaError(f"--out {path} exists already; give another name, or --force to replace it")
    if not path.parent.is_dir():
        raise VacaError(f"--out {path}: there is no folder {path.parent}; make it first")


def write_table(table: pd.DataFrame, path: Path | None, *, index: bool = False) -> None:
    """Write a table to a file, or as CSV to the terminal when there is no file.

    The file appears under its name only when it is complete.
    """
    if path is None:
        try:
            table.to_csv(sys.stdout, index=index)
        except BrokenPipeError:  # `vaca sample ... | head` closes the pipe early
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return
    suffix = _format(path)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
        part = Path(folder) / path.name
        if suffix == ".csv":
            table.to_csv(part, index=index)
        elif suffix == ".parquet":
            table.to_parquet(part, index=index)
        else:
            (table.reset_index() if index else table.reset_index(drop=True)).to_feather(part)
        os.replace(part, path)
    note(f"wrote {len(table):,} rows to {path}")


def note(text: str) -> None:
    """Say something on stderr, so that stdout holds the answer alone."""
    typer.echo(text, err=True)
