"""Tables with gaps: refused, left out, or learned from."""

import warnings

import numpy as np
import pandas as pd
import pytest

import vaca
from vaca.engines.missing import dropped_words
from vaca.engines.registry import ENGINES, engine_class, engine_names

GRAPH = vaca.CausalGraph.from_text("{w, z} -> t -> y\n{w, z} -> y")


def people(n: int, seed: int) -> pd.DataFrame:
    """The average effect of t on y is 1."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=n)
    z = rng.normal(size=n) + 0.5 * w
    t = (rng.random(n) < 1 / (1 + np.exp(-w - 0.5 * z))).astype(int)
    y = t * (1 + 0.5 * w) + w + 0.5 * z**2 + rng.normal(size=n)
    return pd.DataFrame({"w": w, "z": z, "t": t, "y": y})


@pytest.fixture(scope="module")
def gappy() -> pd.DataFrame:
    """Where y is large, w is often missing: complete rows are another population."""
    df, rng = people(800, 0), np.random.default_rng(1)
    df.loc[rng.random(len(df)) < 0.6 / (1 + np.exp(-1.5 * (df["y"] - 1))), "w"] = np.nan
    df.loc[:20, "t"] = np.nan
    return df


def test_every_engine_takes_the_choice_and_refuses_gaps_by_default(gappy):
    for name in ENGINES:
        engine = engine_class(name)(GRAPH)
        assert engine.get_params()["missing"] == "error"
        if name in engine_names(alone=True):
            with pytest.raises(vaca.VacaError, match=r"missing values in 'w' .*missing='drop'"):
                engine.fit(gappy)


def test_an_unknown_choice_names_the_known_ones(gappy):
    with pytest.raises(vaca.VacaError, match="missing='fill' is unknown.*'error', 'drop', 'model'"):
        vaca.Composite(GRAPH, missing="fill").fit(gappy)


def test_drop_says_how_many_rows_and_how_they_differ(gappy):
    lost = int(gappy.isna().any(axis=1).sum())
    weights = np.ones(len(gappy))
    with pytest.warns(vaca.errors.VacaWarning, match=rf"{lost} of 800 rows .* differ.* y ") as said:
        model = vaca.Composite(GRAPH, missing="drop").fit(gappy, weights=weights)
    assert len(said) == 1
    assert model.n_rows_ == len(gappy) - lost
    like = dropped_words(pd.DataFrame({"a": [1.0, 2.0] * 9}), np.arange(18) > 4)
    assert "like the rest" in like


def test_model_is_nearer_to_the_truth_than_complete_rows(gappy):
    effects = {}
    for missing in ("drop", "model"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = vaca.Composite(GRAPH, missing=missing).fit(gappy, refits=4)
        effects[missing] = model.effect("y", {"t": 1}, {"t": 0})
    truth = vaca.Composite(GRAPH).fit(people(800, 0)).effect("y", {"t": 1}, {"t": 0}).value
    assert abs(effects["model"].value - truth) < 0.5 * abs(effects["drop"].value - truth)
    low, high = effects["model"].interval()
    assert low < 1 < high


@pytest.fixture(scope="module")
def model(gappy):
    return vaca.Composite(GRAPH, missing="model").fit(gappy, refits=2)


def test_rows_without_gaps_are_learned_from_as_they_are(model, gappy):
    seen = gappy["w"].notna().to_numpy()
    assert np.array_equal(model.rows_["w"][seen], gappy["w"][seen])
    assert not np.isnan(model.rows_["w"]).any()
    assert model.schema_["w"].missing == int((~seen).sum())
    assert model.schema_["t"].levels == (0, 1)


def test_refits_see_other_draws(model, gappy):
    effects = model.effect("y", {"t": 1}, {"t": 0})
    assert len(set(effects.members)) == 3  # the main fit is one of them
    assert effects.value == pytest.approx(np.mean(effects.members))


def test_incomplete_rows_are_answered_by_draws_over_what_is_missing(model, gappy, tmp_path):
    rows = gappy[gappy["w"].isna() & gappy["t"].notna()].head(3)
    answer = model.counterfactual(rows, {"t": 1}, draws=40, seed=0)
    spread = answer.groupby(level=0)["y"].std()
    moved = rows["t"] == 0
    assert (spread[moved] > 0.05).all()  # the effect of t depends on w, which is unknown
    assert np.allclose(spread[~moved], 0)
    point = model.counterfactual(rows, {"t": 1})
    assert point["y"].notna().all()
    assert point["w"].isna().all()  # what is not reached stays as it was
    model.save(tmp_path / "model")
    again = vaca.load(tmp_path / "model").counterfactual(rows, {"t": 1}, draws=40, seed=0)
    pd.testing.assert_frame_equal(pd.DataFrame(answer), pd.DataFrame(again))


def test_the_effect_on_incomplete_rows(model, gappy):
    effect = model.effect("y", {"t": 1}, {"t": 0}, given=gappy.head(60), among={"t": 1})
    assert np.isfinite(effect.value)
    assert len(effect.per_row) == int((gappy.head(60)["t"] == 1).sum())


def test_validation_rows_may_have_gaps_too(gappy):
    for missing in ("drop", "model"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = vaca.Composite(GRAPH, missing=missing).fit(gappy[:600], gappy[600:], refits=2)
        assert np.isfinite(model.effect("y", {"t": 1}, {"t": 0}).value)


def test_auto_passes_the_choice_on(gappy):
    flow = vaca.CausalFlow(GRAPH, steps=5, polish_steps=5, missing="model")
    few = gappy.iloc[100:200]
    model = vaca.auto(few, GRAPH, engines=["Composite", flow], missing="model", refits=0)
    assert model.missing == "model"
    assert model.auto_.leaderboard_["score"].notna().all()


def test_a_column_without_any_value_is_refused():
    df = people(60, 0)
    df["w"] = np.nan
    with pytest.raises(vaca.VacaError, match="'w' has no values"):
        vaca.Composite(GRAPH, missing="model").fit(df)
    with pytest.raises(vaca.VacaError, match="every row has a missing value"):
        vaca.Composite(GRAPH, missing="drop").fit(df)
