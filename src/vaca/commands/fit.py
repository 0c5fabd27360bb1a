"""`vaca fit`: learn a model from a table and a graph, and say how good it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vaca.commands.common import (
    ForceOption,
    PlotOption,
    busy,
    check_folder,
    check_plot,
    draw,
    show_table,
)
from vaca.commands.init import DataArgument
from vaca.engines.registry import named_by
from vaca.errors import VacaError, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

    from vaca.graph.dag import CausalGraph

#: What --engine may name, and the class that it stands for.
ENGINES = named_by()
#: Options that a config file may set, with their defaults.
DEFAULTS: dict[str, Any] = {
    "graph": None,
    "out": None,
    "schema": None,
    "engine": "flow",
    "seed": 0,
    "members": 1,
    "jobs": None,
    "time_budget": None,
    "holdout": 0.1,
    "device": "cpu",
}
#: Beside the model, in its folder: what it was fitted to and how well.
NOTES = "fit.json"


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
    engine: Annotated[
        str | None,
        typer.Option(
            help=f"{', '.join(ENGINES)}, or auto: try and choose.",
            show_default="flow",
        ),
    ] = None,
    members: Annotated[
        int | None,
        typer.Option(
            min=1, help="Fit so many, in parallel; answers carry their spread.", show_default="1"
        ),
    ] = None,
    time_budget: Annotated[
        float | None,
        typer.Option(min=0.1, help="Seconds for training at most.", show_default="no limit"),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Same seed, same model.", show_default="0")
    ] = None,
    holdout: Annotated[
        float | None,
        typer.Option(
            min=0.01, max=0.5, help="Share of the rows kept for scoring.", show_default="0.1"
        ),
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda.", show_default="cpu")] = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Processes for --members.", show_default="one per core"),
    ] = None,
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

    Prints what each column was taken for, facts of the graph, and how well the model does on rows
    it has not seen, against a baseline that ignores the graph. Asks nothing. --plot draws the
    training. Options on the command line win over those of --config.

    Example: vaca fit data.csv --graph graph.txt --out model
    """
    given = {
        "graph": graph,
        "out": out,
        "schema": schema,
        "engine": engine,
        "seed": seed,
        "members": members,
        "jobs": jobs,
        "time_budget": time_budget,
        "holdout": holdout,
        "device": device,
    }
    options, settings = _options(given, config)
    check_plot(plot, force)
    target = _target(options["out"], force)
    cause = _graph(options["graph"])
    kinds = _kinds(options["schema"], cause)
    build = _builder(options, settings, cause, kinds)
    from vaca.table.files import check_numbers, read_table

    table = read_table(data)
    check_numbers(table[[c for c in table.columns if c in cause.all_columns]], but=kinds)
    train, held_out = split(table, options["holdout"], options["seed"])
    _show_plan(table, cause, kinds, options, len(held_out))
    model = _fitted(build, train)
    with busy("scoring on the rows held out"):
        scores, joint = _scores(model, train, held_out, options["seed"])
        found = _checked(model, train, held_out, options["seed"])
    from vaca.engines.persistence import save

    save(model, target, notes={NOTES: _notes(data, table, options, scores, joint)})
    _show_result(model, scores, joint, found, target, data)
    if plot is not None:
        from vaca.show.plotting import plot_history

        draw(plot_history(model.history_), plot)


# ---------------------------------------------------------------------- what was asked for


