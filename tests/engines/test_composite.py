"""The default engine: every column gets the mechanism that its rows support."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr

import vaca
from vaca.engines.mechanisms import locations
from vaca.engines.mechanisms.levels import Levels, LevelsRecipe, fit_levels
from vaca.engines.mechanisms.noise import NoiseCurve

XY = vaca.CausalGraph.from_edges([("x", "y")])
XWY = vaca.CausalGraph.from_edges([("x", "y"), ("w", "y")])


def mechanism(y: np.ndarray, *causes: np.ndarray, **settings) -> tuple[vaca.Composite, str]:
    """A model fitted to y and its causes, and the name of y's mechanism."""
    frame = pd.DataFrame({**dict(zip("xw", causes, strict=False)), "y": y})
    model = vaca.Composite(XY if len(causes) == 1 else XWY, **settings).fit(frame, progress=False)
    return model, str(model.columns_.loc["y", "mechanism"])


def test_each_column_gets_the_simplest_mechanism_that_fits() -> None:
    rng = np.random.default_rng(1)
    x, w, e = rng.normal(size=(3, 400))
    assert mechanism(x + w + x * w + 0.5 * e, x, w)[1] == "linear with products"
    assert mechanism(np.sin(2 * x) + 0.3 * e, x)[1].startswith("curves")
    assert "spread" in mechanism(x + np.exp(0.7 * x) * e, x)[1]
    assert mechanism(np.exp(x + 0.5 * e), x)[1] == "log: linear"
    assert "trees" in mechanism(2.0 * (np.floor(4 * x) % 2) + 0.2 * e, x)[1]


def test_trees_that_score_some_rows_only_say_nothing_of_the_others(monkeypatch) -> None:
    monkeypatch.setattr(locations, "FEW_FOR_TREES", 600)  # more are scored on one fold
    rng = np.random.default_rng(0)
    x, w, e = rng.normal(size=(3, 900))
    step = np.where((x > 0) ^ (w > 0.3), 3, 0) * np.where(x + w > 1, -1, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model, _ = mechanism(np.abs(5 + step + 0.3 * e), x, w)
    tried = model.leaderboard_
    assert tried["mechanism"].str.contains("trees").any() and tried["score"].notna().all()


def test_the_leaderboard_says_what_was_tried() -> None:
    rng = np.random.default_rng(1)
    model, name = mechanism(rng.normal(size=200), rng.normal(size=200))
    own = model.leaderboard_[model.leaderboard_["column"] == "y"]
    assert list(own.columns) == ["column", "mechanism", "score", "se", "chosen"]
    assert own["chosen"].sum() == 1
    assert own["score"].is_monotonic_decreasing
    assert name == "linear"
    assert (own["score"] + own["se"] >= own["score"].iloc[0] - 0.02)[own["chosen"]].all()


def test_families_can_be_left_out() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=300)
    _, name = mechanism(np.sin(2 * x), x, families=())
    assert name == "linear"
    with pytest.raises(vaca.VacaError, match="unknown family 'tree'"):
        mechanism(x, x, families=("tree",))


def test_outside_the_data_a_line_goes_on_and_a_product_stays_one() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=1500)
    w = x + 0.1 * rng.normal(size=1500)  # nearly tied: interventions lead where no row is
    model, _ = mechanism(x * w + 0.1 * rng.normal(size=1500), x, w)
    for value in (-1.5, 1.5):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", vaca.SupportWarning)
            drawn = model.sample(500, do={"x": value, "w": 1.0}, seed=0)["y"].mean()
        assert drawn == pytest.approx(value, abs=0.35)
    model, _ = mechanism(2 * x + 0.5 * rng.normal(size=1500), x)
    with pytest.warns(vaca.SupportWarning):
        far = model.sample(500, do={"x": 10.0}, seed=0)["y"].mean()
    assert far == pytest.approx(20, rel=0.05)


