from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import cross_val_score

import vaca
from vaca import fairness
from vaca.engines import registry
from vaca.errors import SchemaError, VacaError
from vaca.fairness.decomposition import EXACT_PARTS, Part, shapley_shares
from vaca.fairness.predictor import as_predictor
from vaca.fairness.robustness import changed_graphs
from vaca.scm.distributions import Bernoulli, Categorical, Normal

pytestmark = pytest.mark.usefixtures("without_trees")


def make_scm():
    """Sex reaches the score directly (+0.10), through income (+0.09) and savings (+0.06)."""
    return vaca.StructuralCausalModel(
        {
            "sex": lambda u: u,
            "age": lambda u: u,
            "income": lambda sex, age, u: 0.9 * sex + 0.5 * age + u,
            "savings": lambda sex, income, u: 0.8 * income + 0.48 * sex + u,
        },
        {
            "sex": Bernoulli(0.4),
            "age": Normal(0, 1),
            "income": Normal(0, 1),
            "savings": Normal(0, 1),
        },
        kinds={"sex": "binary"},
        levels={"sex": ["female", "male"]},
        name="bank",
    )


def linear_score(frame):
    """A score that is linear in its inputs, far from 0 and 1, so the truth is plain arithmetic."""
    male = (frame["sex"] == "male").to_numpy(dtype=float)
    rest = 0.1 * frame["income"] + 0.05 * frame["savings"] + 0.02 * frame["age"]
    return np.clip(0.4 + 0.1 * male + 0.3 * np.tanh(rest / 3), 0, 1)


def additive_score(frame):
    male = (frame["sex"] == "male").to_numpy(dtype=float)
    return np.clip(
        0.3 + 0.1 * male + 0.1 * frame["income"] + 0.05 * frame["savings"], -9, 9
    ) / 2 + 0.2  # fmt: skip


# What do(sex) changes: direct 0.1, income 0.9, savings 0.8 * 0.9 + 0.48 = 1.2; halved by the score.
DIRECT, INCOME, SAVINGS = 0.05, 0.1 * 0.9 / 2, 0.05 * 1.2 / 2


@pytest.fixture(scope="module")
def scm():
    return make_scm()


@pytest.fixture(scope="module")
def people(scm):
    frame = scm.sample(400, seed=1)
    inside = frame["income"].between(-3, 4) & frame["savings"].between(-4, 6)
    return frame[inside]


# ---------------------------------------------------------------------- the true model


def test_unfairness_and_parts_on_the_true_scm(scm, people):
    result = vaca.audit(scm, additive_score, people, "sex", draws=3)
    assert result.unfairness == pytest.approx(DIRECT + INCOME + SAVINGS, rel=1e-9)
    parts = result.decomposition["unfairness"]
    assert parts["direct"] == pytest.approx(DIRECT)
    assert parts["through income"] == pytest.approx(INCOME)
    assert parts["through savings"] == pytest.approx(SAVINGS)
    assert list(parts.index) == ["direct", "through income", "through savings", "total"]


def test_signs_and_sums_by_group(scm, people):
    result = vaca.audit(scm, linear_score, people, "sex", draws=2)
    assert result.by_group.loc[("female", "male"), "mean_gap"] > 0
    assert result.by_group.loc[("male", "female"), "mean_gap"] < 0
    for pair in [("female", "male"), ("male", "female")]:
        effects = result.decomposition_by_group.loc[pair, "effect"]
        assert effects.drop("total").sum() == pytest.approx(effects["total"])


def test_what_sex_cannot_reach_gives_exactly_zero(scm, people):
    result = vaca.audit(scm, lambda f: 1 / (1 + np.exp(-f["age"])), people, "sex")
    assert result.unfairness == 0.0
    assert result.interval == (0.0, 0.0)
    assert result.flips == 0.0
    assert (result.per_person["gap"] == 0).all()
    assert result.twins == []


