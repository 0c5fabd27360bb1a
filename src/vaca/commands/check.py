"""`vaca check`: can a model be relied on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vaca.commands.options import FixedSeedOption, ForceOption, ModelArgument
from vaca.commands.reading import load_model, without_gaps
from vaca.commands.terminal import echo, note
from vaca.commands.writing import check_writable
from vaca.errors import VacaError


def check(
    model: ModelArgument,
    data: Annotated[
        Path, typer.Argument(help="The table it was fitted to, or another.", show_default=False)
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Also write a page: .html.", show_default=False),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Only the graph and the fit, in seconds.")
    ] = False,
    seed: FixedSeedOption = 0,
    force: ForceOption = False,
) -> None:
    """Check a model: its graph, its fit, what can be asked.

    Prints a line for each part, the arrows that deserve a second look, and last the verdict: good,
    doubtful or bad. If DATA is the file that the model was fitted to, the fit is measured on
    the rows that were held out.

    Example: vaca check model data.csv --out check.html
    """
    if out is not None:
        if out.suffix.lower() not in (".html", ".htm"):
            raise VacaError(f"--out {out}: end its name in .html")
        check_writable(out, force)
    source = load_model(model)
    from vaca.commands.report import held_out_rows
    from vaca.table.files import read_table
    from vaca.trust.check import check as look

    table = read_table(data, source.schema_)
    held_out = held_out_rows(Path(model), data, table)
    table = without_gaps(source, table)
    held_out = None if held_out is None else without_gaps(source, held_out)
    found = look(source, table, held_out=held_out, quick=quick, seed=seed)
    lines = str(found).splitlines()
    for line in lines[:-1]:
        echo(line)
    if len(found.graph.arrows):
        echo("\nArrows that deserve a second look (hints; the graph is yours):")
        for number, words in enumerate(found.graph.arrows["words"].head(5), start=1):
            echo(f"{number}. {words}")
        echo("")
    if out is not None:
        note(f"wrote {found.to_html(out)}; open it in a browser")
    echo(lines[-1])
