"""Differences of populations, as `vaca do` prints them."""

from __future__ import annotations

from copy import copy

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import vaca
from vaca.commands.app import app
from vaca.model.populations import differences_interval
from vaca.table.contrast import contrast

DO = {"t": 1}


def test_differences_of_populations_have_intervals(tmp_path):
    """The same as those of an effect; none without refits."""
    rng = np.random.default_rng(0)
    t = rng.integers(2, size=80)
    df = pd.DataFrame({"t": t, "y": t + rng.normal(size=80)})
    model = vaca.Composite(vaca.CausalGraph.from_edges([("t", "y")])).fit(df, refits=3)
    shown = vaca.Schema({"y": model.schema_["y"]})
    arms = [model.sample(300, do, seed=0) for do in ({}, DO)]
    table = contrast(*arms, shown, paired=True)
    found = differences_interval(model, DO, shown, table, 300, 0)
    effect = model.effect("y", DO, n=300, seed=0)
    assert table.loc["y", "difference"] == pytest.approx(effect.value)
    assert found.loc["y"].tolist() == pytest.approx(effect.interval())
    alone = copy(model)
    alone.refits_ = ()
    assert differences_interval(alone, DO, shown, table, 300, 0) is None
    model.save(tmp_path / "m")
    printed = CliRunner().invoke(app, ["do", str(tmp_path / "m"), "--do", "t=1", "-n", "300"])
    assert "95 % from" in printed.output
