r"""Conditional mechanisms, one per column, each given its parent columns only.

For column :math:`j` with parent columns :math:`pa(j)`, a small network of its own gives the
parameters of an invertible (or, for discrete kinds, a monotone or arg-max) map between the
column's value and its noise:

.. math:: u_j = T_j(x_j \mid x_{pa(j)}).

All networks run at once, as stacked weights. A network is given the features of its parents and no
others, so the Jacobian of the whole map has the zeros of the graph, and the cost grows with the
number of columns times the most parents that one has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from zuko.transforms import MonotonicRQSTransform

__all__ = ["Head", "Mechanisms"]

#: First-layer weights up to this number are drawn for all features, used or not.
DENSE = 2_000_000


@dataclass(frozen=True)
class Head:
    """What one column is, as far as its mechanism goes.

    Attributes
    ----------
    kind : str
        "continuous", "count", "binary", "ordinal" or "categorical".
    levels : int
        Number of levels of a discrete column; 0 for a numeric one.
    step : float
        Width of one unit of a count in standardised units; 0 for other kinds.
    floor : float
        Standardised value of a count of zero.
    """

    kind: str
    levels: int = 0
    step: float = 0.0
    floor: float = 0.0

    @property
    def numeric(self) -> bool:
        """Whether the column is continuous or a count."""
        return self.kind in ("continuous", "count")

    @property
    def width(self) -> int:
        """Number of features with which the column enters its children's networks."""
        return 1 if self.numeric or self.levels <= 2 else self.levels


