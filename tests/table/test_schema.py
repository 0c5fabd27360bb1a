from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given

import vaca
from tests.strategies import tables
from vaca import CausalGraph, Column, Schema
from vaca.errors import SchemaError, VacaWarning
from vaca.table.toml import read_schema, schema_text


def graph_of(frame: pd.DataFrame) -> CausalGraph:
    return CausalGraph.from_edges([], nodes=list(frame.columns))


def infer(**columns) -> Schema:
    frame = pd.DataFrame(columns)
    return Schema.infer(frame, graph_of(frame))


@given(tables())
def test_encode_then_decode_is_exact(case) -> None:
    frame, _, schema = case
    encoded = schema.encode(frame)
    assert all(v.shape == (len(frame),) for v in encoded.values())
    assert all(v.dtype in (np.dtype(float), np.dtype(np.int64)) for v in encoded.values())
    pd.testing.assert_frame_equal(schema.decode(encoded, index=frame.index), frame)


@given(tables())
def test_schema_survives_json(case) -> None:
    frame, _, schema = case
    again = Schema.from_dict(json.loads(json.dumps(schema.to_dict())))
    assert dict(again) == dict(schema)
    pd.testing.assert_frame_equal(again.decode(again.encode(frame), index=frame.index), frame)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([True, False, True], "binary"),
        (["a", "b", "a"], "binary"),
        (["a", "b", "c"], "categorical"),
        (pd.Categorical(["a", "b", "c"], ordered=True), "ordinal"),
        (pd.Categorical(["a", "b", "a"]), "binary"),
        ([0, 1, 1], "binary"),
        ([0.0, 1.0, 1.0], "binary"),
        ([0, 1, 2], "categorical"),
        (list(range(20)), "count"),
        (list(range(-5, 20)), "continuous"),
        ([*range(20), 5000], "continuous"),
        ([0.5, 1.5, 2.5], "continuous"),
        ([0.5, 1.5, 1.5], "continuous"),
    ],
)
def test_inference_rules(values, kind: str) -> None:
    assert infer(c=values)["c"].kind == kind


def test_the_user_decides() -> None:
    frame = pd.DataFrame({"kids": [0, 1, 2, 3], "grade": [1, 2, 3, 2]})
    schema = Schema.infer(frame, graph_of(frame), kinds={"kids": "count", "grade": "ordinal"})
    assert schema.kind("kids") == "count"
    assert schema["kids"].high == 3
    assert schema.kind("grade") == "ordinal"
    assert schema.levels("grade") == (1, 2, 3)
    changed = schema.with_kinds(frame, grade="continuous")
    assert changed.kind("grade") == "continuous"
    assert schema.kind("grade") == "ordinal"
    given = Schema.infer(
        frame, graph_of(frame), kinds={"grade": Column("ordinal", (1, 2, 3, 4)), "kids": "count"}
    )
    assert given.levels("grade") == (1, 2, 3, 4)


def test_other_frames() -> None:
    frame = pd.DataFrame({"a": [1.5, 2.5, 3.0], "b": ["u", "v", "u"]})
    for other in (pl.from_pandas(frame), {"a": frame["a"], "b": frame["b"]}):
        schema = Schema.infer(other, graph_of(frame))
        assert schema["b"].levels == ("u", "v")
        assert schema.encode(other)["b"].tolist() == [0, 1, 0]
    with pytest.raises(SchemaError, match="a table is needed"):
        Schema.infer([1, 2], graph_of(frame))


def test_columns_outside_the_graph_are_left_out_with_one_warning() -> None:
    frame = pd.DataFrame({"a": [1.5, 2.5], "b": [1.5, 2.0], "c": [1.5, 2.0]})
    with pytest.warns(VacaWarning, match="'b', 'c'") as seen:
        schema = Schema.infer(frame, CausalGraph({"a": []}))
    assert len(seen) == 1
    assert schema.columns == ("a",)


def test_constant_column_warns() -> None:
    with pytest.warns(VacaWarning, match="'c' is constant"):
        assert infer(c=[2.5, 2.5, 2.5])["c"].kind == "continuous"
    with pytest.warns(VacaWarning, match="'c' is constant"):
        assert infer(c=["x", "x"])["c"].levels == ("x",)


@pytest.mark.parametrize(
    ("column", "match"),
    [
        ([1.0, None, 3.5], r"missing values in 'c' \(1\)"),
        (["a", None, "b"], r"missing values in 'c' \(1\)"),
        ([1.0, np.inf, 3.5], "'c' has 1 infinite .* row 1"),
        (["31.01.2020", "01.02.2020", "02.02.2020"], "write dates as 2020-01-31"),
        (pd.to_datetime(["2020-01-01", "2020-01-02"], utc=True), "without a time zone"),
        (pd.to_timedelta([1, 2, 3], unit="D"), "durations as numbers"),
        ([f"id{i}" for i in range(600)], "identifier or free text"),
    ],
)
def test_bad_columns(column, match: str) -> None:
    with pytest.raises(SchemaError, match=match):
        infer(c=column)


