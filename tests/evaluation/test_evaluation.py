"""Evaluation against the truth: protocols, floors, and models that deserve a bad score."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import vaca
from vaca import scms
from vaca.errors import VacaError
from vaca.evaluation import METRICS, evaluate
from vaca.model.causal_model import CausalModel
from vaca.table.schema import Column, Schema

CHEAP = {"rows": 400, "resamples": 1, "factuals": 200}


class Wrong(CausalModel):
    """The truth with one edge dropped: the child sees one fixed value of the parent."""

    def __init__(self, truth, parent, child, value):
        self.truth, self.graph, self.schema_ = truth, truth.graph, truth.schema_
        self.parent, self.child, self.value = parent, child, value

    def noise(self, n, rng):
        return self.truth.noise(n, rng)

    def abduct(self, x, rng=None):
        n = len(next(iter(x.values())))
        seen = {**x, self.parent: np.full(n, self.value).astype(x[self.parent].dtype)}
        own, without = self.truth.abduct(x), self.truth.abduct(seen)
        return {k: without[k] if k.split(" ")[0] == self.child else v for k, v in own.items()}

    def simulate(self, u, do):
        whole = self.truth.simulate(u, do)
        if self.child in do:
            return whole
        fixed = np.full(len(whole[self.child]), self.value).astype(whole[self.parent].dtype)
        blind = self.truth.simulate(u, {**do, self.parent: fixed})[self.child]
        again = self.truth.simulate(u, {**do, self.child: blind})
        return again


# ---------------------------------------------------------------------- the published protocol


def literal_published(model, truth, data, nodes, seed, rows, factuals):
    """The published protocol written out slowly, for truths of continuous columns."""
    streams = [np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(7)]
    columns = list(truth.schema_.columns)
    mean = {c: sum(data[c]) / len(data) for c in columns}
    sd = {c: math.sqrt(sum((v - mean[c]) ** 2 for v in data[c]) / len(data)) for c in columns}

    def scaled(x, names):
        return np.array(
            [[(x[c][i] - mean[c]) / sd[c] for c in names] for i in range(len(x[names[0]]))]
        )

    def mmd(x, y):
        """Squared MMD, biased V-statistic, sum of 5 kernels, mean squared distance as bandwidth."""
        pooled = np.concatenate([x, y])
        d2 = ((pooled[:, None, :] - pooled[None, :, :]) ** 2).sum(-1)
        total = len(pooled)
        base = d2.sum() / (total * total - total)
        kernel = sum(np.exp(-d2 / (base * factor)) for factor in (0.25, 0.5, 1.0, 2.0, 4.0))
        n = len(x)
        return (kernel[:n, :n] + kernel[n:, n:] - kernel[:n, n:] - kernel[n:, :n]).mean()

    u = truth.noise(factuals, streams[4])
    x = truth.simulate(u, {})
    abducted = model.abduct(x, None)
    questions = []
    for node in nodes:
        for sigma in (-1.0, 0.1, 0.5, 1.0):
            questions.append((node, round(mean[node] + sigma * sd[node], 2)))
    picks = streams[5].integers(2**63, size=1 + len(questions))

    def sample_both(do, names, pick):
        real = scaled(truth.simulate(truth.noise(rows, streams[1]), do), names)
        made = scaled(model.simulate(model.noise(rows, streams[2]), do), names)
        chosen = np.random.default_rng(int(pick)).integers(0, rows, size=min(1000, rows))
        return real, made, mmd(real[chosen], made[chosen])

    result = {"obs_mmd": sample_both({}, columns, picks[0])[2]}
    int_mmd, mean_e, std_e, cf_mse, cf_sse = [], [], [], [], []
    for (node, value), pick in zip(questions, picks[1:], strict=True):
        below = list(truth.graph.descendants(node))
        d = len(below)
        real, made, score = sample_both({node: np.full(rows, value)}, below, pick)
        int_mmd.append(score)
        for i in range(d):
            mean_e.append((real[:, i].mean() - made[:, i].mean()) ** 2)
            std_e.append((real[:, i].std(ddof=1) - made[:, i].std(ddof=1)) ** 2)
        norms = [math.sqrt(sum((made[r] - real[r]) ** 2)) / d for r in range(rows)]
        std_e.append(np.std(norms, ddof=1))
        do = {node: np.full(factuals, value)}
        real = scaled(truth.simulate(u, do), below)
        made = scaled(model.simulate(abducted, do), below)
        errors = [math.sqrt(sum((made[r] - real[r]) ** 2)) / d for r in range(factuals)]
        cf_mse.append(np.mean(errors))
        cf_sse.append(np.std(errors, ddof=1))
    result |= {"int_mmd": np.mean(int_mmd), "int_mean_e": np.mean(mean_e)}
    result |= {"int_std_e": np.mean(std_e), "cf_mse": np.mean(cf_mse), "cf_sse": np.mean(cf_sse)}
    return result


@pytest.mark.parametrize("name", ["collider-lin", "triangle-nlin", "chain-lin"])
def test_published_protocol_is_the_literal_one(name):
    truth = scms.load(name)
    parent, child = truth.graph.edges[-1]
    model = Wrong(truth, parent, child, 0.7)
    data = truth.sample(300, seed=5)
    expected = literal_published(model, truth, data, ["x1", "x2"], 3, rows=250, factuals=100)
    found = evaluate(model, truth, "published", seed=3, data=data, rows=250, factuals=100)
    summary = found.summary(scale=1.0).loc["value"]
    assert list(summary.index) == list(METRICS)
    for metric in METRICS:
        assert summary[metric] == pytest.approx(expected[metric], abs=1e-5), metric


def test_published_values_of_a_perfect_model():
    """The published StdE of the truth itself: far from zero, and known."""
    known = {"collider-lin": 42.7, "triangle-lin": 25, "triangle-nlin": 18, "chain-lin": 22}
    for name, value in {**known, "mgraph-lin": 11.7}.items():
        truth = scms.load(name)
        found = evaluate(truth, truth, "published", floor=False).summary()
        assert found.at["value", "int_std_e"] == pytest.approx(value, rel=0.05)


def test_published_nodes_of_loan_and_adult():
    for name, nodes in {
        "loan": {"gender", "age"},
        "adult": {"age", "education", "hours_per_week"},
    }.items():
        truth = scms.load(name)
        found = evaluate(truth, truth, "published", rows=20, factuals=20, floor=False)
        assert set(found["node"]) - {""} == nodes


# ---------------------------------------------------------------------- floors


@pytest.mark.parametrize("protocol", ["paper", "published"])
# The floor is the evaluation's, whatever the equations: each graph once, each form twice or more.
@pytest.mark.parametrize(
    "name",
    ["collider-nadd", "triangle-nlin", "triangle-lin", "chain-nadd", "mgraph-lin", "loan", "adult"],
)
def test_truth_scores_at_its_floor(name, protocol):
    truth = scms.load(name)
    data = truth.sample(1000, seed=1)
    nodes = [node for node in truth.graph.nodes if truth.graph.children(node)][:1]
    sizes = {"rows": 200, "resamples": 1, "factuals": 50}
    tables = [
        evaluate(truth, truth, protocol, seed=s, data=data, nodes=nodes, **sizes).summary()
        for s in range(10)
    ]
    value, floor = (
        pd.DataFrame([t.loc[row] for t in tables]).reset_index(drop=True)
        for row in ("value", "floor")
    )
    for metric in value.columns:
        if floor[metric].max() < 1e-6:  # counterfactuals of identified noise: no error at all
            assert value[metric].max() < 1e-6, metric
            continue
        # The difference is zero within Monte Carlo error: |t| > 7 with 9 degrees of freedom has a
        # chance of 6e-5.
        gap = value[metric] - floor[metric]
        assert abs(gap.mean()) < 7 * gap.std(ddof=1) / np.sqrt(len(gap)), metric
        ratio = value[metric].mean() / floor[metric].mean()
        assert 1 / 3 < ratio < 3, metric


@pytest.mark.parametrize("protocol", ["paper", "published"])
@pytest.mark.parametrize(
    ("name", "edge"),
    [
        ("collider-lin", ("x2", "x3")),
        ("triangle-lin", ("x1", "x3")),
        ("triangle-nlin", ("x1", "x2")),
        ("chain-lin", ("x1", "x2")),
        ("chain-nlin", ("x2", "x3")),
        ("mgraph-lin", ("x1", "x3")),
        ("mgraph-nlin", ("x2", "x5")),
        ("loan", ("age", "income")),
    ],
)
def test_a_dropped_edge_scores_above_the_floor(name, edge, protocol):
    truth = scms.load(name)
    data = truth.sample(2000, seed=1)
    parent, child = edge
    model = Wrong(truth, parent, child, float(data[parent].mean()))
    table = evaluate(
        model, truth, protocol, data=data, nodes=[parent], rows=1000, resamples=1, factuals=300
    ).summary()
    ratio = table.loc["ratio"]
    assert ratio["int_mmd"] > 2
    assert ratio["int_mean_e"] > 2
    assert table.at["value", "cf_mse"] > 1.0
    assert table.at["floor", "cf_mse"] < 1e-6
    assert math.isinf(ratio["cf_mse"])


# ---------------------------------------------------------------------- the table


def test_rows_are_tidy_and_repeatable():
    truth = scms.load("triangle-lin")
    table = evaluate(truth, truth, seed=4, **CHEAP)
    again = evaluate(truth, truth, seed=4, **CHEAP)
    pd.testing.assert_frame_equal(table, again)
    assert not table.equals(evaluate(truth, truth, seed=5, **CHEAP))
    assert not table.duplicated(["query", "intervention", "metric"]).any()
    # x1 and x2 at five values each
    assert table[table["query"] == "counterfactual"]["intervention"].nunique() == 10
    assert table.protocol == "paper"
    part = table[table["query"] == "interventional"]
    assert isinstance(part, type(table))
    assert part.summary().columns[0] == "int_mmd"


def test_without_floor_nothing_else_changes():
    truth = scms.load("chain-lin")
    with_floor = evaluate(truth, truth, **CHEAP)
    without = evaluate(truth, truth, floor=False, **CHEAP)
    assert with_floor["value"].tolist() == without["value"].tolist()
    assert without["floor"].isna().all()


def test_floor_of_an_earlier_evaluation_is_the_same():
    truth = scms.load("chain-lin")
    model = Wrong(truth, "x1", "x2", 0.3)
    whole = evaluate(model, truth, seed=2, **CHEAP)
    lent = evaluate(model, truth, seed=2, floor=evaluate(truth, truth, seed=2, **CHEAP), **CHEAP)
    pd.testing.assert_frame_equal(whole, lent)
    with pytest.raises(VacaError, match="given as floor has no row"):
        evaluate(model, truth, floor=evaluate(truth, truth, "published", **CHEAP), **CHEAP)


def test_scale_comes_from_the_training_rows():
    truth = scms.load("chain-lin")
    data = truth.sample(500, seed=0)
    stretched = data * 10
    one = evaluate(truth, truth, data=data, **CHEAP)
    two = evaluate(truth, truth, data=stretched, **CHEAP)
    at = one["intervention"][one["node"] == "x1"].iloc[0]
    value = data["x1"].mean() - data["x1"].std(ddof=0)
    assert at == f"do(x1={value:.4g})"
    assert at != two["intervention"][two["node"] == "x1"].iloc[0]


class Recoded(CausalModel):
    """The truth with the levels of its categories in another order."""

    def __init__(self, truth):
        self.truth, self.graph = truth, truth.graph
        self.schema_ = Schema(
            {
                c: Column(k.kind, k.levels[::-1]) if k.discrete else k
                for c, k in truth.schema_.items()
            }
        )

    def _turn(self, x):
        return {
            c: len(self.schema_.levels(c)) - 1 - v if self.schema_[c].discrete else v
            for c, v in x.items()
        }

    def noise(self, n, rng):
        return self.truth.noise(n, rng)

    def abduct(self, x, rng=None):
        return self.truth.abduct(self._turn(x), rng)

    def simulate(self, u, do):
        return self._turn(self.truth.simulate(u, self._turn(do)))


def test_levels_in_another_order_are_translated():
    truth = scms.load("loan")
    plain = evaluate(truth, truth, **CHEAP)
    turned = evaluate(Recoded(truth), truth, **CHEAP)
    assert plain["value"].tolist() == pytest.approx(turned["value"].tolist())


class Broken(Wrong):
    def simulate(self, u, do):
        out = dict(self.truth.simulate(u, do))
        out["x3"] = np.where(np.arange(len(out["x3"])) == 7, np.nan, out["x3"])
        return out


def test_errors_say_what_is_wrong():
    truth = scms.load("collider-lin")
    with pytest.raises(VacaError, match="unknown protocol 'papre'; did you mean 'paper'"):
        evaluate(truth, truth, "papre")
    with pytest.raises(VacaError, match="node 'x3' has no descendants"):
        evaluate(truth, truth, nodes=["x3"])
    with pytest.raises(VacaError, match="unknown node"):
        evaluate(truth, truth, nodes=["x9"])
    with pytest.raises(VacaError, match="rows is a whole number of at least 10"):
        evaluate(truth, truth, rows=1)
    with pytest.raises(VacaError, match="no column 'gender'"):
        evaluate(truth, scms.load("loan"))
    with pytest.raises(VacaError, match="the model gave a value of 'x3'.*row 7"):
        evaluate(Broken(truth, "x1", "x3", 0.0), truth, **CHEAP)


def test_it_is_at_hand():
    assert vaca.evaluate is evaluate
