"""What the intervals of an audit hold, and what a fitted classifier sees."""

from __future__ import annotations

from copy import copy

import numpy as np
import pandas as pd
import pytest
from scipy.stats import uniform
from typer.testing import CliRunner

import vaca
from vaca.commands.app import app
from vaca.fairness.classifiers import features_for, make_classifier
from vaca.scm import Bernoulli

GRAPH = vaca.CausalGraph.from_edges([("sex", "pay"), ("age", "pay")])


def _table(n: int = 150, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    sex, age = rng.integers(2, size=n), rng.normal(size=n)
    return pd.DataFrame({"sex": sex, "age": age, "pay": sex + age + rng.normal(size=n)})


def _score(frame: pd.DataFrame) -> np.ndarray:
    return np.clip(0.5 + 0.1 * frame["pay"], 0, 1).to_numpy(dtype=float)


def test_points_do_not_hide_small_chances():
    """Nobody's likeliest level changes with sex; the chance of one changes by a tenth."""
    scm = vaca.StructuralCausalModel(
        {"sex": lambda u: u, "job": lambda sex, u: (u < 0.2 + 0.1 * sex).astype(int)},
        {"sex": Bernoulli(0.5), "job": uniform(0, 1)},
        kinds={"sex": "binary", "job": "binary"},
    )
    model = vaca.Composite(vaca.CausalGraph.from_edges([("sex", "job")])).fit(
        scm.sample(400, seed=0)
    )
    people = scm.sample(200, seed=1)
    by_points = vaca.audit(
        model, lambda f: f["job"].to_numpy(float), people, "sex", draws=None, paths=False
    )
    by_draws = vaca.audit(
        model, lambda f: f["job"].to_numpy(float), people, "sex", draws=400, paths=False
    )
    assert by_points.unfairness == pytest.approx(by_draws.unfairness, abs=0.02)
    assert by_points.unfairness > 0.05


def test_the_interval_holds_the_fit():
    """The value is the main fit's; refits widen every interval, and a person's own too."""
    model = vaca.Composite(GRAPH).fit(_table(), refits=6)
    alone = copy(model)
    alone.refits_ = ()
    whole = vaca.audit(model, _score, _table(seed=1), "sex", draws=None)
    single = vaca.audit(alone, _score, _table(seed=1), "sex", draws=None)
    assert whole.covers_fit
    assert not single.covers_fit
    assert "not of the fit" in single.summary()
    assert whole.unfairness == single.unfairness
    low, high = whole.interval
    assert low < single.interval[0] <= single.interval[1] < high
    assert ((whole.per_person["high"] - whole.per_person["low"]) > 0).all()
    values = [
        vaca.audit(refit, _score, _table(seed=1), "sex", draws=None, paths=False).unfairness
        for refit in model.refits_
    ]
    fit = np.sqrt(np.mean((np.array(values) - whole.unfairness) ** 2))
    assert 2 < (high - whole.unfairness) / fit < 3
    pay = whole.decomposition.loc["through pay"]
    assert pay["low"] < single.decomposition.loc["through pay", "low"]
    groups = whole.by_group["high"] - whole.by_group["low"]
    assert (groups > single.by_group["high"] - single.by_group["low"]).all()


def test_a_classifier_sees_neither_its_target_nor_what_follows():
    """By each of the paper's ways of reading."""
    graph = vaca.CausalGraph.from_edges([("sex", "pay"), ("pay", "loan"), ("loan", "house")])
    assert features_for("full", graph, "sex", "loan") == ["sex", "pay"]
    assert features_for("full", graph, "sex") == ["sex", "pay", "loan", "house"]
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({c: rng.normal(size=60) for c in ("pay", "loan", "house")})
    rows["sex"] = rng.integers(2, size=60)
    model = vaca.Composite(graph, {"sex": "binary"}).fit(rows)
    latent = make_classifier("fair-z", model, "sex", target="loan").fit(rows, rows["loan"] > 0)
    assert latent[:-1].get_feature_names_out().tolist() == ["pay.z0"]


def test_the_command_says_what_its_classifier_saw(tmp_path):
    """And does not let it see its target, which is a node of the graph."""
    rows = _table()
    rows["ok"] = (rows["pay"] + np.random.default_rng(1).normal(size=len(rows)) > 0).astype(int)
    graph = vaca.CausalGraph.from_edges([("sex", "pay"), ("age", "pay"), ("pay", "ok")])
    vaca.Composite(graph, families=()).fit(rows, refits=2).save(tmp_path / "m")
    rows.to_csv(tmp_path / "rows.csv", index=False)
    ask = ["audit", str(tmp_path / "m"), str(tmp_path / "rows.csv"), "--sensitive", "sex"]
    found = CliRunner().invoke(app, [*ask, "--target", "ok", "--draws", "4"])
    assert found.exit_code == 0, found.output
    assert "through ok: 0.0000" in found.output
    assert "It read sex, pay, age; not ok" in " ".join(found.output.split())
