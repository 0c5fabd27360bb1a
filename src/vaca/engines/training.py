"""One plain training loop: a module and a loss in, the best weights and a history out.

Training is a function, not a framework. :func:`train` owns the optimiser, the order of the rows,
early stopping, checkpoints and the progress bar; everything about a model is in the two callables
that it is given, ``loss`` and ``validate``.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from vaca.engines.forecast import Forecast
from vaca.engines.train_config import History, TrainConfig
from vaca.errors import TrainingError, VacaError
from vaca.model.workers import keep_memory
from vaca.table.atomic import complete
from vaca.table.progress import progress_bar

__all__ = ["train"]

_FORMAT = 1


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute on one thread: the networks are small, and threads wait for one another."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@one_thread()
def train(
    module: nn.Module,
    *,
    loss: Callable[[Tensor, float, torch.Generator], Tensor],
    rows: int,
    validate: Callable[[], float] | None,
    config: TrainConfig,
    generator: torch.Generator,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = True,
    label: str = "",
    fingerprint: str = "",
) -> History:
    """Minimise ``loss`` over the parameters of ``module``; leave the best weights in it.

    Parameters
    ----------
    module : nn.Module
        Changed in place.
    loss : callable
        ``loss(index, t, generator)`` gives the scalar loss of the rows ``index`` (LongTensor on
        the module's device), with ``t`` the fraction of planned training that is done, in [0, 1].
        It normally returns a tensor with a graph. A tensor that does not require a gradient means
        that the callable has already filled ``.grad`` itself (for objectives that send different
        losses to different parameters).
    rows : int
        Number of training rows.
    validate : callable or None
        Gives a score, lower is better. Must not depend on hidden random state, so that a resumed
        run sees the same scores. None: the last weights are kept.
    config : TrainConfig
        How to train.
    generator : torch.Generator
        Source of the row order and of whatever ``loss`` draws.
    checkpoint : path, optional
        A file that is written every ``config.checkpoint_every`` seconds, atomically. When it is
        there at the start, training resumes from it and gives the same numbers as a run that was
        never stopped. It is removed when training ends.
    progress : bool
        False for no progress bar; without a terminal there is none.
    label : str
        Text in front of the progress bar and in errors.
    fingerprint : str
        Anything that identifies data and model. A checkpoint with another one is refused.

    Returns
    -------
    History

    Raises
    ------
    TrainingError
        The loss or the validation score is NaN or infinite, or the checkpoint is of another fit.

    Examples
    --------
    >>> x = torch.linspace(-1, 1, 64).unsqueeze(1)
    >>> y = 3 * x
    >>> line = nn.Linear(1, 1)
    >>> history = train(
    ...     line,
    ...     loss=lambda index, t, generator: (line(x[index]) - y[index]).square().mean(),
    ...     rows=64,
    ...     validate=lambda: float((line(x) - y).square().mean()),
    ...     config=TrainConfig(epochs=100, batch_size=16, lr=0.1),
    ...     generator=torch.Generator().manual_seed(0),
    ...     progress=False,
    ... )
    >>> history.best < 1e-3
    True
    """
    if rows < 1:
        raise VacaError("There are no rows to train on.")
    keep_memory()
    run = _Run(module, config, generator, label, fingerprint, rows)
    path = None if checkpoint is None else Path(checkpoint)
    if path is not None and path.exists():
        run.load(path)

    steps = max(1, math.ceil(rows / config.batch_size))
    used = rows  # in an epoch
    if config.steps is not None and config.steps < steps:
        steps, used = config.steps, config.steps * config.batch_size
    before = run.history.seconds[-1] if run.history.seconds else 0.0
    start = time.perf_counter() - before
    saved = time.perf_counter()
    done, left = 0, steps * (config.epochs - run.epoch)
    watch = Forecast(label or "training", left, "a time_budget, or fewer steps, would shorten it")
    with progress_bar(
        label or "training", config.epochs, unit="epochs", done=run.epoch, wanted=progress
    ) as bar:
        while not run.history.stopped:
            epoch = run.epoch
            if not module.training:
                module.train()
            order = torch.randperm(rows, generator=generator, device=generator.device)[:used]
            total = 0.0
            t = epoch / config.epochs
            for step, index in enumerate(order.to(run.device).tensor_split(steps)):
                t = (epoch + step / steps) / config.epochs
                if config.time_budget is not None:
                    clock = (time.perf_counter() - start) / max(config.time_budget, 1e-9)
                    t = min(1.0, max(t, clock))
                value = run.step(loss, index, t)
                if not math.isfinite(value):
                    raise _diverged(label, "loss", value, epoch + 1, config)
                total += value * len(index)
                done += 1
                if progress and config.time_budget is None:
                    watch.tell(done)
            run.epoch += 1
            elapsed = time.perf_counter() - start
            out_of_time = config.time_budget is not None and elapsed >= config.time_budget
            last = run.epoch == config.epochs or out_of_time
            score = math.nan
            if validate is not None and (run.epoch % config.validate_every == 0 or last):
                score = run.validate(validate)
                if not math.isfinite(score):
                    raise _diverged(label, "validation score", score, epoch + 1, config)
            run.record(total / used, score, config.lr * config.scale(t, epoch), elapsed)
            bar.show(*_told(run.history, config))
            stale = run.epoch - run.history.best_epoch
            if run.epoch >= config.epochs:
                run.history.stopped = "epochs"
            elif out_of_time:
                run.history.stopped = "time"
            elif validate is not None and config.patience is not None and stale >= config.patience:
                run.history.stopped = "patience"
            elif path is not None and time.perf_counter() - saved >= config.checkpoint_every:
                run.save(path)
                saved = time.perf_counter()
    run.finish(validate is not None)
    if path is not None:
        path.unlink(missing_ok=True)
    return run.history


class _Run:
    """State of one training run: everything that a checkpoint must hold."""

    def __init__(
        self,
        module: nn.Module,
        config: TrainConfig,
        generator: torch.Generator,
        label: str,
        fingerprint: str,
        rows: int,
    ) -> None:
        self.module = module
        self.config = config
        self.generator = generator
        self.label = label
        self.parameters: list[Tensor] = [p for p in module.parameters() if p.requires_grad]
        if not self.parameters:
            raise VacaError("The module has no parameters to train.")
        self.device = self.parameters[0].device
        kind = torch.optim.AdamW if config.optimizer == "adamw" else torch.optim.Adam
        spared = [p for p in self.parameters if getattr(p, "no_decay", False)]
        decayed = [p for p in self.parameters if not getattr(p, "no_decay", False)]
        groups = [{"params": decayed}, {"params": spared, "weight_decay": 0.0}]
        self.optimizer = kind(
            [group for group in groups if group["params"]],
            lr=config.lr,
            weight_decay=config.weight_decay,
            betas=(0.9, config.beta2),
            fused=self.device.type in ("cpu", "cuda"),
        )
        self.history = History()
        self.epoch = 0
        self.steps = 0
        self.best: dict[str, Tensor] = {}
        self.average = [p.detach().clone() for p in self.parameters] if config.ema else []
        settings = asdict(config)
        # A resumed run may be given more time or other checkpoint intervals: not the same numbers
        # in the first case, but what the user asked for.
        del settings["time_budget"], settings["checkpoint_every"]
        self.identity = {
            "format": _FORMAT,
            "fingerprint": fingerprint,
            "rows": rows,
            "config": settings,
        }

    def step(
        self, loss: Callable[[Tensor, float, torch.Generator], Tensor], index: Tensor, t: float
    ) -> float:
        config = self.config
        for group in self.optimizer.param_groups:
            group["lr"] = config.lr * config.scale(t, self.epoch)
        self.optimizer.zero_grad(set_to_none=True)
        value = loss(index, t, self.generator)
        number = float(value.detach())
        if not math.isfinite(number):
            return number
        if value.requires_grad:
            value.backward()
        if config.grad_clip is not None:
            nn.utils.clip_grad_norm_(self.parameters, config.grad_clip)
        self.optimizer.step()
        self.steps += 1
        if config.ema is not None:
            # The average forgets faster at the start, when the weights are still far off.
            keep = min(config.ema, (1 + self.steps) / (10 + self.steps))
            with torch.no_grad():
                torch._foreach_lerp_(self.average, self.parameters, 1.0 - keep)
        return number

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Put the averaged weights, if any, in place of the current ones."""
        if not self.average:
            yield
            return
        current = [p.detach().clone() for p in self.parameters]
        with torch.no_grad():
            torch._foreach_copy_(self.parameters, self.average)
        try:
            yield
        finally:
            with torch.no_grad():
                torch._foreach_copy_(self.parameters, current)

    def validate(self, validate: Callable[[], float]) -> float:
        self.module.eval()
        with self.averaged(), torch.no_grad():
            score = float(validate())
            if score < self.history.best - self.config.min_delta or not self.best:
                self.history.best = score
                self.history.best_epoch = self.epoch
                self.best = {k: v.detach().clone() for k, v in self.module.state_dict().items()}
        return score

    def record(self, loss: float, score: float, lr: float, elapsed: float) -> None:
        history = self.history
        history.epoch.append(self.epoch)
        history.loss.append(loss)
        history.validation.append(score)
        history.lr.append(lr)
        history.seconds.append(elapsed)

    def finish(self, validated: bool) -> None:
        if validated and self.best:
            self.module.load_state_dict(self.best)
        elif self.average:
            with torch.no_grad():
                torch._foreach_copy_(self.parameters, self.average)
        if not validated:
            self.history.best_epoch = self.epoch
            self.history.best = math.nan
        self.module.eval()

    def save(self, path: Path) -> None:
        from safetensors.torch import save_file

        tensors: dict[str, Tensor] = {"generator": self.generator.get_state()}
        tensors |= {f"module/{k}": v for k, v in self.module.state_dict().items()}
        tensors |= {f"best/{k}": v for k, v in self.best.items()}
        tensors |= {f"average/{i}": v for i, v in enumerate(self.average)}
        for i, state in self.optimizer.state_dict()["state"].items():
            tensors |= {f"adam/{i}/{k}": torch.as_tensor(v) for k, v in state.items()}
        # One copy each: safetensors refuses tensors that share memory.
        tensors = {k: v.detach().cpu().clone().contiguous() for k, v in tensors.items()}
        document = {
            "identity": self.identity,
            "epoch": self.epoch,
            "steps": self.steps,
            "history": asdict(self.history),
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        with complete(path) as part:
            save_file(tensors, part, metadata={"vaca_training": json.dumps(document)})

    def load(self, path: Path) -> None:
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(path, framework="pt") as file:
                document = json.loads((file.metadata() or {})["vaca_training"])
                tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        except (SafetensorError, KeyError, ValueError, OSError) as error:
            raise TrainingError(
                f"The checkpoint {path} cannot be read ({error}). Delete it to start afresh."
            ) from error
        if document["identity"] != self.identity:
            differing = sorted(
                key for key in self.identity if document["identity"].get(key) != self.identity[key]
            )
            raise TrainingError(
                f"The checkpoint {path} belongs to another fit (different: "
                f"{', '.join(differing)}). Give another path, or delete it to start afresh."
            )

        def part(prefix: str) -> dict[str, Tensor]:
            return {k[len(prefix) :]: v for k, v in tensors.items() if k.startswith(prefix)}

        try:
            self.module.load_state_dict(part("module/"))
        except RuntimeError as error:
            raise TrainingError(
                f"The checkpoint {path} holds a model of another shape. "
                "Give another path, or delete it to start afresh."
            ) from error
        self.best = {k: v.to(self.device) for k, v in part("best/").items()}
        self.average = [tensors[f"average/{i}"].to(self.device) for i in range(len(self.average))]
        state: dict[int, dict[str, Any]] = {}
        for key, value in part("adam/").items():
            number, name = key.split("/", 1)
            state.setdefault(int(number), {})[name] = value
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": state, "param_groups": groups})
        self.generator.set_state(tensors["generator"])
        self.epoch = document["epoch"]
        self.steps = document["steps"]
        self.history = History(**document["history"])


def _diverged(
    label: str, what: str, value: float, epoch: int, config: TrainConfig
) -> TrainingError:
    name = f"{label}: " if label else ""
    clip = "" if config.grad_clip is not None else ", set grad_clip (for example 1.0)"
    return TrainingError(
        f"{name}the {what} became {value} in epoch {epoch}, so training stopped. Likely causes: "
        "a learning rate that is too high, a column with extreme outliers or a nearly constant "
        f"column. Try a smaller lr (now {config.lr:g}; a tenth of it){clip}, and look at the range "
        "of each column."
    )


def _told(history: History, config: TrainConfig) -> tuple[int, int, str]:
    """What a progress bar shows: epochs done, epochs in all, and how well it goes."""
    text = f"loss {history.loss[-1]:.4g}"
    if math.isfinite(history.best):
        text += f"  best validation {history.best:.4g} (epoch {history.best_epoch})"
    epoch, total = history.epoch[-1], config.epochs
    if config.time_budget is not None:  # the time left is then that of the budget
        speed = epoch / max(history.seconds[-1], 1e-9)
        total = max(epoch, min(total, round(speed * config.time_budget)))
    return epoch, total, text
