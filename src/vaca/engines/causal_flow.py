r"""Causal normalizing flow: one masked autoregressive spline layer whose mask is the graph.

.. math:: u_j = T_j(x_j \mid x_{pa(j)}), \qquad u_j \sim N(0, 1) \text{ independent}

:math:`T_j` is increasing in :math:`x_j`, so abduction is exact (:math:`u = T(x)`), the likelihood
is exact, and the Jacobian of :math:`T` has the zeros of the graph. Sampling inverts the layer
column by column in causal order, each column once.

Reference: A. Javaloy, P. Sanchez-Martin, I. Valera, "Causal normalizing flows: from theory to
practice", NeurIPS 2023.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from vaca.engines.columnwise import ColumnwiseEngine, normal_between
from vaca.engines.fit_input import FitInput, weight_tensors
from vaca.engines.nn.asking import Asked
from vaca.engines.nn.candidates import Candidates, Chosen
from vaca.engines.nn.flow_network import Head, Mechanisms
from vaca.engines.parameters import TrainingParameters
from vaca.engines.train_config import TrainConfig, fingerprint, patience_in_epochs
from vaca.engines.training import train
from vaca.table.columns import row_count
from vaca.table.schema import Columns, as_frame

__all__ = ["CausalFlow"]

#: Steps of a refit: enough for the answers to move as far as other rows would move them.
REFIT_STEPS, REFIT_LR = 100, 3e-3
#: Share of a time budget for the steps after the early stop.
POLISH_SHARE = 0.15


@dataclass(eq=False, repr=False, kw_only=True)
class CausalFlow(ColumnwiseEngine, TrainingParameters):
    r"""Exact, fast and accurate engine for tables of any column kinds.

    Every column has networks of its own that see the column's parents only. They give

    - for continuous columns a shift, a scale and a monotone rational-quadratic spline,
      :math:`u = S((x - \mu) e^{-s})`;
    - for counts the same, with the count as the cell :math:`[x - 1/2, x + 1/2)`;
    - for binary and ordinal columns level probabilities and one uniform noise with ordered
      thresholds;
    - for categorical columns level probabilities and Gumbel-max noise.

    For each column two kinds of mechanism are trained side by side: a location-scale model, in
    which parents act through :math:`\mu` and :math:`s` and the spline is the same for all rows,
    and one in which the spline changes with the parents too. The second is taken where it predicts
    held-out rows better by more than a standard error. A column that has not improved for
    `patience` rests.

    What all trained engines take is in `vaca.engines.parameters.TrainingParameters`.

    Parameters
    ----------
    width, depth : int
        Units and number of hidden layers of each column's network.
    bins : int
        Spline bins.
    bound : float
        The splines act on :math:`\pm` ``bound`` and are the identity beyond.
    steps : int
        Planned optimiser steps; they are turned into epochs by the number of rows.
    ema : float, optional
        See `vaca.engines.train_config.TrainConfig`.
    smooth_prior, free_prior : float
        Precision of the normal prior on the network weights of the location-scale and of the free
        mechanisms (as strong as that many rows).
    polish_steps, polish_lr
        Small steps on the training rows after the early stop, and their learning rate.
    jitter : float
        Standard deviation, in column sds, of the noise added to continuous values in training, so
        that repeated values have no infinite density.

    Attributes
    ----------
    history_ : DataFrame
        Loss and held-out negative log-likelihood per epoch.

    Examples
    --------
    >>> import vaca
    >>> scm = vaca.scms.load("mgraph-lin")
    >>> rows = scm.sample(200, seed=0)
    >>> flow = vaca.CausalFlow(scm.graph, steps=50).fit(rows)
    >>> flow.counterfactual(rows.head(3), do={"x1": 0.0})["x1"].tolist()
    [0.0, 0.0, 0.0]
    """

    _renamed = {"hidden": "width", "layers": "depth"}
    revision = 2

    width: int = 48
    depth: int = 2
    bins: int = 12
    bound: float = 5.0
    steps: int = 1400
    lr: float = 1e-2
    patience: float | None = 0.3
    ema: float | None = 0.995
    smooth_prior: float = 2.0
    free_prior: float = 1.0
    polish_steps: int = 200
    polish_lr: float = 1e-3
    jitter: float = 1e-3

    # ------------------------------------------------------------------ learning

    def _fit(self, given: FitInput) -> None:
        self._order()
        self._measure(given.train)
        generator, n = torch.Generator().manual_seed(self.seed), row_count(given.train)
        per_epoch = math.ceil(n / self.batch_size)
        epochs = max(1, math.ceil(self.steps / per_epoch))
        patience = patience_in_epochs(self.patience, epochs)
        every = max(1, math.ceil(10 / per_epoch))
        rest = None if patience is None else patience / every
        flows = Candidates(self._build, 2, rest).to(self.device)
        rows = given.train, given.validation
        values, held_out = (self._tensor(x).float().to(self.device) for x in rows)
        held_features = flows.features(held_out)
        own, others = weight_tensors(given.weights, self.device)
        history = train(
            flows,
            loss=self._loss(flows, values, own),
            rows=n,
            validate=lambda: flows.keep(held_out, held_features, others),
            config=TrainConfig(
                epochs=epochs,
                batch_size=self.batch_size,
                steps=self.steps,
                lr=self.lr,
                patience=patience,
                schedule="cosine",
                grad_clip=10.0,
                ema=self.ema,
                validate_every=every,
                time_budget=self._seconds(1.0 - POLISH_SHARE),
            ),
            generator=generator,
            checkpoint=given.checkpoint,
            progress=given.progress is not False,
            label="CausalFlow",
            fingerprint=fingerprint(self.get_params(deep=False), values, held_out),
        )
        self.history_ = history.frame()
        chosen, steps = flows.choose(held_out), (self.polish_steps, self.polish_lr)
        self._polish(chosen, values, own, *steps, generator, given.progress is not False)
        self._flows = chosen.double().eval()

    def _rows_wanted(self) -> int:
        return max(self.steps * self.batch_size, super()._rows_wanted())

    def _refit(self, train: Columns, weights: np.ndarray, seed: int) -> CausalFlow:
        """Some steps from this flow on the weighted rows; kinds of mechanism stay as they are."""
        result = copy(self)
        flows = deepcopy(self._flows).float()
        values = self._tensor(train).to(self.device, torch.float32)
        result._weigh_blocks(weights)
        own, _ = weight_tensors((weights, weights), self.device)
        generator = torch.Generator().manual_seed(seed)
        self._polish(flows, values, own, REFIT_STEPS, REFIT_LR, generator, progress=False)
        result._flows = flows.double().eval()
        return result

    def _loss(self, flows: Candidates | Chosen, values: Tensor, weights: Tensor | None) -> Any:
        """The penalised loss of some rows, which leaves its gradients in the flows."""
        continuous = [self.schema_.kind(c) == "continuous" for c in self._names]
        jitter = self.jitter * torch.tensor(continuous, device=self.device).float()
        # A normal prior on the weights of the networks, per row.
        penalties = [0.5 * prior / len(values) for prior in (self.smooth_prior, self.free_prior)]
        features = flows.features(values)

        def loss(index: Tensor, t: float, generator: torch.Generator) -> Tensor:
            rows = values[index]
            noise = torch.randn(rows.shape, generator=generator).to(self.device)
            own = None if weights is None else weights[index]
            return flows.loss(rows + jitter * noise, features[index], own, penalties)

        return loss

    def _polish(
        self,
        flows: Chosen,
        values: Tensor,
        weights: Tensor | None,
        steps: int,
        lr: float,
        generator: torch.Generator,
        progress: bool,
    ) -> None:
        """Some small steps on the training rows after the early stop.

        An early stop picks weights that suit the held-out rows by chance: a shift of a mean by a
        twentieth of an sd costs a thousandth of a nat. A few small steps undo that.
        """
        if steps < 1:
            return
        flows.requires_grad_(True)
        per_epoch = math.ceil(len(values) / self.batch_size)
        train(
            flows,
            loss=self._loss(flows, values, weights),
            rows=len(values),
            validate=None,
            config=TrainConfig(
                epochs=max(1, round(steps / per_epoch)),
                batch_size=self.batch_size,
                steps=steps,
                lr=lr,
                patience=None,
                schedule="cosine",
                grad_clip=10.0,
                ema=0.98,
                time_budget=self._seconds(POLISH_SHARE),
            ),
            generator=generator,
            progress=progress,
            label="CausalFlow, last steps",
        )

    def _seconds(self, share: float) -> float | None:
        return None if self.time_budget is None else share * self.time_budget

    def _order(self, every: bool = False) -> None:
        """Columns with a mechanism first; blocks without causes are drawn as whole rows."""
        drawn = [] if every or len(self._observed) == len(self._parents) else list(self._observed)
        self._names = [c for c in self._parents if c not in drawn] + drawn
        self._count = len(self._names) - len(drawn)

    def _measure(self, rows: Columns) -> None:
        """Mean and sd of each numeric column."""
        d = len(self._names)
        self._mean, self._scale = np.zeros(d), np.ones(d)
        for j, column in enumerate(self._names):
            if not self._discrete(column):
                self._mean[j] = rows[column].mean()
                self._scale[j] = rows[column].std()
                # A constant column: rounding of the mean must not look like a spread.
                if self._scale[j] <= 1e-12 * abs(self._mean[j]):
                    self._mean[j], self._scale[j] = rows[column][0], 0.0

    def _build(self, number: int) -> Mechanisms:
        """Stack 0: location-scale mechanisms; stack 1: splines that change with the parents."""
        place = {c: j for j, c in enumerate(self._names)}
        causes = {c: [place[p] for p in self._parents[c]] for c in self._names[: self._count]}
        heads = []
        for j, column in enumerate(self._names):
            spec = self.schema_[column]
            if spec.kind == "count":
                unit = self._unit[j]
                heads.append(Head("count", step=1 / unit, floor=-self._mean[j] / unit))
            else:
                heads.append(Head(spec.kind, levels=len(spec.levels)))
        return Mechanisms(
            heads,
            [[] if c in self._observed else causes[c] for c in causes],
            hidden=self.width,
            layers=self.depth,
            bins=self.bins,
            bound=self.bound,
            fixed_shape=number == 0,
            generator=torch.Generator().manual_seed(2 * self.seed + number),
        )

    @property
    def _unit(self) -> np.ndarray:
        return np.where(self._scale > 0, self._scale, 1.0)

    def _tensor(self, x: Columns) -> Tensor:
        """Standardised rows (n, d)."""
        values = np.empty((row_count(x), len(self._names)))
        for j, column in enumerate(self._names):
            values[:, j] = (x[column] - self._mean[j]) / self._unit[j]
        return torch.from_numpy(values)

    # ------------------------------------------------------------------ mechanisms

    def _draw(self, column: str, n: int, rng: np.random.Generator) -> np.ndarray:
        return rng.standard_normal(n)

    @torch.no_grad()
    def _noise_of(
        self, columns: list[str], x: Columns, rng: np.random.Generator | None
    ) -> dict[str, np.ndarray]:
        result = {}
        for part, names, parents in self._asked(columns, x, row_count(x)):
            ends = part.noise(self._inputs(part.columns, x, parents.shape[1]), parents)
            low, high = (values.cpu().numpy() for values in ends)
            for k, name in enumerate(names):
                counts = self.schema_.kind(name) == "count"
                result[name] = normal_between(low[k], high[k], rng) if counts else low[k]
        return {c: result[c] for c in columns}

    @torch.no_grad()
    def _value_of(
        self, columns: list[str], u: dict[str, np.ndarray], x: Columns, left: bool = False
    ) -> dict[str, np.ndarray]:
        result = {}
        for part, names, parents in self._asked(columns, x, len(u[columns[0]])):
            noise = torch.from_numpy(np.stack([u[name] for name in names])).to(self.device)
            values = (part.with_left if left else part.value)(noise, parents).cpu().numpy()
            for name, j, value in zip(names, part.columns, values, strict=True):
                result[name] = self._counted(name, value * self._scale[j] + self._mean[j])
        return {c: result[c] for c in columns}

    @torch.no_grad()
    def _left_of(self, columns: list[str], x: Columns) -> dict[str, np.ndarray]:
        # One spline for all rows bends the noise of a row and of its counterfactual alike.
        own = {c: k == 0 for c, k in zip(self._names, self._flows.choice.tolist(), strict=False)}
        columns = [c for c in columns if own.get(c) and self.schema_.kind(c) == "continuous"]
        result: dict[str, np.ndarray] = {}
        for part, names, parents in self._asked(columns, x, row_count(x)):
            left = part.left(self._inputs(part.columns, x, parents.shape[1]), parents)
            result |= zip(names, left.cpu().numpy(), strict=True)
        return result

    def _with_left(self, left: dict[str, np.ndarray], x: Columns) -> dict[str, np.ndarray]:
        return self._value_of(list(left), left, x, left=True)

    @torch.no_grad()
    def _log_levels(self, columns: list[str], x: Columns, n: int) -> dict[str, np.ndarray]:
        result: dict[str, np.ndarray] = {}
        for part, names, parents in self._asked(columns, x, n):
            tables = part.log_levels(parents)
            result |= zip(names, (table.cpu().numpy() for table in tables), strict=True)
        return {c: result[c] for c in columns}

    def _asked(
        self, columns: Sequence[str], x: Columns, n: int
    ) -> Iterator[tuple[Asked, list[str], Tensor]]:
        """Mechanisms of the columns, a few at a time, their names, and values of their parents."""
        number = {name: j for j, name in enumerate(self._names)}
        for part in self._flows.asked([number[c] for c in columns], n):
            yield part, [self._names[j] for j in part.columns], self._inputs(part.parents, x, n)

    def _inputs(self, places: Sequence[int], x: Columns, n: int) -> Tensor:
        """The standardised values (k, n) of the columns at these places."""
        rows, unit = np.zeros((len(places), n)), self._unit
        for row, j in zip(rows, places, strict=True):
            np.subtract(x[self._names[j]], self._mean[j], out=row)
            row /= unit[j]
        return torch.from_numpy(rows).to(self.device)

    # ------------------------------------------------------------------ likelihood

    def log_prob(self, data: Any) -> pd.Series:
        """Exact log-likelihood of each row, in the user's units.

        Densities of continuous columns times probabilities of the discrete ones, given the columns
        of blocks without causes.

        Returns
        -------
        Series of shape (n,) with the index of ``data``.
        """
        frame = as_frame(data)
        rows = self._tensor(self.schema_.encode(frame)).to(self.device)
        with torch.no_grad():
            each = self._flows.log_prob(rows).cpu().numpy()
        learned = [j for j in range(self._count) if self._names[j] not in self._observed]
        total = each[:, learned].sum(1)
        for j in learned:
            if self.schema_.kind(self._names[j]) == "continuous":
                total = total - np.log(self._unit[j])
        return pd.Series(total, index=frame.index, name="log_prob")

    # ------------------------------------------------------------------ save and load

    def _state(self) -> dict[str, np.ndarray]:
        state = {}
        for key, values in self._flows.state_dict().items():
            # Weights were learned in single precision: nothing is lost.
            values = values.float() if values.is_floating_point() else values
            state[f"flow/{key}"] = values.detach().cpu().numpy()
        if self._block_weights is not None:
            state["block_weights"] = self._block_weights
        return state | {"mean": self._mean, "scale": self._scale}

    def _set_state(self, state: dict[str, np.ndarray]) -> None:
        self._order(every=len(state["flow/choice"]) == len(self._parents))  # as it once was
        self._block_weights = state.get("block_weights")
        self._mean, self._scale = state["mean"], state["scale"]
        flows = Chosen([self._build(0), self._build(1)])
        flows.load_state_dict(
            {k[5:]: torch.from_numpy(v) for k, v in state.items() if k.startswith("flow/")}
        )
        self._flows = flows.double().eval().to(self.device)