def test_same_answer_for_the_same_seed(scm, people):
    one, two = (vaca.audit(scm, linear_score, people, "sex", draws=5, seed=3) for _ in range(2))
    pd.testing.assert_frame_equal(one.per_person, two.per_person)
    assert one.interval == two.interval


def test_too_few_draws_are_said():
    """A home adds what a car takes away, so what is left of many draws is nearly nothing."""
    rng = np.random.default_rng(0)
    sex = rng.integers(2, size=300)
    frame = pd.DataFrame({"sex": np.array(["f", "m"])[sex]})
    for name in ("home", "car"):
        frame[name] = np.where(rng.random(300) < 0.3 + 0.4 * sex, "yes", "no")
    graph = vaca.CausalGraph.from_edges([("sex", "home"), ("sex", "car")])
    model = vaca.AdditiveNoise(graph).fit(frame, progress=False)

    def score(rows):
        return 0.5 + 0.1 * (rows["home"] == "yes") - 0.1 * (rows["car"] == "yes")

    few, many = (vaca.audit(model, score, frame, "sex", draws=d, paths=False) for d in (4, 400))
    assert few.unfairness > 1.2 * many.unfairness
    assert any("By half of the 4 draws" in text for text in few.caveats)
    assert not [text for text in many.caveats if "By half" in text]


def test_twins_beyond_the_data_are_said():
    frame = pd.DataFrame({"sex": ["f", "m"] * 50, "wage": np.tile([1.0, 11.0], 50)})
    frame["wage"] += np.random.default_rng(0).uniform(0, 5, 100)
    graph = vaca.CausalGraph.from_edges([("sex", "wage")])
    model = vaca.AdditiveNoise(graph).fit(frame, progress=False)
    people = frame.assign(wage=frame["wage"].where(frame["sex"] == "m", 10.0))
    result = vaca.audit(model, lambda f: 0.5 + 0 * f["wage"], people, "sex", draws=1)
    said = [text for text in result.caveats if "of twins have a wage outside" in text]
    assert len(said) == 1
    assert float(said[0].split(" %")[0]) >= 50  # all the women, and perhaps a few men


def test_per_person_keeps_the_index(scm, people):
    result = vaca.audit(scm, linear_score, people, "sex", draws=2)
    assert result.per_person.index.equals(people.index)
    gap = result.per_person["counterfactual"] - result.per_person["factual"]
    np.testing.assert_allclose(gap, result.per_person["gap"])
    assert (result.per_person["from"] == people["sex"].astype(str)).all()


def test_flips_and_threshold(scm, people):
    low = vaca.audit(scm, linear_score, people, "sex", draws=2, threshold=0.05, paths=False)
    assert low.flips == 0.0
    assert any("same, favourable" in text for text in low.caveats)
    middle = vaca.audit(scm, linear_score, people, "sex", draws=2, threshold=0.5, paths=False)
    assert 0 < middle.flips < 1


def test_group_metrics_are_fairlearns(scm, people):
    from fairlearn.metrics import MetricFrame

    outcome = (people["savings"] > 0).astype(int)
    result = vaca.audit(scm, linear_score, people, "sex", target=outcome, draws=1)
    assert isinstance(result.metric_frame, MetricFrame)
    decided = linear_score(people) >= 0.5
    men = people["sex"] == "male"
    assert result.group_metrics.loc["male", "selection_rate"] == pytest.approx(decided[men].mean())
    assert result.group_metrics.loc["male", "true_positive_rate"] == pytest.approx(
        decided[men & (outcome == 1)].mean()
    )


def test_summary_and_dict(scm, people):
    import json

    result = vaca.audit(scm, linear_score, people, "sex", draws=2, name="the score")
    text = result.summary()
    assert "Audit of the score for sex" in text
    assert "through income" in text
    assert "no hidden common causes" in text
    assert " fair " not in text
    assert json.loads(json.dumps(result.to_dict()))["unfairness"] == result.unfairness
    assert float(result) == result.unfairness


# ---------------------------------------------------------------------- several levels, attributes


