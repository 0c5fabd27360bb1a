"""Wrong input of every kind: exit code 2, one clear line that names the thing, nothing touched."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import vaca
from vaca.commands.app import run

GRAPH = "sex -> income\nage -> income\nincome -> loan\nchildren -> loan\n"
ROWS = 60


def people(n=ROWS):
    rng = np.random.default_rng(0)
    sex = rng.choice(["female", "male"], n)
    age = rng.normal(40, 10, n).round(1)
    children = rng.poisson(3, n)
    children[:12] = range(12)  # enough different ones to be taken for a count
    income = (20 * age + 100 * (sex == "male") + rng.normal(0, 50, n)).round(1)
    loan = (3 * income + 50 * children + rng.normal(0, 90, n)).round(1)
    return pd.DataFrame(
        {"sex": sex, "age": age, "children": children, "income": income, "loan": loan}
    )


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A folder with good files, a saved model, and one bad file of each kind."""
    d = tmp_path_factory.mktemp("template")
    good = people()
    good.to_csv(d / "data.csv", index=False)
    text = (d / "data.csv").read_text()
    (d / "graph.txt").write_text(GRAPH)
    model = vaca.AdditiveNoise(vaca.CausalGraph.from_text(GRAPH)).fit(good)
    model.save(d / "model")
    # tables
    (d / "empty.csv").write_text("")
    (d / "header.csv").write_text(text.splitlines()[0] + "\n")
    (d / "one.csv").write_text("\n".join(text.splitlines()[:2]) + "\n")
    (d / "twice.csv").write_text(text.replace("sex,age", "sex,sex", 1))
    (d / "latin.csv").write_bytes(text.replace("female", "fémale", 1).encode("latin-1"))
    (d / "long.csv").write_text(text.replace("\n", ",1\n", 3).replace(",1\n", "\n", 1))
    (d / "not.parquet").write_text(text)
    (d / "sheet.xlsx").write_text(text)
    good.assign(age=good["age"].astype(object).where(good.index != 7, "forty")).to_csv(
        d / "text.csv", index=False
    )
    good.mask(
        (good == "male").any(axis=1) & (good.index == good.index[good["sex"] == "male"][0])
    ).to_csv(d / "missing.csv", index=False)
    good.assign(age=good["age"].where(good.index != 3, np.inf)).to_csv(d / "inf.csv", index=False)
    good.assign(sex=good["sex"].where(good.index != 5, "other")).to_csv(
        d / "unseen.csv", index=False
    )
    good.drop(columns="loan").to_csv(d / "narrow.csv", index=False)
    many = pd.concat([good] * 12, ignore_index=True)
    many.assign(sex=[f"p{i}" for i in range(len(many))]).to_csv(d / "names.csv", index=False)
    # graphs
    for name, content in {
        "cycle.txt": "age -> income\nincome -> loan\nloan -> age\n",
        "arrow.txt": "age <- income\n",
        "double.txt": "age -> income\nage -> income\n",
        "blank.txt": "# nothing\n",
        "unknown.txt": "age -> incme\n",
        "broken.json": '{"nodes": [',
        "line.dot": "graph { a -- b }",
        "plain.gml": "graph [ node [ id 0 ] ]",
        "graph.png": "x",
    }.items():
        (d / name).write_text(content)
    (d / "latin.txt").write_bytes("âge -> income\n".encode("latin-1"))
    # schemas and configs
    for name, content in {
        "kind.toml": '[age]\nkind = "continous"\n',
        "key.toml": '[age]\nknd = "continuous"\n',
        "flat.toml": 'age = "continuous"\n',
        "broken.toml": "[age\n",
        "three.toml": '[sex]\nkind = "binary"\nlevels = ["a", "b", "c"]\n',
        "levels.toml": '[sex]\nkind = "binary"\nlevels = ["female", "man"]\n',
        "counts.toml": '[age]\nkind = "count"\n',
        "number.toml": '[sex]\nkind = "continuous"\n',
        "c-key.toml": "sede = 1\n",
        "c-setting.toml": "[settings]\nmax_row = 3\n",
        "c-type.toml": "seed = 'one'\n",
        "c-value.toml": "[settings]\nmax_rows = 'many'\n",
        "c-engine.toml": 'engine = "flo"\n',
    }.items():
        (d / name).write_text(content)
    # models
    newer, half, bent, cut = (d / n for n in ("newer", "half", "bent", "cut"))
    for copy in (newer, half, bent, cut):
        shutil.copytree(d / "model", copy)
    about = json.loads((newer / "model.json").read_text())
    (newer / "model.json").write_text(json.dumps({**about, "format": 99, "vaca": "9.0"}))
    (half / "arrays.safetensors").unlink()
    (bent / "arrays.safetensors").write_bytes(b"x" * 100)
    (cut / "model.json").write_text((cut / "model.json").read_text()[:40])
    (d / "other").mkdir()
    (d / "other" / "precious.txt").write_text("precious")
    (d / "taken.csv").write_text("precious")
    (d / "taken.html").write_text("precious")
    (d / "taken.png").write_text("precious")
    return d


