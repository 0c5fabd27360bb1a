"""What an engine learns from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vaca.table.schema import Columns

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["FitInput", "RowWeights", "weight_tensors"]

#: Weights of the training rows and of the validation rows.
RowWeights = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class FitInput:
    """What an engine learns from: encoded rows, with their weights if there are any.

    Attributes
    ----------
    train, validation : dict of array
    weights : tuple of array (n,), optional
        Of the training rows and of the validation rows.
    progress : bool, optional
        False for no progress bar.
    checkpoint : path, optional
        A file to go on from, and to keep up.
    """

    train: Columns
    validation: Columns
    weights: RowWeights | None = None
    progress: bool | None = None
    checkpoint: str | Path | None = None

    def together(self) -> tuple[Columns, np.ndarray]:
        """All rows, and the weight of each."""
        rows = {c: np.concatenate([self.train[c], self.validation[c]]) for c in self.train}
        n = len(next(iter(rows.values())))
        return rows, np.ones(n) if self.weights is None else np.concatenate(self.weights)


def weight_tensors(weights: RowWeights | None, device: str) -> tuple[Tensor | None, Tensor | None]:
    """The weights, of mean 1, where a network is trained on them."""
    if weights is None:
        return None, None
    import torch

    own, others = (
        torch.as_tensor(w / w.mean(), dtype=torch.float32, device=device) for w in weights
    )
    return own, others
