"""`vaca do`: what an intervention does to the population."""

from __future__ import annotations

from typing import Annotated

import typer

from vaca.commands import options
from vaca.commands.reading import columns_of, load_model, parse_do
from vaca.commands.terminal import say, show_table
from vaca.commands.writing import check_out, check_plot, draw, write_table
from vaca.errors import InterventionError
from vaca.table.progress import progress_bar


def do(
    model: options.ModelArgument,
    do: options.DoOption = None,
    n: options.RowsOption = 10_000,
    on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="Show this column; may be repeated.", show_default="what changes"
        ),
    ] = None,
    seed: options.FixedSeedOption = 0,
    out: options.AlsoOutOption = None,
    force: options.ForceOption = False,
    plot: options.PlotOption = None,
) -> None:
    """Show what an intervention does to the population.

    Prints the mean of every column (the share of every level) as observed and under --do, with
    the difference and its 95 % interval, which covers the fit (without refits: the
    simulation error alone). Both populations share their noise, so that columns that
    the intervention cannot reach do not change at all, and are not shown unless asked for.
    --out keeps the rows under --do.

    Example: vaca do loan --do age+=5 --on income --on savings
    """
    check_out(out, force)
    check_plot(plot, force)
    source = load_model(model)
    change = parse_do(do, source)
    if not change:
        raise InterventionError("name an intervention, for example --do age=40")
    names = columns_of(on, source, "--on")
    nodes = {source.graph.node_of(column) for column in change}
    moved = nodes.union(source.graph.descendants(*nodes))
    still = [c for c in source.schema_ if source.graph.node_of(c) not in moved]
    names = names or [c for c in source.schema_ if c not in still]
    import warnings

    from vaca.errors import SupportWarning

    with progress_bar("drawing rows"), warnings.catch_warnings():
        warnings.simplefilter("ignore", SupportWarning)  # said below, beside the numbers
        before, after = source.sample(n, seed=seed), source.sample(n, change, seed=seed)
    from vaca.model.answers import do_label
    from vaca.model.populations import differences_interval
    from vaca.table.contrast import contrast
    from vaca.table.schema import Schema

    shown = Schema({name: source.schema_[name] for name in source.schema_ if name in names})
    table = contrast(before, after, shown, paired=True)
    columns = ["as is", "under do", "difference"]
    with progress_bar("asking the refits"):
        spread = differences_interval(source, change, shown, table, n, seed)
    if spread is None:
        columns.append("simulation error")
    else:
        table = table.drop(columns="standard_error").join(spread)
        columns += ["95 % from", "to"]
    table.index.name = "mean, or share of a level"
    table.columns = columns
    say(f"do({do_label(change)}), {n:,} rows:\n")
    show_table(table)
    if not on and still:
        say(f"\nUnchanged, as no arrow leads there: {', '.join(still)}.")
    for sentence in after.attrs.get("outside_support", []):
        say(f"\nOutside the data: {sentence}. Read these numbers as an extrapolation.")
    if out is not None:
        write_table(after, out)
    if plot is not None:
        from vaca.show.plot import plot_population, with_levels

        labels = ("as is", f"do({do_label(change)})")
        tables = (with_levels(t, source.schema_) for t in (before, after))
        draw(plot_population(*tables, columns=names, labels=labels), plot)
