"""Interventions that combine causes as the data never do are said to."""

from __future__ import annotations

import hashlib
import json
import warnings

import numpy as np
import pandas as pd
import pytest

import vaca
from vaca.errors import SupportWarning
from vaca.model.regions import Regions
from vaca.model.support import RARER, SHARE, Comparable, Overlap

pytestmark = pytest.mark.usefixtures("without_trees")

GRAPH = vaca.CausalGraph.from_edges([("x1", "x2"), ("x1", "x3"), ("x2", "x3"), ("x3", "x4")])


def table(noise, n=1000):
    rng = np.random.default_rng(0)
    x1 = rng.normal(size=n)
    x2 = x1 + noise * rng.normal(size=n)
    x3 = x1 - x2 + rng.normal(size=n)
    return pd.DataFrame({"x1": x1, "x2": x2, "x3": x3, "x4": x3 + rng.normal(size=n)})


def percent(sentence):
    return float(sentence.split(": ")[1].split(" %")[0])


@pytest.fixture(scope="module")
def model():
    return vaca.AdditiveNoise(GRAPH).fit(table(noise=0.05))


def test_overlap_is_said_where_causes_are_torn_apart(model):
    with pytest.warns(SupportWarning, match=r"combine 'x1' and 'x2', causes of 'x3', as no row"):
        frame = model.sample(500, do={"x2": 0.0}, seed=0)
    (sentence,) = frame.attrs["outside_support"]
    assert 50 < percent(sentence) < 95
    with pytest.warns(SupportWarning):
        answer = model.counterfactual(table(0.05).head(100), do={"x2": vaca.Shift(1.0)})
    assert answer.outside_support
    with pytest.warns(SupportWarning):
        assert "causes of 'x3'" in str(model.effect("x4", {"x2": 0.5}, {"x2": 0.0}, seed=0))


@pytest.mark.parametrize(
    "do", [{}, {"x1": 0.0}, {"x3": 0.0}, {"x4": 1.0}, {"x2": 0, "x3": 0}], ids=str
)
def test_overlap_is_silent_where_nothing_is_torn_apart(model, do):
    with warnings.catch_warnings():
        warnings.simplefilter("error", SupportWarning)
        model.sample(500, do=do, seed=0)


