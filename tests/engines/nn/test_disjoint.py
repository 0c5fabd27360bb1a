"""The disjoint layer against a literal loop over nodes and edges (Algorithm 1 of the paper)."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from vaca.engines.nn.disjoint import (
    AGGREGATORS,
    DisjointLayer,
    DisjointLinear,
    DisjointMLP,
    aggregate,
)

# A chain with a shortcut and a lonely node, with self-loops: 0 -> 1 -> 2, 0 -> 2, 3.
EDGES = torch.tensor([[0, 1, 0, 0, 1, 2, 3], [1, 2, 2, 0, 1, 2, 3]])
NODES, ROWS = 4, 3


def mlp(net: DisjointMLP, group: int, x: Tensor) -> Tensor:
    for number, layer in enumerate(net.layers):
        assert isinstance(layer, DisjointLinear)
        if number:
            x = net.activation(x)
        own = 0 if layer.shared else group
        x = x @ layer.weight[own]
        if layer.bias is not None:
            x = x + layer.bias[own, 0]
    return x


def combine(messages: list[Tensor], how: str, like: Tensor) -> Tensor:
    if not messages:
        return torch.zeros_like(like)
    stacked = torch.stack(messages)
    if how == "sum":
        return stacked.sum(0)
    if how == "mean":
        return stacked.mean(0)
    if how == "max":
        return stacked.max(0).values
    if how == "min":
        return stacked.min(0).values
    return (stacked.var(0, unbiased=False) + 1e-12).sqrt()


def slow(layer: DisjointLayer, h: Tensor, mask: Tensor | None, n_out: int) -> Tensor:
    out = torch.empty(NODES, ROWS, n_out, dtype=h.dtype)
    for row in range(ROWS):
        for i in range(NODES):
            messages = []
            for e, (j, to) in enumerate(EDGES.T.tolist()):
                if to == i and (mask is None or mask[e, row] != 0):
                    messages.append(mlp(layer.message, e, torch.cat([h[i, row], h[j, row]])))
            like = h.new_zeros(n_out)
            a = torch.cat([combine(messages, how, like) for how in layer.aggregators])
            new = a if layer.update is None else mlp(layer.update, i, torch.cat([h[i, row], a]))
            if layer.residual is not None:
                own = 0 if layer.residual.shared else i
                bias = layer.residual.bias
                assert bias is not None
                new = new + h[i, row] @ layer.residual.weight[own] + bias[own, 0]
            out[i, row] = new
    return out


@pytest.mark.parametrize(
    ("residual", "shared", "masked"),
    [(False, False, False), (True, False, True), (False, True, True)],
)
@pytest.mark.parametrize(
    ("aggregators", "update"),
    [
        *[((a,), None) for a in AGGREGATORS],
        (("sum",), (6,)),
        (("mean", "max", "min", "std"), (7, 6)),
    ],
)
def test_values_and_gradients_equal_the_slow_loop(
    aggregators, update, residual: bool, shared: bool, masked: bool
) -> None:
    generator = torch.Generator().manual_seed(3)
    layer = DisjointLayer(
        EDGES,
        NODES,
        2,
        3,
        message_hidden=(4,),
        aggregators=aggregators,
        update_hidden=update,
        residual=residual,
        shared=shared,
        activation=torch.tanh,
        generator=generator,
    ).double()
    h = torch.randn(NODES, ROWS, 2, generator=generator, dtype=torch.float64, requires_grad=True)
    mask = None
    if masked:
        mask = (torch.rand(EDGES.shape[1], ROWS, generator=generator) < 0.6).double()
        mask[:, 0] = 0.0  # a row in which no message arrives anywhere
    weight = torch.randn(NODES, ROWS, 3, generator=generator, dtype=torch.float64)
    inputs = [h, *layer.parameters()]
    fast, expected = layer(h, mask), slow(layer, h, mask, 3)
    torch.testing.assert_close(fast, expected, rtol=1e-12, atol=1e-12)
    for a, b in zip(
        torch.autograd.grad((fast * weight).sum(), inputs),
        torch.autograd.grad((expected * weight).sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("residual", [False, True])
def test_linear_messages_equal_the_slow_loop(residual: bool) -> None:
    """They are summed before the product when no edge is cut, and not when a mask is given."""
    generator = torch.Generator().manual_seed(4)
    layer = DisjointLayer(EDGES, NODES, 2, 3, residual=residual, generator=generator).double()
    h = torch.randn(NODES, ROWS, 2, generator=generator, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(NODES, ROWS, 3, generator=generator, dtype=torch.float64)
    whole = torch.ones(EDGES.shape[1], 1, dtype=torch.float64)
    inputs = [h, *layer.parameters()]
    expected = slow(layer, h, None, 3)
    wanted = torch.autograd.grad((expected * weight).sum(), inputs)
    for mask in (None, whole):
        fast = layer(h, mask)
        torch.testing.assert_close(fast, expected, rtol=1e-12, atol=1e-12)
        for a, b in zip(torch.autograd.grad((fast * weight).sum(), inputs), wanted, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-10)


def test_parameters_are_one_set_for_each_edge_and_node() -> None:
    own = DisjointLayer(EDGES, NODES, 2, 3, update_hidden=(5,), residual=True)
    shared = DisjointLayer(EDGES, NODES, 2, 3, update_hidden=(5,), residual=True, shared=True)
    message, update, residual = 4 * 3 + 3, (5 * 5 + 5) + (5 * 3 + 3), 2 * 3 + 3
    assert count(own) == 7 * message + 4 * (update + residual)
    assert count(shared) == message + update + residual


def count(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


def test_an_edge_moves_only_its_target() -> None:
    layer = DisjointLayer(EDGES, NODES, 2, 3, message_hidden=(4,))
    h = torch.randn(NODES, 50, 2)  # many rows: at one, all of an edge's units may be off
    jacobian = torch.autograd.functional.jacobian(lambda v: layer(v).sum((1, 2)), h)
    reach = jacobian.abs().sum((2, 3)) > 0  # (to, from)
    expected = torch.zeros(NODES, NODES, dtype=torch.bool)
    expected[EDGES[1], EDGES[0]] = True
    assert torch.equal(reach, expected)


def test_bad_aggregators_are_refused() -> None:
    with pytest.raises(ValueError, match="aggregators are some of"):
        DisjointLayer(EDGES, NODES, 2, 3, aggregators=("median",))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="need an update network"):
        DisjointLayer(EDGES, NODES, 2, 3, aggregators=("sum", "max"))


def test_a_node_without_messages_has_zeros() -> None:
    messages = torch.tensor([[[2.0]], [[5.0]]])
    for how in ("sum", "mean", "max", "min"):
        out = aggregate(messages, torch.tensor([1, 1]), 3, how)
        assert out[0].item() == 0.0
        assert out[2].item() == 0.0
