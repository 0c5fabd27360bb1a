"""Settings shared by all tests: one thread, pictures without a screen, quick property tests."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from dataclasses import replace

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "vaca",
    deadline=None,  # no absolute time in a test
    max_examples=30,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("vaca")


@pytest.fixture(autouse=True)
def _same_start_for_every_test() -> None:
    """Networks made without a generator start alike in every run of a test."""
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)


@pytest.fixture
def cluster(tmp_path):
    """A scheduler and two workers, each a process of its own."""
    pytest.importorskip("distributed")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}

    def start(*arguments):
        log = open(tmp_path / f"{len(processes)}.log", "w")
        processes.append(
            subprocess.Popen(
                [sys.executable, "-m", "distributed.cli." + arguments[0], *arguments[1:]],
                env=env,
                stdout=log,
                stderr=log,
                cwd=tmp_path,
            )
        )
        log.close()
        return processes[-1]

    processes: list[subprocess.Popen] = []
    start(
        "dask_scheduler",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--no-dashboard",
        "--no-jupyter",
    )
    worker = ("dask_worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard")
    workers = [start(*worker, "--name", name) for name in ("one", "two")]
    try:
        yield address, workers
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()


@pytest.fixture
def brief_second_opinions(monkeypatch):
    """Other engines that a report or an effect asks learn from few rows, for a moment.

    A report draws few rows too, and `vaca fit` refits twice. For tests of what is around them; what
    they answer is tested in trust/test_agreement.py and show/test_report.py.
    """
    from vaca.commands import fit_options
    from vaca.show.report import model_part, question
    from vaca.trust import agreement

    few = replace(fit_options.OPTIONS["refits"], default=2)
    monkeypatch.setitem(fit_options.OPTIONS, "refits", few)
    monkeypatch.setattr(question, "ROWS", 1000)
    monkeypatch.setattr(model_part, "ROWS", 500)
    monkeypatch.setattr(agreement, "ROWS", 400)
    monkeypatch.setattr(agreement, "CHECK_ROWS", 400)
    monkeypatch.setitem(agreement.BRIEF, "CausalFlow", {"steps": 20, "polish_steps": 0})


@pytest.fixture(scope="module")
def without_trees():
    """Additive noise chooses among curves only: boosted trees are most of the time of its fit.

    For tests of what any engine does; engines/test_additive_noise.py has the trees.
    """
    from vaca.engines import choosing_predictors

    def simple(which):
        return lambda *given: {k: fit for k, fit in which(*given).items() if "trees" not in k}

    with pytest.MonkeyPatch.context() as patch:
        for name in ("_regressors", "_classifiers"):
            patch.setattr(choosing_predictors, name, simple(getattr(choosing_predictors, name)))
        yield


@pytest.fixture(scope="module")
def quick_checks():
    """A check grows few trees, which are most of its time. Its figures are tested in trust/."""
    from vaca.trust import leftover

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leftover, "TREES", 8)
        yield


def pytest_collection_modifyitems(items):
    """Long tests first, so that no process is left alone with one at the end."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture(scope="session")
def browser():
    """One Chromium for all browser tests of a process; skipped, with a message, without one."""
    from tests.browsing import launch

    yield from launch()
