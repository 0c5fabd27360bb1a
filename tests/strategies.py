"""Random graphs, tables and interventions for property tests."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from vaca import CausalGraph
from vaca.table.schema import Schema


@st.composite
def dags(draw: st.DrawFn, max_nodes: int = 7) -> CausalGraph:
    """A random DAG whose node order is not a topological one."""
    n = draw(st.integers(1, max_nodes))
    names = draw(st.permutations([f"n{i}" for i in range(n)]))
    pairs = [(names[i], names[j]) for i in range(n) for j in range(i + 1, n)]
    edges = [pair for pair in pairs if draw(st.booleans())]
    return CausalGraph.from_edges(edges, nodes=sorted(names))


def _column(rng: np.random.Generator, kind: str, rows: int) -> pd.Series:
    if kind == "float":
        return pd.Series(rng.normal(size=rows) * 10.0 ** rng.integers(-3, 4))
    if kind == "float32":
        return pd.Series(rng.normal(size=rows).astype("float32"))
    if kind == "integer":
        return pd.Series(rng.integers(-2000, 5000, size=rows))
    if kind == "count":
        return pd.Series(rng.poisson(20, size=rows))
    if kind == "nullable":
        return pd.Series(rng.integers(0, 400, size=rows)).astype("Int64")
    if kind == "bool":
        return pd.Series(rng.random(rows) < 0.4)
    if kind == "text":
        return pd.Series(rng.choice(["red", "green", "blue"], size=rows))
    if kind == "category":
        return pd.Series(
            pd.Categorical(rng.choice(list("cab"), size=rows), categories=list("cbad"))
        )
    return pd.Series(
        pd.Categorical(
            rng.choice(["lo", "mid", "hi"], size=rows), ["lo", "mid", "hi"], ordered=True
        )
    )


COLUMN_KINDS = (
    "float",
    "float32",
    "integer",
    "count",
    "nullable",
    "bool",
    "text",
    "category",
    "ordered",
)


@st.composite
def tables(draw: st.DrawFn, max_columns: int = 6) -> tuple[pd.DataFrame, CausalGraph, Schema]:
    """A random table of mixed dtypes with an odd index, a graph over it and its schema."""
    kinds = draw(st.lists(st.sampled_from(COLUMN_KINDS), min_size=1, max_size=max_columns))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    rows = draw(st.integers(40, 80))
    frame = pd.DataFrame({f"c{i}": _column(rng, kind, rows) for i, kind in enumerate(kinds)})
    frame.index = pd.Index(rng.permutation(rows) * 3 + 7, name="id")
    names = list(frame.columns)
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    graph = CausalGraph.from_edges([p for p in pairs if draw(st.booleans())], nodes=names)
    return frame, graph, Schema.infer(frame, graph)