@pytest.fixture(scope="module")
def regions():
    return vaca.StructuralCausalModel(
        {
            "region": lambda u: u,
            "sex": lambda u: u,
            "wage": lambda region, sex, u: 0.5 * region + sex + u,
        },
        {"region": Categorical([0.5, 0.3, 0.2]), "sex": Bernoulli(0.5), "wage": Normal(0, 1)},
        kinds={"region": "categorical", "sex": "binary"},
        levels={"region": ["north", "south", "west"], "sex": ["f", "m"]},
    )


def wage_score(frame):
    return 0.5 + 0.04 * np.clip(frame["wage"], -10, 10)


def test_all_ordered_pairs(regions):
    people = regions.sample(200, seed=0)
    result = vaca.audit(regions, wage_score, people, "region", draws=1)
    assert len(result.by_group) == 6
    assert len(result.per_person) == 400
    assert result.by_group.loc[("north", "west"), "mean_gap"] == pytest.approx(0.04)
    assert result.by_group.loc[("west", "south"), "mean_gap"] == pytest.approx(-0.02)
    each = result.per_person.groupby(level=0)["unfairness"].mean()
    assert result.unfairness == pytest.approx(each.mean())


def test_several_attributes_at_once(regions):
    people = regions.sample(300, seed=0)
    result = vaca.audit(regions, wage_score, people, ["region", "sex"], draws=1)
    pair = ("region = north, sex = f", "region = west, sex = m")
    assert result.by_group.loc[pair, "mean_gap"] == pytest.approx(0.08)
    assert len(result.by_group) == 30


def test_numeric_attribute_needs_alternatives(scm, people):
    with pytest.raises(VacaError, match=r"'age' is continuous: say which values"):
        vaca.audit(scm, linear_score, people, "age")
    result = vaca.audit(
        scm, additive_score, people, "age", alternatives=[0.0, 1.0], draws=1, paths=False
    )
    # income moves by 0.5, savings by 0.4 for each unit of age
    gaps = result.per_person.query("to == '1.0'")["gap"]
    expected = (1.0 - people["age"]) * (0.1 * 0.5 + 0.05 * 0.4) / 2
    np.testing.assert_allclose(gaps.to_numpy(), expected.to_numpy(), atol=1e-12)


def test_chosen_alternatives(regions):
    people = regions.sample(100, seed=0)
    result = vaca.audit(regions, wage_score, people, "region", alternatives=["west"], draws=1)
    assert set(result.by_group.index.get_level_values("to")) == {"west"}
    with pytest.raises(VacaError, match="is not a level of 'region'"):
        vaca.audit(regions, wage_score, people, "region", alternatives=["east"])
    with pytest.raises(VacaError, match="alternatives is a list"):
        vaca.audit(regions, wage_score, people, "region", alternatives="west")


# ---------------------------------------------------------------------- learned models


@pytest.fixture(scope="module")
def training(scm):
    return scm.sample(3000, seed=7)


@pytest.mark.parametrize(
    ("engine", "tolerance"),
    [
        (lambda g: vaca.CausalFlow(g, steps=150, polish_steps=30, seed=0), 0.10),
        (lambda g: vaca.VACA(g, steps=200, seed=0), 0.20),
        (lambda g: vaca.AdditiveNoise(g, seed=0), 0.10),
    ],
    ids=["CausalFlow", "VACA", "AdditiveNoise"],
)
def test_learned_models_find_the_known_effect(scm, training, people, engine, tolerance):
    model = engine(scm.graph).fit(training, progress=False)
    truth = vaca.audit(scm, additive_score, people, "sex", draws=1)
    result = vaca.audit(model, additive_score, people, "sex", draws=2)  # a row tells all its noise
    assert result.unfairness == pytest.approx(truth.unfairness, rel=tolerance)
    for path in ("direct", "through income", "through savings"):
        assert result.decomposition.loc[path, "unfairness"] == pytest.approx(
            truth.decomposition.loc[path, "unfairness"], rel=tolerance
        ), path
    # Nothing is lost in reconstruction: what sex cannot reach gives exactly zero here too.
    assert vaca.audit(model, lambda f: (f["age"] > 0) * 1.0, people, "sex").unfairness == 0.0


