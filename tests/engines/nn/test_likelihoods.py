"""Likelihoods: probabilities sum to one, noise maps follow them, posteriors give values back."""

from __future__ import annotations

import pytest
import torch

from vaca.engines.nn.likelihoods import (
    COMPONENTS,
    Discrete,
    DiscreteLikelihood,
    posterior_gumbel,
    truncated_logistic,
)
from vaca.engines.nn.monotone import Increasing, identity_parameters, parameter_count

GENERATOR = torch.Generator().manual_seed(0)
COLUMNS = [
    Discrete("binary", 2),
    Discrete("continuous"),
    Discrete("ordinal", 4),
    Discrete("categorical", 3),
    Discrete("ordinal", 2),
    Discrete("categorical", 200),
    Discrete("count", mean=3.0, scale=2.0, top=150.0),
    Discrete("binary", 1),
]
HEAD = DiscreteLikelihood(COLUMNS)
SIZES = {0: 2, 2: 4, 3: 3, 4: 2, 5: 200, 6: 151, 7: 1}


def parameters(rows: int, spread: float = 1.5) -> torch.Tensor:
    shape = (len(COLUMNS), rows, max(HEAD.parameters_needed, 3 * COMPONENTS))
    drawn = torch.randn(shape, generator=GENERATOR, dtype=torch.float64)
    return spread * drawn


@pytest.mark.parametrize("column", list(SIZES))
def test_probabilities_sum_to_one(column: int) -> None:
    rows = SIZES[column]
    p = parameters(1).expand(-1, rows, -1)
    x = torch.zeros(len(COLUMNS), rows, dtype=torch.float64)
    base = HEAD.log_prob(p, x)[0]  # all columns at 0
    x[column] = torch.arange(rows)
    moved = HEAD.log_prob(p, x)
    x[column] = 0.0
    own = one_column(column, p, x)
    total = (moved - base + own).exp().sum()
    assert total == pytest.approx(1.0, abs=1e-6)


def one_column(column: int, p: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """log-probability of one column at the given value, from a head that has only this one."""
    alone = DiscreteLikelihood([COLUMNS[column]])
    return alone.log_prob(p[[column]], x[[column]])[0]


def noise(rows: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    shape = (len(COLUMNS), rows)
    u = torch.rand(shape, generator=GENERATOR, dtype=torch.float64).clamp(1e-12, 1 - 1e-12)
    v = torch.rand((2, rows, 200), generator=GENERATOR, dtype=torch.float64).clamp(1e-12)
    return torch.logit(u), -torch.log(-torch.log(v)), torch.zeros(shape, dtype=torch.float64)


def test_drawn_values_follow_the_likelihood() -> None:
    rows = 20_000
    p = parameters(1).expand(-1, rows, -1)
    out = torch.zeros(len(COLUMNS), rows, dtype=torch.float64)
    logistic, gumbel, shift = noise(rows)
    x = HEAD.draw(p, range(len(COLUMNS)), logistic, gumbel, shift, out)
    for column in (0, 2, 3, 4, 6):
        for value in range(min(SIZES[column], 8)):
            at = torch.full_like(out[:, :1], float(value))
            expected = one_column(column, p[:, :1], at).exp().item()
            share = (x[column] == value).double().mean().item()
            assert share == pytest.approx(expected, abs=0.015), (column, value)
    assert (x[7] == 0).all()
    assert x[5].max() < 200


@pytest.mark.parametrize("drawn", [False, True])
@pytest.mark.parametrize("spread", [1.0, 30.0])
def test_posterior_noise_gives_every_value_back(drawn: bool, spread: float) -> None:
    rows = 800
    p = parameters(rows, spread)
    x = torch.zeros(len(COLUMNS), rows, dtype=torch.float64)
    for column, size in SIZES.items():
        drawn_codes = torch.randint(size, (rows,), generator=GENERATOR)
        x[column] = drawn_codes.double()
    x[6] = x[6].clamp(max=60)
    shape, levels = x.shape, (2, rows, 200)
    uniform, uniform_levels = torch.full(shape, 0.5).double(), torch.full(levels, 0.5).double()
    if drawn:
        uniform = torch.rand(shape, generator=GENERATOR, dtype=torch.float64)
        uniform_levels = torch.rand(levels, generator=GENERATOR, dtype=torch.float64)
    logistic, gumbel, shift = HEAD.posterior_noise(p, x, uniform, uniform_levels)
    again = HEAD.draw(p, range(len(COLUMNS)), logistic, gumbel, shift, torch.zeros_like(x))
    assert torch.isfinite(logistic).all()
    for column in SIZES:
        assert torch.equal(again[column], x[column]), column


def test_posterior_noise_mixes_to_the_prior() -> None:
    """Noise abducted from drawn values is again logistic and Gumbel."""
    rows = 20_000
    p = parameters(1).expand(-1, rows, -1)
    logistic, gumbel, shift = noise(rows)
    x = HEAD.draw(p, range(8), logistic, gumbel, shift, torch.zeros_like(logistic))
    uniform = torch.rand(x.shape, generator=GENERATOR, dtype=torch.float64)
    uniform_levels = torch.rand((2, rows, 200), generator=GENERATOR, dtype=torch.float64)
    again, again_gumbel, _ = HEAD.posterior_noise(p, x, uniform, uniform_levels)
    for column in (0, 2, 4, 6):
        share = torch.sigmoid(again[column])
        for q in (0.1, 0.5, 0.9):
            assert (share < q).double().mean().item() == pytest.approx(q, abs=0.015)
    for level in range(3):
        share = torch.exp(-torch.exp(-again_gumbel[0, :, level]))
        assert (share < 0.3).double().mean().item() == pytest.approx(0.3, abs=0.015)


def test_far_tails_stay_finite_and_inside() -> None:
    low = torch.tensor([40.0, -torch.inf, -41.0, -torch.inf], dtype=torch.float64)
    high = torch.tensor([torch.inf, -40.0, -40.5, torch.inf], dtype=torch.float64)
    for u in (1e-12, 0.5, 1 - 1e-12):
        found = truncated_logistic(low, high, torch.full_like(low, u))
        assert torch.isfinite(found).all()
        assert ((found > low) & (found <= high)).all()


def test_gumbel_posterior_of_a_hopeless_level() -> None:
    log_p = torch.log_softmax(torch.tensor([0.0, -400.0], dtype=torch.float64), -1)
    g = posterior_gumbel(log_p, torch.tensor(1.0), torch.full((2,), 0.3, dtype=torch.float64))
    assert int((log_p + g).argmax()) == 1


def test_increasing_maps_increase_and_know_their_slope() -> None:
    p = 2 * torch.randn(5, 1, parameter_count(8), generator=GENERATOR, dtype=torch.float64)
    z = torch.linspace(-4, 4, 400, dtype=torch.float64).expand(5, -1).clone().requires_grad_()
    maps = Increasing(p)
    value, slope = maps(z)
    assert (value.diff(dim=1) > 0).all()
    (gradient,) = torch.autograd.grad(value.sum(), z)
    torch.testing.assert_close(slope, gradient)
    torch.testing.assert_close(maps.value(z), value)
    start = Increasing(identity_parameters(8).double())
    found, _ = start(z[0].detach())
    assert (found - z[0].detach()).abs().max() < 0.5
