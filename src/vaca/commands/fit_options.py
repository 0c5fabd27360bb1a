"""What `vaca fit` was asked to do: options, files, and whether the table can be used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vaca.commands.writing import check_folder
from vaca.engines.registry import named_by
from vaca.errors import VacaError, did_you_mean, shorten

if TYPE_CHECKING:
    import pandas as pd

    from vaca.graph.dag import CausalGraph

#: What --engine may name, and the class that it stands for.
ENGINES = named_by()


@dataclass(frozen=True)
class Option:
    """An option that a config file may set too: its default, and what it has to be."""

    default: Any
    kind: Any = (str, Path)
    fits: Callable[[Any], bool] = lambda value: True
    text: str = "a text"


def _whole(default: int | None, least: int) -> Option:
    text = f"a whole number of at least {least}"
    return Option(default, int, lambda value: value >= least, text)


OPTIONS: dict[str, Option] = {
    "graph": Option(None),
    "out": Option(None),
    "schema": Option(None),
    "engine": Option("composite"),
    "missing": Option("error"),
    "weights": Option(None),
    "refits": _whole(8, 0),
    "seed": _whole(0, 0),
    "members": _whole(1, 1),
    "jobs": _whole(None, 1),
    "cluster": Option(None),
    "time_budget": Option(None, (int, float), lambda v: v > 0, "seconds"),
    "holdout": Option(
        0.1, (int, float), lambda v: 0.01 <= v <= 0.5, "a share between 0.01 and 0.5"
    ),
    "device": Option("cpu"),
}


def read_options(
    given: dict[str, Any], config: Path | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Command line over config over defaults; and the engine's settings."""
    from vaca.engines.missing import MISSING
    from vaca.table.toml import read_config

    options: dict[str, Any] = {name: option.default for name, option in OPTIONS.items()}
    settings: dict[str, Any] = {}
    if config is not None:
        found = read_config(config, {"": OPTIONS, "settings": None})
        options.update(found[""])
        settings = found["settings"]
        for name in ("graph", "schema", "out"):
            if options[name] is not None:
                options[name] = config.parent / str(options[name])
        for name, option in OPTIONS.items():
            _check_option(config, name, options[name], option)
    options.update({name: value for name, value in given.items() if value is not None})
    for name, known in (("engine", (*ENGINES, "auto")), ("missing", MISSING)):
        if options[name] not in known:
            raise VacaError(
                f"--{name} {options[name]}: unknown; {did_you_mean(options[name], known)}"
            )
    for name in ("graph", "out"):
        if options[name] is None:
            what = "what causes what" if name == "graph" else "the folder for the model"
            raise VacaError(f"--{name} is missing: {what}. Start with `vaca init`")
    if options["refits"] == 1:
        raise VacaError("--refits 1: one refit has no spread; 0, or at least 2 (8 is usual)")
    return options, settings


def _check_option(config: Path, name: str, value: Any, option: Option) -> None:
    if value is None and option.default is None:
        return
    if isinstance(value, bool) or not isinstance(value, option.kind) or not option.fits(value):
        raise VacaError(f"{config}: {name} is {option.text}; got {shorten(value)}")


def target_folder(out: Path, force: bool) -> Path:
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


def read_graph(path: Path) -> CausalGraph:
    """The graph of a file."""
    from vaca.graph.dag import CausalGraph

    path = Path(path)
    if not path.exists():
        raise VacaError(f"--graph {path}: no such file; `vaca init` writes one to start from")
    if path.is_dir():
        raise VacaError(f"--graph {path} is a folder; give a file (.txt, .dot, .gml, .json)")
    return CausalGraph.read(path)


def read_kinds(path: Path | None, graph: CausalGraph) -> dict[str, Any]:
    """The kinds that a schema file sets; it may also name columns that the graph leaves out."""
    if path is None:
        return {}
    from vaca.table.toml import read_schema

    return {k: v for k, v in read_schema(path).items() if k in graph.all_columns}


def check_table(table: pd.DataFrame, graph: CausalGraph, options: dict[str, Any]) -> None:
    """Missing values, and weights, in the words of the command line."""
    weights = options["weights"]
    if weights is not None and weights not in table.columns:
        raise VacaError(
            f"--weights {weights}: there is no such column; {did_you_mean(weights, table.columns)}"
        )
    if weights in graph.all_columns:
        raise VacaError(f"--weights {weights}: the graph names it; a weight is no cause or effect")
    names = [c for c in graph.all_columns if c in table.columns]
    gaps = table[names].isna()
    rows = int(gaps.any(axis=1).sum())
    if rows and options["missing"] == "error":
        counts = gaps.sum()
        shown = ", ".join(f"{c} ({k:,})" for c, k in counts[counts > 0].head(6).items())
        more = int((counts > 0).sum()) - 6
        raise VacaError(
            f"{rows:,} of {len(table):,} rows have a missing value, in {shown}"
            + (f" and {more} more" if more > 0 else "")
            + "; say what to do: --missing drop leaves these rows out, --missing model learns from "
            "them too"
        )
