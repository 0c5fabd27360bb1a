"""The what-if of a report: answers for a few people and each cause, computed beforehand."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pandas as pd

from vaca.errors import SupportWarning, VacaError
from vaca.model.causal_model import CausalModel
from vaca.show.report.question import Answered
from vaca.show.whatif import BAND, describe

__all__ = ["moved_person", "precomputed"]

PEOPLE, STOPS = 8, 25
#: Answers that a page holds at most: about 2 MB.
MOST_CELLS = 60_000
DRAWS = 36


def moved_person(model: CausalModel, rows: pd.DataFrame, asked: Answered) -> int:
    """The place of a row that the intervention moves: a typical one among those that move most.

    A row that has the value already would show nothing.
    """
    few = rows.head(300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SupportWarning)
        after = model.counterfactual(few, asked.question.do, seed=0)
    x, y = model.schema_.encode(few), model.schema_.encode(pd.DataFrame(after))
    nodes = {model.graph.node_of(c) for c in asked.moved if c in asked.question.do}
    given = {c for n in nodes for c in model.graph.columns(n)} | set(asked.question.do)
    outcome = asked.effects[0].outcome
    gain = np.abs(y[outcome].astype(float) - x[outcome].astype(float))
    changed = np.zeros(len(few))
    for name in asked.moved:
        if name not in given:
            changed += ~np.isclose(x[name].astype(float), y[name].astype(float))
    anew = sum((x[c] != y[c]).astype(float) for c in x if c in asked.question.do)
    score = gain / (gain.max() or 1.0)
    # Who differs in all that is set, then most columns moved, then a change of the outcome that is
    # typical of those who move: of two that are equally so, the first.
    typical = float(np.median(score[score > 0])) if (score > 0).any() else 0.0
    apart = np.abs(score - typical).round(9)
    return int(np.lexsort((apart, score == 0, -changed, -(anew * np.ones(len(few)))))[0])


def precomputed(
    model: CausalModel, rows: pd.DataFrame, first: int, outcome: str, seed: int
) -> dict[str, Any] | None:
    """Columns, people and the answers to every setting of every cause; None if it cannot abduct.

    Point answers are the library's to the last digit.
    """
    columns = describe(model, rows)
    causes = [c for c in columns if c["reaches"]]
    above = {model.graph.node_of(outcome), *model.graph.ancestors(model.graph.node_of(outcome))}
    causes.sort(key=lambda c: c["node"] not in above)  # a stable sort: in causal order otherwise
    people = _spread_people(model, rows, first, outcome)
    frame = rows.iloc[people]
    found: dict[str, Any] = {}
    cells = 0
    try:
        for cause in causes:
            stops = _stops(cause)
            cells += len(people) * len(stops) * (1 + len(cause["reaches"]))
            if cells > MOST_CELLS and found:
                break
            found[cause["name"]] = _answers(model, frame, cause, stops, seed)
    except VacaError:  # a known SCM may not be able to tell the noise behind a row
        return None
    if not found:
        return None
    x = model.schema_.encode(frame)
    return {
        "columns": columns,
        "people": [
            {"label": str(label), "before": {c: _plain(x[c][i]) for c in x}}
            for i, label in enumerate(frame.index)
        ],
        "causes": found,
        "outcome": outcome,
    }


def as_script(data: dict[str, Any]) -> str:
    """JSON that can stand in a page: it cannot end its own element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _spread_people(model: CausalModel, rows: pd.DataFrame, first: int, outcome: str) -> list[int]:
    """The first, and others spread over the outcome."""
    values = model.schema_.encode_column(outcome, rows[outcome]).astype(float)
    order = np.argsort(values, kind="stable")
    spread = order[np.linspace(0, len(order) - 1, PEOPLE).astype(int)]
    return list(dict.fromkeys([first, *(int(i) for i in spread)]))[:PEOPLE]


def _stops(cause: dict[str, Any]) -> list[Any]:
    if "levels" in cause:
        return list(range(len(cause["levels"])))
    steps = round((cause["max"] - cause["min"]) / cause["step"])
    stride = max(1, -(-steps // (STOPS - 1)))
    digits = max(0, -int(np.floor(np.log10(cause["step"]))))
    return [round(cause["min"] + k * cause["step"], digits) for k in range(0, steps + 1, stride)]


def _answers(
    model: CausalModel, frame: pd.DataFrame, cause: dict[str, Any], stops: list[Any], seed: int
) -> dict[str, Any]:
    name, node = cause["name"], cause["node"]
    many = frame.iloc[np.repeat(np.arange(len(frame)), len(stops))].reset_index(drop=True)
    column = model.schema_[name]
    given = [column.levels[s] for s in stops] if column.discrete else stops
    values = pd.Series(given * len(frame), index=many.index)
    own = model.graph.columns(node)
    do: dict[str, Any] = {node: values}
    if own != (node,):
        do = {node: {c: values if c == name else many[c] for c in own}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SupportWarning)
        point = model.counterfactual(many, do, seed=seed)
        drawn = model.counterfactual(many, do, draws=DRAWS, seed=seed)
    y = model.schema_.encode(pd.DataFrame(point))
    ends = drawn.summary(BAND)
    spread = model.schema_.encode(pd.DataFrame(drawn).reset_index(drop=True))
    names = [f"{100 * q:g}%" for q in BAND]
    reached = [c for n in cause["reaches"] for c in model.graph.columns(n)]
    result: dict[str, Any] = {}
    for c in reached:
        after = [_plain(v) for v in y[c]]
        if model.schema_[c].discrete:
            count = len(model.schema_[c].levels)
            codes = spread[c].reshape(len(many), DRAWS)
            shares = np.stack([(codes == k).mean(axis=1) for k in range(count)], axis=1)
            result[c] = {"after": after, "shares": np.round(shares, 3).tolist()}
        else:
            low, high = (ends[c, n].to_numpy(dtype=float) for n in names)
            result[c] = {
                "after": after,
                "low": [float(f"{min(a, b):.6g}") for a, b in zip(low, after, strict=True)],
                "high": [float(f"{max(a, b):.6g}") for a, b in zip(high, after, strict=True)],
            }
    return {"stops": stops, "answers": result}


def _plain(value: Any) -> float | int:
    return int(value) if isinstance(value, (int, np.integer)) else float(value)
