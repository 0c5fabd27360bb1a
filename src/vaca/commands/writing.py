"""Where a command writes to: refused before any work is done, or written whole."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from vaca.commands.options import PICTURES
from vaca.commands.terminal import note, print_csv
from vaca.errors import VacaError

if TYPE_CHECKING:
    import pandas as pd


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
    """Refuse a file that exists (unless forced), or whose folder is missing or not writable."""
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
    """Refuse a path whose folder cannot be written to, by trying."""
    from vaca.table.atomic import try_to_write

    try:
        try_to_write(path)
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
