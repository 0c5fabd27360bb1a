r"""Likelihoods of discrete columns, each also written as a deterministic map of exogenous noise.

=====================  =================================================  ========================
kind                   value given the noise                              noise
=====================  =================================================  ========================
binary, ordinal        :math:`x = \#\{k : \ell > t_k\}`                   logistic :math:`\ell`
count                  smallest x with :math:`1 - F(x) \le \sigma(-\ell)`  logistic :math:`\ell`
categorical            :math:`\arg\max_k \log p_k + g_k`                  Gumbel :math:`g_k`
=====================  =================================================  ========================

The thresholds :math:`t_k`, the distribution function F (a mixture of logistics, cut at whole
numbers) and the probabilities come from a network. Given an observed value the noise has a
posterior that can be drawn from exactly; with the middle of it in place of a draw, the answer is a
point. Binary, ordinal and count columns are thus monotone in one noise, and categories use the
Gumbel-max trick, whose counterfactuals never move to a level that did not become likelier relative
to the observed one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vaca.engines.gumbel import level_of, noise_given

#: Logistic components of a count.
COMPONENTS = 4
_TINY = 1e-12
_FLOOR = -500.0  # the smallest log-probability of a level, so that differences stay finite


@dataclass(frozen=True)
class Discrete:
    """What a likelihood must know of one column.

    Attributes
    ----------
    kind : str
        A kind of `vaca.table.schema.Schema`.
    levels : int
        Number of levels (binary, ordinal, categorical).
    mean, scale, top : float
        Of a count: where its parameters are centred, their unit, and the largest value it may take.
    """

    kind: str
    levels: int = 0
    mean: float = 0.0
    scale: float = 1.0
    top: float = 0.0

    @property
    def parameters(self) -> int:
        """Numbers a network must give for this column."""
        if self.kind in ("binary", "ordinal"):
            return max(1, self.levels - 1)
        if self.kind == "categorical":
            return self.levels
        return 3 * COMPONENTS if self.kind == "count" else 0


class DiscreteLikelihood(nn.Module):
    """The discrete columns of a table, likelihood and noise in one place.

    Tensors are laid out as (columns, rows, ...) over all columns of the table; continuous columns
    are ignored. Values are codes (or whole numbers) in a floating-point tensor.

    Parameters
    ----------
    columns : sequence of Discrete
        One for each column of the table.

    Examples
    --------
    >>> head = DiscreteLikelihood([Discrete("binary", 2), Discrete("categorical", 3)])
    >>> parameters = torch.zeros(2, 1, 3)
    >>> head.log_prob(parameters, torch.tensor([[1.0], [2.0]])).exp()  # 1/2 * 1/3
    tensor([0.1667])
    """

    def __init__(self, columns: Sequence[Discrete]) -> None:
        super().__init__()
        self.columns = tuple(columns)
        self.parameters_needed = max((c.parameters for c in columns), default=0)
        self.levels = max((c.levels for c in columns if c.kind == "categorical"), default=0)
        #: Columns that are categories; only these keep noise per level.
        self.categories = [i for i, c in enumerate(columns) if c.kind == "categorical"]
        self._groups: dict[tuple[int, ...], dict[str, list[int]]] = {}

    def groups(self, which: Sequence[int]) -> dict[str, list[int]]:
        """Positions within ``which`` of the columns of each family."""
        key = tuple(which)
        if key not in self._groups:
            groups: dict[str, list[int]] = {}
            for position, column in enumerate(key):
                kind = self.columns[column].kind
                family = "ordered" if kind in ("binary", "ordinal") else kind
                if family != "continuous":
                    groups.setdefault(family, []).append(position)
            self._groups[key] = groups
        return self._groups[key]

    def log_prob(self, parameters: Tensor, x: Tensor) -> Tensor:
        """Summed log-probability of the discrete columns; shape of the rows, (rows,)."""
        which = range(len(self.columns))
        total = x.new_zeros(x.shape[1:])
        for family, at in self.groups(which).items():
            p, value = parameters[at], x[at]
            if family == "ordered":
                terms = ordered_log_prob(self._thresholds(p, at), value)
            elif family == "categorical":
                logits = self._logits(p, at)
                terms = logits.gather(-1, value.long().unsqueeze(-1)).squeeze(-1)
            else:
                terms = self._count_log_prob(p, value, at)
            total = total + terms.sum(0)
        return total

    def draw(
        self,
        parameters: Tensor,
        which: Sequence[int],
        logistic: Tensor,
        gumbel: Tensor,
        shift: Tensor,
        out: Tensor,
    ) -> Tensor:
        """Values of the columns ``which`` as a function of the noise.

        Parameters
        ----------
        parameters : Tensor of shape (len(which), rows, parameters)
        which : sequence of int
        logistic, shift : Tensors of shape (len(which), rows)
        gumbel : Tensor of shape (categories, rows, levels)
        out : Tensor of shape (len(which), rows)
            Values of the continuous columns; the others are filled in (in a new tensor).
        """
        for family, at in self.groups(which).items():
            columns = [which[i] for i in at]
            p = self._pick(parameters, at, columns, out.dtype)
            if family == "ordered":
                t = self._thresholds(p, columns)
                value = (logistic[at].unsqueeze(-1) > t).sum(-1).to(out.dtype)
            elif family == "categorical":
                noise = gumbel[[self.categories.index(c) for c in columns]]
                value = level_of(self._logits(p, columns), noise).to(out.dtype)
            else:
                value = self._count_quantile(p, logistic[at], columns) + shift[at]
                value = value.clamp(min=0.0)
            out = out.index_copy(0, torch.as_tensor(at, device=out.device), value)
        return out

    def left_over(
        self,
        x: Tensor,
        at: Sequence[int],
        missed: Tensor,
        parameters: Tensor,
        uniform: Tensor,
        uniform_levels: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """What the latents leave open: residuals of the columns `at`, then `posterior_noise`."""
        eps = torch.zeros_like(x)
        eps[at] = missed
        return eps, *self.posterior_noise(parameters, x, uniform, uniform_levels)

    def posterior_noise(
        self, parameters: Tensor, x: Tensor, uniform: Tensor, uniform_levels: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Noise that gives the observed values back, drawn with the given uniforms.

        Parameters
        ----------
        parameters : Tensor of shape (columns, rows, parameters)
        x, uniform : Tensors of shape (columns, rows)
        uniform_levels : Tensor of shape (categories, rows, levels)

        Returns
        -------
        logistic (columns, rows), gumbel (categories, rows, levels), shift (columns, rows)
        """
        logistic, shift = torch.zeros_like(x), torch.zeros_like(x)
        gumbel = torch.zeros_like(uniform_levels)
        for family, at in self.groups(range(len(self.columns))).items():
            p, value = self._pick(parameters, at, at, x.dtype), x[at]
            if family == "ordered":
                low, high = bracket(self._thresholds(p, at), value)
                logistic[at] = truncated_logistic(low, high, uniform[at])
            elif family == "categorical":
                gumbel = posterior_gumbel(self._logits(p, at), value, uniform_levels)
            else:
                noise = self._count_noise(p, value, uniform[at], at)
                logistic[at] = noise
                # Where a value is so unlikely that rounding hides it, keep what is missing.
                shift[at] = value - self._count_quantile(p, noise, at)
        return logistic, gumbel, shift

    def _pick(
        self, parameters: Tensor, at: Sequence[int], columns: Sequence[int], dtype: torch.dtype
    ) -> Tensor:
        """The parameters that some columns use, in the precision of the rows."""
        size = max(self.columns[c].parameters for c in columns)
        if self.columns[columns[0]].kind == "categorical":
            size = self.levels  # as many as there are Gumbels, whichever the columns
        return parameters[..., :size][at].to(dtype)

    # ------------------------------------------------------------------ ordered, categorical

    def _thresholds(self, p: Tensor, columns: Sequence[int]) -> Tensor:
        sizes = [self.columns[c].levels - 1 for c in columns]
        width = max(1, *sizes)
        first = -p[..., :1]
        t = first
        if width > 1:
            t = torch.cat([first, first + (F.softplus(p[..., 1:width]) + 1e-3).cumsum(-1)], -1)
        if min(sizes) == width:
            return t
        size = torch.as_tensor(sizes, device=p.device).view(-1, 1, 1)
        beyond = torch.arange(width, device=p.device) >= size
        return t.masked_fill(beyond, torch.inf)

    def _logits(self, p: Tensor, columns: Sequence[int]) -> Tensor:
        sizes = [self.columns[c].levels for c in columns]
        p = p[..., : self.levels]
        if min(sizes) == self.levels:
            return torch.log_softmax(p, -1).clamp(min=_FLOOR)
        size = torch.as_tensor(sizes, device=p.device).view(-1, 1, 1)
        beyond = torch.arange(self.levels, device=p.device) >= size
        # Finite, so that gradients and differences stay so; never chosen all the same.
        log_p = torch.log_softmax(p.masked_fill(beyond, -1e4), -1).clamp(min=_FLOOR)
        return log_p.masked_fill(beyond, -1e4)

    # ------------------------------------------------------------------ counts

    def _mixture(self, p: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        weight, place, spread = p[..., : 3 * COMPONENTS].chunk(3, -1)
        return torch.log_softmax(weight, -1), place, F.softplus(spread) + 1e-3

    def _cut(self, value: Tensor, columns: Sequence[int], step: float) -> Tensor:
        mean = value.new_tensor([self.columns[c].mean for c in columns]).view(-1, 1)
        scale = value.new_tensor([self.columns[c].scale for c in columns]).view(-1, 1)
        return ((value + step - mean) / scale).unsqueeze(-1)

    def _count_log_prob(self, p: Tensor, value: Tensor, columns: Sequence[int]) -> Tensor:
        weight, place, spread = self._mixture(p)
        low = (self._cut(value, columns, -0.5) - place) / spread
        high = (self._cut(value, columns, 0.5) - place) / spread
        inside = torch.logsumexp(weight + log_sigmoid_difference(low, high), -1)
        zero = (self._cut(torch.zeros_like(value), columns, -0.5) - place) / spread
        return inside - torch.logsumexp(weight + F.logsigmoid(-zero), -1)

    def _log_survival(self, p: Tensor, value: Tensor, columns: Sequence[int]) -> Tensor:
        """log P(count > value), given that it is not negative."""
        weight, place, spread = self._mixture(p)
        above = (self._cut(value, columns, 0.5) - place) / spread
        zero = (self._cut(torch.zeros_like(value), columns, -0.5) - place) / spread
        return torch.logsumexp(weight + F.logsigmoid(-above), -1) - torch.logsumexp(
            weight + F.logsigmoid(-zero), -1
        )

    def _count_quantile(self, p: Tensor, logistic: Tensor, columns: Sequence[int]) -> Tensor:
        wanted = F.logsigmoid(-logistic)
        top = p.new_tensor([self.columns[c].top for c in columns]).view(-1, 1)
        low, high = torch.full_like(logistic, -1.0), top.expand_as(logistic).clone()
        for _ in range(max(1, math.ceil(math.log2(float(top.max()) + 2)))):
            middle = torch.floor((low + high) / 2)
            enough = self._log_survival(p, middle, columns) <= wanted
            high = torch.where(enough, middle, high)
            low = torch.where(enough, low, middle)
        return high

    def _count_noise(
        self, p: Tensor, value: Tensor, uniform: Tensor, columns: Sequence[int]
    ) -> Tensor:
        low = self._log_survival(p, value, columns).exp()
        high = self._log_survival(p, value - 1.0, columns).exp()
        survival = (low + (high - low) * uniform).clamp(_TINY, 1.0 - _TINY)
        return -torch.logit(survival)


def log_sigmoid_difference(low: Tensor, high: Tensor) -> Tensor:
    r""":math:`\log(\sigma(high) - \sigma(low))`, without cancellation."""
    gap = (high - low).clamp(min=_TINY)
    return F.logsigmoid(high) + F.logsigmoid(-low) + torch.log(-torch.expm1(-gap))


def bracket(thresholds: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """The thresholds below and above each value (infinite at the ends)."""
    shape = (*thresholds.shape[:-1], 1)
    padded = torch.cat(
        [
            thresholds.new_full(shape, -torch.inf),
            thresholds,
            thresholds.new_full(shape, torch.inf),
        ],
        -1,
    )
    at = x.long().unsqueeze(-1)
    return padded.gather(-1, at).squeeze(-1), padded.gather(-1, at + 1).squeeze(-1)


def ordered_log_prob(thresholds: Tensor, x: Tensor) -> Tensor:
    r""":math:`\log P(t_x < \ell \le t_{x+1})` for logistic :math:`\ell`."""
    return log_sigmoid_difference(*bracket(thresholds, x))


def truncated_logistic(low: Tensor, high: Tensor, uniform: Tensor) -> Tensor:
    r"""Logistic noise within (low, high], by inversion at ``uniform``.

    >>> low, high = torch.tensor([30.0]), torch.tensor([torch.inf])
    >>> bool(truncated_logistic(low, high, torch.tensor([0.5])) > 30)
    True
    """
    # In the upper tail sigma rounds to 1: reflect it to the lower one, which keeps its digits.
    flip = (low + high).nan_to_num(0.0) > 0
    a = torch.where(flip, -high, low)
    b = torch.where(flip, -low, high)
    v = torch.where(flip, 1.0 - uniform, uniform)
    below, above = torch.sigmoid(a), torch.sigmoid(b)
    u = (below + (above - below) * v).clamp(min=torch.finfo(low.dtype).tiny)
    noise = torch.log(u) - torch.log1p(-u)
    noise = torch.where(flip, -noise, noise)
    # Rounding must not carry the noise over a threshold.
    inner_low = torch.nextafter(low, torch.full_like(low, torch.inf))
    return torch.minimum(torch.maximum(noise, inner_low), high)


def posterior_gumbel(log_p: Tensor, x: Tensor, uniform: Tensor) -> Tensor:
    r"""Gumbel noise given that :math:`\arg\max_k \log p_k + g_k = x`, by inversion at ``uniform``.

    Parameters
    ----------
    log_p, uniform : Tensors of shape (..., levels)
    x : Tensor of shape (...)

    Examples
    --------
    >>> log_p = torch.log_softmax(torch.tensor([0.0, 1.0, -3.0]), -1)
    >>> noise = posterior_gumbel(log_p, torch.tensor(2.0), torch.full((3,), 0.5))
    >>> int((log_p + noise).argmax())
    2
    """
    at = x.long().unsqueeze(-1)
    rest = -torch.log(uniform.clamp(_TINY, 1.0 - _TINY))
    top = -torch.log(rest.gather(-1, at))
    chosen = torch.zeros_like(log_p, dtype=torch.bool).scatter(-1, at, True)
    return noise_given(log_p.clamp(min=_FLOOR), chosen, top, rest, xp=torch)
