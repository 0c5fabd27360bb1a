"""`vaca counterfactual`: what these very rows would have been."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from vaca.commands import options
from vaca.commands.reading import load_model, parse_do
from vaca.commands.terminal import note, print_csv, stdout_is_a_file
from vaca.commands.writing import check_out, check_plot, draw, folder_of_answers
from vaca.errors import InterventionError, VacaError
from vaca.table.progress import progress_bar


def counterfactual(
    model: options.ModelArgument,
    factual: Annotated[
        Path,
        typer.Argument(
            metavar="FACTUAL",
            help="The observed rows: a file, or a folder of .parquet files.",
            show_default=False,
        ),
    ],
    do: options.DoOption = None,
    draws: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Answers per row, to show how much the row leaves open.",
            show_default="one answer per row",
        ),
    ] = None,
    summary: Annotated[
        bool,
        typer.Option("--summary", help="One row for all draws: mean, sd, 5 and 95 %."),
    ] = False,
    bounds: Annotated[
        bool,
        typer.Option(
            "--bounds", help="The lowest and highest probability of each level that the data allow."
        ),
    ] = False,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Copy this column too, an id for example."),
    ] = None,
    seed: options.SeedOption = None,
    out: options.OutOption = None,
    force: options.ForceOption = False,
    jobs: options.JobsOption = 1,
    cluster: options.ClusterOption = None,
    plot: options.PlotOption = None,
    row: Annotated[int, typer.Option(min=0, help="The row that --plot draws, counted from 0.")] = 0,
) -> None:
    """Say what each of these rows would have been under --do.

    One row comes back for each row given, in the same order. With --draws, each row comes back
    that many times, with the columns `row` and `draw` in front. Files of any size are read and
    written piece by piece; --out appears when it is complete. Where --do can leave the range of
    the data, a column `outside_support` says for each row whether it does.
    If FACTUAL is a folder and --out has no ending, --out is a folder of answers with files of the
    same names, shared among processes with --jobs or --cluster; a call that was stopped continues
    where it left off.

    Example: vaca counterfactual loan people.csv --do age+=5 --out older.csv
    """
    parted = folder_of_answers(out, jobs, cluster, factual)
    if parted and not factual.is_dir():
        raise VacaError(f"--out {out}: a folder of answers is for a folder of .parquet files")
    if not parted:
        check_out(out, force)
    check_plot(plot, force)
    if not do:
        raise InterventionError("say what should have been different, for example --do age=40")
    if summary and draws is None:
        raise VacaError("--summary is over draws: add for example --draws 200")
    if bounds and draws is not None and not summary:
        raise VacaError("--bounds is one line per row: add --summary, or leave out --draws")
    source = load_model(model)
    change = parse_do(do, source)
    from vaca.model.streaming import Streamed, counterfactual_chunks, open_factual
    from vaca.table.files import TableWriter

    reader = open_factual(source, factual, keep or ())
    options: dict[str, Any] = {"draws": draws, "summary": summary, "seed": seed, "keep": keep or ()}
    options["bounds"] = bounds
    tally = Streamed()
    shown = out is not None or stdout_is_a_file()
    if parted and out is not None:
        from vaca.model.partitions import partitioned_counterfactuals

        with progress_bar("answering", reader.rows, unit="rows") as bar:
            tally = partitioned_counterfactuals(
                source,
                factual,
                change,
                out,
                jobs=jobs,
                cluster=cluster,
                progress=bar.advance,
                **options,
            )
        _say(source, tally, tally.written, out, draws)
        if plot is not None:
            _plot(source, factual, change, draws, seed, row, plot)
        return
    with progress_bar("answering", reader.rows, unit="rows", wanted=shown) as bar:
        pieces = counterfactual_chunks(source, reader, change, tally=tally, **options)
        if out is None:
            for number, (rows, answer) in enumerate(pieces):
                if not print_csv(answer, header=number == 0):
                    return
                bar.advance(rows)
        else:
            with TableWriter(out) as writer:
                for rows, answer in pieces:
                    writer.write(answer)
                    bar.advance(rows)
    _say(source, tally, 0 if out is None else writer.rows, out, draws)
    if plot is not None:
        _plot(source, factual, change, draws, seed, row, plot)


def _say(model: Any, tally: Any, written: int, out: Path | None, draws: int | None) -> None:
    """What was written, and how much of it leaves the data."""
    if out is not None:
        note(f"wrote {written:,} rows to {out}")
    for name, count in tally.outside.items():
        column = model.schema_[name]
        note(
            f"vaca: warning: {count:,} of {tally.rows * (draws or 1):,} answers set {name!r} "
            f"outside the range of the data, {column.low:g} to {column.high:g}: extrapolation"
        )
    for sentence in tally.unseen:
        note(f"vaca: warning: {sentence}: extrapolation")


def _plot(
    model: Any, factual: Path, do: dict, draws: int | None, seed: int | None, row: int, path: Path
) -> None:
    import warnings

    from vaca.errors import SupportWarning
    from vaca.model.streaming import open_factual
    from vaca.show.plot import plot_person, with_levels

    first = next(open_factual(model, factual).chunks(max(2000, row + 1)))
    if row >= len(first):
        raise VacaError(f"--row {row}: {factual} has {len(first)} rows; they are counted from 0")
    one = first.iloc[[row]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SupportWarning)  # said already
        answer = model.counterfactual(one, do, draws=draws, seed=seed)
    tables = [with_levels(table, model.schema_) for table in (one, answer, first)]
    draw(plot_person(*tables[:2], columns=list(model.schema_), population=tables[2]), path)