class Mechanisms(nn.Module):
    r"""Stacked per-column networks with spline heads (numeric) and softmax heads (discrete).

    Numeric columns: :math:`u = S((x - \mu) e^{-s})` with a rational-quadratic spline :math:`S`
    that is the identity outside :math:`\pm` ``bound``; :math:`\mu, s` and the spline are functions
    of the parents. Discrete columns: level probabilities that are functions of the parents.

    Parameters
    ----------
    heads : sequence of Head
        One per column.
    parents : sequence of sequence of int
        Positions of each column's parent columns. Columns after the last of these are given: others
        may have them as parents, and they have no mechanism.
    hidden, layers : int
        Width and number of hidden layers of each column's network.
    bins : int
        Bins of the splines.
    bound : float
        Where the splines end.
    affine : bool
        Whether the splines come after a shift and a scale. Without, they act on the value itself.
    fixed_shape : bool
        Whether a column has one spline for all rows, so that parents act through shift and scale
        only: a location-scale model.
    generator : torch.Generator
        For the initial weights.
    """

    def __init__(
        self,
        heads: Sequence[Head],
        parents: Sequence[Sequence[int]],
        *,
        hidden: int = 64,
        layers: int = 2,
        bins: int = 16,
        bound: float = 5.0,
        affine: bool = True,
        fixed_shape: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.heads = tuple(heads)
        self.bins, self.bound, self.affine, self.fixed_shape = bins, bound, affine, fixed_shape
        self.count = d = len(parents)
        starts = [0]
        for head in self.heads:
            starts.append(starts[-1] + head.width)
        self.starts = tuple(starts)
        inputs = [
            sorted(f for p in direct for f in range(starts[p], starts[p + 1])) for direct in parents
        ]
        most = max(1, *(len(own) for own in inputs))
        # The features that a column's network sees; a feature past the last one is always zero.
        take = torch.full((d, most), starts[-1])
        for j, own in enumerate(inputs):
            take[j, : len(own)] = torch.tensor(own, dtype=torch.long)
        self.take: Tensor
        self.register_buffer("take", take, persistent=False)
        used = (take < starts[-1]).unsqueeze(2)
        fan = used.sum((1, 2)).clamp(min=1)

        def uniform(*shape: int, scale: Tensor | float) -> nn.Parameter:
            return nn.Parameter((2 * torch.rand(*shape, generator=generator) - 1) * scale)

        first = (1.0 / fan.sqrt()).view(d, 1, 1)
        if d * starts[-1] * hidden <= DENSE:
            # Drawn for all features and then picked: a seed gives the weights it always gave.
            dense = uniform(d, starts[-1], hidden, scale=first).detach()
            self.w0 = nn.Parameter(self._pick_inputs(dense))
        else:
            self.w0 = uniform(d, most, hidden, scale=first * used)
        self.b0 = uniform(d, 1, hidden, scale=1.0)
        scale = math.sqrt(3.0 / hidden)
        self.ws = nn.ParameterList(
            uniform(d, hidden, hidden, scale=scale) for _ in range(layers - 1)
        )
        self.bs = nn.ParameterList(uniform(d, 1, hidden, scale=0.1) for _ in range(layers - 1))
        self.numeric = [j for j, head in enumerate(self.heads[:d]) if head.numeric]
        self.place = {j: k for k, j in enumerate(self.numeric)}
        sizes = 2 * affine + 3 * bins - 1
        # Small last layers: every mechanism starts near the identity (or the uniform levels).
        last = 0.1 * scale
        moved = 2 if fixed_shape else sizes
        self.spline_w = uniform(len(self.numeric), hidden, moved, scale=last)
        self.spline_b = nn.Parameter(torch.zeros(len(self.numeric), 1, sizes))
        # Linear in the parents: costs no penalty, so that it is what is left where data are few.
        self.skip = nn.Parameter(torch.zeros(d, most, 1), requires_grad=affine)
        self.ready: dict[tuple, list] = {}  # portions of columns; see `vaca.engines.nn.learning`
        self.level_w = nn.ParameterDict()
        self.level_b = nn.ParameterDict()
        for j, head in enumerate(self.heads[:d]):
            if not head.numeric:
                self.level_w[str(j)] = uniform(hidden, head.levels, scale=last)
                self.level_b[str(j)] = nn.Parameter(torch.zeros(head.levels))

    # ------------------------------------------------------------------ shared parts

    def features(self, values: Tensor) -> Tensor:
        """What the networks see of ``values`` (n, d): numbers as they are, levels one-hot."""
        parts = []
        for j, head in enumerate(self.heads):
            column = values[:, j]
            if head.width == 1:
                parts.append((column if head.numeric else 2 * column - 1).unsqueeze(1))
            else:
                parts.append(F.one_hot(column.long(), head.levels).to(values.dtype))
        return torch.cat(parts, 1)

    def _trunk(self, features: Tensor, columns: list[int]) -> tuple[Tensor, Tensor]:
        """Hidden units (k, n, hidden) and linear shifts (k, n, 1) of the given columns."""
        whole = len(columns) == self.count

        def pick(weights: Tensor) -> Tensor:
            return weights if whole else weights[columns]

        take = pick(self.take)
        padded = torch.cat([features, features.new_zeros(len(features), 1)], 1)
        seen = padded.T[take.flatten()].view(*take.shape, -1).transpose(1, 2)  # (k, n, most)
        learning = torch.is_grad_enabled()  # gradients need the values before the non-linearity
        h = torch.baddbmm(pick(self.b0), seen, pick(self.w0))
        h = F.silu(h, inplace=not learning)
        for w, b in zip(self.ws, self.bs, strict=True):
            h = F.silu(torch.baddbmm(pick(b), h, pick(w)), inplace=not learning)
        return h, torch.bmm(seen, pick(self.skip))

    def _spline(
        self, h: Tensor, skip: Tensor, columns: list[int]
    ) -> tuple[Tensor, Tensor, MonotonicRQSTransform]:
        """Shift, log-scale (both (k, n)) and spline of numeric columns."""
        w, b, fixed = self._last(columns)
        return self._shape(torch.baddbmm(b, h, w), skip, fixed)

    def _last(self, columns: list[int]) -> tuple[Tensor, Tensor, Tensor]:
        """Last layer of numeric columns, weights and biases, and what the parents do not move."""
        place = [self.place[j] for j in columns]
        whole = len(place) == len(self.numeric)
        w = self.spline_w if whole else self.spline_w[place]
        b = self.spline_b if whole else self.spline_b[place]
        moved = w.shape[-1]
        return w, b[..., :moved], b[..., moved:]

    def _shape(
        self, out: Tensor, skip: Tensor, fixed: Tensor
    ) -> tuple[Tensor, Tensor, MonotonicRQSTransform]:
        """Shift, log-scale and spline from what the last layer gives (k, n, moved)."""
        k = self.bins
        if self.fixed_shape:
            shift, scale = out.split(1, dim=-1)
            widths, heights, slopes = fixed.split([k, k, k - 1], dim=-1)
            return self._assemble(shift + skip, scale, widths, heights, slopes)
        if not self.affine:
            spline = self._splines(*out.split([k, k, k - 1], dim=-1))
            zero = out.new_zeros(())
            return zero.expand(out.shape[:2]), zero.expand(out.shape[:2]), spline
        shift, scale, widths, heights, slopes = out.split([1, 1, k, k, k - 1], dim=-1)
        return self._assemble(shift + skip, scale, widths, heights, slopes)

    def _assemble(
        self, shift: Tensor, scale: Tensor, widths: Tensor, heights: Tensor, slopes: Tensor
    ) -> tuple[Tensor, Tensor, MonotonicRQSTransform]:
        # Bounded so that a column that is a function of its parents cannot run away to exp(inf).
        scale = 8.0 * torch.tanh(scale.squeeze(-1) / 8.0)
        spline = self._splines(widths, heights, slopes)
        return shift.squeeze(-1), scale, spline

    def _splines(self, widths: Tensor, heights: Tensor, slopes: Tensor) -> MonotonicRQSTransform:
        return MonotonicRQSTransform(widths, heights, slopes, bound=self.bound, slope=1e-3)

    def bent(self) -> list[nn.Parameter]:
        """The weights that make mechanisms other than linear: those on which a penalty is."""
        return [self.w0, *self.ws, self.spline_w, *self.level_w.values()]

    def _pick_inputs(self, dense: Tensor) -> Tensor:
        """Of weights on all features (d, features, k) those on each column's own inputs."""
        return F.pad(dense, (0, 0, 0, 1))[torch.arange(len(dense))[:, None], self.take]

    def _load_from_state_dict(self, state: dict, prefix: str, *rest: Any) -> None:
        # Saved before networks were given their parents' features only: weights of all features.
        for name in ("w0", "skip"):
            dense, own = state.get(prefix + name), getattr(self, name)
            if dense is not None and dense.shape[1] == self.starts[-1] != own.shape[1]:
                state[prefix + name] = self._pick_inputs(dense)
        super()._load_from_state_dict(state, prefix, *rest)

    def copy_columns(self, source: Mechanisms, columns: Sequence[int]) -> None:
        """Take over the mechanisms of the given columns from an equal module."""
        if not columns:
            return
        every, numeric = list(columns), [self.place[j] for j in columns if j in self.place]
        theirs = dict(source.named_parameters())
        with torch.no_grad():
            for name, own in self.named_parameters():
                if name.startswith("level"):
                    if int(name.rsplit(".", 1)[1]) in every:
                        own.copy_(theirs[name])
                else:
                    at = numeric if name.startswith("spline") else every
                    own[at] = theirs[name][at]

    # ------------------------------------------------------------------ noise <-> value

    def numeric_noise(self, values: Tensor, columns: list[int]) -> tuple[Tensor, Tensor]:
        """Ends of the noise interval of each value, (n, k) each; equal for continuous columns."""
        h, skip = self._trunk(self.features(values), columns)
        mu, s, spline = self._spline(h, skip, columns)
        x = values.T[columns]
        if any(self.heads[j].kind == "count" for j in columns):
            low, high = self._cells(x, [self.heads[j] for j in columns], mu, s, spline)
            return low.T, high.T
        u = spline((x - mu) * torch.exp(-s))
        return u.T, u.T

    def _cells(
        self, x: Tensor, heads: Sequence[Head], mu: Tensor, s: Tensor, spline: MonotonicRQSTransform
    ) -> tuple[Tensor, Tensor]:
        """Noise (k, n) at both ends of the cells of counts; -inf below a count of zero."""
        step, floor = (
            x.new_tensor([getattr(head, name) for head in heads]).unsqueeze(1)
            for name in ("step", "floor")
        )
        low, high = (spline((x + side * step - mu) * torch.exp(-s)) for side in (-0.5, 0.5))
        lowest = (step > 0) & (x <= floor + 0.25 * step)
        return torch.where(lowest, -math.inf, low), high

    def push(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Noise and log-slope (n, d) of all columns, which must be continuous."""
        every = list(range(len(self.heads)))
        h, skip = self._trunk(self.features(values), every)
        mu, s, spline = self._spline(h, skip, every)
        u, slope = spline.call_and_ladj((values.T - mu) * torch.exp(-s))
        return u.T, (slope - s).T

    def numeric_value(self, noise: Tensor, values: Tensor, columns: list[int]) -> Tensor:
        """Values (n, k) of numeric columns from noise (n, k) and their parents in ``values``."""
        h, skip = self._trunk(self.features(values), columns)
        mu, s, spline = self._spline(h, skip, columns)
        y = spline.inv(noise.T)
        return (y * torch.exp(s) + mu).T


def log_between(low: Tensor, high: Tensor) -> Tensor:
    """log(Phi(high) - Phi(low)), computed in the tail where it loses nothing."""
    flip = low > 0
    a = torch.where(flip, -high, low)
    b = torch.where(flip, -low, high)
    la = torch.special.log_ndtr(a.clamp(min=-30.0))
    lb = torch.special.log_ndtr(b.clamp(min=-29.99))
    inside = torch.where(a == -math.inf, 0.0, (la - lb).exp())
    return lb + torch.log1p(-inside.clamp(max=1.0 - 1e-7))
