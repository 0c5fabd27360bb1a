"""Words, tables and bars: what a person sees of a command."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import typer

from vaca.errors import visible
from vaca.table.progress import screen_of_the_bar

if TYPE_CHECKING:
    import pandas as pd

#: Of lines, whatever COLUMNS says.
NARROWEST = 40


def stdout_is_a_file() -> bool:
    """Whether rows on stdout go to a file; on a terminal or through a pipe a bar would collide."""
    try:
        return stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode)
    except (OSError, ValueError):  # closed, or not a real file (a test, a notebook)
        return False


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
    console = Console(highlight=False, markup=False, emoji=False)
    # A terminal that calls itself narrower than a name would show nothing at all.
    Console(highlight=False, markup=False, emoji=False, width=max(console.width, NARROWEST)).print(
        table
    )


def number_text(value: float, digits: int) -> str:
    """A number for a table: separators, and no digits that say nothing; empty if there is none."""
    from vaca.table.words import shown_number

    if value != value:
        return ""
    return shown_number(value, digits) if abs(value) < 10**digits else f"{value:,.0f}"


def print_csv(table: pd.DataFrame, *, index: bool = False, header: bool = True) -> bool:
    """Write CSV to stdout, made safe for a terminal; False if nobody reads it any more."""
    from vaca.table.writing import csv_quoting

    try:
        if sys.stdout.isatty():
            sys.stdout.write(visible(table.to_csv(index=index, header=header)))
        else:
            how = csv_quoting(table)
            table.to_csv(sys.stdout, index=index, header=header, quoting=how)
        sys.stdout.flush()
    except BrokenPipeError:  # `vaca sample ... | head` closes the pipe early
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True


def echo(text: object = "") -> None:
    """Print a line of an answer, whatever is in it."""
    typer.echo(visible(str(text)))


def note(text: str) -> None:
    """Say something on stderr, so that stdout holds only the answer."""
    with suppress(OSError):  # stderr is closed: the work goes on
        _note(visible(text))


def _note(text: str) -> None:
    screen = screen_of_the_bar()
    if screen is not None:
        screen.print(fitted(text, sys.stderr), markup=False, highlight=False, soft_wrap=True)
    else:
        typer.echo(fitted(text, sys.stderr), err=True)


def say(text: str) -> None:
    """Print words of an answer; a terminal breaks them between words, not within."""
    typer.echo(fitted(visible(text), sys.stdout))


def fitted(text: str, stream: Any) -> str:
    """The text in lines that fit a terminal; unchanged if the stream is not one.

    >>> import io
    >>> fitted("as it is", io.StringIO())
    'as it is'
    """
    if not stream.isatty():
        return text
    import textwrap
    from shutil import get_terminal_size

    width = max(get_terminal_size().columns, NARROWEST)
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
