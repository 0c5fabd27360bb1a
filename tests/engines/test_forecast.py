"""A long fit says so early, once."""

from __future__ import annotations

import warnings

import pytest

import vaca
from vaca.engines import forecast
from vaca.engines.forecast import Forecast


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(forecast.time, "perf_counter", lambda: now[0])
    return now


def test_it_warns_once_and_not_before_it_knows(clock):
    watch = Forecast("CausalFlow", 1400, "a time_budget would shorten it")
    watch.tell(2)
    clock[0] = 9.0
    watch.tell(3)
    clock[0] = 40.0
    with pytest.warns(vaca.errors.VacaWarning, match=r"CausalFlow: .* about 3\.9 hours; a time_b"):
        watch.tell(4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        watch.tell(5)


def test_a_short_fit_is_left_in_peace(clock):
    watch = Forecast("Composite", 20, "")
    clock[0] = 60.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        watch.tell(10)


@pytest.mark.parametrize("family", [vaca.Composite, vaca.CausalFlow])
def test_engines_are_watched(family, monkeypatch):
    monkeypatch.setattr(forecast, "WATCHED", 0.0)
    monkeypatch.setattr(forecast, "LONG", 0.0)
    monkeypatch.setattr(forecast, "FEW", 1)
    truth = vaca.scms.load("chain-lin")
    settings = {"families": ()} if family is vaca.Composite else {"steps": 2, "polish_steps": 0}
    model = family(truth.graph, **settings)
    with pytest.warns(vaca.errors.VacaWarning, match=f"{family.__name__}: at its present pace"):
        model.fit(truth.sample(60, seed=0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(time_budget=5.0).fit(truth.sample(60, seed=0))
