"""Folders of answers: in order, resumable, the same whoever gave them."""

from __future__ import annotations

import signal

import pandas as pd
import pytest
from typer.testing import CliRunner

import vaca
from vaca.commands.app import app
from vaca.model import partitions
from vaca.model.partitions import (
    LOG,
    dask_counterfactuals,
    partitioned_counterfactuals,
    partitioned_samples,
)
from vaca.model.workers import each

SCM = vaca.scms.load("loan")
DO = {"age": vaca.Shift(5.0)}
pytestmark = pytest.mark.filterwarnings("ignore::vaca.errors.SupportWarning")


@pytest.fixture(scope="module")
def model():
    return vaca.Composite(SCM.graph, families=()).fit(SCM.sample(100, seed=0))


@pytest.fixture
def rows(tmp_path):
    partitioned_samples(SCM, 350, None, tmp_path / "rows", seed=1, chunk=50)
    return tmp_path / "rows"


def test_samples_are_those_of_one_stream(rows):
    from vaca.model.streaming import sample_chunks

    alone = pd.concat(sample_chunks(SCM, 350, seed=1, chunk=50), ignore_index=True)
    pd.testing.assert_frame_equal(pd.read_parquet(rows), alone)


def test_a_folder_of_answers_is_the_answer_to_the_folder(model, rows, tmp_path):
    done = partitioned_counterfactuals(model, rows, DO, tmp_path / "answers")
    answers = pd.read_parquet(tmp_path / "answers").drop(columns="outside_support")
    whole = model.counterfactual(pd.read_parquet(rows), DO)
    pd.testing.assert_frame_equal(answers, pd.DataFrame(whole), check_exact=False, rtol=1e-9)
    assert done.rows == done.written == 350
    assert done.outside["age"] > 0


def test_a_stopped_call_goes_on_where_it_was(model, rows, tmp_path, monkeypatch):
    ask = {"draws": 2, "seed": 3}
    partitioned_counterfactuals(model, rows, DO, tmp_path / "whole", **ask)
    real, seen = partitions._answer_file, []

    def stopping(shared, piece):
        if len(seen) == 3:
            raise KeyboardInterrupt
        seen.append(piece[0])
        return real(shared, piece)

    monkeypatch.setattr(partitions, "_answer_file", stopping)
    with pytest.raises(KeyboardInterrupt):
        partitioned_counterfactuals(model, rows, DO, tmp_path / "part", **ask)
    log = tmp_path / "part" / LOG
    log.write_text(log.read_text()[:-9])  # killed while it wrote the third line
    seen.clear()
    seen.append(-1)
    monkeypatch.setattr(partitions, "_answer_file", lambda *a: seen.append(a[1][0]) or real(*a))
    done = partitioned_counterfactuals(model, rows, DO, tmp_path / "part", **ask)
    assert seen == [-1, 2, 3, 4, 5, 6]
    assert done.written == 700
    assert pd.read_parquet(tmp_path / "part").equals(pd.read_parquet(tmp_path / "whole"))


def test_answers_to_another_question_are_left_alone(model, rows, tmp_path):
    partitioned_counterfactuals(model, rows, DO, tmp_path / "answers")
    with pytest.raises(vaca.VacaError, match="holds answers to another question: do was"):
        partitioned_counterfactuals(model, rows, {"age": 40}, tmp_path / "answers")
    other = vaca.Composite(SCM.graph, families=()).fit(SCM.sample(90, seed=5))
    with pytest.raises(vaca.VacaError, match="another question: model was"):
        partitioned_counterfactuals(other, rows, DO, tmp_path / "answers")
    with pytest.raises(vaca.VacaError, match="holds no answers to go on with"):
        partitioned_samples(SCM, 10, None, tmp_path)


def test_a_column_that_is_missing_is_named_before_any_work(model, tmp_path):
    (tmp_path / "rows").mkdir()
    SCM.sample(9, seed=0).drop(columns="age").to_parquet(tmp_path / "rows" / "a.parquet")
    with pytest.raises(vaca.VacaError, match="no column 'age'"):
        partitioned_counterfactuals(model, tmp_path / "rows", DO, tmp_path / "answers")
    assert not (tmp_path / "answers").exists()


