"""The bridge to DoWhy, against the real package where it is installed."""

from __future__ import annotations

import importlib.util
import sys

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import vaca
from vaca.interop import dowhy as bridge

needs_dowhy = pytest.mark.skipif(
    importlib.util.find_spec("dowhy") is None,
    reason="DoWhy is not installed: pip install 'vaca[dowhy]'",
)
# Its own use of pandas and networkx warns.
quiet = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    n = 400
    group = rng.integers(0, 3, n)
    x = rng.normal(size=n) + group
    y = 2 * x + 0.3 * rng.normal(size=n)
    frame = pd.DataFrame({"group": np.array(list("abc"))[group], "x": x, "y": y})
    graph = vaca.CausalGraph.from_edges([("group", "x"), ("group", "y"), ("x", "y")])
    return vaca.AdditiveNoise(graph).fit(frame), frame


def test_graphs_go_there_and_back():
    graph = vaca.CausalGraph.from_edges([("b", "a"), ("a", "c")], nodes=["lone"])
    assert set(bridge.from_dowhy(bridge.to_dowhy(graph)).edges) == set(graph.edges)
    assert "lone" in bridge.from_dowhy(bridge.to_dowhy(graph))


def test_a_hidden_cause_is_refused():
    hidden = nx.DiGraph([("u", "x"), ("u", "y")])
    hidden.nodes["u"]["observed"] = "no"
    with pytest.raises(vaca.VacaError, match="'u' is unobserved"):
        bridge.from_dowhy(hidden)


def test_what_has_no_graph_is_refused():
    with pytest.raises(vaca.VacaError, match="no graph was found in a int"):
        bridge.from_dowhy(3)


def test_a_node_of_several_columns_is_refused():
    graph = vaca.CausalGraph({"body": []}, {"body": ["height", "weight"]})
    with pytest.raises(vaca.VacaError, match="'body' is made of the columns"):
        bridge.to_dowhy(graph)


def test_without_dowhy_the_error_says_how_to_get_it(fitted, monkeypatch):
    monkeypatch.setitem(sys.modules, "dowhy", None)
    with pytest.raises(vaca.VacaError, match=r"pip install 'vaca\[dowhy\]'"):
        bridge.as_gcm(fitted[0])


def test_an_engine_without_column_mechanisms_is_refused():
    with pytest.raises(vaca.VacaError, match="no mechanism per column"):
        bridge.as_gcm(vaca.scms.load("triangle-lin"))


@needs_dowhy
@quiet
def test_dowhy_draws_from_our_mechanisms(fitted):
    from dowhy import gcm

    model, frame = fitted
    scm = bridge.as_gcm(model)
    drawn = gcm.draw_samples(scm, 500)
    assert set(drawn["group"]) <= set("abc")
    assert abs(drawn["y"].mean() - frame["y"].mean()) < 0.6
    done = gcm.interventional_samples(scm, {"x": lambda x: 1.0}, num_samples_to_draw=500)
    assert (done["x"] == 1.0).all()
    assert done["y"].astype(float).mean() == pytest.approx(
        model.sample(500, do={"x": 1.0}, seed=0)["y"].mean(), abs=0.15
    )


@needs_dowhy
@quiet
def test_dowhy_counterfactuals_are_ours(fitted):
    from dowhy import gcm

    model, frame = fitted
    rows = frame.head(20)
    theirs = gcm.counterfactual_samples(
        bridge.as_gcm(model), {"x": lambda x: 0.5}, observed_data=rows
    )
    ours = model.counterfactual(rows, do={"x": 0.5})
    np.testing.assert_allclose(theirs["y"].astype(float), ours["y"], rtol=1e-6)


@needs_dowhy
@quiet
def test_dowhy_evaluates_our_model(fitted):
    model, frame = fitted
    result = bridge.evaluate(
        model, frame, compare_mechanism_baselines=False, evaluate_causal_structure=False
    )
    assert result is not None
    assert "y" in result.mechanism_performances


@needs_dowhy
@quiet
def test_the_graph_of_a_dowhy_model_is_found(fitted):
    from dowhy import CausalModel, gcm

    _, frame = fitted
    graph = nx.DiGraph([("x", "y")])
    assert bridge.from_dowhy(gcm.StructuralCausalModel(graph)).edges == (("x", "y"),)
    numbers = frame[["x", "y"]]
    model = CausalModel(numbers, treatment="x", outcome="y", graph=graph)
    assert ("x", "y") in bridge.from_dowhy(model).edges
