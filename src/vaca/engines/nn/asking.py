"""Trained mechanisms of some columns, ready to be asked: given their parents and nothing else.

Training runs all columns at once. A question is about a few of them, for many rows: their weights
are picked once, their inputs are the columns that are their parents, and rows go through in
portions small enough to stay in the processor's own memory from layer to layer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from vaca.engines.nn.flow_network import Mechanisms, SplineMaps

__all__ = ["Asked"]

#: Rows, and columns, that go through the layers at once, on a processor; a graphics card takes all
#: rows.
ROWS_AT_ONCE, COLUMNS_AT_ONCE = 1024, 8
#: Rows whose splines are made at once: many small steps, each of which costs a call.
SPLINES_AT_ONCE = 2048


class Asked:
    """Some columns of a stack of mechanisms.

    Parameters
    ----------
    stack : Mechanisms
    columns : sequence of int
        Which columns are asked.

    Attributes
    ----------
    parents : list of int
        The columns that the answers depend on; their values are given in this order.
    """

    def __init__(self, stack: Mechanisms, columns: Sequence[int]) -> None:
        self.stack, self.columns = stack, list(columns)
        take = stack.take[self.columns]
        used = torch.zeros(stack.starts[-1] + 1, dtype=torch.bool, device=take.device)
        used[take.flatten()] = True
        used = used[:-1].cpu()
        starts = stack.starts
        self.parents = [
            j for j in range(len(stack.heads)) if bool(used[starts[j] : starts[j + 1]].any())
        ]
        # Places among the features of the parents alone; past the last one stands a zero.
        places = torch.zeros(starts[-1] + 1, dtype=torch.long)
        count = 0
        for j in self.parents:
            width = starts[j + 1] - starts[j]
            places[starts[j] : starts[j + 1]] = torch.arange(count, count + width)
            count += width
        places[-1] = count
        self.take = places.to(take.device)[take]
        pick = self.columns
        self.first = stack.w0[pick], stack.b0[pick]
        self.rest = [(w[pick], b[pick]) for w, b in zip(stack.ws, stack.bs, strict=True)]
        self.skip = stack.skip[pick]

    def noise(self, values: Tensor, parents: Tensor) -> tuple[Tensor, Tensor]:
        """Ends of the noise interval of values (k, n): equal for continuous columns."""
        lows, highs = [], []
        heads = [self.stack.heads[j] for j in self.columns]
        for rows in self._portions(values.shape[1], SPLINES_AT_ONCE):
            mu, s, spline = self._maps(parents[:, rows])
            x = values[:, rows]
            low = spline.every((x - mu) * torch.exp(-s))
            high = low
            if any(head.kind == "count" for head in heads):
                high = low.clone()
                for k, head in enumerate(heads):
                    if head.kind == "count":
                        low[k], high[k] = self.stack._cell(x[k], head, k, mu, s, spline)
            lows.append(low)
            highs.append(high)
        return torch.cat(lows, 1), torch.cat(highs, 1)

    def value(self, noise: Tensor, parents: Tensor) -> Tensor:
        """Values (k, n) of numeric columns from their noise (k, n)."""
        parts = []
        for rows in self._portions(noise.shape[1], SPLINES_AT_ONCE):
            mu, s, spline = self._maps(parents[:, rows])
            parts.append(spline.every.inv(noise[:, rows]) * torch.exp(s) + mu)
        return torch.cat(parts, 1)

    def log_levels(self, parents: Tensor) -> list[Tensor]:
        """Log-probabilities (n, levels) of each column, all of which are discrete."""
        weights = [(self.stack.level_w[str(j)], self.stack.level_b[str(j)]) for j in self.columns]
        parts = []
        for rows in self._portions(parents.shape[1], ROWS_AT_ONCE):
            h = self._hidden(self._seen(parents[:, rows]))
            parts.append(
                [F.log_softmax(own @ w + b, -1) for own, (w, b) in zip(h, weights, strict=True)]
            )
        return [torch.cat(tables) for tables in zip(*parts, strict=True)]

    def _portions(self, n: int, size: int) -> Iterator[slice]:
        size = size if self.skip.device.type == "cpu" else max(1, n)
        return (slice(a, a + size) for a in range(0, n, size))

    def _maps(self, parents: Tensor) -> tuple[Tensor, Tensor, SplineMaps]:
        """Shift, log-scale (both (k, n)) and spline of numeric columns."""
        w, b, fixed = self.stack._last(self.columns)
        seen = self._seen(parents)
        out = seen.new_empty(*seen.shape[:2], w.shape[-1])
        for rows in self._portions(seen.shape[1], ROWS_AT_ONCE):
            out[:, rows] = torch.baddbmm(b, self._hidden(seen[:, rows]), w)
        return self.stack._shape(out, torch.bmm(seen, self.skip), fixed)

    def _seen(self, parents: Tensor) -> Tensor:
        """The features (k, n, most) of each column's parents."""
        features = []
        for j, values in zip(self.parents, parents, strict=True):
            head = self.stack.heads[j]
            if head.width == 1:
                features.append((values if head.numeric else 2 * values - 1)[None])
            else:
                features.append(F.one_hot(values.long(), head.levels).T.to(values.dtype))
        features.append(parents.new_zeros(1, parents.shape[1]))
        return torch.cat(features)[self.take.flatten()].view(*self.take.shape, -1).transpose(1, 2)

    def _hidden(self, seen: Tensor) -> Tensor:
        """Hidden units (k, n, hidden)."""
        w, b = self.first
        h = F.silu(torch.baddbmm(b, seen, w), inplace=True)
        for w, b in self.rest:
            h = F.silu(torch.baddbmm(b, h, w), inplace=True)
        return h
