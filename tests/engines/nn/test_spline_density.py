"""Densities and gradients that are worked out by hand are those of the spline itself."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from zuko.transforms import MonotonicRQSTransform

from vaca.engines.nn.spline_density import WIDEST, log_density

BINS, BOUND = 6, 3.0


def plain(x: Tensor, line: Tensor, out: Tensor, fixed: Tensor, bound: float) -> Tensor:
    """The same by automatic differentiation."""
    shape = out[:, 2:] if out.shape[1] > 2 else fixed.unsqueeze(2)
    spline = MonotonicRQSTransform(*shape.mT.split([BINS, BINS, BINS - 1], -1), bound=bound)
    scale = WIDEST * torch.tanh(out[:, 1] / WIDEST)
    u, slope = spline.call_and_ladj((x - out[:, 0] - line) * torch.exp(-scale))
    return -0.5 * u.square() - 0.5 * math.log(2 * math.pi) + slope - scale


@pytest.fixture(params=[0.3, 3.0], ids=["smooth", "steep"])
def given(request):
    rng = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=rng, dtype=torch.float64)

    x, line = 2 * draw(4, 300), draw(4, 300)
    return x, line, request.param * draw(4, 3 * BINS + 1, 300), request.param * draw(4, 17)


@pytest.mark.parametrize("by_row", [True, False], ids=["a spline a row", "one for all rows"])
def test_values_and_gradients_are_those_of_the_spline(given, by_row):
    x, line, out, fixed = given
    out, fixed = (out, fixed[:, :0]) if by_row else (out[:, :2], fixed)
    leaves = [v.clone().requires_grad_() for v in (line, out, fixed)]
    own, other = (f(x, *leaves, BOUND) for f in (log_density, plain))
    torch.testing.assert_close(own, other)
    with torch.no_grad():
        assert torch.equal(log_density(x, *leaves, BOUND), own)
    weight = torch.linspace(-1, 1, 300, dtype=torch.float64).expand_as(own)
    asked = leaves[:2] if by_row else leaves
    for one, two in zip(
        torch.autograd.grad(own, asked, weight),
        torch.autograd.grad(other, asked, weight),
        strict=True,
    ):
        torch.testing.assert_close(one, two)


def test_values_far_beyond_the_spline_have_finite_gradients():
    out = torch.zeros(1, 3 * BINS + 1, 4, requires_grad=True)
    x = torch.tensor([[1e6, -1e6, BOUND, -BOUND]])
    value = log_density(x, torch.zeros(1, 4), out, torch.zeros(1, 0), BOUND)
    value.sum().backward()
    assert torch.isfinite(value).all() and torch.isfinite(out.grad).all()
