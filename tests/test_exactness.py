"""What `do` cannot reach comes back bit for bit; what a column cannot hold is refused."""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import uuid
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import vaca
from vaca.errors import InterventionError, SchemaError, shorten
from vaca.table.schema import Column, Schema

N = 30


class Level(enum.Enum):
    ONE = 1
    TWO = 2


def columns() -> dict[str, pd.Series]:
    rng = np.random.default_rng(0)
    big = pd.Series(2**60 + rng.integers(0, 10**6, N))
    cents = [decimal.Decimal(int(k)) / 100 for k in rng.integers(0, 10**6, N)]
    return {
        "int64": big,
        "negative": -big,
        "uint64": big.astype("uint64"),
        "Int64": big.astype("Int64"),
        "int64[pyarrow]": big.astype("int64[pyarrow]"),
        "int8": pd.Series(rng.integers(-128, 127, N).astype("int8")),
        "float32": pd.Series(rng.normal(size=N).astype("float32")),
        "Float64": pd.Series(rng.normal(size=N)).astype("Float64"),
        "tiny": pd.Series(rng.normal(size=N) * 1e-140),
        "signed zero": pd.Series(np.where(rng.random(N) < 0.5, -0.0, rng.normal(size=N))),
        "decimal": pd.Series(cents, dtype=pd.ArrowDtype(pa.decimal128(12, 2))),
        "text": pd.Series(rng.choice(["a", "b", "c"], N)),
        "object text": pd.Series(rng.choice(["a", "b", "c"], N), dtype=object),
        "pyarrow text": pd.Series(rng.choice(["a", "b", "c"], N), dtype="string[pyarrow]"),
        "category": pd.Series(pd.Categorical(rng.choice(list("xy"), N), list("zyx"))),
        "ordered": pd.Series(pd.Categorical(rng.choice([1, 3], N), [1, 2, 3], ordered=True)),
        "big level": pd.Series(rng.choice([2**60, 2**60 + 1, 2**60 + 2], N)),
        "bool": pd.Series(rng.random(N) < 0.5),
        "boolean": pd.Series(rng.random(N) < 0.5).astype("boolean"),
    }


TABLE = pd.DataFrame(columns())
OTHERS = list(TABLE.columns)
TABLE["cause"] = np.random.default_rng(1).normal(size=N)
TABLE["effect"] = TABLE["cause"] * 2
KINDS = {"big level": "categorical"}


@pytest.fixture(scope="module")
def model() -> vaca.AdditiveNoise:
    graph = vaca.CausalGraph.from_edges([("cause", "effect")], nodes=OTHERS)
    return vaca.AdditiveNoise(graph, KINDS).fit(TABLE)


@pytest.mark.parametrize("draws", [None, 3])
@pytest.mark.parametrize("name", OTHERS)
def test_what_do_cannot_reach_is_the_factual(model, name: str, draws: int | None) -> None:
    factual = TABLE.sample(7, random_state=0)
    answer = model.counterfactual(factual, do={"cause": 0.5}, draws=draws, seed=0)
    rows = np.repeat(np.arange(7), draws or 1)
    expected = factual[name].iloc[rows]
    pd.testing.assert_series_equal(
        answer[name].reset_index(drop=True), expected.reset_index(drop=True), check_exact=True
    )
    if TABLE[name].dtype == "float64":
        assert answer[name].to_numpy().tobytes() == expected.to_numpy().tobytes()