# ---------------------------------------------------------------------- classifiers


@pytest.fixture(scope="module")
def outcome(people):
    rng = np.random.default_rng(0)
    return pd.Series(people["savings"] + rng.normal(size=len(people)) > 0, name="paid")


def test_classifiers_of_the_paper(scm, people, outcome):
    found = {}
    for name in fairness.CLASSIFIERS:
        classifier = fairness.make_classifier(name, scm, "sex").fit(people, outcome)
        found[name] = vaca.audit(scm, classifier, people, "sex", draws=2).unfairness
    assert found["fair-x"] == 0.0
    # With the true model the noise is recovered from the twin as from the person.
    assert found["fair-z"] < 1e-9
    assert min(found["full"], found["unaware"]) > 0.05


def test_features_of_the_classifiers():
    graph = vaca.datasets.german_credit().graph
    assert len(fairness.features_for("full", graph, "sex")) == 7
    assert "sex" not in fairness.features_for("unaware", graph, "sex")
    assert fairness.features_for("fair-x", graph, "sex") == ["age"]
    with pytest.raises(VacaError, match="unknown classifier 'fairx'"):
        fairness.features_for("fairx", graph, "sex")
    chain = vaca.CausalGraph.from_edges([("sex", "wage")])
    with pytest.raises(VacaError, match="nothing to read"):
        fairness.features_for("fair-x", chain, "sex")


def test_latent_features_leave_out_the_node(scm, people):
    latent = fairness.LatentFeatures(scm, without="sex").fit(people)
    z = latent.transform(people)
    assert list(z) == ["age.z0", "income.z0", "savings.z0"]
    assert z.index.equals(people.index)
    income = people["income"] - 0.9 * (people["sex"] == "male") - 0.5 * people["age"]
    np.testing.assert_allclose(z["income.z0"], income)
    assert list(latent.get_feature_names_out()) == list(z)
    with pytest.raises(VacaError, match="without='sexx' is not in the causal graph"):
        fairness.LatentFeatures(scm, without="sexx").fit(people)


def test_latent_features_fit_in_a_pipeline_and_clone_shares_the_model(scm, people, outcome):
    pipeline = fairness.make_classifier("fair-z-plain", scm, "sex")
    assert clone(pipeline)[0].model is scm
    assert cross_val_score(pipeline, people, outcome, cv=3).mean() > 0.6


def test_latent_features_of_vaca_are_its_z(training):
    graph = make_scm().graph
    model = vaca.VACA(graph, steps=30).fit(training.head(300), progress=False)
    z = fairness.LatentFeatures(model, without="sex").fit_transform(training.head(20))
    pd.testing.assert_frame_equal(z, model.encode(training.head(20))[list(z)])
    assert not [c for c in z if c.startswith("sex.")]


def test_steadied_features_change_less_with_the_attribute():
    german = vaca.datasets.german_credit()
    people, outcome = german.data.head(600), german.target.head(600)
    model = vaca.AdditiveNoise(german.graph, schema=german.schema).fit(people, progress=False)
    found = {}
    for name in ("unaware", "fair-z-plain", "fair-z"):
        classifier = fairness.make_classifier(name, model, "sex").fit(people, outcome)
        rows = people.head(200)
        found[name] = vaca.audit(model, classifier, rows, "sex", draws=40, paths=False).unfairness
    assert found["fair-z"] < 0.5 * found["fair-z-plain"]
    assert found["fair-z"] < 0.5 * found["unaware"]
    assert found["fair-z"] < 0.01


def test_steadying_needs_an_attribute(scm, people):
    with pytest.raises(VacaError, match="tolerance is a number above 0, and needs without="):
        fairness.LatentFeatures(scm, tolerance=0.01).fit(people)


