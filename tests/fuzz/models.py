"""Small saved models of every engine, made once per process, and folders changed in one place."""

from __future__ import annotations

import functools
import json
import shutil
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import vaca
from vaca.engines.persistence import _seal
from vaca.engines.registry import ENGINES, engine_class

#: The one folder that a case may write to.
PLACE = Path(tempfile.mkdtemp(prefix="vaca-fuzz-"))
GRAPH = vaca.CausalGraph.from_edges([("sex", "visits"), ("sex", "income"), ("visits", "income")])
#: What makes a fit short, for the engines that have it.
QUICK = {"steps": 6, "epochs": 2, "polish_steps": 0, "members": 2, "width": 4}
#: Saved with refits and weights, as its refits take no time.
REFITTED = "Composite"
FILES = ("model.json", "arrays.safetensors")


def table(n: int = 60) -> pd.DataFrame:
    """Text levels, a count and a number."""
    rng = np.random.default_rng(0)
    sex = rng.choice(["f", "m", "x"], n)
    visits = rng.poisson(12 + 5 * (sex == "m"))
    income = 3.0 * visits + rng.normal(size=n)
    return pd.DataFrame({"sex": sex, "visits": visits, "income": income})


@functools.cache
def fitted(name: str, seed: int = 0) -> Any:
    """A fitted engine of that class."""
    family: Any = engine_class(name)
    known = family(GRAPH).get_params(deep=False)
    settings = {key: value for key, value in QUICK.items() if key in known}
    if name == "Ensemble":
        settings |= {"engine": "AdditiveNoise", "jobs": 1}
    more = {"refits": 2, "weights": np.linspace(1, 2, 60)} if name == REFITTED else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return family(GRAPH, seed=seed, **settings).fit(table(), progress=False, **more)


@functools.cache
def saved(name: str, seed: int = 0) -> dict[str, bytes]:
    """The files of that engine's saved model."""
    folder = Path(tempfile.mkdtemp()) / "model"
    fitted(name, seed).save(folder)
    files = {file: (folder / file).read_bytes() for file in FILES}
    shutil.rmtree(folder.parent)
    return files


def write(folder: Path, files: dict[str, bytes]) -> Path:
    """These files as a folder, in place of what was there."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def sealed(
    files: dict[str, bytes], change: Callable[[dict[str, Any]], Any] | None = None
) -> dict[str, bytes]:
    """The files with model.json changed and the checksum made to fit: a hostile change."""
    about = json.loads(files["model.json"])
    if change is not None:
        change(about)
        about = json.loads(json.dumps(about))
    if isinstance(about, dict):
        about["sha256"] = _seal(about, files["arrays.safetensors"])
    return {**files, "model.json": json.dumps(about).encode()}


def answers(model: Any) -> pd.DataFrame:
    """What a model says: two rows of each kind of question."""
    rows = table(4)
    return pd.concat(
        [
            model.sample(3, seed=1),
            model.sample(3, do={"sex": "m"}, seed=1),
            model.counterfactual(rows, do={"visits": 9}),
            model.counterfactual(rows, do={"sex": "f"}, draws=2, seed=1).reset_index(drop=True),
        ],
        ignore_index=True,
    )


NAMES = tuple(ENGINES)
