"""The command line, run in this process where that is enough and as a process where it is not."""

import os
import shlex
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import vaca
from vaca.commands.app import run
from vaca.errors import VacaError, VacaWarning

COMMANDS = [
    [],
    ["init"],
    ["fit"],
    ["sample"],
    ["do"],
    ["counterfactual"],
    ["effect"],
    ["check"],
    ["report"],
    ["explore"],
    ["audit"],
    ["scms"],
    ["graph"],
    ["graph", "show"],
    ["reproduce"],
]


@pytest.fixture
def factual(tmp_path):
    path = tmp_path / "factual.csv"
    vaca.scms.load("triangle-nlin").sample(20, seed=3).to_csv(path, index=False)
    return path


def bad(capsys, *arguments) -> str:
    """Run something wrong; give the one line of its complaint."""
    assert run([str(a) for a in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith("\n")
    assert err.count("\n") == 1
    assert err.startswith("vaca: ")
    return err


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_fits_80_columns_and_has_an_example(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert run([*command, "--help"]) == 0
    text = capsys.readouterr().out
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "..." not in text.replace("[ARGS]...", "")  # no description is cut short
    assert "Example: vaca " in text


def test_proposed_commands_can_be_typed_whatever_the_names(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    smokes = rng.choice(["not at all", "yes"], 60)
    weight = rng.normal(70, 9, 60).round(1)
    table = pd.DataFrame({"smokes?": smokes, "weight (kg)": weight, "it's": weight + smokes.size})
    table["it's"] += rng.normal(0, 1, 60)
    table.to_csv("my data.csv", index=False)
    assert run(["init", "my data.csv"]) == 0
    with open("graph.txt", "w") as graph:
        graph.write("smokes? -> weight (kg) -> it's\n")
    (proposed,) = (line for line in capsys.readouterr().out.splitlines() if "vaca fit" in line)
    words = [*shlex.split(proposed)[1:-1], "my model", "--engine", "additive"]
    assert run(words) == 0
    said = capsys.readouterr().out.splitlines()
    commands = [shlex.split(line) for line in said if line.startswith("  vaca ")]
    assert [words[1] for words in commands] == ["do", "counterfactual", "effect", "check", "report"]
    for words in commands[:3]:
        assert run(words[1:]) == 0


def test_every_command_is_covered_by_the_help_test(capsys):
    from vaca.commands.app import app

    names = {info.name or info.callback.__name__ for info in app.registered_commands}
    names |= {group.name for group in app.registered_groups}
    assert names == {command[0] for command in COMMANDS if command}


def test_no_arguments_shows_the_help(capsys):
    assert run([]) == 2
    assert "Usage: vaca" in capsys.readouterr().err


def test_version(capsys):
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.strip() == f"vaca {vaca.__version__}"


def test_scms_lists_all(capsys):
    assert run(["scms"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in vaca.scms.names())


def test_sample_to_the_terminal(capsys):
    assert run(["sample", "triangle-nlin", "-n", "4", "--do", "x2=0.5", "--seed", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "x1,x2,x3"
    assert len(lines) == 5
    assert {line.split(",")[1] for line in lines[1:]} == {"0.5"}


@pytest.mark.parametrize("suffix", ["csv", "parquet", "feather"])
def test_sample_to_a_file(suffix, tmp_path, capsys):
    out = tmp_path / f"rows.{suffix}"
    assert run(["sample", "loan", "-n", "50", "--seed", "1", "--out", str(out)]) == 0
    read = {"csv": pd.read_csv, "parquet": pd.read_parquet, "feather": pd.read_feather}[suffix]
    expected = vaca.scms.load("loan").sample(50, seed=1)
    pd.testing.assert_frame_equal(read(out), expected, check_dtype=suffix != "csv")
    assert os.listdir(tmp_path) == [out.name]  # nothing half-written is left
    assert str(out) in capsys.readouterr().err


def test_several_interventions_and_labels(capsys):
    arguments = ["sample", "loan", "-n", "3", "--seed", "1", "--do", "gender=1", "--do", "age=4"]
    assert run(arguments) == 0
    rows = capsys.readouterr().out.splitlines()[1:]
    assert [row.split(",")[:2] for row in rows] == [["1", "4.0"]] * 3


def test_counterfactual(factual, tmp_path, capsys):
    out = tmp_path / "cf.csv"
    assert (
        run(["counterfactual", "triangle-nlin", str(factual), "--do", "x2=0.5", "-o", str(out)])
        == 0
    )
    scm = vaca.scms.load("triangle-nlin")
    expected = scm.counterfactual(pd.read_csv(factual), do={"x2": 0.5})
    pd.testing.assert_frame_equal(pd.read_csv(out), pd.DataFrame(expected))


@pytest.mark.parametrize(("text", "delta"), [("x2+=0.25", 0.25), ("x2-=0.25", -0.25)])
def test_counterfactual_shift(text, delta, factual, tmp_path):
    out = tmp_path / "cf.csv"
    assert run(["counterfactual", "triangle-nlin", str(factual), "--do", text, "-o", str(out)]) == 0
    difference = pd.read_csv(out)["x2"] - pd.read_csv(factual)["x2"]
    assert difference.sub(delta).abs().max() < 1e-9


def test_counterfactual_draws(factual, tmp_path):
    out = tmp_path / "cf.parquet"
    arguments = ["counterfactual", "triangle-nlin", str(factual), "--do", "x2=0.5", "--draws", "3"]
    assert run([*arguments, "--out", str(out)]) == 0
    answer = pd.read_parquet(out).reset_index()
    assert answer[["row", "draw"]].to_numpy().tolist() == [
        [r, d] for r in range(20) for d in range(3)
    ]


def test_graph_show(tmp_path, capsys):
    path = tmp_path / "graph.txt"
    path.write_text("sex -> income\nage -> income\nincome -> loan\nsex -> loan\n")
    picture = tmp_path / "graph.png"
    assert run(["graph", "show", str(path), "--out", str(picture)]) == 0
    text = capsys.readouterr().out
    assert "roots  sex, age" in text
    assert "delta  2" in text
    assert "gamma  2" in text
    assert [line.split("<-")[1].strip() for line in text.splitlines() if "<-" in line] == [
        "sex, age",
        "income, sex",
    ]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_graph_show_takes_an_scm(capsys):
    assert run(["graph", "show", "chain-lin"]) == 0
    assert "gamma  2" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["smaple"], "No such command"),
        (["sample"], "MODEL"),
        (["sample", "triangle-nlin", "-n", "many"], "'-n'"),
        (["sample", "triangle-nlin", "-n", "0"], "'-n'"),
        (["sample", "triangle-nlni"], "did you mean 'triangle-nlin'"),
        (["sample", "triangle-nlin", "--do", "x2"], "COLUMN=VALUE"),
        (["sample", "triangle-nlin", "--do", "=3"], "COLUMN=VALUE"),
        (["sample", "triangle-nlin", "--do", "x9=3"], "no column 'x9'"),
        (["sample", "triangle-nlin", "--do", "x2=red"], "x2"),
        (["sample", "triangle-nlin", "--do", "x2+=red"], "'red' is not a number"),
        (["sample", "triangle-nlin", "--do", "x2=1", "--do", "x2=2"], "twice"),
        (["sample", "loan", "--do", "gender=female"], "gender"),
        (["sample", "loan", "--out", "rows.xlsx"], ".parquet"),
        (["sample", "loan", "--out", "no-such-folder/rows.csv"], "no-such-folder"),
        (["sample", "loan", "--out", "."], "unknown kind of file"),
        (["counterfactual", "loan", "missing.csv", "--do", "age=1"], "missing.csv: no such file"),
        (["counterfactual", "loan", "missing.csv"], "--do"),
        (["graph", "show", "missing.txt"], "missing.txt: no such file"),
        (["graph", "show", "chain-lin", "--out", "picture.bmp"], ".svg"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_arguments(arguments, says, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert says in bad(capsys, *arguments)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "empty file"),
        (b"x1,x2\n1,2\n", "no column 'x3'"),
        (b"x1,x2,x3\n", "no rows"),
        (b"x1,x2,x3\n1,2,\n", "missing values in 'x3'"),
        (b"x1,x2,x3\n1,two,3\n", "'two'"),
        (b"x1,x2,x3\n1,2,3\n1,2,3,4,5\n", "line 3"),
        (b"x1,x2,\xff\n1,2,3\n", "UTF-8"),
    ],
)
def test_bad_tables(content, says, capsys, tmp_path):
    path = tmp_path / "factual.csv"
    path.write_bytes(content)
    assert says in bad(capsys, "counterfactual", "triangle-nlin", path, "--do", "x2=1")


def test_a_file_that_is_not_parquet(capsys, tmp_path):
    path = tmp_path / "factual.parquet"
    path.write_bytes(b"x1,x2,x3\n1,2,3\n")
    assert "not a .parquet file" in bad(
        capsys, "counterfactual", "triangle-nlin", path, "--do", "x2=1"
    )


def test_an_existing_file_is_kept(capsys, tmp_path):
    out = tmp_path / "rows.csv"
    out.write_text("precious")
    assert "--force" in bad(capsys, "sample", "loan", "-n", "3", "--out", out)
    assert out.read_text() == "precious"
    assert run(["sample", "loan", "-n", "3", "--out", str(out), "--force"]) == 0
    assert len(pd.read_csv(out)) == 3


def test_a_failed_write_leaves_nothing(capsys, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", full)
    assert "No space left" in bad(capsys, "sample", "loan", "-n", "3", "--out", tmp_path / "a.csv")
    assert os.listdir(tmp_path) == []


def test_a_cycle_in_a_graph_file(capsys, tmp_path):
    path = tmp_path / "graph.txt"
    path.write_text("a -> b\nb -> c\nc -> a\n")
    assert "cycle" in bad(capsys, "graph", "show", path)


def test_a_warning_is_one_line(monkeypatch, capsys):
    def load(name):
        warnings.warn("far\noutside", VacaWarning, stacklevel=1)
        return vaca.scms.load(name)

    monkeypatch.setattr("vaca.commands.sample.load_model", load)
    assert run(["sample", "triangle-nlin", "-n", "1"]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 2
    assert err == "vaca: warning: far outside\n"


def test_a_bug_is_not_hidden(monkeypatch):
    monkeypatch.setattr("vaca.commands.sample.load_model", lambda name: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run(["sample", "loan"])


def test_library_errors_are_bad_input(monkeypatch, capsys):
    def refuse(name):
        raise VacaError("first line\nsecond line")

    monkeypatch.setattr("vaca.commands.sample.load_model", refuse)
    assert bad(capsys, "sample", "loan") == "vaca: first line second line\n"


def test_interrupted(monkeypatch, capsys):
    def stop(name):
        raise KeyboardInterrupt

    monkeypatch.setattr("vaca.commands.sample.load_model", stop)
    assert run(["sample", "loan"]) == 130
    assert capsys.readouterr().err == "vaca: interrupted\n"


def test_ctrl_c_on_the_real_process(tmp_path):
    out = tmp_path / "rows.csv"
    command = [
        sys.executable,
        "-m",
        "vaca",
        "sample",
        "adult",
        "-n",
        "200000000",
        "--out",
        str(out),
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        for _ in range(600):  # until it is at work; the whole would take many minutes
            if os.listdir(tmp_path):
                break
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert err == "vaca: interrupted\n"
    assert os.listdir(tmp_path) == []


def test_the_installed_script_pipes():
    code = "import sys; from vaca.commands.app import main; main()"
    command = f"{sys.executable} -c '{code}' sample triangle-nlin -n 200000 --seed 1 | head -n 2"
    result = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[0] == "x1,x2,x3"
    assert result.stderr == ""


class Deaf:
    """Something whose end drops the interrupt that comes meanwhile, as finalizers do."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGTERM)


def test_a_signal_that_a_library_dropped_is_heard(monkeypatch, capsys, recwarn):
    from vaca.commands import app

    def ask(*_: object, **__: object) -> None:
        try:
            del_me = Deaf()
            del del_me  # Python prints the interrupt and goes on
        finally:
            for _ in range(1000):
                time.sleep(0.01)

    monkeypatch.setattr(app, "AGAIN", 0.05)
    monkeypatch.setattr(app, "_ended", [])
    monkeypatch.setattr("vaca.model.streaming.sample_chunks", ask)
    monkeypatch.setattr("sys.unraisablehook", lambda _: None)
    before = {k: signal.getsignal(k) for k in (signal.SIGTERM, signal.SIGALRM)}
    try:
        signal.signal(signal.SIGTERM, app._end)
        assert app.run(["sample", "triangle-lin", "-n", "3"]) == 143
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert capsys.readouterr().err == "vaca: ended by a signal\n"


def test_a_clean_up_is_not_disturbed_by_a_second_asking(monkeypatch, capsys):
    from vaca.commands import app

    done = []

    def ask(*_: object, **__: object) -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            for _ in range(30):
                time.sleep(0.01)
            done.append(True)

    monkeypatch.setattr(app, "AGAIN", 0.02)
    monkeypatch.setattr(app, "_ended", [])
    monkeypatch.setattr("vaca.model.streaming.sample_chunks", ask)
    before = {k: signal.getsignal(k) for k in (signal.SIGTERM, signal.SIGALRM)}
    try:
        signal.signal(signal.SIGTERM, app._end)
        assert app.run(["sample", "triangle-lin", "-n", "3"]) == 143
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert done == [True]


def test_advice_for_python_is_given_as_an_option(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = pd.DataFrame({"a": [None, 1.5] * 20, "b": [2.5, None] * 20})
    rows.to_csv("data.csv", index=False)
    Path("graph.txt").write_text("a -> b")
    assert run(["fit", "data.csv", "--graph", "graph.txt", "--missing", "drop", "--out", "m"]) == 2
    said = capsys.readouterr().err
    assert "fit with --missing model" in said
    assert "missing='model'" not in said


def test_an_interrupt_while_a_class_is_being_made_is_one_too(monkeypatch, capsys):
    class Field:
        def __set_name__(self, owner, name):
            raise KeyboardInterrupt  # Python 3.11 makes a RuntimeError of it

    monkeypatch.setattr(vaca.scms, "names", lambda: type("Late", (), {"field": Field()}))
    assert run(["scms"]) == 130
    assert capsys.readouterr().err == "vaca: interrupted\n"


def test_a_folder_that_is_gone_is_one_line(tmp_path):
    code = (
        "import os, sys; os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone'); "
        "from vaca.commands.app import main; main(['fit', 'data.csv', '--graph', 'graph.txt'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "is gone" in done.stderr
