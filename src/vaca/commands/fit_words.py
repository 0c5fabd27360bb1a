"""What `vaca fit` prints: its plan, what came of it, and what to type next."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from vaca.commands.terminal import echo, note, show_table
from vaca.table.words import shown_number

if TYPE_CHECKING:
    import pandas as pd

    from vaca.graph.dag import CausalGraph

#: Columns are listed one by one up to this many.
SHOWN = 40


def show_plan(
    table: pd.DataFrame,
    graph: CausalGraph,
    kinds: dict[str, Any],
    options: dict[str, Any],
    held_out: int,
) -> None:
    """What each column was taken for, and what is going to be done."""
    import warnings

    from vaca.errors import VacaWarning
    from vaca.table.schema import Schema
    from vaca.table.suspects import why_identifier

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VacaWarning)  # the fit says it, once
        schema = Schema.infer(table, graph, kinds, missing=options["missing"] != "error")
    shown = schema.table().drop(columns="dtype")
    gaps = {name: column.missing for name, column in schema.items() if column.missing}
    if gaps:
        shown["missing"] = [f"{column.missing:,}" for column in schema.values()]
    show_table(shown.head(SHOWN))
    if len(shown) > SHOWN:
        echo(f"... and {len(shown) - SHOWN} more columns")
    echo(
        f"\nGraph: {len(graph)} nodes, {len(graph.edges)} arrows; roots "
        f"{_listed(graph.roots)}; longest path {graph.longest_path}."
    )
    if not graph.edges:
        echo("The graph has no arrows: no effect can be learned.")
    beside = [str(c) for c in table.columns if c not in schema and c != options["weights"]]
    if beside:
        echo(f"Not in the graph, so left out: {_listed(beside)}.")
    many = f", {options['members']} members" if options["members"] > 1 else ""
    echo(
        f"Rows: {len(table) - held_out:,} to learn from, {held_out:,} held out. "
        f"Engine: {options['engine']}{many}, seed {options['seed']}.\n"
    )
    for name in schema:
        why = why_identifier(table[name].dropna())
        if why:
            note(f"vaca: warning: {name}: {why} Nothing can be learned from it; leave it out")


def show_choice(model: Any) -> None:
    """How `auto` made its choice."""
    show_table(model.auto_.leaderboard_)
    echo(f"\nChosen: {type(model).__name__}.\n")


def show_result(
    model: Any,
    scores: pd.DataFrame,
    joint: dict[str, float],
    found: Any,
    options: dict[str, Any],
) -> None:
    """How the fit ended, how good it is, and what is doubtful."""
    ended = how_it_ended(model.history_, options["time_budget"])
    if ended:
        echo(ended + "\n")
    echo("Held-out rows, each column given its causes (lower is better):\n")
    percent = [f"{round(100 * value)} %" for value in scores["explained"]]
    show_table(scores.assign(explained=percent).head(SHOWN), digits=3)
    echo(
        f"\nAll columns together (energy distance): model {joint['model']:.4f}, without the graph "
        f"{joint['baseline']:.4f}."
    )
    worse = [name for name in scores.index if scores.loc[name, "explained"] < -0.05]
    if worse:
        echo(
            f"\nWarning: worse than without the graph: {_listed(worse)}. More rows, fewer levels "
            "or other\narrows may help."
        )
    for line in _copies(model):
        echo(f"\nWarning: {line}")
    if found is not None:
        echo("\nCheck, in its quick form (all of it: vaca check):\n")
        echo(found)


def how_it_ended(history: pd.DataFrame, budget: float | None) -> str:
    """Whether training converged; empty for engines that are not trained by steps."""
    if not len(history) or "epoch" not in history:
        return ""
    seconds = 0.0
    if "seconds" in history:
        by = history.groupby("member")["seconds"].max() if "member" in history else None
        seconds = float(history["seconds"].max() if by is None else by.sum())
    said = f"Trained for {int(history['epoch'].max())} epochs in {seconds:.0f} s"
    stopped = history.attrs.get("stopped", "")
    if stopped == "time":
        return (
            f"{said}: stopped by the time budget of {budget:g} s, perhaps before it was\n"
            "done; with more time it may get better."
        )
    if stopped == "patience":
        return f"{said}: converged, as rows it does not learn from were predicted no better."
    if stopped == "epochs":
        return f"{said}: converged, at the end of its planned steps."
    return f"{said}."


def _copies(model: Any) -> list[str]:
    """A warning about columns that nearly determine the treatment."""
    from vaca.table.roles import likely_question
    from vaca.table.suspects import copies_words, near_copies

    treatment, _ = likely_question(model.graph, model.schema_)
    if treatment is None or not getattr(model, "rows_", None):
        return []
    node = model.graph.node_of(treatment)
    after = {c for n in model.graph.descendants(node) for c in model.graph.columns(n)}
    found = [c for c in near_copies(model.rows_, model.schema_, treatment) if c not in after]
    return [copies_words(found, treatment)] if found else []


def show_next(model: Any, out: Path, data: Path) -> None:
    """Where the model is, and commands to type next."""
    echo(f"\nSaved to {out}. Next, for example:\n")
    for line in next_commands(model, out, data):
        echo(f"  {line}")


def next_commands(model: Any, out: Path, data: Path) -> list[str]:
    """Commands to type next, about the likely treatment and outcome of this very model."""
    from vaca.table.roles import likely_question

    folder, table = quote(str(out)), quote(str(data))
    cause, effect = likely_question(model.graph, model.schema_)
    lines = []
    if cause is None:
        cause = next((c for c in model.graph.all_columns if _alone(model.graph, c)), None)
    if cause is not None:
        low, high = _two_values(model.schema_[cause])
        done = "--do " + quote(f"{cause}={high}")
        lines.append(f"vaca do {folder} {done}")
        lines.append(f"vaca counterfactual {folder} {table} {done} --out cf{data.suffix}")
        if effect is not None:
            column, extra = model.schema_[effect], ""
            if column.discrete and not column.numeric_levels:
                extra = f" --level {quote(str(column.levels[-1]))}"
            other = "--against " + quote(f"{cause}={low}")
            lines.append(f"vaca effect {folder} --on {quote(effect)}{extra} {done} {other}")
    lines.append(f"vaca check {folder} {table} --out check.html")
    lines.append(f"vaca report {folder} --data {table} --out report.html")
    return lines


def _alone(graph: CausalGraph, column: str) -> bool:
    return len(graph.columns(graph.node_of(column))) == 1


def _two_values(column: Any) -> tuple[str, str]:
    """Two values of a column to compare: its first and last level, or its quartiles."""
    if column.discrete:
        return str(column.levels[0]), str(column.levels[-1])
    low, high = column.low or 0.0, column.high or 0.0
    ends = (low + (high - low) * share for share in (0.25, 0.5))
    if column.kind == "count":
        first, second = (f"{end:.0f}" for end in ends)
        return first, second
    first, second = (shown_number(end, 3).replace(",", "") for end in ends)
    return first, second


def _listed(names: Any) -> str:
    names = list(names)
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return ", ".join(names[:8]) + more
