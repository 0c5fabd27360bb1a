"""`vaca init`: what it proposes for tables as they come."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import vaca
from vaca.commands.app import run
from vaca.table.roles import guess_roles, likely_question
from vaca.table.suspects import near_copies, why_identifier


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    n = 60
    frame = pd.DataFrame(
        {
            "seqn": 1000 + np.cumsum(rng.integers(1, 9, n)),
            "age": rng.integers(20, 70, n),
            "k = 1": rng.normal(size=n),
            "a, b -> c": rng.normal(size=n),
            "any": rng.integers(0, 2, n).astype(float),
            "visited": [f"2020-01-{1 + i % 28:02d}" for i in range(n)],
            "same": 3,
            "weight": rng.normal(70, 9, n),
        }
    )
    frame.loc[:9, "any"] = np.nan
    frame.loc[5:7, "weight"] = np.nan
    frame.to_csv("data.csv", index=False)
    return frame


def test_the_proposal_is_a_block_a_treatment_and_an_outcome(table, capsys):
    assert run(["init", "data.csv"]) == 0
    said = capsys.readouterr().out
    graph, schema = vaca.CausalGraph.read("graph.txt"), Path("schema.toml").read_text()
    assert graph.columns("covariates") == ("age", "k = 1", "a, b -> c", "visited")
    assert graph.parents("weight") == ("any", "covariates") or set(graph.parents("weight")) == {
        "any",
        "covariates",
    }
    assert "seqn: left out, all its values are different: an identifier?" in said
    assert "Dates, counted in days: visited." in said
    assert "# observed: 2020-01-01 to 2020-01-28 (dates, counted in days)" in schema
    assert "same: left out, it is constant" in said
    assert "Values are missing in 2 column(s): any (10), weight (3);" in said
    assert "10 of 60 rows have a gap" in said
    assert "--missing model" in said
    assert "Guessed: treatment any, outcome weight" in said


def test_roles_can_be_said(table, capsys):
    assert run(["init", "data.csv", "--treatment", "age", "--outcome", "k = 1"]) == 0
    graph = vaca.CausalGraph.read("graph.txt")
    assert set(graph.parents("k = 1")) == {"covariates", "age"}
    assert "Guessed" not in capsys.readouterr().out
    assert run(["init", "data.csv", "--force", "--outcome", "seqn"]) == 2
    assert "--outcome seqn: it cannot be used, all its values" in capsys.readouterr().err


def test_a_zero_one_column_with_gaps_keeps_whole_levels(table, capsys):
    assert run(["init", "data.csv"]) == 0
    from vaca.table.toml import read_schema

    column = read_schema("schema.toml")["any"]
    assert isinstance(column, vaca.Column)
    assert column.levels == (0, 1)
    assert all(column.encode_value("any", text) == 1 for text in ("1", "1.0", 1, 1.0, True))


def test_names_decide_the_roles_before_kinds():
    two, number = vaca.Column("binary", (0, 1)), vaca.Column("continuous")
    columns = {"black": two, "treat": two, "re78": number, "hours": number}
    assert guess_roles(columns) == ("treat", "re78")
    assert guess_roles({"a": number}) == (None, "a")
    graph = vaca.CausalGraph.from_text("{black, hours} -> treat -> re78\n{black, hours} -> re78")
    assert likely_question(graph, columns) == ("treat", "re78")
    assert likely_question(vaca.CausalGraph({"a": []}), columns) == (None, None)


def test_identifiers():
    assert why_identifier(pd.Series([f"p{i}" for i in range(40)]))
    assert why_identifier(pd.Series([7 * i % 41 for i in range(41)], name="person_id"))
    assert not why_identifier(pd.Series([7 * i % 41 for i in range(41)], name="income"))
    assert not why_identifier(pd.Series(np.random.default_rng(0).normal(size=40)))


def test_near_copies_of_a_number():
    x = np.random.default_rng(0).normal(size=300)
    schema = vaca.Schema(dict.fromkeys(["t", "copy", "other"], vaca.Column("continuous")))
    rows = {"t": x, "copy": 3 - 2 * x, "other": np.random.default_rng(1).normal(size=300)}
    assert near_copies(rows, schema, "t") == ["copy"]


def test_a_copy_of_the_treatment_is_said_before_the_fit(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    treat = (np.arange(400) % 40 == 0).astype(float)  # rare, as in LaLonde's table
    sample = np.where(treat == 1, "trial", "survey").astype(object)
    frame = pd.DataFrame({"sample": sample, "age": rng.normal(size=400), "treat": treat})
    frame = frame.assign(hint=np.where(rng.random(400) < 0.5, treat, 0.0), y=rng.normal(size=400))
    frame.loc[3:9, "treat"] = np.nan
    frame.to_csv("data.csv", index=False)
    assert run(["init", "data.csv"]) == 0
    said = capsys.readouterr().out
    assert "Warning: sample (nearly) tells treat in every row: a copy of it" in said
    assert "# sample: a copy of treat? Then delete it above" in Path("graph.txt").read_text()


def test_large_numbers_are_shown_in_full():
    assert vaca.Column("continuous").shown(1292650.4) == "1,292,650"
    assert vaca.Column("continuous").shown(35040.14) == "35,040.1"
