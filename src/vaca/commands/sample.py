"""`vaca sample`: new rows, observational or under an intervention."""

from __future__ import annotations

from typing import Annotated

import typer

from vaca.commands import options
from vaca.commands.reading import load_model, parse_do
from vaca.commands.terminal import note, stdout_is_a_file
from vaca.commands.writing import check_out, check_plot, draw, folder_of_answers, write_table
from vaca.errors import VacaError
from vaca.table.progress import progress_bar


def sample(
    model: options.ModelArgument,
    n: Annotated[int, typer.Option("-n", "--rows", min=1, help="How many rows.")] = 1000,
    do: options.DoOption = None,
    seed: options.SeedOption = None,
    out: options.OutOption = None,
    force: options.ForceOption = False,
    jobs: options.JobsOption = 1,
    cluster: options.ClusterOption = None,
    plot: options.PlotOption = None,
) -> None:
    """Draw new rows, as observed or under an intervention.

    Without --do the rows are observational; with it they are what the population would look like
    if those columns were set for everyone. --plot draws all pairs of columns.
    With --jobs or --cluster, --out is a folder of .parquet files, written by several processes; a
    call that was stopped continues where it left off.

    Example: vaca sample loan -n 1000 --do age=40 --seed 1 --out forty.csv
    """
    from vaca.model.arguments import check_count

    check_count("-n", n)
    parted = folder_of_answers(out, jobs, cluster)
    if not parted:
        check_out(out, force)
    elif plot is not None:
        raise VacaError("--plot draws the rows of a file: give --out a name that ends in .csv")
    check_plot(plot, force)
    source = load_model(model)
    change = parse_do(do, source) or None
    if parted and out is not None:
        from vaca.model.partitions import partitioned_samples

        with progress_bar("drawing", n, unit="rows") as bar:
            found = partitioned_samples(
                source, n, change, out, seed=seed, jobs=jobs, cluster=cluster, progress=bar.advance
            )
        note(f"wrote {n:,} rows to {out}")
        for sentence in found.unseen:
            note(f"vaca: warning: {sentence}: extrapolation")
        return
    from vaca.model.streaming import sample_chunks

    first = None
    shown = out is not None or stdout_is_a_file()
    with progress_bar("drawing", n, unit="rows", wanted=shown) as bar:
        pieces = sample_chunks(source, n, change, seed)
        if out is None:
            for number, rows in enumerate(pieces):
                first = rows if number == 0 else first
                write_table(rows, None, header=number == 0)
                bar.advance(len(rows))
        else:
            from vaca.table.files import TableWriter

            with TableWriter(out) as writer:
                for number, rows in enumerate(pieces):
                    first = rows if number == 0 else first
                    writer.write(rows)
                    bar.advance(len(rows))
    if out is not None:
        note(f"wrote {n:,} rows to {out}")
    if plot is not None:
        from vaca.show.plot import plot_pairs, with_levels

        draw(plot_pairs(with_levels(first, source.schema_)), plot)
