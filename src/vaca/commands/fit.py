"""`vaca fit`: learn a model from a table and a graph, and say how good it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vaca.commands.fit_options import (
    ENGINES,
    OPTIONS,
    check_table,
    read_graph,
    read_kinds,
    read_options,
    target_folder,
)
from vaca.commands.init import DataArgument
from vaca.commands.options import ClusterOption, ForceOption, PlotOption
from vaca.commands.writing import check_plot, draw
from vaca.engines.registry import engine_class, engine_names
from vaca.errors import VacaError, did_you_mean, shorten
from vaca.table.progress import progress_bar

if TYPE_CHECKING:
    import pandas as pd

    from vaca.graph.dag import CausalGraph

#: Saved with the model, in its folder: what it was fitted to and how well.
NOTES = "fit.json"


def _default(name: str) -> str:
    return str(OPTIONS[name].default)


def fit(
    data: DataArgument,
    graph: Annotated[
        Path | None,
        typer.Option(
            help="What causes what: .txt (`cause -> effect`), .dot, .gml, .json.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder for the model.", show_default=False),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(help="Kinds of columns, as `vaca init` writes.", show_default="inferred"),
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(
            help="Rows with gaps: error, drop (leave out), model (learn from them too).",
            show_default=_default("missing"),
        ),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Column: how many rows each row stands for.", show_default=False
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            help=f"{', '.join(ENGINES)}, or auto: try and choose.",
            show_default=_default("engine"),
        ),
    ] = None,
    refits: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Quick refits with other row weights, for intervals.",
            show_default=_default("refits"),
        ),
    ] = None,
    members: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Whole fits in parallel, instead of refits.",
            show_default=_default("members"),
        ),
    ] = None,
    time_budget: Annotated[
        float | None,
        typer.Option(min=0.1, help="Seconds for training at most.", show_default="no limit"),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Same seed, same model.", show_default=_default("seed")),
    ] = None,
    holdout: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            max=0.5,
            help="Share of the rows kept for scoring.",
            show_default=_default("holdout"),
        ),
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="cpu or cuda.", show_default=_default("device"))
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Processes for columns, refits and members.",
            show_default="1; for --members one per core",
        ),
    ] = None,
    cluster: ClusterOption = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="TOML file with these options, and [settings] for the engine.",
            show_default=False,
        ),
    ] = None,
    force: ForceOption = False,
    plot: PlotOption = None,
) -> None:
    """Learn a model from a table and a causal graph.

    Prints what each column was taken for, how well the model does on rows it has not seen, whether
    the data contradict the graph, and what to ask next. It asks no questions. --plot draws the
    training. Options on the command line win over those of --config.

    Example: vaca fit data.csv --graph graph.txt --out model
    """
    given = {name: value for name, value in locals().items() if name in OPTIONS}
    options, settings = read_options(given, config)
    check_plot(plot, force)
    target = target_folder(options["out"], force)
    cause = read_graph(options["graph"])
    kinds = read_kinds(options["schema"], cause)
    engine_ = _engine(options, settings, cause, kinds)
    from vaca.commands import fit_words
    from vaca.commands.reading import without_gaps
    from vaca.engines.persistence import save
    from vaca.table.files import check_numbers

    table = _table(data, engine_, cause, options)
    check_numbers(table[[c for c in table.columns if c in cause.all_columns]], but=kinds)
    check_table(table, cause, options)
    train, held_out = split(table, options["holdout"], options["seed"])
    fit_words.show_plan(table, cause, kinds, options, len(held_out))
    model = _fitted(engine_, options, train, cause)
    with progress_bar("scoring on the rows held out"):
        pair = without_gaps(model, train), without_gaps(model, held_out)
        scores, joint = _scores(model, *pair, options["seed"])
        found = _checked(model, *pair, options["seed"])
    save(model, target, notes={NOTES: _notes(data, table, options, scores, joint)})
    fit_words.show_result(model, scores, joint, found, options)
    fit_words.show_next(model, target, data)
    if plot is not None:
        from vaca.show.plot import plot_history

        draw(plot_history(model.history_), plot)


# ---------------------------------------------------------------------- doing it


def _table(data: Path, engine: Any, graph: CausalGraph, options: dict[str, Any]) -> pd.DataFrame:
    """The table; of a long one in Parquet, only as many rows as the engine can use."""
    from vaca.commands.terminal import note
    from vaca.table.drawing import draw_rows
    from vaca.table.files import read_table

    if not data.is_dir() and data.suffix.lower() != ".parquet":
        return read_table(data)
    engines = engine if isinstance(engine, list) else [engine]
    wanted = max(one._rows_wanted() for one in engines) / (1.0 - options["holdout"])
    with progress_bar("reading", unit="rows") as bar:
        drawn = draw_rows(data, round(wanted), seed=options["seed"], progress=bar.advance)
    if len(drawn.frame) < drawn.rows:
        note(f"of {drawn.rows:,} rows, {len(drawn.frame):,} were drawn to learn from and to score")
    return drawn.frame.reset_index(drop=True)


def _engine(
    options: dict[str, Any], settings: dict[str, Any], graph: CausalGraph, kinds: dict[str, Any]
) -> Any:
    """The model to fit, its settings checked; None if it is to be chosen."""
    common = {
        "schema": kinds or None, "seed": options["seed"], "missing": options["missing"]
    }  # fmt: skip
    if options["engine"] == "auto":
        if settings:
            raise VacaError("[settings] belong to one engine; name it instead of auto")
        return [engine_class(name)(graph, **common) for name in engine_names(auto=True)]
    name = ENGINES[options["engine"]]
    family: Any = engine_class(name)
    known = family(graph).get_params(deep=False)
    for reserved in ("graph", *common):
        known.pop(reserved, None)
    for key, value in settings.items():
        if key not in known:
            raise VacaError(f"[settings]: {name} has no {key!r}; {did_you_mean(key, known)}")
        _check_setting(name, key, value, known[key])
    settings = dict(settings)
    if "device" in known and options["device"] != OPTIONS["device"].default:
        settings["device"] = options["device"]
    if options["time_budget"] is not None:
        if "time_budget" not in known:
            raise VacaError(
                f"--time-budget: {name} cannot keep one"
                + ("; give it fewer [settings] steps instead" if "steps" in known else "")
            )
        # Members take turns on the processes; together they keep within the budget.
        settings["time_budget"] = options["time_budget"] / _rounds(options)
    if options["members"] == 1:
        return family(graph, **common, **settings)
    return _ensemble(graph, name, settings, options, common)


def _ensemble(
    graph: CausalGraph,
    name: str,
    settings: dict[str, Any],
    options: dict[str, Any],
    common: dict[str, Any],
) -> Any:
    from vaca.engines.ensemble import Ensemble

    return Ensemble(
        graph, name, members=options["members"], settings=settings, jobs=options["jobs"], **common
    )


def _rounds(options: dict[str, Any]) -> int:
    import os

    count = options["members"]
    return -(-count // min(count, options["jobs"] or os.cpu_count() or 1))


def _check_setting(engine: str, key: str, value: Any, default: Any) -> None:
    """A setting has the type of its default."""
    if default is None or (isinstance(default, float) and isinstance(value, int)):
        return
    if isinstance(value, bool) != isinstance(default, bool) or not isinstance(value, type(default)):
        raise VacaError(
            f"[settings]: {key} of {engine} is of type {type(default).__name__}, such as "
            f"{default!r}; got {shorten(value)}"
        )


def split(table: pd.DataFrame, share: float, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows to learn from, and rows held out for scoring."""
    import numpy as np

    from vaca.engines.engine import MIN_ROWS

    if len(table) < MIN_ROWS + 2:
        raise VacaError(
            f"the table has {len(table)} row(s); at least {MIN_ROWS + 2} are needed to learn from "
            "and to score"
        )
    order = np.random.default_rng([seed, 5]).permutation(len(table))
    count = min(max(2, round(share * len(table))), len(table) - MIN_ROWS)
    return table.iloc[np.sort(order[count:])], table.iloc[np.sort(order[:count])]