def test_balanced_svm(scm, people, outcome):
    classifier = fairness.make_classifier("unaware", scm, "sex", "svm").fit(people, outcome)
    result = vaca.audit(scm, classifier, people.head(60), "sex", draws=1, paths=False)
    assert 0 < result.unfairness < 1
    margin_side = classifier.predict(people)
    scores = classifier.predict_proba(people)[:, 1]
    # Platt's probabilities rise with the margin, so one threshold reproduces the decisions.
    assert scores[margin_side].min() >= scores[~margin_side].max()


# ---------------------------------------------------------------------- decomposition


def test_shapley_shares_of_an_interaction():
    frame = pd.DataFrame({"a": [0.0], "b": [0.0]})
    twin = pd.DataFrame({"a": [1.0], "b": [1.0]})
    product = as_predictor(lambda f: 0.5 * f["a"] * f["b"])
    shares, alone = shapley_shares(product, [Part("a", ("a",)), Part("b", ("b",))], frame, twin)
    np.testing.assert_allclose(shares, [[0.25, 0.25]])
    np.testing.assert_allclose(alone, [[0.0, 0.0]])


def test_many_parts_are_sampled_and_still_add_up():
    names = [f"m{i}" for i in range(EXACT_PARTS + 3)]
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(20, len(names))), columns=names)
    twin = frame + rng.normal(size=frame.shape)
    predictor = as_predictor(lambda f: 1 / (1 + np.exp(-f.sum(axis=1))))
    shares, _ = shapley_shares(predictor, [Part(n, (n,)) for n in names], frame, twin)
    np.testing.assert_allclose(shares.sum(axis=1), predictor(twin) - predictor(frame))


# ---------------------------------------------------------------------- comparisons


def test_changed_graphs():
    graph = vaca.CausalGraph.from_edges([("a", "b"), ("b", "c"), ("a", "c")])
    found = dict(changed_graphs(graph))
    assert len(found) == 5  # c -> a would close a circle through b
    assert "c -> a instead of a -> c" not in found
    assert set(found["a -> b removed"].edges) == {("b", "c"), ("a", "c")}


def test_graph_robustness(training, people):
    edges = [("sex", "income"), ("income", "savings")]  # few: each is fitted twice
    engine = vaca.AdditiveNoise(vaca.CausalGraph.from_edges(edges))
    seen = []
    table = fairness.graph_robustness(
        engine,
        additive_score,
        people.head(100),
        "sex",
        fit_data=training.head(200),
        draws=1,
        progress=seen.append,
    )
    assert table.index[0] == "as assumed"
    assert seen == list(table.index)
    assert table.loc["as assumed", "difference"] == 0
    assert table.loc["sex -> income removed", "unfairness"] < table["unfairness"].iloc[0]


def test_engine_robustness(scm, training, people, outcome):
    classifiers = {
        name: fairness.make_classifier(name, scm, "sex").fit(people, outcome)
        for name in ("full", "fair-x")
    }
    engines = {
        "truth": scm,
        "AdditiveNoise": vaca.AdditiveNoise(scm.graph).fit(training.head(500), progress=False),
    }
    table = fairness.engine_robustness(engines, classifiers, people.head(100), "sex", draws=1)
    assert table.attrs["agree"]
    assert "rank the classifiers alike: full ≥ fair-x" in table.attrs["verdict"]
    with pytest.raises(VacaError, match="at least one engine"):
        fairness.engine_robustness({}, classifiers, people, "sex")


def test_engines_that_disagree_are_said_to(scm, people):
    from vaca.fairness.robustness import _clashes

    intervals = {
        ("one", "a"): (0.2, 0.3),
        ("one", "b"): (0.0, 0.1),
        ("two", "a"): (0.0, 0.1),
        ("two", "b"): (0.2, 0.3),
    }
    assert _clashes(["one", "two"], ["a", "b"], intervals) == [
        "a has the larger figure by one, b by two"
    ]


def test_order_within_the_intervals_is_said():
    from vaca.fairness.robustness import _close

    table = pd.DataFrame({"one": [0.3, 0.2], "two": [0.10, 0.11]}, index=["a", "b"])
    assert _close(table, ["a", "b"]) == ["two gives b the larger figure than a"]


