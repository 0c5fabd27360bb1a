"""A run's name says what made it, and how long runs will take is told from earlier ones."""

import dataclasses

import pytest

import vaca
from vaca.commands.app import run as vaca_command
from vaca.reproduction.catalogue import EXPERIMENTS
from vaca.reproduction.cost import cpu_seconds, measured
from vaca.reproduction.experiment import Options
from vaca.reproduction.maker import _maker, maker, stale, stamped
from vaca.reproduction.run import Run, Store

RUN = Run("triangle-lin", "flow")


def test_maker_depends_on_settings_and_not_on_the_seed():
    assert maker(RUN) == maker(dataclasses.replace(RUN, seed=4))
    assert maker(RUN) != maker(dataclasses.replace(RUN, config={"steps": 77}))


def test_a_new_revision_of_an_engine_gives_new_runs(monkeypatch):
    before = stamped([RUN])[0].key
    monkeypatch.setattr(vaca.CausalFlow, "revision", 99)
    _maker.cache_clear()
    after = stamped([RUN])[0]
    _maker.cache_clear()
    assert "-r99-" in after.maker
    assert after.key != before


def test_studies_that_name_an_engine_are_made_by_its_revision():
    run = Run("coverage:linear", "Composite", task="coverage", config={"refits": 8})
    assert maker(run).startswith(f"Composite-r{vaca.Composite.revision}-")
    assert maker(Run("chain-lin", "none", task="check-graph")) == ""


def test_auto_is_made_by_its_candidates():
    plain = maker(Run("loan", "auto", task="selection"))
    changed = maker(Run("loan", "auto", task="selection", config={"flow": {"steps": 5}}))
    assert plain.startswith("auto-") and plain != changed


def test_stale_runs_are_listed(tmp_path, capsys, monkeypatch):
    store = Store(tmp_path / "results" / "runs")
    options = Options(seeds=(0,), scms=("triangle-lin",), models=("flow",))
    (now,) = EXPERIMENTS["table-results"].runs(options)
    old = dataclasses.replace(now, maker="CausalFlow-r0-00000000")
    other = dataclasses.replace(now, seed=1, maker="CausalFlow-r0-00000000")
    for run in (now, old, other):
        store.write(run, {"scores": {}})
    assert stale([now], store) == [(old.name, old.maker)]  # the other seed is not asked for
    monkeypatch.chdir(tmp_path)
    assert vaca_command(["reproduce", "table-results", "--stale", "--models", "flow"]) == 0
    assert "CausalFlow-r0-00000000" in capsys.readouterr().out


def report(run: Run, seconds: float) -> dict:
    return {"run": run.to_dict(), "fit_cpu_seconds": seconds, "evaluate_seconds": 1.0}


def test_cost_takes_the_most_similar_runs(tmp_path):
    store = Store(tmp_path)
    for seed, seconds in enumerate((9.0, 11.0, 13.0)):
        run = dataclasses.replace(RUN, seed=seed)
        store.write(run, {k: v for k, v in report(run, seconds).items() if k != "run"})
    assert measured(store.reports()) == {"flow triangle-lin": 12.0}
    assert cpu_seconds([RUN, RUN], store) == pytest.approx(24.0)
    fewer = dataclasses.replace(RUN, train=500)
    assert cpu_seconds([fewer], store) < cpu_seconds([RUN], store)


def test_cost_follows_rows_and_epochs_where_a_model_goes_over_all_rows(tmp_path):
    def cost(model, **changes):
        return cpu_seconds([Run("triangle-lin", model, **changes)], Store(tmp_path / "empty"))

    usual = cost("vaca-paper")
    assert cost("vaca-paper", train=50_000) > 5 * usual
    assert cost("vaca-paper", config={"epochs": 55}) < usual / 3
    assert cost("composite", train=100_000) < 2 * cost("composite")


def test_shipped_costs_know_the_models_of_the_results_table(tmp_path):
    runs = EXPERIMENTS["table-results"].runs(Options(seeds=(0,)))
    assert cpu_seconds(runs, Store(tmp_path / "empty")) > 60


def test_a_task_of_its_own_costs_what_its_runs_did(tmp_path):
    store = Store(tmp_path)
    run = Run("coverage:linear", "Composite", seed=1, task="coverage", train=500)
    store.write(run, {"run": run.to_dict(), "cpu_seconds": 2.0})
    more = [Run("coverage:linear", "Composite", seed=s, task="coverage") for s in range(2, 7)]
    other = Run("coverage:curved", "Composite", seed=9, task="coverage")
    assert cpu_seconds([*more, other], store) == pytest.approx(12.0, rel=0.5)


def test_runs_that_were_cut_short_say_nothing_of_the_others(tmp_path):
    store = Store(tmp_path)
    whole = Run("triangle-lin", "vaca-paper")
    store.write(whole, report(whole, 89.0))
    expected = cpu_seconds([whole], store)
    for seed in range(5):
        short = Run("triangle-lin", "vaca-paper", seed=seed, config={"epochs": 10})
        store.write(short, report(short, 2.0))
    assert cpu_seconds([whole], store) == expected == pytest.approx(90.0)