def _options(given: dict[str, Any], config: Path | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Command line over config over defaults; and the engine's settings."""
    from vaca.table.toml import read_config, read_toml

    options, settings = dict(DEFAULTS), {}
    if config is not None:
        raw = read_toml(config)
        own = raw.get("settings", {})
        if not isinstance(own, dict):
            raise VacaError(f"{config}: settings is a section: write [settings] and keys below it")
        found = read_config(config, {"": DEFAULTS, "settings": own})
        options.update(found[""])
        settings = found["settings"]
        for name in ("graph", "schema", "out"):
            if options[name] is not None:
                options[name] = config.parent / str(options[name])
        _check_types(options, config)
    options.update({name: value for name, value in given.items() if value is not None})
    if options["engine"] not in (*ENGINES, "auto"):
        raise VacaError(
            f"--engine {options['engine']}: unknown; "
            f"{did_you_mean(options['engine'], (*ENGINES, 'auto'))}"
        )
    for name in ("graph", "out"):
        if options[name] is None:
            what = "what causes what" if name == "graph" else "the folder for the model"
            raise VacaError(f"--{name} is missing: {what}. Start with `vaca init`")
    return options, settings


def _check_types(options: dict[str, Any], config: Path) -> None:
    number = (int, float)
    kinds = {
        "engine": (str, lambda v: True, "a name"),
        "seed": (int, lambda v: v >= 0, "a whole number of at least 0"),
        "members": (int, lambda v: v >= 1, "a whole number of at least 1"),
        "jobs": (int, lambda v: v >= 1, "a whole number of at least 1"),
        "time_budget": (number, lambda v: v > 0, "seconds"),
        "holdout": (number, lambda v: 0.01 <= v <= 0.5, "a share between 0.01 and 0.5"),
        "device": (str, lambda v: True, "cpu or cuda"),
    }
    for name, (kind, fits, text) in kinds.items():
        value = options[name]
        if value is None and DEFAULTS[name] is None:
            continue
        if isinstance(value, bool) or not isinstance(value, kind) or not fits(value):
            raise VacaError(f"{config}: {name} is {text}; got {value!r}")


def _target(out: Path, force: bool) -> Path:
    """Refuse a folder that the model could not be saved to, before any work is done."""
    out = Path(out)
    if out.is_file():
        raise VacaError(f"--out {out} is a file; a model is saved as a folder, choose another name")
    if out.is_dir() and any(out.iterdir()):
        if not (out / "model.json").is_file():
            raise VacaError(
                f"--out {out} exists already and is not a saved model; choose another name"
            )
        if not force:
            raise VacaError(
                f"--out {out} holds a saved model already; give another name, or --force to "
                "replace it"
            )
    if not out.absolute().parent.is_dir():
        raise VacaError(f"--out {out}: there is no folder {out.parent}; make it first")
    check_folder(out, "--out")
    return out


def _graph(path: Path) -> CausalGraph:
    from vaca.graph.dag import CausalGraph

    path = Path(path)
    if not path.exists():
        raise VacaError(f"--graph {path}: no such file; `vaca init` writes one to start from")
    if path.is_dir():
        raise VacaError(f"--graph {path} is a folder; give a file (.txt, .dot, .gml, .json)")
    return CausalGraph.read(path)


def _kinds(path: Path | None, graph: CausalGraph) -> dict[str, Any]:
    """The kinds that a schema file sets; it may also speak of columns that the graph leaves out."""
    if path is None:
        return {}
    from vaca.table.toml import read_schema

    return {k: v for k, v in read_schema(path).items() if k in graph.all_columns}


def _builder(
    options: dict[str, Any], settings: dict[str, Any], graph: CausalGraph, kinds: dict[str, Any]
) -> Any:
    """A function that gives the model to fit, after its settings were checked."""
    import vaca

    budget, count = options["time_budget"], options["members"]
    if options["engine"] == "auto":
        if settings:
            raise VacaError("[settings] belong to one engine; name it instead of auto")
        return lambda table: _automatic(table, options, graph, kinds)  # fitted already
    name = ENGINES[options["engine"]]
    family = getattr(vaca, name)
    known = family(graph).get_params(deep=False)
    for reserved in ("graph", "schema", "seed"):
        known.pop(reserved, None)
    for key, value in settings.items():
        if key not in known:
            raise VacaError(f"[settings]: {name} has no {key!r}; {did_you_mean(key, known)}")
        _check_setting(name, key, value, known[key])
    settings = dict(settings)
    if "device" in known and options["device"] != "cpu":
        settings["device"] = options["device"]
    if budget is not None and "time_budget" not in known:
        raise VacaError(
            f"--time-budget: {name} cannot keep one"
            + ("; give it fewer [settings] steps instead" if "steps" in known else "")
        )
    if budget is not None:
        # Members take turns on the processes; together they keep within the budget.
        settings["time_budget"] = budget / _rounds(count, options["jobs"])
    if count == 1:
        return lambda table: family(graph, schema=kinds or None, seed=options["seed"], **settings)
    return lambda table: vaca.Ensemble(
        graph,
        name,
        members=count,
        settings=settings,
        schema=kinds or None,
        seed=options["seed"],
        jobs=options["jobs"],
    )


def _automatic(
    table: pd.DataFrame, options: dict[str, Any], graph: CausalGraph, kinds: dict[str, Any]
) -> Any:
    """Let the library choose the engine; with several members, of the family it chose."""
    import vaca

    budget, count = options["time_budget"], options["members"]
    share = None if budget is None else budget / (1 if count == 1 else 2)
    seed, schema = options["seed"], kinds or None
    chosen = vaca.auto(table, graph, schema=schema, seed=seed, time_budget=share)
    show_table(chosen.auto_.leaderboard_)
    typer.echo(f"\nChosen: {type(chosen).__name__}.\n")
    if count == 1:
        return chosen
    settings = chosen.get_params(deep=False)
    for name in ("graph", "schema", "seed"):
        settings.pop(name, None)
    if share is not None and "time_budget" in settings:
        settings["time_budget"] = share / _rounds(count, options["jobs"])
    return vaca.Ensemble(
        graph,
        type(chosen).__name__,
        members=count,
        settings=settings,
        schema=schema,
        seed=seed,
        jobs=options["jobs"],
    )


def _rounds(count: int, jobs: int | None) -> int:
    import os

    return -(-count // min(count, jobs or os.cpu_count() or 1))


def _check_setting(engine: str, key: str, value: Any, default: Any) -> None:
    """A setting has the type of its default."""
    if default is None or (isinstance(default, float) and isinstance(value, int)):
        return
    if isinstance(value, bool) != isinstance(default, bool) or not isinstance(value, type(default)):
        raise VacaError(
            f"[settings]: {key} of {engine} is of type {type(default).__name__}, such as "
            f"{default!r}; got {value!r}"
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


# ---------------------------------------------------------------------- doing it


def _fitted(build: Any, train: pd.DataFrame) -> Any:
    from vaca.engines.training import TrainingError

    try:
        model = build(train)
        return model if "schema_" in vars(model) else model.fit(train)
    except TrainingError as error:
        raise VacaError(str(error)) from None


def _scores(model: Any, train: Any, held_out: Any, seed: int) -> tuple[Any, dict[str, float]]:
    from vaca.evaluation.heldout import holdout_scores, joint_scores

    scores = holdout_scores(model, held_out, train, seed=seed)
    return scores, joint_scores(model, held_out, train, seed=seed)


def _checked(model: Any, train: Any, held_out: Any, seed: int) -> Any:
    """The quick form of `vaca check`; None for a table too small for it."""
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
    """The SHA-256 of a file."""
    import hashlib

    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


# ---------------------------------------------------------------------- telling of it


def _show_plan(
    table: pd.DataFrame, graph: CausalGraph, kinds: dict, options: dict, held_out: int
) -> None:
    import warnings

    from vaca.errors import VacaWarning
    from vaca.table.schema import Schema

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VacaWarning)  # the fit says it, once
        schema = Schema.infer(table, graph, kinds)
    shown = schema.table().drop(columns="dtype")
    show_table(shown)
    typer.echo(
        f"\nGraph: {len(graph)} nodes, {len(graph.edges)} arrows; roots {', '.join(graph.roots)}; "
        f"longest path {graph.longest_path}."
    )
    if not graph.edges:
        typer.echo("The graph has no arrows: nothing can be learned of what causes what.")
    many = f", {options['members']} members" if options["members"] > 1 else ""
    typer.echo(
        f"Rows: {len(table) - held_out:,} to learn from, {held_out:,} held out. "
        f"Engine: {options['engine']}{many}, seed {options['seed']}.\n"
    )


def _show_result(
    model: Any, scores: pd.DataFrame, joint: dict[str, float], found: Any, out: Path, data: Path
) -> None:
    if len(model.history_):
        rows = model.history_
        seconds = (
            float(rows.groupby("member")["seconds"].max().sum())
            if "member" in rows
            else (float(rows["seconds"].iloc[-1]) if "seconds" in rows else 0.0)
        )
        typer.echo(f"Trained for {int(rows['epoch'].max())} epochs in {seconds:.0f} s.\n")
    typer.echo("Held-out rows, each column given its causes (lower is better):\n")
    percent = [f"{round(100 * value)} %" for value in scores["explained"]]
    show_table(scores.assign(explained=percent), digits=3)
    typer.echo(
        f"\nAll columns together (energy distance): model {joint['model']:.4f}, without the graph "
        f"{joint['baseline']:.4f}."
    )
    worse = [name for name in scores.index if scores.loc[name, "explained"] < -0.05]
    if worse:
        typer.echo(
            f"\nWarning: {', '.join(worse)} come out worse than without the graph: more rows, "
            "another engine\n(--engine auto) or other arrows may help."
        )
    if found is not None:
        typer.echo("\nCheck, in its quick form (all of it: vaca check):\n")
        typer.echo(found)
    typer.echo(f"\nSaved to {out}. Next, for example:\n")
    for line in next_commands(model, out, data):
        typer.echo(f"  {line}")


def next_commands(model: Any, out: Path, data: Path) -> list[str]:
    """Commands to type next, with columns and values of this very model."""
    from shlex import quote

    graph, schema = model.graph, model.schema_
    folder, table = quote(str(out)), quote(str(data))
    cause = next((n for n in graph.order if graph.children(n)), graph.order[0])
    below = graph.descendants(cause)
    lines = []
    parts = []
    for name in graph.columns(cause):
        column = schema[name]
        if column.discrete:
            value = str(column.levels[-1])
        else:
            middle = (column.low + column.high) / 2
            value = f"{middle:.0f}" if column.kind == "count" else f"{middle:.4g}"
        parts.append("--do " + quote(f"{name}={value}"))
    done = " ".join(parts)
    lines.append(f"vaca do {folder} {done}")
    lines.append(f"vaca counterfactual {folder} {table} {done} --out cf{data.suffix}")
    if below:
        name = graph.columns(below[-1])[0]
        extra = ""
        if schema[name].discrete and not schema[name].numeric_levels:
            extra = f" --level {quote(str(schema[name].levels[-1]))}"
        lines.append(f"vaca effect {folder} --on {quote(name)}{extra} {done}")
    lines.append(f"vaca check {folder} {table} --out check.html")
    lines.append(f"vaca report {folder} --data {table} --out report.html")
    return lines