@pytest.fixture
def brief_mitigations(monkeypatch):
    """Fairlearn's reductions stop early: what they find is not what these tests are about."""
    import fairlearn.reductions

    brief = partial(fairlearn.reductions.ExponentiatedGradient, max_iter=2)
    monkeypatch.setattr(fairlearn.reductions, "ExponentiatedGradient", brief)


@pytest.mark.usefixtures("brief_mitigations")
def test_frontier_of_two_attributes_that_reach_everything():
    both = vaca.StructuralCausalModel(
        {"sex": lambda u: u, "land": lambda u: u, "sexism": lambda sex, land, u: sex + land + u},
        {"sex": Bernoulli(0.5), "land": Bernoulli(0.5), "sexism": Normal(0, 1)},
        kinds={"sex": "binary", "land": "binary"},
    )
    rows = both.sample(120, seed=0)
    paid = (rows["sexism"] > 1).rename("paid")  # not the column itself, which would be hidden
    train, test = slice(0, 80), slice(80, 120)
    names = ["sex", "land"]
    assert fairness.readable_classifiers(both.graph, names) == ("full", "unaware", "fair-z")
    table = fairness.frontier(
        both, rows[train], paid[train], rows[test], paid[test], names, positive=True, draws=1
    )
    assert list(table.index[:3]) == ["full", "unaware", "fair-z"]
    assert "demographic parity" in table.index
    # A name that begins alike is another column: removing sex must not remove it.
    assert table.loc["correlation remover", "accuracy"] >= 0.65


def test_frontier(scm, people, outcome):
    train, test = people.iloc[:250], people.iloc[250:]
    table = fairness.frontier(
        scm, train, outcome.iloc[:250], test, outcome.iloc[250:], "sex", positive=True, draws=1
    )
    assert list(table.index[:4]) == list(fairness.CLASSIFIERS)
    assert set(table["source"]) == {"paper", "fairlearn"}
    assert table.loc["fair-x", "unfairness"] == 0
    assert table["f1"].between(0, 1).all()
    assert len(table) == 8


# ---------------------------------------------------------------------- input that is wrong


def test_sensitive_attribute_not_in_the_graph(scm, people):
    with pytest.raises(VacaError, match=r"'sexe' is not in the causal graph.*did you mean 'sex'"):
        vaca.audit(scm, linear_score, people, "sexe")
    with pytest.raises(VacaError, match="name at least one"):
        vaca.audit(scm, linear_score, people, [])


@pytest.mark.parametrize(
    ("predict", "message"),
    [
        (lambda f: np.zeros(3), r"returned the shape \(3,\) for a table of 20 rows"),
        (lambda f: np.zeros((len(f), 3)), r"returned the shape \(20, 3\)"),
        (lambda f: np.full(len(f), np.nan), "returned nan for 20 of 20 rows, first at position 0"),
        (lambda f: np.full(len(f), 1.5), "probabilities lie between 0 and 1"),
        (lambda f: ["yes"] * len(f), "must return numbers"),
        (42, "must be a fitted classifier"),
        (LogisticRegression(), "has no classes_: fit it first"),
    ],
)
def test_bad_predictors(scm, people, predict, message):
    with pytest.raises(VacaError, match=message):
        vaca.audit(scm, predict, people.head(20), "sex")


def test_predictor_forms_agree(scm, people, outcome):
    classifier = LogisticRegression().fit(people[["income", "savings"]], outcome)
    one = vaca.audit(scm, classifier, people, "sex", draws=1, paths=False)
    features = ["income", "savings"]
    two = vaca.audit(
        scm, lambda f: classifier.predict_proba(f[features]), people, "sex", draws=1, paths=False
    )
    assert one.unfairness == pytest.approx(two.unfairness)


def test_decisions_only(scm, people, outcome):
    classifier = RidgeClassifier().fit(people[["income", "savings"]], outcome)
    result = vaca.audit(scm, classifier, people, "sex", draws=1)
    assert set(result.per_person["unfairness"]) <= {0.0, 1.0}
    assert any("decisions and no probabilities" in text for text in result.caveats)


