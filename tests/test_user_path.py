"""A new user's whole path with the command line, checked against the generating equations."""

import contextlib
import io
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import vaca
from vaca.commands.app import run
from vaca.datasets import loan_applications, loan_applications_scm
from vaca.datasets.loans import DECIMALS, ROWS, SEED

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("user path"),
    pytest.mark.usefixtures("without_trees", "quick_checks"),
]

TABLE_ROWS = 10_000


def type_in(folder: Path, *words: str) -> str:
    """Type a command in a folder; give what it printed.

    In this process: starting one takes longer than most commands. commands/test_app.py types into
    real ones.
    """
    said, before = io.StringIO(), Path.cwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(said):
            code = run(list(words))
    finally:
        os.chdir(before)
    assert code == 0, said.getvalue()
    return said.getvalue()


@pytest.fixture(scope="module")
def scm():
    return loan_applications_scm()


@pytest.fixture(scope="module")
def rows(scm):
    return scm.sample(TABLE_ROWS, seed=11)


@pytest.fixture(scope="module")
def home(tmp_path_factory, scm, rows, quick_checks):
    """The table, what `init` made of it after the user's edits, and the fitted model."""
    folder = tmp_path_factory.mktemp("home")
    rows.to_csv(folder / "data.csv", index=False)
    said = type_in(folder, "init", "data.csv")
    assert "10 columns to use" in said
    proposed = vaca.CausalGraph.read(folder / "graph.txt")
    assert set(proposed.all_columns) == set(rows.columns)
    (folder / "graph.txt").write_text("\n".join(f"{a} -> {b}" for a, b in scm.graph.edges) + "\n")
    schema = (folder / "schema.toml").read_text()
    wrong = (
        '[education]\nkind = "categorical"\nlevels = ["basic", "college", "school", "university"]'
    )
    assert wrong in schema
    right = '[education]\nkind = "ordinal"\nlevels = ["basic", "school", "college", "university"]'
    (folder / "schema.toml").write_text(schema.replace(wrong, right))
    (folder / "fit.toml").write_text("refits = 2\n[settings]\nmax_rows = 5000\n")
    words = "fit data.csv --graph graph.txt --schema schema.toml --out model --config fit.toml"
    (folder / "fit.log").write_text(type_in(folder, *words.split()))
    return folder


def test_fit_says_what_a_user_needs(home):
    said = (home / "fit.log").read_text()
    assert "10 nodes, 20 arrows" in said
    assert "9,000 to learn from, 1,000 held out" in said
    scores = {line.split()[0]: line.split() for line in said.splitlines() if " CRPS " in line}
    # Experience is mostly age; the others have their own noise; roots have no causes.
    explained = {name: float(words[-2]) for name, words in scores.items()}
    assert explained["experience"] > 50
    assert explained["income"] > 20
    assert abs(explained["age"]) < 5
    (joint,) = [line for line in said.splitlines() if "energy distance" in line]
    model, baseline = (float(w.strip(",.")) for w in joint.split() if w[0] == "0")
    assert model < 0.5 * baseline
    assert "vaca do model" in said
    assert max(len(line) for line in said.splitlines()) <= 100


def test_the_next_commands_can_be_typed(home):
    said = (home / "fit.log").read_text()
    lines = [line.strip() for line in said.splitlines() if line.startswith("  vaca ")]
    verbs = [line.split()[1] for line in lines]
    assert verbs == ["do", "counterfactual", "effect", "check", "report"]
    import shlex

    type_in(home, *shlex.split(lines[0])[1:], "-n", "500")


def test_do_agrees_with_the_equations(home, scm):
    out = home / "do.parquet"
    said = type_in(
        home, "do", "model", "--do", "education=university", "-n", "20000", "--out", str(out)
    )
    assert "Unchanged, as no arrow leads there: sex, age, region, children" in said
    drawn = pd.read_parquet(out)
    truth = scm.sample(200_000, {"education": "university"}, seed=3)
    assert (drawn["education"] == "university").all()
    for name in ("experience", "income", "savings", "loan_amount"):
        gap = abs(drawn[name].mean() - truth[name].mean()) / truth[name].std()
        assert gap < 0.06, (name, gap)
    gap = (drawn["approved"] == "yes").mean() - (truth["approved"] == "yes").mean()
    assert abs(gap) < 0.03


