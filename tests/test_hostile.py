"""Odd rows, cells, numbers and graph texts: an answer that is right, or a `VacaError`."""

from __future__ import annotations

import decimal
import functools
import json
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import vaca
from tests.fuzz.models import QUICK
from vaca.engines.registry import ENGINES, engine_class
from vaca.errors import VacaError
from vaca.fairness import audit

# That a value lies outside of what was seen, or is constant, is not in question here.
pytestmark = pytest.mark.filterwarnings("ignore::vaca.errors.VacaWarning")

N = 40
GRAPH = vaca.CausalGraph.from_edges([("a", "b"), ("b", "c")])


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    a = rng.normal(size=N)
    b = 2 * a + rng.normal(size=N)
    return pd.DataFrame({"a": a, "b": b, "c": b + rng.normal(size=N)})


@functools.cache
def model() -> vaca.AdditiveNoise:
    return vaca.AdditiveNoise(GRAPH).fit(table(), progress=False)


# ---------------------------------------------------------------------- whose row it is

INDEXES: dict[str, pd.Index] = {
    "repeated": pd.Index([1, 1, 1, 2]),
    "all missing": pd.Index([np.nan] * 3),
    "None": pd.Index([None, None, "a"], dtype=object),
    "equal but of other types": pd.Index([1, "1", 1.0], dtype=object),
    "repeated pairs": pd.MultiIndex.from_tuples([(1, 2), (1, 2), (1, 3)]),
    "names alike": pd.MultiIndex.from_tuples([(1, 2), (3, 4)], names=["x", "x"]),
    "names draw and row": pd.MultiIndex.from_tuples([(1, 2), (3, 4)], names=["draw", "row"]),
    "draw": pd.Index([5, 6], name="draw"),
    "a column's name": pd.Index([5, 6], name="a"),
    "one moment three times": pd.DatetimeIndex(["2020-01-01"] * 3),
    "time zone": pd.date_range("2020", periods=3, tz="Europe/Berlin"),
    "intervals": pd.interval_range(0, 3),
    "categories": pd.CategoricalIndex(["x", "x", "y"]),
    "two zeros": pd.Index([0.0, -0.0, 0.0]),
    "tuples": pd.Index([(1, 2), (1, 2)], tupleize_cols=False),
    "missing in pairs": pd.MultiIndex.from_tuples([(np.nan, 1), (np.nan, 1)]),
    "five levels": pd.MultiIndex.from_product([[0, 1]] * 5),
    "a tuple for a name": pd.Index([1, 2], name=("a", "b")),
    "sets": pd.Index([frozenset([1]), frozenset([1])]),
}


@pytest.mark.parametrize("case", INDEXES)
def test_one_summary_row_for_each_row(case: str) -> None:
    index = INDEXES[case]
    rows = table().head(len(index)).set_axis(index, axis=0)
    many = model().counterfactual(rows, do={"a": 1.0}, draws=3, seed=0)
    found = many.summary()
    assert len(found) == len(rows)
    # The point answer needs no draws here: each row's own mean is beside it, in its own place.
    plain = model().counterfactual(rows.reset_index(drop=True), do={"a": 1.0}, draws=3, seed=0)
    np.testing.assert_allclose(found.to_numpy(), plain.summary().to_numpy())
    assert model().counterfactual(rows, do={"a": 1.0}).index.equals(index)


@pytest.mark.parametrize("names", [("draw", "row"), ("index", "level_0"), ("mean", "sd")])
def test_columns_may_have_the_names_of_an_index(names: tuple[str, str]) -> None:
    rows = table()[["a", "b"]].set_axis(names, axis=1)
    fitted = vaca.AdditiveNoise(vaca.CausalGraph.from_edges([names])).fit(rows, progress=False)
    answer = fitted.counterfactual(rows.head(3), do={names[0]: 1.0}, draws=2, seed=0)
    assert len(answer.summary()) == 3


# ---------------------------------------------------------------------- tables and cells

