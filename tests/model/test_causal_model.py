"""Queries on a small model whose every answer is known by hand, with a node of two columns."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.stats

import vaca
from vaca import CausalGraph, Column, Schema, Shift
from vaca.errors import InterventionError, SchemaError, SupportWarning, VacaError
from vaca.model.causal_model import CausalModel
from vaca.model.primitives import CHUNK


class Known(CausalModel):
    """a -> pair = {b, c} -> d, with a continuous, b continuous, c categorical, d binary."""

    graph = CausalGraph({"a": [], "pair": ["a"], "d": ["pair"]}, {"pair": ["b", "c"]})
    schema_ = Schema(
        {
            "a": Column("continuous", low=-4, high=4),
            "b": Column("continuous"),
            "c": Column("categorical", ("red", "green", "blue"), dtype="str"),
            "d": Column("binary", ("no", "yes"), dtype="str"),
        }
    )

    def noise(self, n, rng):
        u = rng.normal(size=(n, 3))
        return {"a": u[:, 0], "b": u[:, 1], "c": rng.integers(0, 3, n), "d": u[:, 2]}

    def abduct(self, x, rng=None):
        jitter = 0 if rng is None else rng.exponential(size=len(x["a"]))
        sign = np.where(x["d"] == 1, 1.0, -1.0)
        return {
            "a": x["a"],
            "b": x["b"] - x["a"],
            "c": x["c"],
            "d": sign * (np.abs(x["b"]) + 1 + jitter),
        }

    def simulate(self, u, do):
        a = do.get("a", u["a"])
        b = do.get("b", a + u["b"])
        c = do.get("c", u["c"])
        d = do.get("d", (b + u["d"] > 0).astype(np.int64))
        return {"a": a, "b": b, "c": c, "d": d}


MODEL = Known()
FACTUAL = MODEL.sample(50, seed=3).set_index(np.arange(50) * 2 + 5)


def test_sample_is_repeatable_and_shares_noise_across_interventions() -> None:
    pd.testing.assert_frame_equal(MODEL.sample(20, seed=1), MODEL.sample(20, seed=1))
    assert not MODEL.sample(20, seed=1).equals(MODEL.sample(20, seed=2))
    done = MODEL.sample(20, do={"d": "yes"}, seed=1)
    assert (done["d"] == "yes").all()
    pd.testing.assert_frame_equal(done.drop(columns="d"), MODEL.sample(20, seed=1)[["a", "b", "c"]])


def test_seed_none_is_fresh() -> None:
    assert not MODEL.sample(20).equals(MODEL.sample(20))


def test_every_form_of_do() -> None:
    values = np.linspace(-1, 1, 20)
    assert MODEL.sample(20, do={"a": values}, seed=0)["a"].tolist() == values.tolist()
    assert MODEL.sample(20, do={"a": pd.Series(values)}, seed=0)["a"].tolist() == values.tolist()
    natural = MODEL.sample(20, seed=0)
    shifted = MODEL.sample(20, do={"a": Shift(0.5)}, seed=0)
    np.testing.assert_array_equal(shifted["a"], natural["a"] + 0.5)
    np.testing.assert_allclose(shifted["b"], natural["b"] + 0.5)
    policy = MODEL.sample(
        20,
        do={"d": lambda frame: np.where(frame["c"] == "red", "yes", "no")},
        seed=0,
    )
    assert (policy["d"] == np.where(natural["c"] == "red", "yes", "no")).all()
    random = MODEL.sample(5000, do={"a": scipy.stats.uniform(1, 2)}, seed=0)
    assert random["a"].between(1, 3).all()
    assert abs(random["a"].mean() - 2) < 0.05
    pair = MODEL.sample(20, do={"pair": {"b": Shift(1.0), "c": "blue"}}, seed=0)
    assert (pair["c"] == "blue").all()
    np.testing.assert_array_equal(pair["b"], natural["b"] + 1)


def test_policy_and_shift_see_interventions_above_them() -> None:
    frames = []

    def policy(frame: pd.DataFrame) -> float:
        frames.append(frame)
        return 0.0

    MODEL.sample(5, do={"pair": {"b": policy, "c": "red"}, "a": 2.0}, seed=0)
    assert list(frames[0].columns) == ["a"]
    assert (frames[0]["a"] == 2.0).all()
    both = MODEL.sample(5, do={"pair": {"b": Shift(1), "c": "red"}, "a": 2.0}, seed=0)
    base = MODEL.sample(5, do={"a": 2.0}, seed=0)
    np.testing.assert_array_equal(both["b"], base["b"] + 1)


def test_counterfactual_keeps_the_index_and_what_do_cannot_reach() -> None:
    answer = MODEL.counterfactual(FACTUAL, {"pair": {"b": 9.0, "c": "red"}})
    assert answer.index.equals(FACTUAL.index)
    assert list(answer.columns) == list(FACTUAL.columns)
    assert answer["a"].equals(FACTUAL["a"])
    assert (answer["b"] == 9.0).all()
    pd.testing.assert_frame_equal(pd.DataFrame(MODEL.counterfactual(FACTUAL, {})), FACTUAL)


def test_counterfactual_draws() -> None:
    answer = MODEL.counterfactual(FACTUAL, {"a": Shift(0.1)}, draws=4, seed=0)
    assert answer.index.names == ["row", "draw"]
    assert len(answer) == 200
    assert answer.index.get_level_values("row")[::4].tolist() == FACTUAL.index.tolist()
    again = MODEL.counterfactual(FACTUAL, {"a": Shift(0.1)}, draws=4, seed=0)
    assert answer.equals(again)
    summary = answer.summary()
    assert summary.index.equals(FACTUAL.index.rename("row"))
    assert set(summary["b"].columns) == {"mean", "sd", "5%", "95%"}
    assert set(summary["d"].columns) == {"mode", "share"}
    np.testing.assert_allclose(summary[("b", "mean")], FACTUAL["b"] + 0.1)
    with pytest.raises(ValueError, match="draws=200"):
        MODEL.counterfactual(FACTUAL, {}).summary()


def test_series_is_aligned_with_the_factual_index() -> None:
    values = pd.Series(np.linspace(-1, 1, 50), index=FACTUAL.index)
    answer = MODEL.counterfactual(FACTUAL, {"a": values.sample(frac=1, random_state=0)})
    pd.testing.assert_series_equal(answer["a"], values, check_names=False)
    with pytest.raises(InterventionError, match="no value for row 5"):
        MODEL.counterfactual(FACTUAL, {"a": values.iloc[1:]})


def test_chunks_do_not_change_the_answer(monkeypatch) -> None:
    whole = MODEL.counterfactual(FACTUAL, {"a": Shift(1.0)})
    monkeypatch.setattr("vaca.model.primitives.CHUNK", 7)
    assert MODEL.counterfactual(FACTUAL, {"a": Shift(1.0)}).equals(whole)
    plain = MODEL.sample(30, do={"a": 1.0}, seed=0)
    policy = MODEL.sample(30, do={"a": lambda frame: 1.0}, seed=0)
    pd.testing.assert_frame_equal(plain, policy)
    assert CHUNK > 7


def test_effect_of_a_known_model() -> None:
    effect = MODEL.effect("b", {"a": 1.0}, {"a": 0.0}, n=100)
    assert effect.value == pytest.approx(1.0)
    assert effect.standard_error == pytest.approx(0, abs=1e-9)
    assert float(effect) == effect.value
    assert "effect on b" in str(effect)
    flips = MODEL.effect("d", {"a": 1.0}, {"a": 0.0}, n=40_000)
    truth = scipy.stats.norm.cdf(1 / np.sqrt(2)) - 0.5
    assert abs(flips.value - truth) < 4 * flips.standard_error
    assert flips.level == "yes"
    low, high = flips.interval()
    assert low < flips.value < high
    reds = MODEL.effect("c", {"a": 1.0}, {"a": 0.0}, level="red")
    assert reds.value == 0


def test_effect_on_given_rows() -> None:
    effect = MODEL.effect("b", {"a": Shift(0.5)}, given=FACTUAL)
    assert effect.per_row is not None
    assert effect.per_row.index.equals(FACTUAL.index)
    np.testing.assert_allclose(effect.per_row, 0.5)
    drawn = MODEL.effect("d", {"a": Shift(0.5)}, given=FACTUAL, draws=5)
    assert drawn.per_row is not None
    assert len(drawn.per_row) == len(FACTUAL)


def test_outside_the_data_is_answered_warned_and_flagged() -> None:
    with pytest.warns(
        SupportWarning, match=r"outside the observed range \[-4, 4\], by up to 6"
    ) as w:
        frame = MODEL.sample(5, do={"a": 10.0}, seed=0)
    assert len(w) == 1
    assert frame.attrs["outside_support"]
    with pytest.warns(SupportWarning):
        assert MODEL.counterfactual(FACTUAL, {"a": 10.0}).outside_support
    with pytest.warns(SupportWarning):
        assert MODEL.effect("b", {"a": 10.0}).outside_support
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert MODEL.counterfactual(FACTUAL, {"a": 1.0}).outside_support == []


@pytest.mark.parametrize(
    ("do", "match"),
    [
        ({"aa": 1}, "unknown node 'aa'"),
        ({"b": 1.0}, "do sets 'b' alone, which stands in the block 'pair' with 'c'"),
        ({"pair": 1.0}, "give a dict"),
        ({"pair": {"b": 1.0}}, "do sets 'b' alone"),
        ({"pair": {"b": 1.0, "c": "red", "d": 0}}, r"unknown \['d'\]"),
        ({"d": "maybe"}, "'maybe' is not a level of 'd'; Valid: 'no', 'yes'"),
        ({"a": "much"}, "a number is needed"),
        ({"a": float("nan")}, "finite"),
        ({"a": [1.0, 2.0]}, r"one value per row is needed, 50 in all; got the shape \(2,\)"),
        ({"d": Shift(1)}, "a shift needs a continuous or count column"),
        ({"d": lambda frame: "maybe"}, "'maybe' is not a level"),
        ([("a", 1)], "do is a dict"),
    ],
)
def test_bad_do(do, match: str) -> None:
    with pytest.raises(InterventionError, match=match):
        MODEL.counterfactual(FACTUAL, do)


def test_bad_questions() -> None:
    with pytest.raises(VacaError, match="n is a whole number"):
        MODEL.sample(0)
    with pytest.raises(VacaError, match="draws is a whole number"):
        MODEL.counterfactual(FACTUAL, {}, draws=0)
    with pytest.raises(VacaError, match="seed"):
        MODEL.sample(3, seed=-1)
    with pytest.raises(SchemaError, match="no factual rows"):
        MODEL.counterfactual(FACTUAL.iloc[:0], {})
    with pytest.raises(VacaError, match="unknown outcome 'z'"):
        MODEL.effect("z", {"a": 1.0})
    with pytest.raises(VacaError, match="name the level"):
        MODEL.effect("c", {"a": 1.0})
    with pytest.raises(VacaError, match="has no level"):
        MODEL.effect("b", {"a": 1.0}, level="red")
    with pytest.raises(InterventionError, match="finite number"):
        Shift(float("inf"))


def test_assumptions_has_a_line_per_column() -> None:
    assert list(MODEL.assumptions().index) == list(FACTUAL.columns)


def test_a_shift_sees_what_the_interventions_above_it_did() -> None:
    scm = vaca.scms.load("loan")
    rows = scm.sample(200, seed=1)
    older = rows["age"] + 5
    both = scm.counterfactual(rows, {"age": vaca.Shift(5), "income": vaca.Shift(1)})
    first = scm.counterfactual(rows, {"age": older})
    second = scm.counterfactual(rows, {"age": older, "income": first["income"] + 1})
    np.testing.assert_allclose(both, second)
    apart = scm.counterfactual(rows, {"gender": 1, "age": vaca.Shift(5)})
    np.testing.assert_allclose(apart, scm.counterfactual(rows, {"gender": 1, "age": older}))


def test_an_answer_is_nobody_elses_memory() -> None:
    scm = vaca.scms.load("triangle-lin")
    rows = scm.sample(5, seed=0)
    kept, values = rows.copy(), np.arange(5.0)

    def policy(frame):
        frame.iloc[:] = 7.0
        return np.zeros(len(frame))

    for do in ({"x2": values}, {"x2": policy}, {"x2": vaca.Shift(1.0)}, {}):
        answer = scm.counterfactual(rows, do)
        answer.iloc[:] = 9.0
        pd.testing.assert_frame_equal(rows, kept)
    drawn = scm.sample(5, {"x2": values}, seed=0)
    drawn.iloc[:] = 9.0
    assert values.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
