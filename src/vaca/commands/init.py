"""`vaca init`: starting files for a table of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vaca.commands.common import ForceOption, check_writable
from vaca.errors import SchemaError, VacaError

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
#     {0} -> {1}
#     {0} -> {1} -> {2}            several arrows in a row
#     group: {1}, {2}              columns that belong together, as one node
#
# A name alone on its line is a node without arrows yet. Delete what should not be in the model.
# Look at it with:  vaca graph show {3}

"""


def init(
    data: DataArgument,
    folder: Annotated[
        Path, typer.Option(help="Where graph.txt and schema.toml go.", show_default="here")
    ] = Path("."),
    force: ForceOption = False,
) -> None:
    """Write a starting graph and schema for your table.

    graph.txt lists the columns, for you to say what causes what; schema.toml says what kind each
    column was taken for, for you to mend. Columns that cannot be used (identifiers, dates, missing
    values) are left out, with the reason.

    Example: vaca init data.csv
    """
    from shlex import quote

    from vaca.table.files import complete, read_table
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
    from vaca.table.schema import Schema

    names = list(columns)
    shown = [*names, "a", "b", "c"][:3] if len(names) >= 3 else ["a", "b", "c"]
    graph = _GRAPH_HEAD.format(*shown, graph_file.name) + "\n".join(names) + "\n"
    if left_out:
        graph += "\n" + "".join(f"# {name}: left out, {why}\n" for name, why in left_out.items())
    with complete(graph_file) as part:
        part.write_text(graph, encoding="utf-8")
    with complete(schema_file) as part:
        part.write_text(schema_text(Schema(columns), left_out), encoding="utf-8")
    typer.echo(f"{len(frame):,} rows, {len(names)} columns to use, {len(left_out)} left out.")
    for name, why in left_out.items():
        typer.echo(f"  {name}: left out, {why}")
    typer.echo(
        f"\nWrote {graph_file} and {schema_file}. Next: say in {graph_file} what causes "
        f"what,\nlook through {schema_file}, then type\n\n"
        f"  vaca fit {quote(str(data))} --graph {quote(str(graph_file))} "
        f"--schema {quote(str(schema_file))} --out model"
    )


def describe(frame: pd.DataFrame) -> tuple[dict[str, Column], dict[str, str]]:
    """What each column was taken for, and why some cannot be used."""
    import warnings

    from vaca.graph.dag import CausalGraph
    from vaca.table.files import check_numbers
    from vaca.table.schema import Schema

    columns: dict[str, Column] = {}
    left_out: dict[str, str] = {}
    for name in map(str, frame.columns):
        missing = int(frame[name].isna().sum())
        marks = [mark for mark in ("->", "#", ":", ",", '"') if mark in name]
        if marks:
            left_out[name] = f"a graph file cannot write the {marks[0]} in its name; rename it"
        elif missing:
            left_out[name] = f"{missing:,} values are missing; fill them in or drop those rows"
        elif frame[name].nunique() <= 1:
            left_out[name] = "it is constant"
        elif _counts_rows(frame[name]):
            left_out[name] = "it numbers the rows: an identifier?"
        else:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    check_numbers(frame[[name]])
                    found = Schema.infer(frame[[name]], CausalGraph({name: []}))
                columns[name] = found[name]
            except SchemaError as error:
                left_out[name] = str(error).removeprefix(f"column {name!r} ")
    return columns, left_out


def _counts_rows(values: pd.Series) -> bool:
    import numpy as np

    if values.dtype.kind not in "iu" or len(values) < 20:
        return False
    numbers = values.to_numpy()
    return bool(np.all(np.diff(numbers) == 1))
