"""`vaca effect`: how much an intervention changes an outcome."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vaca.commands.options import (
    AlsoOutOption,
    DoOption,
    FixedSeedOption,
    ForceOption,
    ModelArgument,
    PlotOption,
    RowsOption,
)
from vaca.commands.reading import columns_of, load_model, parse_do
from vaca.commands.terminal import note, number_text, say, show_table
from vaca.commands.writing import check_out, check_plot, draw, write_table
from vaca.errors import InterventionError, SupportWarning, VacaError, did_you_mean
from vaca.table.progress import progress_bar

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
        typer.Option(help="For an outcome with levels: the one whose probability is meant."),
    ] = None,
    given: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Average over the counterfactuals of these rows.",
            show_default="new rows are drawn",
        ),
    ] = None,
    among: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION",
            help="Only for these rows, of --given or the model's: treat=1, 'age > 40'.",
            show_default="everyone",
        ),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="One effect for each level, or quarter, of a column.",
            show_default=False,
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--cross-check/--no-cross-check",
            help="Estimate it from the model's rows as well.",
        ),
    ] = True,
    hidden: Annotated[
        bool,
        typer.Option("--hidden", help="How strong a hidden cause must be to explain it away."),
    ] = False,
    engines: Annotated[
        list[str] | None,
        typer.Option(
            "--engines",
            metavar="NAME",
            help="Fit this engine too and compare its answer; may be repeated.",
            show_default=False,
        ),
    ] = None,
    n: RowsOption = 10_000,
    draws: Annotated[
        int | None, typer.Option(min=1, help="With --given: draws for each row.")
    ] = None,
    seed: FixedSeedOption = 0,
    out: AlsoOutOption = None,
    force: ForceOption = False,
    plot: PlotOption = None,
) -> None:
    """Estimate the average effect of an intervention.

    The effect is the mean outcome under --do minus that under --against, in the outcome's units;
    for an outcome with levels, the change of a level's probability. The interval covers the fit and
    the rows drawn; it does not cover a wrong graph or hidden causes. A model without refits has no
    interval: the error of its simulation alone is given.

    Below it stands a second opinion: an estimate from the rows the model was fitted to, which
    does not use its mechanisms. Where the two disagree, rely on neither. --plot with --hidden
    draws what hidden causes of each strength leave of the effect.

    Example: vaca effect loan --on income --do gender=1 --against gender=0

    Example: vaca effect model --on pay --do job=1 --against job=0 --hidden
    """
    check_out(out, force)
    check_plot(plot, force)
    if draws is not None and given is None and not among and not by:
        raise VacaError("--draws is for the rows of --given; use -n to draw more new rows")
    source = load_model(model)
    outcomes = columns_of(on, source, "--on")
    if not outcomes:
        raise VacaError(f"say which outcome, with --on; {did_you_mean('', source.schema_.columns)}")
    change, other = parse_do(do, source), _against(against, source)
    if not change:
        raise InterventionError("name an intervention, for example --do age=40")
    rows = None
    if given is not None:
        from vaca.table.files import read_table

        rows = read_table(given, source.schema_)
    levels = outcome_levels(source, outcomes, level)
    options: dict[str, Any] = {"given": rows, "n": n, "draws": draws, "seed": seed}
    options |= {"among": parse_among(among, source), "by": by or None}
    with progress_bar("estimating"), warnings.catch_warnings():
        warnings.simplefilter("ignore", SupportWarning)  # said below, beside the numbers
        found: list[Any] = [
            source.effect(name, change, other, level=levels[name], **options) for name in outcomes
        ]
    for one in found:
        whole = one.whole if by else one
        # The number on a line of its own: the whole seldom fits one.
        say(f"{whole.asked}:\n  {whole.answered}")
        for sentence in whole.notes():
            say(f"  {sentence}")
        if by:
            say(one.to_string(float_format=lambda value: number_text(value, 4)))
        _second_opinions(whole, check, hidden, engines)
    parts = [part for one in found for part in (one.effects.values() if by else [one])]
    if out is not None:
        table = effect_table(parts)
        if by:
            table.insert(0, "group", [group for one in found for group in one.effects])
        write_table(table, out)
    if plot is not None and hidden:
        draw((found[0].whole if by else found[0]).sensitivity().plot(), plot)
    elif plot is not None:
        from vaca.show.plot import plot_effects

        if by:
            groups = {
                f"{one.whole.outcome}, {g}": e for one in found for g, e in one.effects.items()
            }
            draw(plot_effects(groups), plot)
        else:
            draw(plot_effects(parts), plot)


def _second_opinions(effect: Effect, check: bool, hidden: bool, engines: list[str] | None) -> None:
    """Print what else is known about an answer: from the rows, hidden causes, other engines."""
    learned = effect.model is not None and effect.model._learned
    if check and learned:
        from vaca.trust.cross_check import check_effect

        with progress_bar("checking"):
            found = effect.cross_check
        try:
            _lines((found or check_effect(effect)).words)
        except VacaError as error:
            _lines(f"no cross-check: {error}")
    if hidden:
        with progress_bar("weighing hidden causes"):
            sensitivity = effect.sensitivity()
            sentence = sensitivity.sentence
        _lines(sentence)
        if len(sensitivity.benchmarks):
            shares = sensitivity.benchmarks[["treatment", "outcome"]]
            table = shares.map(lambda share: f"{100 * share:.1f} %")
            times = sensitivity.benchmarks["times"]
            table["times needed"] = [f"{k:,.1f}" if k < 1e4 else "-" for k in times]
            show_table(table)
    if engines:
        from vaca.trust.agreement import ask_engines, engines_words

        table = ask_engines(effect, engines, progress=lambda name: note(f"fitting {name}"))
        _lines(engines_words(table))
        show_table(table.drop(columns="apart"))


def _lines(text: str) -> None:
    for line in text.splitlines():
        say(f"  {line}".replace("\N{MINUS SIGN}", "-"))


def parse_among(texts: list[str] | None, model: CausalModel) -> dict[str, Any] | str | None:
    """Turn `--among` texts into the `among` of the library: values of columns, or a condition."""
    if not texts:
        return None
    values: dict[str, Any] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or value.startswith("=") or name[-1:] in "<>!" or name not in model.schema_:
            if len(texts) > 1:
                raise VacaError(
                    f"--among {text}: a condition stands alone; join several with and, like "
                    "--among 'age > 40 and treat == 1'"
                )
            return text
        values[name] = value
    return values


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
        check = vars(one).get("cross_check")  # only if it was made for this answer
        if check is not None:
            low, high = check.interval()
            rows[-1] |= {"cross_check": check.value, "check_low": low, "check_high": high}
    return pd.DataFrame(rows)
