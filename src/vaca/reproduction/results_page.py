"""The page of results, written from the stored reports: nothing is computed again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from vaca.evaluation import METRICS
from vaca.reproduction.catalogue import EXPERIMENTS
from vaca.reproduction.comparison import (
    NOT_COMPARABLE,
    TITLES,
    Comparison,
    compare,
    label,
    results_table,
    score_frame,
)
from vaca.reproduction.experiment import Experiment, Options, Reports
from vaca.reproduction.figures import Picture
from vaca.reproduction.paper import PAPER, RESULT_MODELS, SCMS
from vaca.reproduction.result_charts import glance
from vaca.reproduction.result_tables import Cell, Table, number, to_markdown
from vaca.reproduction.run import Run, Store

__all__ = ["accuracy", "paper_page", "pictures", "shown_picture", "summary"]

TABLE_RESULTS = next(e for e in PAPER if e.name == "table-results")
# Shown if their runs are stored. Pairs need no runs; the page on the paper has the others.
LEFT_OUT = (
    "table-results",
    "figure-jacobians",
    "figure-pairs",
    "figure-time",
    "figure-params",
    "cross-validation",
)
OTHERS = [e for e in EXPERIMENTS.values() if e.name not in LEFT_OUT]
MOST_SEEDS = tuple(range(20))
#: Longer tables are folded.
FOLD = 12
#: Every experiment on the page has a heading in words.
HEADINGS = {
    "table-design": "How deep the decoder must be",
    "table-params": "Size by the dimension of z",
    "table-fairness": "Fair classifiers on German Credit",
    "figure-latent-dim": "Accuracy by the dimension of z",
    "sensitivity-graph": "A wrong graph",
    "sensitivity-confounding": "A hidden common cause",
    "depth": "Deep graphs",
    "sample-size": "Few rows and many",
    "unseen": "True models that no choice was made on",
    "auto": "How good the winner of a contest of engines is",
    "check": "Wrong graphs and bad fits that `vaca check` finds",
    "coverage": "How often an interval holds the truth",
    "missing": "Tables with gaps",
    "default": "The default engine against every single one",
}

HOW = """\
Every figure is x100, the mean and the sd over seeds. A model was fitted to 5000 rows (and stopped
by 2500 others) of each true model, and its answers were compared with the truth. `floor` is what
the truth itself scores in the model's place, with fresh noise: nothing can be expected to do
better."""

MADE_BY = "Made by `vaca reproduce table-results`; the reports are in `results/runs`."

PUBLISHED = """\
What the published figures measure (see [deviations](deviations.md)). **Bold** is better than
published by more than two standard errors, *italics* is worse. A model in the paper's
configuration is compared with the published row of the same name, any other with the best of the
three. The published StdE is not a distance from zero: a perfect model scores the floor, so cells
are compared by how far they are from it."""

PAPER_TEXT = """\
The definitions in the paper's text: all non-leaf nodes, means of squared errors, MMD averaged over
resamples of independent rows. Nothing published is comparable; compare with the floor."""

WHY = {
    "carefl-paper": "The published CAREFL intervenes on nodes without enforcing the value and has "
    "a wider prior; ours follows the method.",
    "multicvae-paper": "The published MultiCVAE was scored in raw units.",
    "vaca-paper": "The network is the published one (on adult with two more layers); its starting "
    "weights and what abduction keeps are not (see [deviations](deviations.md)). Its MMDs, means "
    "and CF MSE are better or the same; these cells measure spread.",
    "flow": "In mgraph-nadd a parent turns the sign of the noise, which no data can show. In "
    "triangle-nlin x2 follows x1 closely, so that `do(x2)` asks for pairs that the data hardly "
    "have.",
    "composite": "The two cells are those of CausalFlow, for its reasons; in triangle-nlin the "
    "published figure is at the floor.",
    "additive": "Its noise is added, and in the nadd SCMs it is multiplied: the answer is outside "
    "what it can say. It is here as the baseline that others must beat elsewhere.",
}


#: In the page on the paper: what is shown where this stands before `<!-- end -->`.
MARK = re.compile(r"<!-- study: ([a-z-]+) -->\n(?:.*?\n)??<!-- end -->", re.DOTALL)
#: Of the pictures of an experiment, the page on the paper shows these only.
SOME = {"figure-pairs": ("figure-pairs-collider-nadd", "figure-pairs-loan", "figure-pairs-adult")}


def paper_page(text: str, store: Store) -> tuple[str, list[Picture]]:
    """The page on the paper with its marks filled in, and the pictures that it refers to."""
    found: list[Picture] = []

    def fill(mark: re.Match[str]) -> str:
        name = mark[1]
        reports = _stored(store, EXPERIMENTS[name])
        if not reports and EXPERIMENTS[name].runs(Options()):
            return f"<!-- study: {name} -->\nNo run of `{name}` is stored.\n<!-- end -->"
        parts = []
        for item in EXPERIMENTS[name].show(reports, Options()):
            if isinstance(item, Picture):
                if name in SOME and item.name not in SOME[name]:
                    continue
                found.append(item)
                parts.append(shown_picture(item))
            else:
                parts.append(f"{item.caption}\n\n{to_markdown(item).rstrip()}")
        parts.append(f"Made by `vaca reproduce {name}`.")
        body = "\n\n".join(parts)
        return f"<!-- study: {name} -->\n{body}\n<!-- end -->"

    return MARK.sub(fill, text), found


def _reports(store: Store) -> Reports:
    """The finished runs of the results table, whatever their number of seeds."""
    wanted = {run.key for run in TABLE_RESULTS.runs(Options(seeds=MOST_SEEDS))}
    return [r for r in store.reports() if _key(r) in wanted]


def _stored(store: Store, experiment: Experiment) -> Reports:
    """The finished runs of an experiment: of as many seeds as there are, or of its own."""
    own = (Options(seeds=MOST_SEEDS), Options())
    return next((r for r in (store.reports(experiment.known_runs(o, store)) for o in own) if r), [])


def _key(report: Mapping[str, Any]) -> str:
    return Run.from_dict(report["run"]).key


def _cells(reports: Reports) -> list[Comparison]:
    return list(compare(reports, SCMS, RESULT_MODELS))


def accuracy(store: Store) -> str:
    """The accuracy part of the page, in Markdown; empty if there are no reports."""
    reports = _reports(store)
    if not reports:
        return ""
    seeds = Counter((r["run"]["scm"], r["run"]["model"]) for r in reports)
    counts = sorted(set(seeds.values()))
    spoken = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    parts = [
        "## Accuracy",
        *(shown_picture(picture) for picture in glance(_cells(reports))),
        HOW,
        f"{len(reports)} runs, {spoken} seeds for each cell. {MADE_BY}",
        *_tallies(reports),
        "### Against the published figures",
        PUBLISHED,
        _folded("Every figure", results_table(reports, "published", SCMS, RESULT_MODELS)),
        *_worse(reports),
        "### Against the truth",
        PAPER_TEXT,
        _folded("Every figure", results_table(reports, "paper", SCMS, RESULT_MODELS)),
    ]
    parts += _missing(seeds)
    for experiment in OTHERS:
        found = _stored(store, experiment)
        if not found:
            continue
        parts.append(f"### {HEADINGS[experiment.name]}")
        parts.append(f"{experiment.help} Made by `vaca reproduce {experiment.name}`.")
        shown = experiment.show(found, Options())
        for item in shown:
            if isinstance(item, Picture):
                parts.append(shown_picture(item))
            else:
                parts += [f"#### {item.title}"] if len(shown) > 1 else []
                parts += [item.caption, _folded("The table", item)]
    return "\n\n".join(parts) + "\n"


def shown_picture(picture: Picture) -> str:
    """A picture on the page, with its alternative text, and its caption below."""
    words = picture.caption or picture.title
    return f"![{picture.alt or picture.title}](images/results/{picture.name}.png)\n\n{words}"


def _folded(words: str, table: Table) -> str:
    """A table that opens when it is asked for, if it is long."""
    text = to_markdown(table).rstrip()
    if len(table.rows) <= FOLD:
        return text
    return (
        f'<details markdown="1"><summary>{words}: {len(table.rows)} lines</summary>\n\n{text}\n\n'
        "</details>"
    )


def pictures(store: Store) -> Iterator[Picture]:
    """The pictures that `accuracy` refers to."""
    yield from glance(_cells(_reports(store)))
    for experiment in OTHERS:
        found = _stored(store, experiment)
        if found:
            shown = experiment.show(found, Options())
            yield from (item for item in shown if isinstance(item, Picture))


def tally(reports: Reports) -> Table:
    """How many cells of each model are better, the same, worse than published; and the ratios."""
    cells = _cells(reports)
    frame = score_frame(reports)
    frame = frame[(frame["protocol"] == "paper") & (frame["floor"] > 1e-6)]
    rows = []
    for model in RESULT_MODELS:
        mine = Counter(c.tone for c in cells if c.model == model)
        if not mine:
            continue
        row = [Cell(text=label(model))]
        row += [Cell(text=str(mine[tone])) for tone in ("better", "same", "worse")]
        for metric in ("obs_mmd", "int_mmd", "int_mean_e", "int_std_e"):
            part = frame[(frame["model"] == model) & (frame["metric"] == metric)]
            ratio = part.groupby("scm")["value"].mean() / part.groupby("scm")["floor"].mean()
            row.append(Cell(float(np.median(ratio))) if len(ratio) else Cell(text="-"))
        rows.append(tuple(row))
    ratios = tuple(f"{TITLES[m]} / floor" for m in METRICS[:4])
    return Table(
        title="Tally",
        head=("Model", "better", "same", "worse", *ratios),
        rows=tuple(rows),
        caption="Cells against the published ones (protocol published), and the median over the "
        "SCMs of score / floor (protocol paper).",
    )


def _tallies(reports: Reports) -> list[str]:
    table = tally(reports)
    return [to_markdown(table).rstrip(), table.caption]


def summary(store: Store) -> str:
    """A picture and a sentence for the front page; empty if there are no reports."""
    pictures = glance(_cells(_reports(store)))
    return "\n\n".join(
        f"![{p.title}](docs/images/results/{p.name}.png)\n\n{p.caption}" for p in pictures[:1]
    )


def _worse(reports: Reports) -> list[str]:
    cells = [c for c in _cells(reports) if c.tone == "worse"]
    if not cells:
        return ["No comparable cell is worse than published by more than two standard errors."]
    lines = [
        f"- {c.scm}, {label(c.model)}, {TITLES[c.metric]}: {number(c.mean)} against "
        f"{number(c.published)} ({c.who}); floor {number(c.floor)}"
        for c in cells
    ]
    known = [f"- {label(m)}: {why}" for m, why in WHY.items() if any(c.model == m for c in cells)]
    listed = "\n".join(lines)
    parts = [
        f"#### Worse than published: {len(cells)}",
        f'<details markdown="1"><summary>Which ones</summary>\n\n{listed}\n\n</details>',
    ]
    if known:
        parts += ["What is known about them:", "\n".join(known)]
    return parts


def _missing(seeds: Counter[tuple[str, str]]) -> Sequence[str]:
    absent = [f"{scm} {label(m)}" for m in RESULT_MODELS for scm in SCMS if not seeds[scm, m]]
    marked = ", ".join(NOT_COMPARABLE)
    note = f"Published rows of {marked} are not comparable (see the footnotes)."
    return [note, *([f"No run is stored for: {', '.join(absent)}."] if absent else [])]
