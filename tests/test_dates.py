"""Dates: days inside, dates outside."""

import datetime

import numpy as np
import pandas as pd
import pytest

import vaca
from vaca.commands.app import run
from vaca.errors import SchemaError
from vaca.show.plot import plot_pairs

N = 200
DAYS = np.random.default_rng(0).integers(0, 400, N)
WHEN = pd.Timestamp("2020-01-01") + pd.to_timedelta(DAYS, unit="D")
NOISE = np.random.default_rng(1).normal(size=N)
TABLE = pd.DataFrame({"when": WHEN, "y": 0.01 * DAYS + 0.1 * NOISE})
GRAPH = vaca.CausalGraph.from_edges([("when", "y")])


@pytest.fixture(scope="module")
def model() -> vaca.Composite:
    return vaca.Composite(GRAPH, families=[]).fit(TABLE)


def test_dates_are_numbers_inside_and_dates_outside(model):
    assert model.schema_["when"].kind == "continuous"
    assert model.schema_.table().loc["when", "values"] == "2020-01-02 to 2021-02-02"
    drawn = model.sample(50)["when"]
    assert drawn.dtype.kind == "M"
    assert (drawn == drawn.dt.normalize()).all()
    back = model.counterfactual(TABLE.head(3), do={})
    assert (back["when"] == TABLE["when"].head(3)).all()


@pytest.mark.parametrize(
    "value", ["2020-04-10", pd.Timestamp("2020-04-10"), datetime.date(2020, 4, 10), 18362]
)
def test_a_date_can_be_set_in_any_form(model, value):
    assert (model.sample(2, do={"when": value})["when"] == pd.Timestamp("2020-04-10")).all()


def test_effects_of_dates(model):
    gain = model.effect("y", {"when": "2020-07-19"}, {"when": "2020-04-10"}).value
    assert abs(gain - 1.0) < 0.1
    later = model.counterfactual(TABLE.head(2), do={"when": vaca.Shift(30)})
    assert (later["when"] - TABLE["when"].head(2) == pd.Timedelta(days=30)).all()


@pytest.mark.parametrize("value", ["soon", "2020-13-01", None, "99999999"])
def test_what_is_no_date_is_refused(model, value):
    with pytest.raises(vaca.VacaError, match="'when'"):
        model.sample(2, do={"when": value})


def test_rows_without_dates_name_the_row(model):
    with pytest.raises(SchemaError, match="row 1 holds 'soon'.*a date such as 2020-01-31"):
        model.counterfactual({"when": ["2020-01-01", "soon"], "y": [0.0, 1.0]}, do={"y": 1})


def test_text_times_and_gaps():
    text = TABLE.assign(when=WHEN.strftime("%Y-%m-%d 09:30"))
    text.loc[3:20, "when"] = None
    model = vaca.Composite(GRAPH, families=[], missing="model").fit(text)
    back = model.counterfactual(text.iloc[30:33], do={})["when"]
    assert back.tolist() == text["when"].iloc[30:33].tolist()
    assert model.sample(3)["when"].dtype.kind == "M"


@pytest.mark.usefixtures("brief_second_opinions", "without_trees", "quick_checks")
def test_dates_on_the_command_line_and_in_pictures(model, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    TABLE.to_csv("data.csv", index=False)
    model.save("model")
    done, against = ["--do", "when=2020-07-19"], ["--against", "when=2020-04-10"]
    assert run(["effect", "model", "--on", "y", *done, *against]) == 0
    assert run(["counterfactual", "model", "data.csv", *done, "--out", "cf.csv"]) == 0
    assert pd.read_csv("cf.csv")["when"].unique().tolist() == ["2020-07-19"]
    assert run(["report", "model", "--data", "data.csv", "--out", "report.html"]) == 0
    capsys.readouterr()
    plot_pairs(TABLE, model.sample(50))
