"""The question of a report and its answer: each effect is computed once, and shown everywhere."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from vaca.errors import SupportWarning, VacaError
from vaca.model.answers import Effect, do_label
from vaca.model.causal_model import CausalModel
from vaca.table.dtypes import as_numbers

__all__ = ["Answered", "Question", "answer", "default_effects", "strongest"]

#: Rows behind an effect, and behind the pictures of the population: the same ones.
ROWS = 10_000


@dataclass(frozen=True)
class Question:
    """An intervention that a report shows in full.

    Attributes
    ----------
    do, against : mapping
        What is done, and what it is compared with (nothing, by default).
    outcomes : sequence of str
        The columns that effects are on; by default every number and binary column it reaches.
    levels : mapping
        Outcome -> the level whose probability counts, for outcomes with levels that are not
        numbers; of a binary one, by default its second.
    """

    do: Mapping[str, Any]
    against: Mapping[str, Any] = field(default_factory=dict)
    outcomes: Sequence[str] = ()
    levels: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Answered:
    """A question with its effects, the population in both arms, and what moves.

    The first effect is the answer of the page. `before` and `after` are the same rows that the
    effects were averaged over.
    """

    question: Question
    effects: list[Effect]
    before: pd.DataFrame
    after: pd.DataFrame
    moved: list[str]
    still: list[str]

    @property
    def label(self) -> str:
        """What is done, as it is read in a formula."""
        return f"do({do_label(self.question.do)})"

    @property
    def base(self) -> str:
        """What it is compared with."""
        against = self.question.against
        return f"do({do_label(against)})" if against else "as is"


def answer(model: CausalModel, question: Question, seed: int) -> Answered:
    """Ask the model, quietly: the page says where it extrapolates."""
    graph = model.graph
    nodes = {n if n in graph else graph.node_of(n) for n in (*question.do, *question.against)}
    below = set(graph.descendants(*nodes))
    reached = [c for n in graph.order if n in below for c in graph.columns(n)]
    outcomes = list(question.outcomes) or [
        c for c in reached if not model.schema_[c].discrete or model.schema_[c].kind == "binary"
    ]
    if not outcomes:
        raise VacaError("name an outcome: the intervention reaches no number or binary column")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SupportWarning)
        effects = [
            model.effect(
                name,
                question.do,
                question.against,
                level=question.levels.get(name),
                n=ROWS,
                seed=seed,
            )
            for name in outcomes
        ]
        before = model.sample(ROWS, question.against or None, seed=seed)
        after = model.sample(ROWS, question.do, seed=seed)
    moved = [c for n in graph.order if n in below | nodes for c in graph.columns(n)]
    still = [c for c in model.schema_ if c not in moved]
    return Answered(question, effects, before, after, moved, still)


def default_effects(
    model: CausalModel, data: pd.DataFrame, outcome: str | None = None, *, seed: int = 0
) -> list[Effect]:
    """The effect of each of its causes on a column: a first look at what matters.

    Numbers move from their lower to their upper quartile, levels from the most frequent to the
    second most frequent. The outcome is by default the last column in causal order that has causes.
    """
    graph, schema = model.graph, model.schema_
    if outcome is None:
        node = next((n for n in reversed(graph.order) if graph.parents(n)), None)
        if node is None:
            return []
        outcome = graph.columns(node)[0]
    target = graph.node_of(outcome)
    level = None
    if schema[outcome].discrete and not schema[outcome].numeric_levels:
        level = schema[outcome].levels[-1]
    found = []
    for cause in graph.ancestors(target):
        low: dict[str, Any] = {}
        high: dict[str, Any] = {}
        for name in graph.columns(cause):
            low[name], high[name] = _contrast(model, data, name)
        if len(graph.columns(cause)) > 1:
            low, high = {cause: low}, {cause: high}
        else:
            low, high = {cause: low[name]}, {cause: high[name]}
        found.append(model.effect(outcome, high, low, level=level, n=ROWS, seed=seed))
    return found


def strongest(effects: Sequence[Effect]) -> Question | None:
    """The question of a page without one: the cause that matters most for the outcome."""
    if not effects:
        return None
    top = max(effects, key=lambda e: abs(e.value))
    return Question(top.treatment, top.control, [top.outcome], {top.outcome: top.level})


def _contrast(model: CausalModel, data: pd.DataFrame, name: str) -> tuple[Any, Any]:
    column = model.schema_[name]
    if not column.discrete:
        low, high = (float(q) for q in np.quantile(as_numbers(data[name]), [0.25, 0.75]))
        if column.kind == "count":
            low, high = float(np.floor(low)), float(np.ceil(high))
        return float(f"{low:.4g}"), float(f"{high:.4g}")
    codes = pd.Series(model.schema_.encode_column(name, data[name])).value_counts()
    often = [column.levels[int(code)] for code in codes.index[:2]]
    if len(often) < 2:
        often = [often[0], next((v for v in column.levels if v != often[0]), often[0])]
    if column.kind in ("binary", "ordinal"):
        often.sort(key=column.levels.index)
    return often[0], often[1]
