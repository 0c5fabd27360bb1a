"""The additive noise baseline: right choice of regressor, arrays only, exact abduction."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_softmax
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

import vaca
from tests.engines.test_causal_flow import mixed_table
from vaca.engines.additive_noise import AdditiveNoise
from vaca.engines.choosing_predictors import choose_classifier, choose_regressor
from vaca.engines.predictors import Corrected, Polynomial, Splines, from_arrays, to_arrays
from vaca.engines.trees import Trees


@pytest.fixture(scope="module")
def mixed() -> tuple[AdditiveNoise, pd.DataFrame]:
    frame, graph = mixed_table(300)
    return AdditiveNoise(graph, {"visits": "count"}).fit(frame), frame


def test_every_kind_of_column_is_simulated_validly(mixed):
    model, frame = mixed
    drawn = model.sample(200, seed=1)
    assert (drawn.dtypes == frame.dtypes).all()
    assert set(drawn["race"]) <= set("abc")
    assert (drawn["visits"] >= 0).all()
    assert set(model.mechanisms_.index) == set(frame.columns)


@pytest.mark.parametrize("seed", [None, 4])
def test_without_an_intervention_abduction_gives_the_rows_back(mixed, seed):
    model, frame = mixed
    x = model.schema_.encode(frame)
    rng = None if seed is None else np.random.default_rng(seed)
    u = model.abduct(x, rng)
    back = model.simulate(u, {})
    bare = model.simulate({k: v for k, v in u.items() if k.startswith("noise/")}, {})
    for column, values in x.items():
        assert np.array_equal(back[column], values), column
        np.testing.assert_allclose(bare[column], values, rtol=1e-9)


def test_counterfactuals_are_the_factual_plus_the_change_of_the_mean():
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    frame = pd.DataFrame({"x": x, "y": x**2 + 0.1 * rng.normal(size=400)})
    model = AdditiveNoise(vaca.CausalGraph.from_edges([("x", "y")])).fit(frame)
    assert model.mechanisms_["y"].startswith("polynomial")
    answer = model.counterfactual(frame.head(50), do={"x": 1.0})
    expected = frame["y"].head(50) + 1 - frame["x"].head(50) ** 2
    np.testing.assert_allclose(answer["y"], expected, atol=0.15)


def test_a_saved_model_answers_the_same(mixed, tmp_path):
    model, frame = mixed
    model.save(tmp_path / "m")
    again = vaca.load(tmp_path / "m")
    pd.testing.assert_frame_equal(model.sample(50, seed=3), again.sample(50, seed=3))
    pd.testing.assert_series_equal(model.mechanisms_, again.mechanisms_)
    do = {"age": 30.0}
    pd.testing.assert_frame_equal(
        pd.DataFrame(model.counterfactual(frame, do)), pd.DataFrame(again.counterfactual(frame, do))
    )


def test_many_levels_are_taken():
    rng = np.random.default_rng(0)
    city = rng.integers(0, 200, 400)
    frame = pd.DataFrame({"city": city.astype(str), "y": city / 50 + rng.normal(size=400)})
    frame["shop"] = rng.integers(0, 150, 400).astype(str)
    graph = vaca.CausalGraph.from_edges([("city", "y"), ("y", "shop")])
    model = AdditiveNoise(graph).fit(frame)
    drawn = model.sample(100, do={"y": 2.0}, seed=0)
    assert set(drawn["shop"]) <= set(frame["shop"])


# ---------------------------------------------------------------------- predictors


def test_tree_tables_equal_scikit_learn():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 3))
    y = np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2]
    reference = HistGradientBoostingRegressor(
        max_iter=150, learning_rate=0.06, max_leaf_nodes=16, early_stopping=False
    ).fit(x, y)
    fresh = rng.normal(size=(300, 3))
    np.testing.assert_allclose(Trees.regression(x, y)(fresh)[:, 0], reference.predict(fresh))
    for levels in (2, 4):
        label = np.digitize(y, np.linspace(-0.5, 0.5, levels - 1))
        reference = HistGradientBoostingClassifier(
            max_iter=80, learning_rate=0.08, max_leaf_nodes=16, early_stopping=False
        ).fit(x, label)
        scores = Trees.classification(x, label, levels)(fresh)
        np.testing.assert_allclose(
            np.exp(log_softmax(scores, axis=1)), reference.predict_proba(fresh), atol=1e-9
        )


def test_levels_that_never_occur_are_never_likely():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2))
    y = np.where(x[:, 0] > 0, 3, 1)
    for model in (
        Trees.classification(x, y, 5),
        Polynomial.blank(x, 1).classify(x, y, 5),
        choose_classifier(x, y, np.ones(len(y)), 5, seed=0)[0],
    ):
        p = np.exp(log_softmax(model(x), axis=1))
        assert p[:, [0, 2, 4]].max() < 1e-8
        assert (p.argmax(1) == y).mean() > 0.9


@pytest.mark.parametrize(
    ("truth", "expected"),
    [
        (lambda x: 2 * x[:, 0] - x[:, 1], "polynomial 1"),
        (lambda x: x[:, 0] * x[:, 1], "polynomial 2"),
        (lambda x: np.sin(2 * x[:, 0]) + np.abs(x[:, 1]), "splines"),
        (lambda x: np.sign(x[:, 0]) * 2, "boosted trees"),
    ],
    ids=["linear", "product", "curves", "step"],
)
def test_the_suitable_regressor_is_chosen(truth, expected):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 2))
    y = truth(x) + 0.2 * rng.normal(size=600)
    _, residuals, name = choose_regressor(x, y, np.ones(len(y)), seed=0)
    assert name == expected
    assert residuals.std() == pytest.approx(0.2, abs=0.1)


def test_splines_are_straight_beyond_the_data():
    x = np.random.default_rng(0).normal(size=(500, 2))
    model = Splines.blank(x).regress(x, np.sin(x[:, 0]) + x[:, 1] ** 2)
    for along in (np.array([1.0, 0.0]), np.array([0.0, 1.0])):
        far = model(np.outer([6.0, 7.0, 8.0, 9.0], along))[:, 0]
        np.testing.assert_allclose(np.diff(far, n=2), 0.0, atol=1e-8)


def test_curves_with_trees_go_on_where_a_combination_was_never_seen():
    def truth(x):
        return 3.0 * x[:, 0] + 2.0 * x[:, 1] + np.floor(2 * x[:, 2]) % 2  # steps: work for trees

    rng = np.random.default_rng(0)
    x = np.concatenate([rng.integers(0, 2, (4000, 2)), rng.uniform(0, 2, (4000, 1))], 1)
    x = x[x[:, 0] + x[:, 1] < 2]
    y = truth(x)
    unseen = np.array([[1.0, 1.0, 0.25], [1.0, 1.0, 0.75], [1.0, 1.0, 1.75]])
    both, trees = Corrected.regression(x, y), Trees.regression(x, y)
    assert np.abs(both(unseen)[:, 0] - truth(unseen)).max() < 0.2
    assert np.abs(trees(unseen)[:, 0] - truth(unseen)).max() > 1.0
    np.testing.assert_array_equal(from_arrays(to_arrays(both))(x), both(x))


def test_a_positive_column_stays_positive() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    data = pd.DataFrame({"x": x, "y": np.abs(1.0 + x + rng.normal(size=300))})
    model = vaca.AdditiveNoise(vaca.CausalGraph.from_edges([("x", "y")])).fit(data)
    assert (model.sample(2000, seed=0)["y"] >= 0).all()
    assert (model.counterfactual(data, {"x": -3.0})["y"] >= 0).all()
    assert model.counterfactual(data, {}).equals(data)


def test_with_many_columns_trees_grow_where_they_are_needed() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    names = [f"c{i}" for i in range(22)]
    data = pd.DataFrame({name: x + 0.1 * rng.normal(size=300) for name in names})
    data["c3"] = 3.0 * (np.floor(3 * x) % 2) + 0.1 * rng.normal(size=300)
    graph = vaca.CausalGraph.from_edges([("x", name) for name in names])
    model = vaca.AdditiveNoise(graph).fit(data.assign(x=x))
    found = model.mechanisms_.drop(["x", "c3"])
    assert "trees" in model.mechanisms_["c3"]
    assert not found.str.contains("trees").any()