TABLES = {
    "no rows": lambda t: t.head(0),
    "a row": lambda t: t.iloc[0],
    "numbers alone": lambda t: t.to_numpy(),
    "nothing": lambda t: None,
    "text": lambda t: "a,b,c",
    "one number for each column": lambda t: {"a": 1.0, "b": 2.0, "c": 3.0},
    "columns of several lengths": lambda t: {"a": [1.0], "b": [1.0, 2.0], "c": [1.0]},
    "two columns of a name": lambda t: pd.concat([t, t], axis=1),
    "names in two levels": lambda t: pd.concat({"x": t}, axis=1),
    "names that are numbers": lambda t: t.set_axis([0, 1, 2], axis=1),
    "a column less": lambda t: t[["a", "b"]],
}
CELLS: dict[str, Any] = {
    "lists": [[1]] * N,
    "dicts": [{}] * N,
    "sets": [{1}] * N,
    "a list among text": [[1], *["a"] * (N - 1)],
    "Arrow lists": pd.Series([[1]] * N, dtype=pd.ArrowDtype(pa.list_(pa.int64()))),
    "Arrow structs": pd.Series([{"x": 1}] * N, dtype=pd.ArrowDtype(pa.struct([("x", pa.int64())]))),
    "complex numbers": np.arange(N) + 1j,
    "bytes": [b"a", b"b"] * (N // 2),
    "decimals": [decimal.Decimal(k) for k in range(N)],
    "intervals": pd.interval_range(0, N),
    "nothing": [None] * N,
    "infinity": [np.inf, *range(N - 1)],
}


@pytest.mark.parametrize("case", TABLES)
def test_what_is_no_table_is_refused(case: str) -> None:
    with pytest.raises(VacaError):
        model().counterfactual(TABLES[case](table()), do={"a": 1.0})
    with pytest.raises(VacaError):
        vaca.AdditiveNoise(GRAPH).fit(TABLES[case](table()), progress=False)


@pytest.mark.parametrize("case", CELLS)
def test_cells_that_are_no_values_are_refused(case: str) -> None:
    rows = table().assign(a=CELLS[case])
    with pytest.raises(VacaError, match="'a'"):
        vaca.AdditiveNoise(GRAPH).fit(rows, progress=False)
    if case != "decimals":  # where numbers are expected, they are some
        with pytest.raises(VacaError, match="'a'"):
            model().counterfactual(rows, do={"b": 1.0})


UNREACHED: dict[str, Any] = {
    "uint64 to its end": np.array([2**64 - 1 - k for k in range(N)], dtype="uint64"),
    "int64 from its start": np.array([-(2**63) + k for k in range(N)]),
    "UInt64": pd.array([2**63 + k for k in range(N)], dtype="UInt64"),
    "uint64 of Arrow": pd.array([2**63 + k for k in range(N)], dtype="uint64[pyarrow]"),
    "float16": np.linspace(0, 1, N).astype("float16"),
    "longdouble": np.linspace(0, 1, N).astype(np.longdouble),
    "the other byte order": np.linspace(0, 1, N).astype(">f8"),
    "whole, the other byte order": np.arange(N).astype(">i4"),
    "Float32": pd.array(np.linspace(0, 1, N).astype("float32"), dtype="Float32"),
    "double of Arrow": pd.array(np.linspace(0, 1, N), dtype="double[pyarrow]"),
    "objects beyond int64": pd.Series([2**70 + k for k in range(N)], dtype=object),
    "objects that are bools": pd.Series([bool(k % 2) for k in range(N)], dtype=object),
    "sparse": pd.arrays.SparseArray(np.where(np.arange(N) % 3, 0.0, np.arange(N))),
    "levels a bit apart": pd.Categorical([0.1, 0.1 + 2**-54] * (N // 2)),
    "dictionary of Arrow": pd.Series(["a", "b"] * (N // 2)).astype(
        pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))
    ),
    "bool of Arrow": pd.Series([True, False] * (N // 2), dtype="bool[pyarrow]"),
}


@pytest.mark.parametrize("case", UNREACHED)
def test_more_dtypes_come_back_bit_for_bit(case: str, tmp_path) -> None:
    rows = pd.DataFrame({"x": pd.Series(UNREACHED[case]), "b": np.arange(float(N))})
    graph = vaca.CausalGraph.from_edges([("b", "c")], nodes=["x", "b", "c"])
    rows["c"] = rows["b"] ** 2
    fitted = vaca.AdditiveNoise(graph).fit(rows, progress=False)
    fitted.save(tmp_path / "m")
    for one in (fitted, vaca.load(tmp_path / "m")):
        found = one.counterfactual(rows, do={"b": 0.5})
        pd.testing.assert_series_equal(found["x"], rows["x"], check_exact=True)


# ---------------------------------------------------------------------- numbers

WRONG: tuple[Any, ...] = (
    -1, 1.5, "3", True, np.nan, np.inf, 10**12, 10**400, [3], b"3", object(), pd.NA, {},
)  # fmt: skip


@functools.cache
def answer() -> Any:
    return model().counterfactual(table().head(3), do={"a": 1.0}, draws=2, seed=0)


@functools.cache
def effect() -> Any:
    return model().effect("c", {"a": 1.0}, given=table(), seed=0)


@functools.cache
def loans() -> Any:
    return vaca.scms.load("loan"), vaca.scms.load("loan").sample(30, seed=0)


def audited(**options: Any) -> Any:
    scm, people = loans()
    return audit(scm, lambda frame: frame["income"] > 0, people, "gender", **options)


NUMBERS: dict[str, Any] = {
    "rows": lambda v: model().sample(v),
    "seed": lambda v: model().sample(2, seed=v),
    "draws": lambda v: model().counterfactual(table().head(2), do={"a": 1.0}, draws=v, seed=0),
    "quantiles": lambda v: answer().summary(v),
    "level of an interval": lambda v: effect().interval(v),
    "refits": lambda v: vaca.AdditiveNoise(GRAPH).fit(table(), refits=v, progress=False),
    "jobs": lambda v: vaca.AdditiveNoise(GRAPH).fit(table(), jobs=v, progress=False),
    "weights": lambda v: vaca.AdditiveNoise(GRAPH).fit(table(), weights=v, progress=False),
    "draws of an audit": lambda v: audited(draws=v),
    "threshold of an audit": lambda v: audited(draws=2, threshold=v),
    "level of an audit": lambda v: audited(draws=2, level=v),
    "seed of an audit": lambda v: audited(draws=2, seed=v),
    "seed of a check": lambda v: vaca.check(model(), table(), quick=True, seed=v, progress=False),
    "members": lambda v: vaca.Ensemble(GRAPH, "AdditiveNoise", members=v).fit(table()),
    "variance": lambda v: vaca.distributions.Normal(v, -1.0),
    "outcome": lambda v: model().effect(v, {"a": 1.0}, given=table()),
    "kinds": lambda v: vaca.AdditiveNoise(GRAPH, {"a": v}).fit(table(), progress=False),
    "levels": lambda v: vaca.Column("ordinal", "3" if isinstance(v, list) else v),
    "text of a graph": lambda v: vaca.CausalGraph.from_text(3 if isinstance(v, str) else v),
    "JSON of a graph": vaca.CausalGraph.from_json,
    "DOT of a graph": vaca.CausalGraph.from_dot,
    "GML of a graph": vaca.CausalGraph.from_gml,
    "networkx graph": vaca.CausalGraph.from_networkx,
    "name of an SCM": vaca.scms.load,
}
#: What is a number there after all.
FINE = {
    "jobs": (10**12,),
    "refits": (),
    "seed": (),
    "rows": (),
    "kinds": (),
    "levels": ({},),
    "variance": (),
}


@pytest.mark.parametrize("case", NUMBERS)
def test_numbers_that_cannot_be_are_refused_at_once(case: str) -> None:
    for value in WRONG:
        if any(value is fine or type(value) is dict for fine in FINE.get(case, ())):
            continue
        if case == "quantiles" and value == {}:
            continue
        with pytest.raises(VacaError):
            NUMBERS[case](value)


@pytest.mark.parametrize(
    "delta", [decimal.Decimal("1.5"), np.float32(1.5), np.array(1.5), np.longdouble(1.5)]
)
def test_a_shift_takes_any_kind_of_number(delta: Any) -> None:
    rows = table()
    found = model().counterfactual(rows, do={"a": vaca.Shift(delta)})
    np.testing.assert_allclose(found["a"] - rows["a"], 1.5)


# ---------------------------------------------------------------------- graph files

BAD_GRAPHS = {
    "txt": ["a -> a", "a -> b\nb -> a"],
    "dot": [
        "digraph{" + "subgraph{" * 5000, "graph { a -- b }", "digraph { a -> b -> a }",
        "digraph { /* ", "digraph { a -> b [", "digraph a digraph b", "#include <x>",
    ],
    "gml": [
        "graph [" * 2000, "x [ ]", "graph [ directed 1 edge [ source 0 target 1 ] ]",
        'graph [ directed 1 node [ id 0 label "a" ] node [ id 0 label "b" ] ]',
        f'graph [ directed 1 node [ id {"9" * 5000} label "a" ] ]',
        'graph [ directed 1 node [ id 0 label "a" columns [ x 1 ] ] ]',
    ],
    "json": [
        '{"nodes": ["a", 5], "edges": []}', '{"edges": [["a", "b", "c"]]}', '{"edges": ["ab"]}',
        '{"a": [["b"]]}', '{"a": [null]}', '{"": []}', '{"a": [], "a": ["a"]}', "NaN", '"a"',
        '{"nodes": {"a": ["x"], "b": ["x"]}, "edges": []}', '{"nodes": {"a": []}, "edges": []}',
        '{"edges": ' + "9" * 10_000 + "}", '{"edges": [["a", "a"]]}', '[["a", "b"]]',
    ],
}  # fmt: skip


@pytest.mark.parametrize("ending", BAD_GRAPHS)
def test_graph_files_that_are_none_are_refused(tmp_path, ending: str) -> None:
    path = tmp_path / f"graph.{ending}"
    for text in BAD_GRAPHS[ending]:
        path.write_text(text)
        with pytest.raises(VacaError, match=r"graph\."):
            vaca.CausalGraph.read(path)


def test_places_that_are_no_files_are_refused(tmp_path) -> None:
    (tmp_path / "folder.txt").mkdir()
    (tmp_path / "loop.txt").symlink_to(tmp_path / "loop.txt")
    for name in ("folder.txt", "loop.txt", "none.txt", "none.xyz", "a" * 5000 + ".txt", "\0.txt"):
        with pytest.raises(VacaError):
            vaca.CausalGraph.read(tmp_path / name)
    for name in ("folder.txt", "no/where.txt", "a" * 5000 + ".txt", "\0.txt"):
        with pytest.raises(VacaError):
            GRAPH.write(tmp_path / name)


def test_time_is_linear_in_the_file(tmp_path) -> None:
    """By the calls made and not by the clock: four times the chain, four times the calls."""
    import cProfile
    import pstats

    def calls(n: int) -> int:
        path = tmp_path / "graph.json"
        path.write_text(json.dumps({f"n{k}": [f"n{k - 1}"] if k else [] for k in range(n)}))
        with cProfile.Profile() as profile:
            assert vaca.CausalGraph.read(path).longest_path == n - 1
        return pstats.Stats(profile).total_calls  # type: ignore[attr-defined]

    calls(50)
    assert calls(4000) < 4.5 * calls(1000)


# ---------------------------------------------------------------------- every engine

EXTREMES = {
    "tiny": lambda x: x * 1e-300,
    "small": lambda x: x * 1e-100,
    "large": lambda x: x * 1e100,
    "huge": lambda x: x / np.abs(x).max() * 1.7e308,
    "constant": lambda x: np.full(len(x), 3.0),
    "nearly constant": lambda x: 1e9 + x * 1e-7,
    "Cauchy": lambda x: np.tan(1.5 * np.tanh(x)),
    "duplicates": lambda x: np.repeat(x[:2], len(x) // 2),
    "one apart": lambda x: np.r_[np.zeros(len(x) - 1), 1e-9],
    "zeros and one far out": lambda x: np.r_[np.zeros(len(x) - 1), 1e12],
}


def quick(name: str, graph: vaca.CausalGraph, kinds: Any = None) -> Any:
    family: Any = engine_class(name)
    known = family(graph).get_params(deep=False)
    chosen = {k: v for k, v in QUICK.items() if k in known}
    if name == "Ensemble":
        chosen |= {"engine": "AdditiveNoise", "jobs": 1}
    return family(graph, schema=kinds, **chosen)


@pytest.mark.parametrize("name", ENGINES)
def test_extremes_are_answered_or_refused(name: str) -> None:
    graph = vaca.CausalGraph.from_edges([("a", "b")])
    x = np.random.default_rng(0).normal(size=N)
    for k, case in enumerate(EXTREMES):
        pair = (EXTREMES[case](x), x) if k % 2 else (x, EXTREMES[case](x))
        rows = pd.DataFrame(dict(zip("ab", pair, strict=True)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                fitted = quick(name, graph, dict.fromkeys("ab", "continuous")).fit(
                    rows, progress=False
                )
                value = float(rows["a"].iloc[5])
                found = fitted.counterfactual(rows.head(3), do={"a": value})
                drawn = fitted.sample(3, seed=0)
            except VacaError as error:
                refused = str(error)
            else:
                refused = None
        if refused is not None:
            assert "'a'" in refused or "'b'" in refused, case
            continue
        assert np.isfinite(found.to_numpy()).all() and np.isfinite(drawn.to_numpy()).all(), case
        assert (found["a"] == value).all(), case
