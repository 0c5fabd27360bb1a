"""What every causal model must do, true or learned: one suite over all SCMs and all engines.

The causal semantics are tested twice: on the public questions, and on the bare primitives, where
the base class cannot help an engine.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import vaca
import vaca.engines
from tests.strategies import dags, tables
from vaca.engines.engine import Engine
from vaca.engines.registry import ENGINES, engine_class
from vaca.errors import InterventionError, SchemaError, VacaError
from vaca.model.causal_model import CausalModel
from vaca.scm import Normal, StructuralCausalModel

# Interventions on these SCMs often combine causes as no row does: see model/test_support.py.
pytestmark = [
    pytest.mark.filterwarnings("ignore::vaca.errors.SupportWarning"),
    pytest.mark.usefixtures("without_trees"),
]

ROWS = 200
# Whatever of this an engine has makes it train in a second: what is tested holds for any weights.
BRIEF = {"steps": 30, "epochs": 3, "width": 16, "flows": 2, "polish_steps": 10}


def brief(name: str) -> Callable[[vaca.CausalGraph], Any]:
    """Make a registered engine that trains for a second."""
    family: Any = engine_class(name)
    known = inspect.signature(family).parameters
    settings: dict[str, Any] = {k: v for k, v in BRIEF.items() if k in known}
    if name == "Ensemble":
        settings |= {
            "engine": "VACA",
            "members": 2,
            "settings": {"steps": 10, "width": 8},
            "jobs": 1,
        }
    return lambda graph: family(graph, **settings)


# Every engine of the registry, so that a new one cannot be forgotten.
QUICK: dict[str, Callable[[vaca.CausalGraph], Any]] = {name: brief(name) for name in ENGINES}

TRUE_CASES = [f"true {name}" for name in vaca.scms.names()]
# A learned model never sees the equations: of the three forms of a graph one is enough. A path with
# a shortcut, several roots with several leaves, and eleven nodes of every kind hold the others.
SHAPES = ["triangle-nlin", "mgraph-lin", "adult"]
LEARNED_CASES = [f"{engine} {name}" for engine in QUICK for name in SHAPES]
# For what the base class does with any weights, one table a model: the one with most kinds.
ONE_EACH = [f"{engine} adult" for engine in ("true", *QUICK)]


@cache
def case(name: str) -> tuple[CausalModel, pd.DataFrame]:
    """A model (for an engine: briefly trained) and factual rows of the SCM it belongs to."""
    engine, scm_name = name.split(" ")
    scm = vaca.scms.load(scm_name)
    frame = scm.sample(ROWS, seed=1)
    if engine == "true":
        return scm, frame
    return QUICK[engine](scm.graph).fit(frame, progress=False), frame


def grouped(names: list[str]) -> list:
    # One worker per model, so that an engine is trained once.
    return [
        pytest.param(n, marks=pytest.mark.xdist_group(n), id=n.replace(" ", "-")) for n in names
    ]


@pytest.fixture(params=grouped(TRUE_CASES + LEARNED_CASES))
def model_and_rows(request) -> tuple[CausalModel, pd.DataFrame]:
    return case(request.param)


@pytest.fixture(params=grouped(ONE_EACH))
def each_model_and_rows(request) -> tuple[CausalModel, pd.DataFrame]:
    return case(request.param)


@pytest.fixture(params=grouped(LEARNED_CASES))
def learned_and_rows(request) -> tuple[CausalModel, pd.DataFrame]:
    return case(request.param)


def engines_below(family: type) -> set[str]:
    """Names of every finished engine that is defined anywhere in the package."""
    found = set()
    for kind in family.__subclasses__():
        found |= engines_below(kind)
        if not inspect.isabstract(kind) and kind.__module__.startswith("vaca."):
            found.add(kind.__name__)
    return found


def test_no_engine_is_left_out() -> None:
    for module in pkgutil.iter_modules(vaca.engines.__path__, "vaca.engines."):
        importlib.import_module(module.name)
    assert engines_below(Engine) == set(ENGINES)
    for name in ENGINES:
        assert engine_class(name).__name__ == name
        assert {case for case in LEARNED_CASES if case.split(" ")[0] == name}


def some_do(model: CausalModel, frame: pd.DataFrame, node: str) -> dict:
    """An intervention on one node, at a value that occurs in the data but is not the mean."""
    columns = model.graph.columns(node)
    row = frame[list(columns)].iloc[7]
    if len(columns) > 1:
        return {node: row.to_dict()}
    value = row.iloc[0]
    return {node: value.item() if isinstance(value, np.generic) else value}


def unreachable(model: CausalModel, node: str) -> list[str]:
    below = {node, *model.graph.descendants(node)}
    return [c for n in model.graph.nodes if n not in below for c in model.graph.columns(n)]


def test_shapes_names_and_kinds(model_and_rows) -> None:
    model, frame = model_and_rows
    drawn = model.sample(17, seed=0)
    assert list(drawn.columns) == list(frame.columns)
    assert len(drawn) == 17
    assert drawn.dtypes.equals(frame.dtypes)
    assert not drawn.isna().any().any()
    for name in frame.columns:
        if model.schema_[name].discrete:
            assert set(drawn[name]) <= set(model.schema_.levels(name))
        else:
            assert np.isfinite(drawn[name].to_numpy(float)).all()


def test_same_seed_same_numbers(model_and_rows) -> None:
    model, frame = model_and_rows
    node = model.graph.order[0]
    do = some_do(model, frame, node)
    state, torch_state = np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    pd.testing.assert_frame_equal(model.sample(20, do, seed=3), model.sample(20, do, seed=3))
    first = model.counterfactual(frame.head(), do, draws=3, seed=3)
    assert first.equals(model.counterfactual(frame.head(), do, draws=3, seed=3))
    point = model.counterfactual(frame.head(), do)
    assert point.equals(model.counterfactual(frame.head(), do))
    now = np.random.get_state()[1]  # noqa: NPY002
    assert (now == state).all(), "numpy's global generator was touched"
    assert torch.equal(torch.get_rng_state(), torch_state), "torch's global generator was touched"


@pytest.mark.parametrize("engine", list(QUICK))
def test_fitting_leaves_the_global_generators_alone(engine: str) -> None:
    scm = vaca.scms.load("loan")
    state, torch_state = np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    QUICK[engine](scm.graph).fit(scm.sample(60, seed=0), progress=False)
    assert (np.random.get_state()[1] == state).all()  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), torch_state)


def test_do_holds_exactly(model_and_rows) -> None:
    model, frame = model_and_rows
    for node in model.graph.nodes:
        do = some_do(model, frame, node)
        wanted = frame[list(model.graph.columns(node))].iloc[7]
        for answer in (
            model.sample(25, do, seed=0),
            model.counterfactual(frame.head(25), do),
            model.counterfactual(frame.head(5), do, draws=3, seed=0),
        ):
            for column, value in wanted.items():
                assert (answer[column] == value).all(), (node, column)


def test_non_descendants_do_not_move(model_and_rows) -> None:
    model, frame = model_and_rows
    before = model.sample(60, seed=5)
    for node in model.graph.nodes:
        do = some_do(model, frame, node)
        kept = unreachable(model, node)
        pd.testing.assert_frame_equal(model.sample(60, do, seed=5)[kept], before[kept])
        answer = pd.DataFrame(model.counterfactual(frame.head(60), do))
        pd.testing.assert_frame_equal(answer[kept], frame.head(60)[kept])


def test_non_descendants_do_not_move_in_the_primitives(model_and_rows) -> None:
    model, frame = model_and_rows
    u = model.noise(60, np.random.default_rng(0))
    before = model.simulate(u, {})
    for node in model.graph.nodes:
        encoded = model.schema_.encode(frame.head(60))
        do = {c: encoded[c] for c in model.graph.columns(node)}
        after = model.simulate(u, do)
        for column in unreachable(model, node):
            np.testing.assert_array_equal(after[column], before[column], err_msg=f"{node} {column}")


def noise_owner(model: CausalModel, key: str) -> str:
    """The node that an entry of the noise belongs to: `name` or `anything/name`."""
    name = key.rsplit("/", 1)[-1]
    return name if name in model.graph else model.graph.node_of(name)


def test_noise_reaches_only_descendants(model_and_rows) -> None:
    """The Jacobian of x = F(u) is exactly zero outside the ancestors, in its finite form."""
    model, _ = model_and_rows
    if type(model).__name__ == "CAREFL":
        pytest.skip("CAREFL knows a causal ordering and not the graph: later columns may move")
    a = model.noise(60, np.random.default_rng(0))
    b = model.noise(60, np.random.default_rng(1))
    before = model.simulate(a, {})
    for node in model.graph.nodes:
        mixed = {k: b[k] if noise_owner(model, k) == node else a[k] for k in a}
        after = model.simulate(mixed, {})
        moved = [c for c in before if not np.array_equal(before[c], after[c])]
        allowed = {
            c for n in (node, *model.graph.descendants(node)) for c in model.graph.columns(n)
        }
        assert set(moved) <= allowed, (node, moved)


def test_no_intervention_gives_the_factual_back(model_and_rows) -> None:
    model, frame = model_and_rows
    pd.testing.assert_frame_equal(pd.DataFrame(model.counterfactual(frame, {})), frame)
    rows = frame.head(20)
    for draw in range(3):
        answer = pd.DataFrame(model.counterfactual(rows, {}, draws=3, seed=0)).xs(
            draw, level="draw"
        )
        np.testing.assert_array_equal(answer.to_numpy(), rows.to_numpy())


def abducted(model: CausalModel, frame: pd.DataFrame) -> tuple[dict, dict]:
    x = model.schema_.encode(frame)
    return x, model._abduct_frame(frame, x, None)


def test_the_primitives_give_the_factual_back(model_and_rows) -> None:
    model, frame = model_and_rows
    x, u = abducted(model, frame)
    again = model.simulate(u, {})
    for column, values in x.items():
        if model.schema_[column].discrete:
            np.testing.assert_array_equal(again[column], values, err_msg=column)
        else:
            scale = values.std() or 1.0
            np.testing.assert_allclose(again[column], values, rtol=1e-6, atol=1e-6 * scale)


def sends_states(model: CausalModel) -> bool:
    """Whether it is VACA with the paper's network, which has no values inside but at its ends."""
    return isinstance(model, vaca.PaperVACA)