def test_a_rare_treatment_is_not_shrunk() -> None:
    rng = np.random.default_rng(0)
    found = []
    for _ in range(3):
        x = (rng.random(1000) < 0.02).astype(float)
        w = rng.normal(size=1000)
        y = 2 * x + np.sin(w) + rng.normal(size=1000)
        model, _ = mechanism(y, x, w)
        least = np.linalg.lstsq(np.c_[x, np.ones(1000), w, np.sin(w)], y, rcond=None)[0][0]
        found.append(model.effect("y", {"x": 1.0}, {"x": 0.0}, n=500).value - least)
    assert abs(np.mean(found)) < 0.1


def test_noise_that_is_not_normal_is_kept() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=600)
    two = np.where(rng.random(600) < 0.4, -2.0, 2.0) + 0.2 * rng.normal(size=600)
    model, _ = mechanism(x + two, x)
    drawn = model.sample(4000, do={"x": 0.0}, seed=1)["y"]
    assert (drawn.abs() < 1).mean() < 0.06
    assert (drawn > 0).mean() == pytest.approx(0.6, abs=0.05)
    # Heavy tails and an outlier: the effect is least squares' without them.
    y = x + rng.standard_t(1.5, size=600)
    y[0] = 5000.0
    model, _ = mechanism(y, x)
    assert model.effect("y", {"x": 1.0}, {"x": 0.0}, n=500).value == pytest.approx(1, abs=0.15)


def test_a_column_without_noise_is_a_function_of_its_causes() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, 300))
    model, _ = mechanism(2 * x - w, x, w)
    drawn = model.sample(100, seed=0)
    np.testing.assert_allclose(drawn["y"], 2 * drawn["x"] - drawn["w"], atol=1e-5)
    frame = pd.DataFrame({"x": x, "w": w, "y": 2 * x - w})
    moved = model.counterfactual(frame, {"x": 3.0})
    np.testing.assert_allclose(moved["y"], 6 - w, atol=1e-5)


def test_a_value_that_repeats_at_the_edge_has_a_probability_of_its_own() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=600)
    y = np.where(rng.random(600) < 1 / (1 + np.exp(2 * x)), 0.0, np.exp(x + 0.3 * x))
    y = np.where(y > 0, y * np.exp(0.3 * rng.normal(size=600)), 0.0)
    model, name = mechanism(y, x)
    assert name.startswith("0 or not: ")
    for value, share in ((-1.0, 0.88), (1.0, 0.12)):
        drawn = model.sample(2000, do={"x": value}, seed=0)["y"]
        assert (drawn == 0).mean() == pytest.approx(share, abs=0.06)
        assert (drawn >= 0).all()
    frame = pd.DataFrame({"x": x, "y": y})
    pd.testing.assert_frame_equal(pd.DataFrame(model.counterfactual(frame, {})), frame)
    up = model.counterfactual(frame, {"x": np.minimum(frame["x"] + 1.0, x.max())})["y"]
    assert (up >= y).all()  # more of the cause: never less of a column that rises with it


def test_noise_whose_shape_changes_gets_a_network(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("vaca.engines.mechanisms.flow.STEPS", 250)
    rng = np.random.default_rng(0)
    x, u = rng.uniform(0, 2, 800), rng.normal(size=800)
    y = np.where(ndtr(u) < 0.2 + 0.3 * x, -1.0, 1.0) + 0.2 * u
    model, name = mechanism(y, x, families=("curves", "spread", "flow"))
    assert name.endswith("then a flow")
    for value in (0.1, 1.8):  # two humps, of which now one and now the other is the larger
        drawn = model.sample(2000, do={"x": value}, seed=0)["y"]
        assert (drawn < 0).mean() == pytest.approx(0.2 + 0.3 * value, abs=0.08)
        assert (drawn.abs() < 0.5).mean() < 0.15
    frame = pd.DataFrame({"x": x, "y": y})
    moved = model.counterfactual(frame, {"x": 1.0})["y"]
    assert np.mean(np.abs(moved - (np.sign(u) + 0.2 * u))) < 0.2
    model.save(tmp_path / "m")
    again = vaca.load(tmp_path / "m").counterfactual(frame, {"x": 1.0})["y"]
    np.testing.assert_array_equal(again, moved)
    assert np.isfinite(model._refit(model.rows_, np.ones(800), 0).sample(50)["y"]).all()


def test_refits_are_of_the_same_mechanisms_under_other_weights() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, 300))
    frame = pd.DataFrame({"x": x, "w": w > 0, "y": x + (w > 0) + rng.normal(size=300)})
    model = vaca.Composite(XWY).fit(frame, refits=8, progress=False)
    values = [m.effect("y", {"x": 1.0}, {"x": 0.0}, n=200).value for m in (model, *model.refits_)]
    # The standard error of a slope at n = 300 with unit noise is 0.058.
    assert 0.02 < np.std(values[1:]) < 0.15
    same = model._refit(model.rows_, np.ones(300), 0)
    again = same.effect("y", {"x": 1.0}, {"x": 0.0}, n=200).value
    assert again == pytest.approx(values[0], abs=1e-6)


