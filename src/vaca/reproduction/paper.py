"""The paper's own tables and figures, as lists of runs and views of their reports."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from vaca.reproduction.comparison import label, results_table, score_frame, spread, verdict
from vaca.reproduction.experiment import Experiment, Options, Reports, plan
from vaca.reproduction.fairness_study import fairness_runs, fairness_show
from vaca.reproduction.figures import Picture, box, box_words, lines, trend_words
from vaca.reproduction.jacobians import jacobian_picture
from vaca.reproduction.result_tables import Cell, Table, Tone
from vaca.reproduction.run import Run
from vaca.reproduction.truths import load_truth

__all__ = ["PAPER", "RESULT_MODELS", "SCMS"]

SCMS = (
    *(
        f"{graph}-{form}"
        for graph in ("collider", "triangle", "mgraph", "chain")
        for form in ("lin", "nlin", "nadd")
    ),
    "loan",
    "adult",
)
PUBLISHED_MODELS = ("multicvae-paper", "carefl-paper", "vaca-paper")
#: The quick form takes those in front, which have one.
RESULT_MODELS = (*PUBLISHED_MODELS, "vaca", "flow", "additive", "composite")


# ---------------------------------------------------------------------- tables 1 and 7


def _results_choice(options: Options) -> tuple[Sequence[int], Sequence[str], Sequence[str]]:
    models = RESULT_MODELS[:-2] if options.quick else RESULT_MODELS
    return options.choose(seeds=5, scms=SCMS, models=models)


def _results_runs(options: Options) -> list[Run]:
    # A quick look is for the table beside the published one; the other protocol takes longer.
    fields: dict[str, Any] = {"protocols": ("published",)} if options.quick else {}
    return plan(options, *_results_choice(options), **fields)


def _results_show(reports: Reports, options: Options) -> list[Table | Picture]:
    _, scms, models = _results_choice(options)
    protocols = ("published",) if options.quick else ("published", "paper")
    return [results_table(reports, protocol, scms, models) for protocol in protocols]


# ---------------------------------------------------------------------- times, sizes


def _boxes(reports: Reports, what: str) -> dict[str, dict[str, list[float]]]:
    values: dict[str, dict[str, list[float]]] = {}
    for report in reports:
        if report.get(what) is not None:
            graph = report["run"]["scm"].split("-")[0]
            models = values.setdefault(graph, {})
            models.setdefault(report["run"]["model"], []).append(float(report[what]))
    return values


def _time_show(reports: Reports, options: Options) -> list[Table | Picture]:
    values = _boxes(reports, "fit_cpu_seconds")
    figure = box(values, ylabel="CPU seconds to fit")
    caption = "CPU seconds to fit 5000 rows, one thread, over equations and seeds."
    alt = box_words(values, "CPU seconds")
    return [Picture("figure-time", "Training time", figure, caption, alt)]


def _params_show(reports: Reports, options: Options) -> list[Table | Picture]:
    values = _boxes(reports, "parameters")
    figure = box(values, ylabel="parameters")
    alt = box_words(values, "number of parameters")
    caption = "Over equations and seeds."
    return [Picture("figure-params", "Number of parameters", figure, caption, alt)]


# ---------------------------------------------------------------------- pairs


def _no_runs(options: Options) -> list[Run]:
    return []


#: What one sees, of those that the docs show.
PAIRS_WORDS = {
    "collider-nadd": "x1 has two humps, x2 one, and x3 lies on a bowl over x1, steep at both ends.",
    "loan": "the loan falls off for old and for young ages, its duration rises with it, and income "
    "and savings rise together.",
    "adult": "education and hours fall into separate bands, hours have a spike at zero for the "
    "old, and income takes a few heights.",
}


def _pairs_show(reports: Reports, options: Options) -> list[Table | Picture]:
    from vaca.show.plot import plot_pairs  # matplotlib takes a second to import

    pictures = []
    for scm in options.scms or SCMS:
        data = load_truth(scm).sample(1000, seed=0)
        figure = plot_pairs(data, columns=list(data.columns))
        figure.suptitle(scm, fontsize=10)
        alt = f"Histograms and scatter plots of {len(data.columns)} columns of {scm}"
        alt += f": {PAIRS_WORDS[scm]}" if scm in PAIRS_WORDS else "."
        caption = "Rows of the true model."
        pictures.append(Picture(f"figure-pairs-{scm}", scm, figure, caption, alt))
    return pictures


def _jacobians_show(reports: Reports, options: Options) -> list[Table | Picture]:
    return [jacobian_picture()]


# ---------------------------------------------------------------------- table 3: hidden layers

DESIGN_SCMS = ("collider-lin", "triangle-lin", "chain-lin")
LAYERS = (0, 1, 2)
# Table 3 of the paper: (graph, hidden layers) -> obs. and int. MMD, mean and sd, x100.
PUBLISHED_DESIGN = {
    ("collider", 0): ((1.86, 0.84), (1.16, 0.86)),
    ("collider", 1): ((1.31, 0.36), (0.75, 0.17)),
    ("collider", 2): ((1.32, 0.41), (1.09, 1.08)),
    ("triangle", 0): ((21.76, 5.80), (48.47, 12.57)),
    ("triangle", 1): ((9.17, 2.39), (19.91, 4.75)),
    ("triangle", 2): ((7.19, 3.14), (14.10, 6.45)),
    ("chain", 0): ((9.69, 1.92), (17.24, 2.82)),
    ("chain", 1): ((6.44, 1.52), (10.36, 2.67)),
    ("chain", 2): ((4.35, 1.77), (6.55, 1.64)),
}


def _design_runs(options: Options) -> list[Run]:
    seeds, scms, models = options.choose(seeds=5, scms=DESIGN_SCMS, models=("vaca-paper",))
    configs = [{"hidden_layers": layers} for layers in LAYERS]
    return plan(options, seeds, scms, models, configs, protocols=("published",))


def _design_show(reports: Reports, options: Options) -> list[Table | Picture]:
    frame = score_frame(reports)
    rows = []
    for (scm, model, config), part in frame.groupby(["scm", "model", "config"], sort=False):
        layers = json.loads(str(config))["hidden_layers"]
        cells = [Cell(text=str(scm)), Cell(text=label(str(model))), Cell(text=str(layers))]
        known = PUBLISHED_DESIGN.get((str(scm).split("-")[0], layers))
        for i, metric in enumerate(("obs_mmd", "int_mmd")):
            values = part[part["metric"] == metric]["value"].tolist()
            mean, sd = float(np.mean(values)), spread(values)
            tone = verdict(mean, sd, len(values), *known[i]) if known else "none"
            cells.append(Cell(mean, sd, tone=tone))
            cells.append(Cell(*known[i]) if known else Cell(text="-"))
        rows.append((*cells, Cell(text=str(part["seed"].nunique()))))
    titles = ("Obs. MMD", "published", "Int. MMD", "published", "Seeds")
    table = Table(
        title="Hidden layers of the decoder",
        caption="x100, protocol published; the graph asks for 0 (collider) or 1 (others) at least.",
        head=("SCM", "Model", "Hidden layers", *titles),
        rows=tuple(sorted(rows, key=lambda row: [cell.text for cell in row[:3]])),
        names=3,
    )
    return [table]


# ---------------------------------------------------------------------- the dimension of z

DIMENSIONS = (2, 4, 8, 16, 32)
LATENT_SCMS = tuple(f"{g}-{f}" for f in ("nlin", "nadd") for g in ("collider", "triangle", "chain"))
# The paper's table of parameter counts is for decoders of two hidden layers with 16 units.
PUBLISHED_SIZES = {
    "collider": (3785, 4445, 5765, 8405, 13685),
    "triangle": (4542, 5334, 6918, 10086, 16422),
    "chain": (3785, 4445, 5765, 8405, 13685),
}
LATENT = [{"latent_dim": n, "hidden_layers": 2, "width": 16, "residual": False} for n in DIMENSIONS]


def _params_table_runs(options: Options) -> list[Run]:
    _, scms, models = options.choose(seeds=1, scms=LATENT_SCMS, models=("vaca-paper",))
    configs = [{**config, "epochs": 1} for config in LATENT]
    return plan(options, (0,), scms, models, configs, task="parameters", train=100, validation=50)


def _params_table_show(reports: Reports, options: Options) -> list[Table | Picture]:
    rows = []
    for report in reports:
        run = report["run"]
        dimension = run["config"]["latent_dim"]
        known = PUBLISHED_SIZES.get(run["scm"].split("-")[0])
        count = report["parameters"]
        told = known[DIMENSIONS.index(dimension)] if known else None
        tone: Tone = "none" if told is None else "better" if told == count else "worse"
        cells = [run["scm"], str(dimension), str(count), "-" if told is None else str(told)]
        rows.append(
            tuple(Cell(text=text, tone=tone if i == 2 else "none") for i, text in enumerate(cells))
        )
    table = Table(
        title="Parameters by the dimension of z",
        caption="Two hidden layers of 16 units, no residual.",
        head=("SCM", "dim z", "Parameters", "Published"),
        rows=tuple(rows),
        names=2,
    )
    return [table]


def _latent_runs(options: Options) -> list[Run]:
    seeds, scms, models = options.choose(seeds=3, scms=LATENT_SCMS, models=("vaca-paper",))
    return plan(options, seeds, scms, models, LATENT, protocols=("published",))


def _latent_show(reports: Reports, options: Options) -> list[Table | Picture]:
    frame = score_frame(reports)
    frame["dimension"] = [json.loads(config)["latent_dim"] for config in frame["config"]]
    scms = list(dict.fromkeys(frame["scm"]))
    panels = [(scm, metric) for scm in scms for metric in ("obs_mmd", "int_mmd", "cf_mse")]
    figure = lines(frame, "dimension", panels, xlabel="dimension of z", log_x=True)
    caption = "Protocol published; mean and one sd over seeds."
    alt = trend_words(frame, "dimension", "dimension of z")
    title = "The dimension of the latent space"
    return [Picture("figure-latent-dim", title, figure, caption, alt)]


PAPER: Sequence[Experiment] = (
    Experiment(
        "table-results",
        "Tables 1 and 12: every SCM and model, beside what was published.",
        _results_runs,
        _results_show,
    ),
    Experiment(
        "table-design",
        "Table 3: 0, 1 and 2 hidden layers of the decoder.",
        _design_runs,
        _design_show,
    ),
    Experiment(
        "table-params",
        "Parameter counts by the dimension of z.",
        _params_table_runs,
        _params_table_show,
    ),
    Experiment(
        "table-fairness",
        "Tables 2 and 13: unfairness and accuracy of classifiers on German Credit.",
        fairness_runs,
        fairness_show,
    ),
    Experiment(
        "figure-latent-dim",
        "Scores by the dimension of z.",
        _latent_runs,
        _latent_show,
    ),
    Experiment("figure-time", "Training times of table-results.", _results_runs, _time_show),
    Experiment("figure-params", "Parameter counts of table-results.", _results_runs, _params_show),
    Experiment(
        "figure-jacobians",
        "The two design conditions, as Jacobians of networks.",
        _no_runs,
        _jacobians_show,
    ),
    Experiment("figure-pairs", "Histograms and scatter plots of every SCM.", _no_runs, _pairs_show),
)
