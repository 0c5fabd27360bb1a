"""`auto` finds the engine that answers best, and says why."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import vaca
from vaca.engines.additive_noise import AdditiveNoise
from vaca.engines.selection import score

pytestmark = pytest.mark.usefixtures("without_trees")


class Deaf(AdditiveNoise):
    """Fits every column well and ignores the parents: a good observational fit of the margins."""

    @property
    def _parents(self):
        return {c: () for node in self.graph.order for c in self.graph.columns(node)}


def table(n: int = 400, seed: int = 0) -> tuple[pd.DataFrame, vaca.CausalGraph]:
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    x = rng.normal(size=n) + group
    y = np.sin(x) + 0.2 * rng.normal(size=n)
    frame = pd.DataFrame({"group": np.array(list("abc"))[group], "x": x, "y": y})
    return frame, vaca.CausalGraph.from_edges([("group", "x"), ("x", "y")])


def test_an_engine_that_ignores_the_parents_scores_worse_in_every_causal_part():
    frame, graph = table()
    rows = frame.tail(150)
    good = score(AdditiveNoise(graph).fit(frame.head(250)), rows)
    deaf = score(Deaf(graph).fit(frame.head(250)), rows)
    for part in ("mechanisms", "roots", "counterfactuals", "score"):
        assert deaf[part] > 2 * good[part], part


def test_the_truth_itself_scores_near_zero():
    scm = vaca.scms.load("triangle-nlin")
    parts = score(scm, scm.sample(600, seed=1))
    other = score(AdditiveNoise(scm.graph).fit(scm.sample(300, seed=2)), scm.sample(600, seed=1))
    assert parts["score"] < other["score"]
    assert parts["observational"] < 1.5


def test_the_better_engine_is_given_back_fitted_with_a_leaderboard():
    frame, graph = table()
    model = vaca.auto(frame, graph, engines=[Deaf(graph), "AdditiveNoise"], progress=False)
    board = model.auto_.leaderboard_
    assert type(model) is AdditiveNoise
    assert list(board.index) == ["AdditiveNoise", "Deaf"]
    assert board["score"].is_monotonic_increasing
    assert model.n_rows_ == len(frame)
    assert len(model.sample(5, seed=0)) == 5


def test_same_seed_same_scores():
    frame, graph = table(100)
    boards = [
        vaca.auto(frame, graph, engines=["AdditiveNoise"], seed=3).auto_.leaderboard_
        for _ in range(2)
    ]
    pd.testing.assert_frame_equal(
        boards[0].drop(columns="seconds"), boards[1].drop(columns="seconds")
    )


def test_an_engine_that_fails_is_noted_and_left_out():
    class Broken(AdditiveNoise):
        def _fit(self, *args):
            raise RuntimeError("out of luck")

    frame, graph = table(150)
    model = vaca.auto(frame, graph, engines=[Broken(graph), "AdditiveNoise"])
    assert "out of luck" in model.auto_.leaderboard_.loc["Broken", "note"]
    with pytest.raises(vaca.VacaError, match="no engine could be fitted: Broken: RuntimeError"):
        vaca.auto(frame, graph, engines=[Broken(graph)])


def test_a_time_budget_skips_what_does_not_fit_in():
    frame, graph = table(150)
    model = vaca.auto(
        frame, graph, engines=["AdditiveNoise", "CausalFlow"], time_budget=1e-3, progress=False
    )
    board = model.auto_.leaderboard_
    assert board.loc["CausalFlow", "note"] == "no time left"
    assert model.n_rows_ < len(frame)  # no time to fit it to all rows


def test_a_level_seen_once_is_no_problem():
    frame, graph = table(120)
    frame.loc[0, "group"] = "rare"
    model = vaca.auto(frame, graph, engines=["AdditiveNoise"])
    assert "rare" in model.schema_.levels("group")


def test_a_wrong_name_is_explained():
    frame, graph = table(60)
    with pytest.raises(vaca.VacaError, match="unknown engine 'Flow'"):
        vaca.auto(frame, graph, engines=["Flow"])
    with pytest.raises(vaca.VacaError, match="no engines"):
        vaca.auto(frame, graph, engines=[])


def test_a_score_without_time_is_one_round(monkeypatch):
    truth = vaca.scms.load("chain-lin")
    rows = truth.sample(100, seed=1)
    hurried = score(truth, rows, seed=2, time_budget=0.0)
    assert hurried != score(truth, rows, seed=2)
    monkeypatch.setattr("vaca.engines.selection.REPEATS", 1)
    assert hurried == score(truth, rows, seed=2)


def test_what_is_wrong_with_a_table_is_said_once_and_not_by_every_engine():
    rng = np.random.default_rng(0)
    a = rng.normal(size=60)
    frame = pd.DataFrame({"a": a, "b": 2 * a + rng.normal(size=60), "k": 5.0})
    graph = vaca.CausalGraph.from_edges([("a", "b"), ("k", "b")])
    with pytest.warns(vaca.VacaWarning, match="'k' is constant") as said:
        vaca.auto(
            frame, graph, engines=["AdditiveNoise", vaca.CausalFlow(graph, steps=2, polish_steps=2)]
        )
    assert len([w for w in said if "is constant" in str(w.message)]) == 1
