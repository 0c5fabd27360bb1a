"""VACA: design conditions on real Jacobians, published sizes, objectives, bad input."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import torch

import vaca
from vaca.engines.layout import Layout
from vaca.engines.nn import objectives
from vaca.engines.nn.likelihoods import Discrete
from vaca.engines.nn.monotone import identity_parameters
from vaca.engines.nn.state_network import StateNetwork
from vaca.engines.nn.value_network import ValueNetwork
from vaca.engines.paper_vaca import PaperVACA
from vaca.engines.vaca import VACA
from vaca.errors import VacaError, VacaWarning
from vaca.graph.paths import depth_layers

# A chain 0 -> 1 -> 2 -> 3 with the shortcut 0 -> 3: shortest paths of 1 or 2, longest of 3.
PARENTS = [[], [0], [1], [0, 2]]
LONGEST = 3
ANCESTORS = {0: {0}, 1: {0, 1}, 2: {0, 1, 2}, 3: {0, 1, 2, 3}}
COLUMNS = [Discrete("continuous")] * 4


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def stirred(net: torch.nn.Module) -> torch.nn.Module:
    """Random weights everywhere, so that a zero in a Jacobian is one of structure.

    Small ones: of values beyond 30 sd children only hear that they are far.
    """
    generator = seeded(5)
    with torch.no_grad():
        for p in net.parameters():
            p.add_(0.1 * torch.randn(p.shape, generator=generator))
    return net.double().eval()


def value_network(rounds: int | None = None, **changes) -> ValueNetwork:
    net = ValueNetwork(
        PARENTS, COLUMNS, width=8, embedding=4, rounds=rounds, generator=seeded(), **changes
    )
    return stirred(net)  # type: ignore[return-value]


def state_network(hidden: int, **changes) -> StateNetwork:
    net = StateNetwork(
        PARENTS,
        [[0], [1], [2], [3]],
        COLUMNS,
        hidden_layers=hidden,
        latent=2,
        generator=seeded(),
        **changes,
    )
    return stirred(net)  # type: ignore[return-value]


def reach_of_values(net: ValueNetwork, do: dict[int, torch.Tensor] | None = None) -> torch.Tensor:
    """Which z moves which x: (to, from)."""
    zero = torch.zeros(4, 1, dtype=torch.float64)

    def decode(z: torch.Tensor) -> torch.Tensor:
        gumbel = zero.new_zeros(0, 1, 0)
        return net.generate(z, zero, zero, gumbel, zero, do or {})[:, 0]

    z = torch.randn(4, 1, generator=seeded(1), dtype=torch.float64)
    return torch.autograd.functional.jacobian(decode, z)[..., 0] != 0


def reach_of_states(net: StateNetwork, mask: torch.Tensor | None = None) -> torch.Tensor:
    # Several rows, since a ReLU may happen to be off in one.
    z = torch.randn(4, 20, 2, generator=seeded(1), dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(lambda v: net.decode(v, mask)[..., 0].sum(1), z)
    return (jacobian != 0).any(-1).any(-1)


def expected_reach() -> torch.Tensor:
    return torch.tensor([[j in ANCESTORS[i] for j in range(4)] for i in range(4)])


def test_with_enough_rounds_every_ancestor_reaches() -> None:
    assert torch.equal(reach_of_values(value_network()), expected_reach())
    assert torch.equal(reach_of_values(value_network(LONGEST)), expected_reach())
    assert torch.equal(reach_of_states(state_network(LONGEST - 1)), expected_reach())


def test_with_one_round_less_the_longest_path_is_lost() -> None:
    """z0 still reaches x3 by the shortcut; through 1 and 2 it does not."""
    without_shortcut = [[], [0], [1], [2]]
    short = StateNetwork(
        without_shortcut, [[0], [1], [2], [3]], COLUMNS, hidden_layers=LONGEST - 2, latent=2
    )
    assert not reach_of_states(stirred(short))[3, 0]  # type: ignore[arg-type]
    net = ValueNetwork(
        without_shortcut, COLUMNS, width=8, embedding=4, rounds=LONGEST - 1, generator=seeded()
    )
    reach = reach_of_values(stirred(net))  # type: ignore[arg-type]
    assert not reach[3, 0]
    assert reach[3, 1]
    assert reach[2, 0]


def test_running_all_rounds_equals_running_layer_by_layer() -> None:
    net = value_network()
    generator = seeded(2)
    z, eps = (torch.randn(4, 9, generator=generator, dtype=torch.float64) for _ in range(2))
    zero = torch.zeros_like(eps)
    rest = (zero, zero.new_zeros(0, 9, 0), zero)
    do = {1: torch.linspace(-1, 1, 9, dtype=torch.float64)}
    direct = net.generate(z, eps, *rest, do)
    net.layers.append([])  # pretend that more rounds are needed than there are
    net.rounds = LONGEST
    torch.testing.assert_close(net.generate(z, eps, *rest, do), direct, rtol=1e-12, atol=1e-12)


def test_an_intervention_cuts_paths_through_the_node_only() -> None:
    cut = torch.tensor([[True], [False], [True], [False]])
    expected = expected_reach()
    expected[2, :2] = False  # x2 is set: its ancestors do not reach it ...
    expected[3, 1] = False  # ... nor go on through it; 0 -> 3 stays
    reach = reach_of_states(state_network(LONGEST - 1), state_network(2).cut(cut))
    assert torch.equal(reach, expected)
    do = {2: torch.zeros(1, dtype=torch.float64)}
    expected[2, 2] = expected[3, 2] = False  # the value is given, whatever its latent
    assert torch.equal(reach_of_values(value_network(), do), expected)


@pytest.mark.parametrize("rounds", [1, 2])
def test_the_encoder_sees_parents_and_with_a_hidden_layer_grandparents(rounds: int) -> None:
    seen = torch.tensor([[j == i or j in PARENTS[i] for j in range(4)] for i in range(4)])
    if rounds == 2:
        seen[2, 0] = True  # 0 -> 1 -> 2
        seen[3, 1] = True  # 1 -> 2 -> 3
    x = torch.randn(4, 20, generator=seeded(1), dtype=torch.float64)
    states = state_network(2, encoder_rounds=rounds)
    jacobian = torch.autograd.functional.jacobian(lambda v: states.encode(v)[0].sum((1, 2)), x)
    assert torch.equal((jacobian != 0).any(-1), seen)
    values = value_network(encoder_rounds=rounds)
    jacobian = torch.autograd.functional.jacobian(lambda v: values.posterior(v)[0].sum(1), x)
    assert torch.equal((jacobian != 0).any(-1), seen)


def test_depth_layers() -> None:
    assert depth_layers(PARENTS) == [[0], [1], [2], [3]]
    assert depth_layers([[2], [], [1]]) == [[1], [2], [0]]


# ---------------------------------------------------------------------- the paper's sizes

PUBLISHED = {
    "collider-lin": 5600,
    "collider-nlin": 1805,
    "collider-nadd": 5600,
    "triangle-lin": 5334,
    "triangle-nlin": 5334,
    "triangle-nadd": 5334,
    "mgraph-lin": 3249,
    "mgraph-nlin": 8001,
    "mgraph-nadd": 8001,
    "chain-lin": 5648,
    "chain-nlin": 4445,
    "chain-nadd": 5648,
    "loan": 30402,
    "adult": 63432,
}


def size_of(model, frame: pd.DataFrame) -> int:
    schema = vaca.Schema.infer(frame, model.graph)
    layout = Layout.of(model.graph, schema, schema.encode(frame))
    return sum(p.numel() for p in model._build(layout, seeded()).parameters())


@pytest.mark.parametrize("name", list(PUBLISHED))
def test_published_numbers_of_parameters(name: str) -> None:
    frame = vaca.scms.load(name).sample(200, seed=0)
    assert size_of(VACA.paper(name), frame) == PUBLISHED[name]


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("collider-nlin", {2: 3785, 4: 4445, 8: 5765, 16: 8405, 32: 13685}),
        ("triangle-nlin", {2: 4542, 4: 5334, 8: 6918, 16: 10086, 32: 16422}),
        ("chain-nadd", {2: 3785, 4: 4445, 8: 5765, 16: 8405, 32: 13685}),
    ],
)
def test_published_numbers_of_parameters_by_latent_dimension(name: str, sizes) -> None:
    frame = vaca.scms.load(name).sample(100, seed=0)
    for latent, expected in sizes.items():
        changed = {"latent_dim": latent, "hidden_layers": 2, "residual": False, "width": 16}
        assert size_of(VACA.paper(name, **changed), frame) == expected


def test_unknown_paper_settings_are_named() -> None:
    with pytest.raises(VacaError, match="did you mean 'collider-lin'"):
        VACA.paper("colider-lin")


# ---------------------------------------------------------------------- objectives


def gradients(net: StateNetwork, x: torch.Tensor, objective, k: int, beta: float = 1.0) -> dict:
    net.zero_grad()
    value = objectives.loss(net, x, objective, k=k, beta=beta, generator=seeded(9))
    if value.requires_grad:
        value.backward()
    return {n: torch.zeros_like(p) if p.grad is None else p.grad for n, p in net.named_parameters()}


def split(net: StateNetwork) -> tuple[set[str], set[str]]:
    encoder = {id(p) for p in net.encoder_parameters()}
    names = {n: id(p) in encoder for n, p in net.named_parameters()}
    return {n for n, e in names.items() if e}, {n for n, e in names.items() if not e}


def test_piwae_trains_the_encoder_on_iwae_and_the_decoder_on_the_beta_elbo() -> None:
    net, x = state_network(1), torch.randn(4, 30, generator=seeded(3), dtype=torch.float64)
    piwae = gradients(net, x, "piwae", 5, 0.5)
    iwae = gradients(net, x, "iwae", 5)
    elbo = gradients(net, x, "elbo", 5, 0.5)
    encoder, decoder = split(net)
    for name in encoder:
        torch.testing.assert_close(piwae[name], iwae[name])
    for name in decoder:
        torch.testing.assert_close(piwae[name], elbo[name])


def test_dreg_changes_only_how_the_encoder_is_estimated() -> None:
    net, x = state_network(1), torch.randn(4, 30, generator=seeded(3), dtype=torch.float64)
    dreg, iwae = gradients(net, x, "dreg", 5), gradients(net, x, "iwae", 5)
    encoder, decoder = split(net)
    for name in decoder:
        torch.testing.assert_close(dreg[name], iwae[name])
    assert any(not torch.allclose(dreg[n], iwae[n]) for n in encoder)
    # Both estimate the same gradient of the encoder: compare averages over many rows.
    many = x[:, :1].expand(-1, 20_000)
    a = torch.cat([gradients(net, many, "dreg", 4)[n].flatten() for n in sorted(encoder)])
    b = torch.cat([gradients(net, many, "iwae", 4)[n].flatten() for n in sorted(encoder)])
    assert torch.nn.functional.cosine_similarity(a, b, dim=0) > 0.95
    assert 0.8 < float(a.norm() / b.norm()) < 1.25


def test_more_importance_samples_give_a_higher_bound() -> None:
    net, x = state_network(1), torch.randn(4, 500, generator=seeded(3), dtype=torch.float64)
    with torch.no_grad():
        t = net.terms(x, 1, seeded(4))
        elbo = (t.log_likelihood.mean(0) - t.kl).mean()
        bounds = [objectives.importance_bound(net.terms(x, k, seeded(4))).mean() for k in (5, 50)]
    assert elbo < bounds[0] < bounds[1]


def test_parents_dropout_removes_all_incoming_edges_but_the_self_loop() -> None:
    net = state_network(1)
    alone = torch.tensor([[False], [False], [True], [True]])
    kept = net.cut(alone)[:, 0]
    pairs = zip(net.source.tolist(), net.target.tolist(), kept.tolist(), strict=True)
    assert {(s, t) for s, t, k in pairs if not k} == {(1, 2), (0, 3), (2, 3)}
    net.dropout = 0.5
    x = torch.randn(4, 40, generator=seeded(3), dtype=torch.float64)
    net.train()
    dropped = net.terms(x, 1, seeded(4)).kl
    net.eval()
    assert not torch.allclose(dropped, net.terms(x, 1, seeded(4)).kl)


# ---------------------------------------------------------------------- fitting and asking


def quick(graph: vaca.CausalGraph, **changes) -> VACA:
    return VACA(graph, **{"steps": 25, "width": 16, **changes})


def quick_paper(graph: vaca.CausalGraph, **changes) -> PaperVACA:
    return PaperVACA(graph, **{"epochs": 4, "validation_samples": 2, **changes})


CHAIN = vaca.CausalGraph.from_edges([("a", "b"), ("b", "c")])


def chain_frame(n: int = 300, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    b = a + 0.5 * rng.normal(size=n)
    return pd.DataFrame({"a": a, "b": b, "c": b**2 + rng.normal(size=n)})


def test_a_binary_cause_keeps_its_latent_with_the_weight_of_the_paper() -> None:
    """A level is worth at most log 2 to the ELBO; a Gaussian of variance 0.025, many times that."""
    assert VACA.paper("loan").discrete_weight == 20.0
    rng = np.random.default_rng(0)
    s = rng.integers(0, 2, 1000)
    frame = pd.DataFrame({"s": s, "y": 1.5 * s + rng.normal(size=1000)})
    graph = vaca.CausalGraph.from_edges([("s", "y")])

    def moved(weight: float) -> float:
        """How far the latent of s moves with s, in sds of its prior."""
        model = PaperVACA(
            graph, epochs=40, batch_size=100, discrete_weight=weight, patience=None
        ).fit(frame)
        # Weighted in training alone: a bound on log p(x) must not be.
        assert model._net.discrete_weight == 1.0
        z = model.encode(frame)[[f"s.z{k}" for k in range(4)]]
        return float(z.std().max())

    assert moved(20.0) > 0.8
    assert moved(1.0) < 0.5


def test_it_learns_a_direction_and_keeps_its_history() -> None:
    model = VACA(CHAIN, steps=250, width=32).fit(chain_frame(1000))
    low, high = (model.sample(2000, do={"b": v}, seed=1)["c"].mean() for v in (0.0, 2.0))
    assert 2.0 < high - low < 6.0  # truth: 4
    assert abs(model.sample(2000, do={"c": 5.0}, seed=1)["a"].mean()) < 0.3
    history = model.history_
    assert history["validation"].dropna().iloc[-1] < history["validation"].dropna().iloc[0]


def test_the_same_seed_gives_the_same_model_and_a_saved_one_answers_the_same(tmp_path) -> None:
    frame = chain_frame()
    first, second = quick(CHAIN).fit(frame), quick(CHAIN).fit(frame)
    expected = first.sample(50, do={"a": 1.0}, seed=2)
    pd.testing.assert_frame_equal(second.sample(50, do={"a": 1.0}, seed=2), expected)
    other = quick(CHAIN, seed=1).fit(frame).sample(50, do={"a": 1.0}, seed=2)
    assert not other.equals(expected)
    first.save(tmp_path / "model")
    again = vaca.load(tmp_path / "model")
    pd.testing.assert_frame_equal(again.sample(50, do={"a": 1.0}, seed=2), expected)
    assert again.n_parameters_ == first.n_parameters_
    pd.testing.assert_series_equal(again.log_prob(frame.head()), first.log_prob(frame.head()))


def test_output_noise_shrinks_with_the_spread_of_the_map() -> None:
    net = value_network()
    start = torch.zeros(4, 2, net.decoder.straight.weight.shape[-1], dtype=torch.float64)
    start[..., : net.map_size] = identity_parameters(8, form="scaled")
    start[:, 1, 1:5] = 0.0  # the second row's map is flat
    sigma = net.sigma(start, net.continuous, net.maps(start))
    assert (sigma[:, 0] > 0.02).all()
    assert (sigma[:, 1] < 0.03 * sigma[:, 0]).all()
    assert (sigma > 0).all()


def test_noise_in_proportion_to_a_cause_vanishes_with_it() -> None:
    rng = np.random.default_rng(0)
    x = rng.choice([-2.0, 2.0], 2000) + rng.normal(size=2000)
    frame = pd.DataFrame({"x": x, "y": x * rng.normal(size=2000)})
    model = VACA(vaca.CausalGraph.from_edges([("x", "y")]), steps=600).fit(frame)
    spread = {v: float(model.sample(2000, do={"x": v}, seed=0)["y"].std()) for v in (0.0, 2.0)}
    assert spread[2.0] == pytest.approx(2.0, rel=0.15)
    assert spread[0.0] < 0.25  # truth: 0; 0.32 if heights are softplus


def test_lines_start_where_least_squares_puts_them() -> None:
    """Of values and levels, with weights of the rows; and a child that has no parents has none."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 500))
    g = rng.integers(0, 3, 500)
    y = 0.5 * a - 0.2 * b + np.array([0.0, 0.7, -1.0])[g]
    wrong = np.arange(500) < 100  # rows of weight 0
    y[wrong] = 3.0
    kinds = [Discrete("continuous"), Discrete("continuous"), Discrete("categorical", 3)]
    net = ValueNetwork(
        [[], [], [], [0, 1, 2]], [*kinds, Discrete("continuous")], generator=seeded()
    )
    x = torch.as_tensor(np.stack([a, b, g, y]), dtype=torch.float32)
    for weights in (torch.as_tensor(1.25 * ~wrong, dtype=torch.float32), None):
        net.begin(x, weights)
        h = net.embed(x)
        line = sum(h[j] @ net.decoder.direct[e, :, 0] for e, j in enumerate((0, 1, 2)))
        error = (line - x[3]).detach()[~wrong]
        assert (float(error.std()) < 0.05) == (weights is not None)


