import numpy as np
import pandas as pd
import pytest

import vaca
from vaca.commands.app import run
from vaca.graph.dag import CausalGraph
from vaca.trust.arrows import arrow_changes
from vaca.trust.askable import questions
from vaca.trust.axioms import axioms
from vaca.trust.fit import column_fit, draw_again, noise_tests, two_samples
from vaca.trust.graph_check import check_graph
from vaca.trust.independence import adjusted, implied_pairs, independence_tests, relabelings
from vaca.trust.leftover import leftover

pytestmark = pytest.mark.usefixtures("without_trees")


def table(n=600, seed=0):
    """Age and sex act on income, income on savings; a curved, mixed-kind table."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 60, n)
    sex = rng.choice(["f", "m"], n)
    income = 10 + 0.02 * (age - 40) ** 2 + 5 * (sex == "m") + rng.gamma(2, 2, n)
    savings = np.sqrt(income) * 3 + rng.normal(0, 1, n)
    return pd.DataFrame({"age": age, "sex": sex, "income": income, "savings": savings})


GRAPH = CausalGraph.from_parents(
    {"age": [], "sex": [], "income": ["age", "sex"], "savings": ["income"]}
)


def encoded(frame, graph):
    schema = vaca.Schema.infer(frame, graph)
    return schema, schema.encode(frame)


# ---------------------------------------------------------------------- independences


def test_implied_pairs_are_one_for_each_missing_arrow():
    pairs = implied_pairs(GRAPH)
    assert [(p.one, p.other, p.given) for p in pairs] == [
        ("age", "sex", ()),
        ("age", "savings", ("income",)),
        ("sex", "savings", ("income",)),
    ]
    for pair in pairs:
        assert GRAPH.is_d_separated(pair.one, pair.other, pair.given)


def test_adjusted_agrees_with_scipy():
    from scipy.stats import false_discovery_control

    p = np.random.default_rng(0).uniform(size=40) ** 2
    np.testing.assert_allclose(adjusted(p), false_discovery_control(p))


def test_leftover_is_out_of_sample():
    # Noise that nothing explains keeps its variance; a curve goes.
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2))
    noise = rng.normal(size=400)
    rest = leftover(x, np.column_stack([noise, np.sin(2 * x[:, 0]) * x[:, 1]]), seed=0)
    assert 0.9 < rest[:, 0].var() / noise.var() < 1.15
    assert rest[:, 1].var() < 0.3 * np.var(np.sin(2 * x[:, 0]) * x[:, 1])


def test_independences_hold_for_the_right_graph_and_break_for_a_wrong_one():
    frame = table()
    schema, rows = encoded(frame, GRAPH)
    assert independence_tests(GRAPH, schema, rows)["adjusted"].min() > 0.05
    cut = CausalGraph.from_parents({"age": [], "sex": [], "income": ["age"], "savings": ["income"]})
    found = independence_tests(cut, schema, rows)
    assert set(found.loc[0, ["one", "other"]]) == {"sex", "income"}
    assert found.loc[0, "adjusted"] < 1e-6


def test_a_product_of_causes_is_seen():
    # y = x w: neither mean of y given x alone, nor a correlation, shows that w acts.
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=(2, 800))
    frame = pd.DataFrame({"x": x, "w": w, "y": x * w + rng.normal(0, 0.5, 800)})
    graph = CausalGraph.from_parents({"x": [], "w": [], "y": ["x"]})
    found = independence_tests(graph, *encoded(frame, graph))
    assert set(found.loc[0, ["one", "other"]]) == {"w", "y"}
    assert found.loc[0, "adjusted"] < 1e-6


def test_false_alarms_are_rare():
    alarms = 0
    for seed in range(20_000, 20_012):
        rng = np.random.default_rng(seed)
        a = rng.normal(size=500)
        b, c = np.tanh(a) + rng.normal(size=500), a**2 + rng.normal(size=500)
        frame = pd.DataFrame({"a": a, "b": b, "c": c})
        graph = CausalGraph.from_parents({"a": [], "b": ["a"], "c": ["a"]})
        alarms += independence_tests(graph, *encoded(frame, graph))["adjusted"].min() < 0.05
    assert alarms <= 3  # 5 % of 12, and room for chance: 4 or more has a probability of 0.002


def test_relabelings_break_more_than_the_right_graph():
    schema, rows = encoded(table(1500), GRAPH)
    violations, share = relabelings(GRAPH, schema, rows, count=60)
    assert violations == 0
    assert share < 0.3


# ---------------------------------------------------------------------- arrows


def test_the_missing_arrow_is_named_first_and_changes_are_scored():
    frame = table()
    chain = CausalGraph.from_parents({"age": [], "sex": [], "income": ["age"], "savings": []})
    found = check_graph(chain, *encoded(frame, chain))
    assert found.verdict == "bad"
    first = found.arrows.iloc[0]
    assert (first["change"], {first["cause"], first["effect"]}) == ("add", {"income", "savings"})
    assert "missing between them" in first["words"]
    assert found.parts.iloc[0]["words"].startswith(first["words"])


def test_a_needless_arrow_may_go_and_a_needed_one_may_not():
    frame = table()
    graph = CausalGraph.from_parents(
        {"age": [], "sex": [], "income": ["age", "sex"], "savings": ["income", "sex"]}
    )
    changes = arrow_changes(graph, *encoded(frame, graph))
    removed = changes[changes["change"] == "remove"].set_index(["cause", "effect"])
    assert removed.loc[("sex", "savings"), "gain"] > -0.01
    assert removed.loc[("income", "savings"), "z"] < -5


def test_the_form_of_the_noise_tells_a_direction():
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, 1500)
    frame = pd.DataFrame({"x": x, "y": x**3 / 2 + rng.normal(0, 0.5, 1500)})
    right, wrong = (CausalGraph.from_edges([pair]) for pair in (("x", "y"), ("y", "x")))
    assert check_graph(right, *encoded(frame, right)).verdict == "good"
    found = check_graph(wrong, *encoded(frame, wrong))
    assert found.verdict == "doubtful"
    assert found.arrows.iloc[0]["words"] == "data would rather have x -> y than y -> x"


def test_dependent_roots_are_offered_as_a_group():
    rng = np.random.default_rng(0)
    a = rng.normal(size=500)
    frame = pd.DataFrame(
        {
            "a": a,
            "b": a + rng.normal(size=500),
            "c": rng.normal(size=500),
            "y": rng.normal(size=500),
        }
    )
    graph = CausalGraph.from_parents({"a": [], "b": [], "c": [], "y": ["a", "b", "c"]})
    found = check_graph(graph, *encoded(frame, graph), quick=True)
    assert found.groups == [("a", "b")]
    assert "a and b are not; group them: {a, b} -> y" in " ".join(found.parts["words"])


def test_a_block_and_a_lone_root_that_depend_are_offered_an_arrow():
    rng = np.random.default_rng(0)
    a = rng.normal(size=500)
    frame = pd.DataFrame({"a": a, "b": rng.normal(size=500), "t": a + rng.normal(size=500)})
    frame["y"] = rng.normal(size=500)
    graph = CausalGraph.from_text("{a, b} -> y\nt -> y")
    found = check_graph(graph, *encoded(frame, graph), quick=True)
    assert "are not; draw an arrow: {a, b} -> t" in " ".join(found.parts["words"])


# ---------------------------------------------------------------------- the fit


@pytest.fixture(scope="module")
def model():
    return vaca.AdditiveNoise(GRAPH).fit(table(500))


@pytest.fixture(scope="module")
def independent():
    """A model that takes every column for independent of the others, under the right graph."""
    frame = table(500)
    rng = np.random.default_rng(5)
    shuffled = pd.DataFrame({c: rng.permutation(frame[c].to_numpy()) for c in frame})
    return vaca.AdditiveNoise(GRAPH).fit(shuffled)


def test_two_samples_tell_a_bad_model_and_not_a_perfect_one(model, independent):
    truth = vaca.scms.load("triangle-nlin")
    rows = truth.schema_.encode(truth.sample(400, seed=3))
    assert two_samples(truth, rows)[1] > 0.01
    held_out = model.schema_.encode(table(400, seed=9))
    told, p = two_samples(independent, held_out)
    assert told > 0.7
    assert p < 1e-6
    assert two_samples(model, held_out)[0] < 0.62


def test_columns_and_noise(model, independent):
    held_out = model.schema_.encode(table(400, seed=9))
    good = column_fit(model, draw_again(model, held_out), held_out)
    bad = column_fit(independent, draw_again(independent, held_out), held_out)
    assert good["p"].min() > 0.001
    assert good.loc["savings", "explained"] == pytest.approx(
        good.loc["savings", "explainable"], abs=0.1
    )
    assert bad.loc["savings", "explained"] < 0.3 < bad.loc["savings", "explainable"]
    noise = noise_tests(independent, draw_again(independent, held_out))
    assert set(noise.loc[0, ["column", "other"]]) <= {"income", "savings", "sex"}
    assert noise.loc[0, "adjusted"] < 1e-6


def test_impossible_values_are_counted():
    model = vaca.StructuralCausalModel(
        {"pay": lambda u: u}, {"pay": vaca.distributions.Normal(1, 1)}
    )
    rows = {"pay": np.random.default_rng(0).exponential(1, 300)}
    fitted = column_fit(model, draw_again(model, rows), rows)
    assert fitted.loc["pay", "outside"] == pytest.approx(0.159, abs=0.03)


# ---------------------------------------------------------------------- questions and axioms


def test_overlap_tells_a_safe_question_from_an_extrapolation():
    rng = np.random.default_rng(0)
    risk = rng.normal(size=1500)
    frame = pd.DataFrame(
        {
            "risk": risk,
            "coin": rng.choice(["no", "yes"], 1500),
            "drug": np.where(risk + rng.normal(0, 0.05, 1500) > 0, "yes", "no"),
            "y": rng.normal(size=1500),
        }
    )
    graph = CausalGraph.from_parents(
        {"risk": [], "coin": ["risk"], "drug": ["risk"], "y": ["drug", "coin"]}
    )
    asked, chances = questions(graph, *encoded(frame, graph))
    assert asked.loc["coin", "safe"]
    assert asked.loc["drug", "extrapolates"] > 0.7
    assert set(chances) == {"coin", "drug"}


def test_setting_a_column_of_whole_numbers_holds_exactly():
    """A value between two whole numbers came back rounded, and the model was called doubtful."""
    rng = np.random.default_rng(0)
    income = rng.normal(3000, 400, 300).round().astype(int)
    frame = pd.DataFrame({"income": income, "loan": (2 * income + rng.normal(0, 9, 300)).round(1)})
    exact = vaca.AdditiveNoise(vaca.CausalGraph.from_edges([("income", "loan")])).fit(frame)
    assert axioms(exact, frame).loc["effectiveness", "worst"] == 0


def test_axioms_hold_for_an_exact_engine(model):
    kept = axioms(model, table(200, seed=4))
    assert kept.loc["composition", "worst"] == 0
    assert kept.loc["effectiveness", "worst"] == 0
    assert kept.loc["reversibility", "worst"] < 1e-9
    assert kept.loc["agreement", "worst"] < 0.1 + 4 * kept.loc["agreement", "noise"]


# ---------------------------------------------------------------------- the whole


def test_check_of_a_right_and_of_a_wrong_model(model, independent, tmp_path):
    frame = table(400, seed=9)
    good = vaca.check(model, frame, held_out=frame)
    assert good.verdict == "good", str(good)
    assert list(good.parts) == ["part", "verdict", "figure", "reference", "words"]
    assert str(good).splitlines()[-1] == "verdict: good"
    bad = vaca.check(independent, frame, held_out=frame, quick=True)
    assert bad.verdict == "bad"
    page = good.to_html(tmp_path / "check.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert all(words in page for words in ("What can be asked", "data:image/svg+xml", "savings"))


def test_check_measures_the_fit_on_rows_that_the_model_has_not_seen(model):
    seen, new = table(500), table(120, seed=9)
    found = vaca.check(model, pd.concat([seen, new]), quick=True)
    assert (found.rows, found.held_out, found.unseen) == (620, 120, True)
    found = vaca.check(model, seen, quick=True)
    assert (found.held_out, found.unseen) == (500, False)
    assert "the fit may have seen" in " ".join(found.parts["words"])


def test_check_leaves_out_rows_with_gaps_if_the_model_expects_them(model):
    frame = table(120, seed=9)
    frame.loc[:9, "income"] = np.nan
    with pytest.raises(vaca.VacaError, match="missing values in 'income'"):
        vaca.check(model, frame, quick=True)
    tolerant = vaca.AdditiveNoise(GRAPH, missing="drop").fit(table(60))
    assert vaca.check(tolerant, frame, quick=True).rows == 110


def test_check_needs_rows(model):
    with pytest.raises(vaca.VacaError, match="at least 50 are needed"):
        vaca.check(model, table(20))


def test_check_command(tmp_path, capsys):
    scm = vaca.scms.load("chain-lin")
    scm.sample(300, seed=2).to_csv(tmp_path / "data.csv", index=False)
    page = tmp_path / "check.html"
    code = run(["check", "chain-lin", str(tmp_path / "data.csv"), "--quick", "--out", str(page)])
    assert code == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("graph ")
    assert lines[-1] == "verdict: good"
    assert page.stat().st_size > 1000