def test_rows_of_no_weight_are_as_if_they_were_not_there() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=400)})
    frame["y"] = frame["x"] + rng.standard_t(3, size=400)
    some = vaca.Composite(XY).fit(frame[:250], progress=False)
    weights = np.append(np.ones(250), np.zeros(150))
    whole = vaca.Composite(XY).fit(frame, weights=weights, progress=False)
    assert whole.n_rows_ == some.n_rows_ == 250
    boards = (m.leaderboard_.groupby("mechanism")["score"].max() for m in (some, whole))
    known, found = boards
    assert set(known.index) == set(found.index)
    np.testing.assert_allclose(found[known.index], known, atol=0.05)  # the folds are others


def test_weights_count_rows() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    y = np.where(np.arange(200) < 100, 2.0, -1.0) * x + 0.1 * rng.normal(size=200)
    frame = pd.DataFrame({"x": x, "y": y})
    weights = np.where(np.arange(200) < 100, 1.0, 0.0)
    model = vaca.Composite(XY).fit(frame, weights=weights, progress=False)
    assert model.effect("y", {"x": 1.0}, {"x": 0.0}, n=100).value == pytest.approx(2, abs=0.1)


def test_it_is_the_same_after_save_and_load(tmp_path) -> None:
    scm = vaca.scms.load("adult")
    frame = scm.sample(120, seed=0)
    model = vaca.Composite(scm.graph, families=("curves", "products", "spread", "scales"))
    model.fit(frame, refits=2, progress=False)
    model.save(tmp_path / "m")
    loaded = vaca.load(tmp_path / "m")
    pd.testing.assert_frame_equal(loaded.sample(50, seed=1), model.sample(50, seed=1))
    pd.testing.assert_frame_equal(loaded.leaderboard_, model.leaderboard_)
    pd.testing.assert_series_equal(loaded.log_prob(frame), model.log_prob(frame))
    mine, theirs = (m.refits_[1].sample(20, seed=1) for m in (model, loaded))
    pd.testing.assert_frame_equal(mine, theirs)


@pytest.mark.parametrize("width", [np.inf, 0.35, 0.04])
def test_a_curve_of_noise_is_increasing_and_its_density_sums_to_one(width: float) -> None:
    rng = np.random.default_rng(0)
    residual = rng.exponential(size=500) + 2.0 * (rng.random(500) < 0.3)
    curve = NoiseCurve.fit(residual, width=width)
    at = np.linspace(-8, 14, 20_001)
    noise = curve.noise(at)
    assert (np.diff(noise) > 0).all()
    np.testing.assert_allclose(curve.residual(noise), at, atol=1e-9)
    total = np.exp(curve.log_density(at)).sum() * (at[1] - at[0])
    assert total == pytest.approx(1.0, abs=0.02)


def test_noise_that_multiplies_a_sum_leaves_the_wall_where_it_is() -> None:
    rng = np.random.default_rng(0)
    x, w, u = rng.normal(size=(3, 1200))
    model, name = mechanism((0.2 + x**2 + w**2) * np.abs(u) - 1, x, w)
    assert name == "in proportion: squares"
    drawn = model.sample(2000, do={"x": 0.0, "w": 0.0}, seed=0)["y"]
    assert drawn.min() >= -1.001
    assert drawn.mean() == pytest.approx(0.2 * np.sqrt(2 / np.pi) - 1, abs=0.05)