def test_counterfactuals_agree_with_the_equations(home, scm, rows):
    out = home / "cf.csv"
    type_in(
        home, "counterfactual", "model", "data.csv", "--do", "education=university", "-o", str(out)
    )
    answer = pd.read_csv(out)
    truth = pd.DataFrame(scm.counterfactual(rows, {"education": "university"}))
    facts = pd.read_csv(home / "data.csv")
    assert len(answer) == TABLE_ROWS
    for name in ("sex", "age", "region", "children"):
        assert answer[name].equals(facts[name]), name
    changed = (facts["education"] != "university").to_numpy()
    for name in ("experience", "income", "savings", "loan_amount"):
        missed = np.abs(answer[name] - truth[name])[changed].mean()
        nothing = np.abs(facts[name] - truth[name])[changed].mean()
        assert missed < 0.25 * nothing, (name, missed, nothing)


def test_effects_agree_with_the_equations(home, scm):
    out = home / "effects.csv"
    words = "effect model --on income --on approved --level yes --do sex=male --against sex=female"
    said = type_in(home, *words.split(), "-n", "20000", "--out", str(out))
    assert said.count("effect on") == 2
    table = pd.read_csv(out).set_index("outcome")
    for name, room in (("income", 60.0), ("approved", 0.02)):
        level = "yes" if name == "approved" else None
        true = scm.effect(name, {"sex": "male"}, {"sex": "female"}, level=level, n=100_000).value
        assert abs(table.loc[name, "effect"] - true) < room, (name, true)
        assert table.loc[name, "low"] < table.loc[name, "effect"] < table.loc[name, "high"]


@pytest.mark.usefixtures("brief_second_opinions")
def test_report_is_one_page_about_held_out_rows(home):
    words = "report model --data data.csv --out report.html --do education=university --on income"
    type_in(home, *words.split())
    page = (home / "report.html").read_text()
    assert "1,000 rows that the model has not seen" in page
    assert "If education had been university for everyone, income would be" in page
    assert "Gumbel" in page
    assert page.count("<img ") >= 7


def test_a_shift_is_flagged_where_it_leaves_the_data(home):
    type_in(home, "counterfactual", "model", "data.csv", "--do", "age+=10", "-o", "older.parquet")
    answer = pd.read_parquet(home / "older.parquet")
    facts = pd.read_csv(home / "data.csv")
    assert (answer["age"] == facts["age"] + 10).all()
    assert (answer["outside_support"] == (facts["age"] + 10 > facts["age"].max())).all()


def test_a_saved_model_answers_in_python_too(home):
    model = vaca.load(home / "model")
    people = pd.read_csv(home / "data.csv").head(50)
    draws = model.counterfactual(people, {"education": "university"}, draws=20, seed=0)
    table = draws.summary()
    assert table["approved", "share"].between(0.05, 1).all()
    assert (table["income", "5%"] <= table["income", "95%"]).all()


# ---------------------------------------------------------------------- the shipped table


def test_the_shipped_table_is_what_the_equations_give(scm):
    data, made = loan_applications().data, scm.sample(ROWS, seed=SEED)
    assert list(data.columns) == list(made.columns)
    for name in data.columns:
        if name in DECIMALS:
            room = 0.5 * 10.0 ** -DECIMALS[name] + 1e-6
            assert np.abs(data[name] - made[name]).max() <= room, name
        else:
            assert (data[name].astype(object) == made[name].astype(object)).all(), name


def test_sex_acts_on_the_decision_only_through_others(scm):
    assert "sex" not in scm.graph.parents("approved")
    assert scm.effect("approved", {"sex": "male"}, {"sex": "female"}, level="yes").value > 0.02
    held = {"income": 3000.0, "savings": 5000.0, "loan_amount": 20000.0}
    effect = scm.effect("approved", {"sex": "male", **held}, {"sex": "female", **held}, level="yes")
    assert effect.value == 0
