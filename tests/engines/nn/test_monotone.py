"""Increasing maps: they increase, start at the identity, and can be flat."""

from __future__ import annotations

from typing import get_args

import pytest
import torch

from vaca.engines.nn.monotone import Form, Increasing, identity_parameters, parameter_count

Z = torch.linspace(-3, 3, 61, dtype=torch.float64)


@pytest.mark.parametrize("form", get_args(Form))
def test_maps_increase_and_know_their_slope(form: Form) -> None:
    generator = torch.Generator().manual_seed(0)
    size = parameter_count(5, form=form)
    raw = torch.randn(20, 1, size, generator=generator, dtype=torch.float64)
    maps, z = Increasing(raw, form=form), Z.clone().requires_grad_()
    value, slope = maps(z)
    assert (value.diff(dim=-1) > 0).all()
    for row in range(20):
        (wanted,) = torch.autograd.grad(value[row].sum(), z, retain_graph=True)
        torch.testing.assert_close(slope[row], wanted)
    torch.testing.assert_close(maps.value(z), value)


def test_all_forms_start_as_nearly_the_same_map() -> None:
    first, squares, scaled = (
        Increasing(identity_parameters(8, form=form).double(), form=form) for form in get_args(Form)
    )
    torch.testing.assert_close(first.value(Z), squares.value(Z), rtol=0, atol=1e-6)
    torch.testing.assert_close(first.value(Z), scaled.value(Z), rtol=0, atol=0.2)  # tails


@pytest.mark.parametrize(("form", "end"), [("squares", 11), ("scaled", 5)])
def test_squares_reach_zero_and_leave_the_offset(form: Form, end: int) -> None:
    raw = identity_parameters(4, form=form)
    raw[0], raw[1:end] = 0.7, 0.0
    flat = Increasing(raw, form=form)
    assert float(flat.spread()) == 0.0
    assert (flat.value(Z.float()) == 0.7).all()


@pytest.mark.parametrize(("form", "end"), [("squares", 11), ("scaled", 5)])
def test_roots_that_follow_a_line_give_a_spread_that_follows_its_square(
    form: Form, end: int
) -> None:
    line = torch.tensor([-2.0, -1.0, 0.0, 1.0, 2.0])
    raw = identity_parameters(4, form=form).repeat(5, 1)
    raw[:, 1:end] = line[:, None]
    spread = Increasing(raw, form=form).spread()
    torch.testing.assert_close(spread / spread[3], line.square())


def test_scales_end_where_they_are_told_to() -> None:
    raw = identity_parameters(4, form="scaled").repeat(2, 1)
    raw[0, 1:3] = 50.0
    wild, tame = (float(Increasing(raw[0], form="scaled", most=m).spread()) for m in (1e9, 10.0))
    assert wild > 1e4
    assert 10.0 < tame < 25.0
    mild = (Increasing(raw[1], form="scaled", most=m).value(Z.float()) for m in (1e9, 10.0))
    torch.testing.assert_close(*mild)
