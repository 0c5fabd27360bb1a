"""`vaca effect` with second opinions, and `vaca counterfactual --bounds`."""

import re

import numpy as np
import pandas as pd
import pytest

import vaca
from vaca.commands.app import run

pytestmark = pytest.mark.usefixtures("without_trees")

GRAPH = vaca.CausalGraph.from_parents(
    {"age": [], "course": ["age"], "pay": ["age", "course"], "happy": ["pay"]}
)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    rng = np.random.default_rng(0)
    age = rng.normal(40, 10, 400)
    course = (rng.random(400) < 1 / (1 + np.exp((age - 40) / 10))).astype(int)
    pay = 2000 + 1500 * course + 20 * age + rng.normal(0, 300, 400)
    happy = np.where(rng.random(400) < 1 / (1 + np.exp(-(pay - 3000) / 500)), "yes", "no")
    df = pd.DataFrame({"age": age, "course": course, "pay": pay, "happy": happy})
    folder = tmp_path_factory.mktemp("trust")
    vaca.AdditiveNoise(GRAPH).fit(df, refits=4).save(folder / "model")
    df.head(20).to_csv(folder / "people.csv", index=False)
    return folder


def test_the_answer_the_cross_check_and_hidden_causes(saved, capsys, tmp_path):
    question = ["effect", str(saved / "model"), "--on", "pay", "--do", "course=1",
                "--against", "course=0"]  # fmt: skip
    picture = tmp_path / "hidden.png"
    assert run([*question, "--hidden", "--plot", str(picture)]) == 0
    text = capsys.readouterr().out
    assert re.search(r"^  1,[3-7]\d\d \(standard error", text, re.MULTILINE)  # as people write it
    assert re.search(r"cross-check \(doubly robust, adjusted for age\): 1,[3-7]\d\d \(", text)
    assert "A hidden cause would have to explain" in text
    assert picture.stat().st_size > 1000
    table = tmp_path / "effect.csv"
    assert run([*question, "--no-cross-check"]) == 0
    assert "cross-check" not in capsys.readouterr().out
    assert run([*question, "--out", str(table)]) == 0
    row = pd.read_csv(table).iloc[0]
    assert row["check_low"] < row["cross_check"] < row["check_high"]


def test_what_cannot_be_checked_is_said(saved, capsys):
    rows = str(saved / "people.csv")
    question = ["effect", str(saved / "model"), "--on", "pay", "--do", "course=1"]
    assert run([*question, "--given", rows]) == 0
    assert "no cross-check: the answer is about given rows" in capsys.readouterr().out
    assert run(["effect", "triangle-lin", "--on", "x3", "--do", "x2=1"]) == 0
    assert "cross-check" not in capsys.readouterr().out


def test_other_engines_are_asked(saved, capsys):
    question = ["effect", str(saved / "model"), "--on", "pay", "--do", "course=1",
                "--against", "course=0", "--no-cross-check"]  # fmt: skip
    assert run([*question, "--engines", "composite"]) == 0
    out = capsys.readouterr()
    assert re.search(r"engines give 1,[3-7]\d\d to 1,[3-7]\d\d", out.out)
    assert "Composite" in out.out and "AdditiveNoise" in out.out
    assert "fitting Composite" in out.err
    assert run([*question, "--engines", "flo"]) == 2
    assert "unknown engine 'flo'" in capsys.readouterr().err


def test_bounds_of_rows(saved, tmp_path, capsys):
    out = tmp_path / "bounds.csv"
    words = ["counterfactual", str(saved / "model"), str(saved / "people.csv"), "--do", "course=1"]
    assert run([*words, "--bounds", "--out", str(out)]) == 0
    table = pd.read_csv(out)
    assert {"happy=yes low", "happy=yes high"} <= set(table.columns)
    assert len(table) == 20
    assert (table["happy=yes low"] <= table["happy=yes high"]).all()
    assert run([*words, "--bounds", "--draws", "5"]) == 2
    assert "--bounds is one line per row" in capsys.readouterr().err


@pytest.fixture(scope="module")
def torn(tmp_path_factory):
    """A model of a table in which nobody old is treated."""
    rng = np.random.default_rng(0)
    age = rng.normal(size=600)
    treat = ((rng.random(600) < 0.5) & (age < 0.3)).astype(int)
    df = pd.DataFrame({"age": age, "educ": rng.normal(size=600), "treat": treat})
    df["pay"] = age + treat + rng.normal(size=600)
    graph = vaca.CausalGraph.from_text("people: {age, educ}\npeople -> treat -> pay\npeople -> pay")
    folder = tmp_path_factory.mktemp("torn") / "model"
    vaca.AdditiveNoise(graph).fit(df, refits=2).save(folder)
    return str(folder)


def test_what_leaves_the_data_is_said_once_beside_the_numbers(torn, capsys):
    question = ["--on", "pay", "--do", "treat=1", "--against", "treat=0", "--no-cross-check"]
    assert run(["effect", torn, *question]) == 0
    said = capsys.readouterr()
    assert said.out.count("of the rows combine 'age' and 'treat'") == 1
    assert "the data hold nobody comparable" in said.out
    assert "combine" not in said.err


def test_a_column_inside_a_block_is_refused_in_plain_words(torn, capsys):
    assert run(["do", torn, "--do", "age=1"]) == 2
    assert "inside a block" in capsys.readouterr().err
    assert run(["do", torn, "--do", "age=0", "--do", "educ=0", "-n", "50"]) == 0
    assert "pay" in capsys.readouterr().out
