"""Rounds of messages that carry values: what a column sends, and what its children make of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vaca.engines.nn.disjoint import DisjointLinear, DisjointMLP
from vaca.engines.nn.likelihoods import Discrete

#: Inputs are cut here (in sds), so that a wild `do` extrapolates as a constant, not without bound.
_FAR = 30.0
#: From this many messages a target on, they are summed in one product, not one by one.
MANY = 24


class Embedding(nn.Module):
    """What a column sends to its children: features of its value, shape (columns, rows, size)."""

    mean: Tensor
    scale: Tensor

    def __init__(
        self, columns: Sequence[Discrete], size: int, generator: torch.Generator | None
    ) -> None:
        super().__init__()
        count = len(columns)
        self.weight = nn.Parameter(torch.randn(count, 1, size - 1, generator=generator))
        self.bias = nn.Parameter(torch.randn(count, 1, size - 1, generator=generator))
        self.coded = [i for i, c in enumerate(columns) if c.levels]
        most = max((c.levels for c in columns), default=0)
        if self.coded:
            table = torch.randn(len(self.coded), most, size, generator=generator)
            self.table = nn.Parameter(table)
        self.register_buffer("mean", torch.tensor([c.mean for c in columns]).view(-1, 1))
        self.register_buffer("scale", torch.tensor([c.scale for c in columns]).view(-1, 1))

    def forward(self, x: Tensor, which: Sequence[int] | None = None) -> Tensor:
        """Features of ``x`` of shape (columns, rows): all columns, or those in ``which``."""
        chosen = list(range(len(self.mean))) if which is None else list(which)
        pick = slice(None) if which is None else chosen
        value = ((x - self.mean[pick]) / self.scale[pick]).clamp(-_FAR, _FAR).unsqueeze(-1)
        h = torch.cat([value, F.silu(value * self.weight[pick] + self.bias[pick])], -1)
        at = [k for k, i in enumerate(chosen) if i in self.coded]
        if at:
            place = torch.as_tensor(at, device=x.device)
            code = x[place].long().unsqueeze(-1).expand(-1, -1, h.shape[-1])
            table = self.table[[self.coded.index(chosen[k]) for k in at]]
            h = h.index_copy(0, place, table.gather(1, code))
        return h


class Trunk(nn.Module):
    """One round of messages: linear message per edge, sum, update network per target.

    ``pace``, shaped like ``start``, says how much of what is heard reaches each output; None: all.
    ``direct`` of shape (edges, n_in, outputs), zeros and ones, says which features of a source also
    add to which of the first outputs of its target, each with one weight; None: none do. ``breaks``
    add to these too, where there are some.
    """

    source: Tensor
    target: Tensor
    pace: Tensor | None
    allowed: Tensor | None

    def __init__(
        self,
        edges: Sequence[tuple[int, int]],
        targets: int,
        n_in: int,
        width: int,
        depth: int,
        start: Tensor,
        generator: torch.Generator | None,
        pace: Tensor | None = None,
        direct: Tensor | None = None,
    ) -> None:
        super().__init__()
        n_out = start.shape[-1]
        self.targets, self.width = targets, width
        source = torch.tensor([a for a, _ in edges], dtype=torch.long)
        target = torch.tensor([b for _, b in edges], dtype=torch.long)
        self.register_buffer("source", source, persistent=False)
        self.register_buffer("target", target, persistent=False)
        self.register_buffer("pace", pace, persistent=False)
        self.register_buffer("allowed", direct, persistent=False)
        if direct is not None:
            self.direct = nn.Parameter(torch.zeros_like(direct))
        unused = torch.Generator()  # these two get their starting weights below
        self.message = DisjointLinear(len(edges), n_in, width, bias=False, generator=unused)
        self.bias = nn.Parameter(0.1 * torch.randn(targets, 1, width, generator=generator))
        sizes = [width] * (depth + 1) + [n_out]
        self.update = DisjointMLP(targets, sizes, F.silu, generator=generator)
        # A straight way past the update network, so that weak, nearly linear effects are found.
        self.straight = DisjointLinear(targets, width, n_out, bias=False, generator=unused)
        with torch.no_grad():
            # Unit variance through the sums at the start; outputs near where they should start.
            arrivals = torch.zeros(targets).index_add_(0, target, torch.ones(len(edges)))
            spread = torch.randn(self.message.weight.shape, generator=generator)
            self.message.weight.copy_(spread / (n_in * arrivals[target]).sqrt().view(-1, 1, 1))
            linear = cast("list[DisjointLinear]", list(self.update.layers))
            for layer in linear:
                layer.weight.mul_(math.sqrt(3.0))
                cast("Tensor", layer.bias).zero_()
            linear[-1].weight.mul_(0.1)
            cast("Tensor", linear[-1].bias).copy_(start)
            self.straight.weight.zero_()
        self.breaks: Breaks | None = None
        self._parts: dict[tuple[int, ...], Gathered] = {}
        many = targets and len(edges) >= MANY * targets
        self._many = _filled_up(source, target, targets) if many else None

    def forward(self, h: Tensor) -> Tensor:
        """Outputs of all targets from features (columns, rows, n_in): (targets, rows, n_out)."""
        bias, weight = self._messages()
        m = bias.expand(self.targets, h.shape[1], bias.shape[-1])
        if self._many is not None:
            edges, sources = (at.to(h.device) for at in self._many)
            padded = torch.cat([weight, torch.zeros_like(weight[:1])])
            said = h[sources].view(*edges.shape, h.shape[1], -1).transpose(1, 2).flatten(2)
            m = torch.baddbmm(bias, said, padded[edges].flatten(1, 2))
        elif len(self.source):
            m = m.index_add(0, self.target, torch.bmm(h[self.source], weight))
        m, direct = m[..., : self.width], m[..., self.width :]
        out = self.update(F.silu(m)) + self.straight(m)
        if self.pace is not None:
            # What a target is by itself, the bias of the last layer, is learned at full pace.
            alone = cast("DisjointLinear", self.update.layers[-1]).bias
            out = torch.lerp(cast("Tensor", alone), out, self.pace)
        out = _plus(out, direct)
        return out if self.breaks is None else _plus(out, self.breaks(h[..., 0]))

    def _messages(self) -> tuple[Tensor, Tensor]:
        """Start and weights of the sums: what goes to the update network, then what is direct."""
        if self.allowed is None:
            return self.bias, self.message.weight
        direct = self.direct * self.allowed
        return (
            F.pad(self.bias, (0, direct.shape[-1])),
            torch.cat([self.message.weight, direct], -1),
        )

    def some(self, h: Tensor, which: Sequence[int], *, messages: bool = True) -> Tensor:
        """Outputs of the targets ``which`` from features laid out as (rows, columns, n_in)."""
        part = self._part(tuple(which))
        m = part.bias
        if messages and len(part.sources):
            # What the sources of a target say side by side, times the weights of its edges.
            said = h.index_select(1, part.sources).view(len(h), len(which), -1)
            m = torch.baddbmm(m, said.transpose(0, 1), part.messages)
        m, direct = m[..., : self.width], m[..., self.width :]
        out = m
        for weight, bias in part.update:
            out = torch.baddbmm(bias, F.silu(out), weight)
        out = _plus(torch.baddbmm(out, m, part.straight), direct)
        if messages and part.breaks is not None:
            out = _plus(out, part.breaks(h[..., 0].T))
        # Where nothing arrives all rows are alike, and one was computed.
        return out.expand(-1, len(h), -1)

    def _part(self, which: tuple[int, ...]) -> Gathered:
        """The weights of some targets; kept while the network does not learn."""
        if which in self._parts and not torch.is_grad_enabled():
            return self._parts[which]
        pairs = list(zip(self.source.tolist(), self.target.tolist(), strict=True))
        into = [[e for e, (_, target) in enumerate(pairs) if target == i] for i in which]
        # A target with fewer edges than another is filled up with edges whose weights are zero.
        most = max(map(len, into), default=0)
        edges = [e for own in into for e in own + [len(pairs)] * (most - len(own))]
        start, weight = self._messages()
        weight = torch.cat([weight, torch.zeros_like(weight[:1])])
        at = torch.tensor(which, dtype=torch.long, device=weight.device)
        sources = [pairs[e][0] if e < len(pairs) else 0 for e in edges]
        layers = cast("list[DisjointLinear]", list(self.update.layers))
        update = [(layer.weight[at], cast("Tensor", layer.bias)[at]) for layer in layers]
        straight = self.straight.weight[at]
        if self.pace is not None:
            last, bias = update[-1]
            update[-1] = (last * self.pace[at], bias)
            straight = straight * self.pace[at]
        part = Gathered(
            torch.tensor(sources, dtype=torch.long, device=at.device),
            weight[edges].view(len(which), most * weight.shape[1], weight.shape[2]),
            start[at],
            update,
            straight,
            None if self.breaks is None else self.breaks.some(which),
        )
        if not self.training and not torch.is_grad_enabled():
            self._parts[which] = part
        return part

    def train(self, mode: bool = True) -> Trunk:
        """Weights may change from here on, or have changed."""
        self._parts = {}
        return super().train(mode)


class Breaks(nn.Module):
    """Steps and bends: what values beyond some place directly add to numbers of a target.

    Parameters
    ----------
    source, target : LongTensor (terms,)
        The column whose value it is, and the column that it acts on.
    place : Tensor (terms,)
        In units of the standardised value.
    bend : Tensor (terms,)
        1: it grows with the distance beyond that place; 0: it is the same everywhere beyond.
    allowed : Tensor (terms, numbers)
        Ones at those of the first numbers of its target that it may act on; elsewhere zeros.
    size : Tensor (terms, numbers)
        What it adds to them.
    targets : int
    """

    source: Tensor
    target: Tensor
    place: Tensor
    bend: Tensor
    allowed: Tensor

    def __init__(
        self,
        source: Tensor,
        target: Tensor,
        place: Tensor,
        bend: Tensor,
        allowed: Tensor,
        size: Tensor,
        targets: int,
    ) -> None:
        super().__init__()
        self.targets = targets
        parts = {"source": source, "target": target, "place": place, "bend": bend}
        parts["allowed"] = allowed
        for name, values in parts.items():
            self.register_buffer(name, values)
        self.size = nn.Parameter(size)

    def beyond(self, values: Tensor) -> Tensor:
        """Each term (terms, rows) at standardised values (columns, rows)."""
        far = values[self.source] - self.place.unsqueeze(1)
        return torch.where(self.bend.unsqueeze(1) > 0, far.clamp(min=0.0), (far > 0).to(far))

    def forward(self, values: Tensor) -> Tensor:
        """What is added (targets, rows, numbers)."""
        each = self.beyond(values).unsqueeze(2) * (self.size * self.allowed).unsqueeze(1)
        out = each.new_zeros(self.targets, *each.shape[1:])
        return out.index_add(0, self.target, each)

    def some(self, which: Sequence[int]) -> Breaks | None:
        """The terms of the targets ``which``, which are numbered anew."""
        new = {column: number for number, column in enumerate(which)}
        kept = [k for k, column in enumerate(self.target.tolist()) if column in new]
        if not kept:
            return None
        target = torch.tensor([new[c] for c in self.target[kept].tolist()]).to(self.target)
        parts = (self.source[kept], target, self.place[kept], self.bend[kept])
        return Breaks(*parts, self.allowed[kept], self.size[kept].detach(), len(which))


def _plus(out: Tensor, first: Tensor) -> Tensor:
    """``out`` with something added to the first of its numbers."""
    return out + F.pad(first, (0, out.shape[-1] - first.shape[-1])) if first.shape[-1] else out


def _filled_up(source: Tensor, target: Tensor, targets: int) -> tuple[Tensor, Tensor]:
    """Edges into each target (targets, most) and their sources, flat; past the last is no edge."""
    into = [(target == i).nonzero().squeeze(1) for i in range(targets)]
    edges = torch.nn.utils.rnn.pad_sequence(into, True, padding_value=len(source))
    return edges, torch.cat([source, source.new_zeros(1)])[edges].flatten()


@dataclass(frozen=True)
class Gathered:
    """The weights of some targets of a `Trunk`, ready for products."""

    sources: Tensor
    messages: Tensor
    bias: Tensor
    update: list[tuple[Tensor, Tensor]]
    straight: Tensor
    breaks: Breaks | None
