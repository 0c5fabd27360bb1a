"""`vaca fit` on tables as they come: gaps, weights, identifiers, and the words at its end."""

import numpy as np
import pandas as pd
import pytest

import vaca
from vaca.commands.app import run
from vaca.commands.fit_words import how_it_ended, next_commands
from vaca.table.words import shown_number


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A table with gaps, an identifier, a copy of the treatment and weights, and its graph."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    n = 150
    age = rng.normal(40, 10, n)
    any_ = (rng.random(n) < 1 / (1 + np.exp(-(age - 40) / 10))).astype(float)
    frame = pd.DataFrame(
        {
            "person": 100 + np.cumsum(rng.integers(1, 4, n)),
            "k = 1": age,
            "hours": rng.integers(20, 60, n) + 0.1 * age,
            "any": any_,
            "copy": np.where(any_ == 1, "yes", "no"),
            "pay": 1000 + 20 * age + 200 * any_ + rng.normal(0, 50, n),
            "weight": rng.integers(1, 4, n),
        }
    )
    frame.loc[:19, "any"] = np.nan
    frame.loc[40:44, "k = 1"] = np.nan
    frame.to_csv("data.csv", index=False)
    with open("graph.txt", "w") as file:
        file.write("{k = 1, hours} -> any -> pay\n{k = 1, hours} -> pay\n")
    return frame


FIT = ["fit", "data.csv", "--graph", "graph.txt", "--out", "model", "--refits", "2"]


def test_gaps_are_refused_with_advice_for_the_command_line(table, capsys):
    assert run(FIT) == 2
    said = capsys.readouterr().err
    assert "25 of 150 rows have a missing value, in k = 1 (5), any (20)" in said
    assert "--missing drop" in said
    assert "--missing model" in said
    assert "dropna" not in said


def test_from_gaps_to_an_answer_without_python(table, capsys):
    assert run([*FIT, "--missing", "model", "--weights", "weight"]) == 0
    said = capsys.readouterr().out
    assert "0, 1" in said
    assert "Not in the graph, so left out: person, copy." in said
    assert "--on pay --do any=1 --against any=0" in said
    assert said.count("--do") == 3  # one for each command that takes it
    model = vaca.load("model")
    assert isinstance(model, vaca.Composite)
    assert len(model.refits_) == 2
    assert model.weights_ is not None
    assert run(["effect", "model", "--on", "pay", "--do", "any=1", "--against", "any=0"]) == 0
    assert run(["effect", "model", "--on", "hours", "--do", "any=1"]) == 0
    said = capsys.readouterr().out
    assert "none: no arrow leads from any to hours" in said
    assert "e+" not in said
    assert run(["counterfactual", "model", "data.csv", "--do", "any=1", "--out", "cf.csv"]) == 0
    assert pd.read_csv("cf.csv")["pay"].notna().all()


def test_dropped_rows_are_counted_and_described(table, capsys):
    assert run([*FIT, "--missing", "drop"]) == 0
    assert "of 135 rows" in capsys.readouterr().err


def test_identifiers_and_copies_of_the_treatment_are_warned_of(table, capsys):
    with open("graph.txt", "w") as file:
        file.write("{person, copy} -> any -> pay\n{person, copy} -> pay\n")
    assert run([*FIT, "--missing", "drop"]) == 0
    said = capsys.readouterr()
    assert "person: all its values are different: an identifier?" in said.err
    assert "copy (nearly) tells any in every row" in said.out


def test_wrong_choices_name_the_right_ones(table, capsys):
    assert run([*FIT, "--missing", "fill"]) == 2
    assert "--missing fill: unknown" in capsys.readouterr().err
    assert run([*FIT, "--missing", "drop", "--weights", "wait"]) == 2
    assert "--weights wait: there is no such column" in capsys.readouterr().err
    assert run([*FIT, "--missing", "drop", "--weights", "pay"]) == 2
    assert "--weights pay: the graph names it" in capsys.readouterr().err
    assert run([*FIT, "--missing", "drop", "--refits", "1"]) == 2
    assert "one refit has no spread" in capsys.readouterr().err


def test_a_config_sets_options_and_settings_and_is_checked_once(table, capsys):
    with open("fit.toml", "w") as file:
        file.write('missing = "drop"\nrefits = 0\n[settings]\nfamilies = 3\nmax_rows = "many"\n')
    words = ["fit", "data.csv", "--graph", "graph.txt", "--out", "model", "--config", "fit.toml"]
    assert run(words) == 2
    assert "max_rows of Composite is of type int" in capsys.readouterr().err
    with open("fit.toml", "w") as file:
        file.write("refits = -1\n")
    assert run(words) == 2
    assert "refits is a whole number of at least 0; got -1" in capsys.readouterr().err
    with open("fit.toml", "w") as file:
        file.write("settings = 1\n")
    assert run(words) == 2
    assert "write [settings] and keys below it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("stopped", "words"),
    [
        ("time", "stopped by the time budget of 30 s"),
        ("patience", "converged"),
        ("epochs", "converged"),
    ],
)
def test_how_training_ended_is_said(stopped, words):
    history = pd.DataFrame({"epoch": [1, 2], "seconds": [1.0, 2.5]})
    history.attrs["stopped"] = stopped
    assert words in how_it_ended(history, 30.0)
    assert "2 epochs in 2 s" in how_it_ended(history, 30.0)
    assert how_it_ended(pd.DataFrame(), None) == ""


def test_the_training_of_a_network_says_why_it_stopped():
    rng = np.random.default_rng(0)
    df = pd.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60)})
    flow = vaca.CausalFlow(vaca.CausalGraph.from_edges([("a", "b")]), steps=4, polish_steps=4).fit(
        df
    )
    assert flow.history_.attrs["stopped"] in ("epochs", "patience")


def test_next_commands_of_a_graph_that_is_one_block(tmp_path):
    graph = vaca.CausalGraph.from_edges([], nodes=[("a", "b")])
    df = pd.DataFrame({"a": np.arange(30.0), "b": np.arange(30.0) ** 2})
    model = vaca.Composite(graph).fit(df)
    lines = next_commands(model, tmp_path / "m", tmp_path / "d.csv")
    assert [line.split()[1] for line in lines] == ["check", "report"]


def test_numbers_are_written_as_people_read_them():
    shown = {1234567.8: "1,234,568", 1547.3: "1,547", 35.24: "35.24", 0.0: "0", 1e-7: "1e-07"}
    assert {value: shown_number(value) for value in shown} == shown
    assert shown_number(float("nan")) == "nan"
    assert shown_number(129.7, 2) == "130"
