"""Ensembles: the spread between members is in every answer, and the causal rules still hold."""

import numpy as np
import pandas as pd
import pytest

import vaca
from vaca.engines.processes import fit_all
from vaca.errors import VacaError

GRAPH = vaca.CausalGraph.from_edges([("x", "y"), ("y", "kind"), ("x", "kind")])

PAIR = vaca.CausalGraph.from_edges([("x", "y")])


def table(n=400, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    y = 2 * x + rng.normal(size=n)
    kind = np.where(y + x + rng.logistic(size=n) > 0, "high", "low")
    return pd.DataFrame({"x": x, "y": y, "kind": kind})


@pytest.fixture(scope="module")
def model():
    return vaca.Ensemble(GRAPH, "AdditiveNoise", members=3, jobs=1).fit(table(200))


def test_it_has_its_members_and_they_differ(model):
    assert len(model.members_) == 3
    assert len({m.seed for m in model.members_}) == 3
    effects = [m.effect("y", {"x": 1.0}, {"x": 0.0}).value for m in model.members_]
    assert np.std(effects) > 0


def test_effect_is_the_average_with_the_spread_in_its_error(model):
    found = [m.effect("y", {"x": 1.0}, {"x": 0.0}) for m in model.members_]
    effect = model.effect("y", {"x": 1.0}, {"x": 0.0})
    values = [e.value for e in found]
    assert effect.value == pytest.approx(np.mean(values))
    assert effect.standard_error >= np.std(values, ddof=1)
    assert effect.standard_error > max(e.standard_error for e in found)


def test_the_error_is_honest():
    """Over fresh tables the effect errs by about what its standard error says."""
    z = []
    for seed in range(5):
        rows = table(150, seed)[["x", "y"]]
        settings = {"families": []}
        fitted = vaca.Ensemble(PAIR, "Composite", members=4, settings=settings, jobs=1).fit(rows)
        effect = fitted.effect("y", {"x": 1.0}, {"x": 0.0}, n=1000)
        z.append((effect.value - 2.0) / effect.standard_error)
    # Of five standard normals the root mean square lies between these with more than 99.5 %; the
    # upper end leaves room for a standard error that four members estimate.
    assert 0.2 < np.sqrt(np.mean(np.square(z))) < 3.0


def test_effect_on_given_rows(model):
    rows = table(20, seed=5)
    effect = model.effect("y", {"x": 1.0}, {"x": 0.0}, given=rows)
    assert list(effect.per_row.index) == list(rows.index)
    assert effect.value == pytest.approx(effect.per_row.mean())


def test_draws_spread_over_members(model):
    rows = table(3, seed=5)
    draws = model.counterfactual(rows, {"x": 1.0}, draws=6, seed=0)
    own = [m.counterfactual(rows, {"x": 1.0})["y"] for m in model.members_]
    for row in rows.index:
        values = set(np.round(draws.loc[row]["y"], 9))
        assert values == {round(float(series[row]), 9) for series in own}
    assert (draws.summary()["y", "sd"] > 0).all()


def test_the_point_answer_is_the_average(model):
    rows = table(6, seed=5)
    answer = model.counterfactual(rows, {"x": 1.0})
    own = [m.counterfactual(rows, {"x": 1.0})["y"] for m in model.members_]
    np.testing.assert_allclose(answer["y"], np.mean(own, axis=0))
    assert set(answer["kind"]) <= {"high", "low"}


def test_no_intervention_gives_the_factual_back(model):
    rows = table(50, seed=5)
    pd.testing.assert_frame_equal(pd.DataFrame(model.counterfactual(rows, {})), rows)
    again = model.counterfactual(rows, {}, draws=5, seed=0).xs(3, level="draw")
    np.testing.assert_array_equal(again["y"].to_numpy(), rows["y"].to_numpy())
    assert again["kind"].tolist() == rows["kind"].tolist()


def test_what_do_cannot_reach_stays(model):
    before = model.sample(100, seed=1)
    with pytest.warns(vaca.SupportWarning, match="combine 'x' and 'y'"):
        after = model.sample(100, {"y": 0.0}, seed=1)
    pd.testing.assert_series_equal(before["x"], after["x"])
    assert (after["y"] == 0.0).all()


def test_save_and_load(model, tmp_path):
    model.save(tmp_path / "m")
    again = vaca.load(tmp_path / "m")
    pd.testing.assert_frame_equal(again.sample(50, seed=2), model.sample(50, seed=2))
    one, two = (m.effect("y", {"x": 1.0}) for m in (again, model))
    assert (one.value, one.standard_error) == (two.value, two.standard_error)


def test_of_fitted_engines(model):
    again = vaca.Ensemble.of(model.members_)
    pd.testing.assert_frame_equal(again.sample(50, seed=2), model.sample(50, seed=2))


def test_processes_give_the_same_as_one():
    rows, plain = table(60)[["x", "y"]], {"families": ()}
    one, two = (
        vaca.Ensemble(PAIR, "Composite", members=2, settings=plain, jobs=jobs).fit(rows)
        for jobs in (1, 2)
    )
    pd.testing.assert_frame_equal(one.sample(50, seed=2), two.sample(50, seed=2))


def test_flow_members_keep_their_histories():
    settings = {"steps": 10, "width": 8, "polish_steps": 5}
    flow = vaca.Ensemble(GRAPH, members=2, settings=settings, jobs=1).fit(table(100))
    assert set(flow.history_["member"]) == {0, 1}
    assert "in each of 2 members" in flow.assumptions()["rests_on"].iloc[0]


def test_without_bootstrap_members_see_the_same_rows():
    rows = table(150)[["x", "y"]]
    same = vaca.Ensemble(PAIR, "AdditiveNoise", members=2, bootstrap=False, jobs=1).fit(rows)
    other = vaca.Ensemble(PAIR, "AdditiveNoise", members=2, jobs=1).fit(rows)
    gap = [
        abs(np.diff([m.effect("y", {"x": 1.0}, {"x": 0.0}).value for m in e.members_])[0])
        for e in (same, other)
    ]
    assert gap[0] < gap[1]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"members": 1}, "at least 2"),
        ({"engine": "CausalFlo"}, "did you mean 'CausalFlow'"),
        ({"engine": "CausalFlow", "settings": {"widht": 3}}, "did you mean 'width'"),
        ({"engine": "AdditiveNoise", "settings": {"seed": 3}}, "no setting 'seed'"),
    ],
)
def test_bad_arguments(arguments, says):
    with pytest.raises(VacaError, match=says):
        vaca.Ensemble(GRAPH, **{"engine": "AdditiveNoise", "jobs": 1, **arguments}).fit(table(50))


