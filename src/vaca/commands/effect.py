"""`vaca effect`: how much an intervention changes an outcome."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vaca.commands.common import (
    AlsoOutOption,
    DoOption,
    ForceOption,
    ModelArgument,
    PlotOption,
    busy,
    check_out,
    check_plot,
    columns_of,
    draw,
    load_model,
    parse_do,
    say,
    write_table,
)
from vaca.errors import InterventionError, VacaError, did_you_mean

if TYPE_CHECKING:
    from vaca.model.answers import Effect
    from vaca.model.causal_model import CausalModel


def effect(
    model: ModelArgument,
    on: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="The outcome; may be repeated.", show_default=False),
    ] = None,
    do: DoOption = None,
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=VALUE",
            help="What to compare with, written like --do.",
            show_default="no intervention",
        ),
    ] = None,
    level: Annotated[
        str | None,
        typer.Option(help="Of an outcome with levels: the effect on this one's probability."),
    ] = None,
    given: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Average over the counterfactuals of these rows.",
            show_default="new rows are drawn",
        ),
    ] = None,
    n: Annotated[int, typer.Option("-n", "--rows", min=2, help="Rows to draw.")] = 10_000,
    draws: Annotated[
        int | None, typer.Option(min=1, help="With --given: draws for each row.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same numbers.")] = 0,
    out: AlsoOutOption = None,
    force: ForceOption = False,
    plot: PlotOption = None,
) -> None:
    """Estimate the average effect of an intervention.

    The effect is the mean outcome under --do minus that under --against, in the outcome's units;
    for an outcome with levels, the change of a level's probability. The standard error covers the
    rows drawn and, for a model with several members, the spread between them; it does not cover a
    wrong graph or hidden causes.

    Example: vaca effect loan --on income --do gender=1 --against gender=0
    """
    check_out(out, force)
    check_plot(plot, force)
    if draws is not None and given is None:
        raise VacaError("--draws is for the rows of --given; use -n to draw more new rows")
    source = load_model(model)
    outcomes = columns_of(on, source, "--on")
    if not outcomes:
        raise VacaError(f"say which outcome, with --on; {did_you_mean('', source.schema_.columns)}")
    change, other = parse_do(do, source), _against(against, source)
    if not change:
        raise InterventionError("say what is done, for example --do age=40")
    rows = None
    if given is not None:
        from vaca.table.files import read_table

        rows = read_table(given, source.schema_)
    levels = outcome_levels(source, outcomes, level)
    options: dict[str, Any] = {"given": rows, "n": n, "draws": draws, "seed": seed}
    with busy("estimating"):
        found = [
            source.effect(name, change, other, level=levels[name], **options) for name in outcomes
        ]
    for one in found:
        # The number on a line of its own: the whole seldom fits one.
        say(str(one).replace("): ", "):\n  ", 1).replace("; do on", ";\n  do on"))
    if out is not None:
        write_table(effect_table(found), out)
    if plot is not None:
        from vaca.show.plotting import plot_effects

        draw(plot_effects(found), plot)


def _against(texts: list[str] | None, model: CausalModel) -> dict[str, Any]:
    try:
        return parse_do(texts, model)
    except InterventionError as error:
        raise InterventionError(str(error).replace("--do", "--against", 1)) from None


def outcome_levels(model: CausalModel, names: list[str], level: str | None) -> dict[str, Any]:
    """The level that --level names, for each outcome that has levels; None for numbers."""
    discrete = [name for name in names if model.schema_[name].discrete]
    result: dict[str, Any] = dict.fromkeys(names)
    if level is None:
        return result
    if not discrete:
        kind = model.schema_[names[0]].kind
        raise VacaError(f"--level {level}: {names[0]!r} is {kind} and has no levels")
    for name in discrete:
        known = {str(v): v for v in model.schema_[name].levels}
        if level not in known:
            raise VacaError(
                f"--level {level}: {name!r} has no such level; {did_you_mean(level, known)}"
            )
        result[name] = known[level]
    return result


def effect_table(effects: list[Effect]) -> Any:
    """One row per effect, as --out keeps them."""
    import pandas as pd

    from vaca.model.answers import do_label

    rows = []
    for one in effects:
        low, high = one.interval()
        rows.append(
            {
                "outcome": one.outcome,
                "level": "" if one.level is None else str(one.level),
                "do": do_label(one.treatment),
                "against": do_label(one.control),
                "effect": one.value,
                "standard_error": one.standard_error,
                "low": low,
                "high": high,
                "outside_support": "; ".join(one.outside_support),
            }
        )
    return pd.DataFrame(rows)
