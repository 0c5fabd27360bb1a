"""`vaca report`: one page about a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vaca.commands.effect import _against, outcome_levels
from vaca.commands.options import DoOption, FixedSeedOption, ForceOption, ModelArgument
from vaca.commands.reading import columns_of, load_model, parse_do, without_gaps
from vaca.commands.terminal import note
from vaca.commands.writing import check_writable
from vaca.errors import VacaError
from vaca.table.progress import progress_bar

if TYPE_CHECKING:
    import pandas as pd

    from vaca.show.report import Question


def report(
    model: ModelArgument,
    data: Annotated[
        Path,
        typer.Option(help="The table it was fitted to, or another like it.", show_default=False),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write: .html.")] = Path(
        "report.html"
    ),
    do: DoOption = None,
    against: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=VALUE", help="What to compare --do with.", show_default=False),
    ] = None,
    on: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Outcomes of --do.", show_default="what it reaches"),
    ] = None,
    level: Annotated[
        str | None,
        typer.Option(
            help="For outcomes with levels: the one whose probability is meant.", show_default=False
        ),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Heading of the page.")] = None,
    seed: FixedSeedOption = 0,
    force: ForceOption = False,
) -> None:
    """Write one page about a model, with pictures.

    The page is a single file that needs no network; it reads on a phone and prints to PDF. If
    --data is the file that the model was fitted to, it is scored on the rows that were held out.
    With --do the page also shows that intervention in full.

    Example: vaca report model --data data.csv --out report.html
    """
    if out.suffix.lower() not in (".html", ".htm"):
        raise VacaError(f"--out {out}: end its name in .html")
    check_writable(out, force)
    source = load_model(model)
    from vaca.show.report import Question, write_report
    from vaca.table.files import read_table

    question: Question | None = None
    if do:
        names = columns_of(on, source, "--on")
        levels = outcome_levels(source, names, level) if names else {}
        question = Question(parse_do(do, source), _against(against, source), names, levels)
    elif on or against or level:
        raise VacaError("--on, --level and --against belong to an intervention: add --do")
    table = read_table(data, source.schema_)
    held_out = held_out_rows(Path(model), data, table)
    table = without_gaps(source, table)
    held_out = None if held_out is None else without_gaps(source, held_out)
    with progress_bar("scoring and drawing"):
        write_report(
            source,
            table,
            out,
            held_out=held_out,
            question=question,
            title=title or f"{Path(model).name}: a causal model of {data.name}",
            seed=seed,
        )
    note(f"wrote {out}; open it in a browser")


def held_out_rows(folder: Path, data: Path, table: pd.DataFrame) -> Any:
    """The rows that a saved model was not fitted to, if this is the file it came from."""
    from vaca.commands.fit import NOTES, fingerprint, split

    path = folder / NOTES
    if not path.is_file():
        return None
    try:
        notes = json.loads(path.read_text(encoding="utf-8"))
        same = notes["sha256"] == fingerprint(data) and notes["rows"] == len(table)
        return split(table, notes["holdout"], notes["seed"])[1] if same else None
    except (ValueError, KeyError, TypeError, ArithmeticError, RecursionError):
        return None  # notes that somebody changed
