"""`vaca init`: starting files for a table of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vaca.commands.options import ForceOption
from vaca.commands.terminal import echo
from vaca.commands.writing import check_writable
from vaca.errors import SchemaError, VacaError, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

    from vaca.table.schema import Column

DataArgument = Annotated[
    Path,
    typer.Argument(
        metavar="DATA", help="Your table: .csv, .parquet or .feather.", show_default=False
    ),
]

_GRAPH_HEAD = """\
# What causes what: one `cause -> effect` per line. `#` starts a comment.
#
# Draw an arrow where changing the first would change the second, directly: not through another
# column that is listed too. Ask of each pair which comes first; what comes later causes nothing
# before it. An arrow left out is the strong claim: it says that there is no direct effect.
#
# Columns in braces are a block: they are modelled together, and the graph does not say what
# causes what among them. To ask about one of them, take it out and draw its arrows:
#
#     {{age, education}} -> treatment -> outcome
#
# Delete what should not be in the model. What the treatment itself changes does not belong in the
# block: it comes after the treatment. Look at the graph with:  vaca graph show {0}

"""


def init(
    data: DataArgument,
    treatment: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="The column you could intervene on.", show_default="a guess"
        ),
    ] = None,
    outcome: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column it might affect.", show_default="a guess"),
    ] = None,
    folder: Annotated[
        Path, typer.Option(help="Where graph.txt and schema.toml go.", show_default="here")
    ] = Path("."),
    force: ForceOption = False,
) -> None:
    """Write a starting graph and schema for your table.

    graph.txt proposes one treatment, one outcome, and all other columns as a block of causes of
    both, for you to correct; schema.toml says what kind each column was taken for. Columns that
    cannot be used (identifiers, constants) are left out, with the reason; those with gaps
    are kept.

    Example: vaca init data.csv --treatment treat --outcome income
    """
    from vaca.table.files import complete, read_table
    from vaca.table.roles import guess_roles
    from vaca.table.schema import Schema
    from vaca.table.suspects import copies_in, copies_words
    from vaca.table.toml import schema_text

    frame = read_table(data)
    graph_file, schema_file = folder / "graph.txt", folder / "schema.toml"
    for path in (graph_file, schema_file):
        if path.exists() and not force:
            raise VacaError(f"{path} exists already; edit it, or give --force to start again")
        check_writable(path, force=True, option="--folder")
    columns, left_out = describe(frame)
    if not columns:
        reason = "; ".join(f"{name!r}: {why}" for name, why in left_out.items())
        raise VacaError(f"{data}: no column can be used ({reason})")
    _check_role("--treatment", treatment, columns, left_out)
    _check_role("--outcome", outcome, columns, left_out)
    roles = guess_roles(columns, treatment, outcome)
    gaps = {name: int(frame[name].isna().sum()) for name in columns}
    gaps = {name: count for name, count in gaps.items() if count}
    text = _GRAPH_HEAD.format(graph_file.name) + _proposal(list(columns), *roles)
    for name, count in gaps.items():
        text += f"# {name}: {count:,} of {len(frame):,} values are missing\n"
    text += "".join(f"# {name}: left out, {why}\n" for name, why in left_out.items())
    copies = [] if roles[0] is None else copies_in(frame, Schema(columns), roles[0])
    copies = [name for name in copies if name != roles[1]]
    text += "".join(f"# {name}: a copy of {roles[0]}? Then delete it above\n" for name in copies)
    with complete(graph_file) as part:
        part.write_text(text, encoding="utf-8")
    with complete(schema_file) as part:
        part.write_text(schema_text(Schema(columns), left_out), encoding="utf-8")
    _tell(frame, columns, left_out, gaps)
    guessed = [
        f"{what} {name}"
        for what, name, given in zip(
            ("treatment", "outcome"), roles, (treatment, outcome), strict=True
        )
        if given is None and name is not None
    ]
    if guessed:
        echo(f"\nGuessed: {', '.join(guessed)}. If that is wrong, say --treatment, --outcome.")
    if copies:
        echo(f"\nWarning: {copies_words(copies, str(roles[0]))}")
    _tell_next(data, graph_file, schema_file, bool(gaps))


def _check_role(
    option: str, name: str | None, columns: dict[str, Column], left_out: dict[str, str]
) -> None:
    if name is None or name in columns:
        return
    if name in left_out:
        raise VacaError(f"{option} {name}: it cannot be used, {left_out[name]}")
    raise VacaError(f"{option} {name}: there is no such column; {did_you_mean(name, columns)}")


def _proposal(names: list[str], treatment: str | None, outcome: str | None) -> str:
    """The lines of a graph: all other columns as a block of causes of treatment and outcome."""
    from textwrap import fill

    from vaca.graph.text import quote

    rest = [name for name in names if name not in (treatment, outcome)]
    if treatment is None or outcome is None:
        return "".join(f"{quote(name)}\n" for name in names)
    cause, effect = quote(treatment), quote(outcome)
    if not rest:
        return f"{cause} -> {effect}\n\n"
    if len(rest) == 1:
        head = group = quote(rest[0])
    else:
        group = "covariates"
        while group in names:
            group = f"other {group}"
        listed = fill(
            ", ".join(quote(name).replace(" ", "\x00") for name in rest),
            width=96,
            initial_indent="    ",
            subsequent_indent="    ",
            break_long_words=False,
            break_on_hyphens=False,
        ).replace("\x00", " ")
        head = f"{group}: {{\n{listed}\n}}"
    return f"{head}\n{group} -> {cause} -> {effect}\n{group} -> {effect}\n\n"


def _tell(
    frame: pd.DataFrame, columns: dict[str, Column], left_out: dict[str, str], gaps: dict[str, int]
) -> None:
    echo(f"{len(frame):,} rows, {len(columns)} columns to use, {len(left_out)} left out.")
    for name, why in left_out.items():
        echo(f"  {name}: left out, {why}")
    dates = [name for name, column in columns.items() if column.dates]
    if dates:
        echo(f"Dates, counted in days: {', '.join(dates)}.")
    for name, column in columns.items():
        if column.other:
            echo(
                f"{name}: too many levels; the {len(column.levels) - 1} most frequent are kept, "
                f"all others count as {column.other!r}."
            )
    if gaps:
        touched = int(frame[list(gaps)].isna().any(axis=1).sum())
        shown = ", ".join(f"{name} ({count:,})" for name, count in list(gaps.items())[:8])
        more = f" and {len(gaps) - 8} more" if len(gaps) > 8 else ""
        echo(
            f"Values are missing in {len(gaps)} column(s): {shown}{more};\n"
            f"{touched:,} of {len(frame):,} rows have a gap."
        )


def _tell_next(data: Path, graph_file: Path, schema_file: Path, gaps: bool) -> None:
    from shlex import quote

    echo(
        f"\nWrote {graph_file} and {schema_file}. Next: correct the arrows in {graph_file},\n"
        f"look through {schema_file}, then type\n\n"
        f"  vaca fit {quote(str(data))} --graph {quote(str(graph_file))} "
        f"--schema {quote(str(schema_file))} --out model" + (" --missing model" if gaps else "")
    )


def describe(frame: pd.DataFrame) -> tuple[dict[str, Column], dict[str, str]]:
    """What each column was taken for, and why some cannot be used."""
    import warnings

    from vaca.graph.dag import CausalGraph
    from vaca.table.files import check_numbers
    from vaca.table.schema import Schema
    from vaca.table.suspects import why_identifier

    columns: dict[str, Column] = {}
    left_out: dict[str, str] = {}
    for name in map(str, frame.columns):
        seen = frame[name].dropna()
        identifier = why_identifier(seen)
        if seen.nunique() == 0:
            left_out[name] = "it is empty"
        elif seen.nunique() == 1:
            left_out[name] = "it is constant"
        elif identifier:
            left_out[name] = identifier
        else:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    check_numbers(frame[[name]])
                    found = Schema.infer(frame[[name]], CausalGraph({name: []}), missing=True)
                columns[name] = found[name]
            except SchemaError as error:
                left_out[name] = str(error).removeprefix(f"column {name!r} ")
    return columns, left_out
