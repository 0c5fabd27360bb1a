r"""A network for what a simple mechanism leaves: noise whose shape changes with the causes.

.. math:: u = S\big(a(x_{pa}) + e^{b(x_{pa})} v \mid x_{pa}\big)

where :math:`v` is the noise that a simpler mechanism gives and :math:`S` a monotone
rational-quadratic spline whose form depends on the parents. It starts as the identity, and causes
beyond the data count as the nearest ones within: there the simpler mechanism goes on alone. Of a
count both ends of its cell go through, and the probability between them is learned.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from vaca.engines.nn.flow_network import log_between
from vaca.engines.nn.splines import Splines
from vaca.table.standard import Standard

__all__ = ["Flow"]

HIDDEN, BINS, BOUND = 48, 12, 5.0
#: No slope of the spline is above or below one by more than this factor, as a logarithm.
STEEP = math.log(1e3)
#: Optimiser steps of a first fit and of a fit under other weights, rows per step, step size.
STEPS, AGAIN, BATCH, RATE = 700, 50, 512, 8e-3
#: Held-out rows that are watched, every so many steps, and how often in vain before training ends.
WATCHED, EVERY, PATIENCE = 2000, 25, 6
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

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Shift (n,), log-scale (n,) and the knots (3, bins + 1, n): places, heights, slopes.

        Rows come last: that is faster, for the other axes are short.
        """
        h = x.T
        for k, (w, b) in enumerate(zip(self.weights, self.biases, strict=True)):
            h = torch.addmm(b[:, None], w.T, h)
            h = functional.silu(h) if k < 2 else h
        sizes, slopes = h[2 : 2 + 2 * BINS].view(2, BINS, -1), h[2 + 2 * BINS :]
        sizes = torch.softmax(sizes / (1.0 + (2.0 / STEEP) * sizes.abs()), dim=1)
        ends = functional.pad(sizes.cumsum(1), (0, 0, 1, 0))
        slopes = functional.pad(slopes / (1.0 + slopes.abs() / STEEP), (0, 0, 1, 1)).exp()
        knots = torch.cat([BOUND * (2.0 * ends - 1.0), slopes[None]])
        return h[0], 4.0 * torch.tanh(h[1] / 4.0), knots

    def noise(self, x: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """The noise of ``v`` and the logarithm of its slope."""
        shift, scale, knots = self(x)
        u, slope = _Knots(knots).with_slope((v + shift) * torch.exp(scale))
        return u, slope + scale

    def back(self, x: Tensor, u: Tensor) -> Tensor:
        shift, scale, knots = self(x)
        return _Knots(knots).inverse(u) * torch.exp(-scale) - shift

    def gain(self, x: Tensor, v: Tensor) -> Tensor:
        """Log-density beyond that of a standard normal ``v``, or of a cell (n, 2) its logarithm."""
        if v.ndim == 2:
            shift, scale, knots = self(x)
            own = _Knots(knots)
            ends = [own.with_slope((end + shift) * torch.exp(scale))[0] for end in v.unbind(1)]
            return log_between(*ends) - log_between(*v.unbind(1))
        u, slope = self.noise(x, v)
        return 0.5 * v.square() - 0.5 * u.square() + slope


class _Knots(Splines):
    """The splines of rows by their knots (3, bins + 1, n): places, heights, slopes."""

    bound = BOUND

    def __init__(self, knots: Tensor) -> None:
        self.knots = knots

    def _pieces(self, at: Tensor, axis: int) -> tuple[Tensor, ...]:
        k = ((self.knots[axis] < at).sum(0) - 1).clamp(0, BINS - 1)
        around = self.knots.gather(1, torch.stack([k, k + 1]).expand(3, 2, len(at)))
        (x0, x1), (y0, y1), (d0, d1) = around
        return x0, x1 - x0, y0, y1 - y0, d0, d1

    def with_slope(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Values (n,) and the logarithms of slopes; gradients are finite beyond the ends, too."""
        inside = x.abs() < self.bound
        x0, width, y0, height, d0, d1 = self._pieces(x, 0)
        s = height / width
        t = torch.where(inside, (x - x0) / width, 0.0)
        both = t * (1.0 - t)
        under = s + (d0 + d1 - 2.0 * s) * both
        y = y0 + height * (s * t.square() + d0 * both) / under
        over = 2.0 * s * both + d0 * (1.0 - t).square() + d1 * t.square()
        slope = 2.0 * torch.log(s / under) + torch.log(over)
        return torch.where(inside, y, x), torch.where(inside, slope, 0.0)


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
        best, vain, state = -np.inf, 0, _copy(network)
        kept = torch.from_numpy(np.flatnonzero(~out))
        left = torch.from_numpy(np.flatnonzero(out))
        order = torch.randperm(len(left), generator=torch.Generator().manual_seed(seed))
        seen = left[order[:WATCHED]]
        watched = inputs[seen], values[seen], weights[seen]

        def watch() -> bool:
            nonlocal best, vain, state
            with torch.no_grad():
                score = float((watched[2] * network.gain(*watched[:2])).mean())
            vain += 1
            if score > best:
                best, vain, state = score, 0, _copy(network)
            return vain < PATIENCE

        _train(network, inputs, values, weights, kept, STEPS, RATE, seed, watch)
        network.load_state_dict(state)
        with torch.no_grad():
            gain = network.gain(inputs[left], values[left]).double().numpy()
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
    watch: Callable[[], bool] | None = None,
) -> None:
    """Adam down a cosine until `watch` says no; the running mean of the weights is kept.

    By hand and on all weights as one vector: optimisers take as long as such a small network.
    """
    generator = torch.Generator().manual_seed(seed)
    own = list(network.parameters())
    flat = nn.utils.parameters_to_vector(own).detach()
    smooth, drift, spread = flat.clone(), torch.zeros_like(flat), torch.zeros_like(flat)
    pull = torch.zeros_like(flat)
    pull[: sum(w.numel() for w in network.weights)] = PRIOR / len(rows)  # weights come first
    for step in range(steps):
        nn.utils.vector_to_parameters(flat, own)  # they are views of it
        index = rows[torch.randint(len(rows), (min(BATCH, len(rows)),), generator=generator)]
        loss = -(weights[index] * network.gain(inputs[index], values[index])).mean()
        slope = nn.utils.parameters_to_vector(torch.autograd.grad(loss, own)).addcmul_(pull, flat)
        slope *= 10.0 / max(float(slope.norm()), 10.0)
        drift.lerp_(slope, 0.1)
        spread.lerp_(slope.square(), 0.001)
        pace = 0.5 * rate * (1.0 + math.cos(math.pi * step / steps)) / (1.0 - 0.9 ** (step + 1))
        unit = (spread / (1.0 - 0.999 ** (step + 1))).sqrt() + 1e-8
        flat.addcdiv_(drift, unit, value=-pace)
        smooth.lerp_(flat, 0.02 if step else 1.0)
        if watch is not None and (step % EVERY == EVERY - 1 or step == steps - 1):
            nn.utils.vector_to_parameters(smooth, own)
            if not watch():
                break
    nn.utils.vector_to_parameters(smooth, own)
