"""CAREFL: the paper's sizes, a triangular flow, interventions that hold."""

from __future__ import annotations

import functools
import importlib

import numpy as np
import pandas as pd
import pytest
import torch

import vaca
from tests.engines.test_causal_flow import mixed_table
from vaca.engines.carefl import CAREFL
from vaca.engines.paper_settings import CAREFL_SETTINGS
from vaca.errors import VacaError


@pytest.fixture(scope="module")
def mixed() -> tuple[CAREFL, pd.DataFrame]:
    frame, graph = mixed_table(300)
    flow = CAREFL(graph, {"visits": "count"}, flows=2, width=8, epochs=8)
    return flow.fit(frame, progress=False), frame


def test_every_kind_of_column_is_simulated_validly(mixed):
    flow, frame = mixed
    drawn = flow.sample(200, seed=1)
    assert (drawn.dtypes == frame.dtypes).all()
    assert set(drawn["race"]) <= set("abc")
    assert (drawn["visits"] >= 0).all()
    answer = flow.counterfactual(frame, do={"age": 30.0}, draws=2, seed=0)
    flow.schema_.encode(answer)


@pytest.mark.parametrize("seed", [None, 4])
def test_without_an_intervention_abduction_gives_the_rows_back(mixed, seed):
    flow, frame = mixed
    x = flow.schema_.encode(frame)
    rng = None if seed is None else np.random.default_rng(seed)
    u = flow.abduct(x, rng)
    back = flow.simulate(u, {})
    bare = flow.simulate({k: v for k, v in u.items() if not k.startswith("value/")}, {})
    for column, values in x.items():
        assert np.array_equal(back[column], values), column
        if flow.schema_[column].discrete:
            assert (bare[column] == values).mean() > 0.99
        else:
            np.testing.assert_allclose(bare[column], values, rtol=1e-7, atol=1e-7 * values.std())


def test_an_intervention_holds_and_moves_descendants_only(mixed):
    flow, _ = mixed
    u = flow.noise(150, np.random.default_rng(0))
    plain = flow.simulate(u, {})
    done = flow.simulate(u, {"visits": np.full(150, 3.0)})
    assert (done["visits"] == 3.0).all()
    for column in ("sex", "race", "age", "grade"):
        assert np.array_equal(plain[column], done[column]), column
    assert (done["income"] != plain["income"]).mean() > 0.5


def test_the_factual_value_as_an_intervention_changes_nothing(mixed):
    flow, frame = mixed
    answer = flow.counterfactual(frame, do={"grade": frame["grade"], "visits": frame["visits"]})
    pd.testing.assert_frame_equal(pd.DataFrame(answer), frame, check_dtype=False)


def test_an_intervention_keeps_the_noise_of_the_others():
    """The node takes its value; later columns are those that their own noise leads to."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(100, 3)).cumsum(1), columns=list("abc"))
    graph = vaca.CausalGraph.from_edges([("a", "b"), ("b", "c")])
    flow = CAREFL(graph, flows=3, width=8, epochs=10).fit(frame, progress=False)
    u = flow.noise(50, np.random.default_rng(1))
    answer = flow.simulate(u, {"b": np.full(50, 0.7)})
    again = flow.abduct(answer)
    for column in ("a", "c"):
        np.testing.assert_allclose(again[f"noise/{column}"], u[f"noise/{column}"], atol=1e-7)
    assert (answer["b"] == 0.7).all()


def test_a_saved_flow_answers_the_same(mixed, tmp_path):
    flow, _ = mixed
    flow.save(tmp_path / "flow")
    again = vaca.load(tmp_path / "flow")
    pd.testing.assert_frame_equal(flow.sample(50, seed=3), again.sample(50, seed=3))


def test_the_flow_is_triangular_in_the_ordering(mixed):
    flow, _ = mixed
    d = len(flow._names)
    x = torch.randn(d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    def forward(row):
        z = row.unsqueeze(0)
        for layer in flow._layers:
            z = layer.push(z)[0]
        return z[0]

    jacobian = torch.autograd.functional.jacobian(forward, x)
    assert (jacobian.triu(1) == 0).all()
    assert (jacobian.diagonal() > 0).all()


def test_the_papers_configurations():
    assert set(CAREFL_SETTINGS) == set(vaca.scms.names())
    model = CAREFL.paper("mgraph-nadd", seed=3)
    assert (model.flows, model.width, model.seed) == (5, 96, 3)
    with pytest.raises(vaca.VacaError, match="no settings for 'triangel-lin'"):
        CAREFL.paper("triangel-lin")


@pytest.mark.parametrize(
    ("name", "published"), [("chain-lin", 828), ("collider-lin", 6420), ("mgraph-lin", 18200)]
)
def test_parameter_counts_are_the_published_ones(name, published):
    model = CAREFL.paper(name)
    layers = model._build(torch.Generator().manual_seed(0))
    d = len(model._names)
    used = 0
    for layer in layers:
        spline = 3 * model.bins - 1
        # The first column of the ordering has no inputs: its network is a constant.
        used += spline
        for j in range(1, d):
            used += int((layer.take[j] < d).sum()) * model.width + layer.b0[j].numel()
            used += layer.spline_w[j].numel() + layer.spline_b[j].numel()
    assert used == published


def test_a_known_linear_mechanism_is_learned():
    rng = np.random.default_rng(0)
    x = rng.normal(size=1200)
    frame = pd.DataFrame({"x": x, "y": 2 * x + 0.5 * rng.normal(size=1200)})
    flow = CAREFL(vaca.CausalGraph.from_edges([("x", "y")]), flows=2, width=16, epochs=60)
    flow.fit(frame, progress=False)
    effect = flow.effect("y", treatment={"x": 1.0}, control={"x": 0.0}).value
    assert effect == pytest.approx(2.0, abs=0.3)


def test_a_checkpoint_of_another_fit_is_refused(tmp_path, monkeypatch):
    """It goes on from its own rows and seed, and from no stranger's."""
    module = importlib.import_module("vaca.engines.carefl")
    often = functools.partial(module.TrainConfig, checkpoint_every=0.0)
    real, calls = module._log_prob, []

    def interrupted(layers, z):
        calls.append(1)
        if len(calls) == 7:
            raise KeyboardInterrupt
        return real(layers, z)

    monkeypatch.setattr(module, "TrainConfig", often)
    monkeypatch.setattr(module, "_log_prob", interrupted)
    graph = vaca.CausalGraph.from_edges([("x", "y")])
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["x", "y"])
    make = functools.partial(CAREFL, graph, flows=1, width=4, epochs=6)
    with pytest.raises(KeyboardInterrupt):
        make().fit(frame, progress=False, checkpoint=tmp_path / "c")
    assert (tmp_path / "c").exists()
    for model, rows in ((make(seed=1), frame), (make(), frame.iloc[::-1] ** 3)):
        with pytest.raises(VacaError, match="belongs to another fit"):
            model.fit(rows, progress=False, checkpoint=tmp_path / "c")
    resumed = make().fit(frame, progress=False, checkpoint=tmp_path / "c")
    again = make().fit(frame, progress=False)
    assert resumed.sample(5, seed=0).equals(again.sample(5, seed=0))
