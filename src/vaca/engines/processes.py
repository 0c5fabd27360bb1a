"""Fit several engines at once, each in a process of its own.

A task goes to its process as files (JSON and safetensors, as models are saved), and what it learned
comes back the same way. These processes ignore Ctrl-C, which a terminal sends to all of them: the
parent ends its children and is the only one to report it. If the parent dies, its children see the
end of their input and end too. Unlike `multiprocessing`, this works from any script, guarded or
not. joblib's loky (see `vaca.model.workers`) was tried in its place: after Ctrl-C its tracker of
resources writes warnings behind the last line, "vaca: interrupted".
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vaca.engines.engine import Engine
from vaca.engines.fit_input import FitInput, RowWeights
from vaca.errors import VacaError
from vaca.graph.dag import CausalGraph
from vaca.model.workers import each
from vaca.table.atomic import work_folder
from vaca.table.columns import row_count
from vaca.table.schema import Columns, Schema

__all__ = ["Task", "fit_all"]

#: An engine with its schema, its training and validation rows, its checkpoint, and row weights.
Task = tuple[Engine, Columns, Columns, str | None, RowWeights | None]


# Watch for the parent's end before anything else is loaded, which takes seconds.
_START = """
import os, threading
def gone():
    os.read(0, 1)  # returns when the parent closes it or is gone
    os._exit(1)
threading.Thread(target=gone, daemon=True).start()
from vaca.engines.processes import main
main()
"""


def fit_all(
    tasks: Sequence[Task], jobs: int, cluster: str | None = None
) -> Iterator[tuple[int, Engine]]:
    """Yield (number, fitted engine) as they are ready; at most `jobs` at a time, or on a cluster.

    A cluster keeps no checkpoints: its workers may have no disk in common.
    """
    if cluster is not None:
        yield from enumerate(each(_fitted, None, tasks, cluster=cluster))
        return
    if jobs == 1:
        for k, task in enumerate(tasks):
            fit_one(*task)
            yield k, task[0]
        return
    running: dict[int, subprocess.Popen[bytes]] = {}
    waiting = list(range(len(tasks)))
    with work_folder("vaca-members") as folder:
        places = [folder / str(k) for k in range(len(tasks))]
        try:
            while running or waiting:
                while waiting and len(running) < jobs:
                    k = waiting.pop(0)
                    _write_task(tasks[k], places[k])
                    running[k] = _start(places[k])
                for k in [k for k, child in running.items() if child.poll() is not None]:
                    code = _end(running.pop(k))
                    _read_result(tasks[k][0], places[k], k, code)
                    yield k, tasks[k][0]
                time.sleep(0.02)
        finally:
            for child in running.values():
                child.kill()
                _end(child)


def _fitted(shared: None, task: Task) -> Engine:
    """A member fitted by a worker of a cluster."""
    engine, train, validation, _, weights = task
    fit_one(engine, train, validation, None, weights)
    return engine


def fit_one(
    engine: Engine,
    train: Columns,
    validation: Columns,
    checkpoint: str | None,
    weights: RowWeights | None,
) -> None:
    """Fit an engine whose schema is set, on one thread: the networks are small."""
    engine.n_rows_ = row_count(train)
    given = FitInput(train, validation, weights, False, checkpoint)
    if "torch" not in sys.modules and os.environ.get("OMP_NUM_THREADS") == "1":
        engine._fit(given)  # torch takes a second to load, and then one thread by itself
        return
    import torch

    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        engine._fit(given)
    finally:
        torch.set_num_threads(threads)


def _start(place: Path) -> subprocess.Popen[bytes]:
    path = os.pathsep.join(p for p in sys.path if p)
    with (place / "stderr").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-c", _START, str(place)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=log,
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
            start_new_session=True,
        )


def _end(child: subprocess.Popen[bytes]) -> int:
    """Wait for a process that has ended or was killed, and give its code."""
    if child.stdin is not None:
        child.stdin.close()
    return child.wait()


def _write_task(task: Task, place: Path) -> None:
    from safetensors.numpy import save_file

    from vaca.engines.persistence import _plain_parameters

    engine, train, validation, checkpoint, weights = task
    place.mkdir()
    about = {
        "engine": type(engine).__name__,
        "parameters": _plain_parameters(engine),
        "graph": engine.graph.to_json(),
        "schema": engine.schema_.to_dict(),
        "checkpoint": None if checkpoint is None else os.path.abspath(checkpoint),
    }
    (place / "task.json").write_text(json.dumps(about), encoding="utf-8")
    rows = {f"train/{c}": np.ascontiguousarray(v) for c, v in train.items()}
    rows |= {f"validation/{c}": np.ascontiguousarray(v) for c, v in validation.items()}
    if weights is not None:
        rows |= {"weights/train": weights[0], "weights/validation": weights[1]}
    save_file(rows, place / "rows.safetensors")


def _read_result(engine: Engine, place: Path, k: int, code: int) -> None:
    from safetensors.numpy import load_file

    done = place / "done.json"
    if code != 0 or not done.is_file():
        raise VacaError(f"member {k}: {_last_words(place, code)}")
    about = json.loads(done.read_text(encoding="utf-8"))
    engine.n_rows_ = about["rows"]
    engine.history_ = pd.DataFrame(about["history"])
    engine._set_state(load_file(place / "state.safetensors"))


def _last_words(place: Path, code: int) -> str:
    lines = (place / "stderr").read_text(encoding="utf-8", errors="replace").strip().splitlines()
    if code < 0:
        return f"its process was killed by signal {-code}; was there too little memory?"
    return lines[-1].partition(": ")[2] or lines[-1] if lines else f"its process ended with {code}"


def _work(place: Path) -> None:
    """What a process does: read the task, fit, write what was learned."""
    from safetensors.numpy import load_file, save_file

    from vaca.engines.persistence import _restore_parameters
    from vaca.engines.registry import engine_class

    about = json.loads((place / "task.json").read_text(encoding="utf-8"))
    family: Any = engine_class(about["engine"])
    engine = family(
        CausalGraph.from_json(about["graph"]), **_restore_parameters(about["parameters"])
    )
    engine.schema_ = Schema.from_dict(about["schema"])
    engine.history_ = pd.DataFrame()
    rows = load_file(place / "rows.safetensors")
    train, validation = (
        {name[len(part) :]: values for name, values in rows.items() if name.startswith(part)}
        for part in ("train/", "validation/")
    )
    weights = None
    if "weights/train" in rows:
        weights = rows["weights/train"], rows["weights/validation"]
    fit_one(engine, train, validation, about["checkpoint"], weights)
    state = {name: np.ascontiguousarray(values) for name, values in engine._state().items()}
    save_file(state, place / "state.safetensors")
    done = {"rows": engine.n_rows_, "history": engine.history_.to_dict(orient="list")}
    (place / "done.json").write_text(json.dumps(done), encoding="utf-8")


def main() -> None:
    """A process: do the task whose place is the last argument, and end."""
    status = 1
    try:
        _work(Path(sys.argv[-1]))
        status = 0
    except Exception:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)  # a thread still waits for the parent's end