def test_composition(model_and_rows) -> None:
    """do(x_i = its factual value) gives the factual back.

    The paper's network encodes an intervened node anew without its parents, so its descendants
    move; `docs/explanations/two-encoder-passes.md` says by how much.
    """
    model, frame = model_and_rows
    rows = frame.head(100)
    for node in model.graph.nodes:
        columns = list(model.graph.columns(node))
        do = {node: {c: rows[c] for c in columns}} if len(columns) > 1 else {node: rows[columns[0]]}
        answer = pd.DataFrame(model.counterfactual(rows, do))
        held = [*columns, *unreachable(model, node)] if sends_states(model) else frame.columns
        for column in held:
            if model.schema_[column].discrete:
                assert answer[column].equals(rows[column]), (node, column)
            else:
                np.testing.assert_allclose(answer[column], rows[column], rtol=1e-6, atol=1e-9)


def test_abduction_looks_only_at_a_node_and_its_parents(learned_and_rows) -> None:
    # Learned models only: a true SCM may refuse the mixed rows, which its equations did not make.
    model, frame = learned_and_rows
    if type(model).__name__ == "CAREFL":
        pytest.skip("CAREFL abducts a column from all earlier ones, parents or not")
    rows = frame.head(40)
    other = frame.iloc[40:80].set_index(rows.index)
    x, _ = abducted(model, rows)
    y, _ = abducted(model, other)
    u = model.abduct(x, None)
    for node in model.graph.nodes:
        changed = {c: y[c] if c in model.graph.columns(node) else x[c] for c in x}
        v = model.abduct(changed, None)
        allowed = {node, *model.graph.children(node)}
        # What the paper's decoder misses depends on all that it decodes from; its latents do not.
        keys = [k for k in u if k.startswith("z/")] if sends_states(model) else list(u)
        for key in keys:
            if noise_owner(model, key) not in allowed:
                np.testing.assert_array_equal(u[key], v[key], err_msg=f"{key} moved with {node}")