@pytest.mark.parametrize("name", OTHERS)
def test_a_sample_has_the_dtype_and_only_values_that_it_holds(model, name: str) -> None:
    sample = model.sample(20, seed=0)[name]
    if pd.api.types.is_numeric_dtype(TABLE[name]) and not pd.api.types.is_bool_dtype(TABLE[name]):
        values, seen = sample.to_numpy(dtype=float), TABLE[name].to_numpy(dtype=float)
        assert seen.min() - np.ptp(seen) <= values.min()
        assert values.max() <= seen.max() + np.ptp(seen)
    else:
        assert sample.dtype == TABLE[name].dtype


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("int64", 1e300),
        ("int64", 2**60 + 1),
        ("int64", -(2**70)),
        ("int64", 10**400),
        ("int64", 2**53 + 1),
        ("Int64", -(2**53) - 1),
        ("uint64", 2**64 - 1),
        ("int64[pyarrow]", 2**53),
        ("int64", "9007199254740993"),
        ("int64", np.array([2**53 + 1, 1, 1])),
        ("int64", vaca.Shift(2**53 - 1)),
        ("decimal128(38, 2)[pyarrow]", 10**30),
        ("decimal128(38, 20)[pyarrow]", decimal.Decimal("0.12345678901234567890")),
        ("decimal128(5, 2)[pyarrow]", 1000),
        ("float64", decimal.Decimal("NaN")),
        ("float64", decimal.Decimal("sNaN")),
        ("float64", b"3"),
        ("float64", 1 + 0j),
        ("float64", {}),
        ("float64", pd.NA),
        ("float64", None),
        ("float64", pd.Timestamp("2020-01-01")),
        ("float64", np.array(["1", "x", "2"])),
        ("float64", np.array([1.0, 2.0, 3.0, 4.0])),
        ("float64", np.zeros((3, 2))),
        ("uint8", 256),
        ("uint8", -1),
        ("int8", 200),
        ("Int16", 40_000),
        ("int32[pyarrow]", 2**40),
        ("float32", 1e300),
        ("Float32", -1e39),
        ("float16", 1e5),
        ("float64", 10**400),
        ("float64", float("nan")),
        ("float64", "1e999"),
        ("float64", "ten"),
        ("float64", [1.0, 2.0]),
        ("float64", np.array([1.0, np.inf, 0.0])),
        ("uint8", np.array([1, 2, 300])),
        ("int64", pd.Series([1.0, 2.0, 1e19])),
        ("uint8", vaca.Shift(300)),
        ("int64", vaca.Shift(1e300)),
        ("float32", vaca.Shift(1e300)),
        ("uint8", lambda frame: np.full(len(frame), 999)),
    ],
)
@pytest.mark.parametrize("kind", ["continuous", "count"])
def test_a_value_that_no_column_can_hold_is_refused(kind: str, dtype: str, value: object) -> None:
    graph = vaca.CausalGraph.from_edges([("a", "b")])
    low = 0.0 if kind == "count" else -5.0
    schema = Schema({c: Column(kind, low=low, high=9.0, dtype=dtype) for c in "ab"})
    rows = {"a": np.full(3, 2.0), "b": np.full(3, 3.0)}
    from vaca.model.intervention import Intervention

    with pytest.raises((InterventionError, SchemaError)):
        Intervention.parse({"a": value}, graph, schema).encode_rows(3).resolve(lambda done: rows)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "Int16", "int32[pyarrow]", "float32"])
def test_answers_that_do_not_fit_widen_the_column(dtype: str) -> None:
    schema = Schema({"a": Column("continuous", low=0.0, high=9.0, dtype=dtype)})
    for value in (1e12, 1e300, -1e12):
        if dtype != "float32" or abs(value) > 1e38:
            found = pd.Series(schema.decode_column("a", np.array([1.0, value])))
            assert found.astype(float).tolist() == [1.0, value]
    assert str(pd.Series(schema.decode_column("a", np.array([1.0, 2.0]))).dtype) == dtype


