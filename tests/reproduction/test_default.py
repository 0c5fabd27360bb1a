"""The study of the default engine: its tables, its runs and what it shows."""

from __future__ import annotations

import pytest

from vaca.reproduction.catalogue import EXPERIMENTS
from vaca.reproduction.experiment import Options
from vaca.reproduction.maker import stamped
from vaca.reproduction.run import Run
from vaca.reproduction.truths import load_truth
from vaca.reproduction.wild import rows_of


@pytest.mark.parametrize("number", [0, 3, 7])
def test_a_wild_table_is_its_number_and_can_be_asked_anything(number: int) -> None:
    truth, again = (load_truth(f"wild:{number}") for _ in range(2))
    rows = truth.sample(40, seed=1)
    assert rows.equals(again.sample(40, seed=1))
    node = truth.graph.nodes[0]
    moved = truth.counterfactual(rows, {node: rows[node].iloc[0]})
    assert (moved[node] == rows[node].iloc[0]).all()


def test_runs_are_those_of_the_paper_s_table_and_of_random_tables() -> None:
    runs = EXPERIMENTS["default"].runs(Options(seeds=(0, 1)))
    (flow,) = stamped([Run("loan", "flow", 0)])
    assert flow in runs  # stored with the table of the paper
    wild = [run for run in runs if run.scm.startswith("wild:")]
    assert len({run.scm for run in wild}) == 45
    assert all(run.train == rows_of(int(run.scm[5:])) for run in wild)
    assert all(int(run.scm[5:]) >= 100 for run in wild)
    assert len(EXPERIMENTS["default"].runs(Options(quick=True))) < 20


def test_the_default_is_shown_against_the_best_single_engine() -> None:
    def report(model: str, value: float, seed: int = 0) -> dict:
        scores = {"paper": {"int_mmd": [value, 0.5]}}
        return {"run": Run("loan", model, seed).to_dict(), "scores": scores}

    reports = [report("composite", 1.1), report("flow", 1.0), report("additive", 4.0)]
    reports.append(report("flow", 0.1, seed=1))  # the default has not been run on that table
    (table,) = EXPERIMENTS["default"].show(reports, Options())
    assert "1.10 (geometric mean of 1)" in table.caption