def test_overlap_is_silent_when_the_data_hold_all_combinations():
    loose = vaca.AdditiveNoise(GRAPH).fit(table(noise=3.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error", SupportWarning)
        for value in (-1.0, 0.0, 1.0):
            loose.sample(500, do={"x2": value}, seed=0)


def test_overlap_of_levels():
    graph = vaca.CausalGraph.from_edges([("city", "rent"), ("job", "rent")])
    rng = np.random.default_rng(0)
    city = rng.choice(["a", "b"], 400)
    job = np.where(city == "a", rng.choice(["farmer", "nurse"], 400), "nurse")
    df = pd.DataFrame({"city": city, "job": job, "rent": rng.normal(size=400)})
    model = vaca.AdditiveNoise(graph).fit(df)
    with pytest.warns(SupportWarning, match="combine 'city' and 'job', causes of 'rent'"):
        model.sample(300, do={"job": "farmer"}, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SupportWarning)
        model.sample(300, do={"job": "nurse"}, seed=0)


@pytest.mark.parametrize("n", [10, 40, 100])
def test_overlap_does_not_call_few_rows_a_gap(n):
    rng = np.random.default_rng(1)
    df = pd.DataFrame(rng.normal(size=(n, 4)), columns=["x1", "x2", "x3", "x4"])
    schema = vaca.Schema.infer(df, GRAPH)
    overlap = Overlap.of(schema.encode(df), GRAPH, schema)
    fresh = {c: rng.normal(size=5000) for c in df}
    assert overlap.sentences(fresh, GRAPH, do=["x2"]) == []


def test_overlap_of_the_rows_themselves_is_whole():
    df = table(0.05)
    schema = vaca.Schema.infer(df, GRAPH)
    rows = schema.encode(df)
    overlap = Overlap.of(rows, GRAPH, schema)
    assert overlap.sentences(rows, GRAPH, do=["x2"]) == []
    turned = rows | {"x2": rows["x2"][::-1]}
    share = percent(overlap.sentences(turned, GRAPH, do=["x2"])[0])
    assert share / 100 > 5 * SHARE


def test_overlap_is_saved_with_a_model(model, tmp_path):
    model.save(tmp_path / "m")
    loaded = vaca.load(tmp_path / "m")
    with pytest.warns(SupportWarning):
        own = model.sample(200, do={"x2": 0.0}, seed=0)
    with pytest.warns(SupportWarning):
        again = loaded.sample(200, do={"x2": 0.0}, seed=0)
    assert again.attrs["outside_support"] == own.attrs["outside_support"]


def test_a_model_saved_without_overlap_still_answers(model, tmp_path):
    model.save(tmp_path / "m")
    file = tmp_path / "m" / "model.json"
    about = json.loads(file.read_text())
    del about["overlap"]
    about["format"] = 1  # as it was then: a checksum over the arrays alone
    arrays = (tmp_path / "m" / "arrays.safetensors").read_bytes()
    about["sha256"] = hashlib.sha256(arrays).hexdigest()
    file.write_text(json.dumps(about))
    frame = vaca.load(tmp_path / "m").sample(200, do={"x2": 0.0}, seed=0)
    assert (frame["x2"] == 0.0).all() and "outside_support" not in frame.attrs


def test_overlap_of_an_ensemble():
    ensemble = vaca.Ensemble(GRAPH, engine="AdditiveNoise", members=2, jobs=1).fit(table(0.05, 500))
    with pytest.warns(SupportWarning, match="as no row of the data does"):
        ensemble.sample(200, do={"x2": 0.0}, seed=0)
    with pytest.warns(SupportWarning, match="as no row of the data does"):
        ensemble.effect("x3", {"x2": 0.5}, {"x2": 0.0}, seed=0)


def test_overlap_is_said_of_a_file(model, tmp_path):
    from vaca.model.streaming import stream_counterfactuals

    table(0.05, 3000).to_csv(tmp_path / "rows.csv", index=False)
    out = tmp_path / "out.csv"
    told = stream_counterfactuals(model, tmp_path / "rows.csv", {"x2": 0.0}, out, chunk=1000)
    (sentence,) = told.unseen
    assert "causes of 'x3'" in sentence and 50 < percent(sentence) < 95


def test_a_region_that_only_several_columns_together_tell_is_found():
    rng = np.random.default_rng(3)
    rows = pd.DataFrame(rng.normal(size=(3000, 8)), columns=list("abcdefgh"))
    never = (rows["a"] > 0) & (rows["b"] < 0.3)
    rows["t"] = (rng.random(3000) < 0.4) & ~never
    rows = rows.astype({"t": int})
    rows["y"] = rows["t"] + rng.normal(size=3000)
    graph = vaca.CausalGraph.from_text("{a, b, c, d, e, f, g, h} -> t -> y")
    schema = vaca.Schema.infer(rows, graph)
    x = schema.encode(rows)
    likely = Comparable(x, "t", list("abcdefgh"), schema)
    found = likely.lacking(x, 1)
    assert found[never].mean() > 0.9
    assert found[~never].mean() < 0.05
    likely.regions = None  # a logistic regression alone does not see it
    assert likely.lacking(x, 1)[never].mean() < 0.1


@pytest.mark.parametrize("n", [300, 3000])
def test_chance_leaves_no_region_empty(n):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        design = rng.normal(size=(n, 40))
        level = (rng.random(n) < 0.1).astype(int)
        assert (Regions(design, level, 2).at_most(design, 1) > 0.1 / RARER).all()
