"""Columns that are learned a few at a time learn what they would among all."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from vaca.engines.nn import learning
from vaca.engines.nn.candidates import Candidates
from vaca.engines.nn.flow_network import Head, Mechanisms, log_between
from vaca.engines.nn.learning import learn, log_prob, turned

HEADS = [
    Head("continuous"),
    Head("categorical", levels=3),
    Head("continuous"),
    Head("count", step=0.5, floor=-1.0),
    Head("binary", levels=2),
    Head("continuous"),
    Head("count", step=0.25, floor=-2.0),
    Head("binary", levels=2),
]
PARENTS = [[], [], [0, 1], [0], [2, 3], [2, 4], [3, 5], [0]]


@pytest.fixture(params=[True, False], ids=["one shape", "shapes that change"])
def stack(request):
    generator = torch.Generator().manual_seed(0)
    stack = Mechanisms(
        HEADS, PARENTS, hidden=8, fixed_shape=request.param, generator=generator
    ).double()
    with torch.no_grad():
        for weights in (stack.spline_w, stack.spline_b, stack.skip):
            weights += 0.3 * torch.randn(weights.shape, generator=generator)
    return stack


@pytest.fixture
def rows() -> Tensor:
    rng = torch.Generator().manual_seed(1)
    values = torch.randn(60, 8, generator=rng, dtype=torch.float64)
    for j, levels in ((1, 3), (4, 2), (7, 2)):
        values[:, j] = torch.randint(levels, (60,), generator=rng)
    values[:, 3] = torch.randint(4, (60,), generator=rng) * 0.5 - 1.0
    values[:, 6] = torch.randint(4, (60,), generator=rng) * 0.25 - 2.0
    return values


def plain(stack: Mechanisms, values: Tensor) -> Tensor:
    """Log-likelihoods (n, columns) by the stack's own maps."""
    features = stack.features(values)
    result = []
    for j, head in enumerate(stack.heads):
        h, skip = stack._trunk(features, [j])
        if not head.numeric:
            scores = h[0] @ stack.level_w[str(j)] + stack.level_b[str(j)]
            result.append(scores.log_softmax(1).gather(1, values[:, j : j + 1].long())[:, 0])
            continue
        mu, s, spline = stack._spline(h, skip, [j])
        x = values.T[[j]]
        if head.kind == "count":
            result.append(log_between(*stack._cells(x, [head], mu, s, spline))[0])
        else:
            u, slope = spline.call_and_ladj((x - mu) * torch.exp(-s))
            result.append((-0.5 * u**2 - 0.5 * math.log(2 * math.pi) + slope - s)[0])
    return torch.stack(result, 1)


@pytest.mark.parametrize("at_once", [1, 2**30], ids=["one by one", "all at once"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_loss_and_its_gradients_are_those_of_the_whole(
    stack, rows, monkeypatch, at_once, weighted
):
    monkeypatch.setattr(learning, "AT_ONCE", at_once)
    monkeypatch.setattr(learning, "ROWS_AT_ONCE", 25)
    weights = torch.linspace(0, 2, 60, dtype=torch.float64) if weighted else None
    each = plain(stack, rows)
    torch.testing.assert_close(log_prob(stack, rows, stack.features(rows)), each.detach())
    total = -(each.sum(1) if weights is None else weights * each.sum(1)).mean()
    total = total + 0.1 * sum(w.square().sum() for w in stack.bent())
    parameters = dict(stack.named_parameters())
    expected = torch.autograd.grad(total, list(parameters.values()))
    loss = learn(stack, *turned(rows, stack.features(rows)), weights, 0.1)
    assert not loss.requires_grad
    torch.testing.assert_close(loss, total.detach())
    for (name, own), gradient in zip(parameters.items(), expected, strict=True):
        torch.testing.assert_close(own.grad, gradient, msg=lambda text, n=name: f"{n}: {text}")


def test_columns_that_are_left_out_have_the_gradient_of_the_penalty_alone(stack, rows):
    own, seen = turned(rows, stack.features(rows))
    learn(stack, own, seen, None, 0.0)
    whole = {name: p.grad.clone() for name, p in stack.named_parameters()}
    learn(stack, own, seen, None, 0.5, columns=[5, 1, 3])
    for j in range(len(HEADS)):
        learned = whole["w0"][j] if j in (1, 3, 5) else 0.0
        torch.testing.assert_close(stack.w0.grad[j], learned + stack.w0.detach()[j])
    assert torch.equal(stack.level_b["1"].grad, whole["level_b.1"])
    assert not stack.level_b["4"].grad.any()
    assert learn(stack, own, seen, None, 0.0, columns=[]) == 0.0


def test_a_column_that_does_not_improve_rests_until_the_end(rows):
    def build(number: int) -> Mechanisms:
        generator = torch.Generator().manual_seed(number)
        return Mechanisms(HEADS, PARENTS, hidden=8, generator=generator).double()

    both = Candidates(build, kinds=2, patience=2).double()
    features = both.features(rows)
    both.keep(rows, features)
    with torch.no_grad():  # all but one column of the first stack get better with each validation
        first = both.live[0]
        for k in range(3):
            both.loss(rows, features, None, [0.0, 0.0])
            for parameter in both.parameters():
                if parameter.grad is not None:
                    parameter -= 0.02 * parameter.grad
            first.spline_b[0] += 5.0 * (k == 0)  # the first column is spoilt
            both.keep(rows, features)
    assert 0 not in both.learning(0)
    assert both.learning(0) == list(range(1, 8)) and both.learning(1) == list(range(8))

    score = both.score.clone()
    loss = both.loss(rows, features, None, [0.0, 0.0])
    assert (first.w0.grad[0] == 0).all() and (first.w0.grad[2] != 0).any()
    apart = [-log_prob(stack, rows, features).mean(0) for stack in both.live]
    apart[0][0] = score[0, 0]  # a column that rests counts as it was at its best
    assert torch.allclose(loss, torch.cat(apart).sum())
    first.spline_b.data[0] = both.best.stacks[0].spline_b[0]
    both.keep(rows, features)
    assert both.score[0, 0] == score[0, 0] and both.waited[0, 0] > 2
