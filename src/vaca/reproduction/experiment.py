"""What an experiment is: a list of runs, and what to show of their reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vaca.errors import VacaError, did_you_mean
from vaca.reproduction.figures import Picture
from vaca.reproduction.maker import stamped
from vaca.reproduction.recipes import RECIPES, recipe
from vaca.reproduction.result_tables import Table, to_csv, to_html, to_latex, to_markdown
from vaca.reproduction.run import Run, Store
from vaca.table.atomic import complete

__all__ = ["Experiment", "Options", "Reports", "parse_seeds", "plan", "write_outputs"]

Reports = Sequence[Mapping[str, Any]]
Shown = Sequence["Table | Picture"]

# Smaller everything, to see within minutes that the whole works. Not for conclusions.
QUICK = {
    "train": 2000,
    "validation": 500,
    "factuals": 500,
    "rows": 2000,
    "resamples": 2,
}


@dataclass(frozen=True)
class Options:
    """What can be chosen; None stands for the experiment's own choice."""

    seeds: tuple[int, ...] | None = None
    scms: tuple[str, ...] | None = None
    models: tuple[str, ...] | None = None
    quick: bool = False

    def choose(
        self, *, seeds: int, scms: Sequence[str], models: Sequence[str]
    ) -> tuple[tuple[int, ...], tuple[str, ...], tuple[str, ...]]:
        """Seeds, SCMs and models: those asked for, else these."""
        for model in self.models or ():
            recipe(model)
        count = min(seeds, 2) if self.quick else seeds
        return (
            self.seeds if self.seeds is not None else tuple(range(count)),
            tuple(self.scms or scms),
            tuple(self.models or models),
        )


@dataclass(frozen=True)
class Experiment:
    """A named list of runs and a view of their reports.

    Attributes
    ----------
    name, help : str
    listed : callable
        ``listed(options)`` gives the runs, in the order in which they are done.
    show : callable
        ``show(reports, options)`` gives tables and pictures; a pure function of the reports.
    then : callable, optional
        ``then(reports, options)`` gives runs that depend on how others went, as far as these are
        done.
    """

    name: str
    help: str
    listed: Callable[[Options], list[Run]]
    show: Callable[[Reports, Options], Shown]
    then: Callable[[Reports, Options], list[Run]] | None = None

    def runs(self, options: Options) -> list[Run]:
        """The runs, each with what makes it (see `vaca.reproduction.maker`)."""
        return stamped(self.listed(options))

    def known_runs(self, options: Options, store: Store) -> list[Run]:
        """The runs, with those that follow from the reports that are stored."""
        runs = self.runs(options)
        while self.then is not None:
            known = {run.key for run in runs}
            more = stamped(self.then(store.reports(runs), options))
            new = [run for run in more if run.key not in known]
            if not new:
                break
            runs += new
        return runs


def plan(
    options: Options,
    seeds: Iterable[int],
    scms: Iterable[str],
    models: Iterable[str],
    configs: Sequence[Mapping[str, Any]] = ({},),
    **fields: Any,
) -> list[Run]:
    """Every combination as a run: all SCMs and models of the first seed, then the next seed."""
    models = list(models)
    scms = list(scms)
    runs = []
    for seed in seeds:
        for scm in scms:
            for model in models:
                for config in configs:
                    quick = dict(RECIPES[model].quick) if options.quick and model in RECIPES else {}
                    sizes = {**QUICK, **fields} if options.quick else dict(fields)
                    runs.append(Run(scm, model, seed, config={**quick, **config}, **sizes))
    return runs


def parse_seeds(text: str) -> tuple[int, ...]:
    """Seeds as a person writes them: a count, a range or a list.

    >>> parse_seeds("3"), parse_seeds("3-5"), parse_seeds("0,7")
    ((0, 1, 2), (3, 4, 5), (0, 7))
    """
    try:
        if "," in text:
            return tuple(int(part) for part in text.split(",") if part.strip())
        if "-" in text:
            low, high = (int(part) for part in text.split("-"))
            return tuple(range(low, high + 1))
        count = int(text)
    except ValueError:
        raise VacaError(
            f"--seeds {text}: write a count (5), a range (0-4) or a list (0,3)"
        ) from None
    if count < 1:
        raise VacaError(f"--seeds {text}: at least one seed is needed")
    return tuple(range(count))


def find(name: str, experiments: Mapping[str, Experiment]) -> Experiment:
    """The experiment of that name."""
    if name not in experiments:
        raise VacaError(f"unknown experiment {name!r}; {did_you_mean(name, experiments)}")
    return experiments[name]


def write_outputs(
    folder: Path, name: str, title: str, shown: Shown, introduction: str
) -> list[Path]:
    """Write tables (CSV, Markdown, LaTeX), pictures (PNG) and one HTML page; gives the files."""
    folder.mkdir(parents=True, exist_ok=True)
    files: list[Path] = []
    parts: list[Table | str] = []

    def put(file: str, content: bytes) -> None:
        with complete(folder / file) as part:
            part.write_bytes(content)
        files.append(folder / file)

    tables = [item for item in shown if isinstance(item, Table)]
    for number, table in enumerate(tables, start=1):
        stem = name if len(tables) == 1 else f"{name}-{number}"
        put(f"{stem}.csv", to_csv(table).encode())
        put(f"{stem}.md", f"# {table.title}\n\n{table.caption}\n\n{to_markdown(table)}".encode())
        put(f"{stem}.tex", to_latex(table).encode())
    for item in shown:
        if isinstance(item, Picture):
            put(f"{item.name}.png", item.png())
            parts.append(item.html())
        else:
            parts.append(item)
    put(f"{name}.html", to_html(title, parts, introduction).encode())
    return files
