r"""Monotone rational-quadratic splines of trained columns, at many rows.

The same splines as `zuko.transforms.MonotonicRQSTransform`, laid out with the rows last and in one
piece of memory, and with no more worked out than the piece on which a row lies. Shapes may come in
single precision; knots and values are in double, so that a value and its noise are each other's
inverse.
"""

from __future__ import annotations

import abc
import math
from itertools import pairwise

import torch
from torch import Tensor

__all__ = ["ColumnSplines", "RowSplines", "Splines"]

#: The logarithm of the least slope, as in training.
LEAST = -math.log(1e-3)


def softened(values: Tensor, steepness: float = 1.0) -> Tensor:
    """Divided by this, values become logarithms to the base 2 that are bounded as in training.

    Powers of 2 are three times as fast as those of e.
    """
    return values.abs().mul_(math.log(2) * steepness / LEAST).add_(math.log(2))


class Splines(abc.ABC):
    """Splines of k columns, which act on plus or minus `bound` and are the identity beyond."""

    bound: float

    @abc.abstractmethod
    def _pieces(self, at: Tensor, axis: int) -> tuple[Tensor, ...]:
        """The pieces that x (axis 0) or y (axis 1) lie on, each (k, n).

        Start and width along x, start and height along y, and the slopes at both ends.
        """

    def __call__(self, x: Tensor) -> Tensor:
        """Values (k, n) at ``x``."""
        x0, width, y0, height, d0, d1 = self._pieces(x, 0)
        s = height / width
        t = (x - x0) / width
        both = t * (1 - t)
        y = y0 + height * (s * t * t + d0 * both) / (s + (d0 + d1 - 2 * s) * both)
        return torch.where(x.abs() < self.bound, y, x)

    def inverse(self, y: Tensor) -> Tensor:
        """The x (k, n) at which the splines have the values ``y``."""
        x0, width, y0, height, d0, d1 = self._pieces(y, 1)
        s, up = height / width, y - y0
        bend = up * (d0 + d1 - 2 * s)
        a, b, c = height * (s - d0) + bend, height * d0 - bend, -s * up
        t = 2 * c / (-b - (b * b - 4 * a * c).clamp_(min=0.0).sqrt_())
        return torch.where(y.abs() < self.bound, x0 + t * width, y)


class RowSplines(Splines):
    """A spline for each column and row.

    Parameters
    ----------
    sizes : Tensor (k, 2 bins, n)
        Widths and heights of the pieces, before they are made positive.
    slopes : Tensor (k, bins + 1, n)
        Slopes at the knots, before they are; 0 at both ends.
    """

    def __init__(self, sizes: Tensor, slopes: Tensor, bound: float) -> None:
        self.bound, self.slopes = bound, slopes.transpose(0, 1)
        k, bins, n = len(sizes), sizes.shape[1] // 2, sizes.shape[2]
        sizes = torch.div(sizes, softened(sizes, 2)).exp2_().view(k, 2, bins, n)
        #: Knots along x and along y (bins + 1, k, 2, n), counted from 0, and the length of a unit.
        self.ends = sizes.new_zeros(bins + 1, k, 2, n, dtype=torch.float64)
        self.ends[1:] = sizes.permute(2, 0, 1, 3)
        knots = self.ends.unbind(0)
        for before, knot in pairwise(knots):
            knot += before
        self.unit = 2 * bound / knots[-1]

    def _pieces(self, at: Tensor, axis: int) -> tuple[Tensor, ...]:
        along = (at + self.bound).div_(self.unit[:, axis])
        inner = self.ends[1:-1, :, axis]
        # As numbers: they are counted faster than truth values.
        before = torch.lt(
            inner, along, out=torch.empty(inner.shape, dtype=inner.dtype, device=inner.device)
        )
        place = before.sum(0).long()
        both = torch.stack([place, place + 1])
        ends = self.ends.gather(0, both.unsqueeze(2).expand(-1, -1, 2, -1))
        slopes = self.slopes.gather(0, both).double()
        d0, d1 = slopes.div_(softened(slopes)).exp2_()
        size = (ends[1] - ends[0]).mul_(self.unit)
        start = ends[0].mul_(self.unit).sub_(self.bound)
        return start[:, 0], size[:, 0], start[:, 1], size[:, 1], d0, d1


class ColumnSplines(Splines):
    """One spline for each column, in tables; parameters as for `RowSplines`, with n = 1."""

    def __init__(self, sizes: Tensor, slopes: Tensor, bound: float) -> None:
        self.bound = bound
        rows = RowSplines(sizes, slopes, bound)
        ends = (rows.ends * rows.unit - bound).squeeze(-1).permute(1, 2, 0)
        knot = slopes.double().squeeze(-1)
        knot = torch.exp(knot / (knot.abs() / LEAST + 1.0))
        x, y = ends[:, 0], ends[:, 1]
        parts = x[:, :-1], x.diff(), y[:, :-1], y.diff(), knot[:, :-1], knot[:, 1:]
        self.table = torch.stack(parts, 1)
        self.inner = ends[:, :, 1:-1].transpose(0, 1).contiguous()

    def _pieces(self, at: Tensor, axis: int) -> tuple[Tensor, ...]:
        place = torch.searchsorted(self.inner[axis], at.contiguous())
        return self.table.gather(2, place.unsqueeze(1).expand(-1, 6, -1)).unbind(1)
