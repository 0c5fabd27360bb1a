r"""Log-densities of columns in training, with gradients that are worked out by hand.

.. math:: \log p(x) = \log N(S(z); 0, 1) + \log S'(z) - s, \qquad z = (x - \mu) e^{-s}

:math:`S` is the spline of `zuko.transforms.MonotonicRQSTransform`, laid out with the rows last. A
row lies on one piece of its spline, so that its density and its gradients are functions of that
piece alone. Knots pass through a few operations instead of all.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from vaca.engines.nn.splines import softened

__all__ = ["WIDEST", "log_density"]

#: Log-scales stay within plus or minus this: a column that is a function of its parents cannot run
#: away to exp(inf).
WIDEST = 8.0
CONSTANT = 0.5 * math.log(2 * math.pi)


def log_density(x: Tensor, skip: Tensor, out: Tensor, fixed: Tensor, bound: float) -> Tensor:
    """Log-densities (k, n) of the values ``x`` of k columns.

    Parameters
    ----------
    x, skip : Tensors (k, n)
        Values, through which no gradient goes, and what is linear in the parents.
    out : Tensor (k, 2 or 3 bins + 1, n)
        What the networks give: shift, log-scale and, where they change with the parents, widths
        and heights of the pieces and slopes at the inner knots, before they are made positive.
    fixed : Tensor (k, 3 bins - 1), or (k, 0)
        The same where one spline is for all rows.
    """
    if torch.is_grad_enabled():
        return _LogDensity.apply(x, skip, out, fixed, bound)  # type: ignore[no-any-return]
    return _Rows(x, skip, out, fixed, bound).density(learning=False)


class _LogDensity(Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, skip: Tensor, out: Tensor, fixed: Tensor, bound: float
    ) -> Tensor:
        ctx.rows = _Rows(x, skip, out, fixed, bound)
        return ctx.rows.density(learning=True)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, given: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        rows, ctx.rows = ctx.rows, None  # they are used up
        return None, *rows.gradients(given), None


class _Rows:
    """The pieces of the splines on which the rows lie, and the density there.

    Quantities of the pieces are (k, 2, n): along x and along y, or at the left and right end.
    """

    def __init__(self, x: Tensor, skip: Tensor, out: Tensor, fixed: Tensor, bound: float) -> None:
        k, n = x.shape
        self.bound, self.by_row = bound, out.shape[1] > 2
        shape = out[:, 2:] if self.by_row else fixed.unsqueeze(2)
        self.bins = bins = (shape.shape[1] + 1) // 3
        self.tanh = torch.tanh(out[:, 1] / WIDEST)
        self.narrow = torch.exp(-WIDEST * self.tanh)
        self.z = (x - out[:, 0]).sub_(skip).mul_(self.narrow)
        raw = shape[:, : 2 * bins].view(k, 2, bins, -1)
        self.soft = softened(raw, 2).reciprocal_()
        self.sizes = torch.mul(raw, self.soft).exp2_()
        sums = torch.ones(bins, bins, dtype=raw.dtype, device=raw.device).tril_()
        ends = torch.matmul(sums, self.sizes)
        self.total = ends[:, :, -1]
        self.unit = (2 * bound) / self.total
        along = (self.z + bound).div_(self.unit[:, 0])
        # Which pieces lie left of the row's: as numbers, which are quicker than truth values.
        self.left = x.new_zeros(k, bins, n)
        torch.lt(ends[:, 0, :-1], along.unsqueeze(1), out=self.left[:, :-1])
        place = self.left.sum(1, keepdim=True).long()
        self.at = at = place.unsqueeze(1).expand(-1, 2, -1, -1)
        self.size = self.sizes.expand(-1, -1, -1, n).gather(2, at).squeeze(2)
        self.start = ends.expand(-1, -1, -1, n).gather(2, at).squeeze(2).sub_(self.size)
        # Slopes at both ends of a piece; at the outermost ones they are 1.
        inner = torch.cat([place - 1, place], 1)
        self.ends = inner.clamp(0, bins - 2)
        self.free = torch.eq(self.ends, inner, out=torch.empty_like(self.start))
        slopes = shape[:, 2 * bins :].expand(-1, -1, n).gather(1, self.ends).mul_(self.free)
        self.soft_slope = softened(slopes).reciprocal_()
        self.slope = slopes.mul_(self.soft_slope).exp2_()

    def density(self, learning: bool) -> Tensor:
        """The log-density (k, n); for learning, its slopes in z and in the pieces are kept."""
        z, inside = self.z, self.z.abs() < self.bound
        (w, h), (d0, d1) = (self.size * self.unit).unbind(1), self.slope.unbind(1)
        x0, y0 = (self.start * self.unit).sub_(self.bound).unbind(1)
        t = ((z - x0) / w).clamp_(0.0, 1.0)
        s, rest = h / w, 1 - t
        both, t2, rest2 = t * rest, t * t, rest * rest
        bend = (d0 + d1).sub_(s, alpha=2)
        below = torch.addcmul(s, bend, both).reciprocal_()
        share = (s * t2).addcmul_(d0, both).mul_(below)  # of the piece's height
        u = torch.where(inside, torch.addcmul(y0, h, share), z)
        top = (s * both).mul_(2).addcmul_(d0, rest2).addcmul_(d1, t2)
        root = s * below
        steep = (root * root).mul_(top)
        value = torch.where(inside, steep.log(), 0.0)
        value.addcmul_(u, u, value=-0.5).sub_(self.tanh, alpha=WIDEST).sub_(CONSTANT)
        if not learning:
            return value
        over, lean, less = top.reciprocal(), 1 - 2 * t, 1 - 2 * both
        by_t = (s * lean).addcmul_(d0, rest, value=-1).addcmul_(d1, t).mul_(over)
        by_t.addcmul_(bend.mul_(lean), below, value=-1).mul_(2).div_(w)
        self.by_z = torch.where(inside, by_t.addcmul_(u, steep, value=-1), -u)
        by_s = s.reciprocal().addcmul_(both, over).addcmul_(less, below, value=-1).mul_(2).div_(w)
        by_s.addcmul_(u * root, t2 - share * less, value=-1)
        by_w = (t * self.by_z).addcmul_(s, by_s).neg_()
        by_h = by_s.addcmul_(u, share, value=-1)
        flat, lever = both * below, u * h
        pull = lever * share
        by_d0 = (rest2 * over).addcmul_(flat, (2 + lever).sub_(pull), value=-1)
        by_d1 = (t2 * over).addcmul_(flat, 2 - pull, value=-1)
        inside = inside.to(z.dtype).unsqueeze(1)
        self.by_start = torch.stack([self.by_z, u], 1).neg_().mul_(inside)
        self.by_size = torch.stack([by_w, by_h], 1).mul_(inside)
        self.by_slope = torch.stack([by_d0, by_d1], 1).mul_(inside)
        return value

    def gradients(self, given: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients of skip, out and fixed, from that of the log-densities."""
        (k, n), bins = given.shape, self.bins
        by_z = given * self.by_z
        by_shift = by_z.mul(self.narrow).neg_()
        by_scale = by_z.mul_(self.z).add_(given).mul_(self.tanh.square().sub_(1.0))
        # The slope of raw * soft is soft ** 2 * log(2), and that of 2 ** y has another log(2).
        each = given.unsqueeze(1) * math.log(2) ** 2
        unit = self.unit * each
        start, size = self.by_start.mul_(unit), self.by_size.mul_(unit)
        total = (start * self.start).addcmul_(size, self.size).div_(self.total).neg_()
        out = given.new_empty(k, 3 * bins + 1, n)
        sizes = out[:, 2 : 2 + 2 * bins].view(k, 2, bins, n)
        left = self.left.unsqueeze(1)
        torch.addcmul(total.unsqueeze(2), start.unsqueeze(2), left, out=sizes)
        sizes.scatter_add_(2, self.at, size.unsqueeze(2))
        sizes.mul_(self.sizes).mul_(self.soft).mul_(self.soft)
        slope = self.by_slope.mul_(each).mul_(self.slope).mul_(self.soft_slope.square_())
        out[:, 2 + 2 * bins :].zero_().scatter_add_(1, self.ends, slope.mul_(self.free))
        if self.by_row:
            out[:, 0], out[:, 1] = by_shift, by_scale
            return by_shift, out, given.new_empty(k, 0)
        return by_shift, torch.stack([by_shift, by_scale], 1), out[:, 2:].sum(2)