def test_the_effect_of_a_rare_treatment_is_not_shrunk() -> None:
    rng = np.random.default_rng(1)
    w, noise = rng.normal(size=(2, 1500))
    score = w + rng.logistic(size=1500)
    t = (score > np.quantile(score, 0.97)).astype(int)
    frame = pd.DataFrame({"w": w, "t": t, "y": 2.0 * t + w + noise})
    known = np.linalg.lstsq(np.c_[np.ones(1500), w, t], frame["y"], rcond=None)[0][2]
    graph = vaca.CausalGraph.from_edges([("w", "t"), ("w", "y"), ("t", "y")])
    model = VACA(graph, steps=300, width=32).fit(frame)
    effect = model.effect("y", {"t": 1}, {"t": 0}, among={"t": 1}, seed=0)
    assert effect.value == pytest.approx(known, abs=0.25)


def begun(rows: list, parents: list, columns: list[Discrete]) -> tuple[ValueNetwork, torch.Tensor]:
    net = ValueNetwork(parents, columns, generator=seeded())
    x = torch.as_tensor(np.stack(rows), dtype=torch.float32)
    net.begin(x, None)
    with torch.no_grad():  # what the rows say, without what an untrained network adds
        net.decoder.update.layers[-1].weight.zero_()  # type: ignore[operator,union-attr]
    return net.eval(), x


