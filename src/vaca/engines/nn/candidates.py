"""Several kinds of mechanism for every column, in training side by side; the data choose.

The likelihood is a sum over columns that share no parameters. So each column has an early stop of
its own, and a kind of its own; one that has stopped rests and costs nothing more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from vaca.engines.nn.asking import COLUMNS_AT_ONCE, FEW_ROWS, Asked
from vaca.engines.nn.flow_network import Head, Mechanisms
from vaca.engines.nn.learning import learn, log_prob, turned

__all__ = ["Candidates", "Chosen"]


class Chosen(nn.Module):
    """One mechanism per column, each out of one of several stacks.

    Parameters
    ----------
    stacks : sequence of Mechanisms
        Over the same columns.

    Attributes
    ----------
    choice : LongTensor (d,)
        Which stack a column is taken from.
    """

    choice: Tensor

    def __init__(self, stacks: Sequence[Mechanisms]) -> None:
        super().__init__()
        self.stacks = nn.ModuleList(stacks)
        self.register_buffer("choice", torch.zeros(stacks[0].count, dtype=torch.long))
        self.train()

    @property
    def heads(self) -> tuple[Head, ...]:
        """What the columns are."""
        return self.stacks[0].heads  # type: ignore[return-value]

    def features(self, values: Tensor) -> Tensor:
        """What the networks see of the rows; the same for all stacks."""
        return self.stacks[0].features(values)  # type: ignore[operator]

    def log_prob(self, values: Tensor) -> Tensor:
        """Log-likelihood (n, d) of each column given its parents."""
        features = self.features(values)
        tables = [log_prob(stack, values, features) for stack in self.stacks]  # type: ignore[arg-type]
        return torch.stack(tables)[self.choice, :, torch.arange(len(self.choice))].T

    def loss(
        self,
        values: Tensor,
        features: Tensor,
        weights: Tensor | None,
        penalties: Sequence[float],
    ) -> Tensor:
        """As that of `Candidates`, of the mechanisms that are chosen; all have the penalty."""
        own, seen = turned(values, features)
        total, choice = values.new_zeros(()), self.choice.tolist()
        for k, (stack, penalty) in enumerate(zip(self.stacks, penalties, strict=True)):
            columns = [j for j, taken in enumerate(choice) if taken == k]
            total += learn(stack, own, seen, weights, penalty, columns)  # type: ignore[arg-type]
        return total

    def asked(self, columns: Sequence[int], rows: int) -> list[Asked]:
        """The mechanisms of these columns, by their stacks; for many rows a few columns each."""
        size = COLUMNS_AT_ONCE if rows > FEW_ROWS else max(1, len(columns))
        key = (size, *columns)
        if key not in self._ready:
            choice, parts = self.choice.tolist(), []
            for number, stack in enumerate(self.stacks):
                own = [j for j in columns if choice[j] == number]
                for a in range(0, len(own), size):
                    parts.append(Asked(stack, own[a : a + size]))  # type: ignore[arg-type]
            self._ready[key] = parts
        return self._ready[key]

    def train(self, mode: bool = True) -> Chosen:
        """Forget what was made ready to be asked: weights may have changed."""
        self._ready: dict[tuple[int, ...], list[Asked]] = {}
        return super().train(mode)


class Candidates(nn.Module):
    """Stacks in training beside the best mechanism so far of every column of each.

    Parameters
    ----------
    build : callable
        ``build(number)`` makes stack ``number`` with its initial weights; the same each time.
    kinds : int
        How many there are.
    patience : float, optional
        Validations without an improvement after which a column rests; without it none does.

    Attributes
    ----------
    score : Tensor (kinds, d)
        The lowest held-out negative log-likelihood so far of each column, by kind.
    waited : Tensor (kinds, d)
        Validations since then.
    """

    score: Tensor
    waited: Tensor

    def __init__(
        self, build: Callable[[int], Mechanisms], kinds: int, patience: float | None = None
    ) -> None:
        super().__init__()
        self.live = nn.ModuleList(build(k) for k in range(kinds))
        self.best = Chosen([build(k) for k in range(kinds)]).requires_grad_(False)
        shape = (kinds, len(self.best.choice))
        self.register_buffer("score", torch.full(shape, math.inf))
        self.register_buffer("waited", torch.zeros(shape))
        self.patience = math.inf if patience is None else patience

    def learning(self, kind: int) -> list[int]:
        """The columns of a stack that do not rest."""
        return (self.waited[kind] < self.patience).nonzero().flatten().tolist()

    def features(self, values: Tensor) -> Tensor:
        """What the networks see of the rows; the same for all stacks."""
        return self.live[0].features(values)  # type: ignore[operator]

    def loss(
        self,
        values: Tensor,
        features: Tensor,
        weights: Tensor | None,
        penalties: Sequence[float],
    ) -> Tensor:
        """Penalised mean negative log-likelihood, summed over stacks, which have its gradients.

        Columns that rest have none, and count with their lowest held-out score.

        Parameters
        ----------
        values, features : Tensors (n, d), (n, features)
        weights : Tensor (n,), optional
            Of the rows.
        penalties : sequence of float
            For each stack the factor on the sum of its squared weights.
        """
        own, seen = turned(values, features)
        total = self.score[self.waited >= self.patience].sum().to(values.dtype)
        for k, (stack, penalty) in enumerate(zip(self.live, penalties, strict=True)):
            columns = self.learning(k)
            total += learn(stack, own, seen, weights, penalty, columns)  # type: ignore[arg-type]
        return total

    def keep(self, values: Tensor, features: Tensor, weights: Tensor | None = None) -> float:
        """Validate; keep the mechanisms that improved; the sum of the best scores so far."""
        for k, (stack, best) in enumerate(zip(self.live, self.best.stacks, strict=True)):
            columns = self.learning(k)
            each = -log_prob(stack, values, features, columns).double()  # type: ignore[arg-type]
            each = each if weights is None else weights[:, None] * each
            nll = each.mean(0).to(self.score.dtype)
            better = (nll < self.score[k]).nonzero().flatten().tolist()
            best.copy_columns(stack, better)  # type: ignore[operator]
            self.score[k, better] = nll[better]
            self.waited[k] += 1
            self.waited[k, better] = 0
        return float(self.score.sum())

    @torch.no_grad()
    def choose(self, values: Tensor, margin: float = 1.0) -> Chosen:
        """The best mechanisms, each column from the first stack that is not clearly beaten.

        A later stack has to gain more than ``margin`` standard errors of the paired difference on
        the given held-out rows.
        """
        features = self.features(values)
        losses = [-log_prob(stack, values, features).double() for stack in self.best.stacks]  # type: ignore[arg-type]
        for j in range(len(self.best.choice)):
            for k in range(1, len(losses)):
                gain = losses[int(self.best.choice[j])][:, j] - losses[k][:, j]
                spread = gain.std(unbiased=False) / math.sqrt(len(gain))
                if gain.mean() > margin * spread:
                    self.best.choice[j] = k
        return self.best
