"""The second opinion on effects: against least squares, known truths and hand-made references."""

import numpy as np
import pandas as pd
import pytest

import vaca
from vaca.errors import VacaError
from vaca.trust.cross_check import check_effect, cross_check

pytestmark = pytest.mark.usefixtures("without_trees")

GRAPH = vaca.CausalGraph.from_parents({"a": [], "b": [], "t": ["a"], "y": ["a", "b", "t"]})


def table(n=500, seed=0, rate=0.5, slope=0.0):
    """A binary treatment that depends on a; its effect is 2 + slope * a."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    t = (rng.random(n) < 1 / (1 + np.exp(-np.log(rate / (1 - rate)) - a))).astype(int)
    y = (2 + slope * a) * t + a + np.sin(b) + rng.normal(size=n)
    return pd.DataFrame({"a": a, "b": b, "t": t, "y": y})


def numbers(n=800, seed=0):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    t = 0.7 * a + rng.normal(size=n)
    return pd.DataFrame({"a": a, "b": b, "t": t, "y": 1.5 * t + a - b + rng.normal(size=n)})


class Rows:
    """What a cross-check needs of a model: a graph, kinds of columns and rows."""

    def __new__(cls, df, graph=GRAPH, **kinds):
        model = vaca.AdditiveNoise(graph, schema=kinds or None)
        model.schema_ = vaca.Schema.infer(df, graph, kinds)
        model.rows_ = model.schema_.encode(df)
        return model


def least_squares(df, outcome, inputs):
    x = np.column_stack([np.ones(len(df)), *(df[name] for name in inputs)])
    beta, *_ = np.linalg.lstsq(x, df[outcome], rcond=None)
    residual = df[outcome] - x @ beta
    cov = np.linalg.inv(x.T @ x) * (residual @ residual) / (len(df) - x.shape[1])
    return beta[1], np.sqrt(cov[1, 1])


def test_on_a_straight_table_it_is_least_squares():
    df = numbers()
    found = cross_check(Rows(df), "y", {"t": 1.0}, {"t": 0.0})
    slope, error = least_squares(df, "y", ["t", "a", "b"])
    assert found.value == pytest.approx(slope, abs=0.25 * error)
    assert found.standard_error == pytest.approx(error, rel=0.12)
    assert found.adjustment == ("a", "b") and found.method == "debiased regression"
    shifted = cross_check(Rows(df), "y", {"t": vaca.Shift(0.5)})
    assert shifted.value == pytest.approx(0.5 * slope, abs=0.5 * error)
    assert shifted.method == "doubly robust"


def test_a_confounded_treatment_agrees_with_weighting_by_hand():
    """An independent AIPW with the true propensity, and the true regression."""
    df = table(n=1500, slope=1.0)
    found = cross_check(Rows(df), "y", {"t": 1}, {"t": 0})
    e = 1 / (1 + np.exp(-df["a"]))
    base = df["a"] + np.sin(df["b"])
    g1, g0 = base + 2 + df["a"], base
    scores = g1 - g0 + df["t"] * (df["y"] - g1) / e - (1 - df["t"]) * (df["y"] - g0) / (1 - e)
    error = scores.std() / np.sqrt(len(df))
    assert found.value == pytest.approx(scores.mean(), abs=1.0 * error)
    assert 0.7 < found.standard_error / error < 1.4
    naive = df.groupby("t")["y"].mean().diff().iloc[-1]
    assert abs(naive - found.value) > 4 * error


def test_a_rare_treatment_is_not_shrunk():
    found = [
        cross_check(Rows(table(n=2000, seed=s, rate=0.007)), "y", {"t": 1}, {"t": 0})
        for s in range(10_000, 10_004)
    ]
    assert np.mean([one.value for one in found]) == pytest.approx(2.0, abs=0.35)
    # Four 95 % intervals all cover in four of five such tests; one of them may miss.
    assert sum(one.interval()[0] < 2.0 < one.interval()[1] for one in found) >= 3
    assert all(one.degrees < 60 for one in found)  # few rows decide


def test_among_asks_about_those_rows():
    df = table(n=2000, slope=1.0)
    model = Rows(df)
    treated = cross_check(model, "y", {"t": 1}, {"t": 0}, among={"t": 1})
    above = cross_check(model, "y", {"t": 1}, {"t": 0}, among="a > 0")
    everyone = cross_check(model, "y", {"t": 1}, {"t": 0})
    for found, truth in [
        (treated, 2 + df["a"][df["t"] == 1].mean()),
        (above, 2 + df["a"][df["a"] > 0].mean()),
        (everyone, 2 + df["a"].mean()),
    ]:
        assert found.value == pytest.approx(truth, abs=3.5 * found.standard_error)
    assert treated.value > everyone.value + 0.2
    with pytest.raises(VacaError, match="looks at 'y', which the treatment moves"):
        cross_check(model, "y", {"t": 1}, {"t": 0}, among="y > 0")


def test_levels_of_outcomes_and_groups_of_columns():
    df = table(n=1200)
    df["y"] = np.where(df["y"] > 3, "high", np.where(df["y"] > 0, "middle", "low"))
    model = Rows(df)
    shares = {
        level: cross_check(model, "y", {"t": 1}, {"t": 0}, level=level).value
        for level in ("high", "low", "middle")
    }
    assert shares["high"] > 0.1 and shares["low"] < -0.1
    assert sum(shares.values()) == pytest.approx(0, abs=0.02)
    graph = vaca.CausalGraph.from_parents({"t": ["c"], "y": ["c", "t"], "c": []}, {"c": ["a", "b"]})
    grouped = cross_check(Rows(table(), graph), "y", {"t": 1}, {"t": 0})
    assert grouped.adjustment == ("a", "b")
    assert grouped.value == pytest.approx(2, abs=3.5 * grouped.standard_error)


def test_no_intervention_is_the_observed_mean():
    df = table(n=1000)
    both = [cross_check(Rows(df), "y", {"t": level}) for level in (1, 0)]
    contrast = cross_check(Rows(df), "y", {"t": 1}, {"t": 0})
    assert both[0].value - both[1].value == pytest.approx(contrast.value, abs=0.1)
    assert both[0].standard_error < contrast.standard_error * 1.2


def test_weights_of_rows_count():
    df = pd.concat([table(n=400, seed=1, slope=1.0), table(n=400, seed=2)], ignore_index=True)
    model = Rows(df)
    model.weights_ = np.repeat([1.9, 0.1], 400)
    alone = cross_check(Rows(df.head(400)), "y", {"t": 1}, {"t": 0})
    weighted = cross_check(model, "y", {"t": 1}, {"t": 0})
    assert weighted.value == pytest.approx(alone.value, abs=alone.standard_error)


def test_what_cannot_be_checked_says_why():
    model = Rows(table())
    with pytest.raises(VacaError, match="no arrow leads from 'y'"):
        cross_check(model, "t", {"y": 1.0})
    with pytest.raises(VacaError, match="a value for each row"):
        cross_check(model, "y", {"t": np.ones(500)})
    with pytest.raises(VacaError, match="set by the intervention itself"):
        cross_check(model, "t", {"t": 1}, {"t": 0})
    with pytest.raises(VacaError, match="too few"):
        cross_check(model, "y", {"t": 1}, data=table(n=20))
    scm = vaca.scms.load("triangle-lin")
    with pytest.raises(VacaError, match="there are no rows"):
        cross_check(scm, "x3", {"x2": 1.0})
    assert scm.effect("x3", {"x2": 1.0}).cross_check is None


def test_an_effect_carries_it_and_says_where_it_disagrees():
    df = table()
    effect = vaca.AdditiveNoise(GRAPH).fit(df).effect("y", {"t": 1}, {"t": 0})
    found = effect.cross_check
    assert found is effect.cross_check  # made once
    assert found.words.startswith("cross-check (doubly robust, adjusted for a, b): ")
    from dataclasses import replace

    far = replace(effect, value=effect.value + 3)
    assert found.agrees and not far.cross_check.agrees
    assert "The two disagree: they are" in check_effect(far).words
