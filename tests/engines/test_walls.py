"""No engine draws a negative income, or a share above one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr

import vaca
from vaca.engines.walls import walls

GRAPH = vaca.CausalGraph.from_edges([("x", "income"), ("x", "share")])


def table(n: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x, e, f = rng.normal(size=(3, n))
    return pd.DataFrame({"x": x, "income": np.abs(0.5 + x + e), "share": ndtr(1.5 * x + f)})


@pytest.mark.parametrize(
    ("engine", "settings"),
    [
        ("Composite", {"families": ()}),
        ("AdditiveNoise", {}),
        ("CausalFlow", {"steps": 5}),
        ("VACA", {"steps": 5}),
    ],
)
def test_draws_and_counterfactuals_stay_within_the_walls(
    engine: str, settings: dict[str, Any]
) -> None:
    data = table()
    model = getattr(vaca, engine)(GRAPH, **settings).fit(data, progress=False)
    low = float(data["x"].min())
    for found in (
        model.sample(1000, seed=0),
        model.sample(1000, do={"x": low}, seed=0),
        model.counterfactual(data, {"x": low}, seed=0),
    ):
        assert (found["income"] >= 0.0).all()
        assert found["share"].between(0.0, 1.0).all()
    assert (model.sample(200, seed=0)["x"] < 0).any()  # no wall there
    pd.testing.assert_frame_equal(model.counterfactual(data, {}, seed=0), data)


def test_what_counts_as_a_wall() -> None:
    assert walls(0.0, 0.4) == (0.0, np.inf)  # half empty: perhaps no share
    assert walls(2.0, 99.5) == (0.0, 100.0)
    assert walls(-3.0, 0.0) == (-np.inf, 0.0)
    assert walls(None, None) == (-np.inf, np.inf)
