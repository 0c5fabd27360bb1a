"""The report as one page: the answer first, then how far to trust it, then all else."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

import vaca
from vaca.errors import SupportWarning, VacaError, shorten
from vaca.model.answers import Effect, do_label
from vaca.model.arguments import check_model
from vaca.model.causal_model import CausalModel
from vaca.show.pages import picture, render, template
from vaca.show.plot import (
    plot_effects,
    plot_graph,
    plot_person,
    plot_population,
    with_levels,
)
from vaca.show.plot.parts import check_text, without_tails
from vaca.show.report.model_part import engine_words, model_part, quick_check
from vaca.show.report.question import Answered, Question, answer, default_effects, strongest
from vaca.show.report.trust_strip import strip
from vaca.show.report.whatif_data import as_script, moved_person, precomputed
from vaca.show.words import effect_sentence, number, points, setting_words
from vaca.table.dtypes import as_numbers, holds_dates
from vaca.table.files import complete
from vaca.table.schema import as_frame

__all__ = ["report_html", "write_report"]


def write_report(
    model: CausalModel,
    data: Any,
    out: str | Path,
    *,
    held_out: Any = None,
    question: Question | None = None,
    title: str = "Causal model",
    seed: int = 0,
) -> Path:
    """Write `report_html` to a file, all or nothing, and give its path."""
    page = report_html(model, data, held_out=held_out, question=question, title=title, seed=seed)
    with complete(out) as part:
        part.write_text(page, encoding="utf-8")
    return Path(out)


def report_html(
    model: CausalModel,
    data: Any,
    *,
    held_out: Any = None,
    question: Question | None = None,
    title: str = "Causal model",
    seed: int = 0,
) -> str:
    """A page about a model and the table it was fitted to.

    Parameters
    ----------
    model : CausalModel
    data : DataFrame
        Rows of the population, in the columns of the model.
    held_out : DataFrame, optional
        Rows that the model has not seen. Without them the scores are of rows that it may have
        been fitted to, and the page says so.
    question : Question, optional
        The intervention that the page answers. Without one it takes the cause that matters most
        for the last column.
    title : str
    seed : int

    Returns
    -------
    str
        HTML without any reference to another file.
    """
    check_model("model", model)
    check_text("title", title)
    if question is not None and not isinstance(question, Question):
        raise VacaError(f"a question is a vaca.report.Question; got {shorten(question)}")
    frame = as_frame(data)
    if not len(frame):
        raise VacaError("the table has no rows")
    model.schema_.encode(frame)  # or the error says which column or row does not fit
    frame = frame[list(model.schema_.columns)]
    unseen = held_out is not None
    if unseen:
        model.schema_.encode(as_frame(held_out))
    test = as_frame(held_out)[list(model.schema_.columns)] if unseen else frame
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SupportWarning)  # the page says it where it matters
        effects = default_effects(model, frame, seed=seed)
        question = question or strongest(effects)
        asked = None if question is None else answer(model, question, seed)
    checked = quick_check(model, frame, test if unseen else None, seed)
    graph = None if checked is None else checked.graph
    return render(
        "report.html",
        title=title,
        version=vaca.__version__,
        engine=engine_words(model),
        rows=len(frame),
        style=template("page.css"),
        ladder=template("ladder.js"),
        script=template("report.js"),
        asked=None if asked is None else _asked_part(model, frame, test, asked, graph, seed),
        outcome=effects[0].outcome if effects else "",
        effects=_forest(effects, "cause") if effects else "",
        m=model_part(model, frame, test, unseen, checked, seed),
    )


def _asked_part(
    model: CausalModel,
    frame: pd.DataFrame,
    test: pd.DataFrame,
    asked: Answered,
    graph: Any,
    seed: int,
) -> dict[str, Any]:
    first, *others = asked.effects
    says, sure = _split(effect_sentence(first, model.schema_[first.outcome]))
    schema = model.schema_
    tables = [with_levels(t, schema) for t in (asked.before, asked.after)]
    reached = [c for c in asked.moved if c not in asked.question.do]
    part: dict[str, Any] = {
        "label": asked.label,
        "base": asked.base,
        "says": says,
        "sure": sure,
        "others": [effect_sentence(e, model.schema_[e.outcome]) for e in others],
        "outside": sorted({s for e in asked.effects for s in e.notes()}),
        "trust": strip(model, first, graph, seed),
        "graph": picture(
            plot_graph(model.graph, do=asked.question.do),
            f"The causal graph under {asked.label}: the arrows into what is set are cut, and what "
            f"it reaches is shaded ({', '.join(reached) or 'nothing'}).",
        ),
        "population": _populations(tables, frame, asked),
        "forest": _forest(asked.effects, "outcome") if others else "",
        "still": asked.still,
        "whatif": "",
        "person": "",
    }
    try:
        row = moved_person(model, test, asked)
    except VacaError:  # a known SCM may not be able to tell the noise behind a row
        return part
    one = test.iloc[[row]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SupportWarning)
        drawn = model.counterfactual(one, asked.question.do, draws=200, seed=seed)
        point = model.counterfactual(one, asked.question.do, seed=seed)
    figure = plot_person(
        *(with_levels(t, schema) for t in (one, drawn)),
        columns=list(schema),
        population=with_levels(test, schema),
        title=f"Row {one.index[0]} as it was, and under {asked.label}",
    )
    name = first.outcome
    part["person"] = picture(
        figure,
        f"A ladder with a rung for each column: row {one.index[0]} as it was and, had "
        f"{setting_words(asked.question.do).replace(' had been ', ' been ')}, as it would have "
        f"been; {name} {_value(one[name].iloc[0])} and {_value(point[name].iloc[0])}.",
    )
    data = precomputed(model, test, row, name, seed)
    if data is not None:
        data["start"] = _start(model, data, asked)
    part["whatif"] = "" if data is None else as_script(data)
    return part


def _populations(tables: list[pd.DataFrame], frame: pd.DataFrame, asked: Answered) -> str:
    """A picture for each column that moves, so that a narrow screen can put one below the other."""
    labels = (asked.base, asked.label)
    limits = _limits(frame, asked)
    return "".join(
        picture(
            plot_population(*tables, columns=[name], labels=labels, limits=limits),
            f"{name} {asked.base} (filled) and under {asked.label} (hatched): "
            + (_moves(name, asked) or _apart(*(table[name] for table in tables))),
        )
        for name in asked.moved
    )


def _moves(name: str, asked: Answered) -> str:
    """The effect on the column in words: the same number as everywhere else."""
    for effect in asked.effects:
        if effect.outcome == name:
            way = "rises" if effect.value > 0 else "falls"
            if effect.level is not None:
                size = points(abs(effect.value)).lstrip("+")
                return f"the share of {effect.level} {way} by {size} points."
            return f"{name} {way} by {number(abs(effect.value))} on average."
    return ""


def _apart(before: pd.Series, after: pd.Series) -> str:
    """How two columns differ, for those who do not see the picture."""
    if pd.api.types.is_numeric_dtype(before.dtype):
        return f"mean {number(float(before.mean()))} and {number(float(after.mean()))}."
    if holds_dates(before):
        return f"mean {before.mean():%Y-%m-%d} and {after.mean():%Y-%m-%d}."
    shares = [s.astype(object).value_counts(normalize=True) for s in (before, after)]
    said = dict.fromkeys([*shares[0].index, *shares[1].index])
    parts = [f"{v} {shares[0].get(v, 0.0):.0%} and {shares[1].get(v, 0.0):.0%}" for v in said]
    return ", ".join(parts[:8]) + ("." if len(parts) <= 8 else f", and {len(parts) - 8} more.")


def _limits(frame: pd.DataFrame, asked: Answered) -> dict[str, tuple[float, float]]:
    """The range of the data in each column that is a number, without its tails."""
    numbers = frame[asked.moved].select_dtypes("number")
    return {str(c): without_tails(as_numbers(numbers[c].dropna())) for c in numbers}


def _start(model: CausalModel, data: dict[str, Any], asked: Answered) -> dict[str, Any]:
    """The cause and the setting that the page shows first: those of its question."""
    for name, value in asked.question.do.items():
        if name in data["causes"] and isinstance(value, (int, float, str)):
            stops = data["causes"][name]["stops"]
            at = float(model.schema_.encode_value(name, value))
            nearest = min(range(len(stops)), key=lambda k: abs(stops[k] - at))
            return {"cause": name, "stop": nearest}
    return {}


def _split(sentence: str) -> tuple[str, str]:
    """The answer and, in brackets after it, how certain it is."""
    says, bracket, sure = sentence.rpartition(" (")
    return says + ".", bracket.strip() + sure.rstrip(".")


def _value(value: Any) -> str:
    return number(float(value)) if isinstance(value, (int, float)) else str(value)


def _forest(effects: Sequence[Effect], by: str) -> str:
    """Effects one above the other, a picture for each outcome since units differ."""
    pictures = []
    for key in dict.fromkeys((e.outcome, e.level) for e in effects):
        group = [e for e in effects if (e.outcome, e.level) == key]
        top = max(group, key=lambda e: abs(e.value))
        words = f"Average effects on {key[0]} with their intervals, one line for each {by}; "
        size = f"{points(top.value)} points" if top.level is not None else number(top.value)
        words += f"the largest is {size}, of {_change(top)}."
        pictures.append(picture(plot_effects({_change(e): e for e in group}), words))
    return "".join(f'<div class="wide">{one}</div>' for one in pictures)


def _change(effect: Effect) -> str:
    """What an effect compares, without its outcome."""
    if not effect.control:
        return f"{do_label(effect.treatment)}, against as is"
    if list(effect.control) == list(effect.treatment) and len(effect.control) == 1:
        ((name, high),), low = effect.treatment.items(), next(iter(effect.control.values()))
        if not isinstance(high, dict):
            return f"{name}: {_value(high)} against {_value(low)}"
    return f"{do_label(effect.treatment)} against {do_label(effect.control)}"
