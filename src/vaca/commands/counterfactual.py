"""`vaca counterfactual`: what these very rows would have been."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vaca.commands.common import (
    DoOption,
    ForceOption,
    ModelArgument,
    OutOption,
    SeedOption,
    check_out,
    load_model,
    parse_do,
    read_table,
    write_table,
)
from vaca.errors import InterventionError


def counterfactual(
    model: ModelArgument,
    factual: Annotated[
        Path,
        typer.Argument(
            metavar="FACTUAL",
            help="The rows that happened: .csv, .parquet or .feather.",
            show_default=False,
        ),
    ],
    do: DoOption = None,
    draws: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Answers per row, to show how much the row leaves open.",
            show_default="one answer per row",
        ),
    ] = None,
    seed: SeedOption = None,
    out: OutOption = None,
    force: ForceOption = False,
) -> None:
    """Say what these very rows would have been.

    One row comes back for each row given, in the same order. With --draws, each row comes back
    that many times, with the columns `row` and `draw` in front.

    Example: vaca counterfactual loan people.csv --do age+=5 --out older.csv
    """
    check_out(out, force)
    if not do:
        raise InterventionError("say what should have been different, for example --do age=40")
    source = load_model(model)
    table = read_table(factual)
    answer = source.counterfactual(table, do=parse_do(do, source), draws=draws, seed=seed)
    write_table(answer, out, index=draws is not None)