@pytest.fixture
def folder(template, tmp_path, monkeypatch):
    d = tmp_path / "work"
    shutil.copytree(template, d)
    monkeypatch.chdir(d)
    return d


def everything(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


FIT = "fit data.csv --graph graph.txt --out new"
CF = "counterfactual model data.csv"
CASES = {
    # the table
    "no such table": ("fit nowhere.csv --graph graph.txt --out new", "nowhere.csv: no such file"),
    "a folder as table": ("fit other --graph graph.txt --out new", "other"),
    "a spreadsheet": ("fit sheet.xlsx --graph graph.txt --out new", "'.xlsx'"),
    "not what it says": ("fit not.parquet --graph graph.txt --out new", "not a .parquet file"),
    "empty file": ("fit empty.csv --graph graph.txt --out new", "empty.csv: empty file"),
    "only a header": ("fit header.csv --graph graph.txt --out new", "header.csv: no rows"),
    "one row": ("fit one.csv --graph graph.txt --out new", "1 row(s); at least 12"),
    "duplicate header": (
        "fit twice.csv --graph graph.txt --out new",
        "two columns are named 'sex'",
    ),
    "Latin-1": ("fit latin.csv --graph graph.txt --out new", "0xe9 in line"),
    "a row too long": ("fit long.csv --graph graph.txt --out new", "line 2 has 6 fields"),
    "text among numbers": ("fit text.csv --graph graph.txt --out new", "row 7"),
    "missing values": (
        "fit missing.csv --graph graph.txt --out new",
        "missing value, in sex (1)",
    ),
    "an infinite value": ("fit inf.csv --graph graph.txt --out new", "'age'"),
    "an identifier": ("fit names.csv --graph graph.txt --out new", "720 different texts"),
    # the graph
    "no such graph": ("fit data.csv --graph no.txt --out new", "no.txt: no such file"),
    "no graph": ("fit data.csv --out new", "--graph is missing"),
    "a picture as graph": ("fit data.csv --graph graph.png --out new", "'.png'"),
    "a cycle": ("fit data.csv --graph cycle.txt --out new", "age -> income -> loan -> age"),
    "an arrow the wrong way": ("fit data.csv --graph arrow.txt --out new", "line 1"),
    "an arrow twice": ("fit data.csv --graph double.txt --out new", "given twice"),
    "a graph of comments": ("fit data.csv --graph blank.txt --out new", "names no node"),
    "a column that is not there": (
        "fit data.csv --graph unknown.txt --out new",
        "no column 'incme'; did you mean 'income'",
    ),
    "a graph in Latin-1": ("fit data.csv --graph latin.txt --out new", "latin.txt: not UTF-8"),
    "broken JSON": ("fit data.csv --graph broken.json --out new", "broken.json: not JSON"),
    "undirected DOT": ("fit data.csv --graph line.dot --out new", "'digraph'"),
    "bad GML": ("fit data.csv --graph plain.gml --out new", "plain.gml"),
    "a cycle to show": ("graph show cycle.txt", "cycle"),
    # the schema and the config
    "no such schema": (f"{FIT} --schema no.toml", "no.toml: no such file"),
    "an unknown kind": (f"{FIT} --schema kind.toml", "did you mean 'continuous'"),
    "an unknown key": (f"{FIT} --schema key.toml", "did you mean 'kind'"),
    "a schema without tables": (f"{FIT} --schema flat.toml", "[age]"),
    "not TOML": (f"{FIT} --schema broken.toml", "broken.toml: not TOML"),
    "binary with three": (f"{FIT} --schema three.toml", "2 levels"),
    "a level left out": (f"{FIT} --schema levels.toml", "'male' is not one of its levels"),
    "not a count": (f"{FIT} --schema counts.toml", "'age' is a count"),
    "text as number": (f"{FIT} --schema number.toml", "a number is needed"),
    "no such config": (f"{FIT} --config no.toml", "no.toml: no such file"),
    "a key in the config": (f"{FIT} --config c-key.toml", "did you mean 'seed'"),
    "a setting in the config": (f"{FIT} --config c-setting.toml", "did you mean 'max_rows'"),
    "a type in the config": (f"{FIT} --config c-type.toml", "seed is a whole number"),
    "a type of a setting": (f"{FIT} --config c-value.toml", "max_rows of Composite is of type int"),
    "an engine in the config": (f"{FIT} --config c-engine.toml", "did you mean 'flow'"),
    "an unknown engine": (f"{FIT} --engine vacca", "did you mean 'vaca'"),
    "no members": (f"{FIT} --members 0", "--members"),
    "all held out": (f"{FIT} --holdout 2", "--holdout"),
    "an unknown option": (f"{FIT} --speed 3", "--speed"),
    # where answers go
    "a model in the way": ("fit data.csv --graph graph.txt --out model", "--force"),
    "a folder in the way": ("fit data.csv --graph graph.txt --out other", "not a saved model"),
    "a file in the way": ("fit data.csv --graph graph.txt --out data.csv", "is a file"),
    "no folder for the model": ("fit data.csv --graph graph.txt --out a/b", "no folder a"),
    "a folder closed to us": ("fit data.csv --graph graph.txt --out /proc/new", "can be written"),
    "a file that exists": (f"{CF} --do age=40 --out taken.csv", "taken.csv exists already"),
    "an unknown format": (f"{CF} --do age=40 --out new.xls", "'.xls'"),
    "no folder for the answer": (f"{CF} --do age=40 --out a/b.csv", "no folder a"),
    "an answer nowhere": (f"{CF} --do age=40 --out /proc/new.csv", "can be written"),
    "an unknown picture": (f"{CF} --do age=40 --out new.csv --plot new.gif", ".png, .svg, .pdf"),
    "a picture that exists": ("do model --do age=40 --plot taken.png", "taken.png exists already"),
    # the model
    "no such model": ("sample nothing", "'nothing' is neither"),
    "a folder that is no model": ("sample other", "not a saved model"),
    "a newer model": ("sample newer", "Upgrade vaca"),
    "a half-written model": ("sample half", "arrays.safetensors is missing"),
    "a damaged model": ("sample bent", "checksum"),
    "a cut model file": ("sample cut", "damaged"),
    # the question
    "do without do": (CF, "--do age=40"),
    "do on an unknown column": (f"{CF} --do agee=40", "did you mean 'age'"),
    "an unknown level": (f"{CF} --do sex=femal", "did you mean 'female'"),
    "a word for a number": (f"{CF} --do age=forty", "a number is needed"),
    "a shift of a level": (f"{CF} --do sex+=1", "sex"),
    "a shift by a word": (f"{CF} --do age+=much", "not a number"),
    "a do that is none": (f"{CF} --do age", "COLUMN=VALUE"),
    "do twice": (f"{CF} --do age=1 --do age=2", "set twice"),
    "do at infinity": (f"{CF} --do age=inf", "finite"),
    "half a child": (f"{CF} --do children=1.5", "whole number"),
    "a column missing": ("counterfactual model narrow.csv --do age=40", "no column 'loan'"),
    "a level not seen": ("counterfactual model unseen.csv --do age=40", "'other'"),
    "text in the rows": ("counterfactual model text.csv --do sex=male", "'forty'"),
    "no rows": ("counterfactual model header.csv --do age=40", "no rows"),
    "a summary of nothing": (f"{CF} --do age=40 --summary", "--draws"),
    "no draws": (f"{CF} --do age=40 --draws 0", "--draws"),
    "keep what is not there": (f"{CF} --do age=40 --keep id", "no column 'id'"),
    "keep what is there anyway": (f"{CF} --do age=40 --keep age", "--keep age"),
    "a negative seed": ("sample model --seed -1", "seed"),
    "no rows to draw": ("sample model -n 0", "-n"),
    "nothing done": ("do model", "--do age=40"),
    "do on an unknown outcome": ("do model --do age=40 --on incme", "did you mean 'income'"),
    "no outcome": ("effect model --do age=40", "--on"),
    "an unknown outcome": ("effect model --on lone --do age=40", "did you mean 'loan'"),
    "an unknown level of it": ("effect model --on sex --level man --do age=40", "'male'"),
    "a level of a number": ("effect model --on loan --level 3 --do age=40", "has no levels"),
    "against what": ("effect model --on loan --do age=40 --against age", "--against age"),
    "draws of what": ("effect model --on loan --do age=40 --draws 3", "--given"),
    "given what": ("effect model --on loan --do age=40 --given no.csv", "no.csv: no such file"),
    "no report data": ("report model --data no.csv --out new.html", "no.csv: no such file"),
    "a report of no kind": ("report model --data data.csv --out new.pdf", ".html"),
    "a report that exists": ("report model --data data.csv --out taken.html", "--force"),
    "an outcome of nothing": ("report model --data data.csv --out n.html --on loan", "add --do"),
    "a report without a column": (
        "report model --data narrow.csv --out n.html",
        "no column 'loan'",
    ),
    "a report of text": ("report model --data text.csv --out n.html", "'forty'"),
    "a report of gaps": ("report model --data missing.csv --out n.html", "missing"),
    "an audit of text": ("audit model text.csv --sensitive sex --target loan", "'forty'"),
    "an audit of gaps": ("audit model missing.csv --sensitive sex --target loan", "missing"),
    "an audit of a number": (
        "audit model data.csv --sensitive sex --target loan",
        "--target loan: the full classifier cannot be fitted to it",
    ),
    "a check without a column": ("check model narrow.csv --quick", "no column 'loan'"),
    "a check of text": ("check model text.csv --quick", "'forty'"),
    "start without a table": ("init nowhere.csv", "nowhere.csv: no such file"),
    "start over": ("init data.csv", "graph.txt exists already"),
}


def test_there_are_enough_of_them():
    assert len(CASES) >= 40


@pytest.mark.parametrize("name", CASES)
def test_bad_input(name, folder, capsys):
    command, says = CASES[name]
    before = everything(folder)
    code = run(command.split())
    err = capsys.readouterr().err
    assert code == 2, err
    lines = [line for line in err.splitlines() if not line.startswith("vaca: warning: ")]
    assert len(lines) == 1, err
    assert lines[0].startswith("vaca: ")
    assert says in lines[0]
    assert len(lines[0]) < 600
    assert everything(folder) == before


def test_a_byte_order_mark_and_semicolons_are_no_problem(folder, capsys):
    rows = pd.read_csv("data.csv")
    rows.to_csv("marked.csv", index=False, sep=";", decimal=",", encoding="utf-8-sig")
    for source, out in (("marked.csv", "a.csv"), ("data.csv", "b.csv")):
        assert run(["counterfactual", "model", source, "--do", "age=40", "--out", out]) == 0
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()


def test_ctrl_c_during_a_query_leaves_nothing(folder, capsys, monkeypatch):
    from vaca.model.causal_model import CausalModel

    real, calls = CausalModel.counterfactual, []

    def stop(self, *args, **options):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(self, *args, **options)

    monkeypatch.setattr(CausalModel, "counterfactual", stop)
    monkeypatch.setattr(
        "vaca.model.streaming.counterfactual_chunks.__kwdefaults__", {**CHUNKS, "chunk": 20}
    )
    before = everything(folder)
    assert run(f"{CF} --do age=40 --out taken.csv --force".split()) == 130
    assert capsys.readouterr().err == "vaca: interrupted\n"
    assert len(calls) == 2  # one piece had been written
    assert everything(folder) == before


def _chunk_defaults():
    from vaca.model.streaming import counterfactual_chunks

    return dict(counterfactual_chunks.__kwdefaults__)


CHUNKS = _chunk_defaults()


def process(command: str, **options) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "vaca", *command.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        **options,
    )