def test_one_class_only(scm, people, outcome):
    knows_one = DummyClassifier().fit(people[["income"]], np.ones(len(people)))
    with pytest.raises(VacaError, match=r"knows one class only, 1\.0"):
        vaca.audit(scm, knows_one, people, "sex")
    result = vaca.audit(scm, linear_score, people, "sex", target=np.ones(len(people)), draws=1)
    assert any("one class only" in text for text in result.caveats)
    assert "true_positive_rate" not in result.group_metrics


def test_many_classes_need_the_favourable_one(scm, people):
    grade = np.arange(len(people)) % 3
    classifier = LogisticRegression(max_iter=500).fit(people[["income"]], grade)
    with pytest.raises(VacaError, match="say which is the favourable one"):
        vaca.audit(scm, classifier, people, "sex")
    assert vaca.audit(scm, classifier, people, "sex", positive=2, draws=1).unfairness >= 0
    with pytest.raises(VacaError, match="positive=5 is not a class"):
        vaca.audit(scm, classifier, people, "sex", positive=5)


def test_level_with_one_person(scm, people):
    women = people[people["sex"] == "female"].head(40)
    lone = pd.concat([women, people[people["sex"] == "male"].head(1)])
    result = vaca.audit(scm, linear_score, lone, "sex", draws=1)
    assert any("“male” has 1 person" in text for text in result.caveats)
    assert np.isnan(result.by_group.loc[("male", "female"), "low"])


def test_everyone_in_one_group(scm, people):
    women = people[people["sex"] == "female"]
    result = vaca.audit(scm, linear_score, women, "sex", draws=1)
    assert list(result.by_group.index) == [("female", "male")]
    assert any("Everyone in the audited rows" in text for text in result.caveats)


def test_columns_outside_the_graph_are_held_and_said(scm, people):
    wider = people.assign(postcode=np.arange(len(people)))
    result = vaca.audit(scm, lambda f: (f["postcode"] % 2) * 1.0, wider, "sex", draws=1)
    assert result.unfairness == 0
    assert any("does not name postcode" in text for text in result.caveats)


def test_missing_columns(scm, people, outcome):
    classifier = LogisticRegression().fit(people.assign(rent=1.0)[["income", "rent"]], outcome)
    with pytest.raises(SchemaError, match="reads the column 'rent', which the data does not have"):
        vaca.audit(scm, classifier, people, "sex")
    with pytest.raises(SchemaError, match="income"):
        vaca.audit(scm, linear_score, people.drop(columns="income"), "sex")
    with pytest.raises(SchemaError, match="no rows to audit"):
        vaca.audit(scm, linear_score, people.head(0), "sex")


def test_bad_targets(scm, people):
    with pytest.raises(SchemaError, match="'paid' is not a column"):
        vaca.audit(scm, linear_score, people, "sex", target="paid")
    with pytest.raises(SchemaError, match="has 3 values"):
        vaca.audit(scm, linear_score, people, "sex", target=[1, 0, 1])
    with pytest.raises(VacaError, match="say which is favourable"):
        vaca.audit(scm, linear_score, people, "sex", target=["good"] * len(people))


def test_attribute_of_a_node_with_several_columns():
    graph = vaca.CausalGraph(
        {"person": [], "wage": ["person"]}, {"person": ["sex", "age"], "wage": ["wage"]}
    )
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"sex": rng.choice(["f", "m"], 300), "age": rng.normal(40, 5, 300)})
    frame["wage"] = (frame["sex"] == "m") * 2.0 + 0.1 * frame["age"] + rng.normal(size=300)
    model = vaca.AdditiveNoise(graph).fit(frame, progress=False)
    result = vaca.audit(model, lambda f: (f["age"] > 40) * 1.0, frame, "sex", draws=2)
    assert result.unfairness == 0  # age keeps its value though it shares a node with sex
    wage = vaca.audit(model, lambda f: 0.5 + 0.01 * f["wage"].clip(-40, 40), frame, "sex", draws=2)
    assert wage.unfairness == pytest.approx(0.02, rel=0.3)


