"""Runs, their store, and the two ways of doing them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from vaca.datasets import german_credit
from vaca.errors import VacaError
from vaca.reproduction.catalogue import EXPERIMENTS
from vaca.reproduction.execute import _floors, execute
from vaca.reproduction.experiment import Options
from vaca.reproduction.recipes import edit_graph, recipe
from vaca.reproduction.run import Run, Store
from vaca.reproduction.runner import Watcher, attempt, run_all
from vaca.reproduction.truths import load_truth

BLIND = "tests.reproduction.models:blind"
SMALL = {
    "train": 200,
    "validation": 50,
    "factuals": 50,
    "rows": 200,
    "resamples": 1,
    "protocols": ("paper",),
}
ROOT = Path(__file__).parents[2]


def small(scm="collider-lin", model=BLIND, **changes):
    return Run(scm, model, **{**SMALL, **changes})


# ---------------------------------------------------------------------- descriptions and reports


def test_run_is_named_by_its_content():
    run = small(config={"seconds": 0.0, "fail": False})
    assert run.name == small(config={"fail": False, "seconds": 0.0}).name
    others = [
        small(),
        small(seed=1),
        small(data_seed=3),
        small(rows=201),
        small(graph=("-x1->x3",)),
    ]
    assert len({r.name for r in [run, *others]}) == 6
    assert Run.from_dict(json.loads(json.dumps(run.to_dict()))) == run


def test_run_name_is_a_file_name():
    assert "/" not in small(model="a.b:c/d").name
    assert ":" not in small(scm="long-chain:5").name


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Run("a", "b", config={"x": object()}), "JSON"),
        (lambda: Run.from_dict({"scm": "a", "modle": "b"}), "did you mean 'model'"),
        (lambda: recipe("vacca"), "did you mean 'vaca'"),
        (lambda: recipe("nothing.here:f"), "nothing"),
        (lambda: load_truth("triangle"), "unknown SCM"),
        (lambda: load_truth("long-chain:x"), "a number from 2"),
        (lambda: edit_graph(load_truth("collider-lin").graph, ("-x1->x2",)), "no such edge"),
        (lambda: edit_graph(load_truth("collider-lin").graph, ("+x1->x3",)), "exists already"),
        (lambda: edit_graph(load_truth("collider-lin").graph, ("x1->x3",)), "write -a->b"),
    ],
)
def test_mistakes_are_told(call, message):
    with pytest.raises(VacaError, match=message):
        call()


def test_graph_edits():
    graph = load_truth("chain-lin").graph
    assert edit_graph(graph, ("~x1->x2",)).edges == (("x2", "x1"), ("x2", "x3"))
    assert edit_graph(graph, ("-x1->x2", "+x1->x3")).edges == (("x2", "x3"), ("x1", "x3"))


def test_store_is_whole_or_absent(tmp_path, monkeypatch):
    store, run = Store(tmp_path), small()

    def broken(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(VacaError, match="disk full"):
        store.write(run, {"scores": {}})
    assert not store.done(run)
    assert list((tmp_path / run.name).iterdir()) == []


def test_store_forgets_a_failure_after_success(tmp_path):
    store, run = Store(tmp_path), small()
    store.write_failure(run, {"error": "e"})
    assert not store.done(run)
    assert store.read_failure(run)["error"] == "e"
    store.write(run, {"scores": {}})
    assert store.read_failure(run) is None
    assert store.reports([run, small(seed=9)]) == [{"run": run.to_dict(), "scores": {}}]
    assert store.reports() == store.reports([run])


def test_execute_is_repeatable_and_depends_on_the_seeds():
    report = execute(small())
    assert report["scores"] == execute(small())["scores"]
    assert report["scores"] != execute(small(seed=1))["scores"]
    assert report["scores"] != execute(small(data_seed=1))["scores"]
    value, floor = report["scores"]["paper"]["cf_mse"]
    assert floor == pytest.approx(0.0, abs=1e-9)
    assert value > 1.0
    assert report["validation_mmd"] > 0


def test_floors_are_the_same_whether_kept_or_not():
    runs = [small(model=model, seed=s) for s in (0, 1) for model in ("truth", BLIND, "truth")]
    kept = [execute(run)["scores"] for run in runs]
    for run, scores in zip(runs, kept, strict=True):
        _floors.clear()
        assert execute(run)["scores"] == scores


def test_execute_with_a_hidden_cause():
    report = execute(small(scm="confounded:1"))
    assert report["scores"]["paper"]["cf_mse"][1] == pytest.approx(0.0, abs=1e-9)


def test_attempt_gives_the_traceback():
    result = attempt(small(config={"fail": True}).to_dict())
    assert result["error"] == "RuntimeError: made to fail"
    assert "models.py" in result["traceback"]


# ---------------------------------------------------------------------- local processes


def test_local_runs_are_done_once_and_failures_do_not_stop_them(tmp_path):
    store = Store(tmp_path / "results")
    mark = tmp_path / "mark"
    mark.mkdir()
    good = [small(seed=s, config={"mark": str(mark)}) for s in range(3)]
    bad = small(seed=7, config={"fail": True})
    outcome = run_all([bad, *good, good[0]], store, workers=2)
    assert sorted(r.seed for r in outcome.done) == [0, 1, 2]
    assert outcome.failed == [bad]
    assert outcome.exit_code == 1
    assert "made to fail" in store.read_failure(bad)["traceback"]
    assert len(list(mark.iterdir())) == 3
    again = run_all(good, store, workers=2)
    assert (len(again.skipped), again.done, again.exit_code) == (3, [], 0)
    assert len(list(mark.iterdir())) == 3
    for run in good:  # what a worker found is what this process finds
        assert store.read(run)["scores"] == execute(run)["scores"]


def test_local_run_whose_process_is_killed_starts_again(tmp_path, monkeypatch):
    monkeypatch.setattr("vaca.reproduction.runner.ATTEMPTS", 2)
    store = Store(tmp_path / "results")
    marks = {deaths: tmp_path / str(deaths) for deaths in (1, 2)}
    for mark in marks.values():
        mark.mkdir()
    once, always = (small(config={"mark": str(mark), "die": n}) for n, mark in marks.items())
    other = small(seed=1)
    before = dict(os.environ)
    outcome = run_all([once, always, other], store, workers=1)
    assert set(outcome.done) == {once, other}
    assert "worker lost" in store.read_failure(always)["error"]
    assert dict(os.environ) == before  # the caller's is left alone


SCRIPT = """
import sys
from vaca.reproduction import Run, Store, run_all
if __name__ == "__main__":
    small = dict(train=200, validation=50, factuals=50, rows=200, resamples=1, protocols=("paper",))
    blind = "tests.reproduction.models:blind"
    runs = [Run("collider-lin", blind, seed=s, config={"seconds": w}, **small)
            for s, w in [(0, 0.0), (1, 60.0)]]
    outcome = run_all(runs, Store(sys.argv[1]), workers=2)
    print(len(outcome.done), "done", flush=True)
    sys.exit(outcome.exit_code)
