r"""Disjoint message passing: every edge and every node has parameters of its own.

.. math:: h_i' = f^u_i\Big(h_i,\; \operatorname{agg}_{j \to i} f^m_{ij}(h_i, h_j)\Big)

Features are laid out as (nodes, rows, features), weights as (edges, in, out), so a layer is a
handful of batched matrix products: no loop over nodes, no selection of weights by one-hot vectors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, cast

import torch
from torch import Tensor, nn

from vaca.errors import VacaError

Aggregator = Literal["sum", "mean", "max", "min", "std"]
AGGREGATORS: tuple[Aggregator, ...] = ("sum", "mean", "max", "min", "std")
Activation = Callable[[Tensor], Tensor]


class DisjointLinear(nn.Module):
    r"""One affine map per group: :math:`y_g = x_g W_g + b_g`.

    Parameters
    ----------
    groups : int
        Number of separate maps (edges or nodes).
    n_in, n_out : int
        Features in and out.
    bias : bool
        Whether to add :math:`b_g`.
    shared : bool
        One set of parameters for all groups.
    generator : torch.Generator, optional
        Source of the starting values, uniform in plus or minus :math:`1 / \sqrt{n_{in}}`.

    Examples
    --------
    >>> layer = DisjointLinear(3, 2, 5, generator=torch.Generator().manual_seed(0))
    >>> layer(torch.zeros(3, 7, 2)).shape
    torch.Size([3, 7, 5])
    """

    def __init__(
        self,
        groups: int,
        n_in: int,
        n_out: int,
        *,
        bias: bool = True,
        shared: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.groups, self.shared = groups, shared
        size = 1 if shared else groups
        bound = 1.0 / math.sqrt(max(n_in, 1))
        self.weight = nn.Parameter(_uniform((size, n_in, n_out), bound, generator))
        self.bias = nn.Parameter(_uniform((size, 1, n_out), bound, generator)) if bias else None

    def forward(self, x: Tensor, groups: Tensor | None = None) -> Tensor:
        """Map ``x`` of shape (groups, rows, n_in); ``groups`` picks some of the maps."""
        weight, bias = self.weight, self.bias
        if self.shared:
            weight = weight.expand(len(x), -1, -1)
            bias = None if bias is None else bias.expand(len(x), -1, -1)
        elif groups is not None:
            weight = weight[groups]
            bias = None if bias is None else bias[groups]
        return torch.bmm(x, weight) if bias is None else torch.baddbmm(bias, x, weight)


class DisjointMLP(nn.Module):
    """One multi-layer perceptron per group, all of the same sizes.

    Parameters
    ----------
    groups : int
        Number of separate networks.
    sizes : sequence of int
        Features in, hidden ..., out.
    activation : callable
        Between the layers, not after the last.

    Examples
    --------
    >>> DisjointMLP(4, [2, 16, 8])(torch.zeros(4, 10, 2)).shape
    torch.Size([4, 10, 8])
    """

    def __init__(
        self,
        groups: int,
        sizes: Sequence[int],
        activation: Activation = torch.relu,
        *,
        shared: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.activation = activation
        self.layers = nn.ModuleList(
            DisjointLinear(groups, a, b, shared=shared, generator=generator)
            for a, b in zip(sizes[:-1], sizes[1:], strict=True)
        )

    def forward(self, x: Tensor, groups: Tensor | None = None) -> Tensor:
        """Map (groups, rows, features in) to (groups, rows, features out)."""
        for number, layer in enumerate(self.layers):
            x = layer(x if number == 0 else self.activation(x), groups)
        return x


class DisjointLayer(nn.Module):
    r"""One round of message passing with parameters per edge and per node.

    .. math::

        m_{ij} &= f^m_{ij}([h_i, h_j]), \qquad a_i = \operatorname{agg}_{j \to i} m_{ij} \\
        h_i' &= f^u_i([h_i, a_i]) \;(\text{or } a_i) \;+\; R_i h_i \;(\text{if residual})

    Parameters
    ----------
    edges : LongTensor of shape (2, n_edges)
        Rows: sources j and destinations i. Self-loops are edges like any other.
    nodes : int
        Number of nodes.
    n_in, n_out : int
        Features of a node before and after.
    message_hidden : sequence of int
        Hidden sizes of the message networks; empty: one linear map.
    aggregators : sequence of {"sum", "mean", "max", "min", "std"}
        Several are concatenated (principal neighbourhood aggregation), which needs an update
        network to come back to ``n_out`` features.
    update_hidden : sequence of int or None
        Hidden sizes of the update networks; None: no update network.
    residual : bool
        Add a linear map of the node's input.
    shared : bool
        The same parameters for all edges, and for all nodes: an ordinary graph network.
    activation : callable
        Inside message and update networks.

    Examples
    --------
    >>> edges = torch.tensor([[0, 1, 0, 1, 2], [2, 2, 0, 1, 2]])  # a collider with self-loops
    >>> layer = DisjointLayer(edges, 3, 1, 8, message_hidden=[16])
    >>> layer(torch.zeros(3, 100, 1)).shape
    torch.Size([3, 100, 8])
    """

    source: Tensor
    target: Tensor

    def __init__(
        self,
        edges: Tensor,
        nodes: int,
        n_in: int,
        n_out: int,
        *,
        message_hidden: Sequence[int] = (),
        aggregators: Sequence[Aggregator] = ("sum",),
        update_hidden: Sequence[int] | None = None,
        residual: bool = False,
        shared: bool = False,
        activation: Activation = torch.relu,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        unknown = [a for a in aggregators if a not in AGGREGATORS]
        if unknown or not aggregators:
            raise VacaError(f"aggregators are some of {AGGREGATORS}; got {tuple(aggregators)}")
        if len(aggregators) > 1 and update_hidden is None:
            raise VacaError("several aggregators need an update network: give update_hidden")
        self.nodes, self.aggregators = nodes, tuple(aggregators)
        self.register_buffer("source", edges[0].clone(), persistent=False)
        self.register_buffer("target", edges[1].clone(), persistent=False)
        self.message = DisjointMLP(
            edges.shape[1],
            [2 * n_in, *message_hidden, n_out],
            activation,
            shared=shared,
            generator=generator,
        )
        self.update = None
        if update_hidden is not None:
            sizes = [n_in + len(aggregators) * n_out, *update_hidden, n_out]
            self.update = DisjointMLP(nodes, sizes, activation, shared=shared, generator=generator)
        self.residual = (
            DisjointLinear(nodes, n_in, n_out, shared=shared, generator=generator)
            if residual
            else None
        )
        linear = not message_hidden and self.aggregators == ("sum",) and update_hidden is None
        # A product with many zeros is quicker than many small ones, up to a point.
        self.dense = linear and not shared and nodes**2 <= 5 * edges.shape[1]

    def forward(self, h: Tensor, mask: Tensor | None = None) -> Tensor:
        """Pass messages once.

        Parameters
        ----------
        h : Tensor of shape (nodes, rows, n_in)
        mask : Tensor of shape (edges, rows) or (edges, 1), optional
            1 where an edge is present, 0 where it is cut, for each row.

        Returns
        -------
        Tensor of shape (nodes, rows, n_out)
        """
        if mask is None and self.dense:
            message = cast("DisjointLinear", self.message.layers[0])
            return self._dense(h, message.weight, cast("Tensor", message.bias))
        pair = torch.cat([h[self.target], h[self.source]], dim=-1)
        messages = self.message(pair)
        parts = [
            aggregate(messages, self.target, self.nodes, how, mask) for how in self.aggregators
        ]
        out = parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)
        if self.update is not None:
            out = self.update(torch.cat([h, out], dim=-1))
        return out if self.residual is None else out + self.residual(h)

    def _dense(self, h: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """The layer with linear messages when no edge is cut: one product for all nodes.

        Its matrix maps all features of all nodes to all features of all nodes, and is zero where
        there is no edge. Rows come first in memory, here and in what is returned.
        """
        n_in, n_out = h.shape[-1], weight.shape[-1]
        every = torch.arange(self.nodes, device=h.device)
        matrix = weight.new_zeros(self.nodes, self.nodes, n_in, n_out)
        matrix = matrix.index_put((self.source, self.target), weight[:, n_in:], accumulate=True)
        matrix = matrix.index_put((self.target, self.target), weight[:, :n_in], accumulate=True)
        offset = bias.new_zeros(self.nodes, n_out).index_add(0, self.target, bias[:, 0])
        if self.residual is not None:
            matrix = matrix.index_put((every, every), self.residual.weight, accumulate=True)
            offset = offset + cast("Tensor", self.residual.bias)[:, 0]
        matrix = matrix.transpose(1, 2).reshape(self.nodes * n_in, self.nodes * n_out)
        side_by_side = h.transpose(0, 1).reshape(-1, self.nodes * n_in)
        out = torch.addmm(offset.flatten(), side_by_side, matrix)
        return out.view(-1, self.nodes, n_out).transpose(0, 1)


def aggregate(
    messages: Tensor, target: Tensor, nodes: int, how: Aggregator, mask: Tensor | None = None
) -> Tensor:
    """Combine the messages that arrive at each node; a node that gets none has zeros.

    Parameters
    ----------
    messages : Tensor of shape (edges, rows, features)
    target : LongTensor of shape (edges,)
    nodes : int
    how : {"sum", "mean", "max", "min", "std"}
        ``std`` is the population standard deviation of the messages.
    mask : Tensor of shape (edges, rows) or (edges, 1), optional
        0 for messages that do not count.

    Returns
    -------
    Tensor of shape (nodes, rows, features)

    Examples
    --------
    >>> m = torch.tensor([[[1.0]], [[3.0]]])
    >>> aggregate(m, torch.tensor([0, 0]), 2, "mean").flatten()
    tensor([2., 0.])
    """
    shape = (nodes, *messages.shape[1:])
    if how in ("max", "min"):
        worst = -torch.inf if how == "max" else torch.inf
        if mask is not None:
            messages = messages.masked_fill(mask.unsqueeze(-1) == 0, worst)
        index = target.view(-1, 1, 1).expand_as(messages)
        best = messages.new_full(shape, worst).scatter_reduce(
            0, index, messages, "amax" if how == "max" else "amin"
        )
        return best.masked_fill(torch.isinf(best), 0.0)
    total = _sum(messages, target, nodes, mask)
    if how == "sum":
        return total
    ones = messages.new_ones(*messages.shape[:2], 1)
    arrived = _sum(ones, target, nodes, mask)
    count = arrived.clamp(min=1.0)
    mean = total / count
    if how == "mean":
        return mean
    # Two passes: the difference of squares would cancel for large means.
    spread = (messages - mean[target]).square()
    return (_sum(spread, target, nodes, mask) / count + 1e-12).sqrt() * (arrived > 0)


def _sum(messages: Tensor, target: Tensor, nodes: int, mask: Tensor | None) -> Tensor:
    if mask is not None:
        messages = messages * mask.unsqueeze(-1)
    return messages.new_zeros((nodes, *messages.shape[1:])).index_add(0, target, messages)


def _uniform(shape: tuple[int, ...], bound: float, generator: torch.Generator | None) -> Tensor:
    return (2.0 * torch.rand(shape, generator=generator) - 1.0) * bound
