"""Successive halving over the paper's grids."""

from __future__ import annotations

from pathlib import Path

from vaca.reproduction.cross_validation import CROSS_VALIDATION, grid
from vaca.reproduction.experiment import Options
from vaca.reproduction.run import Run, Store

OPTIONS = Options(scms=("loan",), models=("vaca-paper",))


def _finish(store: Store, runs: list[Run]) -> None:
    """Store reports: the deeper the decoder, the better."""
    for run in runs:
        store.write(run, {"scores": {}, "validation_mmd": 1.0 / (1 + run.config["hidden_layers"])})


def test_only_the_best_of_a_stage_go_on(tmp_path: Path) -> None:
    store = Store(tmp_path)
    first = CROSS_VALIDATION.known_runs(OPTIONS, store)
    assert len(first) == len(grid("vaca-paper", "loan")) == 24
    assert {run.protocols for run in first} == {()}, "no test score exists while settings compete"

    _finish(store, first[:-1])
    assert len(CROSS_VALIDATION.known_runs(OPTIONS, store)) == 24, "a stage waits for all of it"
    _finish(store, first)
    second = CROSS_VALIDATION.known_runs(OPTIONS, store)[24:]
    assert len(second) == 8
    assert {run.config["hidden_layers"] for run in second} == {4, 5}
    assert (first[0].config["epochs"], second[0].config["epochs"]) == (56, 167)  # of 500

    _finish(store, second)
    third = CROSS_VALIDATION.known_runs(OPTIONS, store)[32:]
    assert len(third) == 3 * 3, "the best ninth, three seeds each"
    assert {run.config["epochs"] for run in third} == {500}
    assert {run.protocols for run in third} == {("published",)}

    _finish(store, third)
    assert len(CROSS_VALIDATION.known_runs(OPTIONS, store)) == 24 + 8 + 9, "and then it ends"
