import numpy as np
import pytest

import vaca
from vaca.reproduction.check_cases import contradicted, graph_check_scores, harm, wrong_edit
from vaca.reproduction.check_study import CHECKS, flagged, kind_of, told
from vaca.reproduction.experiment import Options
from vaca.reproduction.recipes import edit_graph
from vaca.reproduction.truths import load_truth

(EXPERIMENT,) = CHECKS


@pytest.mark.parametrize("kind", ["remove", "reverse", "add"])
def test_an_edit_changes_one_arrow(kind):
    graph = load_truth("mixed:10003").graph
    (edit,) = wrong_edit(graph, kind, seed=0)
    changed = set(edit_graph(graph, (edit,)).edges) ^ set(graph.edges)
    assert len(changed) == (2 if kind == "reverse" else 1)


def test_a_complete_graph_has_no_arrow_to_add():
    assert wrong_edit(vaca.scms.load("triangle-lin").graph, "add", seed=0) is None


def test_harm_is_small_for_the_right_graph_and_large_without_a_strong_arrow():
    truth = vaca.scms.load("triangle-nlin")
    rows = truth.schema_.encode(truth.sample(1000, seed=10_000))
    assert harm(truth, truth.graph, rows, 0) < 0.15
    cut = edit_graph(truth.graph, ("-x1->x2",))
    assert harm(truth, cut, rows, 0) > 0.25
    assert contradicted(truth, cut)
    assert not contradicted(truth, truth.graph)


def test_a_hidden_cause_is_hidden_from_the_rows_only():
    truth = load_truth("hidden:10001")
    assert "h" not in truth.schema_
    assert "h" in truth.whole.graph
    rows = truth.schema_.encode(truth.sample(50, seed=0))
    assert all(len(np.unique(values)) > 1 for values in rows.values())


def test_the_study_has_enough_cases_of_each_kind_and_shows_them():
    runs = EXPERIMENT.runs(Options())
    kinds = [kind_of(run.to_dict()) for run in runs]
    assert kinds.count("right") >= 100
    assert sum(kinds.count(kind) for kind in ("remove", "reverse", "add", "hidden")) >= 200
    assert len({run.key for run in runs}) == len(runs)
    assert all(run.seed < 10_000 for run in runs)
    chosen = [
        min((run for run, k in zip(runs, kinds, strict=True) if k == kind), key=lambda r: r.train)
        for kind in ("right", "remove")
    ]
    reports = [{"run": run.to_dict(), **graph_check_scores(run)} for run in chosen]
    shown = EXPERIMENT.show(reports, Options())
    assert [table.title for table in shown] == [
        "Right graphs",
        "Wrong graphs",
        "Fitted models under the right graph",
    ]


def test_a_case_counts_as_told_if_the_check_or_a_plain_test_tells():
    assert told({"verdict": "bad"})
    assert told({"verdict": "good", "plain": True})
    assert not told({"verdict": "good"})
    assert not flagged({"verdict": "good", "plain": True})