def test_a_step_is_found_where_it_is_and_not_where_noise_is_wide() -> None:
    rng = np.random.default_rng(0)
    a, b, noise = rng.normal(size=(3, 2000))
    kinds = [Discrete("continuous")] * 3
    net, x = begun([a, b, a + 2.0 * (b > 0.4) + 0.1 * noise], [[], [], [0, 1]], kinds)
    breaks = net.decoder.breaks
    assert breaks is not None
    assert breaks.source.tolist() == [1]
    assert breaks.place.tolist() == pytest.approx([0.4], abs=0.02)
    assert breaks.size[0, 0].item() == pytest.approx(2.0, abs=0.05)
    assert not breaks.size[0, 1:].any()
    error = net.decoder(net.embed(x))[2, :, 0].detach() - torch.as_tensor(a + 2.0 * (b > 0.4))
    assert float(error.std()) < 0.05
    wild = b**2 * np.sign(noise) * (1 + noise**2)
    assert begun([a, b, wild / wild.std()], [[], [], [0, 1]], kinds)[0].decoder.breaks is None


def test_scales_start_as_the_spread_of_the_rows() -> None:
    rng = np.random.default_rng(0)
    a, b, noise, other = rng.normal(size=(4, 4000))
    kinds = [Discrete("continuous")] * 3
    y = 0.5 * (a**2 + b**2) * np.sign(noise) + 0.1 * other
    net, _ = begun([a, b, y], [[], [], [0, 1]], kinds)
    causes = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.5]])
    x = torch.as_tensor(np.c_[causes, np.zeros(3)].T, dtype=torch.float32)
    with torch.no_grad():
        roots = net.decoder(net.embed(x))[2, :, 1:5]
    smooth, steps = (9.0 * roots.square()).unflatten(-1, (2, 2)).sum(-2).unbind(-1)
    assert smooth.tolist() == pytest.approx([0.1] * 3, abs=0.05)
    assert steps.tolist() == pytest.approx([0.0, 0.5, 1.125], abs=0.1)
    even, _ = begun([a, b, a + noise], [[], [], [0, 1]], kinds)
    assert not even.decoder.direct[..., 1:].any()


