"""MultiCVAE: published sizes, independence of the networks, exact answers where they must be."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

import vaca
from tests.engines.test_vaca import CHAIN, chain_frame, seeded, size_of
from vaca.engines.multicvae import MultiCVAE
from vaca.engines.nn.conditional_network import ConditionalNetwork
from vaca.engines.nn.likelihoods import Discrete
from vaca.errors import VacaError
from vaca.graph.paths import depth_layers

PUBLISHED = {
    "collider-lin": 553,
    "collider-nlin": 553,
    "collider-nadd": 553,
    "triangle-lin": 3243,
    "triangle-nlin": 1785,
    "triangle-nadd": 3243,
    "mgraph-lin": 933,
    "mgraph-nlin": 933,
    "mgraph-nadd": 7277,
    "chain-lin": 3099,
    "chain-nlin": 1641,
    "chain-nadd": 3099,
    "loan": 33717,
}


@pytest.mark.parametrize("name", list(PUBLISHED))
def test_published_numbers_of_parameters(name: str) -> None:
    frame = vaca.scms.load(name).sample(200, seed=0)
    assert size_of(MultiCVAE.paper(name), frame) == PUBLISHED[name]


@pytest.mark.parametrize("decoder", [(), (6,), (6, 5)])
def test_a_column_sees_its_parents_and_nothing_else(decoder) -> None:
    parents = [[], [0], [1]]
    columns = [Discrete("continuous"), Discrete("categorical", 3), Discrete("continuous")]
    net = ConditionalNetwork(
        parents,
        depth_layers(parents),
        columns,
        latent=2,
        decoder_hidden=decoder,
        generator=seeded(),
    ).double()
    x = torch.tensor([[0.3], [1.0], [-0.7]], dtype=torch.float64)
    z = torch.zeros(3, 1, 2, dtype=torch.float64)
    base, mean = net.decode(z, x), net.encode(x)[0]
    for changed, new in ((0, 2.0), (1, 2.0), (2, 2.0)):
        y = x.clone()
        y[changed] = new
        decoded = (net.decode(z, y) != base).any(-1)[:, 0]
        encoded = (net.encode(y)[0] != mean).any(-1)[:, 0]
        for i in range(3):
            assert bool(decoded[i]) == (changed in parents[i])
            assert bool(encoded[i]) == (changed in parents[i] or changed == i)


def test_it_learns_saves_and_answers(tmp_path) -> None:
    frame = chain_frame(1000)
    model = MultiCVAE(CHAIN, steps=300).fit(frame)
    low, high = (model.sample(2000, do={"b": v}, seed=1)["c"].mean() for v in (0.0, 2.0))
    assert 2.0 < high - low < 6.0  # truth: 4
    pd.testing.assert_frame_equal(pd.DataFrame(model.counterfactual(frame, {})), frame)
    model.save(tmp_path / "m")
    again = vaca.load(tmp_path / "m")
    pd.testing.assert_frame_equal(again.sample(20, seed=3), model.sample(20, seed=3))
    assert list(model.encode(frame.head(3)).columns)[:2] == ["a.z0", "a.z1"]


def test_dropout_is_off_when_answering() -> None:
    model = MultiCVAE(CHAIN, steps=3, dropout=0.5).fit(chain_frame(60))
    pd.testing.assert_frame_equal(model.sample(5, seed=0), model.sample(5, seed=0))
    assert np.isfinite(model.history_["loss"]).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"objective": "loss"}, "objective is one of"),
        ({"variance": 0.0}, "variance is a positive number"),
        ({"dropout": 1.0}, "dropout lies in"),
        ({"encoder_hidden": ()}, "at least one size"),
        ({"latent_dim": 0}, "latent_dim is a whole number"),
    ],
)
def test_bad_parameters_are_refused(changes, message) -> None:
    with pytest.raises(VacaError, match=message):
        MultiCVAE(CHAIN, **changes).fit(chain_frame(60))
    with pytest.raises(VacaError, match="no settings for"):
        MultiCVAE.paper("nobody")
