"""Tables of real studies: the page is what was stored, and nothing else."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import vaca
from vaca.commands.app import run as vaca_command
from vaca.errors import VacaError
from vaca.reproduction import real, real_tables
from vaca.reproduction.real_tables import RealTable

ROOT = Path(__file__).parents[2]


def test_the_page_shows_what_is_stored():
    text = (ROOT / "docs" / "real-tables.md").read_text(encoding="utf-8")
    shown = re.search(r"begin: tables -->\n(.*)<!-- end: tables", text, re.DOTALL)
    assert shown is not None
    assert shown[1].strip() == real.page(ROOT / "results" / "real").strip()


def test_a_dry_run_measures_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(real, "reproduce_real", lambda *given: pytest.fail("it measured"))
    assert vaca_command(["reproduce", "real", "--dry-run", "--out", str(tmp_path)]) != 0
    assert "real cannot list its runs" in capsys.readouterr().err


def test_a_table_is_measured_once_and_shown_with_its_truth(tmp_path, monkeypatch):
    rows = pd.DataFrame({"x": [0.5 * i for i in range(60)], "t": [i % 2 for i in range(60)]})
    rows["z"] = [i % 7 for i in range(60)]
    rows["y"] = rows["x"] + 2 * rows["t"] + [0.01 * (i % 5) for i in range(60)]
    known = RealTable("thornton", rows, "t", "y", ("x", "z"), {"everyone": 2.0}, "made")
    monkeypatch.setattr(real, "load_real", lambda name: known)
    said: list[str] = []
    for _ in range(2):
        real.measure(tmp_path, ["thornton"], ["vaca, default"], said.append)
    assert len(said) == 1
    (record,) = json.loads((tmp_path / "ours.json").read_text())
    assert record["answers"]["everyone"]["value"] == pytest.approx(2, abs=0.1)
    assert "effect on everyone (known: 2)" in real.page(tmp_path)
    assert "revision" not in real.page(tmp_path)
    (tmp_path / "ours.json").write_text(json.dumps([{**record, "revision": 0}]))
    assert "| vaca, default, revision 0 |" in real.page(tmp_path)  # of an engine that has changed


def test_an_unknown_method_is_named(tmp_path):
    with pytest.raises(VacaError, match="unknown method 'vaca'"):
        real.measure(tmp_path, ["thornton"], ["vaca"], print)


def test_only_the_tables_that_are_named_are_measured(tmp_path, monkeypatch, capsys):
    asked: list[str] = []
    monkeypatch.setattr(real, "load_real", lambda name: asked.append(name))
    monkeypatch.setattr(real, "answer", lambda *given: {})
    monkeypatch.setattr(real, "page", lambda folder: "")
    monkeypatch.setattr(real, "_keep_truth", lambda *given: None)
    given = ["--out", str(tmp_path), "--scms"]
    assert vaca_command(["reproduce", "real", *given, "nhefs-gaps"]) == 0
    assert set(asked) == {"nhefs-gaps"}
    assert vaca_command(["reproduce", "real", *given, "nhef"]) != 0
    assert "unknown table 'nhef'" in capsys.readouterr().err
    asked.clear()
    assert vaca_command(["reproduce", "real", *given, "nhefs", "--models", "default"]) == 0
    assert asked == ["nhefs"]
    assert vaca_command(["reproduce", "real", *given, "nhefs", "--models", "defaults"]) != 0
    assert "unknown method 'defaults'" in capsys.readouterr().err


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(real_tables.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(VacaError, match="pip install --no-deps causallib"):
        real_tables.load_real("acic-1")


def test_what_the_page_says_is_typed_works_with_gaps(tmp_path, monkeypatch, capsys):
    from vaca.commands.app import run

    text = (ROOT / "docs" / "real-tables.md").read_text(encoding="utf-8")
    graph = re.search(r"```text\n(covariates.*?)```", text, re.DOTALL)
    typed = re.findall(r"^\$ vaca (fit|effect) (.*)$", text, re.MULTILINE)
    assert graph is not None
    assert len(typed) == 4
    monkeypatch.chdir(tmp_path)
    Path("graph.txt").write_text(graph[1])
    rng = np.random.default_rng(0)
    columns = vaca.CausalGraph.read("graph.txt").columns("covariates")
    rows = pd.DataFrame({name: rng.normal(size=90) for name in columns}).assign(seqn=range(90))
    rows["qsmk"] = (rng.random(90) < 0.5).astype(float)
    rows["wt82_71"] = 3.4 * rows["qsmk"] + rows["age"] + rng.normal(size=90)
    for name in ("income", "qsmk", "wt82_71"):
        rows.loc[rng.integers(0, 90, 5), name] = np.nan
    rows.to_csv("nhefs.csv", index=False)
    for command, words in typed:
        more = ["--refits", "2"] if command == "fit" else []
        assert run([command, *words.split(), *more]) == 0
        if command == "effect":
            said = capsys.readouterr().out
            value = re.search(r"^  (\S+) \(standard error", said, re.MULTILINE)
            assert value is not None
            assert float(value[1]) == pytest.approx(3.4, abs=1.0)
