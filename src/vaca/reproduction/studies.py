"""Beyond the paper's tables: what happens when its assumptions bend.

Four questions that the paper leaves to future work: a wrong graph, a hidden common cause, long
chains of causes, few or many rows. Each gives a figure and the table behind it.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd

from vaca.reproduction.comparison import TITLES, label, score_frame, spread
from vaca.reproduction.experiment import Experiment, Options, Reports, plan
from vaca.reproduction.figures import Picture, bar_words, bars, lines, trend_words
from vaca.reproduction.result_tables import Cell, Table
from vaca.reproduction.run import Run
from vaca.reproduction.truths import load_truth

__all__ = ["STUDIES"]

#: The paper's model and the default one.
MODELS = ("vaca-paper", "composite")
# These studies compare settings with one another: the text's definitions, and fewer resamples.
SIZES: dict[str, Any] = {"protocols": ("paper",), "rows": 5000, "resamples": 5, "factuals": 1000}

LENGTHS = (3, 5, 8, 12, 16, 20)
STRENGTHS = (0.0, 0.25, 0.5, 1.0, 2.0)
ROWS = (250, 1000, 4000, 16_000, 100_000)
#: The paper's model makes its 500 rounds over all rows, however many there are.
MOST_ROWS = {"vaca-paper": 16_000}
#: Its cost grows with the third power of the path: 12 nodes take six CPU minutes.
MOST_NODES = {"vaca-paper": 12}
#: Changes of each kind that are tried, of all that a graph allows.
TRIED = 2
EDITS = ("as it is", "edge left out", "edge added", "edge turned")
SHOWN = ("obs_mmd", "int_mmd", "cf_mse")


def _paper_scores(reports: Reports) -> pd.DataFrame:
    frame = score_frame(reports)
    return frame[frame["protocol"] == "paper"].reset_index(drop=True)


def _table(frame: pd.DataFrame, by: str, title: str, heading: str) -> Table:
    """Scores by SCM, model and setting, with the floor."""
    rows = []
    for (scm, model, setting), part in frame.groupby(["scm", "model", by], sort=False):
        cells = [Cell(text=str(scm)), Cell(text=label(str(model))), Cell(text=_setting(setting))]
        for metric in TITLES:
            values = part[part["metric"] == metric]
            if values.empty:
                cells.append(Cell(text="-"))
                continue
            floor = float(values["floor"].mean())
            cells.append(
                Cell(
                    float(values["value"].mean()),
                    spread(values["value"].tolist()),
                    note=f"floor {floor:.3g}",
                )
            )
        cells.append(Cell(text=str(part["seed"].nunique())))
        rows.append(tuple(cells))
    return Table(
        title=title,
        caption="x100, protocol paper, mean and sd over seeds (and over edges, where several).",
        head=("SCM", "Model", heading, *TITLES.values(), "Seeds"),
        rows=tuple(rows),
        names=3,
    )


def _setting(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:g}"


# ---------------------------------------------------------------------- a wrong graph


def edits_of(scm: str) -> dict[str, tuple[str, ...]]:
    """Every single change to the SCM's graph that leaves it acyclic, by what it does.

    >>> edits_of("collider-lin")["edge turned"]
    ('~x1->x3', '~x2->x3')
    """
    graph = load_truth(scm).graph
    out = tuple(f"-{a}->{b}" for a, b in graph.edges)
    turned = tuple(
        f"~{a}->{b}"
        for a, b in graph.edges
        # Turning a -> b round closes a cycle exactly if there is another way from a to b.
        if not any(a in graph.ancestors(c) for c in graph.parents(b) if c != a)
    )
    added = tuple(
        f"+{a}->{b}"
        for a in graph.nodes
        for b in graph.nodes
        if a != b and a not in graph.parents(b) and b not in graph.ancestors(a)
    )
    return dict(zip(EDITS, (("",), out, added, turned), strict=True))


def _graph_runs(options: Options) -> list[Run]:
    seeds, scms, models = options.choose(
        seeds=3, scms=("triangle-nlin", "chain-nlin", "mgraph-nlin"), models=MODELS
    )
    runs = []
    for seed in seeds:
        for scm in scms:
            for kind, edits in edits_of(scm).items():
                for edit in _some(edits, 1 if options.quick else TRIED, (scm, kind)):
                    graph = (edit,) if edit else ()
                    runs += plan(options, [seed], [scm], models, graph=graph, **_sizes(options))
    return runs


def _some(edits: tuple[str, ...], count: int, where: tuple[str, str]) -> tuple[str, ...]:
    """A few of them, always the same, drawn at random."""
    if len(edits) <= count:
        return edits
    return tuple(random.Random("".join(where)).sample(edits, count))


def _graph_show(reports: Reports, options: Options) -> list[Table | Picture]:
    frame = _paper_scores(reports)
    kinds = {"": EDITS[0], "-": EDITS[1], "+": EDITS[2], "~": EDITS[3]}
    frame["change"] = [kinds[text[:1]] for text in frame["graph"]]
    panels = [(scm, m) for scm in dict.fromkeys(frame["scm"]) for m in SHOWN]
    picture = Picture(
        "sensitivity-graph",
        "What a wrong graph costs",
        bars(frame, "change", panels, order=EDITS),
        f"One edge left out, added or turned round: {TRIED} of each, drawn at random.",
        bar_words(frame, "change", EDITS),
    )
    return [picture, _table(frame, "change", "What a wrong graph costs", "Graph")]


# ---------------------------------------------------------------------- lines over a number


def _sizes(options: Options) -> dict[str, Any]:
    return {"protocols": ("paper",)} if options.quick else dict(SIZES)


def _parameter(name: str) -> float:
    return float(name.partition(":")[2])


def _line_show(
    reports: Reports,
    options: Options,
    *,
    x: str,
    name: str,
    title: str,
    xlabel: str,
    caption: str,
    log_x: bool = False,
    family: bool = False,
) -> list[Table | Picture]:
    frame = _paper_scores(reports)
    if family:  # the number is part of the SCM's name
        frame[x] = [_parameter(scm) for scm in frame["scm"]]
        frame["scm"] = [scm.partition(":")[0] for scm in frame["scm"]]
    panels = [(scm, m) for scm in dict.fromkeys(frame["scm"]) for m in SHOWN]
    figure = lines(frame, x, panels, xlabel=xlabel, log_x=log_x)
    table = _table(frame.sort_values(["scm", "model", x]), x, title, x)
    return [Picture(name, title, figure, caption, trend_words(frame, x, xlabel)), table]


def _confounding_runs(options: Options) -> list[Run]:
    scms = tuple(f"confounded:{s:g}" for s in STRENGTHS)
    seeds, scms, models = options.choose(seeds=3, scms=scms, models=MODELS)
    return plan(options, seeds, scms, models, **_sizes(options))


_confounding_show = partial(
    _line_show,
    x="strength",
    name="sensitivity-confounding",
    title="What a hidden common cause costs",
    xlabel="strength of the hidden cause of x2 and x3",
    caption="The observational fit stays good while interventional and counterfactual answers go "
    "wrong: data cannot show that the assumption is broken.",
    family=True,
)


def _depth_runs(options: Options) -> list[Run]:
    scms = tuple(f"long-chain:{n}" for n in LENGTHS)
    seeds, scms, models = options.choose(seeds=3, scms=scms, models=MODELS)
    runs = plan(options, seeds, scms, models, nodes=("x1",), **_sizes(options))
    if options.scms is not None:  # whoever names a length gets it
        return runs
    return [r for r in runs if _parameter(r.scm) <= MOST_NODES.get(r.model, max(LENGTHS))]


_depth_show = partial(
    _line_show,
    x="length",
    name="depth",
    title="What a long chain of causes costs",
    xlabel="nodes in the chain",
    caption="The first node is set; scores are over all the others. The decoder passes messages as "
    "often as the longest path is long.",
    family=True,
)


def _sample_size_runs(options: Options) -> list[Run]:
    seeds, scms, models = options.choose(
        seeds=3, scms=("triangle-nlin", "collider-nadd", "loan"), models=MODELS
    )
    sizes = _sizes(options)
    runs = []
    for seed in seeds:
        for rows in ROWS[: 3 if options.quick else None]:
            fields: Mapping[str, Any] = {"train": rows, "validation": max(100, rows // 2)}
            able = [m for m in models if rows <= MOST_ROWS.get(m, rows)]
            runs += plan(options, [seed], scms, able, **{**sizes, **fields})
    return runs


_sample_size_show = partial(
    _line_show,
    x="train",
    name="sample-size",
    title="What more rows buy",
    xlabel="training rows",
    caption="Scores against the number of rows the model is fitted to; the floor is that of the "
    "evaluation.",
    log_x=True,
)


STUDIES: Sequence[Experiment] = (
    Experiment(
        "sensitivity-graph",
        "Accuracy as edges of the graph are missing, added or turned round.",
        _graph_runs,
        _graph_show,
    ),
    Experiment(
        "sensitivity-confounding",
        "Accuracy under a hidden common cause of growing strength.",
        _confounding_runs,
        _confounding_show,
    ),
    Experiment(
        "depth", "Chains of 3 to 20 nodes: what happens as paths grow.", _depth_runs, _depth_show
    ),
    Experiment(
        "sample-size", "From 250 to 100,000 training rows.", _sample_size_runs, _sample_size_show
    ),
)
