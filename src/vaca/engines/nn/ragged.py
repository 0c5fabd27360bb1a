"""Affine maps between lists of features and groups of different sizes, without padding."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from vaca.engines.nn.likelihoods import Discrete


class RaggedLinear(nn.Module):
    r"""Each group sums the features it is given: :math:`y_g = b_g + \sum_{f \in g} x_f W_{gf}`.

    Groups may take different numbers of features, and a feature may go to several groups; there is
    one weight vector per pair and none that is not used.

    Parameters
    ----------
    pairs : sequence of (feature, group)
    groups, n_out : int
        Number of groups and features out of each.
    bias : bool

    Examples
    --------
    >>> layer = RaggedLinear([(0, 0), (1, 0), (2, 1)], 2, 4)
    >>> layer(torch.zeros(3, 10)).shape
    torch.Size([2, 10, 4])
    >>> sum(p.numel() for p in layer.parameters())
    20
    """

    feature: Tensor
    group: Tensor

    def __init__(
        self,
        pairs: Sequence[tuple[int, int]],
        groups: int,
        n_out: int,
        *,
        bias: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.groups = groups
        feature = torch.tensor([f for f, _ in pairs], dtype=torch.long)
        group = torch.tensor([g for _, g in pairs], dtype=torch.long)
        self.register_buffer("feature", feature, persistent=False)
        self.register_buffer("group", group, persistent=False)
        fan_in = torch.zeros(groups).index_add_(0, group, torch.ones(len(pairs))).clamp(min=1)
        bound = fan_in.rsqrt().view(-1, 1, 1)
        weight = 2 * torch.rand(len(pairs), 1, n_out, generator=generator) - 1
        self.weight = nn.Parameter(weight * bound[group])
        self.bias = None
        if bias:
            start = 2 * torch.rand(groups, 1, n_out, generator=generator) - 1
            self.bias = nn.Parameter(start * bound)
        self._into: dict[tuple[int, ...], tuple[Tensor, Tensor]] = {}

    def forward(self, x: Tensor, which: Sequence[int] | None = None) -> Tensor:
        """Map features of shape (features, rows) to (groups, rows, n_out), or to some groups."""
        if which is None:
            weight, feature, group, count = self.weight, self.feature, self.group, self.groups
            bias = self.bias
        else:
            at, group = self._pairs_into(which)
            weight, feature, count = self.weight[at], self.feature[at], len(which)
            bias = None if self.bias is None else self.bias[list(which)]
        shape = (count, x.shape[1], weight.shape[-1])
        start = x.new_zeros(shape) if bias is None else bias.expand(shape)
        return start.index_add(0, group, x[feature].unsqueeze(-1) * weight)

    def _pairs_into(self, which: Sequence[int]) -> tuple[Tensor, Tensor]:
        key = tuple(which)
        if key not in self._into:
            place = {g: i for i, g in enumerate(key)}
            pairs = [(e, place[g]) for e, g in enumerate(self.group.tolist()) if g in place]
            both = torch.tensor(pairs, dtype=torch.long, device=self.group.device).view(-1, 2)
            self._into[key] = (both[:, 0], both[:, 1])
        return self._into[key]


class ColumnFeatures(nn.Module):
    """Columns as input features: numbers as they are, ordinal codes centred, categories one-hot.

    Attributes
    ----------
    owner : list of int
        The column each feature belongs to.
    """

    mean: Tensor
    scale: Tensor
    column: Tensor
    level: Tensor

    def __init__(self, columns: Sequence[Discrete]) -> None:
        super().__init__()
        self.owner: list[int] = []
        level: list[int] = []
        mean, scale = [], []
        for i, c in enumerate(columns):
            levels = list(range(c.levels)) if c.kind == "categorical" else [-1]
            self.owner += [i] * len(levels)
            level += levels
            if c.kind == "ordinal":
                mean.append((c.levels - 1) / 2)
                scale.append(max(c.levels - 1, 1) / 2)
            else:
                mean.append(c.mean)
                scale.append(c.scale)
        self.register_buffer("column", torch.tensor(self.owner), persistent=False)
        self.register_buffer("level", torch.tensor(level, dtype=torch.float32).view(-1, 1))
        self.register_buffer("mean", torch.tensor(mean).view(-1, 1))
        self.register_buffer("scale", torch.tensor(scale).view(-1, 1))
        self.plain = all(v < 0 for v in level)

    def of_columns(self, columns: Sequence[int]) -> list[int]:
        """The features of some columns."""
        wanted = set(columns)
        return [f for f, owner in enumerate(self.owner) if owner in wanted]

    def forward(self, x: Tensor) -> Tensor:
        """Values of shape (columns, rows) as features of shape (features, rows)."""
        number = ((x - self.mean) / self.scale).clamp(-30.0, 30.0)
        if self.plain:
            return number
        return torch.where(
            self.level < 0, number[self.column], (x[self.column] == self.level).to(x.dtype)
        )


def parameter_slots(columns: Sequence[Discrete], continuous: int = 1) -> list[tuple[int, int]]:
    """The (column, position) of every likelihood parameter, ``continuous`` for such a column."""
    return [
        (i, k)
        for i, c in enumerate(columns)
        for k in range(continuous if c.kind == "continuous" else c.parameters)
    ]


class Slots(nn.Module):
    """Likelihood parameters in one list, laid out as (columns, rows, parameters)."""

    flat: Tensor

    def __init__(self, slots: Sequence[tuple[int, int]], columns: int) -> None:
        super().__init__()
        self.columns = columns
        self.width = max((k for _, k in slots), default=0) + 1
        flat = torch.tensor([i * self.width + k for i, k in slots])
        self.register_buffer("flat", flat, persistent=False)
        self.direct = len(slots) == columns and self.width == 1

    def forward(self, values: Tensor) -> Tensor:
        """Values of shape (slots, rows) as (columns, rows, parameters), zero where unused."""
        if self.direct:
            return values.unsqueeze(-1)
        out = values.new_zeros(self.columns * self.width, values.shape[1])
        out = out.index_copy(0, self.flat, values)
        return out.view(self.columns, self.width, -1).transpose(1, 2)


def bound_of(count: int) -> float:
    """1 / sqrt(count)."""
    return 1.0 / math.sqrt(max(count, 1))