def test_odds_start_where_they_are_and_follow_the_network_slowly() -> None:
    rng = np.random.default_rng(0)
    a, g = rng.normal(size=4000), rng.integers(0, 3, 4000)
    score = np.stack([0 * a, a + np.array([0.0, 1.0, -1.0])[g], -2.0 * np.abs(a)])
    level = (score + rng.gumbel(size=score.shape)).argmax(0)
    rank = (1.5 * a + rng.logistic(size=4000) > np.array([[-1.0], [2.0]])).sum(0)
    kinds = [Discrete("continuous"), Discrete("categorical", 3)]
    kinds += [Discrete("categorical", 3), Discrete("ordinal", 3)]
    net, x = begun([a, g, level, rank], [[], [], [0, 1], [0]], kinds)
    with torch.no_grad():
        p = net.decoder(net.embed(x))
    found = torch.log_softmax(p[2, :, :3], -1).exp()
    truth = torch.log_softmax(torch.as_tensor(score), 0).exp().T
    assert float((found - truth).abs().mean()) < 0.05
    above = torch.sigmoid(torch.as_tensor(1.5 * a + 1.0))
    assert float((torch.sigmoid(p[3, :, 0]) - above).abs().mean()) < 0.05
    pace = net.decoder.pace
    assert pace is not None
    assert (pace[2:, 0, :3] < 0.2).all()
    assert pace[0, 0, 0] == 1.0


