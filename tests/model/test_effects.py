"""Average effects: whom they are about, and what their intervals hold."""

from __future__ import annotations

from copy import copy

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from scipy.stats import uniform

import vaca
from vaca.errors import SupportWarning, VacaError
from vaca.model.answers import Effect
from vaca.model.effects import CHOSEN, chosen_rows
from vaca.scm import Bernoulli, Normal

pytestmark = pytest.mark.usefixtures("without_trees")

GRAPH = vaca.CausalGraph.from_edges([("age", "treat"), ("age", "y"), ("treat", "y")])
DO, NOT = {"treat": 1}, {"treat": 0}


def _table(n: int = 200, seed: int = 0, sharp: float = 1.0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.normal(size=n)
    treat = (rng.random(n) < 1 / (1 + np.exp(-sharp * age))).astype(int)
    y = treat * (1 + age) + age + rng.normal(size=n)
    return pd.DataFrame({"age": age, "treat": treat, "y": y})


@pytest.fixture(scope="module")
def model():
    """An engine with refits that are fits to other tables, as a bootstrap would give."""
    main = vaca.AdditiveNoise(GRAPH).fit(_table())
    main.refits_ = [vaca.AdditiveNoise(GRAPH).fit(_table(seed=k)) for k in (1, 2, 3)]
    return main


@pytest.mark.filterwarnings("ignore::vaca.errors.SupportWarning")
def test_against_nothing_is_against_the_rows_as_they_are(model):
    """What nothing is done to needs no abduction: it is the row, with one draw or many."""
    rows = _table(50, seed=9)
    for draws in (None, 1, 3):
        found = model.effect("y", DO, given=rows, draws=draws)
        twins = model.counterfactual(rows, DO, seed=0)["y"].to_numpy()
        assert found.value == pytest.approx(float(np.mean(twins - rows["y"].to_numpy())), abs=1e-9)


def test_small_chances_of_discrete_outcomes_are_not_rounded_away():
    """Nobody's likeliest level changes, and yet one in ten changes."""
    scm = vaca.StructuralCausalModel(
        {"t": lambda u: u, "y": lambda t, u: (u < 0.2 + 0.1 * t).astype(int)},
        {"t": Bernoulli(0.5), "y": uniform(0, 1)},
        kinds={"t": "binary", "y": "binary"},
    )
    rows = scm.sample(500, seed=0)
    effect = scm.effect("y", {"t": 1}, {"t": 0}, given=rows)
    assert effect.value == pytest.approx(0.1, abs=0.03)
    assert abs(effect.value - 0.1) < 3 * effect.standard_error < 0.05
    learned = vaca.AdditiveNoise(vaca.CausalGraph.from_edges([("t", "y")])).fit(rows)
    drawn = learned.effect("y", {"t": 1}, {"t": 0}, n=20_000).value
    assert learned.effect("y", {"t": 1}, {"t": 0}, given=rows).value == pytest.approx(
        drawn, abs=0.02
    )


def test_an_exact_outcome_needs_no_draws():
    """The point counterfactual is the mean one, without chance."""
    scm = vaca.scms.load("triangle-lin")
    effect = scm.effect("x3", {"x2": 1.0}, {"x2": 0.0}, given=scm.sample(20, seed=0))
    assert effect.value == pytest.approx(0.25, abs=1e-12)
    assert effect.standard_error == pytest.approx(0, abs=1e-12)


def test_the_value_is_the_main_fit_and_the_spread_that_of_the_refits(model):
    """With Student's quantiles for so few."""
    effect = model.effect("y", DO, NOT, n=500)
    alone = copy(model)
    alone.refits_ = ()
    single = alone.effect("y", DO, NOT, n=500)
    assert effect.value == single.value
    assert effect.covers_fit
    assert not single.covers_fit
    members = [m.effect("y", DO, NOT, n=500).value for m in model.refits_]
    assert effect.members == pytest.approx(members)
    fit = CHOSEN**2 * np.mean((np.array(members) - effect.value) ** 2)
    assert effect.standard_error == pytest.approx(np.sqrt(fit + single.standard_error**2))
    assert 3 <= effect.degrees < 4
    half = scipy.stats.t.ppf(0.95, effect.degrees) * effect.standard_error
    assert effect.interval(0.9)[1] - effect.value == pytest.approx(half)


def test_a_lone_engine_gives_no_per_cent(model):
    """Its error is that of the simulation, and is called so."""
    alone = copy(model)
    alone.refits_ = ()
    assert "simulation error only" in str(alone.effect("y", DO, NOT, n=50))
    assert "%" not in str(alone.effect("y", DO, NOT, n=50))
    assert "95 %" in str(model.effect("y", DO, NOT, n=50))
    scm = vaca.scms.load("triangle-lin")
    assert scm.effect("x3", {"x2": 1.0}, n=50).covers_fit  # nothing was fitted


def test_two_members_have_a_wide_interval():
    """Not the normal one."""
    effect = Effect(0.0, 1.0, "y", DO, NOT, degrees=1)
    assert effect.interval()[1] == pytest.approx(12.706, abs=1e-3)


def test_effects_among_some(model):
    """By values or by a condition, of the rows the model keeps."""
    df = _table()
    treated = model.effect("y", DO, NOT, among=DO)
    assert len(treated.per_row) == df["treat"].sum()
    np.testing.assert_array_equal(treated.rows, np.flatnonzero(df["treat"] == 1))
    old = model.effect("y", DO, NOT, among="age > 0.5")
    assert len(old.per_row) == (df["age"] > 0.5).sum()
    assert old.value > treated.value > model.effect("y", DO, NOT, n=500).value
    assert "among treat = 1" in str(treated)
    given = model.effect("y", DO, NOT, given=df.set_index("age", drop=False), among="age > 0.5")
    assert given.value == pytest.approx(old.value)
    assert (given.per_row.index > 0.5).all()


def test_effects_among_nobody_or_nothing(model):
    """Are refused by name."""
    with pytest.raises(VacaError, match="none of the 200 rows is among age > 100"):
        model.effect("y", DO, NOT, among="age > 100")
    with pytest.raises(VacaError, match=r"unknown column 'agee'.*age"):
        model.effect("y", DO, NOT, among={"agee": 1})
    with pytest.raises(VacaError, match="not a condition"):
        model.effect("y", DO, NOT, among="age >")
    with pytest.raises(VacaError, match="not a condition"):
        model.effect("y", DO, NOT, among="age + 1")


def test_effects_by_group(model):
    """Each with its own interval; they average to the whole."""
    table = model.effect("y", DO, NOT, by="age")
    assert list(table["rows"]) == [50] * 4
    assert table["effect"].is_monotonic_increasing
    assert (table["low"] < table["effect"]).all()
    assert table["effect"].mean() == pytest.approx(table.whole.value)
    two = model.effect("y", DO, NOT, by=["treat"], among="age > 0")
    assert list(two.index) == ["0", "1"]
    assert model.effect("y", DO, NOT, among="age > 0 and treat == 1").value == pytest.approx(
        two.loc["1", "effect"]
    )
    labels = [tick.get_text() for tick in table.plot().get_yticklabels()]
    assert labels[0] == "all"
    assert len(labels) == 5
    with pytest.raises(VacaError, match="unknown column 'ages'"):
        model.effect("y", DO, NOT, by="ages")


def test_a_true_model_answers_among_its_own_rows():
    """There is no table: rows are drawn."""
    scm = vaca.StructuralCausalModel(
        {"x": lambda u: u, "t": lambda x, u: (u < x).astype(int), "y": lambda x, t, u: t * x + u},
        {"x": uniform(0, 1), "t": uniform(0, 1), "y": Normal(0, 1)},
        kinds={"t": "binary"},
    )
    effect = scm.effect("y", {"t": 1}, {"t": 0}, among={"t": 1})
    assert effect.value == pytest.approx(2 / 3, abs=0.02)  # E[x | t = 1]


def test_no_tight_interval_where_nobody_is_comparable():
    """Nobody young is treated: what the treatment would do to them is anyone's guess."""
    df = _table(500)
    rng = np.random.default_rng(0)
    df["treat"] = ((df["age"] > 0.5) & (rng.random(500) < 0.5)).astype(int)
    model = vaca.AdditiveNoise(GRAPH).fit(df)
    model.refits_ = [copy(model), copy(model)]
    with pytest.warns(SupportWarning):
        effect = model.effect("y", DO, NOT, n=500)
    assert effect.extrapolated_share > 0.4
    low, high = effect.interval()
    assert high - low > np.ptp(df["y"])
    assert "nobody comparable" in str(effect)
    assert "among treat = 1" in str(effect)
    treated = model.effect("y", DO, NOT, among=DO)
    assert treated.slack == 0
    assert treated.interval()[1] - treated.interval()[0] < 1


def test_randomised_rare_treatment_is_comparable():
    """Rare for everyone is not rare for some."""
    rng = np.random.default_rng(0)
    df = _table(1000)
    df["treat"] = (rng.random(1000) < 0.03).astype(int)
    model = vaca.AdditiveNoise(GRAPH).fit(df)
    assert model.effect("y", DO, NOT, n=50).slack == 0


# ---------------------------------------------------------------------- draws of counterfactuals


def test_draws_are_dealt_to_all_fits(model):
    """In turn, the main fit first; the point is the main fit's."""
    rows = _table().head(3)
    answer = model.counterfactual(rows, {"treat": 1}, draws=8, seed=0)
    fits = [model, *model.refits_]
    for draw in range(8):
        own = copy(fits[draw % 4])
        own.refits_ = ()
        expected = own.counterfactual(rows, {"treat": 1})["y"].to_numpy()
        found = answer["y"].to_numpy().reshape(3, 8)[:, draw]
        np.testing.assert_allclose(found, expected)
    summary = answer.summary()
    changed = (rows["treat"] == 0).to_numpy()
    assert (summary["y", "sd"] > 0).to_numpy()[changed].all()
    np.testing.assert_allclose(summary["y", "sd"][~changed], 0, atol=1e-12)
    assert (summary["y", "5%"] < summary["y", "95%"]).to_numpy()[changed].all()


def test_quantiles_allow_for_few_fits(monkeypatch):
    """Nine answers that lie about the truth as another would: 90 % of the intervals hold it."""
    from vaca.model import answers

    monkeypatch.setattr(answers, "AT_A_POINT", 1.0)  # here nothing is smoothed away
    rng = np.random.default_rng(0)
    n, fits, draws = 400, 9, 90
    centre = rng.normal(size=(n, 1))
    members = np.tile(centre + rng.normal(size=(n, fits)), draws // fits)
    index = pd.MultiIndex.from_product([range(n), range(draws)], names=["row", "draw"])
    frame = answers.CounterfactualFrame({"y": members.ravel()}, index=index)
    frame.draws, frame.fits = draws, fits
    summary = frame.summary()
    fresh = centre[:, 0] + rng.normal(size=n)
    inside = (summary["y", "5%"] < fresh) & (fresh < summary["y", "95%"])
    assert 0.86 < inside.mean() < 0.95
    plain = np.quantile(members, [0.05, 0.95], axis=1)  # of so few hold too little
    assert ((plain[0] < fresh) & (fresh < plain[1])).mean() < 0.86


@pytest.mark.parametrize(
    "index",
    [
        pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)]),
        pd.MultiIndex.from_tuples([("a", 1), ("a", 1), ("b", 1)], names=["who", "draw"]),
        pd.Index(["p", "p", "q"]),
        pd.Index([0, 1, 2], name="draw"),
    ],
)
def test_a_summary_has_one_row_for_each_person(model, index):
    """Whatever the people are called."""
    rows = _table().head(3).set_index(index)
    summary = model.counterfactual(rows, {"treat": 1}, draws=6, seed=0).summary()
    assert len(summary) == 3
    assert list(summary.index) == list(index)
    np.testing.assert_allclose(summary["age", "mean"], rows["age"])


