"""What every engine's `fit` keeps: rows, weights, refits."""

from __future__ import annotations

from copy import copy

import numpy as np
import pandas as pd
import pytest

import vaca
from vaca.engines import engine as module
from vaca.errors import VacaError

GRAPH = vaca.CausalGraph.from_edges([("x", "y")])


def _table(n: int = 60, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return pd.DataFrame({"x": x, "y": 2 * x + rng.normal(size=n)})


class Weighed(vaca.AdditiveNoise):
    """An engine whose refits note what they were given."""

    def _refit(self, train, weights, seed):
        other = copy(self)
        other.seen = train, weights, seed
        return other


def test_rows_are_kept_in_order_and_saved(tmp_path):
    """All rows, also those held out, as they were."""
    df = _table()
    model = vaca.AdditiveNoise(GRAPH).fit(df)
    model.save(tmp_path / "m")
    for found in (model, vaca.load(tmp_path / "m")):
        assert list(found.rows_) == ["x", "y"]
        np.testing.assert_array_equal(found.rows_["y"], df["y"])


def test_a_long_table_is_kept_in_part(monkeypatch):
    """So that a saved model does not grow with its table."""
    monkeypatch.setattr(module, "KEPT_ROWS", 25)
    df = _table()
    rows = vaca.AdditiveNoise(GRAPH).fit(df).rows_
    assert len(rows["x"]) == 25
    pairs = set(zip(df["x"], df["y"], strict=True))
    assert pairs >= set(zip(rows["x"], rows["y"], strict=True))


def test_refits_see_the_whole_table_under_weights():
    """Each its own weights with the mean 1, and its own seed."""
    df = _table()
    model = Weighed(GRAPH, seed=5).fit(df, refits=3)
    rows, weights, seeds = zip(*(member.seen for member in model.refits_), strict=True)
    np.testing.assert_array_equal(rows[0]["x"], df["x"])
    assert [w.mean() for w in weights] == pytest.approx([1.0] * 3)
    assert len({*seeds, 5}) == 4
    assert abs(np.corrcoef(weights[0], weights[1])[0, 1]) < 0.5
    again = Weighed(GRAPH, seed=5).fit(df, refits=3).refits_[2].seen[1]
    np.testing.assert_array_equal(again, weights[2])


def test_given_rows_for_validation_belong_to_the_table_of_refits():
    """The early stop is made already."""
    model = Weighed(GRAPH).fit(_table(40), _table(20, seed=1), refits=2)
    assert len(model.refits_[0].seen[1]) == 60


def test_refits_are_saved(tmp_path):
    """As many, with the same answers."""
    model = vaca.AdditiveNoise(GRAPH).fit(_table())
    model.refits_ = [vaca.AdditiveNoise(GRAPH).fit(_table(seed=k)) for k in (1, 2)]
    model.save(tmp_path / "m")
    loaded = vaca.load(tmp_path / "m")
    for one, other in zip(model.refits_, loaded.refits_, strict=True):
        pd.testing.assert_frame_equal(one.sample(5, seed=0), other.sample(5, seed=0))
    pd.testing.assert_frame_equal(model.sample(5, seed=0), loaded.sample(5, seed=0))


def test_an_engine_without_quick_refits_says_so():
    """With what to do instead."""
    with pytest.raises(VacaError, match="CAREFL has no quick refits.*Ensemble"):
        vaca.CAREFL(GRAPH, epochs=1).fit(_table(), refits=2)


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (np.ones(3), "shape"),
        (np.full(60, np.nan), "row 0 has nan"),
        (np.r_[np.ones(59), -1.0], "row 59 has -1"),
        (np.zeros(60), "0 rows have a weight above 0"),
        (pd.Series(np.ones(60), index=np.arange(1, 61)), "another index"),
        (["a"] * 60, "one number for each row"),
    ],
)
def test_wrong_weights(weights, words):
    """Named before anything is fitted."""
    with pytest.raises(VacaError, match=words):
        vaca.AdditiveNoise(GRAPH).fit(_table(), weights=weights)


@pytest.mark.parametrize("refits", [-1, 1, 2.5, True])
def test_wrong_refits(refits):
    """A spread needs two."""
    with pytest.raises(VacaError, match="refit"):
        vaca.AdditiveNoise(GRAPH).fit(_table(), refits=refits)


@pytest.mark.parametrize(
    "engine",
    [vaca.CausalFlow(GRAPH, steps=40, polish_steps=0), vaca.VACA(GRAPH, steps=100)],
    ids=["CausalFlow", "VACA"],
)
def test_networks_weigh_rows_and_refit(engine, tmp_path, monkeypatch):
    """Rows that count little are forgotten; refits lie near the fit, are not it, and are saved."""
    monkeypatch.setattr("vaca.engines.causal_flow.REFIT_STEPS", 5)
    monkeypatch.setattr("vaca.engines.latent.REFIT_STEPS", 5)
    df = _table(120)
    df["y"] += np.where(np.arange(120) < 60, 0.0, 6.0)
    weights = np.where(np.arange(120) < 60, 1.0, 1e-3)
    model = engine.fit(df, weights=weights, refits=2, progress=False)
    assert model.sample(500, seed=0)["y"].mean() < 2
    model.save(tmp_path / "m")
    values = [m.effect("y", {"x": 1.0}, {"x": 0.0}, n=200).value for m in (model, *model.refits_)]
    assert len(set(values)) == 3
    assert vaca.load(tmp_path / "m").effect("y", {"x": 1.0}, {"x": 0.0}, n=200).members == (
        pytest.approx(values[1:], abs=1e-3)
    )


def test_an_engine_that_cannot_weigh_says_so():
    """Before anything is fitted."""
    with pytest.raises(VacaError, match="CAREFL cannot use weights"):
        vaca.CAREFL(GRAPH, epochs=1).fit(_table(), weights=np.ones(60))


def test_refits_are_counted_on_the_bar(monkeypatch):
    from contextlib import contextmanager

    from vaca.engines import engine

    told: list[tuple[str, int, bool | None]] = []
    done: list[int] = []

    class Bar:
        def advance(self, count: int = 1) -> None:
            done.append(count)

    @contextmanager
    def bar(label, total=None, *, unit="", wanted=None):
        told.append((label, total, wanted))
        yield Bar()

    monkeypatch.setattr(engine, "progress_bar", bar)
    rng = np.random.default_rng(0)
    df = pd.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60)})
    graph = vaca.CausalGraph.from_edges([("a", "b")])
    vaca.AdditiveNoise(graph).fit(df, refits=3)
    vaca.AdditiveNoise(graph).fit(df, progress=True)
    assert told == [("refits", 3, None), ("refits", 0, False)]
    assert done == [1, 1, 1]