def test_a_model_with_steps_answers_exactly_and_as_saved(tmp_path) -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=1000)
    b = 2.0 * (a > 0.3) + 0.1 * rng.normal(size=1000)
    frame = pd.DataFrame({"a": a, "b": b, "c": b + rng.normal(size=1000)})
    model = quick(CHAIN).fit(frame)
    assert model._net.decoder.breaks is not None
    x = model.schema_.encode(frame)
    again = model.simulate(model.abduct(x, None), {})
    for column, values in x.items():
        np.testing.assert_allclose(again[column], values, rtol=1e-12, atol=1e-12)
    answer = model.counterfactual(frame, {"b": 1.0})
    assert answer["a"].equals(frame["a"])
    assert not model.counterfactual(frame, {"a": 2.0})["b"].equals(frame["b"])
    whole, layers = model._net, model._net.layers
    h = whole.embed(torch.as_tensor(model._layout.tensor(x), dtype=torch.float32))
    by_layer = torch.cat([whole.decoder.some(h.transpose(0, 1), layer) for layer in layers])
    torch.testing.assert_close(by_layer, whole.decoder(h), rtol=1e-4, atol=1e-4)
    model.save(tmp_path / "model")
    loaded = vaca.load(tmp_path / "model")
    pd.testing.assert_frame_equal(loaded.sample(50, seed=1), model.sample(50, seed=1))