def test_jumps_are_found_where_they_are_and_add_up() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, 600))
    y = 2.0 * (x > 0.5) - 3.0 * (w > -1.0) + 0.3 * w + 0.2 * rng.normal(size=600)
    model, name = mechanism(y, x, w)
    assert name == "linear with steps"
    cuts = model._mechanisms["y"].location.design.cuts
    np.testing.assert_allclose(cuts[np.argsort(cuts[:, 0]), 1], [0.5, -1.0], atol=0.05)
    low, high = (model.sample(500, do={"x": v, "w": 0.0}, seed=0)["y"].mean() for v in (0.4, 0.6))
    assert high - low == pytest.approx(2.0, abs=0.15)
    assert "steps" not in mechanism(np.tanh(x) + 0.2 * rng.normal(size=600), x)[1]


def test_ordered_levels_share_one_function() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=500)
    code = np.searchsorted([-1.0, 0.5, 2.5], 1.5 * x + rng.logistic(size=500))
    y = pd.Categorical.from_codes(code, ["none", "some", "much", "all"], ordered=True)
    model, name = mechanism(y, x)
    assert name.startswith("ordered logistic, linear")
    drawn = model.sample(4000, do={"x": 1.0}, seed=0)["y"]
    truth = np.diff(1 / (1 + np.exp(1.5 - np.array([-np.inf, -1.0, 0.5, 2.5, np.inf]))))
    np.testing.assert_allclose(drawn.value_counts(normalize=True, sort=False), truth, atol=0.06)
    # More of the cause never lowers a level.
    frame = pd.DataFrame({"x": x, "y": y})
    up = model.counterfactual(frame, {"x": np.minimum(x + 1.0, x.max())})["y"]
    assert (up.cat.codes >= frame["y"].cat.codes).all()
    assert "ordered" not in mechanism(pd.Categorical(np.array(list("badc"))[code]), x**2 + x)[1]