def test_bad_tables() -> None:
    frame = pd.DataFrame({"age": [1.5, 2.5], "sex": ["f", "m"]})
    schema = Schema.infer(frame, graph_of(frame))
    with pytest.raises(SchemaError, match="no column 'age'; did you mean 'agee'"):
        schema.encode(frame.rename(columns={"age": "agee"}))
    with pytest.raises(SchemaError, match=r"column 'sex', row 1: 'x' is not one of its levels"):
        schema.encode(frame.assign(sex=["f", "x"]))
    with pytest.raises(SchemaError, match=r"'age' is continuous, but row 0 holds 'old'"):
        schema.encode(frame.assign(age=["old", "2"]))
    with pytest.raises(SchemaError, match="two columns named 'a'"):
        Schema.infer(pd.DataFrame([[1, 2]], columns=["a", "a"]), CausalGraph({"a": []}))
    with pytest.raises(SchemaError, match="no rows"):
        Schema.infer(frame.iloc[:0], graph_of(frame))
    with pytest.raises(SchemaError, match="does not name"):
        Schema.infer(frame, graph_of(frame), kinds={"zip": "count"})
    with pytest.raises(SchemaError, match="unknown kind 'contnuous'; did you mean 'continuous'"):
        Schema.infer(frame, graph_of(frame), kinds={"age": "contnuous"})
    three = pd.DataFrame({"a": ["x", "y", "z"]})
    with pytest.raises(SchemaError, match="cannot be binary"):
        Schema.infer(three, graph_of(three), kinds={"a": "binary"})
    count = Schema({"n": Column("count")})
    with pytest.raises(SchemaError, match="is a count, but row 1 holds -1"):
        count.encode(pd.DataFrame({"n": [1, -1]}))


def test_bad_descriptions() -> None:
    with pytest.raises(SchemaError, match="needs its levels"):
        Column("categorical")
    with pytest.raises(SchemaError, match="2 levels"):
        Column("binary", ("a", "b", "c"))
    with pytest.raises(SchemaError, match="unknown kind"):
        Column("text")  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="has kind and may have"):
        Schema.from_dict({"a": {"kind": "count", "sort": 1}})
    with pytest.raises(SchemaError, match="unknown column 'b'"):
        Schema({"a": Column("count")})["b"]


def test_values_by_label() -> None:
    schema = Schema({"g": Column("categorical", (0, 1, 2)), "n": Column("count")})
    assert schema.encode_value("g", 2) == 2
    assert schema.encode_value("g", "2") == 2  # as the command line gives it
    with pytest.raises(
        SchemaError, match="3 is not a level of 'g'; Valid: '0', '1', '2'. If 'g' is"
    ):
        schema.encode_value("g", 3)
    with pytest.raises(SchemaError, match="Valid: '0', '1', '2'$"):
        schema.encode_value("g", "many")
    with pytest.raises(SchemaError, match="whole number"):
        schema.encode_value("n", 1.5)
    with pytest.raises(SchemaError, match="a number is needed"):
        schema.encode_value("n", "many")


def test_table_shows_every_column() -> None:
    table = infer(a=[0.5, 2.5, 1.0], b=["u", "v", "w"]).table()
    assert table.loc["a", "values"] == "0.5 to 2.5"
    assert table.loc["b", "values"] == "u, v, w"


def postcodes(n=4000, dtype=object):
    rng = np.random.default_rng(0)
    number = rng.zipf(1.3, n) % 2500
    return pd.Series([f"p{i}" for i in number], dtype=dtype)


@pytest.mark.parametrize("dtype", [object, "string", "category"])
def test_of_thousands_of_levels_rare_ones_count_as_one(dtype, tmp_path):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"x": rng.normal(size=4000), "post": postcodes(dtype=dtype)})
    with pytest.warns(VacaWarning, match="levels: the [0-9]+ most frequent are kept"):
        schema = Schema.infer(frame, graph_of(frame))
    column = schema["post"]
    counts = frame["post"].value_counts()
    assert 5 < len(column.levels) <= 100 and column.other == "other"
    assert min(counts[level] for level in column.levels if level != "other") >= 20
    codes = schema.encode_column("post", frame["post"])
    rare = ~frame["post"].isin(column.levels).to_numpy()
    assert rare.any() and (codes[rare] == column.levels.index("other")).all()
    # It can be written and read, and what is read means the same.
    path = tmp_path / "schema.toml"
    path.write_text(schema_text(schema), encoding="utf-8")
    again = Schema.infer(frame, graph_of(frame), read_schema(path))
    assert (again.encode_column("post", frame["post"]) == codes).all()
    # Rows that nothing moves keep their own text; a rare one cannot be set.
    graph = CausalGraph.from_edges([("x", "post")])
    model = vaca.AdditiveNoise(graph, again).fit(frame.head(600))
    rows = frame.head(50)
    back = model.counterfactual(rows, {"x": vaca.Shift(0.0)})
    assert back["post"].astype(str).equals(rows["post"].astype(str))
    with pytest.raises(vaca.VacaError, match="All levels not listed count as 'other'"):
        model.effect("post", {"post": frame["post"][rare].iloc[0]}, level="p1")


def test_thousands_of_numbers_as_levels_are_refused_with_a_way_out():
    frame = pd.DataFrame({"post": pd.Categorical(np.arange(2000) % 400)})
    with pytest.raises(SchemaError, match="turn them into text"):
        Schema.infer(frame, graph_of(frame))
