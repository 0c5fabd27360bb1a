"""The paper's own tables and figures, as lists of runs and views of their reports."""

from __future__ import annotations

from collections.abc import Sequence

from vaca.experiments.experiment import Experiment, Options, Reports, plan
from vaca.experiments.figures import Picture, box, pairs
from vaca.experiments.run import Run
from vaca.experiments.scores import results_table
from vaca.experiments.tables import Table
from vaca.experiments.truths import load_truth

__all__ = ["PAPER", "RESULT_MODELS", "SCMS"]

SCMS = (
    *(f"{graph}-{form}" for graph in ("collider", "triangle", "mgraph", "chain")
      for form in ("lin", "nlin", "nadd")),
    "loan",
    "adult",
)
PUBLISHED_MODELS = ("multicvae-paper", "carefl-paper", "vaca-paper")
RESULT_MODELS = (*PUBLISHED_MODELS, "vaca", "flow", "additive")


# ---------------------------------------------------------------------- tables 1 and 7


def _results_choice(options: Options) -> tuple[Sequence[int], Sequence[str], Sequence[str]]:
    models = RESULT_MODELS[:-1] if options.quick else RESULT_MODELS
    return options.choose(seeds=5, scms=SCMS, models=models)


def _results_runs(options: Options) -> list[Run]:
    return plan(options, *_results_choice(options))


def _results_show(reports: Reports, options: Options) -> list[Table | Picture]:
    _, scms, models = _results_choice(options)
    return [results_table(reports, protocol, scms, models) for protocol in ("published", "paper")]


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
    figure = box(_boxes(reports, "fit_seconds"), ylabel="seconds to fit")
    caption = "Wall-clock seconds to fit 5000 rows, one thread, over equations and seeds."
    return [Picture("figure-time", "Training time", figure, caption)]


def _params_show(reports: Reports, options: Options) -> list[Table | Picture]:
    figure = box(_boxes(reports, "parameters"), ylabel="parameters")
    return [Picture("figure-params", "Number of parameters", figure, "Over equations and seeds.")]


# ---------------------------------------------------------------------- pairs


def _no_runs(options: Options) -> list[Run]:
    return []


def _pairs_show(reports: Reports, options: Options) -> list[Table | Picture]:
    pictures = []
    for scm in options.scms or SCMS:
        data = load_truth(scm).sample(1000, seed=0)
        figure = pairs(data, f"{scm}, 1000 rows")
        pictures.append(Picture(f"figure-pairs-{scm}", scm, figure, "Rows of the true model."))
    return pictures


PAPER: Sequence[Experiment] = (
    Experiment(
        "table-results",
        "Tables 1 and 7: every SCM and model, beside what was published.",
        _results_runs,
        _results_show,
    ),
    Experiment("figure-time", "Training times of table-results.", _results_runs, _time_show),
    Experiment("figure-params", "Parameter counts of table-results.", _results_runs, _params_show),
    Experiment(
        "figure-pairs", "Histograms and scatter plots of every SCM.", _no_runs, _pairs_show
    ),
)
