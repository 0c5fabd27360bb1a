"""Schemas in files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import vaca
from vaca.table.toml import read_schema, schema_text


def test_a_unit_is_kept_and_said(tmp_path):
    path = tmp_path / "schema.toml"
    path.write_text('[w]\nkind = "continuous"\nunit = "kg"\n')
    table = pd.DataFrame({"t": [0, 1] * 20, "w": np.linspace(50, 90, 40)})
    graph = vaca.CausalGraph.from_edges([("t", "w")])
    schema = vaca.Schema.infer(table, graph, read_schema(path))
    assert (schema["w"].unit, schema["w"].low, schema["w"].high) == ("kg", 50.0, 90.0)
    assert vaca.Schema.from_dict(schema.to_dict())["w"].unit == "kg"
    assert 'unit = "kg"' in schema_text(schema)
    path.write_text('[t]\nkind = "binary"\nunit = "kg"\n')
    with pytest.raises(vaca.VacaError, match="of a column of numbers"):
        read_schema(path)
