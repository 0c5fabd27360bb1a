"""Gumbel noise of categories: its posterior, for arrays and for tensors."""

from __future__ import annotations

import numpy as np
import torch

from vaca.engines.gumbel import gumbel_noise, level_of, noise_given
from vaca.engines.nn.likelihoods import posterior_gumbel


def test_gumbel_posterior_is_the_prior_on_average():
    rng = np.random.default_rng(0)
    log_p = np.log(np.tile([0.5, 0.3, 0.2], (40_000, 1)))
    prior = rng.gumbel(size=log_p.shape)
    level = level_of(log_p, prior)
    posterior = gumbel_noise(log_p, level, rng)
    assert np.array_equal(level_of(log_p, posterior), level)
    for k in range(3):
        qs = [0.05, 0.25, 0.5, 0.75, 0.95]
        np.testing.assert_allclose(
            np.quantile(posterior[:, k], qs), np.quantile(prior[:, k], qs), atol=0.06
        )


def test_arrays_and_tensors_have_one_posterior() -> None:
    rng = np.random.default_rng(0)
    log_p = np.log(rng.dirichlet(np.ones(4), 50))
    level = rng.integers(0, 4, 50)
    uniform = rng.random((50, 4))
    chosen = level[:, None] == np.arange(4)
    rest = -np.log(uniform)
    array = noise_given(log_p, chosen, -np.log(rest[chosen])[:, None], rest)
    given = [torch.from_numpy(a) for a in (log_p, level.astype(float), uniform)]
    np.testing.assert_allclose(posterior_gumbel(*given).numpy(), array, rtol=0, atol=1e-12)
    medians = posterior_gumbel(*given[:2], torch.full((50, 4), 0.5, dtype=torch.float64))
    np.testing.assert_allclose(medians, gumbel_noise(log_p, level, None), rtol=0, atol=1e-12)


def test_gradients_pass_through_the_posterior() -> None:
    log_p = torch.log(torch.tensor([[0.7, 0.2, 0.1]], dtype=torch.float64)).requires_grad_()
    uniform = torch.full((1, 3), 0.3, dtype=torch.float64)
    assert torch.autograd.gradcheck(
        lambda p: posterior_gumbel(p, torch.tensor([1.0]), uniform), (log_p,)
    )