def test_a_cluster_fits_and_answers_as_one_process_also_when_it_loses_a_worker(
    rows, tmp_path, cluster
):
    address, workers = cluster
    SCM.sample(120, seed=0).to_csv(tmp_path / "data.csv", index=False)
    SCM.graph.write(tmp_path / "graph.txt")
    base = ["fit", str(tmp_path / "data.csv"), "--graph", str(tmp_path / "graph.txt")]
    (tmp_path / "quick.toml").write_text("refits = 2\n[settings]\nfamilies = []\n")
    base += ["--config", str(tmp_path / "quick.toml")]
    for name, where in {"alone": [], "there": ["--cluster", address]}.items():
        result = CliRunner().invoke(app, [*base, "--out", str(tmp_path / name), *where])
        assert result.exit_code == 0, result.output
    one, two = (vaca.load(tmp_path / name) for name in ("alone", "there"))
    for a, b in zip([one, *one.refits_], [two, *two.refits_], strict=True):
        assert a.sample(20, seed=1).equals(b.sample(20, seed=1))

    frame = pytest.importorskip("dask.dataframe").read_parquet(rows)
    lazy = dask_counterfactuals(one, frame, DO)
    from distributed import Client

    with Client(address):
        found = lazy.compute()
    exact = pd.concat([pd.DataFrame(one.counterfactual(part, DO)) for part in _parts(rows)])
    pd.testing.assert_frame_equal(found, exact)

    killed = []

    def kill(done):
        if not killed:
            workers[0].send_signal(signal.SIGKILL)
            killed.append(workers[0].wait())

    assert list(each(pow, 3, range(40), cluster=address)) == [3**k for k in range(40)]
    settings = {"draws": 2, "seed": 3}
    partitioned_counterfactuals(one, rows, DO, tmp_path / "one", **settings)
    partitioned_counterfactuals(
        one, rows, DO, tmp_path / "many", **settings, cluster=address, progress=kill
    )
    assert killed
    assert workers[1].poll() is None
    assert pd.read_parquet(tmp_path / "many").equals(pd.read_parquet(tmp_path / "one"))


def _parts(folder):
    return [pd.read_parquet(path) for path in sorted(folder.glob("*.parquet"))]


def test_the_command_line_answers_a_folder(model, rows, tmp_path):
    model.save(tmp_path / "model")
    command = ["counterfactual", str(tmp_path / "model"), str(rows), "--do", "age+=5"]
    command += ["--out", str(tmp_path / "answers")]
    for _ in range(2):  # the second finds all of it done
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 0, result.output
        assert "wrote 350 rows" in result.output
    assert len(pd.read_parquet(tmp_path / "answers")) == 350


def test_sharing_out_needs_a_folder(tmp_path):
    result = CliRunner().invoke(
        app, ["sample", "loan", "--jobs", "2", "--out", str(tmp_path / "a.csv")]
    )
    assert result.exit_code != 0
    assert "without an ending" in str(result.exception)


@pytest.mark.parametrize(
    "line",
    [
        "{", "[]", "3", "null", '{"part": 3, "answers": {}}', '{"part": "x"}', "[" * 5000, "\x00",
        '{"part": "0.parquet", "answers": {"rows": "many"}}',
        '{"part": "0.parquet", "answers": {"rows": 1, "written": null, "outside": 3, "unseen": 1}}',
    ],
)  # fmt: skip
def test_a_damaged_log_is_not_believed(rows, tmp_path, line):
    out = tmp_path / "answers"
    ask = {"seed": 3}
    whole = partitioned_counterfactuals(SCM, rows, DO, out, **ask)
    before = pd.read_parquet(out)
    text = (out / LOG).read_text()
    (out / LOG).write_text(text.splitlines()[0] + "\n" + line + "\n")
    assert partitioned_counterfactuals(SCM, rows, DO, out, **ask) == whole
    pd.testing.assert_frame_equal(pd.read_parquet(out), before)
    (out / LOG).write_text(line + "\n" + text)
    if line.startswith('{"part"'):
        with pytest.raises(vaca.VacaError, match="damaged"):
            partitioned_counterfactuals(SCM, rows, DO, out, **ask)


def test_what_ended_processes_left_is_put_away(rows, tmp_path, monkeypatch):
    from vaca.table import atomic

    out, dead = tmp_path / "answers", 2**22 - 3

    def stopped(shared, piece):
        left = out / f".{piece[1].name}.new-{atomic._host()}-{dead}-x"
        left.mkdir()
        (left / piece[1].name).write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(partitions, "_answer_file", stopped)
    with pytest.raises(KeyboardInterrupt):
        partitioned_counterfactuals(SCM, rows, DO, out, seed=1)
    assert [p.name for p in out.iterdir()] == [LOG]
