"""`vaca sample`: new rows, observational or under an intervention."""

from __future__ import annotations

from typing import Annotated

import typer

from vaca.commands.common import (
    DoOption,
    ForceOption,
    ModelArgument,
    OutOption,
    PlotOption,
    SeedOption,
    check_out,
    check_plot,
    counting,
    draw,
    load_model,
    note,
    parse_do,
    stdout_is_a_file,
    write_table,
)


def sample(
    model: ModelArgument,
    n: Annotated[int, typer.Option("-n", "--rows", min=1, help="How many rows.")] = 1000,
    do: DoOption = None,
    seed: SeedOption = None,
    out: OutOption = None,
    force: ForceOption = False,
    plot: PlotOption = None,
) -> None:
    """Draw new rows, as things are or under an intervention.

    Without --do the rows are observational; with it they are what the population would look like
    if those columns were set, for everyone, by an outside hand. --plot draws all pairs of columns.

    Example: vaca sample loan -n 1000 --do age=40 --seed 1 --out forty.csv
    """
    check_out(out, force)
    check_plot(plot, force)
    source = load_model(model)
    change = parse_do(do, source) or None
    from vaca.model.streaming import sample_chunks

    first = None
    with counting("drawing", n, shown=out is not None or stdout_is_a_file()) as advance:
        pieces = sample_chunks(source, n, change, seed)
        if out is None:
            for number, rows in enumerate(pieces):
                first = rows if number == 0 else first
                write_table(rows, None, header=number == 0)
                advance(len(rows))
        else:
            from vaca.table.files import TableWriter

            with TableWriter(out) as writer:
                for number, rows in enumerate(pieces):
                    first = rows if number == 0 else first
                    writer.write(rows)
                    advance(len(rows))
    if out is not None:
        note(f"wrote {n:,} rows to {out}")
    if plot is not None:
        from vaca.show.plotting import plot_pairs, with_levels

        draw(plot_pairs(with_levels(first, source.schema_)), plot)