def _fitted(engine: Any, options: dict[str, Any], train: pd.DataFrame, graph: CausalGraph) -> Any:
    from vaca.commands.fit_words import show_choice
    from vaca.engines.engine import Engine
    from vaca.engines.selection import auto
    from vaca.errors import TrainingError

    weights = None if options["weights"] is None else train[options["weights"]]
    train = train[[c for c in train.columns if c in graph.all_columns]]
    where = {"jobs": options["jobs"] or 1, "cluster": options["cluster"]}
    try:
        if not isinstance(engine, list):
            quick = type(engine)._refit is not Engine._refit
            refits = options["refits"] if quick else 0
            return engine.fit(train, weights=weights, refits=refits, **where)
        alone = options["members"] == 1
        budget = options["time_budget"]
        chosen = auto(
            train,
            graph,
            schema=engine[0].schema,
            engines=engine,
            seed=options["seed"],
            weights=weights,
            refits=options["refits"] if alone else 0,
            time_budget=budget if alone or budget is None else budget / 2,
            **where,
        )
        show_choice(chosen)
        if alone:
            return chosen
        settings = chosen.get_params(deep=False)
        common = {name: settings.pop(name) for name in ("schema", "seed", "missing")}
        del settings["graph"]
        if budget is not None and "time_budget" in settings:
            settings["time_budget"] = budget / 2 / _rounds(options)
        name = type(chosen).__name__
        ensemble = _ensemble(graph, name, settings, options, common)
        return ensemble.fit(train, weights=weights, **where)
    except TrainingError as error:
        raise VacaError(str(error)) from None


def _scores(
    model: Any, train: Any, held_out: Any, seed: int
) -> tuple[pd.DataFrame, dict[str, float]]:
    from vaca.evaluation.heldout import holdout_scores, joint_scores

    scores = holdout_scores(model, held_out, train, seed=seed)
    return scores, joint_scores(model, held_out, train, seed=seed)


def _checked(model: Any, train: pd.DataFrame, held_out: pd.DataFrame, seed: int) -> Any:
    """The quick check of the graph and the fit; None where rows are too few for one."""
    from vaca.trust.check import MIN_ROWS, check

    if len(train) < MIN_ROWS:
        return None
    return check(model, train, held_out=held_out, quick=True, seed=seed, progress=False)


def _notes(data: Path, table: Any, options: dict, scores: Any, joint: dict[str, float]) -> str:
    return json.dumps(
        {
            "data": data.name,
            "sha256": fingerprint(data),
            "rows": len(table),
            "holdout": options["holdout"],
            "seed": options["seed"],
            "engine": options["engine"],
            "scores": json.loads(scores.to_json(orient="index")),
            "joint": joint,
        },
        indent=1,
    )


def fingerprint(path: Path) -> str:
    """The SHA-256 of a file, or of the Parquet files of a folder."""
    import hashlib

    from vaca.table.files import parquet_files

    digest = hashlib.sha256()
    for place in parquet_files(path) if path.is_dir() else [path]:
        with place.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()
