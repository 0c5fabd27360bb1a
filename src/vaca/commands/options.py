"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
#: Of commands whose answer is to be the same at every call.
FixedSeedOption = Annotated[int, typer.Option(min=0, help="Same seed, same numbers.")]
RowsOption = Annotated[int, typer.Option("-n", "--rows", min=2, help="Rows to draw.")]
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
        "--out",
        "-o",
        help="Also write it to a file: .csv, .parquet or .feather.",
        show_default=False,
    ),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]
JobsOption = Annotated[int, typer.Option(min=1, help="Processes that share the files of a folder.")]
ClusterOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="A Dask scheduler whose workers do the work: tcp://HOST:8786.",
        show_default="this machine",
    ),
]
PICTURES = (".png", ".svg", ".pdf")
PlotOption = Annotated[
    Path | None,
    typer.Option("--plot", help="Also draw it: .png, .svg or .pdf.", show_default=False),
]