@pytest.mark.parametrize(
    "levels",
    [
        pd.to_datetime(["2020-01-01", "2020-01-02"]),
        pd.interval_range(0, 2),
        pd.period_range("2020", periods=2, freq="Y"),
        [decimal.Decimal(1), decimal.Decimal(2)],
        [(1, 2), (3, 4)],
        [b"a", b"b"],
        [1 + 2j, 2 + 2j],
        [pd.Timedelta(1), pd.Timedelta(2)],
        [10**400, 10**401],
        [10**5000, 1],
        [np.inf, 1.0],
        [-np.inf, 1.0],
        [fractions.Fraction(1, 3), fractions.Fraction(2, 3)],
        [uuid.UUID(int=1), uuid.UUID(int=2)],
        [datetime.time(1), datetime.time(2)],
        [frozenset([1]), frozenset([2])],
        [len, print],
        [Level.ONE, Level.TWO],
        [Path("a"), Path("b")],
        [..., NotImplemented],
    ],
    ids=lambda levels: shorten(levels[0]),
)
def test_levels_that_a_file_cannot_hold_are_refused_at_fit(levels) -> None:
    values = pd.Series(pd.Categorical([levels[k % 2] for k in range(N)]))
    table = pd.DataFrame({"a": values, "b": np.arange(N, dtype=float)})
    graph = vaca.CausalGraph.from_edges([("a", "b")])
    with pytest.raises(SchemaError, match="'a'"):
        vaca.AdditiveNoise(graph).fit(table)


@pytest.mark.parametrize(
    "levels",
    [
        ["a", "b"],
        ["1", "2"],
        [1, 2],
        [True, False],
        [0.1, 0.2],
        [-1, 2**62],
        ["é\n", "\x00 '\""],
        ["", " "],
        [1, "1"],
        [np.int8(1), np.int8(2)],
        [np.str_("x"), np.str_("y")],
        ["nan", "None"],
        ["inf", "-inf"],
        ["x" * 100_000, "y"],
        ["\u202ea", "a"],
        ["e\u0301", "\u00e9"],
        ["\ufeffa", "a"],
        ["a", "a "],
        ["1.0", "1"],
        [1.0, "1.0"],
        [0.1, 0.1 + 2**-54],
        [-0.5, 1e-300],
        [1e149, -1e149],
        [10**100, 10**100 + 1],
        [2**63, 2**64],
        [-(2**63), 2**63 - 1],
    ],
    ids=lambda levels: shorten(levels, 20),
)
def test_levels_survive_save_and_load(levels, tmp_path) -> None:
    values = pd.Categorical([levels[k % 2] for k in range(N)], levels)
    table = pd.DataFrame({"a": values, "b": np.arange(N, dtype=float)})
    graph = vaca.CausalGraph.from_edges([("a", "b")])
    model = vaca.AdditiveNoise(graph).fit(table)
    model.save(tmp_path / "m")
    again = vaca.load(tmp_path / "m")
    assert again.schema_ == model.schema_
    assert [type(v) for v in again.schema_["a"].levels] == [
        type(v) for v in model.schema_["a"].levels
    ]
    pd.testing.assert_frame_equal(again.sample(5, seed=0), model.sample(5, seed=0))


@pytest.mark.parametrize(
    ("dtype", "value", "told"),
    [
        ("decimal128(38, 30)[pyarrow]", -0.34, "-0.34"),
        ("decimal128(38, 30)[pyarrow]", decimal.Decimal("0.1"), "0.1"),
        ("decimal128(12, 2)[pyarrow]", 19.99, "19.99"),
        ("int64", 2**53 - 1, "9007199254740991"),
        ("uint8", 255, "255"),
        ("float32", 0.5, "0.5"),
        ("Float64", 1e-300, "1E-300"),
    ],
)
def test_what_do_says_is_what_the_column_holds(dtype: str, value: object, told: str) -> None:
    column = Column("continuous", low=-5.0, high=9.0, dtype=dtype)
    number = column.encode_value("a", value)
    column.check_holds("a", np.array([number]))
    found = column.decode(np.array([number, number]))
    assert str(pd.Series(found).dtype) == dtype
    assert decimal.Decimal(str(found[0])) == decimal.Decimal(told)


def test_truth_values_and_numbers_are_not_mixed() -> None:
    for levels in ([True, 1, 0, 2], [False, 3], [True, 0.5]):
        values = pd.Series([levels[k % len(levels)] for k in range(N)], dtype=object)
        table = pd.DataFrame({"a": values, "b": np.arange(N, dtype=float)})
        with pytest.raises(SchemaError, match="'a'.*truth values or numbers"):
            vaca.AdditiveNoise(vaca.CausalGraph.from_edges([("a", "b")])).fit(table)
