"""The causal flow: exact abduction, the graph's zeros, valid levels, save and load."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

import vaca
from vaca.engines import training
from vaca.engines.causal_flow import CausalFlow
from vaca.engines.columnwise import normal_between, threshold_noise
from vaca.engines.nn.flow_network import Head, Mechanisms
from vaca.engines.nn.learning import log_prob


def mixed_table(n: int = 400, seed: int = 0) -> tuple[pd.DataFrame, vaca.CausalGraph]:
    """Every kind of column, and a node of two columns."""
    rng = np.random.default_rng(seed)
    sex = rng.integers(0, 2, n)
    race = rng.integers(0, 3, n)
    age = rng.gamma(3, 10, n)
    visits = rng.poisson(1 + sex + 0.05 * age)
    grade = np.clip(np.rint(1 + 0.02 * age + rng.normal(size=n)), 0, 3).astype(int)
    income = 1e5 * (1 + sex) + 1e3 * age + 1e4 * rng.normal(size=n)
    debt = income * 0.2 + 5e3 * rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "sex": np.where(sex == 1, "f", "m"),
            "race": np.array(["a", "b", "c"])[race],
            "age": age,
            "visits": visits + 10 * (rng.random(n) < 0.02).astype(int),
            "grade": pd.Categorical.from_codes(grade, list("DCBA"), ordered=True),
            "income": income,
            "debt": debt,
        }
    )
    graph = vaca.CausalGraph(
        {
            "sex": [],
            "race": [],
            "age": [],
            "visits": ["sex", "age"],
            "grade": ["age", "race"],
            "money": ["sex", "age", "grade", "visits"],
        },
        {"money": ["income", "debt"]},
    )
    return frame, graph


@pytest.fixture(scope="module")
def mixed() -> tuple[CausalFlow, pd.DataFrame]:
    frame, graph = mixed_table()
    kinds = {"visits": "count"}
    return CausalFlow(graph, kinds, steps=60, polish_steps=20).fit(frame, progress=False), frame


def test_every_kind_of_column_is_simulated_validly(mixed):
    flow, frame = mixed
    drawn = flow.sample(300, seed=1)
    assert list(drawn.columns) == list(frame.columns)
    assert (drawn.dtypes == frame.dtypes).all()
    assert set(drawn["sex"]) <= {"f", "m"} and set(drawn["race"]) <= set("abc")
    assert (drawn["visits"] >= 0).all()
    assert np.isfinite(drawn["income"]).all()


@pytest.mark.parametrize("seed", [None, 5])
def test_without_an_intervention_abduction_gives_the_rows_back(mixed, seed):
    flow, frame = mixed
    x = flow.schema_.encode(frame)
    rng = None if seed is None else np.random.default_rng(seed)
    back = flow.simulate(flow.abduct(x, rng), {})
    for column, values in x.items():
        assert np.array_equal(back[column], values), column


@pytest.mark.parametrize("seed", [None, 5])
def test_noise_alone_reproduces_the_rows(mixed, seed):
    """Not thanks to the kept factual values: the mechanisms themselves invert."""
    flow, frame = mixed
    x = flow.schema_.encode(frame)
    rng = None if seed is None else np.random.default_rng(seed)
    u = {k: v for k, v in flow.abduct(x, rng).items() if k.startswith("noise/")}
    back = flow.simulate(u, {})
    for column, values in x.items():
        if flow.schema_[column].discrete or flow.schema_.kind(column) == "count":
            assert np.array_equal(back[column], values), column
        else:
            np.testing.assert_allclose(back[column], values, rtol=1e-8, atol=1e-8 * values.std())


def test_doing_the_factual_value_changes_nothing(mixed):
    flow, frame = mixed
    answer = flow.counterfactual(frame, do={"age": frame["age"], "sex": frame["sex"]})
    pd.testing.assert_frame_equal(pd.DataFrame(answer), frame, check_dtype=False)


def test_a_counterfactual_moves_descendants_only(mixed):
    flow, frame = mixed
    x = flow.schema_.encode(frame)
    answer = flow.simulate(flow.abduct(x), {"age": x["age"] + 5})
    for column in ("sex", "race"):
        assert np.array_equal(answer[column], x[column])
    assert np.array_equal(answer["age"], x["age"] + 5)
    assert (answer["income"] != x["income"]).mean() > 0.9


def test_a_question_that_leaves_splines_out_is_answered_as_by_the_noise(mixed):
    flow, frame = mixed
    x = flow.schema_.encode(frame)
    columns = [c for c in x if flow._left_of([c], x)]
    assert columns  # or the test says nothing
    noise = flow.simulate(flow.abduct(x), {"sex": 1 - x["sex"]})
    told = flow.schema_.encode(
        flow.counterfactual(frame, {"sex": frame["sex"].map({"f": "m", "m": "f"})})
    )
    for column in x:
        np.testing.assert_allclose(told[column], noise[column], rtol=1e-9, atol=1e-9)


def test_sampling_is_bitwise_unmoved_outside_the_descendants(mixed):
    flow, _ = mixed
    u = flow.noise(200, np.random.default_rng(0))
    plain = flow.simulate(u, {})
    done = flow.simulate(u, {"visits": np.full(200, 3.0)})
    for column in ("sex", "race", "age", "grade"):
        assert np.array_equal(plain[column], done[column]), column


def test_a_saved_flow_answers_the_same(mixed, tmp_path):
    flow, frame = mixed
    flow.save(tmp_path / "flow")
    again = vaca.load(tmp_path / "flow")
    pd.testing.assert_frame_equal(flow.sample(50, seed=3), again.sample(50, seed=3))
    pd.testing.assert_series_equal(flow.log_prob(frame), again.log_prob(frame))


def test_same_seed_same_flow():
    frame, graph = mixed_table(100)
    flows = (CausalFlow(graph, steps=5, polish_steps=5, seed=2) for _ in range(2))
    a, b = (flow.fit(frame, progress=False) for flow in flows)
    pd.testing.assert_frame_equal(a.sample(20, seed=0), b.sample(20, seed=0))


def test_log_prob_integrates_to_one_in_the_users_units():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"k": rng.poisson(30, 500), "y": 1000 + 50 * rng.normal(size=500)})
    graph = vaca.CausalGraph.from_edges([("k", "y")])
    flow = CausalFlow(graph, {"k": "count"}, steps=60, polish_steps=10).fit(frame, progress=False)
    counts, values = np.arange(0, 80), np.linspace(600, 1400, 401)
    grid = pd.DataFrame({"k": np.repeat(counts, len(values)), "y": np.tile(values, len(counts))})
    total = np.exp(flow.log_prob(grid)).sum() * (values[1] - values[0])
    assert total == pytest.approx(1.0, abs=2e-3)


def test_a_known_linear_mechanism_is_learned():
    rng = np.random.default_rng(0)
    x = rng.normal(size=1500)
    frame = pd.DataFrame({"x": x, "y": 2 * x + 0.5 * rng.normal(size=1500)})
    flow = CausalFlow(vaca.CausalGraph.from_edges([("x", "y")]), steps=400)
    flow.fit(frame, progress=False)
    effect = flow.effect("y", treatment={"x": 1.0}, control={"x": 0.0}).value
    assert effect == pytest.approx(2.0, abs=0.2)
    moved = flow.counterfactual(frame.head(50), do={"x": frame["x"].head(50) + 0.5})
    np.testing.assert_allclose(moved["y"], frame["y"].head(50) + 1.0, atol=0.25)
    # The exact likelihood is near that of the truth.
    truth = -0.5 * x**2 - 0.5 * ((frame["y"] - 2 * x) / 0.5) ** 2 - np.log(2 * np.pi * 0.5)
    assert abs((flow.log_prob(frame) - truth).mean()) < 0.05


def test_a_killed_fit_goes_on_to_the_same_flow(tmp_path, monkeypatch):
    frame, graph = mixed_table(120)
    brief = {"steps": 30, "polish_steps": 5}
    whole = CausalFlow(graph, **brief).fit(frame, progress=False)
    assert len(whole.history_) > 5

    path = tmp_path / "fit.safetensors"
    original = training._Run.record

    def dies(self, *args):
        original(self, *args)
        self.save(path)
        if self.epoch == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(training._Run, "record", dies)
    with pytest.raises(KeyboardInterrupt):
        CausalFlow(graph, **brief).fit(frame, progress=False, checkpoint=path)
    monkeypatch.setattr(training._Run, "record", original)
    resumed = CausalFlow(graph, **brief).fit(frame, progress=False, checkpoint=path)
    pd.testing.assert_frame_equal(whole.sample(30, seed=0), resumed.sample(30, seed=0))


def test_hard_tables_are_fitted_without_nan():
    rng = np.random.default_rng(0)
    n = 200
    base = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "huge": 1e12 * base,
            "tail": base + rng.standard_cauchy(n),
            "atom": np.where(base > 0, 0.0, base),
            "copy": base,
            "city": rng.integers(0, 200, n).astype(str),
        }
    )
    names = list(frame.columns)
    graph = vaca.CausalGraph({c: names[:k] for k, c in enumerate(names)})
    flow = CausalFlow(graph, steps=40, polish_steps=10).fit(frame, progress=False)
    drawn = flow.sample(200, seed=0)
    assert np.isfinite(drawn[["huge", "tail", "atom", "copy"]].to_numpy()).all()
    assert set(drawn["city"]) <= set(frame["city"])
    answer = flow.counterfactual(frame, do={"huge": 0.0})
    assert np.isfinite(answer[["tail", "atom", "copy"]].to_numpy()).all()


def test_a_constant_column_stays_constant():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"c": np.full(60, 0.1), "y": rng.normal(size=60)})
    graph = vaca.CausalGraph.from_edges([("c", "y")])
    with pytest.warns(vaca.VacaWarning, match="constant"):
        flow = CausalFlow(graph, steps=5, polish_steps=5).fit(frame, progress=False)
    assert set(flow.sample(20, seed=0)["c"]) == {0.1}


def test_one_node_and_a_disconnected_graph():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
    brief = {"steps": 5, "polish_steps": 5}
    single = CausalFlow(vaca.CausalGraph({"a": []}), **brief).fit(frame[["a"]], progress=False)
    assert single.sample(5, seed=0).shape == (5, 1)
    apart = CausalFlow(vaca.CausalGraph({"a": [], "b": [], "c": []}), **brief)
    apart.fit(frame, progress=False)
    answer = apart.counterfactual(frame, do={"a": 1.0})
    pd.testing.assert_frame_equal(pd.DataFrame(answer)[["b", "c"]], frame[["b", "c"]])


def test_a_long_chain_is_fitted():
    rng = np.random.default_rng(0)
    steps = rng.normal(size=(80, 60)).cumsum(1)
    frame = pd.DataFrame(steps, columns=[f"x{i}" for i in range(60)])
    edges = [(f"x{i}", f"x{i + 1}") for i in range(59)]
    flow = CausalFlow(vaca.CausalGraph.from_edges(edges), steps=5, polish_steps=5, width=8)
    flow.fit(frame, progress=False)
    assert np.isfinite(flow.sample(10, seed=0).to_numpy()).all()


# ---------------------------------------------------------------------- the mechanisms


def test_the_jacobian_is_exactly_zero_outside_the_graph():
    parents = [[], [0], [0], [1], [1, 2]]
    flows = Mechanisms(
        [Head("continuous")] * 5, parents, generator=torch.Generator().manual_seed(0)
    ).double()
    with torch.no_grad():
        for p in flows.parameters():
            p.add_(0.3 * torch.randn(p.shape, generator=torch.Generator().manual_seed(1)))
    x = torch.randn(5, generator=torch.Generator().manual_seed(2), dtype=torch.float64)

    def forward(row):
        return flows.numeric_noise(row.unsqueeze(0), [0, 1, 2, 3, 4])[0][0]

    jacobian = torch.autograd.functional.jacobian(forward, x)
    for i in range(5):
        for j in range(5):
            if j == i:
                assert jacobian[i, j] > 0
            elif j in parents[i]:
                assert jacobian[i, j] != 0
            else:
                assert jacobian[i, j] == 0
    # The density is that of the change of variables.
    u = forward(x)
    expected = -0.5 * (u**2).sum() - 2.5 * np.log(2 * np.pi) + torch.logdet(jacobian)
    row = x.unsqueeze(0)
    torch.testing.assert_close(log_prob(flows, row, flows.features(row)).sum(), expected)


def test_threshold_posterior_is_uniform_on_average():
    rng = np.random.default_rng(0)
    p = np.tile([0.5, 0.3, 0.2], (20_000, 1))
    level = rng.choice(3, 20_000, p=p[0])
    noise = threshold_noise(np.log(p), level, rng)
    np.testing.assert_allclose(np.quantile(noise, [0.1, 0.5, 0.9]), [0.1, 0.5, 0.9], atol=0.02)


def test_normal_between_stays_between_far_in_the_tails():
    low = np.array([-np.inf, -60.0, 9.0, 50.0, -0.1])
    high = np.array([-1.0, -59.0, 9.1, 51.0, 0.2])
    z = normal_between(low, high, np.random.default_rng(0))
    assert np.isfinite(z).all()
    assert (z[[0, 2, 4]] >= low[[0, 2, 4]]).all() and (z[[0, 2, 4]] <= high[[0, 2, 4]]).all()


def test_single_precision_does_not_show(monkeypatch) -> None:
    scm = vaca.scms.load("loan")
    model = vaca.CausalFlow(scm.graph, steps=60).fit(scm.sample(500, seed=0))
    rows = scm.sample(2000, seed=1)
    told = model.counterfactual(rows, {"gender": 1})
    monkeypatch.setattr("vaca.engines.nn.asking.PRECISION", torch.float64)
    model._flows.eval()  # forgets the weights in single precision
    whole = model.counterfactual(rows, {"gender": 1})
    off = ((told - whole).abs() / rows.std()).to_numpy()
    assert 0 < off.max() < 1e-5
    assert np.quantile(off, 0.999) < 1e-6
