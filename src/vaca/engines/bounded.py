"""Build a network as a file describes it, without letting the file exhaust memory or time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor
from torch.overrides import TorchFunctionMode

from vaca.errors import VacaError

#: Starting weights and masks come on top of the stored weights: this many times as much.
TIMES = 50
#: For small models, whose networks hold more than their weights.
SPARE_NUMBERS, SPARE_CALLS = 5_000_000, 20_000
#: Functions that take sizes and make tensors of them.
MAKERS = frozenset(
    [
        "arange",
        "empty",
        "expand",
        "eye",
        "full",
        "linspace",
        "normal",
        "one_hot",
        "ones",
        "rand",
        "randn",
        "repeat",
        "tile",
        "zeros",
    ]
)


class Bounded(TorchFunctionMode):
    """While it is active, torch makes no more than a model of the stored size can need.

    A file that says "layers: 1000000" is refused after some thousand tensors, and one that says
    "hidden: 1000000000" before the first.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        super().__init__()
        self.numbers = SPARE_NUMBERS + TIMES * sum(a.size for a in arrays.values())
        self.calls = SPARE_CALLS + 1_000 * len(arrays)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Count what a call will make, then make it."""
        kwargs = kwargs or {}
        self.calls -= 1
        if getattr(func, "__name__", "").removeprefix("new_") in MAKERS:
            given = (*args, *kwargs.values())
            lists = [k for k in given if isinstance(k, list | tuple)]
            for sizes in ([k for k in given if isinstance(k, int)], *lists):
                if all(isinstance(k, int) for k in sizes):
                    self._need(math.prod(max(k, 1) for k in sizes))
        self._need(0)
        result = func(*args, **kwargs)
        if isinstance(result, Tensor):
            self.numbers -= result.numel()
        return result

    def _need(self, numbers: int) -> None:
        if numbers > self.numbers or self.calls < 0:
            raise VacaError("it describes a larger network than the one whose weights it holds")