def test_every_counterfactual_value_is_valid(model_and_rows) -> None:
    model, frame = model_and_rows
    for node in model.graph.nodes:
        answer = model.counterfactual(frame.head(40), some_do(model, frame, node), draws=2, seed=1)
        model.schema_.encode(answer)  # raises on an unknown level, NaN or infinity


def test_effect_runs_on_every_pair(each_model_and_rows) -> None:
    model, frame = each_model_and_rows
    node = next(n for n in model.graph.order if model.graph.children(n))
    outcome = model.graph.columns(model.graph.children(node)[0])[0]
    effect = model.effect(outcome, some_do(model, frame, node), n=200)
    assert np.isfinite(effect.value)
    assert effect.standard_error >= 0
    given = model.effect(outcome, some_do(model, frame, node), given=frame.head(30))
    assert given.per_row is not None
    assert len(given.per_row) == 30


def test_bad_input_raises(each_model_and_rows) -> None:
    model, frame = each_model_and_rows
    with pytest.raises(InterventionError, match="unknown node 'nobody'"):
        model.sample(3, do={"nobody": 1})
    with pytest.raises(SchemaError, match="the table has no column"):
        model.counterfactual(frame.iloc[:, 1:], {})
    with pytest.raises(SchemaError, match="missing values"):
        model.counterfactual(frame.astype(float).mask(np.eye(*frame.shape) > 0), {})
    with pytest.raises(VacaError, match="n is a whole number"):
        model.sample(-1)