def test_a_level_that_occurs_only_with_another_gets_no_extreme_odds() -> None:
    """Forty rows have both, and of all of them y is true: none tells which of the two did it."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, 2000)
    w = (rng.random(2000) < 0.04) & (x == 1)
    y = rng.random(2000) < np.where(x == 1, 0.8, 0.2)
    y[w] = True
    model, name = mechanism(y.astype(int), x, w.astype(int))
    assert name.endswith("shrunk")
    with pytest.warns(vaca.SupportWarning, match="no row of the data"):
        share = float(model.sample(4000, do={"x": 0, "w": 1}, seed=0)["y"].mean())
    assert 0.2 < share < 0.95  # 0.998 if nothing shrinks it
    # A rule without exceptions is one that rows show, and nothing holds it back.
    strict, name = mechanism(x, x, w.astype(int))
    assert "shrunk" not in name
    assert float(strict.sample(4000, do={"x": 1}, seed=0)["y"].mean()) > 0.99


def test_odds_jump_where_a_cause_passes_a_value(tmp_path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=1500)
    y = (rng.random(1500) < np.where((x > -0.5) & (x < 0.5), 0.9, 0.2)).astype(int)
    model, name = mechanism(y, x)
    assert "with steps" in name
    model.save(tmp_path / "m")
    again = vaca.load(tmp_path / "m")
    for at, truth in ((-0.7, 0.2), (-0.3, 0.9), (0.3, 0.9), (0.7, 0.2)):
        share = float(again.sample(4000, do={"x": at}, seed=0)["y"].mean())
        assert share == pytest.approx(truth, abs=0.08)
    assert "steps" not in mechanism((rng.random(1500) < ndtr(2 * x)).astype(int), x)[1]


def test_a_level_that_never_occurred_has_no_room_between_thresholds() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 1))
    y = np.where(x[:, 0] + rng.logistic(size=200) > 0, 3, 1)
    fitted, density = fit_levels(
        LevelsRecipe(ordered=True), x, y, np.ones(200), np.arange(200) % 3, [0], 5
    )
    assert np.exp(fitted.log_levels(x))[:, [0, 2, 4]].max() < 1e-8
    assert density.mean() > np.log(0.5)
    again = Levels.from_arrays(fitted.arrays())
    np.testing.assert_array_equal(again.log_levels(x), fitted.log_levels(x))


def test_collinear_causes_share_what_they_do_together() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    w = x + 1e-4 * rng.normal(size=300)
    model, name = mechanism(x + w + 0.5 * rng.normal(size=300), x, w)
    assert name == "linear"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", vaca.SupportWarning)
        both = model.sample(500, do={"x": 1.0, "w": 1.0}, seed=0)["y"].mean()
    assert both == pytest.approx(2.0, abs=0.2)


def test_the_spread_of_an_outcome_follows_its_causes() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=800)
    model, _ = mechanism(x + np.exp(0.7 * x) * rng.normal(size=800), x)
    for value in (-1.0, 0.0, 1.0):
        drawn = model.sample(3000, do={"x": value}, seed=0)["y"]
        assert drawn.std() == pytest.approx(np.exp(0.7 * value), rel=0.2)


@pytest.mark.parametrize("n", [100, 300])
def test_few_rows_get_a_simple_mechanism(n: int) -> None:
    rng = np.random.default_rng(n)
    errors = []
    for _ in range(4):
        x, w, e = rng.normal(size=(3, n))
        model, name = mechanism(x + 0.5 * w + e, x, w)
        least = np.linalg.lstsq(np.c_[x, w, np.ones(n)], x + 0.5 * w + e, rcond=None)[0][0]
        errors.append(model.effect("y", {"x": 1.0}, {"x": 0.0}, n=200).value - least)
        assert "flow" not in name
        assert "trees" not in name
    assert np.abs(errors).mean() < 0.08


def test_counts_stay_counts_and_may_have_too_many_zeros() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=800)
    y = np.where(rng.random(800) < 0.4, 0, rng.poisson(np.exp(1.5 + 0.3 * x)))
    frame = pd.DataFrame({"x": x, "y": y})
    model = vaca.Composite(XY, {"y": "count"}).fit(frame, progress=False)
    drawn = model.sample(3000, seed=0)["y"]
    assert (drawn == drawn.round()).all()
    assert drawn.min() >= 0
    assert (drawn == 0).mean() == pytest.approx((y == 0).mean(), abs=0.05)
    assert drawn.mean() == pytest.approx(y.mean(), rel=0.1)


def test_what_is_sent_to_other_processes_does_not_change_meanwhile(monkeypatch) -> None:
    """A dict that grew while another thread pickled it ended fits of many columns."""
    from vaca.engines import composite

    sent, each = [], composite.each

    def watched(work, shared, tasks, **where):
        sent.append(shared[0])
        return each(work, shared, tasks, **where)

    monkeypatch.setattr(composite, "each", watched)
    rng = np.random.default_rng(0)
    model, _ = mechanism(rng.normal(size=60), rng.normal(size=60))
    assert set(model._mechanisms) == {"x", "y"} and not sent[0]._mechanisms


def test_the_same_seed_gives_the_same_model() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=150)
    y = np.sin(x) + 0.3 * rng.normal(size=150)
    one, two = (mechanism(y, x, seed=3)[0] for _ in range(2))
    pd.testing.assert_frame_equal(one.leaderboard_, two.leaderboard_)
    pd.testing.assert_frame_equal(one.sample(50, seed=1), two.sample(50, seed=1))


def test_a_bend_is_not_taken_for_a_step_and_a_step_is():
    rng = np.random.default_rng(0)
    x = rng.normal(size=4000)
    graph = vaca.CausalGraph.from_edges([("x", "y")])
    chosen = {}
    for name, mean in (("bend", 2 * np.tanh(x)), ("step", 2.0 * (x > 0.3))):
        frame = pd.DataFrame({"x": x, "y": mean + 0.5 * rng.normal(size=len(x))})
        board = vaca.Composite(graph).fit(frame, progress=False).leaderboard_
        chosen[name] = board.loc[board["chosen"] & (board["column"] == "y"), "mechanism"].item()
    assert chosen["bend"] == "curves"
    assert "steps" in chosen["step"]


def test_refits_do_not_explode_where_the_spread_comes_near_zero():
    """The noise of a row over a scale near zero made some refits draw values of hundreds."""
    rng = np.random.default_rng(5)
    n = 300
    w = rng.normal(size=n)
    frame = pd.DataFrame({"w": w, "y": w + np.maximum(0.02, 1 + 0.5 * w) * rng.normal(size=n)})
    graph = vaca.CausalGraph.from_edges([("w", "y")])
    model = vaca.Composite(graph).fit(frame, refits=6, progress=False)
    spreads = [refit.sample(2000, seed=0)["y"].std() for refit in model.refits_]
    assert max(spreads) < 1.6 * frame["y"].std()


def test_squares_and_cubes_need_few_terms_and_go_on_straight() -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(size=4000)
    model, name = mechanism(-1.5 * x**2 + rng.normal(size=4000), x)
    assert name == "squares"
    with pytest.warns(vaca.SupportWarning):
        far = model.sample(200, do={"x": 30.0}, seed=0)["y"].mean()
    assert -1.5 * 900 < far < -1.5 * 9  # the tangent at the end of the data
    assert mechanism((x - 1) ** 3 + rng.normal(size=4000), x)[1] == "cubes"


def test_a_column_stays_within_its_walls() -> None:
    rng = np.random.default_rng(6)
    x = rng.normal(size=800)
    y = 1.0 + 0.5 * x + 0.5 * rng.normal(size=800)
    for wall, high in ((np.abs(y), np.inf), (-np.abs(y), 0.0), (np.clip(ndtr(x + y), 0, 1), 1.0)):
        low = -np.inf if high == 0.0 else 0.0
        model, _ = mechanism(wall, x, families=())  # a line with added noise: it would pass them
        rows = model.rows_["y"]
        frame = pd.DataFrame({"x": x, "y": wall})
        changed = model.counterfactual(frame, {"x": -3.0})["y"]
        for found in (model.sample(2000, seed=0)["y"], changed):
            assert found.between(low, high).all()
        noise = model.abduct({"x": x, "y": wall})
        noise = {k: v for k, v in noise.items() if not k.startswith("value/")}
        assert np.allclose(model.simulate(noise, {"x": x})["y"], wall, atol=1e-5 * rows.std())


def test_a_line_far_from_its_wall_is_a_line() -> None:
    rng = np.random.default_rng(7)
    x = rng.normal(size=300)
    y = 170.0 + 5.0 * x + rng.normal(size=300)
    model, _ = mechanism(y, x, families=())
    least = np.polyfit(x, y, 1)[0]
    assert model.effect("y", {"x": 1.0}, {"x": 0.0}).value == pytest.approx(least, abs=1e-6)


def test_a_logarithm_does_not_explode_outside_the_data() -> None:
    rng = np.random.default_rng(8)
    x = rng.normal(size=400)
    y = np.exp(x + 0.3 * rng.normal(size=400))
    model, name = mechanism(y, x)
    assert name.startswith("log: ")
    frame = pd.DataFrame({"x": x, "y": y})
    with pytest.warns(vaca.SupportWarning):
        far = model.counterfactual(frame, {"x": 1000.0})["y"]
    assert far.max() < 1e4 * y.max()
    at = model.counterfactual(frame, {"x": x.max()})["y"]
    assert np.allclose(np.log(at) - np.log(y), x.max() - x, atol=0.5)


def test_a_point_answer_needs_no_way_through_the_noise() -> None:
    scm = vaca.scms.load("triangle-nlin")
    rows = scm.sample(600, seed=0)
    model = vaca.Composite(scm.graph).fit(rows)
    x = model.schema_.encode(rows)
    do = {"x1": np.full(len(rows), 0.7)}
    u = model._abduct_frame(rows, x, None, ["x2", "x3"])
    assert any(key.startswith("left/") for key in u)  # else this tests nothing
    told, whole = model.simulate(u, do), model.simulate(model.abduct(x), do)
    for column in rows:
        assert np.abs(told[column] - whole[column]).max() < 1e-9 * rows[column].std()
