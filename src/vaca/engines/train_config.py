"""How to train, and what came of it: configuration, history, and what identifies a run."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from torch import Tensor

from vaca.errors import VacaError

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "History",
    "TrainConfig",
    "fingerprint",
    "patience_in_epochs",
    "plan_epochs",
]

Schedule = Literal["constant", "exponential", "onecycle", "cosine"]

_SCHEDULES = ("constant", "exponential", "onecycle", "cosine")


@dataclass(frozen=True)
class TrainConfig:
    r"""How to train, independent of what is trained.

    Parameters
    ----------
    epochs : int
        Planned passes over the rows.
    batch_size : int
        Rows per step at most; the rows of an epoch are split into equal batches.
    steps : int or None
        Steps of an epoch at most, so that a table of more rows costs no more; None: all rows.
    lr : float
        Peak learning rate.
    weight_decay : float
        L2 penalty (``optimizer="adam"``) or decoupled decay (``"adamw"``). Parameters that carry
        the attribute ``no_decay`` are spared.
    patience : int or None
        Stop after this many epochs without a better validation score. None: never.
    schedule : {"constant", "exponential", "onecycle", "cosine"}
        Learning rate over the fraction :math:`t` of planned training that is done:
        constant; ``lr * decay ** epoch``; warm-up over the first quarter, then a cosine to
        (nearly) zero; a cosine to zero from the start.
    decay : float
        Factor per epoch of the exponential schedule.
    grad_clip : float or None
        Largest norm of the gradient.
    ema : float or None
        Validate and keep an exponential moving average of the weights with this factor per step.
    validate_every : int
        Epochs between validations. The last epoch is always validated.
    min_delta : float
        A validation score counts as better when it is lower by more than this.
    optimizer : {"adam", "adamw"}
        Where the weight decay goes.
    beta2 : float
        Memory of Adam for the size of the gradient; less of it suits a loss whose scale changes.
    time_budget : float or None
        Seconds after which training stops cleanly with the best weights so far. Schedules then
        follow the clock when it runs ahead of the epochs, so that they still finish.
    checkpoint_every : float
        Seconds between checkpoints (written at the end of an epoch).

    Examples
    --------
    >>> TrainConfig(epochs=10, batch_size=100, lr=0.01).schedule
    'constant'
    """

    epochs: int = 200
    batch_size: int = 256
    steps: int | None = None
    lr: float = 1e-3
    weight_decay: float = 0.0
    patience: int | None = 50
    schedule: Schedule = "constant"
    decay: float = 0.99
    grad_clip: float | None = None
    ema: float | None = None
    validate_every: int = 1
    min_delta: float = 0.0
    optimizer: Literal["adam", "adamw"] = "adam"
    beta2: float = 0.999
    time_budget: float | None = None
    checkpoint_every: float = 30.0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "validate_every"):
            if int(getattr(self, name)) < 1:
                raise VacaError(f"{name} must be at least 1, got {getattr(self, name)!r}.")
        if not self.lr > 0:
            raise VacaError(f"lr must be positive, got {self.lr!r}.")
        if self.schedule not in _SCHEDULES:
            raise VacaError(f"schedule must be one of {_SCHEDULES}, got {self.schedule!r}.")
        if self.optimizer not in ("adam", "adamw"):
            raise VacaError(f"optimizer must be 'adam' or 'adamw', got {self.optimizer!r}.")
        if self.ema is not None and not 0 < self.ema < 1:
            raise VacaError(f"ema must lie strictly between 0 and 1, got {self.ema!r}.")
        if self.patience is not None and self.patience < 1:
            raise VacaError(f"patience must be at least 1 or None, got {self.patience!r}.")

    def scale(self, t: float, epoch: int) -> float:
        """Factor on the peak learning rate at fraction ``t`` of training, in epoch ``epoch``."""
        if self.schedule == "exponential":
            return self.decay**epoch
        if self.schedule == "cosine":
            return 0.5 * (1.0 + math.cos(math.pi * min(t, 1.0)))
        if self.schedule == "onecycle":
            warm = 0.25
            if t < warm:
                return 0.04 + 0.96 * 0.5 * (1.0 - math.cos(math.pi * t / warm))
            return 1e-4 + 0.5 * (1.0 + math.cos(math.pi * min((t - warm) / (1.0 - warm), 1.0)))
        return 1.0


def patience_in_epochs(share: float | None, epochs: int) -> int | None:
    """Epochs without progress before an early stop: a share of the planned ones, at least 5.

    >>> patience_in_epochs(0.1, 500)
    50
    """
    if share is None:
        return None
    return max(5, math.ceil(share * epochs))


def plan_epochs(steps: int, rows: int, batch_size: int) -> tuple[int, int]:
    """Epochs and batch size for a number of gradient steps; few rows get small batches.

    >>> plan_epochs(2000, 5000, 500)
    (200, 500)
    """
    batch = min(batch_size, max(32, rows // 8))
    return max(1, math.ceil(steps / math.ceil(rows / batch))), batch


def fingerprint(parameters: Mapping[str, Any], *rows: Tensor) -> str:
    """What tells one fit from another: its parameters and its rows."""
    named = {name: value for name, value in parameters.items() if name != "time_budget"}
    digest = hashlib.sha256(repr(sorted(named.items())).encode())
    for part in rows:
        digest.update(part.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


@dataclass
class History:
    """What happened, one entry per epoch.

    Attributes
    ----------
    epoch, loss, validation, lr, seconds : list
        Epoch number from 1, mean training loss, validation score (NaN where not validated),
        learning rate of the last step, seconds since the start.
    best_epoch : int
        Epoch of the weights that were kept.
    best : float
        Their validation score.
    stopped : str
        ``"epochs"``, ``"patience"`` or ``"time"``.
    """

    epoch: list[int] = field(default_factory=list)
    loss: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)
    lr: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    best_epoch: int = 0
    best: float = math.inf
    stopped: str = ""

    def frame(self) -> pd.DataFrame:
        """The history as a DataFrame with one row per epoch."""
        import pandas as pd

        names = ("epoch", "loss", "validation", "lr", "seconds")
        frame = pd.DataFrame({name: getattr(self, name) for name in names})
        frame.attrs["stopped"] = self.stopped
        return frame
