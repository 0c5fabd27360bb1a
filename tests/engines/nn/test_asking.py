"""Columns that are asked alone answer as they do among all."""

from __future__ import annotations

import pytest
import torch

from vaca.engines.nn import asking
from vaca.engines.nn.asking import Asked
from vaca.engines.nn.flow_network import Head, Mechanisms
from vaca.engines.nn.learning import log_prob

HEADS = [
    Head("continuous"),
    Head("categorical", levels=3),
    Head("continuous"),
    Head("count", step=0.5, floor=-1.0),
    Head("binary", levels=2),
    Head("continuous"),
]
PARENTS = [[], [], [0, 1], [0], [2, 3], [2, 4]]


def made(fixed_shape):
    generator = torch.Generator().manual_seed(0)
    stack = Mechanisms(HEADS, PARENTS, fixed_shape=fixed_shape, generator=generator).double()
    with torch.no_grad():  # as if it had learned something: it starts near the identity
        for weights in (stack.spline_w, stack.spline_b, stack.skip):
            weights += 0.3 * torch.randn(weights.shape, generator=generator)
    return stack


@pytest.fixture(params=[True, False], ids=["one shape", "shapes that change"])
def stack(request):
    return made(request.param)


@pytest.fixture
def rows(monkeypatch):
    monkeypatch.setattr(asking, "ROWS_AT_ONCE", 16)
    monkeypatch.setattr(asking, "COLUMNS_AT_ONCE", 2)
    rng = torch.Generator().manual_seed(1)
    values = torch.randn(100, 6, generator=rng, dtype=torch.float64)
    values[:, 1] = torch.randint(3, (100,), generator=rng)
    values[:, 3] = torch.randint(4, (100,), generator=rng) * 0.5 - 1.0
    values[:, 4] = torch.randint(2, (100,), generator=rng)
    return values


@pytest.fixture(params=[torch.float64, torch.float32], ids=["double", "single"])
def near(request, monkeypatch):
    """How near answers are to those of the whole stack, which is in double precision."""
    monkeypatch.setattr(asking, "PRECISION", request.param)
    close = 1e-12 if request.param == torch.float64 else 5e-6
    return {"rtol": 0.0, "atol": close}


@torch.no_grad()
def test_noise_and_values_are_those_of_the_whole_stack(stack, rows, near):
    columns = [0, 2, 3, 5]
    part = Asked(stack, columns)
    assert part.parents == [0, 1, 2, 4]
    low, high = part.noise(rows.T[columns], rows.T[part.parents])
    for own, whole in zip((low, high), stack.numeric_noise(rows, columns), strict=True):
        torch.testing.assert_close(own, whole.T, **near)
    noise = 2 * rows.T[columns]  # also beyond where splines end
    told, whole = (
        part.value(noise, rows.T[part.parents]),
        stack.numeric_value(noise.T, rows, columns),
    )
    torch.testing.assert_close(told, whole.T, **near)
    back = part.value(low, rows.T[part.parents])
    torch.testing.assert_close(back[[0, 1, 3]], rows.T[[0, 2, 5]], rtol=1e-9, atol=1e-9)


@torch.no_grad()
def test_where_one_spline_is_for_all_rows_it_need_not_be_known(rows):
    part = Asked(made(fixed_shape=True), [2, 5])
    x, before = rows.T[[2, 5]], rows.T[part.parents]
    after = before.clone()
    after[0] += 0.5
    told = part.with_left(part.left(x, before), after)
    torch.testing.assert_close(told, part.value(part.noise(x, before)[0], after))


@torch.no_grad()
def test_a_column_does_not_change_in_its_last_bit_with_its_neighbours(stack, rows):
    noise = rows.T[[0, 2, 3, 5]].clone()
    whole = Asked(stack, [0, 2, 3, 5])
    together = whole.value(noise, rows.T[whole.parents])
    for k, j in enumerate(whole.columns):
        alone = Asked(stack, [j])
        assert torch.equal(alone.value(noise[[k]], rows.T[alone.parents])[0], together[k])


@torch.no_grad()
def test_levels_are_those_of_the_likelihood(stack, rows, near):
    part = Asked(stack, [1, 4])
    first, second = part.log_levels(rows.T[part.parents])
    whole = log_prob(stack, rows, stack.features(rows))
    for j, table in ((1, first), (4, second)):
        own = table.gather(1, rows[:, [j]].long())[:, 0]
        torch.testing.assert_close(own, whole[:, j], **near)
