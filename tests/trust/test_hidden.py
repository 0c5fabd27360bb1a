"""Hidden common causes: sensemakr's formulas computed by hand, and causes of known strength."""

import numpy as np
import pandas as pd
import pytest

import vaca
from vaca.errors import VacaError
from vaca.model.answers import Effect
from vaca.trust.hidden import robustness_value

pytestmark = pytest.mark.usefixtures("without_trees")

GRAPH = vaca.CausalGraph.from_parents({"age": [], "job": [], "t": ["age", "job"],
                                       "y": ["age", "job", "t"]})  # fmt: skip


def straight(n=1500, seed=0, slope=0.5):
    rng = np.random.default_rng(seed)
    age, job = rng.normal(size=(2, n))
    t = 0.6 * age + 0.2 * job + rng.normal(size=n)
    y = slope * t + 0.5 * age + 0.3 * job + rng.normal(size=n)
    return pd.DataFrame({"age": age, "job": job, "t": t, "y": y})


def effect_of(df, treatment=1.0, control=0.0):
    """An effect of a model that keeps these rows; how it was fitted does not matter here."""
    model = vaca.AdditiveNoise(GRAPH)
    model.schema_ = vaca.Schema.infer(df, GRAPH)
    model.rows_ = model.schema_.encode(df)
    return Effect(0.5, 0.1, "y", {"t": treatment}, {"t": control}, model=model)


def regression(df, outcome, inputs):
    """Coefficient, error and degrees of freedom of the first input, by least squares."""
    x = np.column_stack([np.ones(len(df)), *(df[name] for name in inputs)])
    beta, *_ = np.linalg.lstsq(x, df[outcome], rcond=None)
    residual = df[outcome] - x @ beta
    degrees = len(df) - x.shape[1]
    cov = np.linalg.inv(x.T @ x) * (residual @ residual) / degrees
    return beta[1], np.sqrt(cov[1, 1]), degrees, float(residual @ residual)


@pytest.fixture(scope="module")
def found():
    df = straight()
    return df, effect_of(df).sensitivity()


def test_on_a_straight_table_it_is_sensemakrs(found):
    """Cinelli and Hazlett (2020): RV from t and df; with confidence, from t less its quantile."""
    from scipy.stats import t

    df, answer = found
    slope, error, degrees, _ = regression(df, "y", ["t", "age", "job"])
    f = abs(slope / error) / np.sqrt(degrees)
    f_alpha = f - t.ppf(0.975, degrees - 1) / np.sqrt(degrees - 1)
    for value, ratio in [
        (answer.robustness_value, f),
        (answer.robustness_value_interval, f_alpha),
    ]:
        assert value == pytest.approx(0.5 * (np.sqrt(ratio**4 + 4 * ratio**2) - ratio**2), rel=0.02)
    # The bound itself, sensemakr's adjusted estimate: |estimate| - se * sqrt(df * bias factor).
    low, high = answer.bounds(0.1, 0.2)
    bias = error * np.sqrt(degrees * 0.2 * 0.1 / 0.9)
    assert (low, high) == pytest.approx((slope - bias, slope + bias), rel=0.02)


def test_observed_causes_are_measured_as_sensemakr_does(found):
    df, answer = found
    for name, rest in [("age", ["job"]), ("job", ["age"])]:
        full = regression(df, "t", ["age", "job"])[3]
        less = regression(df, "t", rest)[3]
        assert answer.benchmarks.loc[name, "treatment"] == pytest.approx(less / full - 1, abs=0.02)
    assert answer.benchmarks.index[0] == "age"
    times = answer.benchmarks.loc["age", "times"]
    share = answer.benchmarks.loc["age"] * times
    low, high = answer.bounds(share["treatment"], share["outcome"])
    assert min(abs(low), abs(high)) == pytest.approx(0, abs=1e-9)  # just explained away


def test_robustness_value_moves_the_effect_to_zero(found):
    _, answer = found
    share = answer.robustness_value
    assert answer.bounds(share, share)[0] == pytest.approx(0, abs=1e-9)
    assert 0 < answer.robustness_value_interval < share
    wide, plain = answer.bounds(0.1, 0.1, level=0.95), answer.bounds(0.1, 0.1)
    assert wide[0] < plain[0] < plain[1] < wide[1]
    assert answer.bounds(0, 0, level=0.95) == pytest.approx(answer.check.interval())


def test_a_hidden_cause_of_known_strength_stays_in_the_bounds():
    """A cause that is left out, of which both shares are known: the truth lies in the bounds."""
    inside, values = 0, []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        age, job, hidden = rng.normal(size=(3, 600))
        t = 0.5 * age + 0.5 * hidden + rng.normal(size=600)
        y = 1.0 * t + 0.5 * age + 0.8 * hidden + rng.normal(size=600)
        df = pd.DataFrame({"age": age, "job": job, "t": t, "y": y})
        answer = effect_of(df).sensitivity()
        r2_t = 0.25 / 1.25
        left = 0.8**2 * (1 - r2_t)  # variance of hidden given t and age is 1 - r2_t
        low, high = answer.bounds(r2_t, left / (1 + left), level=0.95)
        inside += low < 1.0 < high
        values.append(answer.check.value)
    assert inside >= 4
    assert np.mean(values) > 1.15  # and the estimate itself is biased


def test_words_say_what_is_needed(found):
    _, answer = found
    assert "as strong as age, the strongest cause in the table" in answer.sentence
    assert str(answer) == answer.sentence
    none = effect_of(straight(n=300, slope=0.0)).sensitivity()
    assert none.robustness_value_interval == 0
    assert "The cross-check's interval holds zero as it is" in none.sentence
    with pytest.raises(VacaError, match="r2_treatment is a share"):
        answer.bounds(1.0, 0.5)
    scm = vaca.scms.load("triangle-lin")
    with pytest.raises(VacaError, match="there are no rows"):
        scm.effect("x3", {"x2": 1.0}, {"x2": 0.0}).sensitivity()


def test_levels_and_pictures(tmp_path):
    df = straight(n=500)
    df["t"] = (df["t"] > 0).astype(int)
    answer = effect_of(df, 1, 0).sensitivity()
    assert 0 < answer.robustness_value < 1
    ax = answer.plot()
    assert "hidden cause" in ax.get_xlabel()
    assert [text.get_text() for text in ax.texts if text.get_text() in ("age", "job")]
    vaca.plot.save_picture(ax, tmp_path / "hidden.png")
    assert (tmp_path / "hidden.png").stat().st_size > 1000


def test_robustness_value_by_its_definition():
    """RV solves RV / sqrt(1 - RV) = f."""
    for f in (0.0, 0.05, 0.5, 3.0):
        share = robustness_value(f)
        assert share / np.sqrt(1 - share) == pytest.approx(f)