def test_it_says_what_counterfactuals_rest_on(each_model_and_rows) -> None:
    model, frame = each_model_and_rows
    table = model.assumptions()
    assert list(table.index) == list(frame.columns)
    assert table["rests_on"].str.len().gt(0).all()


# ---------------------------------------------------------------------- random graphs and tables


def random_scm(graph: vaca.CausalGraph) -> StructuralCausalModel:
    """A non-linear additive SCM over any graph."""
    equations: dict[str, Callable] = {}
    for i, node in enumerate(graph.nodes):
        parents = graph.parents(node)
        body = " + ".join([f"np.sin({p} + {i})" for p in parents] + ["u"])
        equations[node] = eval(f"lambda {', '.join([*parents, 'u'])}: {body}", {"np": np})
    return StructuralCausalModel(equations, {n: Normal(0, 1) for n in graph.nodes})


@given(graph=dags(), seed=st.integers(0, 1000), data=st.data())
def test_random_scms_obey_do(graph: vaca.CausalGraph, seed: int, data) -> None:
    scm = random_scm(graph)
    frame = scm.sample(30, seed=seed)
    nodes = data.draw(st.lists(st.sampled_from(graph.nodes), unique=True))
    do = {node: data.draw(st.floats(-3, 3)) for node in nodes}
    reached = set(nodes).union(*(graph.descendants(n) for n in nodes)) if nodes else set()
    kept = [n for n in graph.nodes if n not in reached]
    sampled = scm.sample(30, do, seed=seed)
    answer = pd.DataFrame(scm.counterfactual(frame, do))
    for node, value in do.items():
        assert (sampled[node] == value).all()
        assert (answer[node] == value).all()
    pd.testing.assert_frame_equal(sampled[kept], frame[kept])
    pd.testing.assert_frame_equal(answer[kept], frame[kept])
    # The same noise drives both, so counterfactuals of sampled rows are the interventional rows.
    pd.testing.assert_frame_equal(answer, sampled, rtol=1e-9)


@settings(max_examples=4)
@pytest.mark.parametrize("engine", list(QUICK))
@given(case=tables(max_columns=4))
def test_engines_take_any_table(engine: str, case) -> None:
    frame, graph, _ = case
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", vaca.VacaWarning)
        model = QUICK[engine](graph).fit(frame, progress=False)
        pd.testing.assert_frame_equal(pd.DataFrame(model.counterfactual(frame, {})), frame)
        drawn = model.sample(10, seed=0)
        model.schema_.encode(drawn)
        assert drawn.dtypes.equals(frame.dtypes)
        for node in graph.nodes:
            value = frame[node].iloc[0]
            done = model.counterfactual(frame, {node: frame[node].iloc[[0] * len(frame)].array})
            assert (done[node] == value).all()
