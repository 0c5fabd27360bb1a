"""`vaca reproduce`: the paper's tables and figures, and studies beyond them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vaca.errors import VacaError

if TYPE_CHECKING:
    from vaca.reproduction.experiment import Experiment, Options
    from vaca.reproduction.run import Run, Store

# Tables are not cut to fit: nothing of a result is hidden.
WIDTH = 150


def reproduce(
    experiment: Annotated[
        str,
        typer.Argument(
            metavar="EXPERIMENT", help="Its name, or `all`, or `list`.", show_default=False
        ),
    ] = "list",
    seeds: Annotated[
        str | None,
        typer.Option(
            help="A count (5), a range (0-4) or a list (0,3).", show_default="the experiment's"
        ),
    ] = None,
    scms: Annotated[
        str | None,
        typer.Option(help="SCMs, separated by commas.", show_default="the experiment's"),
    ] = None,
    models: Annotated[
        str | None,
        typer.Option(
            help="Models, separated by commas; your own is `module:factory`.",
            show_default="the experiment's",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="2 seeds and little training: minutes, not hours.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of reports and tables.", show_default="results"),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Local processes.", show_default="one for each core"),
    ] = None,
    engine: Annotated[
        str, typer.Option(help="Where to run: `local` or `dask`.", metavar="local|dask")
    ] = "local",
    scheduler: Annotated[
        str | None,
        typer.Option(help="Address of the Dask scheduler, e.g. tcp://10.0.0.1:8786."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the runs without running them.")
    ] = False,
    stale: Annotated[
        bool,
        typer.Option("--stale", help="List stored runs made by other settings or code."),
    ] = False,
) -> int:
    """Run the paper's experiments and compare with its figures.

    Finished runs are kept in the output folder and not repeated: stop with Ctrl-C, start again,
    and it goes on. The exit code is 1 if a run failed; its traceback is in its failure.json.

    Example: vaca reproduce table-results --quick
    """
    from rich.console import Console

    from vaca.reproduction.catalogue import EXPERIMENTS
    from vaca.reproduction.experiment import Options, find, parse_seeds
    from vaca.reproduction.run import Store

    console = Console(highlight=False, markup=False)
    console = Console(highlight=False, markup=False, width=max(console.width, WIDTH))
    if experiment == "list" and not stale:
        _list(console, EXPERIMENTS.values())
        return 0
    if experiment == "real":
        from vaca.reproduction.real import reproduce_real

        if dry_run:
            raise VacaError("real cannot list its runs; without --dry-run it does what is missing")
        folder = (out or Path("results")) / "real"
        typer.echo(reproduce_real(folder, _names(scms), _names(models), typer.echo))
        return 0
    if experiment == "all" or (stale and experiment == "list"):
        chosen = list(EXPERIMENTS.values())
    else:
        chosen = [find(experiment, EXPERIMENTS)]
    if (engine == "dask") != (scheduler is not None) or engine not in ("local", "dask"):
        raise VacaError("write --engine dask with --scheduler ADDRESS, or neither of the two")
    options = Options(
        seeds=parse_seeds(seeds) if seeds else None,
        scms=_names(scms),
        models=_names(models),
        quick=quick,
    )
    folder = out or Path("results-quick" if quick else "results")
    store = Store(folder / "runs")
    plans = {e.name: e.known_runs(options, store) for e in chosen}
    runs = [run for plan in plans.values() for run in plan]
    if stale:
        _stale(console, runs, store)
        return 0
    if dry_run:
        _dry_run(console, runs, store)
        return 0
    code = _do(console, runs, store, workers, scheduler)
    while code == 0:  # runs that depend on how others went
        plans = {e.name: e.known_runs(options, store) for e in chosen}
        left = [run for plan in plans.values() for run in plan if not store.done(run)]
        if not left:
            break
        code = _do(console, left, store, workers, scheduler)
    for one in chosen:
        _show(console, one, plans[one.name], store, options, folder, code)
    return code


def _names(text: str | None) -> tuple[str, ...] | None:
    return tuple(part.strip() for part in text.split(",") if part.strip()) if text else None


def _list(console: Any, experiments: Any) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("experiment", no_wrap=True)
    table.add_column("what it shows")
    for one in experiments:
        table.add_row(one.name, one.help)
    table.add_row("real", "Tables of real studies with known answers, beside peers.")
    table.add_row("all", "All of them but real.")
    console.print(table)


def _dry_run(console: Any, runs: list[Run], store: Store) -> None:
    unique = {run.key: run for run in runs}.values()
    for run in unique:
        console.print(f"{'done' if store.done(run) else 'todo'} {run.name}", soft_wrap=True)
    left = [run for run in unique if not store.done(run)]
    console.print(f"{len(unique)} runs, {len(left)} to do{_cost(left, store)}")


def _stale(console: Any, runs: list[Run], store: Store) -> None:
    from vaca.reproduction.maker import stale

    found = stale(runs, store)
    for name, maker in found:
        console.print(f"{name} was made by {maker}", soft_wrap=True, markup=False)
    console.print(
        f"{len(found)} stored runs are of other settings or code; the same command without "
        "--stale makes them again"
        if found
        else "every stored run is of the present settings and code"
    )


def _cost(runs: list[Run], store: Store) -> str:
    from vaca.reproduction.cost import cpu_seconds

    seconds = cpu_seconds(runs, store)
    if not seconds:
        return ""
    shown = f"{seconds / 3600:.1f} CPU hours" if seconds > 3600 else f"{seconds / 60:.0f} CPU min"
    return f", about {shown}"


def _do(
    console: Any, runs: list[Run], store: Store, workers: int | None, scheduler: str | None
) -> int:
    import os

    from vaca.reproduction.runner import run_all
    from vaca.reproduction.watch import watcher_for

    if not runs:
        return 0
    left = [run for run in {run.key: run for run in runs}.values() if not store.done(run)]
    if left:
        console.print(f"{len(left)} runs to do{_cost(left, store)}")
    watcher = watcher_for(console, workers or os.cpu_count() or 1)
    outcome = run_all(runs, store, workers=workers, scheduler=scheduler, watcher=watcher)
    for run in outcome.failed:
        failure = store.read_failure(run) or {}
        console.print(f"failed: {run.name}: {failure.get('error', '')}", style="red", markup=False)
    if outcome.failed:
        console.print(f"{len(outcome.failed)} runs failed; see failure.json in {store.folder}")
    if outcome.interrupted:
        console.print("interrupted; the same command goes on from here")
    return outcome.exit_code


def _show(
    console: Any,
    experiment: Experiment,
    plan: list[Run],
    store: Store,
    options: Options,
    folder: Path,
    code: int,
) -> None:
    from vaca.reproduction.experiment import write_outputs
    from vaca.reproduction.result_tables import Table, to_rich

    reports = store.reports(plan)
    if plan and not reports:
        console.print(f"{experiment.name}: no run is done yet, nothing to show")
        return
    shown = experiment.show(reports, options)
    missing = len({run.key for run in plan}) - len({_key(r) for r in reports})
    introduction = f"<p>{experiment.help} {len(reports)} runs"
    introduction += f", {missing} missing.</p>" if missing else ".</p>"
    if options.quick:
        introduction += "<p><b>A quick look with little training: not for conclusions.</b></p>"
    for item in shown:
        if isinstance(item, Table):
            console.print(to_rich(item))
    files = write_outputs(folder, experiment.name, experiment.name, shown, introduction)
    console.print(f"wrote {', '.join(str(file) for file in files)}", soft_wrap=True)


def _key(report: Any) -> str:
    from vaca.reproduction.run import Run

    return Run.from_dict(report["run"]).key