def test_the_command_asks_among_and_by(model, tmp_path):
    """As the library does."""
    from typer.testing import CliRunner

    from vaca.commands.app import app

    model.save(tmp_path / "m")
    ask = ["effect", str(tmp_path / "m"), "--on", "y", "--do", "treat=1", "--against", "treat=0"]

    def run(*more):
        found = CliRunner().invoke(app, [*ask, *more])
        assert found.exit_code == 0, found.output
        return found.output

    treated = run("--among", "treat=1")
    assert f"{model.effect('y', DO, NOT, among=DO).value:.4g} (standard error" in treated
    assert "among treat = 1" in treated
    assert run("--among", "treat == 1").split(":\n")[1] == treated.split(":\n")[1]
    out = tmp_path / "groups.csv"
    run("--by", "treat", "--among", "age > 0", "--out", str(out))
    table = pd.read_csv(out)
    assert list(table["group"]) == [0, 1]
    expected = model.effect("y", DO, NOT, by="treat", among="age > 0")
    np.testing.assert_allclose(table["effect"], expected["effect"])


@pytest.mark.parametrize(
    "text",
    [
        "x.to_csv('stolen.csv')",
        "__import__('os').system('true')",
        "(lambda: True)()",
        "@x > 0",
        "x.__class__",
        "[y for y in x]",
        "x > ",
        "(" * 5000,
        "x := 3",
    ],
)
def test_a_condition_cannot_run_anything(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [1.0, 2.0, 4.0]})
    schema = vaca.Schema.infer(rows, vaca.CausalGraph.from_edges([("x", "y")]))
    with pytest.raises(vaca.VacaError, match="among"):
        chosen_rows(rows, text, schema)
    assert not list(tmp_path.iterdir())


def test_a_condition_may_name_columns_with_spaces():
    rows = pd.DataFrame({"years of age": [30.0, 50.0], "y": [1.0, 2.0]})
    schema = vaca.Schema.infer(rows, vaca.CausalGraph.from_edges([("years of age", "y")]))
    assert chosen_rows(rows, "`years of age` > 40 and y < 3", schema).tolist() == [False, True]