def test_a_column_with_long_gradients_does_not_hold_up_others() -> None:
    """All that is a column's own is shortened by one factor, and nothing of any other column."""
    net = value_network(encoder_rounds=2, noise="column")
    names = dict(net.named_parameters())
    for parameter in names.values():
        parameter.grad = torch.full_like(parameter, 1e-3)
    target = net.decoder.target.tolist()
    long = names["decoder.direct"].grad
    assert long is not None
    long[target.index(2)] = 1e3
    net.calm(10.0)
    for name, parameter in names.items():
        grad = parameter.grad
        assert grad is not None
        changed = (grad != 1e-3).flatten(1).any(1).nonzero().flatten().tolist()
        if name.startswith("embed"):
            assert not changed
        elif ".message." in name or name == "decoder.direct" or name.startswith("leaks"):
            assert {target[k] for k in changed} == {2}
        else:
            assert changed == [2]
    own = [p.grad[2] for n, p in names.items() if n.startswith("decoder.update")]  # type: ignore[index]
    assert max(float(g.abs().max()) for g in own) < 1e-4
    assert float(long[target.index(2)].norm()) == pytest.approx(10.0, rel=1e-3)


@pytest.mark.parametrize("objective", objectives.OBJECTIVES)
@pytest.mark.parametrize("make", [quick, quick_paper])
def test_every_objective_trains(objective, make) -> None:
    model = make(CHAIN, objective=objective, samples=3, beta=0.5).fit(chain_frame(60))
    assert np.isfinite(model.sample(5, seed=0).to_numpy()).all()


