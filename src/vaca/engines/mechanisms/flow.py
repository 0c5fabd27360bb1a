r"""A network for what a simple mechanism leaves: noise whose shape changes with the causes.

.. math:: u = S\big(a(x_{pa}) + e^{b(x_{pa})} v \mid x_{pa}\big)

where :math:`v` is the noise that a simpler mechanism gives and :math:`S` a monotone
rational-quadratic spline whose form depends on the parents. It starts as the identity, and causes
beyond the data count as the nearest ones within: there the simpler mechanism goes on alone. Of a
count both ends of its cell go through, and the probability between them is learned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from zuko.transforms import MonotonicRQSTransform

from vaca.engines.nn.flow_network import log_between
from vaca.table.standard import Standard

__all__ = ["Flow"]

HIDDEN, BINS, BOUND = 48, 12, 5.0
#: Optimiser steps of a first fit and of a fit under other weights, rows per step, step size.
STEPS, AGAIN, BATCH, RATE = 700, 50, 512, 8e-3
#: Strength of the prior that pulls every weight to zero, in rows.
PRIOR = 1.0
#: Simpler noise further out than this counts as this far, and an open end as that far.
FAR, OPEN = 8.0, 1e3
_ROWS = 8192


class _Network(nn.Module):
    """Parents in; shift, log-scale and spline out."""

    def __init__(self, inputs: int, generator: torch.Generator) -> None:
        super().__init__()
        sizes = [inputs, HIDDEN, HIDDEN, 3 * BINS + 1]
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        for k, (a, b) in enumerate(zip(sizes[:-1], sizes[1:], strict=True)):
            size = (3.0 / max(a, 1)) ** 0.5 * (0.05 if k == 2 else 1.0)
            self.weights.append((2 * torch.rand(a, b, generator=generator) - 1) * size)
            self.biases.append((2 * torch.rand(b, generator=generator) - 1) * (k == 0))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, MonotonicRQSTransform]:
        h = x
        for k, (w, b) in enumerate(zip(self.weights, self.biases, strict=True)):
            h = h @ w + b
            h = nn.functional.silu(h) if k < 2 else h
        shift, scale, widths, heights, slopes = h.split([1, 1, BINS, BINS, BINS - 1], dim=-1)
        spline = MonotonicRQSTransform(widths, heights, slopes, bound=BOUND, slope=1e-3)
        return shift.squeeze(-1), 4.0 * torch.tanh(scale.squeeze(-1) / 4.0), spline

    def noise(self, x: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """The noise of ``v`` and the logarithm of its slope."""
        shift, scale, spline = self(x)
        u, slope = spline.call_and_ladj((v + shift) * torch.exp(scale))
        return u, slope + scale

    def back(self, x: Tensor, u: Tensor) -> Tensor:
        shift, scale, spline = self(x)
        return spline.inv(u) * torch.exp(-scale) - shift

    def gain(self, x: Tensor, v: Tensor) -> Tensor:
        """Log-density beyond that of a standard normal ``v``, or of a cell (n, 2) its logarithm."""
        if v.ndim == 2:
            ends = [self.noise(x, end)[0] for end in v.unbind(1)]
            return log_between(*ends) - log_between(*v.unbind(1))
        u, slope = self.noise(x, v)
        return 0.5 * v.square() - 0.5 * u.square() + slope


@dataclass
class Flow:
    """A trained network with the measures of its inputs."""

    network: _Network
    mean: np.ndarray
    scale: np.ndarray
    low: np.ndarray
    high: np.ndarray

    # ------------------------------------------------------------------ use

    def noise(self, x: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Noise (n,) of simpler noise ``v`` and the log-slope (n,)."""
        parts = [self.network.noise(a, b) for a, b in self._pieces(x, v)]
        u, slope = (torch.cat(p).numpy() for p in zip(*parts, strict=True))
        return u, slope

    def ends(
        self, x: np.ndarray, low: np.ndarray, high: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The noise of the ends of a cell, which may be open."""
        a, b = (
            np.where(np.isinf(v), v, self.noise(x, np.where(np.isinf(v), 0.0, v))[0])
            for v in (low, high)
        )
        return a, b

    def back(self, x: np.ndarray, u: np.ndarray) -> np.ndarray:
        """The inverse of `noise`."""
        return torch.cat([self.network.back(a, b) for a, b in self._pieces(x, u)]).numpy()

    def gain(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        """How much higher the log-density is than without the network."""
        return torch.cat([self.network.gain(a, b) for a, b in self._pieces(x, v)]).numpy()

    @torch.no_grad()
    def _pieces(self, x: np.ndarray, v: np.ndarray) -> list[tuple[Tensor, Tensor]]:
        inputs = torch.from_numpy(self._inputs(x)).double()
        values = torch.from_numpy(np.ascontiguousarray(v, dtype=float))
        return list(zip(inputs.split(_ROWS), values.split(_ROWS), strict=True)) or [
            (inputs, values)
        ]

    def _inputs(self, x: np.ndarray) -> np.ndarray:
        return (np.clip(x, self.low, self.high) - self.mean) / self.scale

    # ------------------------------------------------------------------ learning

    @classmethod
    def fit(
        cls, x: np.ndarray, v: np.ndarray, w: np.ndarray, out: np.ndarray, seed: int
    ) -> tuple[Flow, np.ndarray]:
        """Train on the rows not ``out``, stop where ``out`` is predicted best, then use all.

        ``v`` is simpler noise (n,), or of counts the ends (n, 2) of its cells.

        Returns
        -------
        Flow, its gain (of the rows that are out) before it had seen them
        """
        network = _Network(x.shape[1], torch.Generator().manual_seed(seed))
        flow = cls(network, *Standard.of(x), x.min(0), x.max(0))
        inputs, values, weights = flow._tensors(x, v, w)
        best, gain, state = -np.inf, np.zeros(out.sum()), _copy(network)
        kept = torch.from_numpy(np.flatnonzero(~out))
        left = torch.from_numpy(np.flatnonzero(out))

        def watch(smooth: _Network) -> None:
            nonlocal best, gain, state
            with torch.no_grad():
                found = smooth.gain(inputs[left], values[left])
            score = float((weights[left] * found).mean())
            if score > best:
                best, gain, state = score, found.double().numpy(), _copy(smooth)

        _train(network, inputs, values, weights, kept, STEPS, RATE, seed, watch)
        network.load_state_dict(state)
        every = torch.arange(len(values))
        _train(network, inputs, values, weights, every, STEPS // 7, RATE / 8, seed + 1)
        network.double().requires_grad_(False)
        return flow, gain

    def refit(self, x: np.ndarray, v: np.ndarray, w: np.ndarray, seed: int) -> Flow:
        """Some steps from here on rows with other weights."""
        network = _Network(x.shape[1], torch.Generator())
        network.load_state_dict({k: t.float() for k, t in self.network.state_dict().items()})
        flow = Flow(network, self.mean, self.scale, self.low, self.high)
        inputs, values, weights = flow._tensors(x, v, w)
        every = torch.arange(len(values))
        _train(network, inputs, values, weights, every, AGAIN, RATE / 4, seed)
        network.double().requires_grad_(False)
        return flow

    def _tensors(
        self, x: np.ndarray, v: np.ndarray, w: np.ndarray
    ) -> tuple[Tensor, Tensor, Tensor]:
        near = np.where(np.isinf(v), np.sign(v) * OPEN, np.clip(v, -FAR, FAR))
        arrays = (self._inputs(x), near, w)
        inputs, values, weights = (torch.from_numpy(np.asarray(a, np.float32)) for a in arrays)
        return inputs, values, weights

    # ------------------------------------------------------------------ as arrays

    def arrays(self) -> dict[str, np.ndarray]:
        """All that was learned."""
        state = {k: t.numpy() for k, t in self.network.state_dict().items()}
        return state | {k: getattr(self, k) for k in ("mean", "scale", "low", "high")}

    @classmethod
    def from_arrays(cls, state: dict[str, np.ndarray]) -> Flow:
        """The flow of `arrays`."""
        measures = {k: state[k] for k in ("mean", "scale", "low", "high")}
        network = _Network(len(state["mean"]), torch.Generator()).double().requires_grad_(False)
        own = {k: torch.from_numpy(v) for k, v in state.items() if k not in measures}
        network.load_state_dict(own)
        return cls(network, **measures)


def _copy(network: nn.Module) -> dict[str, Tensor]:
    return {k: t.detach().clone() for k, t in network.state_dict().items()}


def _train(
    network: _Network,
    inputs: Tensor,
    values: Tensor,
    weights: Tensor,
    rows: Tensor,
    steps: int,
    rate: float,
    seed: int,
    watch: Any = None,
) -> None:
    """Adam down a cosine; the running mean of the weights is watched, and kept."""
    generator = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adam(network.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    smooth = torch.optim.swa_utils.AveragedModel(
        network, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.98)
    )
    size = 0.5 * PRIOR / len(rows)
    for step in range(steps):
        index = rows[torch.randint(len(rows), (min(BATCH, len(rows)),), generator=generator)]
        loss = -(weights[index] * network.gain(inputs[index], values[index])).mean()
        loss = loss + size * sum(w.square().sum() for w in network.weights)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 10.0)
        optimiser.step()
        schedule.step()
        smooth.update_parameters(network)
        if watch is not None and (step % 25 == 24 or step == steps - 1):
            watch(smooth.module)
    network.load_state_dict(_copy(smooth.module))
