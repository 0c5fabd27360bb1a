"""Do a list of runs, each at most once: on local processes, or on a Dask cluster.

A worker returns a report; the process that holds the list writes it. So a killed worker leaves
nothing half-written, workers need no common disk, and a run that is done is never done again.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from vaca.errors import VacaError
from vaca.model.workers import end_with_parent
from vaca.reproduction.run import Run, Store

__all__ = ["Outcome", "Watcher", "attempt", "run_all", "run_dask", "run_local"]

ATTEMPTS = 3
"""How often a run is started, if its workers die."""

# These models are small: several threads fight for the cores that other runs need.
THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


@dataclass
class Outcome:
    """How a list of runs went.

    Attributes
    ----------
    done, failed, skipped : list of Run
        Finished now; gone wrong (see ``failure.json``); finished before.
    interrupted : bool
        Whether it was stopped by Ctrl-C.
    """

    done: list[Run] = field(default_factory=list)
    failed: list[Run] = field(default_factory=list)
    skipped: list[Run] = field(default_factory=list)
    interrupted: bool = False

    @property
    def exit_code(self) -> int:
        """0 if every run is done, 1 if one failed, 130 if interrupted."""
        return 130 if self.interrupted else 1 if self.failed else 0


class Watcher:
    """Hears what happens to the runs; this base class does nothing."""

    def __enter__(self) -> Watcher:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def begin(self, total: int, skipped: int) -> None:
        """`total` runs are asked for, `skipped` of them are done already."""

    def started(self, run: Run) -> None:
        """A worker has the run."""

    def finished(self, run: Run, seconds: float) -> None:
        """The run's report is written."""

    def failed(self, run: Run, error: str) -> None:
        """The run's failure is written."""

    def tick(self) -> None:
        """Some time has passed."""


def attempt(description: dict[str, Any]) -> dict[str, Any]:
    """Do a run wherever this is called, and give its report or its traceback, never an exception.

    Returns
    -------
    dict
        ``{"report": ...}`` or ``{"error": ..., "traceback": ...}``, and ``seconds``.
    """
    started = time.perf_counter()
    try:
        _one_thread()
        from vaca.reproduction.execute import execute

        result: dict[str, Any] = {"report": execute(Run.from_dict(description))}
    except Exception as error:
        result = {
            "error": f"{type(error).__name__}: {error}",
            "traceback": traceback.format_exc(),
        }
    result["seconds"] = round(time.perf_counter() - started, 3)
    return result


def _one_thread() -> None:
    if "torch" in sys.modules:
        import torch

        torch.set_num_threads(1)
    else:  # read when torch is loaded, if the model needs it
        os.environ.update(dict.fromkeys(THREADS, "1"))


def run_all(
    runs: Iterable[Run],
    store: Store,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    watcher: Watcher | None = None,
) -> Outcome:
    """Do every run that is not done yet.

    Parameters
    ----------
    runs : iterable of Run
        In the order in which they are started; repetitions are dropped.
    store : Store
        Where reports are, and go.
    workers : int, optional
        Local processes; by default one for each core.
    scheduler : str, optional
        Address of a Dask scheduler, to run there instead.
    watcher : Watcher, optional
        Hears of progress.

    Returns
    -------
    Outcome
        Ctrl-C does not raise: what was finished is kept, and `Outcome.interrupted` says so.
    """
    wanted = list({run.key: run for run in runs}.values())
    outcome = Outcome(skipped=[run for run in wanted if store.done(run)])
    done_before = {run.key for run in outcome.skipped}
    todo = [run for run in wanted if run.key not in done_before]
    watcher = watcher or Watcher()
    with watcher:
        watcher.begin(len(wanted), len(outcome.skipped))
        if not todo:
            return outcome
        if scheduler is not None:
            answers = run_dask(todo, scheduler, watcher)
        else:
            answers = run_local(todo, workers or os.cpu_count() or 1, watcher)
        try:
            with contextlib.closing(answers):
                for run, result in answers:
                    _keep(run, result, store, outcome, watcher)
        except KeyboardInterrupt:
            outcome.interrupted = True
    return outcome


