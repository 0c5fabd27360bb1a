"""Rows drawn from tables larger than memory."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import vaca
from vaca.table import drawing
from vaca.table.drawing import draw_rows


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(drawing, "CHUNK", 500)
    rng = np.random.default_rng(0)
    x = rng.normal(size=3000)
    frame = pd.DataFrame({"x": x, "kind": "a", "y": 2 * x + rng.normal(size=3000)})
    frame.loc[2999, "kind"] = "rare"
    frame.loc[7, "x"], frame.loc[2000, "x"] = -50.0, 60.0
    (tmp_path / "rows").mkdir()
    for k in range(3):
        frame[1000 * k : 1000 * (k + 1)].to_parquet(tmp_path / "rows" / f"{k}.parquet")
    return tmp_path / "rows"


def test_rows_come_from_all_of_the_table_once_each_and_in_order(folder):
    drawn = draw_rows(folder, 600, seed=1)
    assert len(drawn.frame) == 600
    assert drawn.rows == 3000
    assert drawn.frame.index.is_monotonic_increasing
    assert drawn.frame.index.is_unique
    whole = pd.concat([pd.read_parquet(p) for p in sorted(folder.iterdir())], ignore_index=True)
    assert drawn.frame.equals(whole.loc[drawn.frame.index])
    assert np.bincount(drawn.frame.index // 1000).min() > 150
    assert drawn.frame.equals(draw_rows(folder, 600, seed=1).frame)
    assert not drawn.frame.equals(draw_rows(folder, 600, seed=2).frame)


def test_edges_hold_what_can_occur(folder):
    edges = draw_rows(folder, 10).edges
    assert edges["x"].min() == -50.0
    assert edges["x"].max() == 60.0
    assert set(edges["kind"]) == {"a", "rare"}
    assert len(edges) <= 6


def test_a_gap_in_any_row_is_seen(folder):
    last = pd.read_parquet(folder / "2.parquet")
    last.loc[last.index[500], "y"] = np.nan
    last.to_parquet(folder / "2.parquet")
    assert draw_rows(folder, 10).edges["y"].isna().sum() == 1
    model = vaca.Composite(vaca.CausalGraph.from_edges([("x", "y")]), max_rows=50, families=())
    with pytest.raises(vaca.VacaError, match="'y'"):
        model.fit(folder)


def test_a_fit_from_a_folder_knows_ranges_and_levels_of_all_rows(folder, monkeypatch):
    from vaca.engines import composite

    monkeypatch.setattr(composite, "KEPT_ROWS", 400)
    graph = vaca.CausalGraph.from_edges([("x", "y"), ("kind", "y")])
    model = vaca.Composite(graph, max_rows=400, families=()).fit(folder)
    assert model.n_rows_ == 400
    assert (model.schema_["x"].low, model.schema_["x"].high) == (-50.0, 60.0)
    assert list(model.schema_["kind"].levels) == ["a", "rare"]
    again = vaca.Composite(graph, max_rows=400, families=()).fit(str(folder))
    assert model.sample(20, seed=0).equals(again.sample(20, seed=0))
    with pytest.raises(vaca.VacaError, match="weights are one number for each row"):
        model.fit(folder, weights=np.ones(3000))
