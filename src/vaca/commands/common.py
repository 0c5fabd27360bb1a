"""What several commands share: finding the model, reading `--do`, tables in and out."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vaca.errors import InterventionError, VacaError, did_you_mean, visible

if TYPE_CHECKING:
    import pandas as pd
    from rich.progress import Progress

    from vaca.model.causal_model import CausalModel

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
        help="File to write: .csv, .parquet or .feather; or a folder.",
        show_default="CSV on the terminal",
    ),
]
#: Of commands that print a table of their own: the file holds more than the terminal shows.
AlsoOutOption = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", help="Also keep it: .csv, .parquet or .feather.", show_default=False
    ),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]

JobsOption = Annotated[int, typer.Option(min=1, help="Processes that share the files of a folder.")]
ClusterOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="A Dask scheduler whose workers do it: tcp://HOST:8786.",
        show_default="this machine",
    ),
]

PICTURES = (".png", ".svg", ".pdf")
PlotOption = Annotated[
    Path | None,
    typer.Option("--plot", help="Also draw it: .png, .svg or .pdf.", show_default=False),
]


def load_model(name: str) -> CausalModel:
    """Give the SCM of that name, or the model saved in that folder."""
    from vaca.scm import library as scms

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

    `column=value` sets, `column+=delta` and `column-=delta` shift. Where the name of a column holds
    such a mark itself (`k = 1`), the longest name that fits is meant.
    """
    from vaca import Shift

    graph = model.graph
    result: dict[str, Any] = {}
    for text in texts or ():
        name, sign, value = _split_do(text, graph.all_columns)
        if not name or not value:
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
        if name in result:
            raise InterventionError(f"--do {text}: {name!r} is set twice; keep one of the two")
        result[name] = answer
    return result


def _split_do(text: str, known: Iterable[str]) -> tuple[str, str, str]:
    """The column, the sign of a shift ("" to set) and the value of a `--do`."""
    for name in sorted(known, key=len, reverse=True):
        if text.strip().startswith(name):
            rest = re.fullmatch(r"\s*([+-]?)=(.*)", text.strip()[len(name) :], re.DOTALL)
            if rest:
                return name, rest[1], rest[2].strip()
    name, equals, value = text.partition("=")
    sign = name[-1:] if name[-1:] in ("+", "-") else ""
    return name.removesuffix(sign).strip(), sign, value.strip() if equals else ""