@pytest.mark.parametrize("variance", ["column", 0.01])
@pytest.mark.parametrize("make", [quick, quick_paper])
def test_every_kind_of_output_noise_trains(variance, make) -> None:
    frame = chain_frame(60)
    model = make(CHAIN, variance=variance).fit(frame)
    pd.testing.assert_frame_equal(pd.DataFrame(model.counterfactual(frame, {})), frame)


def test_encode_reconstruct_and_log_prob() -> None:
    frame = chain_frame().set_index(pd.RangeIndex(1000, 1300))
    model = VACA(CHAIN, steps=150, width=32).fit(frame)
    latent = model.encode(frame)
    assert list(latent.columns) == ["a.z0", "b.z0", "c.z0"]
    assert latent.index.equals(frame.index)
    moved = frame.assign(c=0.0)
    assert model.encode(moved)[["a.z0", "b.z0"]].equals(latent[["a.z0", "b.z0"]])
    error = (model.reconstruct(frame) - frame).abs().mean() / frame.std()
    assert (error < 0.2).all()
    few, many = model.log_prob(frame, k=1), model.log_prob(frame, k=50)
    assert many.index.equals(frame.index)
    assert many.mean() >= few.mean() - 0.05
    scaled = VACA(CHAIN, steps=150, width=32).fit(frame * 1000.0)
    shift = scaled.log_prob(frame * 1000.0, k=50).mean() - many.mean()
    assert shift == pytest.approx(-3 * np.log(1000.0), abs=0.2)


def test_draws_are_a_distribution_with_the_factual_in_its_middle() -> None:
    frame = chain_frame()
    model = VACA(CHAIN, steps=150, width=32).fit(frame)
    draws = model.counterfactual(frame.head(20), {"a": 1.0}, draws=30, seed=0)
    assert draws["c"].groupby(level=0).std().min() > 0
    point = model.counterfactual(frame.head(20), {"a": 1.0})
    gap = (draws["c"].groupby(level=0).mean() - point["c"]).abs()
    assert gap.mean() < 0.5 * frame["c"].std()