def test_members_must_match(model):
    other = vaca.AdditiveNoise(PAIR).fit(table(50)[["x", "y"]])
    with pytest.raises(VacaError, match="another graph"):
        vaca.Ensemble.of([model.members_[0], other])
    with pytest.raises(VacaError, match="at least 2"):
        vaca.Ensemble.of(model.members_[:1])


def test_a_member_that_fails_says_why():
    rows = table(50)[["x", "y"]]
    member = vaca.Composite(PAIR, families=["nobody"])
    member.schema_ = vaca.Schema.infer(rows, PAIR)
    x = member.schema_.encode(rows)
    with pytest.raises(VacaError, match="member 0: .*unknown family 'nobody'"):
        list(fit_all([(member, x, x, None, None)], jobs=2))


def test_members_do_not_remember_rows():
    """Rows drawn twice stood on both sides of a cross-validation, and trees won it."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(150, 2))
    df = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": x.sum(1) + rng.normal(size=150)})
    graph = vaca.CausalGraph.from_edges([("a", "y"), ("b", "y")])
    model = vaca.Ensemble(graph, "AdditiveNoise", members=3, jobs=1).fit(df)
    assert not any("trees" in member.mechanisms_["y"] for member in model.members_)
    effect = model.effect("y", {"a": 1.0}, {"a": 0.0}, n=200)
    assert effect.degrees == pytest.approx(2, abs=0.1)  # Student's quantiles for three members
