"""The study of coverage: its truths, one table, and the figures made of many."""

from __future__ import annotations

import pytest

from vaca.reproduction.catalogue import EXPERIMENTS
from vaca.reproduction.coverage import _truth, cells, coverage_scores
from vaca.reproduction.coverage_cases import KINDS
from vaca.reproduction.experiment import Options
from vaca.reproduction.run import Run


def test_truths_are_what_the_equations_say():
    """Where that can be read off them."""
    assert _truth("linear")["effect"] == pytest.approx(1.0)
    assert _truth("rare")["effect"] == pytest.approx(2.0)
    assert _truth("curved")["effect"] == pytest.approx(1.0, abs=0.005)  # E[w] = 0
    assert _truth("confounded")["effect"] == pytest.approx(1.5)


def test_one_table_has_answers_beside_the_truth():
    """An effect, its cross-check, rows and an audit, each with an interval."""
    run = Run("coverage:mixed", "Composite", 10_000, config={"refits": 2}, train=120)
    scores = coverage_scores(run)["scores"]
    for what in ("effect", "audit"):
        truth, value, low, high = scores[what]
        assert low < value < high
        assert abs(value - truth) < 1
    assert 0 <= scores["rows"][0] <= 1
    once, with_refits, _ = scores["fit"]
    assert once <= with_refits


def test_figures_of_many_tables():
    """Shares in per cent, widths in sds of the estimate."""
    run = Run("coverage:linear", "Composite", train=500).to_dict()
    values = [0.0, 1.0, 2.0, 3.0]
    reports = [
        {
            "run": run,
            "scores": {
                "effect": [1.4, value, value - 1, value + 1],
                "rows": [0.9, 1.0],
                "fit": [1.0, 1.5, 0.1],
            },
        }
        for value in values
    ]
    (row,) = cells(reports).to_dict("records")
    assert row["effect"] == 50  # 1 and 2 are within 1 of the truth
    assert row["effect width"] == pytest.approx(2 / (3.92 * 1.2909944))
    assert row["rows"] == pytest.approx(90)
    assert row["cost"] == 1.5
    (table,) = EXPERIMENTS["coverage"].show(reports, Options())
    assert len(table.rows) == 1


def test_the_study_asks_what_it_should():
    """Eight kinds of 80 tables, four of them with 100 of more rows."""
    runs = EXPERIMENTS["coverage"].runs(Options())
    small = [run for run in runs if run.train == 500]
    assert {run.scm.partition(":")[2] for run in small} == set(KINDS)
    assert len(KINDS) == 8
    assert len(small) == 8 * 80
    assert len([run for run in runs if run.train == 2000]) == 4 * 100
