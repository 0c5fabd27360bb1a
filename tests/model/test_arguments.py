"""Counts, seeds and sizes: numpy's integers are fine, what cannot be is refused at once."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import pytest

import vaca
from vaca.engines.registry import engine_class
from vaca.errors import InterventionError, VacaError
from vaca.model.arguments import check_count, check_number, check_room, check_seed

pytestmark = pytest.mark.usefixtures("without_trees")

SCM = vaca.scms.load("triangle-lin")
ROWS = SCM.sample(12, seed=0)
GRAPH = SCM.graph

NO_SEED = [-1, 2**32, 2**64, 10**400, 1.5, 3.0, "3", True, [3], float("nan"), np.float64(3)]
NO_COUNT = [0, -1, 10**12, 10**400, 1.5, 3.0, "3", True, [3], None, float("inf"), np.bool_(True)]


@pytest.mark.parametrize("seed", NO_SEED)
@pytest.mark.parametrize(
    "ask",
    [
        lambda seed: SCM.sample(2, seed=seed),
        lambda seed: SCM.counterfactual(ROWS, {"x1": 0.0}, seed=seed),
        lambda seed: SCM.effect("x3", {"x1": 1.0}, seed=seed, n=5),
        lambda seed: vaca.AdditiveNoise(GRAPH, seed=seed).fit(ROWS),
        lambda seed: vaca.CausalFlow(GRAPH, seed=seed).fit(ROWS),
    ],
)
def test_seeds_that_are_none(ask, seed: object) -> None:
    with pytest.raises(VacaError, match="seed is a whole number from 0"):
        ask(seed)


@pytest.mark.parametrize("seed", [0, np.int64(3), np.uint8(3), 2**32 - 1])
def test_seeds(seed: object) -> None:
    assert SCM.sample(2, seed=seed).equals(SCM.sample(2, seed=int(seed)))  # type: ignore[call-overload]
    fitted = vaca.AdditiveNoise(GRAPH, seed=seed).fit(ROWS)  # type: ignore[arg-type]
    assert fitted.seed == int(seed)  # type: ignore[call-overload]


@pytest.mark.parametrize("count", NO_COUNT)
def test_counts_that_are_none(count: object) -> None:
    with pytest.raises(VacaError):
        SCM.sample(count)  # type: ignore[arg-type]
    with pytest.raises(VacaError):
        SCM.effect("x3", {"x1": 1.0}, n=count)  # type: ignore[arg-type]
    if count is not None:
        with pytest.raises(VacaError):
            SCM.counterfactual(ROWS, {"x1": 0.0}, draws=count)  # type: ignore[arg-type]


def test_answers_that_no_memory_holds_are_refused() -> None:
    for n in (10**10, 10**11):
        with pytest.raises(VacaError, match="this machine has"):
            SCM.sample(n)
    with pytest.raises(VacaError, match="this machine has"):
        SCM.counterfactual(ROWS, {"x1": 0.0}, draws=10**9 * 2)
    check_room(10, 3, "")
    with pytest.raises(VacaError):
        check_room(10**11, 10, "Ask for less")


@pytest.mark.parametrize(
    "delta",
    ["a", "5", None, [1], (1, 2), {}, float("nan"), float("inf"), 10**400, 1j, True, object()],
)
def test_shifts_that_are_none(delta: object) -> None:
    with pytest.raises(InterventionError, match="delta of a Shift"):
        vaca.Shift(delta)  # type: ignore[arg-type]


@pytest.mark.parametrize("delta", [1, -2.5, np.float32(1), np.int64(3), np.array(2.0)])
def test_shifts(delta: object) -> None:
    moved = SCM.counterfactual(ROWS, {"x1": vaca.Shift(delta)})  # type: ignore[arg-type]
    assert np.allclose(moved["x1"], ROWS["x1"] + float(delta))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "settings",
    [
        {"width": 10**9},
        {"width": 0},
        {"width": "8"},
        {"depth": 10**6},
        {"depth": 1.5},
        {"bins": 1},
        {"bins": None},
        {"steps": -1},
        {"batch_size": 0},
        {"lr": 0},
        {"lr": -1.0},
        {"lr": float("nan")},
        {"lr": "fast"},
        {"bound": float("inf")},
        {"time_budget": 0},
        {"time_budget": -5},
        {"device": "abacus"},
        {"device": 3},
    ],
)
def test_parameters_that_cannot_be_are_refused_before_a_fit(settings: dict) -> None:
    with pytest.raises(VacaError, match=next(iter(settings))):
        vaca.CausalFlow(GRAPH, **settings).fit(ROWS)


@pytest.mark.parametrize(
    "settings",
    [
        {"width": 10**7},
        {"depth": -1},
        {"samples": 0},
        {"message_hidden": 16},
        {"message_hidden": "16"},
        {"message_hidden": [16, -1]},
        {"residual": "yes"},
        {"epochs": 0},
        {"latent_dim": 2.0},
        {"schedule": "weekly"},
        {"dropout": "half"},
    ],
)
def test_parameters_of_networks(settings: dict) -> None:
    name = next(iter(settings))
    for engine in map(engine_class, ("VACA", "PaperVACA", "MultiCVAE")):
        if name in inspect.signature(engine).parameters:
            with pytest.raises(VacaError, match=name):
                engine(GRAPH, **settings).fit(ROWS)
            return
    raise AssertionError(f"no engine has {name}")


def test_the_rules_themselves() -> None:
    assert check_count("n", np.int32(5)) == 5
    assert check_seed(np.uint64(7)) == 7
    assert check_number("x", np.float32(0.5), 0, 1) == 0.5
    for value in (2, -1, "1", None, float("nan"), pd.NA):
        with pytest.raises(VacaError):
            check_number("x", value, 0, 1)
