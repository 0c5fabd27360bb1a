"""Blocks of columns without a claim inside, from the graph to the answers."""

import numpy as np
import pandas as pd
import pytest

import vaca

GRAPH = vaca.CausalGraph.from_text("{age, educ, town} -> treat -> pay\n{age, educ, town} -> pay")


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    age = rng.normal(40, 10, 400)
    educ = np.rint(8 + 0.2 * age + rng.normal(size=400))
    town = np.where(age + rng.normal(0, 5, 400) > 40, "old", np.where(educ > 15, "mid", "new"))
    treat = rng.integers(0, 2, 400)
    pay = 10 * age + 50 * treat + rng.normal(0, 30, 400)
    return pd.DataFrame({"age": age, "educ": educ, "town": town, "treat": treat, "pay": pay})


@pytest.fixture(scope="module")
def model(people):
    return vaca.Composite(GRAPH).fit(people, refits=2)


def test_rows_of_a_block_without_causes_are_drawn_whole(model, people):
    drawn = model.sample(300, seed=0)
    known = set(map(tuple, people[["age", "educ", "town"]].itertuples(index=False)))
    assert set(map(tuple, drawn[["age", "educ", "town"]].itertuples(index=False))) <= known
    assert model.columns_.loc["educ", "mechanism"] == "as observed, row by row"
    assert model.assumptions().loc["age", "exact"]


def test_each_column_stays_a_column(model, people):
    answer = model.counterfactual(people, {"treat": 1})
    assert answer[["age", "educ", "town"]].equals(people[["age", "educ", "town"]])
    among = model.effect("pay", {"treat": 1}, {"treat": 0}, among={"town": "old"})
    assert among.value == pytest.approx(50, abs=20)
    assert model.simulate(model.abduct(model.rows_), {})["town"].tolist() == list(
        model.rows_["town"]
    )


def test_a_whole_block_can_be_set_and_a_part_of_it_cannot(model):
    done = model.sample(20, {"age": 45, "educ": 17, "town": "old"}, seed=0)
    assert (done["town"] == "old").all()
    assert done["pay"].mean() == pytest.approx(475, abs=60)
    with pytest.raises(vaca.VacaError, match="inside a block"):
        model.sample(20, {"age": 50})


def test_a_loaded_model_draws_the_same_rows(model, tmp_path):
    model.save(tmp_path / "model")
    again = vaca.load(tmp_path / "model")
    pd.testing.assert_frame_equal(model.sample(50, seed=1), again.sample(50, seed=1))
    effects = [m.effect("pay", {"treat": 1}, {"treat": 0}, n=200) for m in (model, again)]
    assert effects[0].members == effects[1].members


def test_weights_of_rows_count_in_blocks_too(people):
    weights = np.where(people["town"] == "old", 1.0, 0.0) + 1e-6
    model = vaca.Composite(GRAPH).fit(people, weights=weights)
    assert (model.sample(200, seed=0)["town"] == "old").mean() > 0.98


@pytest.mark.parametrize(
    ("engine", "settings"),
    [
        ("AdditiveNoise", {}),
        ("CausalFlow", {"steps": 20, "polish_steps": 5}),
        ("VACA", {"steps": 20}),
        ("VACA", {"steps": 20, "encoder_hidden_layers": 1}),
    ],
)
@pytest.mark.filterwarnings("ignore:.*design condition")
def test_other_engines_with_a_mechanism_for_each_column_draw_blocks_whole(
    engine, settings, people, tmp_path
):
    model = getattr(vaca, engine)(GRAPH, **settings).fit(people, refits=2, progress=False)
    known = set(map(tuple, people[["age", "educ", "town"]].itertuples(index=False)))
    drawn = model.sample(100, seed=0)
    assert set(map(tuple, drawn[["age", "educ", "town"]].itertuples(index=False))) <= known
    answer = model.counterfactual(people, {"treat": 1})
    assert answer[["age", "educ", "town"]].equals(people[["age", "educ", "town"]])
    model.save(tmp_path / "model")
    pd.testing.assert_frame_equal(drawn, vaca.load(tmp_path / "model").sample(100, seed=0))
    assert model.refits_[0].sample(100, seed=0).shape == drawn.shape


def test_networks_are_learned_for_treatment_and_outcome_alone(people):
    flow = vaca.CausalFlow(GRAPH, steps=5, polish_steps=1).fit(people, progress=False)
    assert len(flow._flows.choice) == 2
    model = vaca.VACA(GRAPH, steps=5).fit(people, progress=False)
    assert model._net.decoder.targets == 2
    assert list(model.encode(people.head(3))) == ["treat.z0", "pay.z0"]
    assert np.isfinite(model.log_prob(people.head(3), k=2)).all()
    assert np.isfinite(flow.log_prob(people.head(3))).all()


@pytest.mark.parametrize("engine", ["CausalFlow", "VACA"])
def test_a_folder_with_a_mechanism_for_every_column_of_a_block_is_read(
    engine, people, tmp_path, monkeypatch
):
    family, steps = getattr(vaca, engine), {"steps": 5}
    with monkeypatch.context() as before:
        order = vaca.CausalFlow._order
        before.setattr(vaca.CausalFlow, "_order", lambda self: order(self, every=True))
        before.setattr(vaca.VACA, "_given", lambda self: ())
        model = family(GRAPH, **steps).fit(people, progress=False)
        model.save(tmp_path / "model")
        want = model.counterfactual(people.head(5), {"treat": 1})
    again = vaca.load(tmp_path / "model")
    pd.testing.assert_frame_equal(again.counterfactual(people.head(5), {"treat": 1}), want)


def test_a_graph_of_one_block_can_be_fitted(people):
    graph = vaca.CausalGraph.from_text("people: {age, educ}")
    for model in (vaca.CausalFlow(graph, steps=5), vaca.VACA(graph, steps=5)):
        assert model.fit(people[["age", "educ"]], progress=False).sample(5, seed=0).shape == (5, 2)