"""


def test_ctrl_c_keeps_what_is_done(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    process = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / "results")],
        env={**os.environ, "PYTHONPATH": python_path()},
        stdout=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: list((tmp_path / "results").glob("*/report.json")))
    time.sleep(0.5)  # it is counted right after it is written
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    assert out == "1 done\n"
    assert process.returncode == 130
    files = [p.name for p in (tmp_path / "results").glob("*/*")]
    assert files == ["report.json"]


def python_path():
    source = str(ROOT / "src")
    return os.pathsep.join([source, str(ROOT), os.environ.get("PYTHONPATH", "")])


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("it did not happen")
        time.sleep(0.05)


# ---------------------------------------------------------------------- a real cluster


class KillOne(Watcher):
    """Kills a worker as soon as the first run is done."""

    def __init__(self, worker):
        self.worker = worker
        self.ends = []

    def finished(self, run, seconds):
        if not self.ends:
            self.worker.send_signal(signal.SIGKILL)
            self.worker.wait()
        self.ends.append(run.key)


def test_dask_loses_a_worker_and_no_run(tmp_path, cluster):
    address, workers = cluster
    mark = tmp_path / "mark"
    mark.mkdir()
    runs = [small(seed=s, config={"seconds": 0.3, "mark": str(mark)}) for s in range(8)]
    bad = small(seed=99, config={"fail": True})
    store = Store(tmp_path / "cluster")
    watcher = KillOne(workers[0])
    outcome = run_all([*runs, bad], store, scheduler=address, watcher=watcher)
    assert workers[0].returncode == -signal.SIGKILL
    assert workers[1].poll() is None
    assert sorted(watcher.ends) == sorted(run.key for run in runs)  # each once
    assert outcome.failed == [bad]
    assert "made to fail" in store.read_failure(bad)["traceback"]
    local = Store(tmp_path / "local")
    run_all(runs[:3], local, workers=1)
    for run in runs[:3]:
        assert store.read(run)["scores"] == local.read(run)["scores"]
    starts = len(list(mark.iterdir()))
    again = run_all(runs, store, scheduler=address)
    assert len(again.skipped) == 8
    assert len(list(mark.iterdir())) == starts


def test_dask_waits_for_a_result_that_was_lost_after_it_was_finished(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")

    class Lost:
        """A future whose worker died between its end and our question: it is done again."""

        status = "pending"

        def __init__(self, key, task, *arguments):
            self.key, self.task, self.arguments = key, task, arguments

        def exception(self):
            return None

        def result(self):
            return self.task(*self.arguments)

    class Client:
        def __init__(self, *_, **__):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def submit(self, task, *arguments, key, **_):
            return Lost(key, task, *arguments)

    monkeypatch.setattr(distributed, "Client", Client)
    monkeypatch.setattr(distributed, "as_completed", iter)
    outcome = run_all([small()], Store(tmp_path), scheduler="tcp://somewhere:1")
    assert outcome.done == [small()] and not outcome.failed


def test_dask_without_a_scheduler_says_so(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")

    def refuse(*_, **__):
        raise OSError("timed out")

    monkeypatch.setattr(distributed, "Client", refuse)
    with pytest.raises(VacaError, match="no Dask scheduler answers at tcp://nowhere"):
        run_all([small()], Store(tmp_path), scheduler="tcp://nowhere:1")


# ---------------------------------------------------------------------- the other tasks


def test_parameter_counts_are_the_published_ones():
    runs = EXPERIMENTS["table-params"].runs(Options(scms=("triangle-nlin", "chain-nadd")))
    found = {}
    for run in runs:
        found.setdefault(run.scm, []).append(execute(run)["parameters"])
    assert found == {
        "triangle-nlin": [4542, 5334, 6918, 10086, 16422],
        "chain-nadd": [3785, 4445, 5765, 8405, 13685],
    }


@pytest.mark.usefixtures("without_trees")
def test_fairness_run_on_german_credit(monkeypatch):
    whole = german_credit()
    some = replace(whole, data=whole.data.head(300), target=whole.target.head(300))
    monkeypatch.setattr("vaca.datasets.german_credit", lambda: some)
    monkeypatch.setattr("vaca.reproduction.fairness.DRAWS", 20)
    report = execute(Run("german-credit", "additive", task="fairness", protocols=()))
    scores = {name: value for name, (value, _) in report["scores"]["fairness"].items()}
    assert len(scores) == 2 * 5 * 5
    assert all(0 <= value <= 100 for value in scores.values())
    for learner in ("lr", "svm"):
        # what does not descend from sex does not change with it
        assert scores[f"{learner} fair-x uf"] == pytest.approx(0, abs=1e-6)
        assert scores[f"{learner} full uf"] > 0.1
        assert scores[f"{learner} full acc"] > 50


def test_unknown_task():
    with pytest.raises(VacaError, match="did you mean 'evaluate'"):
        execute(small(task="evalute"))
