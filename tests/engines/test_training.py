"""The training loop: resumes exactly, keeps the best weights, explains what went wrong."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import vaca
from vaca.engines.train_config import TrainConfig
from vaca.engines.training import train
from vaca.errors import TrainingError

ROWS = 60


class Problem:
    """A small noisy regression whose loss also draws from the generator."""

    def __init__(self) -> None:
        made = torch.Generator().manual_seed(3)
        self.x = torch.randn(ROWS, 2, generator=made)
        self.y = self.x.sum(1, keepdim=True).sin()
        self.module = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
        with torch.no_grad():
            for p in self.module.parameters():
                p.copy_(torch.randn(p.shape, generator=made) * 0.5)
        self.seen: list[float] = []
        self.validations = 0
        self.stop_after: int | None = None

    def loss(self, index: torch.Tensor, t: float, generator: torch.Generator) -> torch.Tensor:
        self.seen.append(t)
        noise = 0.01 * torch.randn(len(index), 1, generator=generator)
        return (self.module(self.x[index]) + noise - self.y[index]).square().mean()

    def validate(self) -> float:
        self.validations += 1
        if self.stop_after is not None and self.validations > self.stop_after:
            raise KeyboardInterrupt
        return float((self.module(self.x) - self.y).square().mean())

    def run(self, config: TrainConfig, **kwargs):
        return train(
            self.module,
            loss=self.loss,
            rows=ROWS,
            validate=kwargs.pop("validate", self.validate),
            config=config,
            generator=torch.Generator().manual_seed(kwargs.pop("seed", 0)),
            progress=False,
            **kwargs,
        )

    def weights(self) -> torch.Tensor:
        return torch.cat([p.detach().flatten() for p in self.module.parameters()])


CONFIG = TrainConfig(epochs=30, batch_size=16, lr=0.02, patience=None, checkpoint_every=0.0)


def test_the_loss_falls_and_the_history_has_one_row_per_epoch():
    problem = Problem()
    history = problem.run(CONFIG)
    frame = history.frame()
    assert list(frame["epoch"]) == list(range(1, 31))
    assert frame["validation"].iloc[-1] < 0.2 * frame["validation"].iloc[0]
    assert history.stopped == "epochs"
    assert problem.seen[0] == 0.0 and 0.9 < problem.seen[-1] < 1.0
    assert not problem.module.training


def test_a_table_of_more_rows_than_the_steps_can_see_costs_no_more():
    problem = Problem()
    config = replace(CONFIG, epochs=2, steps=3)
    history = problem.run(config)
    assert len(problem.seen) == 6 and 3 * config.batch_size < ROWS
    assert all(0.0 < loss < 50.0 for loss in history.loss)
    whole = Problem()
    whole.run(replace(CONFIG, epochs=2, steps=ROWS))
    same = Problem()
    same.run(replace(CONFIG, epochs=2))
    assert torch.equal(whole.weights(), same.weights())


def test_same_seed_same_numbers_other_seed_other_numbers():
    runs = [Problem() for _ in range(3)]
    for run, seed in zip(runs, (0, 0, 1), strict=True):
        run.run(CONFIG, seed=seed)
    assert torch.equal(runs[0].weights(), runs[1].weights())
    assert not torch.equal(runs[0].weights(), runs[2].weights())


def test_the_global_random_state_is_untouched():
    problem = Problem()
    before = torch.random.get_rng_state()
    problem.run(CONFIG)
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize(
    "config",
    [
        CONFIG,
        replace(CONFIG, ema=0.9, schedule="onecycle", weight_decay=1e-3, optimizer="adamw"),
        replace(CONFIG, schedule="cosine", grad_clip=0.5, validate_every=3),
    ],
    ids=["plain", "ema-onecycle", "cosine-clip"],
)
def test_a_killed_run_resumes_to_the_same_numbers(tmp_path, config):
    whole = Problem()
    expected = whole.run(config)

    path = tmp_path / "run.safetensors"
    killed = Problem()
    killed.stop_after = 7
    with pytest.raises(KeyboardInterrupt):
        killed.run(config, checkpoint=path)
    assert path.exists()

    resumed = Problem()
    with torch.no_grad():
        for p in resumed.module.parameters():
            p.zero_()  # whatever it starts from, the checkpoint decides
    history = resumed.run(config, checkpoint=path, seed=99)
    assert torch.equal(whole.weights(), resumed.weights())
    columns = ["epoch", "loss", "validation", "lr"]
    assert expected.frame()[columns].equals(history.frame()[columns])
    assert history.best_epoch == expected.best_epoch
    assert not path.exists()
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_of_another_fit_is_refused(tmp_path):
    path = tmp_path / "run.safetensors"
    killed = Problem()
    killed.stop_after = 2
    with pytest.raises(KeyboardInterrupt):
        killed.run(CONFIG, checkpoint=path, fingerprint="a")
    with pytest.raises(TrainingError, match="another fit.*fingerprint"):
        Problem().run(CONFIG, checkpoint=path, fingerprint="b")
    with pytest.raises(TrainingError, match="another fit.*config"):
        Problem().run(replace(CONFIG, lr=0.5), checkpoint=path, fingerprint="a")


def test_a_damaged_checkpoint_is_refused(tmp_path):
    path = tmp_path / "run.safetensors"
    path.write_bytes(b"\x00" * 40)
    with pytest.raises(TrainingError, match="cannot be read"):
        Problem().run(CONFIG, checkpoint=path)


def test_the_best_weights_are_kept_and_patience_stops():
    problem = Problem()
    scores = iter([3.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0])
    kept: list[torch.Tensor] = []

    def validate() -> float:
        kept.append(problem.weights())
        return next(scores)

    history = problem.run(replace(CONFIG, patience=4), validate=validate)
    assert history.stopped == "patience"
    assert history.best_epoch == 2 and len(history.epoch) == 6
    assert torch.equal(problem.weights(), kept[1])


def test_the_average_is_what_is_validated_and_kept():
    plain, averaged = Problem(), Problem()
    plain.run(replace(CONFIG, epochs=3), validate=None)
    averaged.run(replace(CONFIG, epochs=3, ema=0.95), validate=None)
    assert not torch.equal(plain.weights(), averaged.weights())
    # Same steps were taken: the average lies between the start and the end.
    start = Problem().weights()
    assert (averaged.weights() - start).norm() < (plain.weights() - start).norm()


def test_without_validation_the_last_weights_stay():
    problem = Problem()
    history = problem.run(replace(CONFIG, patience=2), validate=None)
    assert history.best_epoch == 30 and math.isnan(history.best)


def test_nan_loss_stops_with_an_explanation():
    problem = Problem()
    with pytest.raises(TrainingError, match=r"flow: the loss became nan in epoch 1.*smaller lr"):
        train(
            problem.module,
            loss=lambda i, t, g: problem.loss(i, t, g) * float("nan"),
            rows=ROWS,
            validate=None,
            config=CONFIG,
            generator=torch.Generator(),
            label="flow",
        )
    with pytest.raises(TrainingError, match="validation score became inf"):
        problem.run(CONFIG, validate=lambda: math.inf)


def test_a_time_budget_stops_cleanly_and_runs_the_schedule_out():
    problem = Problem()
    config = replace(CONFIG, epochs=10**6, time_budget=0.2, schedule="cosine")
    history = problem.run(config)
    assert history.stopped == "time"
    assert problem.seen[-1] > 0.5  # the clock, not the epochs, moved t
    assert history.lr[-1] < 0.5 * config.lr


def test_a_loss_may_fill_the_gradients_itself():
    usual, manual = Problem(), Problem()

    def own_backward(index, t, generator):
        value = manual.loss(index, t, generator)
        value.backward()
        return value.detach()

    usual.run(CONFIG)
    train(
        manual.module,
        loss=own_backward,
        rows=ROWS,
        validate=manual.validate,
        config=CONFIG,
        generator=torch.Generator().manual_seed(0),
    )
    assert torch.equal(usual.weights(), manual.weights())


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"epochs": 0}, "epochs must be at least 1"),
        ({"lr": 0.0}, "lr must be positive"),
        ({"schedule": "step"}, "schedule must be one of"),
        ({"ema": 1.0}, "ema must lie strictly"),
        ({"patience": 0}, "patience must be at least 1"),
        ({"optimizer": "sgd"}, "optimizer must be"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(change, match):
    with pytest.raises(ValueError, match=match):
        replace(CONFIG, **change)


@pytest.mark.parametrize(
    ("engine", "planned"),
    [
        (vaca.VACA, {"steps": 10**7}),
        (vaca.MultiCVAE, {"steps": 10**7}),
        (vaca.CausalFlow, {"steps": 10**7, "polish_steps": 10**7}),
        (vaca.CAREFL, {"epochs": 10**6}),
    ],
)
def test_every_engine_that_trains_keeps_a_time_budget(engine, planned):
    """Without one, these fits would go on for days."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60)})
    graph = vaca.CausalGraph.from_edges([("a", "b")])
    model = engine(graph, time_budget=0.3, **planned).fit(frame, progress=False)
    assert len(model.sample(3, seed=0)) == 3