def _keep(
    run: Run, result: dict[str, Any], store: Store, outcome: Outcome, watcher: Watcher
) -> None:
    if "report" in result:
        store.write(run, result["report"])
        outcome.done.append(run)
        watcher.finished(run, result["seconds"])
    else:
        store.write_failure(run, result)
        outcome.failed.append(run)
        watcher.failed(run, result["error"])


Answers = Generator[tuple[Run, dict[str, Any]], None, None]


# ---------------------------------------------------------------------- local processes


@dataclass
class _Worker:
    process: Any
    pipe: multiprocessing.connection.Connection
    run: Run | None = None


def _serve(pipe: multiprocessing.connection.Connection, parent: int) -> None:
    """A worker process: do the runs that come through the pipe until it closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that holds the list
    end_with_parent(parent)
    with contextlib.suppress(EOFError, OSError):
        while True:
            pipe.send(attempt(pipe.recv()))


def _start_worker(context: Any) -> _Worker:
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, os.getpid()), daemon=True)
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))  # read when the child loads its libraries
    try:
        process.start()
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    theirs.close()
    return _Worker(process, ours)


def run_local(runs: Sequence[Run], workers: int, watcher: Watcher) -> Answers:
    """Do the runs on local processes with one thread each; yields each run with its result.

    A run whose process dies (out of memory, killed) is started again, `ATTEMPTS` times in all.
    """
    if workers < 1:
        raise VacaError(f"workers must be at least 1; got {workers}")
    # Forking a process that has loaded torch can hang; a fresh interpreter cannot.
    context = multiprocessing.get_context("spawn")
    waiting = deque(runs)
    deaths: dict[str, int] = {}
    crew = [_start_worker(context) for _ in range(min(workers, len(runs)))]
    try:
        while waiting or any(worker.run for worker in crew):
            for worker in crew:
                if worker.run is None and waiting:
                    worker.run = waiting.popleft()
                    worker.pipe.send(worker.run.to_dict())
                    watcher.started(worker.run)
            busy = {worker.pipe: worker for worker in crew if worker.run}
            for pipe in multiprocessing.connection.wait(list(busy), timeout=0.5):
                worker = busy[pipe]  # type: ignore[index]
                run = worker.run
                if run is None:
                    continue
                try:
                    result = worker.pipe.recv()
                    worker.run = None
                except (EOFError, OSError):  # the process is gone
                    worker.process.join()
                    code = worker.process.exitcode
                    crew[crew.index(worker)] = _start_worker(context)
                    deaths[run.key] = deaths.get(run.key, 0) + 1
                    if deaths[run.key] < ATTEMPTS:
                        waiting.appendleft(run)
                        continue
                    result = _died(f"its process ended with code {code}, {ATTEMPTS} times")
                yield run, result
            watcher.tick()
    finally:
        for worker in crew:
            worker.pipe.close()
            if worker.run is not None:
                worker.process.kill()
        for worker in crew:
            worker.process.join(timeout=10)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()


def _died(why: str) -> dict[str, Any]:
    return {"error": f"worker lost: {why}", "traceback": "", "seconds": 0.0}


# ---------------------------------------------------------------------- a cluster


def run_dask(runs: Sequence[Run], scheduler: str, watcher: Watcher) -> Answers:
    """Do the runs on a Dask cluster; yields each run with its result.

    A run is a task named after its key, so that it is done once however often it is asked for.
    Dask starts it again elsewhere when its worker is lost.
    """
    try:
        from distributed import Client, as_completed
    except ImportError:
        raise VacaError(
            "--engine dask needs Dask; install it with: pip install 'vaca[cluster]'"
        ) from None
    try:
        client = Client(scheduler, timeout="20s")
    except OSError as error:
        raise VacaError(f"no Dask scheduler answers at {scheduler}: {error}") from None
    with client:
        tasks, pending = {}, {}
        for order, run in enumerate(runs):
            key = f"vaca-{run.key}"
            tasks[key] = run
            pending[key] = client.submit(
                attempt, run.to_dict(), key=key, pure=False, priority=-order
            )
            watcher.started(run)
        try:
            for future in as_completed(list(pending.values())):
                try:
                    # Finished; or lost since with the worker that held it, and done again.
                    result = future.result()
                except Exception as error:  # never the run's own: its workers died too often
                    result = _died(str(error))
                del pending[future.key]
                yield tasks[future.key], result
        finally:
            if pending:
                client.cancel(list(pending.values()), force=True)
