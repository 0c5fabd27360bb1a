"""Bounds over all couplings: against linear programmes over every one of them."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from scipy.stats import bernoulli, norm, uniform

import vaca
from vaca.errors import VacaError
from vaca.trust.bounds import (
    counterfactual_bounds,
    coupling_bounds,
    probability_of_necessity,
    probability_of_necessity_and_sufficiency,
    probability_of_sufficiency,
    tian_pearl,
)


def ends(cost, a, b):
    """The smallest and the largest value of cost @ w with a @ w = b and w >= 0."""
    found = [linprog(sign * cost, A_eq=a, b_eq=b) for sign in (1, -1)]
    return found[0].fun, -found[1].fun


def test_coupling_bounds_are_those_of_all_couplings():
    rng = np.random.default_rng(0)
    for _ in range(5):
        p, q = rng.dirichlet(np.ones(3), 2)
        rows = [np.kron(np.eye(3)[k], np.ones(3)) for k in range(3)]  # marginals of a 3 x 3 table
        columns = [np.kron(np.ones(3), np.eye(3)[k]) for k in range(3)]
        a, b = np.array(rows + columns), np.concatenate([p, q])
        for k in range(3):
            low, high = coupling_bounds(p[None], q[None], np.array([k]))
            for l in range(3):
                cost = np.zeros(9)
                cost[3 * k + l] = 1 / p[k]
                assert (low[0, l], high[0, l]) == pytest.approx(ends(cost, a, b), abs=1e-7)


def test_tian_pearl_are_those_of_all_populations():
    """Eight kinds of people: treated or not, times what they would do under each treatment."""
    rng = np.random.default_rng(1)
    for _ in range(5):
        w = rng.dirichlet(np.ones(8)).reshape(2, 2, 2)  # [treated, y if treated, y if not]
        index = np.indices((2, 2, 2)).reshape(3, 8)
        t, y1, y0 = index
        y = np.where(t == 1, y1, y0)
        facts = [y1 == 1, y0 == 1]
        facts += [(t == a) & (y == b) for a in (0, 1) for b in (0, 1)]
        a = np.array(facts, float)
        b = a @ w.reshape(-1)
        joint = np.array([[b[5], b[4]], [b[3], b[2]]])
        found = tian_pearl(b[0], b[1], joint)
        owes = (t == 1) & (y1 == 1) & (y0 == 0)
        would = (t == 0) & (y1 == 1) & (y0 == 0)
        for name, kind, total in [
            ("necessity", owes, joint[0, 0]),
            ("sufficiency", would, joint[1, 1]),
            ("both", (y1 == 1) & (y0 == 0), 1.0),
        ]:
            assert tuple(found[name]) == pytest.approx(ends(kind / total, a, b), abs=1e-6)


def drug(effect=0.5):
    """A binary treatment that health decides with, and a binary outcome."""
    return vaca.StructuralCausalModel(
        {
            "h": lambda u: u,
            "t": lambda h, u: (u < 0.3 + 0.4 * h) * 1,
            "y": lambda h, t, u: (u < 0.2 + effect * t + 0.2 * h) * 1,
        },
        noise={"h": bernoulli(0.5), "t": uniform(), "y": uniform()},
        kinds={"h": "binary", "t": "binary", "y": "binary"},
    )


def test_the_functions_of_a_model():
    """Threshold noise is monotone: there both necessity and sufficiency sit at the lower bound."""
    scm = drug()
    found = probability_of_necessity_and_sufficiency(scm, "y", {"t": 1}, {"t": 0})
    assert found.low == pytest.approx(0.5, abs=0.01)
    rows = scm.sample(20_000, seed=1)
    other = scm.counterfactual(rows, do={"t": 0})
    chosen = (rows["t"] == 1) & (rows["y"] == 1)
    need = probability_of_necessity(scm, "y", {"t": 1}, {"t": 0})
    assert need.low - 0.02 <= (other["y"][chosen] == 0).mean() <= need.high + 0.02
    enough = probability_of_sufficiency(scm, "y", {"t": 1}, {"t": 0}, level=1)
    treated = scm.counterfactual(rows, do={"t": 1})
    left = (rows["t"] == 0) & (rows["y"] == 0)
    assert enough.low - 0.02 <= (treated["y"][left] == 1).mean() <= enough.high + 0.02


def test_bounds_of_rows_hold_the_answer_and_nothing_where_nothing_changes():
    scm = drug()
    rows = scm.sample(300, seed=0)
    answer = scm.counterfactual(rows, do={"t": 0}, bounds=True)
    bounds = answer.bounds
    assert bounds.index.equals(rows.index)
    assert set(bounds.columns.get_level_values("column")) == {"y"}
    low, high = bounds["y", 1]["low"], bounds["y", 1]["high"]
    assert (low <= high).all()
    # By hand: y = 1 was seen, with t = 1 and health h.
    p, q = 0.7 + 0.2 * rows["h"], 0.2 + 0.2 * rows["h"]
    hit = (rows["t"] == 1) & (rows["y"] == 1)
    # Chances are shares of 1000 draws: 0.015 off in a row, and less on average.
    for found, wanted in [(low, ((p + q - 1) / p).clip(lower=0)), (high, (q / p).clip(upper=1))]:
        assert (found - wanted)[hit].abs().max() < 0.12
        assert (found - wanted)[hit].abs().mean() < 0.03
    same = rows["t"] == 0
    assert (low[same] == rows["y"][same]).all() and (high[same] == rows["y"][same]).all()


def test_a_learned_model_gives_exact_chances():
    rows = drug().sample(400, seed=0)
    graph = vaca.CausalGraph.from_parents({"h": [], "t": ["h"], "y": ["h", "t"]})
    model = vaca.AdditiveNoise(graph).fit(rows)
    bounds = counterfactual_bounds(model, rows, {"t": 0})
    again = counterfactual_bounds(model, rows, {"t": 0}, seed=5)
    pd.testing.assert_frame_equal(bounds, again)  # nothing was drawn
    draws = model.counterfactual(rows, do={"t": 0}, draws=200, seed=0)
    share = (draws["y"] == 1).groupby(level=0).mean()
    inside = (share >= bounds["y", 1]["low"] - 0.1) & (share <= bounds["y", 1]["high"] + 0.1)
    assert inside.all()
    assert "bounds=True" in model.assumptions().loc["y", "rests_on"]


def test_chances_go_through_what_lies_between():
    scm = vaca.StructuralCausalModel(
        {
            "t": lambda u: u,
            "m": lambda t, u: t + u,
            "y": lambda m, u: (m + u > 1) * 1,
        },
        noise={"t": bernoulli(0.5), "m": norm(), "y": norm()},
        kinds={"t": "binary", "y": "binary"},
    )
    rows = pd.DataFrame({"t": [1], "m": [1.0], "y": [1]})
    low, high = counterfactual_bounds(scm, rows, {"t": 0})["y", 1].iloc[0]
    p, q = 0.5, norm.sf(1 / np.sqrt(2))
    assert (low, high) == pytest.approx((max(0, (p + q - 1) / p), q / p), abs=0.06)


def test_questions_without_an_answer_say_why():
    scm = drug()
    with pytest.raises(VacaError, match="'x3' has none"):
        probability_of_necessity(vaca.scms.load("triangle-lin"), "x3", {"x2": 1.0}, {"x2": 0.0})
    with pytest.raises(VacaError, match="the same single node"):
        probability_of_necessity(scm, "y", {"t": 1}, {"h": 0})
    with pytest.raises(VacaError, match="not for a random one"):
        counterfactual_bounds(scm, scm.sample(5, seed=0), {"t": bernoulli(0.5)})
