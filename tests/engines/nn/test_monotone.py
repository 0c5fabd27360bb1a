"""Increasing maps: they increase, start at the identity, and can be flat."""

from __future__ import annotations

import pytest
import torch

from vaca.engines.nn.monotone import Increasing, identity_parameters, parameter_count

Z = torch.linspace(-3, 3, 61, dtype=torch.float64)


@pytest.mark.parametrize("squares", [False, True])
def test_maps_increase_and_know_their_slope(squares: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    size = parameter_count(5, squares=squares)
    raw = torch.randn(20, 1, size, generator=generator, dtype=torch.float64)
    maps, z = Increasing(raw, squares=squares), Z.clone().requires_grad_()
    value, slope = maps(z)
    assert (value.diff(dim=-1) > 0).all()
    for row in range(20):
        (wanted,) = torch.autograd.grad(value[row].sum(), z, retain_graph=True)
        torch.testing.assert_close(slope[row], wanted)
    torch.testing.assert_close(maps.value(z), value)


def test_both_kinds_start_as_the_same_map() -> None:
    one, other = (
        Increasing(identity_parameters(8, squares=squares).double(), squares=squares)
        for squares in (False, True)
    )
    torch.testing.assert_close(one.value(Z), other.value(Z), rtol=0, atol=1e-6)


def test_squares_reach_zero_and_leave_the_offset() -> None:
    raw = identity_parameters(4, squares=True)
    raw[0], raw[1:11] = 0.7, 0.0
    flat = Increasing(raw, squares=True)
    assert float(flat.spread()) == 0.0
    assert (flat.value(Z.float()) == 0.7).all()


def test_roots_that_follow_a_line_give_a_spread_that_follows_its_square() -> None:
    line = torch.tensor([-2.0, -1.0, 0.0, 1.0, 2.0])
    raw = identity_parameters(4, squares=True).repeat(5, 1)
    raw[:, 1:11] = line[:, None]
    spread = Increasing(raw, squares=True).spread()
    torch.testing.assert_close(spread / spread[3], line.square())
