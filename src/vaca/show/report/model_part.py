"""The model for experts: data, graph, how well it reproduces the data, what it rests on."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
import pandas as pd

from vaca.evaluation.heldout import holdout_scores, joint_scores
from vaca.model.causal_model import CausalModel
from vaca.show.pages import picture
from vaca.show.plot import (
    plot_densities,
    plot_graph,
    plot_history,
    plot_pairs,
    with_levels,
)
from vaca.show.words import number
from vaca.table.dtypes import as_numbers

__all__ = ["engine_words", "html_table", "model_part"]

#: Rows drawn for pictures and comparisons.
ROWS = 4000


def model_part(
    model: CausalModel,
    frame: pd.DataFrame,
    test: pd.DataFrame,
    unseen: bool,
    checked: Any,
    seed: int,
) -> dict[str, Any]:
    """What the folded part of a report shows."""
    drawn = model.sample(min(ROWS, max(200, len(frame))), seed=seed)
    known = frame.drop(index=test.index, errors="ignore") if unseen else frame
    known = known if len(known) else frame
    tables = [with_levels(table, model.schema_) for table in (test, drawn)]
    return {
        "columns": _column_table(model, frame),
        "graph": picture(plot_graph(model.graph), _graph_words(model)),
        "graph_facts": _graph_facts(model),
        "absent": _absent(model),
        "unseen": unseen,
        "test_rows": len(test),
        "scores": _score_table(model, test, known, seed),
        "joint": joint_scores(model, test, known, seed=seed),
        "check": _check_lines(checked),
        "marginals": picture(
            plot_densities(*tables, labels=("held-out data" if unseen else "data", "model")),
            f"{len(model.schema_)} small charts, one for each column, with the data as a filled "
            "shape and rows drawn from the model as a dashed line over it.",
        ),
        "pairs": picture(
            plot_pairs(*tables, columns=_busiest(model, 6)),
            "A matrix of small charts for the columns with most arrows: points of the data below "
            "the diagonal, points drawn from the model above it.",
            "png",
        ),
        "history": _history(model),
        "assumptions": html_table(
            model.assumptions()
            .assign(exact=lambda t: np.where(t["exact"], "recovered exactly", "a stated choice"))
            .rename(columns={"exact": "noise", "rests_on": "rests on"})
        ),
    }


def engine_words(model: CausalModel) -> str:
    """What kind of model it is."""
    members = getattr(model, "members_", None)
    name = type(model).__name__
    if members:
        return f"an ensemble of {len(members)} {type(members[0]).__name__} models"
    refits = len(getattr(model, "refits_", ()))
    again = f", fitted {refits} more times for its intervals" if refits else ""
    return "a known SCM" if name == "StructuralCausalModel" else f"{name}{again}"


def _graph_words(model: CausalModel) -> str:
    arrows = "; ".join(f"{a} to {b}" for a, b in model.graph.edges[:40])
    more = " and others" if len(model.graph.edges) > 40 else ""
    return f"The causal graph, with arrows from {arrows}{more}." if arrows else "Boxes, no arrows."


def _column_table(model: CausalModel, frame: pd.DataFrame) -> str:
    table = model.schema_.table().drop(columns="dtype")
    table = table.rename(columns={"values": "levels or range"})
    typical, values = [], []
    for name, column in model.schema_.items():
        if column.discrete:
            top = frame[name].astype(object).value_counts(normalize=True)
            typical.append(f"{top.index[0]} ({top.iloc[0]:.0%})")
            values.append(", ".join(map(str, column.levels)))
        else:
            numbers = pd.Series(as_numbers(frame[name]))
            middle, spread = column.shown(numbers.mean()), f"{number(numbers.std())} days"
            typical.append(
                f"{middle} ± {spread}"
                if column.dates
                else f"{number(numbers.mean())} ± {number(numbers.std())}"
            )
            ends = (
                (numbers.min(), numbers.max())
                if column.low is None
                else (
                    column.low,
                    column.high,
                )
            )
            said = column.shown if column.dates else lambda end: number(float(end))  # type: ignore[arg-type]
            values.append(" to ".join(said(end) for end in ends))
    table["levels or range"] = values
    table["most often, or mean ± sd"] = typical
    table["caused by"] = [
        ", ".join(model.graph.parents(model.graph.node_of(n))) or "nothing in the graph"
        for n in model.schema_
    ]
    return html_table(table)


def _graph_facts(model: CausalModel) -> str:
    graph = model.graph
    return (
        f"{len(graph)} nodes and {len(graph.edges)} arrows. Nothing in the graph causes "
        f"{', '.join(graph.roots)}. The longest chain of causes has {graph.longest_path} arrows."
    )


def _busiest(model: CausalModel, count: int) -> list[str]:
    """The columns with most arrows, in table order."""
    arrows = {
        n: len(model.graph.parents(n)) + len(model.graph.children(n)) for n in model.graph.nodes
    }
    chosen = sorted(model.schema_, key=lambda c: -arrows[model.graph.node_of(c)])[:count]
    return [name for name in model.schema_ if name in chosen]


def _absent(model: CausalModel) -> int:
    """Pairs of nodes without an arrow between them: each is a claim."""
    count = len(model.graph)
    return count * (count - 1) // 2 - len(model.graph.edges)


def _score_table(model: CausalModel, test: Any, known: Any, seed: int) -> str:
    scores = holdout_scores(model, test, known, seed=seed)
    scores["explained"] = [f"{round(100 * value)} %" for value in scores["explained"]]
    return html_table(
        scores.rename(columns={"baseline": "without causes", "explained": "explained by causes"})
    )


def quick_check(
    model: CausalModel, frame: pd.DataFrame, held_out: pd.DataFrame | None, seed: int
) -> Any:
    """The check that a report shows, in part beside its answer; None for a handful of rows."""
    from vaca.trust.check import MIN_ROWS, check

    if len(frame) < MIN_ROWS:
        return None
    return check(model, frame, held_out=held_out, quick=True, seed=seed, progress=False)


def _check_lines(found: Any) -> dict[str, str] | None:
    """A check's verdict, and a line for each part."""
    if found is None:
        return None
    lines = found.parts[["part", "verdict", "words"]].set_index("part")
    return {"verdict": found.verdict, "lines": html_table(lines)}


def _history(model: CausalModel) -> str:
    history = getattr(model, "history_", None)
    if history is None or not len(history):
        return ""
    return picture(
        plot_history(history), "Training and validation loss by epoch, with the best one marked."
    )


def html_table(table: pd.DataFrame) -> str:
    """A table whose first column is the index."""
    flat = table.reset_index()
    head = "".join(f'<th scope="col">{escape(str(c)).replace("_", " ")}</th>' for c in flat.columns)
    body = []
    for row in flat.itertuples(index=False):
        cells = []
        for value in row:
            if isinstance(value, float):
                cells.append(f'<td class="n">{number(value)}</td>')
            else:
                cells.append(f"<td>{escape(str(value))}</td>")
        body.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
