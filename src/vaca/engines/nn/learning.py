"""Mechanisms of some columns, ready to be learned: all rows of a step, rows last.

The loss is a sum over columns that share nothing. So a few columns at a time go through their
networks and back again, few enough that what a layer gives is still in the processor's own memory
when the next one takes it. A step needs as much memory for a thousand columns as for those few.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vaca.engines.nn.flow_network import Mechanisms, log_between
from vaca.engines.nn.spline_density import log_density

__all__ = ["Portion", "learn", "log_prob"]

#: Bytes of one layer of the columns that are learned at once, on a processor.
AT_ONCE = 3 * 2**20
#: Rows that are evaluated at once, where nothing is learned.
ROWS_AT_ONCE = 4096

Places = slice | Tensor


@dataclass
class Group:
    """Columns of a portion that are alike: continuous, counts, or of one number of levels."""

    kind: str
    columns: list[int]
    values: Places  # the columns, among all
    at: Places  # among those of the portion; of numeric ones, among these


class Portion:
    """Some columns of a stack of mechanisms.

    Parameters
    ----------
    stack : Mechanisms
    columns : sequence of int

    Attributes
    ----------
    groups : list of Group
        The columns in the order in which `log_prob` gives them.
    """

    def __init__(self, stack: Mechanisms, columns: Sequence[int]) -> None:
        self.stack, device = stack, stack.take.device
        self.at = _places(columns, device)
        self.take = stack.take[self.at].flatten()
        numeric = [i for i, j in enumerate(columns) if stack.heads[j].numeric]
        self.numeric = _places(numeric, device)
        self.spline_at = _places([stack.place[columns[i]] for i in numeric], device)
        found: dict[tuple[str, int], list[int]] = {}
        for i, j in enumerate(columns):
            head = stack.heads[j]
            found.setdefault((head.kind if head.numeric else "levels", head.levels), []).append(i)
        self.groups = []
        for (kind, _), places in found.items():
            own = [columns[i] for i in places]
            among = places if kind == "levels" else [numeric.index(i) for i in places]
            self.groups.append(Group(kind, own, _places(own, device), _places(among, device)))

    # ------------------------------------------------------------------ weights

    def _homes(self) -> list[tuple[nn.Parameter, Places] | list[nn.Parameter]]:
        """Where the weights are: in parameters of all columns, or in those of single ones."""
        stack = self.stack
        homes: list = [(p, self.at) for p in (stack.w0, stack.b0, *stack.ws, *stack.bs, stack.skip)]
        homes += [(stack.spline_w, self.spline_at), (stack.spline_b, self.spline_at)]
        for group in self.groups:
            if group.kind == "levels":
                homes += [
                    [of[str(j)] for j in group.columns] for of in (stack.level_w, stack.level_b)
                ]
        return homes

    def weights(self) -> list[Tensor]:
        """The weights of these columns, (k, ...) each."""
        return [
            torch.stack([*home]) if isinstance(home, list) else home[0][home[1]]
            for home in self._homes()
        ]

    def give(self, gradients: Sequence[Tensor]) -> None:
        """Put the gradients of the weights where those of the parameters are."""
        for home, own in zip(self._homes(), gradients, strict=True):
            if isinstance(home, list):
                for parameter, gradient in zip(home, own, strict=True):
                    parameter.grad = gradient
            else:
                cast("Tensor", home[0].grad)[home[1]] = own

    # ------------------------------------------------------------------ likelihood

    def log_prob(self, values: Tensor, seen: Tensor, weights: Sequence[Tensor]) -> list[Tensor]:
        """Log-densities and log-probabilities (k, n) of the columns of each group.

        Parameters
        ----------
        values : Tensor (columns, n)
        seen : Tensor (features + 1, n)
            What the networks see, and a zero.
        weights : list of Tensor
            As `weights` gives them.
        """
        deep = len(self.stack.ws)
        w0, b0, *rest = weights
        ws, bs, skip = rest[:deep], rest[deep : 2 * deep], rest[2 * deep]
        spline_w, spline_b, *levels = rest[2 * deep + 1 :]
        inputs = seen[self.take].view(len(w0), -1, seen.shape[1])
        h, result = inputs, []
        for w, b in zip([w0, *ws], [b0, *bs], strict=True):
            h = F.silu(torch.baddbmm(b.mT, w.mT, h))
        shape: list[Tensor] = []
        if len(spline_w):
            moved, own = spline_w.shape[2], h if len(spline_w) == len(h) else h[self.numeric]
            out = torch.baddbmm(spline_b[..., :moved].mT, spline_w.mT, own)
            line = torch.bmm(skip.mT, inputs).squeeze(1)[self.numeric]
            shape = [line, out, spline_b[:, 0, moved:]]
        for group in self.groups:
            x = values[group.values]
            if group.kind == "levels":
                w, b, *levels = levels
                scores = torch.baddbmm(b.unsqueeze(2), w.mT, h[group.at])
                codes = x.long().unsqueeze(1)
                result.append(F.log_softmax(scores, 1).gather(1, codes).squeeze(1))
                continue
            whole = len(x) == len(spline_w)
            line, out, fixed = shape if whole else [part[group.at] for part in shape]
            if group.kind == "count":
                maps = self.stack._shape(out.mT, line.unsqueeze(2), fixed.unsqueeze(1))
                heads = [self.stack.heads[j] for j in group.columns]
                result.append(log_between(*self.stack._cells(x, heads, *maps)))
            else:
                result.append(log_density(x, line, out, fixed, self.stack.bound))
        return result


def _places(numbers: Sequence[int], device: torch.device) -> Places:
    """A slice where these follow one another: it need not be copied."""
    start, count = (numbers[0], len(numbers)) if numbers else (0, 0)
    if list(numbers) == list(range(start, start + count)):
        return slice(start, start + count)
    return torch.tensor(numbers, device=device)


def portions(stack: Mechanisms, columns: Sequence[int], rows: int) -> list[Portion]:
    """The columns, a few at a time, as suits that number of rows."""
    count = min(1, len(columns))
    if stack.take.device.type == "cpu":
        layer = len(columns) * stack.b0[0].numel() * stack.b0.element_size() * rows
        count = min(len(columns), max(1, round(layer / AT_ONCE)))
    key = (count, stack.take.device, *columns)
    if key not in stack.ready:
        cuts = [round(len(columns) * k / max(1, count)) for k in range(count + 1)]
        stack.ready[key] = [Portion(stack, list(columns[a:b])) for a, b in pairwise(cuts)]
    return stack.ready[key]


def turned(values: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
    """Values and what the networks see of them with the rows last; past the features is a zero."""
    return values.T.contiguous(), F.pad(features.T, (0, 0, 0, 1))


@torch.no_grad()
def log_prob(
    stack: Mechanisms, values: Tensor, features: Tensor, columns: Sequence[int] | None = None
) -> Tensor:
    """Log-density or log-probability (n, count) of each column given its parents.

    Of columns that are not asked for, where some are named, it is -inf.
    """
    result = values.new_full((len(values), stack.count), -torch.inf)
    asked = range(stack.count) if columns is None else columns
    size = ROWS_AT_ONCE if values.device.type == "cpu" else max(1, len(values))
    for a in range(0, len(values), size):
        rows = slice(a, a + size)
        own, seen = turned(values[rows], features[rows])
        for part in portions(stack, asked, own.shape[1]):
            each = part.log_prob(own, seen, part.weights())
            for group, found in zip(part.groups, each, strict=True):
                result[rows, group.values] = found.T
    return result


def learn(
    stack: Mechanisms,
    values: Tensor,
    seen: Tensor,
    weights: Tensor | None,
    penalty: float,
    columns: Sequence[int] | None = None,
) -> Tensor:
    """Penalised mean negative log-likelihood of the columns; its gradients are left in the stack.

    Parameters
    ----------
    values, seen : Tensors
        As `turned` gives them.
    weights : Tensor (n,), optional
        Of the rows.
    penalty : float
        The factor on the sum of the squared weights, of all columns.
    columns : sequence of int, optional
        Those that are learned; all by default.
    """
    n = values.shape[1]
    share = values.new_full((n,), -1.0 / n) if weights is None else weights / -n
    for parameter in stack.parameters():
        parameter.grad = torch.zeros_like(parameter)
    total = values.new_zeros(())
    for part in portions(stack, range(stack.count) if columns is None else columns, n):
        leaves = [w.detach().requires_grad_() for w in part.weights()]
        with torch.enable_grad():
            each = part.log_prob(values, seen, leaves)
        given = [share.expand_as(found) for found in each]
        part.give(torch.autograd.grad(each, leaves, given, materialize_grads=True))
        for found in each:
            total += found.detach().sum(0) @ share
    bent = [w.detach() for w in stack.bent()]
    for weight, parameter in zip(bent, stack.bent(), strict=True):
        cast("Tensor", parameter.grad).add_(weight, alpha=2 * penalty)
    return total + penalty * torch.stack(torch._foreach_norm(bent)).square().sum()
