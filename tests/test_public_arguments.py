"""What every public function takes for a number, a name, a path or a model: all else is refused."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import vaca
from vaca import distributions as D
from vaca import fairness
from vaca.errors import VacaError

pytestmark = pytest.mark.filterwarnings("ignore::vaca.errors.VacaWarning")

TRI, LOAN = vaca.scms.load("triangle-lin"), vaca.scms.load("loan")
ROWS, PEOPLE = TRI.sample(60, seed=0), LOAN.sample(60, seed=0)
G = TRI.graph
SMALL: Any = {"rows": 20, "factuals": 20, "resamples": 1, "floor": False}


@functools.cache
def model() -> vaca.AdditiveNoise:
    return vaca.AdditiveNoise(G).fit(ROWS, progress=False)


def evaluated(**options: Any) -> Any:
    return vaca.evaluate(TRI, TRI, **{**SMALL, **options})


def audited(**options: Any) -> Any:
    given = {"sensitive": "gender", "draws": 2, **options}
    return vaca.audit(LOAN, lambda frame: frame["income"] > 0, PEOPLE, **given)


def effect(**options: Any) -> Any:
    return model().effect(**{"outcome": "x3", "treatment": {"x1": 1.0}, "n": 20, **options})


def latent(**options: Any) -> Any:
    return fairness.LatentFeatures(LOAN, **{"without": "gender", **options}).fit(PEOPLE)


def chosen(**options: Any) -> Any:
    given = {"data": ROWS, "graph": G, "engines": ["AdditiveNoise"], "refits": 0, **options}
    return vaca.auto(**given)


def ensemble(**options: Any) -> Any:
    given = {"engine": "AdditiveNoise", "members": 2, "jobs": 1, **options}
    return vaca.Ensemble(G, **given).fit(ROWS, progress=False)


NOTHING: tuple[Any, ...] = (object(), pd.NA, 1j, lambda x: x, type, pd.Timestamp("2020"))
NO_NUMBER = (*NOTHING, "3", "", None, [3], b"3", {}, (), np.nan, np.inf, 10**400, np.array([1, 2]))
NO_COUNT = (*NO_NUMBER, -1, 1.5, True, 10**12, np.float64(2), -(2**63), range(3))
NO_SEED = (*NO_NUMBER, -1, 1.5, True, 2**32, np.float64(2))
NO_NAME = (*NOTHING, 3, True, 1.5, b"a", [3], np.array([1, 2]), "no such name", ["x1", 3])
NO_PATH = (*NOTHING, 3, True, 1.5, None, b"a", [3], {}, "\0", "a\0b", "a\ud800")
NO_MODEL = (*NOTHING, 3, None, "triangle-lin", [], {}, G, ROWS, vaca.AdditiveNoise)
NO_FLAG = (*NOTHING, None, "yes", 2, [], np.array([1, 2]))

CASES: dict[str, tuple[Callable[[Any], Any], tuple[Any, ...]]] = {
    "rows of evaluate": (lambda v: evaluated(rows=v), [v for v in NO_COUNT if v is not None]),
    "factuals of evaluate": (lambda v: evaluated(factuals=v), NO_COUNT),
    "resamples of evaluate": (lambda v: evaluated(resamples=v), NO_COUNT),
    "seed of evaluate": (lambda v: evaluated(seed=v), NO_SEED),
    "nodes of evaluate": (lambda v: evaluated(nodes=v), NO_NAME),
    "protocol of evaluate": (lambda v: evaluated(protocol=v), NO_NAME),
    "floor of evaluate": (lambda v: evaluated(floor=v), NO_FLAG),
    "model of evaluate": (lambda v: vaca.evaluate(v, TRI, **SMALL), NO_MODEL),
    "truth of evaluate": (lambda v: vaca.evaluate(TRI, v, **SMALL), NO_MODEL),
    "seed of check": (lambda v: vaca.check(TRI, ROWS, quick=True, seed=v), NO_SEED),
    "model of check": (lambda v: vaca.check(v, ROWS, quick=True), NO_MODEL),
    "seed of auto": (lambda v: chosen(seed=v), NO_SEED),
    "time_budget of auto": (
        lambda v: chosen(time_budget=v), [v for v in NO_NUMBER if v is not None],
    ),
    "engines of auto": (lambda v: chosen(engines=v), [*NO_NAME, [], "", [None]]),
    "graph of auto": (lambda v: chosen(graph=v), [*NO_NAME, None, {}, {"x1": []}]),
    "data of auto": (lambda v: chosen(data=v), [*NO_NAME, None, {}]),
    "most_affected of audit": (lambda v: audited(most_affected=v), NO_COUNT[:-1]),
    "sensitive of audit": (lambda v: audited(sensitive=v), [*NO_NAME, None, [], ""]),
    "target of audit": (lambda v: audited(target=v), NO_NAME),
    "paths of audit": (lambda v: audited(paths=v), NO_FLAG),
    "draws of LatentFeatures": (lambda v: latent(draws=v), NO_COUNT),
    "seed of LatentFeatures": (lambda v: latent(seed=v), NO_SEED),
    "without of LatentFeatures": (lambda v: latent(without=v), NO_NAME),
    "tolerance of LatentFeatures": (
        lambda v: latent(tolerance=v), [*(v for v in NO_NUMBER if v is not None), 0, -1],
    ),
    "sensitive of features_for": (
        lambda v: fairness.features_for("aware", LOAN.graph, v), [*NO_NAME, None],
    ),
    "classifier of features_for": (
        lambda v: fairness.features_for(v, LOAN.graph, "gender"), [*NO_NAME, None],
    ),
    "graph of features_for": (
        lambda v: fairness.features_for("aware", v, "gender"), [*NO_NAME, None],
    ),
    "rng of classifier_score": (
        lambda v: vaca.metrics.classifier_score(ROWS, ROWS, rng=v), [*NO_NAME, None, 0],
    ),
    "learner of make_classifier": (
        lambda v: fairness.make_classifier("aware", LOAN, "gender", learner=v), [*NO_NAME, None],
    ),
    "C of BalancedSVM": (
        lambda v: fairness.BalancedSVM(v).fit(PEOPLE[["age"]], PEOPLE["age"] > 0),
        [*NO_NUMBER, 0, -1, True],
    ),
    "p of Bernoulli": (D.Bernoulli, [*NO_NUMBER, -0.1, 1.1]),
    "shape of Gamma": (D.Gamma, [*NO_NUMBER, 0, -1]),
    "variance of Normal": (lambda v: D.Normal(0.0, v), [*NO_NUMBER, 0, -1]),
    "Categorical": (D.Categorical, [*NO_NUMBER, [0.5, 0.6], [-1, 2], ["a"], [None], 1]),
    "components of Mixture": (D.Mixture, [*NO_NUMBER, 1, [1], ["a"], "ab", range(3)]),
    "weights of Mixture": (
        lambda v: D.Mixture([D.Normal(), D.Normal()], v),
        [*NOTHING, 3, None, [1], [2, -1], ["a", "b"], [np.nan, np.nan]],
    ),
    "engines of effect": (lambda v: effect(engines=v), NO_NAME),
    "treatment of effect": (lambda v: effect(treatment=v), [*NO_NAME, None, {"no": 1}, {3: 1}]),
    "bounds of counterfactual": (
        lambda v: model().counterfactual(ROWS.head(2), {"x1": 1.0}, bounds=v), NO_FLAG,
    ),
    "cluster of fit": (
        lambda v: vaca.AdditiveNoise(G).fit(ROWS, cluster=v), [*NOTHING, 3, True, [3], b"a", {}],
    ),
    "families of Composite": (
        lambda v: vaca.Composite(G, families=v).fit(ROWS), [v for v in NO_NAME if v is not None],
    ),
    "settings of Ensemble": (lambda v: ensemble(settings=v), [*NO_NAME, {"no": 1}, {3: 1}]),
    "jobs of Ensemble": (lambda v: ensemble(jobs=v), [-1, 0, 1.5, "3", True, [3], 10**400]),
    "path of load": (vaca.load, [*NO_PATH, "nowhere", ""]),
    "path of save": (lambda v: model().save(v), NO_PATH),
    "path of CausalGraph.read": (vaca.CausalGraph.read, [*NO_PATH, "", "a.xyz"]),
    "path of CausalGraph.write": (G.write, [*NO_PATH, "", "a.xyz"]),
    "path of Check.to_html": (
        lambda v: vaca.check(TRI, ROWS, quick=True).to_html(v), (3, None, "\0", b"a"),
    ),
    "columns of Schema": (lambda v: vaca.Schema({"a": v}), [*NO_NAME, None, "binary"]),
    "parts of adult_census": (vaca.datasets.adult_census, [*NO_NAME, None]),
    "columns of plot_population": (
        lambda v: vaca.plot.plot_population(ROWS, ROWS, columns=v), NO_NAME,
    ),
    "labels of plot_population": (
        lambda v: vaca.plot.plot_population(ROWS, ROWS, labels=v), [*NO_NAME, None, "ab", ("a",)],
    ),
    "limits of plot_population": (
        lambda v: vaca.plot.plot_population(ROWS, ROWS, limits=v),
        [*NO_NAME, {"x1": 3}, {"x1": "ab"}],
    ),
    "effects of plot_effects": (vaca.plot.plot_effects, [*NO_NAME, None, [], {"a": 1}]),
    "ax of plot_graph": (lambda v: vaca.plot.plot_graph(G, ax=v), NO_NAME),
    "graph of plot_graph": (vaca.plot.plot_graph, [*NO_NAME, None, {}]),
    "do of plot_graph": (lambda v: vaca.plot.plot_graph(G, do=v), [*NOTHING, 3, 1.5, b"a", [3]]),
    "history of plot_history": (vaca.plot.plot_history, [*NO_NAME, None, {}]),
    "quantiles of plot_person": (
        lambda v: vaca.plot.plot_person(ROWS.head(1), ROWS.head(1), quantiles=v),
        [*NO_NUMBER, 3, True, (0.1,), (2, 3)],
    ),
    "row of plot_person": (
        lambda v: vaca.plot.plot_person(ROWS.head(1), ROWS.head(1), row=v), [[], {}, "a", 99],
    ),
    "title of plot_person": (
        lambda v: vaca.plot.plot_person(ROWS.head(1), ROWS.head(1), title=v), [3, b"a", [], {}],
    ),
    "picture of save_picture": (lambda v: vaca.plot.save_picture(v, "a.png"), [*NO_NAME, None]),
    "dpi of save_picture": (
        lambda v: vaca.plot.save_picture(vaca.plot.plot_graph(G), "a.png", v), NO_COUNT,
    ),
    "schema of with_levels": (lambda v: vaca.plot.with_levels(ROWS, v), [*NO_NAME, None, {}]),
    "x of mmd": (
        lambda v: vaca.metrics.mmd(v, ROWS), [*NOTHING, "a", b"a", {}, [], ["a"], 10**400],
    ),
    "y of mean_error": (
        lambda v: vaca.metrics.mean_error(ROWS, v), [*NOTHING, "a", b"a", {}, [], ["a"], 10**400],
    ),
    "Schema.from_dict": (vaca.Schema.from_dict, [*NO_NAME, None, {"a": 1}, {"a": None}]),
    "name of Schema.encode_value": (
        lambda v: TRI.schema_.encode_value(v, 1.0), [*NO_NAME, None, {}, []],
    ),
    "model of write_report": (
        lambda v: vaca.report.write_report(v, ROWS, "a.html"), NO_MODEL,
    ),
    "question of write_report": (
        lambda v: vaca.report.write_report(TRI, ROWS, "a.html", question=v),
        [*NOTHING, 3, "a", {"x1": 1}],
    ),
    "control of effect": (
        lambda v: effect(control=v, given=ROWS.head(3)),
        [*NOTHING, 3, "a", ROWS, np.array([1, 2]), {"no": 1}],
    ),
    "keys of do": (lambda v: TRI.sample(2, do={v: 1.0}), [*NOTHING, 3, None, b"x1", "no", ()]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_cannot_be_is_refused_at_once(tmp_path, monkeypatch, case: str) -> None:
    monkeypatch.chdir(tmp_path)
    ask, values = CASES[case]
    for value in values:
        with pytest.raises(VacaError) as caught:
            ask(value)
        assert len(str(caught.value)) < 2_000
    assert not list(tmp_path.iterdir())


def test_how_many_there_are() -> None:
    assert sum(len(values) for _, values in CASES.values()) > 600