def test_broken_conditions_are_allowed_and_warned_about() -> None:
    frame = chain_frame(60)
    with pytest.warns(VacaWarning, match="design condition 1.*2 edges.*hidden_layers=1"):
        quick(CHAIN, hidden_layers=0, steps=2).fit(frame)
    with pytest.warns(VacaWarning, match="design condition 2"):
        quick(CHAIN, encoder_hidden_layers=1, steps=2).fit(frame)
    with pytest.warns(VacaWarning, match="design condition 1"):
        quick_paper(CHAIN, hidden_layers=0).fit(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quick(CHAIN, hidden_layers=1, steps=2).fit(frame)


@pytest.mark.parametrize(
    ("make", "changes", "message"),
    [
        (quick, {"objective": "loss"}, "objective is one of"),
        (quick, {"variance": -1.0}, "variance is"),
        (quick_paper, {"variance": "decoder"}, 'variance is "column" or a positive number'),
        (quick_paper, {"parents_dropout": 1.0}, "parents_dropout lies in"),
        (quick_paper, {"discrete_weight": 0.0}, "discrete_weight is a positive number"),
        (quick, {"width": 0}, "width is a whole number"),
        (quick, {"hidden_layers": -1}, "hidden_layers"),
        (quick, {"patience": 0.0}, "patience is a number above 0"),
    ],
)
def test_bad_parameters_are_refused(make, changes, message) -> None:
    with pytest.raises(VacaError, match=message):
        make(CHAIN, **changes).fit(chain_frame(60))


@pytest.mark.parametrize("make", [quick, quick_paper])
def test_a_warning_points_at_the_line_of_the_user(make) -> None:
    with pytest.warns(VacaWarning, match="design condition") as caught:
        make(CHAIN, hidden_layers=0).fit(chain_frame(60))
    assert caught[0].filename == __file__


def test_hard_tables() -> None:
    """One node, no edges, constant, huge, 200 levels, mixed nodes: trains and stays exact."""
    rng = np.random.default_rng(0)
    n = 250
    frame = pd.DataFrame(
        {
            "huge": 1e12 * (1 + rng.random(n)),
            "flat": np.full(n, 3.5),
            "city": pd.Categorical.from_codes(
                rng.integers(0, 200, n), [f"c{i}" for i in range(200)]
            ),
            "rank": pd.Categorical(rng.choice(["low", "mid", "top"], n), ordered=True),
            "visits": rng.poisson(30, n),
            "alone": rng.normal(size=n),
        }
    )
    graph = vaca.CausalGraph(
        {"huge": [], "flat": ["huge"], "mixed": ["flat"], "visits": ["mixed"], "alone": []},
        {"mixed": ["city", "rank"]},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VacaWarning)
        model = quick(graph, steps=6).fit(frame)
        drawn = model.sample(200, seed=0)
        answer = model.counterfactual(frame, {"huge": 1.5e12}, draws=2, seed=0)
    model.schema_.encode(drawn)
    model.schema_.encode(answer)
    assert (drawn["flat"] - 3.5).abs().max() < 0.01
    assert (drawn["visits"] >= 0).all()
    x = model.schema_.encode(frame)
    again = model.simulate(model.abduct(x, np.random.default_rng(1)), {})
    for column, values in x.items():
        np.testing.assert_allclose(again[column], values, rtol=1e-9)
    single = vaca.CausalGraph({"alone": []})
    assert len(quick(single, steps=3).fit(frame[["alone"]]).sample(4, seed=0)) == 4


@pytest.mark.parametrize("make", [quick, quick_paper])
def test_a_very_long_chain_trains_and_warns(make) -> None:
    names = [f"x{i}" for i in range(60)]
    graph = vaca.CausalGraph.from_edges(list(zip(names, names[1:], strict=False)))
    walk = np.random.default_rng(0).normal(size=(100, 60)).cumsum(1)
    with pytest.warns(VacaWarning, match="longest path of the graph has 59 edges"):
        model = make(graph).fit(pd.DataFrame(walk, columns=names))
    assert np.isfinite(model.history_["loss"]).all()
    assert np.isfinite(model.sample(5, do={"x0": 1.0}, seed=0).to_numpy()).all()


def test_columns_of_a_block_do_not_act_directly(tmp_path):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(60, 4)), columns=list("abty"))
    for text in ("{a, b} -> t -> y\n{a, b} -> y", "a -> b -> t -> y\na -> y\nb -> y"):
        model = vaca.VACA(vaca.CausalGraph.from_text(text), steps=2).fit(rows, progress=False)
        assert (model._net.decoder.allowed is None) == ("{" in text)
        model.save(tmp_path / "model", overwrite=True)
        loaded = vaca.load(tmp_path / "model")
        assert loaded.sample(3, seed=0).equals(model.sample(3, seed=0))


def test_decay_grows_with_the_weights_of_a_block_alone():
    rows = pd.DataFrame({name: [0.0, 1.5, 2.0, 3.5] for name in "abty"})
    sizes = []
    for text in ("{a, b} -> t -> y\n{a, b} -> y", "a -> b -> t -> y\na -> y\nb -> y"):
        model = vaca.VACA(vaca.CausalGraph.from_text(text))
        schema = vaca.Schema.infer(rows, model.graph)
        layout = Layout.of(
            model.graph, schema, schema.encode(rows), model._given() if "{" in text else ()
        )
        sizes.append([model._decay(layout, n) for n in (100, 10**6)])
    assert sizes[0] == [3 * 16 * 64 / 100, 1.0]
    assert sizes[1] == [1.0, 1.0]
