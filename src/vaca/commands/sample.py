"""`vaca sample`: new rows, observational or under an intervention."""

from __future__ import annotations

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
    write_table,
)


def sample(
    model: ModelArgument,
    n: Annotated[int, typer.Option("-n", "--rows", min=1, help="How many rows.")] = 1000,
    do: DoOption = None,
    seed: SeedOption = None,
    out: OutOption = None,
    force: ForceOption = False,
) -> None:
    """Draw new rows, as things are or under an intervention.

    Without --do the rows are observational; with it they are what the population would look like
    if those columns were set, for everyone, by an outside hand.

    Example: vaca sample loan -n 1000 --do age=40 --seed 1 --out forty.csv
    """
    check_out(out, force)
    source = load_model(model)
    write_table(source.sample(n, do=parse_do(do, source) or None, seed=seed), out)
