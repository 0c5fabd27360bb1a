"""Trained mechanisms of some columns, ready to be asked: given their parents and nothing else.

Training runs all columns at once. A question is about a few of them, for many rows: their weights
are picked once, their inputs are the columns that are their parents, and rows go through in
portions small enough to stay in the processor's own memory from layer to layer, the rows last and
in one piece of memory. The networks run in single precision, in which they were trained; what is
linear in the parents, and the maps between values and noise, are in double.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from vaca.engines.nn.flow_network import Mechanisms
from vaca.engines.nn.splines import ColumnSplines, RowSplines, Splines

__all__ = ["Asked"]

#: Rows, and columns, that go through the layers at once, on a processor; a graphics card takes all
#: rows. Of a few rows, all columns go at once.
ROWS_AT_ONCE, COLUMNS_AT_ONCE, FEW_ROWS = 512, 32, 64
#: In which the networks run: answers are within 1e-6 sd of those in double precision, or a little
#: more (on loan 92 % of them, and all within 3e-6).
PRECISION = torch.float32


class Asked:
    """Some columns of a stack of mechanisms.

    Parameters
    ----------
    stack : Mechanisms
    columns : sequence of int
        Which columns are asked: all numeric, or none.

    Attributes
    ----------
    parents : list of int
        The columns that the answers depend on; their values are given in this order.
    """

    def __init__(self, stack: Mechanisms, columns: Sequence[int]) -> None:
        self.stack, self.columns = stack, list(columns)
        take, starts = (
            stack.take[self.columns],
            torch.tensor(stack.starts, device=stack.take.device),
        )
        seen = take[take < starts[-1]].unique()
        self.parents = (torch.searchsorted(starts, seen, right=True) - 1).unique().tolist()
        # Places among the features of the parents alone; past the last one stands a zero.
        places = torch.zeros(stack.starts[-1] + 1, dtype=torch.long)
        count = 0
        for j in self.parents:
            width = stack.starts[j + 1] - stack.starts[j]
            places[stack.starts[j] : stack.starts[j + 1]] = torch.arange(count, count + width)
            count += width
        places[-1] = count
        self.take = places.to(take.device)[take].flatten()
        self.shape = take.shape
        self.plain = all(stack.heads[j].numeric for j in self.parents)
        self.heads = [stack.heads[j] for j in self.columns]
        pick = self.columns
        hidden = [(stack.w0[pick], stack.b0[pick])]
        hidden += [(w[pick], b[pick]) for w, b in zip(stack.ws, stack.bs, strict=True)]
        self.hidden = [(_turned(w), _turned(b)) for w, b in hidden]
        self.skip = stack.skip[pick].transpose(1, 2).double().contiguous()
        if self.heads[0].numeric:
            w, b, fixed = stack._last(self.columns)
            self.fixed = None
            if stack.fixed_shape:
                sizes, slopes = (
                    fixed.transpose(1, 2).double().split([2 * stack.bins, stack.bins - 1], 1)
                )
                self.fixed = ColumnSplines(sizes, F.pad(slopes, (0, 0, 1, 1)), stack.bound)
            else:  # with slopes of the first and the last knot, which are fixed
                w, b = _with_ends(w, stack.bins), _with_ends(b, stack.bins)
            self.last = _turned(w), _turned(b)
            steps = torch.tensor([head.step for head in self.heads], dtype=torch.float64)
            floors = torch.tensor([head.floor for head in self.heads], dtype=torch.float64)
            self.steps, self.floors = (v.to(take.device).unsqueeze(1) for v in (steps, floors))
            self.counts = any(head.kind == "count" for head in self.heads)

    def noise(self, values: Tensor, parents: Tensor) -> tuple[Tensor, Tensor]:
        """Ends of the noise interval of values (k, n): equal for continuous columns."""
        lows, highs = torch.empty_like(values), torch.empty_like(values)
        for rows in self._portions(values.shape[1]):
            shift, narrow, splines = self._maps(parents[:, rows], -1.0)
            x = values[:, rows]
            if not self.counts:
                lows[:, rows] = splines((x - shift) * narrow)
                continue
            low = splines((x - 0.5 * self.steps - shift) * narrow)
            lowest = (self.steps > 0) & (x <= self.floors + 0.25 * self.steps)
            lows[:, rows] = torch.where(lowest, -torch.inf, low)
            highs[:, rows] = splines((x + 0.5 * self.steps - shift) * narrow)
        return lows, highs if self.counts else lows

    def value(self, noise: Tensor, parents: Tensor) -> Tensor:
        """Values (k, n) of numeric columns from their noise (k, n)."""
        result = torch.empty_like(noise)
        for rows in self._portions(noise.shape[1]):
            shift, wide, splines = self._maps(parents[:, rows], 1.0)
            result[:, rows] = splines.inverse(noise[:, rows]) * wide + shift
        return result

    def left(self, values: Tensor, parents: Tensor) -> Tensor:
        """What the parents leave of values (k, n): the noise, before splines bend it."""
        result = torch.empty_like(values)
        for rows in self._portions(values.shape[1]):
            shift, narrow, _ = self._maps(parents[:, rows], -1.0)
            torch.mul(values[:, rows] - shift, narrow, out=result[:, rows])
        return result

    def with_left(self, left: Tensor, parents: Tensor) -> Tensor:
        """Values (k, n) from what `left` gave."""
        result = torch.empty_like(left)
        for rows in self._portions(left.shape[1]):
            shift, wide, _ = self._maps(parents[:, rows], 1.0)
            torch.addcmul(shift, left[:, rows], wide, out=result[:, rows])
        return result

    def log_levels(self, parents: Tensor) -> list[Tensor]:
        """Log-probabilities (n, levels) of each column, all of which are discrete."""
        weights = [
            (
                self.stack.level_w[str(j)].to(PRECISION).T,
                self.stack.level_b[str(j)].to(PRECISION)[:, None],
            )
            for j in self.columns
        ]
        parts = []
        for rows in self._portions(parents.shape[1]):
            h = self._hidden(self._seen(parents[:, rows]))
            scores = [torch.addmm(b, w, own) for own, (w, b) in zip(h, weights, strict=True)]
            parts.append([F.log_softmax(score.double(), 0).T for score in scores])
        return [torch.cat(tables) for tables in zip(*parts, strict=True)]

    def _portions(self, n: int) -> Iterator[slice]:
        few = ROWS_AT_ONCE * max(1, COLUMNS_AT_ONCE // (2 * len(self.columns)))
        size = few if self.skip.device.type == "cpu" else max(1, n)
        return (slice(a, a + size) for a in range(0, n, size))

    def _maps(self, parents: Tensor, sign: float) -> tuple[Tensor, Tensor, Splines]:
        """Shift, scale or its inverse (both (k, n)) and splines of numeric columns."""
        seen = self._seen(parents)
        w, b = self.last
        out = torch.baddbmm(b, w, self._hidden(seen))
        shift = torch.bmm(self.skip, seen).squeeze(1) + out[:, 0]
        scale = torch.exp(torch.tanh(out[:, 1].double() / 8.0).mul_(sign * 8.0))
        if self.fixed is not None:
            return shift, scale, self.fixed
        last = 2 + 2 * self.stack.bins
        return shift, scale, RowSplines(out[:, 2:last], out[:, last:], self.stack.bound)

    def _seen(self, parents: Tensor) -> Tensor:
        """The features (k, most, n) of each column's parents."""
        zeros = parents.new_zeros(1, parents.shape[1])
        if self.plain:
            return torch.cat([parents, zeros])[self.take].view(*self.shape, -1)
        features = []
        for j, values in zip(self.parents, parents, strict=True):
            head = self.stack.heads[j]
            if head.width == 1:
                features.append((values if head.numeric else 2 * values - 1)[None])
            else:
                features.append(F.one_hot(values.long(), head.levels).T.to(values.dtype))
        return torch.cat([*features, zeros])[self.take].view(*self.shape, -1)

    def _hidden(self, seen: Tensor) -> Tensor:
        """Hidden units (k, hidden, n)."""
        h = seen.to(PRECISION)
        for w, b in self.hidden:
            h = F.silu(torch.baddbmm(b, w, h), inplace=True)
        return h


def _turned(weights: Tensor) -> Tensor:
    """Weights (k, in, out) as (k, out, in)."""
    return weights.detach().transpose(1, 2).to(PRECISION).contiguous()


def _with_ends(weights: Tensor, bins: int) -> Tensor:
    """Weights of a last layer (k, in, 3 bins + 1) that also gives the slopes, 0, of the ends."""
    sizes, slopes = weights[..., : 2 + 2 * bins], weights[..., 2 + 2 * bins :]
    return torch.cat([sizes, F.pad(slopes, (1, 1))], -1)
