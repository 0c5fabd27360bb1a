"""Names and levels are data: shown as they are or made safe, never obeyed, never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import vaca
from vaca.commands.app import run
from vaca.errors import visible

NAMES = [
    "height [cm]",
    "rate [/min]",
    "[bold red]x[/bold red]",
    "[/]",
    "\\[x]",
    "back\\",
    "$\\frac{a$",
    "$x$ and $y",
    "a\x1b[31mred",
    "\x1b]0;title\x07",
    "bell\x07\x08\x08",
    "\u202etxt.exe",
    "<script>alert(1)</script>",
    "=1+1",
    "{a}",
    "%s%n",
    ":smile:",
    "naïve 日本",
    "a\nb",
    "_under_",
    "#hash",
    "a,b",
    "k = 1",
    "🙂",
]


@pytest.mark.parametrize("text", NAMES)
def test_visible_text_has_no_control_signs(text: str) -> None:
    shown = visible(text)
    assert not any(ord(c) < 32 and c not in "\n\t" for c in shown)
    assert "\u202e" not in shown
    assert visible(shown) == shown


@pytest.fixture(scope="module")
def model() -> vaca.AdditiveNoise:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({name: rng.normal(size=30) for name in NAMES})
    table["level"] = rng.choice(["$\\frac{a$", "\x1b[31m", "[/x]"], 30)
    graph = vaca.CausalGraph.from_edges([("level", name) for name in NAMES])
    return vaca.AdditiveNoise(graph).fit(table)


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("text")
    model.save(place / "model")
    model.sample(20, seed=0).to_csv(place / "rows.csv", index=False)
    model.graph.write(place / "graph.json")
    return place


@pytest.mark.parametrize(
    "command",
    [
        "graph show graph.json",
        "graph show graph.json --out graph.png --force",
        "sample model -n 3 --seed 0",
        "do model --do level=[/x] --seed 0",
        "effect model --on height\\ [cm] --do level=[/x] --seed 0",
        "counterfactual model rows.csv --do level=[/x]",
        "sample model --do nothing[/x]=1",
        "sample [/x]",
    ],
)
@pytest.mark.parametrize("terminal", [False, True])
def test_commands_show_any_name(folder, monkeypatch, capsys, command: str, terminal: bool) -> None:
    import shlex

    monkeypatch.chdir(folder)
    if terminal:
        monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    code = run(shlex.split(command))
    said = capsys.readouterr()
    assert code in (0, 2)
    assert "Traceback" not in said.err
    if terminal or not command.startswith(("sample", "counterfactual")):
        # The colours of the library itself are not in question.
        for sign in ("\x1b[31m", "\x1b]0", "\x07", "\u202e"):
            assert sign not in said.out + said.err


def test_pictures_show_any_name(model, tmp_path) -> None:
    from vaca.show import plot

    rows = model.sample(30, seed=0)
    changed = model.sample(30, do={"level": "[/x]"}, seed=0)
    some = ["$\\frac{a$", "a\x1b[31mred", "level"]
    pictures = [
        plot.plot_graph(model.graph),
        plot.plot_population(rows, changed, columns=some),
        plot.plot_densities(rows, changed, columns=some),
        plot.plot_pairs(rows[some]),
    ]
    for k, picture in enumerate(pictures):
        assert plot.save_picture(picture, tmp_path / f"{k}.png", dpi=30).stat().st_size > 0


ENVIRONMENTS = {
    "ASCII output": ({"PYTHONIOENCODING": "ascii"}, ""),
    "ASCII and strict": ({"PYTHONIOENCODING": "ascii:strict"}, ""),
    "C locale": ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, ""),
    "no stderr": ({}, "2>&-"),
    "no stdout": ({}, ">&-"),
    "no streams": ({}, "<&- >&- 2>&-"),
    "stderr full": ({}, "2>/dev/full"),
}


@pytest.mark.parametrize("case", ENVIRONMENTS)
def test_streams_of_any_kind(folder, tmp_path, case: str) -> None:
    environment, streams = ENVIRONMENTS[case]
    out = tmp_path / "out.csv"
    command = f"{sys.executable} -m vaca sample triangle-lin -n 3 --seed 0 --out {out} {streams}"
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert b"Traceback" not in done.stderr
    assert len(pd.read_csv(out)) == 3


def test_full_disk_on_stdout_is_one_line(folder) -> None:
    done = subprocess.run(
        f"{sys.executable} -m vaca sample triangle-lin -n 3 > /dev/full",
        shell=True,
        cwd=folder,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.decode().strip().splitlines() == ["vaca: No space left on device"]


def test_file_names_in_any_bytes(folder, tmp_path) -> None:
    name = os.fsencode(tmp_path) + b"/caf\xe9\xff.csv"
    command = [sys.executable, "-m", "vaca", "sample", "triangle-lin", "-n", "3", "--out", name]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert b"wrote 3 rows" in done.stderr
    again = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    assert again.returncode == 2
    assert b"exists already" in again.stderr
    assert os.path.getsize(name) > 0