def interrupt_when_training(command: str) -> tuple[int, str]:
    """Start a fit, press Ctrl-C once it has said what it will do, as a terminal does."""
    child = process(command, start_new_session=True)
    try:
        for line in child.stdout:
            if line.startswith("Rows:"):
                break
        time.sleep(1.5)
        os.killpg(child.pid, signal.SIGINT)  # a terminal tells the whole group
        _, err = child.communicate(timeout=120)
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
    for _ in range(50):  # its own processes must end too
        try:
            os.killpg(child.pid, 0)
        except ProcessLookupError:
            return child.returncode, err
        time.sleep(0.2)
    os.killpg(child.pid, signal.SIGKILL)
    raise AssertionError("processes were left behind")


@pytest.mark.parametrize("extra", ["", " --members 2 --jobs 2"], ids=["alone", "members"])
def test_ctrl_c_during_a_fit(extra, folder):
    (folder / "long.toml").write_text(
        "engine = 'flow'\n[settings]\nsteps = 1000000\npatience = 1.0\n"
    )
    before = everything(folder)
    code, err = interrupt_when_training(f"{FIT} --config long.toml{extra}")
    assert code == 130, err
    assert err.splitlines()[-1] == "vaca: interrupted"
    assert "Traceback" not in err
    assert everything(folder) == before


def small_files() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (900, 900))


FULL = """
import sys
from vaca.commands.app import run
for command in sys.argv[1:]:
    code = run(command.split())
    print("END", code, file=sys.stderr)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits on file sizes are POSIX")
def test_a_full_disk(folder):
    commands = [
        "fit data.csv --graph graph.txt --engine additive --out model --force",
        f"{CF} --do age=40 --out taken.csv --force",
        "sample model -n 5000 --out new.parquet",
    ]
    before = everything(folder)
    child = subprocess.run(  # one process for all: it takes longer to start than to run
        [sys.executable, "-c", FULL, *commands],
        capture_output=True,
        text=True,
        preexec_fn=small_files,
        check=True,
    )
    said = child.stderr.split("END")
    assert len(said) == len(commands) + 1
    for command, err, code in zip(commands, said, said[1:], strict=False):
        last = err.strip().splitlines()[-1]
        assert code.split()[0] == "2", command
        assert "could not be" in last, command
        assert "nothing was changed" in last, command
        assert "Traceback" not in err
    assert everything(folder) == before
    assert not [p for p in folder.iterdir() if p.name.startswith(".")]
