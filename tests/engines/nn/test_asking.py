"""Columns that are asked alone answer as they do among all."""

from __future__ import annotations

import pytest
import torch

from vaca.engines.nn import asking
from vaca.engines.nn.asking import Asked
from vaca.engines.nn.flow_network import Head, Mechanisms

HEADS = [
    Head("continuous"),
    Head("categorical", levels=3),
    Head("continuous"),
    Head("count", step=0.5, floor=-1.0),
    Head("binary", levels=2),
    Head("continuous"),
]
PARENTS = [[], [], [0, 1], [0], [2, 3], [2, 4]]


@pytest.fixture(params=[True, False], ids=["one shape", "shapes that change"])
def stack(request):
    generator = torch.Generator().manual_seed(0)
    return Mechanisms(HEADS, PARENTS, fixed_shape=request.param, generator=generator).double()


@pytest.fixture
def rows(monkeypatch):
    monkeypatch.setattr(asking, "ROWS_AT_ONCE", 16)
    monkeypatch.setattr(asking, "SPLINES_AT_ONCE", 40)
    rng = torch.Generator().manual_seed(1)
    values = torch.randn(100, 6, generator=rng, dtype=torch.float64)
    values[:, 1] = torch.randint(3, (100,), generator=rng)
    values[:, 3] = torch.randint(4, (100,), generator=rng) * 0.5 - 1.0
    values[:, 4] = torch.randint(2, (100,), generator=rng)
    return values


@torch.no_grad()
def test_noise_and_values_are_those_of_the_whole_stack(stack, rows):
    columns = [0, 2, 3, 5]
    part = Asked(stack, columns)
    assert part.parents == [0, 1, 2, 4]
    low, high = part.noise(rows.T[columns], rows.T[part.parents])
    for own, whole in zip((low, high), stack.numeric_noise(rows, columns), strict=True):
        torch.testing.assert_close(own, whole.T, rtol=1e-12, atol=1e-12)
    back = part.value(low, rows.T[part.parents])
    torch.testing.assert_close(back[[0, 1, 3]], rows.T[[0, 2, 5]], rtol=1e-9, atol=1e-9)


@torch.no_grad()
def test_a_column_does_not_change_in_its_last_bit_with_its_neighbours(stack, rows):
    noise = rows.T[[0, 2, 3, 5]].clone()
    whole = Asked(stack, [0, 2, 3, 5])
    together = whole.value(noise, rows.T[whole.parents])
    for k, j in enumerate(whole.columns):
        alone = Asked(stack, [j])
        assert torch.equal(alone.value(noise[[k]], rows.T[alone.parents])[0], together[k])


@torch.no_grad()
def test_levels_are_those_of_the_likelihood(stack, rows):
    part = Asked(stack, [1, 4])
    first, second = part.log_levels(rows.T[part.parents])
    whole = stack.log_prob(rows)
    for j, table in ((1, first), (4, second)):
        own = table.gather(1, rows[:, [j]].long())[:, 0]
        torch.testing.assert_close(own, whole[:, j], rtol=1e-12, atol=1e-12)