# ---------------------------------------------------------------------- the command


@pytest.fixture(scope="module")
def saved(tmp_path_factory, scm, training):
    tmp_path = tmp_path_factory.mktemp("saved")
    vaca.AdditiveNoise(scm.graph).fit(training.head(400), progress=False).save(tmp_path / "model")
    rows = training.head(120).assign(paid=(training["savings"] > 0).map({True: "yes", False: "no"}))
    rows.to_csv(tmp_path / "people.csv", index=False)
    return tmp_path


def test_command_writes_a_report(saved, capsys):
    from vaca.commands.app import run

    arguments = ["audit", saved / "model", saved / "people.csv", "--sensitive", "sex"]
    arguments += ["--target", "paid", "--positive", "yes", "--draws", "3"]
    arguments += ["--out", saved / "audit.html", "--people", saved / "people-audit.csv"]
    assert run([str(a) for a in arguments]) == 0
    out = capsys.readouterr().out
    assert "unfairness (uf)" in out
    assert "fitted on these very rows" in out
    assert "<html" in (saved / "audit.html").read_text(encoding="utf-8")
    assert len(pd.read_csv(saved / "people-audit.csv")) == 120


def test_command_audits_a_function_of_a_file(saved, capsys):
    from vaca.commands.app import run

    (saved / "scoring.py").write_text("def score(frame):\n    return (frame['income'] > 0) * 1.0\n")
    arguments = ["audit", saved / "model", saved / "people.csv", "--sensitive", "sex"]
    assert run([str(a) for a in [*arguments, "--predict", f"{saved}/scoring.py:score"]]) == 0
    assert "unfairness (uf)" in capsys.readouterr().out
    for wrong, message in {
        "score": "write FILE.py:NAME",
        f"{saved}/nothing.py:score": "there is no file",
        f"{saved}/scoring.py:missing": "has no 'missing'",
        "no_such_module_here:score": "there is no module",
    }.items():
        assert run([str(a) for a in [*arguments, "--predict", wrong]]) == 2
        assert message in capsys.readouterr().err


@pytest.mark.usefixtures("brief_mitigations")
def test_command_compares_engines_and_predictors(saved, capsys, monkeypatch):
    from vaca.commands.app import run

    brief = {  # as they are they would train for a minute
        "CausalFlow": partial(vaca.CausalFlow, steps=5, polish_steps=5),
        "VACA": partial(vaca.VACA, steps=5),
    }
    whole = registry.engine_class
    monkeypatch.setattr(registry, "engine_class", lambda name: brief.get(name) or whole(name))
    arguments = ["audit", saved / "model", saved / "people.csv", "--sensitive", "sex"]
    arguments += ["--target", "paid", "--draws", "2", "--engines", "--frontier"]
    assert run([str(a) for a in [*arguments, "--out", saved / "more.html"]]) == 0
    out, err = capsys.readouterr()
    assert "rank the classifiers alike" in out
    assert "fitting: CausalFlow" in err
    assert "measured on the other 36" in err
    page = (saved / "more.html").read_text(encoding="utf-8")
    for words in ("If another kind of causal model is used", "threshold optimiser", "unaware"):
        assert words in page


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ([], "name the predictor with --predict"),
        (["--target", "nothing"], "no such column"),
        (["--target", "paid", "--sensitive", "sexx"], "'sexx' is not in the causal graph"),
        (["--target", "paid", "--positive", "maybe"], "has no such value"),
        (["--target", "paid", "--out", "report.pdf"], "end its name in .html"),
        (["--target", "paid", "--classifier", "fair"], "unknown classifier"),
    ],
)
def test_command_refuses(saved, capsys, extra, message):
    from vaca.commands.app import run

    arguments = ["audit", saved / "model", saved / "people.csv", "--sensitive", "sex", *extra]
    assert run([str(a) for a in arguments]) == 2
    assert message in capsys.readouterr().err
