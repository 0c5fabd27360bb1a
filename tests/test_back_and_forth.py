"""Abduct, then simulate: on every engine, under random dtypes, the factual row comes back."""

from __future__ import annotations

import decimal
import functools
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vaca
from tests.fuzz.models import QUICK
from vaca.engines.registry import ENGINES, engine_class

pytestmark = pytest.mark.filterwarnings("ignore::vaca.errors.VacaWarning")

N = 40
#: Numbers (n,) from a standard normal one, in the ways that tables hold them.
NUMBERS: dict[str, Any] = {
    "float64": lambda z: pd.Series(z * 1e3),
    "tiny": lambda z: pd.Series(z * 1e-30),
    "float32": lambda z: pd.Series(z.astype("float32")),
    "float16": lambda z: pd.Series(z.astype("float16")),
    "Float64": lambda z: pd.Series(z).astype("Float64"),
    "double of Arrow": lambda z: pd.Series(z).astype("double[pyarrow]"),
    "int64": lambda z: pd.Series(np.rint(900 * z).astype("int64")),
    "int8": lambda z: pd.Series(np.clip(np.rint(40 * z), -120, 120).astype("int8")),
    "Int32": lambda z: pd.Series(np.rint(900 * z).astype("int32")).astype("Int32"),
    "decimal": lambda z: pd.Series(
        [decimal.Decimal(f"{v:.2f}") for v in z], dtype=pd.ArrowDtype(pa.decimal128(12, 2))
    ),
    "count": lambda z: pd.Series(np.abs(np.rint(9 * z)).astype("uint16")),
    "dates": lambda z: pd.Series(pd.to_datetime(np.rint(90 * z) + 18_000, unit="D")),
}  # fmt: skip
LEVELS: dict[str, Any] = {
    "bool": lambda k: pd.Series(k > 0),
    "boolean": lambda k: pd.Series(k > 0).astype("boolean"),
    "text": lambda k: pd.Series(np.array(["f", "m", "x"])[k]),
    "text of Arrow": lambda k: pd.Series(np.array(["f", "m", "x"])[k]).astype("string[pyarrow]"),
    "category": lambda k: pd.Series(pd.Categorical.from_codes(k, ["z", "a", "b"])),
    "ordered": lambda k: pd.Series(pd.Categorical.from_codes(k, [5, 1, 3], ordered=True)),
    "odd text": lambda k: pd.Series(np.array(["", "1", "nan"])[k]),
    "numbers": lambda k: pd.Series(np.array([0.25, -7.5, 1e6])[k]).astype("category"),
}


@functools.cache
def fitted(name: str) -> tuple[Any, pd.DataFrame]:
    """A model of five columns: three of them, and their dtypes, are the engine's own draw."""
    rng = np.random.default_rng(list(ENGINES).index(name))
    z = rng.normal(size=(4, N))
    z[1] += z[0]
    kinds = rng.permutation(list(NUMBERS))[:3]
    codes = np.digitize(z[3] + 0.5 * z[0], [-0.5, 0.5])
    rows = pd.DataFrame(
        {
            "root": NUMBERS[kinds[0]](z[0]),
            "level": LEVELS[rng.choice(list(LEVELS))](codes),
            "middle": NUMBERS[kinds[1]](z[1]),
            "leaf": NUMBERS[kinds[2]](z[2] + z[1]),
            "apart": pd.Series(2**60 + rng.integers(0, 10**6, N)),
        }
    )
    arrows = [("root", "level"), ("root", "middle"), ("level", "leaf"), ("middle", "leaf")]
    graph = vaca.CausalGraph.from_edges(arrows, nodes=list(rows))
    family: Any = engine_class(name)
    known = family(graph).get_params(deep=False)
    chosen = {k: v for k, v in QUICK.items() if k in known}
    if name == "Ensemble":
        chosen |= {"engine": "AdditiveNoise", "jobs": 1}
    kinds_of = {"root": "continuous", "middle": "continuous", "leaf": "continuous"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return family(graph, schema=kinds_of, **chosen).fit(rows, progress=False), rows


@pytest.mark.parametrize("name", ENGINES)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_the_factual_comes_back(name: str, data: st.DataObject) -> None:
    model, rows = fitted(name)
    picked = data.draw(st.lists(st.integers(0, N - 1), min_size=1, max_size=4))
    people = rows.iloc[picked].reset_index(drop=True)
    # By the primitives, as far as their precision goes: some engines compute in single precision.
    x = model.schema_.encode(people)
    again = model.simulate(model.abduct(x), {})
    for column, values in x.items():
        # How wide the column lies, which is the scale that the engines compute on.
        wide = np.ptp(model.rows_[column].astype(float)) + 1e-300
        far = np.abs(again[column].astype(float) - values.astype(float)).max()
        assert far <= 5e-3 * wide, column
    # By the question: bit for bit.
    pd.testing.assert_frame_equal(
        pd.DataFrame(model.counterfactual(people, {})), people, check_exact=True
    )
    # An intervention: its column is what it says, what it cannot reach is the factual's own.
    column = data.draw(st.sampled_from(list(rows)[:-1]))
    value = rows[column].iloc[data.draw(st.integers(0, N - 1))]
    draws = data.draw(st.sampled_from([None, 2]))
    found = model.counterfactual(people, {column: value}, draws=draws, seed=0)
    factual = people.iloc[np.repeat(np.arange(len(people)), draws or 1)].reset_index(drop=True)
    found = pd.DataFrame(found).reset_index(drop=True)
    assert (found[column] == value).all()
    reached = {column, *model.graph.descendants(column)}
    for other in set(rows) - reached:
        pd.testing.assert_series_equal(found[other], factual[other], check_exact=True)
    assert "apart" not in reached
    for other in rows:
        if model.schema_[other].discrete:
            assert found[other].dtype == rows[other].dtype
