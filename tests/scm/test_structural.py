"""Structural causal models written by hand: reading them, abduction, what they refuse."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import vaca
from vaca.model.primitives import CHUNK
from vaca.scm import (
    AbductionError,
    Bernoulli,
    Categorical,
    Gamma,
    Mixture,
    Normal,
    StructuralCausalModel,
)
from vaca.scm.inversion import solve_noise


def clinic(**changes) -> StructuralCausalModel:
    """Three nodes in ten lines: a scipy noise, a binary threshold, an additive outcome."""
    given = {
        "equations": {
            "dose": lambda u: u,
            "treated": lambda dose, u: dose + u > 1,
            "health": lambda dose, treated, u: 0.5 * dose + 2 * treated + u,
        },
        "noise": {"dose": stats.norm(1, 2), "treated": Normal(0, 1), "health": Gamma(2, 1)},
        "kinds": {"treated": "binary"},
        "name": "clinic",
    } | changes
    return StructuralCausalModel(given.pop("equations"), given.pop("noise"), **given)


# ---------------------------------------------------------------------- reading a model


def test_graph_and_schema_are_read_off_the_equations() -> None:
    scm = clinic()
    assert scm.graph.nodes == ("dose", "treated", "health")
    assert set(scm.graph.edges) == {
        ("dose", "treated"), ("dose", "health"), ("treated", "health")
    }  # fmt: skip
    assert scm.schema_.kind("treated") == "binary"
    assert scm.schema_.levels("treated") == (0, 1)
    assert scm.intervened_nodes == scm.published_nodes == ("dose", "treated")
    assert repr(scm) == "StructuralCausalModel('clinic', dose, treated, health)"


def test_equations_may_come_in_any_order_and_hold_constants() -> None:
    scm = StructuralCausalModel(
        {"y": lambda x, u, slope=3.0: slope * x + u, "x": lambda u: u},
        {"x": Normal(), "y": Normal()},
    )
    assert scm.graph.nodes == ("y", "x")
    assert scm.graph.edges == (("x", "y"),)
    df = scm.sample(100, do={"x": 2.0}, seed=0)
    assert list(df.columns) == ["y", "x"]
    again = scm.counterfactual(df, do={"x": 3.0})
    np.testing.assert_allclose(again["y"] - df["y"], 3.0)


def test_labels_and_counts() -> None:
    scm = StructuralCausalModel(
        {
            "size": lambda u: u,
            "visits": lambda size, u: 2 * size + u,
            "mood": lambda visits, u: np.minimum(visits + u, 2),
        },
        {"size": Categorical([0.2, 0.3, 0.5]), "visits": stats.poisson(3), "mood": Bernoulli(0.5)},
        kinds={"size": "ordinal", "visits": "count", "mood": "categorical"},
        levels={"size": ["S", "M", "L"], "mood": ["bad", "fair", "good"]},
    )
    df = scm.sample(500, seed=0)
    assert list(df["size"].cat.categories) == ["S", "M", "L"]
    assert df["size"].cat.ordered
    assert pd.api.types.is_integer_dtype(df["visits"].dtype)
    twin = scm.counterfactual(df, do={"size": "L"})
    shift = 2 * (2 - df["size"].cat.codes)
    assert (twin["visits"] - df["visits"] == shift).all()
    assert scm.intervention_values("size", df) == ["S", "M", "L"]
    grid = scm.intervention_values("visits", df)
    assert all(value == round(value) >= 0 for value in grid)


def test_node_without_noise() -> None:
    scm = StructuralCausalModel(
        {"x": lambda u: u, "double": lambda x: 2 * x, "one": lambda: 1.0}, {"x": Normal()}
    )
    df = scm.sample(10, seed=0)
    assert (df["double"] == 2 * df["x"]).all()
    assert (df["one"] == 1).all()
    df.attrs.clear()
    assert (scm.counterfactual(df, do={"x": 3.0})["double"] == 6).all()
    df.loc[4, "double"] = 100.0
    with pytest.raises(AbductionError, match=r"'double', row 4 .*no noise gives this value"):
        scm.counterfactual(df, do={"x": 3.0})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"equations": {"a": lambda b, u: u}}, "'a' takes 'b', which is no node"),
        ({"equations": {"a": 3}}, "equation of 'a' must be a function"),
        ({"equations": {"a": lambda *x: x}}, r"takes \*x; name its parents"),
        ({"equations": {"a": lambda x, /: x}}, "by position only"),
        ({"equations": {"u": lambda u: u}}, "rename the node 'u'"),
        ({"equations": {"a": lambda b, u: u, "b": lambda a, u: u}}, "cycle"),
        ({"noise": {}}, "'dose' takes the noise u, but no noise"),
        ({"noise": {"dosis": Normal()}}, "'dosis', which has no equation; did you mean 'dose'"),
        ({"noise": {"dose": 1.0}}, r"'dose' must have rvs\(size=, random_state=\)"),
        ({"equations": {"dose": lambda: 1.0}}, "its equation does not take u"),
        ({"inverse": {"x": lambda x: x}}, "inverse was given for 'x'"),
        ({"inverse": {"dose": lambda health: 1}}, "inverse of 'dose' takes 'health'"),
        ({"kinds": {"x": "binary"}}, "name 'x', which has no equation"),
        ({"kinds": {"treated": "categorical"}}, "'treated' is categorical: name its levels"),
        ({"kinds": {"treated": "binry"}}, "unknown kind 'binry'"),
    ],
)
def test_a_model_that_is_none_is_refused(changes: dict, message: str) -> None:
    with pytest.raises(vaca.VacaError, match=message):
        clinic(**changes)


def test_equations_and_noise_of_a_wrong_shape_or_code_are_refused() -> None:
    wide = StructuralCausalModel({"x": lambda u: np.stack([u, u])}, {"x": Normal()})
    with pytest.raises(vaca.VacaError, match=r"'x' gave the shape \(2, 5\) for 5 row"):
        wide.sample(5)
    codes = StructuralCausalModel(
        {"x": lambda u: u + 1}, {"x": Bernoulli(1)}, kinds={"x": "binary"}
    )
    with pytest.raises(vaca.VacaError, match=r"gave \[2\].*needs codes 0 to 1"):
        codes.sample(5)

    class Pair:
        def rvs(self, size, random_state):
            return random_state.normal(size=(size, 2))

    pair = StructuralCausalModel({"x": lambda u: u}, {"x": Pair()})
    with pytest.raises(vaca.VacaError, match=r"noise of 'x' gave the shape \(5, 2\)"):
        pair.sample(5)


# ---------------------------------------------------------------------- solving for the noise

DRAWS = np.random.default_rng(1).standard_normal(2000)
POSITIVE = np.random.default_rng(1).gamma(2, 1, 2000)


@pytest.mark.parametrize(
    ("f", "draws"),
    [
        (lambda u: 7 + u, DRAWS),
        (lambda u: 3 - 2 * u, DRAWS),
        (lambda u: u**3, DRAWS),
        (lambda u: np.exp(-u), DRAWS),
        (lambda u: np.log(u), POSITIVE),
        (lambda u: np.sqrt(u) + 1, POSITIVE),
        (lambda u: -1 + 0.1 * np.sign(u) * 4 + u, DRAWS),
        (lambda u: np.tanh(u), DRAWS),
    ],
)
def test_solver_finds_noise_of_additive_and_monotone_equations(f, draws) -> None:
    u = draws[:300]
    np.testing.assert_allclose(solve_noise(f, f(u), draws), u, rtol=1e-7, atol=1e-9)
    beyond = np.array([draws.max() * 1.5])
    np.testing.assert_allclose(solve_noise(f, f(beyond), draws), beyond, rtol=1e-6)


@pytest.mark.parametrize(
    "f", [lambda u: u**2, np.cos, lambda u: 0 * u, lambda u: np.sign(u), np.round]
)
def test_solver_says_so_where_noise_is_not_determined(f) -> None:
    assert np.isnan(solve_noise(f, f(DRAWS[:50]), DRAWS)).all()


def test_solver_tells_rows_apart() -> None:
    """A floor hides the noise below it and shows it above; a factor of 0 hides it."""
    u = DRAWS[:200]
    found = solve_noise(lambda v: np.maximum(v, 0), np.maximum(u, 0), DRAWS)
    np.testing.assert_array_equal(np.isnan(found), u <= 0)
    np.testing.assert_allclose(found[u > 0], u[u > 0], rtol=1e-9)
    factor = np.where(np.arange(200) % 3 == 0, 0.0, np.linspace(-2, 2, 200))
    found = solve_noise(lambda v: factor * v, factor * u, DRAWS)
    np.testing.assert_array_equal(np.isnan(found), factor == 0)
    np.testing.assert_allclose(found[factor != 0], u[factor != 0], rtol=1e-9)


def test_solver_tries_whole_numbers() -> None:
    table = np.array([5.0, -1.0, 3.0, 3.0])
    draws = np.random.default_rng(0).integers(0, 4, 500)
    found = solve_noise(lambda u: table[u], np.array([3.0, -1.0, 5.0, 9.0]), draws)
    np.testing.assert_array_equal(found, [np.nan, 1, 0, np.nan])


def test_noise_used_as_an_index_stays_whole() -> None:
    table = np.array([5.0, -1.0, 3.0])
    scm = StructuralCausalModel({"x": lambda u: table[u]}, {"x": Categorical([0.2, 0.3, 0.5])})
    df = scm.sample(50, seed=0)
    u = scm.abduct(scm.schema_.encode(df))
    assert u["x"].dtype == np.int64
    assert (scm.simulate(u, {})["x"] == df["x"]).all()


@pytest.mark.parametrize("name", [n for n in vaca.scms.names() if n != "adult"])
def test_abduction_is_exact_without_a_record(name: str) -> None:
    """Bit by bit, for every model whose equations can be inverted."""
    scm = vaca.scms.load(name)
    x = scm.schema_.encode(scm.sample(3000, seed=8))
    again = scm.simulate(scm.abduct(x), {})
    for column, values in x.items():
        np.testing.assert_array_equal(again[column], values, err_msg=column)


def test_undeclared_inverses_agree_with_declared_ones() -> None:
    """The monotone models solved numerically give the counterfactuals of the written inverse."""
    for name in ("triangle-nadd", "chain-nadd", "mgraph-nadd", "loan"):
        scm = vaca.scms.load(name)
        bare = StructuralCausalModel(
            scm._equations, scm._noise, kinds={c: k.kind for c, k in scm.schema_.items()}
        )
        df = scm.sample(200, seed=4)
        df.attrs.clear()
        node = scm.intervened_nodes[0]
        value = scm.intervention_values(node, df)[-1]
        a, b = (m.counterfactual(df, do={node: value}) for m in (scm, bare))
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)


def test_a_wrong_declared_inverse_is_caught() -> None:
    scm = StructuralCausalModel(
        {"x": lambda u: 2 * u}, {"x": Normal()}, inverse={"x": lambda x: x}, name="slip"
    )
    with pytest.raises(AbductionError, match=r"'slip'.*or the declared inverse of 'x'"):
        scm.counterfactual(pd.DataFrame({"x": [1.0, 2.0]}), do={})


def test_an_impossible_row_is_named() -> None:
    df = pd.DataFrame({"x1": [1.0, 2.0], "x2": [0.5, 0.1], "x3": [9.0, 9.0]}, index=["a", "b"])
    with pytest.raises(AbductionError, match=r"'x2', row b \(1 such row.*cannot come from"):
        vaca.scms.load("triangle-nadd").counterfactual(df, do={"x1": 0.0})


# ---------------------------------------------------------------------- noise known from sampling


def rows_of(frame: pd.DataFrame) -> list[pd.DataFrame]:
    return [
        frame.head(),
        frame.tail(3),
        frame.sample(7, random_state=0),
        frame[frame["dose"] > 1],
        frame.loc[[5, 5, 2]],
        frame.copy(),
        frame[["health", "treated", "dose"]],
    ]


def test_sampled_rows_bring_their_noise() -> None:
    scm = clinic()
    df = scm.sample(200, seed=3)
    json.dumps(df.attrs)
    whole = scm.counterfactual(df, do={"dose": 5.0})
    assert (whole["treated"] >= df["treated"]).all()
    for part in rows_of(df):
        pd.testing.assert_frame_equal(
            pd.DataFrame(scm.counterfactual(part, do={})),
            df.loc[part.index],
            check_flags=False,
        )
        answer = pd.DataFrame(scm.counterfactual(part, do={"dose": 5.0}))
        pd.testing.assert_frame_equal(answer, pd.DataFrame(whole).loc[part.index])


def test_do_at_the_factual_value_changes_nothing() -> None:
    for name in vaca.scms.names():
        scm = vaca.scms.load(name)
        df = scm.sample(300, seed=9)
        for node in scm.graph.nodes:
            twin = scm.counterfactual(df.head(50), do={node: df[node].head(50)})
            pd.testing.assert_frame_equal(
                pd.DataFrame(twin), df.head(50), check_exact=True, obj=f"{name}, {node}"
            )


def test_rows_of_several_chunks_are_found_again() -> None:
    scm = vaca.scms.load("adult")
    df = scm.sample(CHUNK + 500, seed=1)
    some = df.iloc[[0, CHUNK - 1, CHUNK, CHUNK + 499]]
    pd.testing.assert_frame_equal(
        pd.DataFrame(scm.counterfactual(some, do={"age": some["age"]})), some, check_exact=True
    )


def test_the_record_survives_a_parquet_file(tmp_path) -> None:
    scm = vaca.scms.load("adult")
    df = scm.sample(50, seed=2)
    df.to_parquet(tmp_path / "rows.parquet")
    df.to_csv(tmp_path / "rows.csv", index=False)
    twin = scm.counterfactual(pd.read_parquet(tmp_path / "rows.parquet"), do={"age": 40})
    pd.testing.assert_frame_equal(twin, scm.counterfactual(df, do={"age": 40}))
    with pytest.raises(AbductionError, match="parquet files keep both"):
        scm.counterfactual(pd.read_csv(tmp_path / "rows.csv"), do={"age": 40})


def test_seed_left_out_is_recorded_too() -> None:
    scm = clinic()
    df = scm.sample(20)
    assert (scm.counterfactual(df, do={"dose": 9.0})["dose"] == 9).all()


def test_rows_that_were_not_sampled_are_refused() -> None:
    scm = clinic()
    df = scm.sample(50, seed=3)
    shuffled = df.iloc[::-1].reset_index(drop=True)
    plain = df.copy()
    plain.attrs = {}
    under_do = scm.sample(50, do={"dose": 2.0}, seed=3)
    assert "vaca" not in under_do.attrs
    for frame in (shuffled, plain, under_do, pd.DataFrame(df.to_dict("list"))):
        with pytest.raises(
            AbductionError, match=r"'treated'.*'clinic'.*declare inverse=\{'treated'"
        ):
            scm.counterfactual(frame, do={"dose": 0.0})
    edited = df.copy()
    edited.loc[7, "health"] += 1
    with pytest.raises(AbductionError, match=r"'treated', row 7 \(1 such row"):
        scm.counterfactual(edited, do={"dose": 0.0})


def test_a_record_that_makes_no_sense_is_not_trusted() -> None:
    scm = vaca.scms.load("triangle-lin")
    df = scm.sample(5, seed=0)
    right = scm.counterfactual(df, do={"x1": 0.0})
    for record in (None, "x", {"model": scm.name}, {"model": scm.name, "seed": -1, "rows": 5},
                   {"model": scm.name, "seed": 77, "rows": 5},
                   {"model": scm.name, "seed": 0, "rows": 3},
                   {"model": "other", "seed": 0, "rows": 5}):  # fmt: skip
        df.attrs["vaca"] = record
        answer = scm.counterfactual(df, do={"x1": 0.0})
        np.testing.assert_allclose(answer, right, rtol=1e-12, atol=1e-12)


def test_rows_with_and_without_a_record_mix() -> None:
    scm = vaca.scms.load("loan")
    df = scm.sample(20, seed=0)
    right = scm.counterfactual(df, do={"age": 0.0, "gender": 1})
    mixed = df.copy()
    mixed.index = [*range(10), *range(100, 110)]
    answer = scm.counterfactual(mixed, do={"age": 0.0, "gender": 1})
    np.testing.assert_allclose(answer, right, rtol=1e-9, atol=1e-9)


def test_same_seed_same_rows_and_draws_repeat() -> None:
    scm = clinic()
    a, b = scm.sample(100, seed=6), scm.sample(100, seed=6)
    pd.testing.assert_frame_equal(a, b)
    assert not a.equals(scm.sample(100, seed=7))
    many = scm.counterfactual(a.head(3), do={"dose": 0.0}, draws=4, seed=0)
    assert len(many) == 12
    assert (many.groupby(level=0).nunique() == 1).all().all()  # nothing random is left


# ---------------------------------------------------------------------- interventions of the paper


def test_intervention_values() -> None:
    scm = clinic()
    df = scm.sample(1000, seed=0)
    mean, sd = df["dose"].mean(), df["dose"].std(ddof=0)
    np.testing.assert_allclose(
        scm.intervention_values("dose", df), mean + sd * np.array([-1, -0.5, 0, 0.5, 1])
    )
    np.testing.assert_allclose(
        scm.intervention_values("dose", df, "published"),
        np.round(mean + sd * np.array([-1, 0.1, 0.5, 1]), 2),
    )
    assert scm.intervention_values("treated", df) == [0, 1]
    with pytest.raises(vaca.VacaError, match="unknown protocol 'papr'; did you mean 'paper'"):
        scm.intervention_values("dose", df, "papr")
    with pytest.raises(vaca.VacaError, match="unknown column 'doze'"):
        scm.intervention_values("doze", df)


# ---------------------------------------------------------------------- distributions


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (Normal(1, 4), stats.norm(1, 2)),
        (Gamma(10, 3.5), stats.gamma(10, scale=3.5)),
        (Gamma(1, 2), stats.expon(scale=2)),
        (Mixture([stats.norm(-3, 1), Normal(2, 9)], [0.3, 0.7]), None),
    ],
)
def test_distributions_are_those_of_scipy(ours, theirs) -> None:
    def cdf(v):
        return 0.3 * stats.norm(-3, 1).cdf(v) + 0.7 * stats.norm(2, 3).cdf(v)

    sample = ours.rvs(size=50_000, random_state=np.random.default_rng(0))
    assert stats.kstest(sample, cdf if theirs is None else theirs.cdf).pvalue > 1e-4


def test_discrete_distributions() -> None:
    n, p = 100_000, np.array([0.5, 0.2, 0.3])
    share = np.bincount(Categorical(p).rvs(n, 0), minlength=3) / n
    assert (np.abs(share - p) < 5 * np.sqrt(p * (1 - p) / n)).all()
    assert abs(Bernoulli(0.67).rvs(n, 0).mean() - 0.67) < 5 * np.sqrt(0.67 * 0.33 / n)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Normal(0, 0), "variance must be positive"),
        (lambda: Gamma(0, 1), "shape and scale must be positive"),
        (lambda: Bernoulli(1.2), r"p must lie in \[0, 1\]"),
        (lambda: Categorical([0.5, 0.6]), "sum to 1"),
        (lambda: Mixture([]), "a list of distributions is needed"),
        (lambda: Mixture([Normal()], [0.5, 0.5]), "1 components but 2 weights"),
    ],
)
def test_distributions_refuse_nonsense(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
