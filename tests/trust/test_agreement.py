"""Other engines asked the same question."""

import numpy as np
import pandas as pd
import pytest

import vaca
from vaca.errors import VacaError
from vaca.trust.agreement import _needed, engines_words

pytestmark = pytest.mark.usefixtures("without_trees")


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    df = pd.DataFrame({"x": x, "y": 2 * x + rng.normal(size=200)})
    graph = vaca.CausalGraph.from_edges([("x", "y")])
    return vaca.AdditiveNoise(graph).fit(df, refits=4)


def test_an_effect_holds_the_engines_answers(model):
    effect = model.effect("y", {"x": 1.0}, {"x": 0.0}, engines=["Composite"])
    assert list(effect.engines.index) == ["AdditiveNoise", "Composite"]
    assert effect.engines["effect"].to_numpy() == pytest.approx(2, abs=0.4)
    assert effect.engines.loc["AdditiveNoise", "apart"] == 0
    assert "engines give" in engines_words(effect.engines)
    assert model.effect("y", {"x": 1.0}).engines is None


def test_engines_learn_only_what_decides_the_answer():
    rng = np.random.default_rng(0)
    names = ["a", "b", "x", "y", "after", "aside"]
    df = pd.DataFrame(rng.normal(size=(120, 6)), columns=names)
    edges = [(("a", "b"), "x"), ("x", "y"), ("y", "after"), ("x", "aside")]
    whole = vaca.AdditiveNoise(vaca.CausalGraph.from_edges(edges)).fit(df)
    graph, schema = _needed(whole.effect("y", {"x": 1.0}, {"x": 0.0}), whole)
    assert graph.nodes == ("{a, b}", "x", "y") and graph.parents("x") == ("{a, b}",)
    assert sorted(schema) == ["a", "b", "x", "y"]
    # Nothing that is left out had a say: the answer is that of a model of all columns.
    alone = vaca.AdditiveNoise(graph).fit(df[list(graph.all_columns)])
    asked = {"treatment": {"x": 1.0}, "control": {"x": 0.0}}
    assert alone.effect("y", **asked).value == pytest.approx(whole.effect("y", **asked).value)
    assert _needed(whole.effect("y", {"x": 1.0}, among="aside > 0"), whole)[0] == whole.graph


def test_words_tell_a_spread_beyond_the_interval():
    table = pd.DataFrame(
        {"effect": [1.0, 1.2], "low": [0.5, np.nan], "high": [1.5, np.nan], "apart": [0.0, 0.4]},
        index=["CausalFlow", "VACA"],
    )
    assert engines_words(table) == "engines give 1 to 1.2: within the interval"
    far = table.assign(effect=[1.0, 9.0], apart=[0.0, 16.0])
    assert "more than the interval says" in engines_words(far)
    assert engines_words(table.head(1)) == "no other engine was asked"


def test_who_cannot_be_asked(model):
    with pytest.raises(VacaError, match="unknown engine"):
        model.effect("y", {"x": 1.0}, {"x": 0.0}, engines=["Flow"])
    scm = vaca.scms.load("triangle-lin")
    with pytest.raises(VacaError, match="it keeps none"):
        scm.effect("x3", {"x2": 1.0}, engines=["AdditiveNoise"])