def _number(value: str, text: str, name: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise InterventionError(
            f"--do {text}: {value!r} is not a number, and column {name!r} holds numbers"
        ) from None


def check_out(path: Path | None, force: bool) -> None:
    """Refuse an output that cannot be written before any work is done."""
    if path is None:
        return
    from vaca.table.files import table_format

    table_format(path)
    check_writable(path, force)


def folder_of_answers(
    out: Path | None, jobs: int, cluster: str | None, source: Path | None = None
) -> bool:
    """Whether --out is a folder of Parquet files; more than one process can write nothing else."""
    shared = jobs > 1 or cluster is not None
    meant = shared or (source is not None and source.is_dir())
    if out is not None and not out.suffix and meant:
        check_folder(out, "--out")
        return True
    if shared:
        option = "--jobs" if cluster is None else "--cluster"
        raise VacaError(
            f"{option} writes a folder of .parquet files: give --out a name without an ending"
        )
    return False


def check_writable(path: Path, force: bool, option: str = "--out") -> None:
    """Refuse a file that exists (unless forced), or whose folder is missing or closed to us."""
    if path.is_dir():
        raise VacaError(f"{option} {path} is a folder; give the name of a file")
    if path.exists() and not force:
        raise VacaError(
            f"{option} {path} exists already; give another name, or --force to replace it"
        )
    if not path.parent.is_dir():
        raise VacaError(f"{option} {path}: there is no folder {path.parent}; make it first")
    check_folder(path, option)


def check_folder(path: Path, option: str) -> None:
    """Refuse a path beside which nothing can be written, by trying."""
    import tempfile

    try:
        os.rmdir(tempfile.mkdtemp(prefix=".vaca-", dir=path.absolute().parent))
    except OSError as error:
        raise VacaError(
            f"{option} {path}: nothing can be written to the folder {path.absolute().parent} "
            f"({error.strerror}); choose another"
        ) from None


def check_plot(path: Path | None, force: bool) -> None:
    """Refuse a picture that cannot be written before any work is done."""
    if path is None:
        return
    if path.suffix.lower() not in PICTURES:
        raise VacaError(f"--plot {path}: unknown kind of picture; use {', '.join(PICTURES)}")
    check_writable(path, force, "--plot")


def draw(picture: Any, path: Path | None) -> None:
    """Write a picture, if one was asked for."""
    if path is not None:
        from vaca.show.plot import save_picture

        note(f"drew {save_picture(picture, path)}")


def without_gaps(model: Any, frame: pd.DataFrame) -> pd.DataFrame:
    """Rows without missing values, left out or filled as the model was fitted."""
    if not frame[[c for c in model.schema_ if c in frame]].isna().any(axis=None):
        return frame
    import numpy as np

    from vaca.engines.missing import complete_rows

    return model.schema_.decode(complete_rows(model, frame, np.random.default_rng(0)))


def columns_of(names: list[str] | None, model: CausalModel, option: str) -> list[str]:
    """Check the columns that an option names."""
    for name in names or ():
        if name not in model.schema_:
            raise VacaError(
                f"{option} {name}: there is no such column; "
                f"{did_you_mean(name, model.schema_.columns)}"
            )
    return list(names or ())


def show_table(frame: pd.DataFrame, digits: int = 4) -> None:
    """Print a frame as a plain table that fits 80 columns."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(visible(str(frame.index.name or "")), no_wrap=False, overflow="fold")
    numeric = {name: frame[name].dtype.kind in "fiu" for name in frame.columns}
    for name in frame.columns:
        right = numeric[name] or all(str(value).endswith("%") for value in frame[name])
        table.add_column(visible(str(name)).replace("_", " "), justify="right" if right else "left")
    for label, row in frame.iterrows():
        table.add_row(
            visible(str(label)),
            *(
                number_text(row[n], digits) if numeric[n] else visible(str(row[n]))
                for n in frame.columns
            ),
        )
    Console(highlight=False, markup=False, emoji=False).print(table)


def number_text(value: float, digits: int) -> str:
    """A number for a table: separators, and no digits that say nothing; empty if there is none."""
    from vaca.table.words import shown_number

    if value != value:
        return ""
    return shown_number(value, digits) if abs(value) < 10**digits else f"{value:,.0f}"


#: Seconds before a bar appears: what is quicker needs none.
DELAY = 2.0
#: The bar on the screen, if any: words on stderr must go through it, or the two collide.
_bars: list[Progress] = []


@contextmanager
def counting(
    label: str, total: int | None = None, *, unit: str = "rows", shown: bool = True
) -> Iterator[Callable[[int], None]]:
    """Give a function to call with how much is done; on a terminal it moves a bar on stderr.

    The bar leaves stdout alone, whatever that leads to: the answer is there.
    """
    if not (shown and sys.stderr.isatty()):
        yield lambda done: None
        return
    from threading import Timer

    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    counted = (BarColumn(), TextColumn(f"{{task.completed:,.0f}} {unit}"), TimeRemainingColumn())
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        *(counted if total is not None else ()),
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    task = bar.add_task(label, total=total)
    timer = Timer(DELAY, bar.start)
    timer.daemon = True
    _bars.append(bar)
    timer.start()
    try:
        yield lambda done: bar.advance(task, done)
    finally:
        timer.cancel()
        timer.join()
        bar.stop()
        _bars.remove(bar)


@contextmanager
def busy(label: str) -> Iterator[None]:
    """Show on a terminal that something is being done, where it cannot be counted."""
    with counting(label):
        yield


def stdout_is_a_file() -> bool:
    """Whether rows on stdout go to a file; on a terminal or through a pipe a bar would collide."""
    try:
        return stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode)
    except (OSError, ValueError):  # closed, or not a real file (a test, a notebook)
        return False


def write_table(
    table: pd.DataFrame, path: Path | None, *, index: bool = False, header: bool = True
) -> None:
    """Write a table to a file, or as CSV to the terminal when there is no file.

    The file appears under its name only when it is complete.
    """
    if path is None:
        print_csv(table, index=index, header=header)
        return
    from vaca.table.files import write_table as write

    write(table, path, index=index)
    note(f"wrote {len(table):,} rows to {path}")


def print_csv(table: pd.DataFrame, *, index: bool = False, header: bool = True) -> bool:
    """Write CSV to stdout: as it is, but for a terminal; give whether somebody still reads it."""
    try:
        if sys.stdout.isatty():
            sys.stdout.write(visible(table.to_csv(index=index, header=header)))
        else:
            table.to_csv(sys.stdout, index=index, header=header)
        sys.stdout.flush()
    except BrokenPipeError:  # `vaca sample ... | head` closes the pipe early
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True


def echo(text: object = "") -> None:
    """Print a line of an answer, whatever is in it."""
    typer.echo(visible(str(text)))


def note(text: str) -> None:
    """Say something on stderr, so that stdout holds the answer alone."""
    with suppress(OSError):  # nobody can hear it: the work goes on
        _note(visible(text))


def _note(text: str) -> None:
    if _bars:
        _bars[-1].console.print(
            fitted(text, sys.stderr), markup=False, highlight=False, soft_wrap=True
        )
    else:
        typer.echo(fitted(text, sys.stderr), err=True)


def say(text: str) -> None:
    """Print words of an answer; a terminal breaks them between words, not within."""
    typer.echo(fitted(visible(text), sys.stdout))


def fitted(text: str, stream: Any) -> str:
    """The text in lines that fit a terminal; as it is, if the stream is none.

    >>> import io
    >>> fitted("as it is", io.StringIO())
    'as it is'
    """
    if not stream.isatty():
        return text
    import textwrap
    from shutil import get_terminal_size

    width = get_terminal_size().columns
    lines = []
    for line in text.split("\n"):
        indent = line[: len(line) - len(line.lstrip())]
        lines += textwrap.wrap(
            line,
            width,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        ) or [""]
    return "\n".join(lines)
