"""What acts directly in the decoder of a `value_network`, and where training starts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from vaca.engines.nn.messages import Breaks
from vaca.engines.nn.monotone import ROOTS, SCALE
from vaca.engines.nn.starts import Spread, Start, start_of

__all__ = ["Beginning"]

#: Rows that are asked what each column is like.
TOLD = 10_000
#: Numbers (rows times features) from which the lines of a column are found.
ENOUGH = 2 * 10**7
#: The smallest probability, and distance of thresholds, of levels at the start.
RARE = 1e-3


class Beginning:
    """Finds lines, steps, odds and scales for a network that has not been trained.

    Parameters
    ----------
    net : `vaca.engines.nn.value_network.ValueNetwork`
        Its direct terms, and what columns are by themselves, are set.
    x : Tensor (columns, rows)
        Standardised values and codes.
    weights : Tensor (rows,), optional
    """

    def __init__(self, net: Any, x: Tensor, weights: Tensor | None) -> None:
        if weights is not None:  # a part of the rows must not happen to have none that count
            x, weights = x[:, weights > 0], weights[weights > 0]
        self.net, self.x, self.weights = net, x, weights
        every = math.ceil(x.shape[1] / TOLD)
        self.told = x[:, ::every]
        whole = self.told.new_ones(self.told.shape[1])
        self.share = whole if weights is None else weights[::every]

    def find(self) -> None:
        """Set what the rows say; revision 4 had lines of numbers only."""
        net, x = self.net, self.x
        if net.latest:
            found = {
                column: self._start(column)
                for column, reached in enumerate(net.reached)
                if reached and net.parents[column]
            }
            starts = {column: start for column, start in found.items() if start is not None}
            self._find_breaks(starts)
            for column, start in starts.items():
                if start.scores is not None:
                    self._start_odds(column, start.scores)
                if start.spread is not None:
                    self._start_scales(column, start.spread)
        for column in net.continuous:
            if net.parents[column]:
                features = net.embed.weight.shape[-1] + 1
                every = math.ceil(x[0].numel() * features * len(net.parents[column]) / ENOUGH)
                own = None if self.weights is None else self.weights[::every]
                self._least_squares(column, x[:, ::every], x[[column], ::every].T, own)

    def _start(self, column: int) -> Start | None:
        """What the rows say of a column by itself."""
        net, x = self.net, self.told
        parts: list[Tensor] = []
        groups: list[int] = []
        values: list[int] = []
        for parent in net.parents[column]:
            levels = net.columns[parent].levels
            if levels:
                part = x[parent] == torch.arange(1, levels).to(x).unsqueeze(1)
            else:
                part = net.embed(x[[parent]], [parent])[..., 0]
                values.append(len(groups))
            parts.append(part.double())
            groups += [parent] * len(part)
        inputs = torch.cat(parts).T.cpu().numpy()
        y, w = x[column].double().cpu().numpy(), self.share.double().cpu().numpy()
        return start_of(inputs, groups, values, y, w, net.columns[column].levels)

    def _find_breaks(self, starts: Mapping[int, Start]) -> None:
        """Steps where the rows say so; of levels also bends, at the knots of curves."""
        net = self.net
        found: list[tuple[int, int, float, int]] = []
        for column, start in starts.items():
            sizes = [(p, net.columns[p].levels) for p in net.parents[column]]
            owner = [p for p, levels in sizes for _ in range(levels - 1 if levels else 1)]
            design = start.design
            found += [(owner[int(i)], column, at, 0) for i, at in design.cuts]
            if net.columns[column].levels:
                for i, row in zip(design.bent, design.knots, strict=True):
                    knots = row[np.isfinite(row)] * design.scale[i] + design.mean[i]
                    found += [(owner[int(i)], column, at, 1) for at in knots]
        if not found:
            return
        net.add_breaks(len(found))
        breaks = cast("Breaks", net.decoder.breaks)
        source, target, place, bend = zip(*found, strict=True)
        breaks.source.copy_(torch.tensor(source))
        breaks.target.copy_(torch.tensor(target))
        breaks.place.copy_(torch.tensor(place))
        breaks.bend.copy_(torch.tensor(bend))
        for number, column in enumerate(target):
            some = net.reached[column] if net.columns[column].levels else 1
            breaks.allowed[number, :some] = 1.0

    def _start_odds(self, column: int, scores: np.ndarray) -> None:
        """Let the direct terms say what is known of a column's levels."""
        net, x, weights = self.net, self.told, self.share
        alone = cast("Tensor", net.decoder.update.layers[-1].bias)[column, 0]
        log_p = torch.from_numpy(scores).to(x)
        if net.columns[column].kind == "categorical":
            wanted = log_p - log_p.mean(1, keepdim=True)
            alone[: wanted.shape[1]] = self._least_squares(column, x, wanted, weights)
            return
        above = log_p.exp().flip(1).cumsum(1).flip(1)[:, 1:].clamp(RARE, 1.0 - RARE).logit()
        alone[0] = self._least_squares(column, x, above[:, :1], weights)[0]
        gaps = (above[:, :-1] - above[:, 1:]).mean(0).clamp(min=RARE)
        alone[1 : 1 + len(gaps)] = gaps + torch.log(-torch.expm1(-gaps))

    def _least_squares(
        self, column: int, x: Tensor, wanted: Tensor, weights: Tensor | None
    ) -> Tensor:
        """Let the direct terms say what is wanted (rows, numbers); what they leave on average."""
        net = self.net
        decoder, count = net.decoder, wanted.shape[1]
        edges = (decoder.target == column).nonzero().flatten()
        sources = decoder.source[edges].tolist()
        used = cast("Tensor", decoder.allowed)[edges, :, 0] > 0
        h = net.embed(x[sources], sources).transpose(1, 2)
        features = [h[used].double()]
        breaks = None if decoder.breaks is None else decoder.breaks.some([column])
        if breaks is not None:
            features.append(breaks.beyond(net.embed(x)[..., 0]).double())
        a, b = torch.cat(features).T, wanted.double()
        share = b.new_ones(len(b), 1) if weights is None else weights.double().unsqueeze(1)
        share = share / share.sum()
        centre, middle = (share * a).sum(0), (share * b).sum(0)
        a, b = a - centre, b - middle
        # As much ridge as there are features: next to nothing, but where rows are few.
        ridge = a.shape[1] / len(a) * torch.eye(a.shape[1]).to(a)
        found = torch.linalg.solve((share * a).T @ a + ridge, (share * a).T @ b)
        size = int(used.sum())
        start = found.new_zeros(*used.shape, count)
        start[used] = found[:size]
        decoder.direct[edges, :, :count] = start.to(x.dtype)
        if decoder.breaks is not None:
            decoder.breaks.size[decoder.breaks.target == column, :count] = found[size:].to(x.dtype)
        return (middle - centre @ found).to(x.dtype)

    def _start_scales(self, column: int, spread: Spread) -> None:
        """Let both scales be as the spread, or that of the smooth part its floor."""
        net = self.net
        roots = torch.from_numpy(spread.roots / SCALE).to(net.decoder.bias)
        alone = cast("Tensor", net.decoder.update.layers[-1].bias)[column, 0]
        edges = [
            edge
            for edge in (net.decoder.target == column).nonzero().flatten().tolist()
            if not net.columns[int(net.decoder.source[edge])].levels
        ]
        alone[1:ROOTS] = roots[:, 0].repeat_interleave(2)
        net.decoder.direct[edges, 0, 1:ROOTS] = roots[:, 1:].T.repeat_interleave(2, 1)
        if spread.floor:
            alone[1:ROOTS:2] = torch.tensor([math.sqrt(spread.floor) / SCALE, 0.0])
            net.decoder.direct[edges, 0, 1:ROOTS:2] = 0.0
