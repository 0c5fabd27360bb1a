"""One self-contained page about a model: data, graph, fit, effects, pictures, assumptions.

The page needs no network and runs no script; its pictures are inside it. It reads on a phone and
prints to PDF.
"""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import vaca
from vaca.errors import SupportWarning, VacaError
from vaca.evaluation.heldout import encoded_matrix, holdout_scores, joint_scores
from vaca.evaluation.metrics import classifier_score
from vaca.model.answers import Effect, do_label
from vaca.model.causal_model import CausalModel
from vaca.show.plotting import (
    plot_densities,
    plot_effects,
    plot_graph,
    plot_history,
    plot_pairs,
    plot_person,
    plot_population,
    with_levels,
)
from vaca.table.contrast import compare
from vaca.table.files import complete
from vaca.table.schema import Schema, as_frame

__all__ = ["Question", "default_effects", "report_html", "write_report"]

#: Rows drawn for pictures and comparisons.
ROWS = 4000


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
        An intervention to show: its effects, the population before and after, one row.
    title : str
    seed : int

    Returns
    -------
    str
        HTML without any reference to another file.
    """
    from jinja2 import Environment

    frame = as_frame(data)[list(model.schema_.columns)]
    if not len(frame):
        raise VacaError("the table has no rows")
    unseen = held_out is not None
    test = as_frame(held_out)[list(model.schema_.columns)] if unseen else frame
    drawn = model.sample(min(ROWS, max(200, len(frame))), seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SupportWarning)  # the page says it where it matters
        asked = _question_part(model, test, question, seed) if question else None
        effects = default_effects(model, frame, seed=seed)
    known = frame.drop(index=test.index, errors="ignore") if unseen else frame
    known = known if len(known) else frame
    context = {
        "title": title,
        "version": vaca.__version__,
        "engine": _engine(model),
        "rows": len(frame),
        "columns": _column_table(model, frame),
        "graph": _picture(plot_graph(model.graph), "The causal graph"),
        "graph_facts": _graph_facts(model),
        "absent": _absent(model),
        "unseen": unseen,
        "test_rows": len(test),
        "scores": _score_table(model, test, known, seed),
        "joint": joint_scores(model, test, known, seed=seed),
        "told": _two_sample(model, test, drawn, seed),
        "marginals": _picture(
            plot_densities(
                with_levels(test, model.schema_),
                with_levels(drawn, model.schema_),
                labels=("held-out data" if unseen else "data", "model"),
            ),
            "Each column in the data and in rows drawn from the model",
        ),
        "pairs": _picture(
            plot_pairs(
                with_levels(test, model.schema_),
                with_levels(drawn, model.schema_),
                columns=_busiest(model, 6),
            ),
            "Pairs of columns in the data and in the model",
            "png",
        ),
        "history": _history(model),
        "asked": asked,
        "effects": effects,
        "effect_pictures": _effect_pictures(effects),
        "assumptions": _html(
            model.assumptions()
            .assign(exact=lambda t: np.where(t["exact"], "recovered exactly", "a stated choice"))
            .rename(columns={"exact": "noise", "rests_on": "rests on"})
        ),
    }
    page = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return page.from_string(_TEMPLATE).render(**context)


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


def _contrast(model: CausalModel, data: pd.DataFrame, name: str) -> tuple[Any, Any]:
    column = model.schema_[name]
    if not column.discrete:
        low, high = (float(q) for q in data[name].astype(float).quantile([0.25, 0.75]))
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


# ---------------------------------------------------------------------- parts of the page


def _engine(model: CausalModel) -> str:
    members = getattr(model, "members_", None)
    name = type(model).__name__
    if members:
        return f"an ensemble of {len(members)} {type(members[0]).__name__} models"
    return "a known SCM" if name == "StructuralCausalModel" else name


def _column_table(model: CausalModel, frame: pd.DataFrame) -> str:
    table = (
        model.schema_.table().drop(columns="dtype").rename(columns={"values": "levels or range"})
    )
    typical = []
    for name, column in model.schema_.items():
        if column.discrete:
            top = frame[name].astype(object).value_counts(normalize=True)
            typical.append(f"{top.index[0]} ({top.iloc[0]:.0%})")
        else:
            numbers = frame[name].astype(float)
            typical.append(f"{_number(numbers.mean())} ± {_number(numbers.std(), 3)}")
    table["most often, or mean ± sd"] = typical
    table["caused by"] = [
        ", ".join(model.graph.parents(model.graph.node_of(n))) or "nothing in the graph"
        for n in model.schema_
    ]
    return _html(table)


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
    return _html(
        scores.rename(columns={"baseline": "without causes", "explained": "explained by causes"})
    )


def _two_sample(model: CausalModel, test: pd.DataFrame, drawn: pd.DataFrame, seed: int) -> float:
    known, made = (encoded_matrix(model, model.schema_.encode(f)) for f in (test, drawn))
    n = min(len(known), len(made), 1000)
    if n < 4:
        return 0.5
    return float(classifier_score(known[:n], made[:n], np.random.default_rng([seed, 6])))


def _history(model: CausalModel) -> str:
    history = getattr(model, "history_", None)
    if history is None or not len(history):
        return ""
    return _picture(plot_history(history), "Training and validation loss by epoch")


def _question_part(
    model: CausalModel, test: pd.DataFrame, question: Question, seed: int
) -> dict[str, Any]:
    graph = model.graph
    nodes = {n if n in graph else graph.node_of(n) for n in (*question.do, *question.against)}
    reached = _reached(model, nodes)
    outcomes = list(question.outcomes) or [
        c for c in reached if not model.schema_[c].discrete or model.schema_[c].kind == "binary"
    ]
    if not outcomes:
        raise VacaError("name an outcome: the intervention reaches no number or binary column")
    effects = [
        model.effect(
            name,
            question.do,
            question.against,
            level=question.levels.get(name),
            seed=seed,
        )
        for name in outcomes
    ]
    before = model.sample(ROWS, question.against or None, seed=seed)
    after = model.sample(ROWS, question.do, seed=seed)
    label = f"do({do_label(question.do)})"
    base = f"do({do_label(question.against)})" if question.against else "as is"
    one = test.head(1)
    try:
        person = _picture(
            plot_person(
                with_levels(one, model.schema_),
                with_levels(
                    model.counterfactual(one, question.do, draws=200, seed=seed), model.schema_
                ),
                columns=list(model.schema_),
                population=with_levels(test, model.schema_),
            ),
            f"One row of the data as it was and under {label}",
        )
    except VacaError:  # a known SCM may not be able to tell the noise behind a row
        person = ""
    moved = [c for c in model.schema_ if c in reached or model.graph.node_of(c) in nodes]
    shown = Schema({c: model.schema_[c] for c in moved})
    changed = compare(before, after, shown, paired=True)
    changed = changed.rename(columns={"before": base, "after": label})
    return {
        "label": label,
        "base": base,
        "graph": _picture(plot_graph(model.graph, do=question.do), f"The graph under {label}"),
        "effects": effects,
        "texts": [str(effect) for effect in effects],
        "forests": _effect_pictures(effects),
        "outside": sorted({s for effect in effects for s in effect.outside_support}),
        "table": _html(changed),
        "population": _picture(
            plot_population(
                with_levels(before, shown),
                with_levels(after, shown),
                columns=moved,
                labels=(base, label),
            ),
            f"Each column as is and under {label}",
        ),
        "person": person,
        "still": [c for c in model.schema_ if c not in moved],
    }


def _reached(model: CausalModel, nodes: set[str]) -> list[str]:
    """The columns below an intervention, causes first."""
    below = {b for n in nodes for b in model.graph.descendants(n)} - nodes
    return [c for n in model.graph.order if n in below for c in model.graph.columns(n)]


def _effect_pictures(effects: Sequence[Effect]) -> list[str]:
    """A forest for each outcome, since outcomes have units of their own."""
    pictures = []
    for key in dict.fromkeys((e.outcome, e.level) for e in effects):
        group = [e for e in effects if (e.outcome, e.level) == key]
        pictures.append(
            _picture(plot_effects({_change(e): e for e in group}), f"Effects on {key[0]}")
        )
    return pictures


def _change(effect: Effect) -> str:
    """What an effect compares, without its outcome."""
    return (
        f"{do_label(effect.treatment)} against {do_label(effect.control)}"
        if effect.control
        else f"{do_label(effect.treatment)} against as is"
    )


def _picture(picture: Axes | Figure, text: str, kind: str = "svg") -> str:
    figure = picture if isinstance(picture, Figure) else picture.get_figure(root=True)
    if figure is None:
        raise VacaError("these axes belong to no figure")
    stream = io.BytesIO()
    figure.savefig(stream, format=kind, dpi=110, metadata={"Date": None} if kind == "svg" else None)
    mime = "image/svg+xml" if kind == "svg" else "image/png"
    content = base64.b64encode(stream.getvalue()).decode("ascii")
    # As an image of its own: ids inside one SVG then cannot meet those of another.
    return f'<img src="data:{mime};base64,{content}" alt="{escape(text, quote=True)}">'


def _number(value: float, digits: int = 4) -> str:
    return f"{value:,.0f}" if abs(value) >= 10 ** (digits - 1) else f"{value:.{digits}g}"


def _html(table: pd.DataFrame) -> str:
    """A table whose first column is the index."""
    flat = table.reset_index()
    head = "".join(f"<th>{escape(str(c)).replace('_', ' ')}</th>" for c in flat.columns)
    body = []
    for row in flat.itertuples(index=False):
        cells = []
        for value in row:
            if isinstance(value, float):
                cells.append(f'<td class="n">{_number(value)}</td>')
            else:
                cells.append(f"<td>{escape(str(value))}</td>")
        body.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"


_TEMPLATE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }}</title>
<link rel="icon" href="data:,">
<style>
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff;
  max-width: 60rem; margin: 0 auto; padding: 1rem; overflow-wrap: break-word; }
h1 { font-size: 1.8rem; line-height: 1.2; margin-bottom: .2rem; }
h2 { margin-top: 2.5rem; border-bottom: 2px solid #1a1a1a; }
img { display: block; max-width: 100%; height: auto; margin: 1rem 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; margin: 1rem 0; }
th, td { text-align: left; vertical-align: top; padding: .25rem .8rem .25rem 0;
  border-bottom: 1px solid #d0d0d0; }
td.n { text-align: right; font-variant-numeric: tabular-nums; }
.note { border-left: 4px solid #d55e00; padding: .1rem 1rem; background: #f7f7f7; }
.small { color: #555; font-size: .9rem; }
nav a { margin-right: 1rem; color: #0072b2; white-space: nowrap; }
@media screen and (max-width: 44rem) { .wide img { min-width: 38rem; } }
@media print { body { max-width: none; font-size: 11pt; } nav { display: none; }
  .wide { overflow: visible; } img, tr { break-inside: avoid; } h2 { break-after: avoid; } }
</style>
</head>
<body>
<header>
<h1>{{ title }}</h1>
<p class="small">{{ engine }}; {{ "{:,}".format(rows) }} rows of data; vaca {{ version }}</p>
<nav><a href="#data">Data</a><a href="#graph">Graph</a><a href="#fit">Fit</a>
{% if asked %}<a href="#question">Question</a>{% endif %}
{% if effects %}<a href="#effects">Effects</a>{% endif %}
<a href="#assumptions">Assumptions</a></nav>
</header>
<main>
<section id="data"><h2>The data</h2>
<div class="wide">{{ columns|safe }}</div></section>

<section id="graph"><h2>The graph</h2>
<p>{{ graph_facts }} An arrow says that changing the first would change the second directly. The
{{ absent }} pairs without an arrow are the strong claims: there is no direct effect between them.
The graph was given, not learned: every number below is true only as far as it is.</p>
<div class="wide">{{ graph|safe }}</div></section>

<section id="fit"><h2>How well the model reproduces the data</h2>
{% if unseen %}<p>Scored on {{ "{:,}".format(test_rows) }} rows that the model has not seen.</p>
{% else %}<p class="note">Scored on rows that the model may have been fitted to: read the scores as
the best case.</p>{% endif %}
<p>Each column is drawn anew with its direct causes as they were, and compared with what was
observed (CRPS for numbers, in standard deviations; Brier score for levels; lower is better).
“Explained by causes” is what is gained over the column's own distribution, 0 % for columns without
causes.</p>
<div class="wide">{{ scores|safe }}</div>
<p>All columns together: the energy distance between rows of the model and data is
<strong>{{ "%.4f"|format(joint.model) }}</strong>; it is {{ "%.4f"|format(joint.baseline) }} if the
columns are drawn without the graph, and about {{ "%.4f"|format(joint.floor) }} for a perfect model.
A classifier that is to tell drawn rows from data is right in
<strong>{{ "%.0f"|format(100 * told) }} %</strong> of cases; 50 % is guessing.</p>
<div class="wide">{{ marginals|safe }}</div>
<div class="wide">{{ pairs|safe }}</div>
{% if history %}<h3>Training</h3>{{ history|safe }}{% endif %}
<p class="note">A good fit to the data does not show that the graph is right, nor that answers to
interventions are: several graphs can fit the same data equally well.</p></section>

{% if asked %}
<section id="question"><h2>The question: {{ asked.label }}</h2>
{% for text in asked.texts %}<p>{{ text[0]|upper }}{{ text[1:] }}.</p>{% endfor %}
{% for text in asked.outside %}<p class="note">Outside the data: {{ text }}. Read these
numbers as an extrapolation.</p>{% endfor %}
<div class="wide">{{ asked.graph|safe }}</div>
{% for picture in asked.forests %}<div class="wide">{{ picture|safe }}</div>{% endfor %}
<h3>The population, {{ asked.base }} and under {{ asked.label }}</h3>
{% if asked.still %}<p>Not shown, as no arrow leads there from what is changed:
{{ asked.still|join(", ") }}.</p>{% endif %}
<div class="wide">{{ asked.table|safe }}</div>
<div class="wide">{{ asked.population|safe }}</div>
{% if asked.person %}<h3>One row of the data</h3>{{ asked.person|safe }}{% endif %}
</section>
{% endif %}

{% if effects %}
<section id="effects"><h2>What matters for {{ effects[0].outcome }}</h2>
<p>Average effects of each of its causes: numbers from their lower to their upper quartile, levels
from the most frequent to the second most frequent. An effect includes what passes through other
columns. Intervals cover the rows drawn and, if there are several members, the spread between them;
not a wrong graph.</p>
{% for picture in effect_pictures %}<div class="wide">{{ picture|safe }}</div>{% endfor %}</section>
{% endif %}

<section id="assumptions"><h2>What the answers rest on</h2>
<ul>
<li>The graph is right: every arrow that matters is there, and what has no arrow has no direct
effect.</li>
<li>No hidden common cause of two columns. Data cannot show this.</li>
<li>Questions about interventions and populations need no more than that. Counterfactuals of a
single row also need the noise behind the row, and that is a choice where the data cannot tell:</li>
</ul>
<div class="wide">{{ assumptions|safe }}</div></section>
</main>
</body>
</html>
"""
