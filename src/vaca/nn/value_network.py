r"""The default network of VACA: messages between nodes carry values.

For a continuous column i with parents pa(i):

.. math::

    \text{prior} \quad & z_i \sim N(0, 1) \\
    \text{decoder} \quad & x_i = g_i(z_i; m_i) + \sigma_i(m_i)\, \varepsilon_i, \qquad
        m_i = f^u_i\Big(\sum_{j \in pa(i)} f^m_{ij}(x_j)\Big) \\
    \text{encoder} \quad & q(z_i \mid x_i, x_{pa(i)}) = N\big(e_i(x_i - b_i; m'_i), s_i^2\big), \qquad
        s_i^{-2} = 1 + (g_i' / \sigma_i)^2

with :math:`g_i` and :math:`e_i` increasing in their first argument, :math:`b_i` the offset of
:math:`g_i`, and :math:`\sigma_i` capped so
that the latent, not the output noise, explains the column. Discrete columns have a threshold or
Gumbel map of their own noise (see `vaca.nn.likelihoods`), whose posterior is known exactly.

Running the decoder for one round of messages moves the influence of a column one edge further, so
a graph whose longest path has :math:`\gamma` edges needs :math:`\gamma` rounds: :math:`\gamma - 1`
hidden layers, design condition 1 of the paper. The encoder is one round: design condition 2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vaca.nn.disjoint import DisjointLinear, DisjointMLP
from vaca.nn.likelihoods import Discrete, DiscreteLikelihood
from vaca.nn.monotone import identity_parameters, increasing, parameter_count
from vaca.nn.objectives import Terms

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
#: Inputs are cut here (in sds), so that a wild `do` extrapolates as a constant, not without bound.
_FAR = 30.0


class Embedding(nn.Module):
    """What each column says to its children: features of its value, shape (columns, rows, size)."""

    mean: Tensor
    scale: Tensor
    coded: Tensor

    def __init__(
        self, columns: Sequence[Discrete], size: int, generator: torch.Generator | None
    ) -> None:
        super().__init__()
        count = len(columns)
        self.weight = nn.Parameter(torch.randn(count, 1, size - 1, generator=generator))
        self.bias = nn.Parameter(torch.randn(count, 1, size - 1, generator=generator))
        self.coded_at = [i for i, c in enumerate(columns) if c.levels]
        most = max((c.levels for c in columns), default=0)
        if self.coded_at:
            table = torch.randn(len(self.coded_at), most, size, generator=generator)
            self.table = nn.Parameter(table)
        self.register_buffer("mean", torch.tensor([c.mean for c in columns]).view(-1, 1))
        self.register_buffer("scale", torch.tensor([c.scale for c in columns]).view(-1, 1))
        self.register_buffer("coded", torch.tensor(self.coded_at, dtype=torch.long))

    def forward(self, x: Tensor) -> Tensor:
        """Features of the values ``x`` of shape (columns, rows)."""
        value = ((x - self.mean) / self.scale).clamp(-_FAR, _FAR).unsqueeze(-1)
        h = torch.cat([value, F.silu(value * self.weight + self.bias)], -1)
        if self.coded_at:
            at = x[self.coded].long().unsqueeze(-1).expand(-1, -1, h.shape[-1])
            h = h.index_copy(0, self.coded, self.table.gather(1, at))
        return h


class Trunk(nn.Module):
    """One round of messages: linear message per edge, sum, update network per column."""

    source: Tensor
    target: Tensor

    def __init__(
        self,
        edges: Sequence[tuple[int, int]],
        columns: int,
        n_in: int,
        width: int,
        depth: int,
        n_out: int,
        generator: torch.Generator | None,
    ) -> None:
        super().__init__()
        self.columns, self.width = columns, width
        source = torch.tensor([a for a, _ in edges], dtype=torch.long)
        target = torch.tensor([b for _, b in edges], dtype=torch.long)
        self.register_buffer("source", source, persistent=False)
        self.register_buffer("target", target, persistent=False)
        self.message = DisjointLinear(len(edges), n_in, width, bias=False, generator=generator)
        self.bias = nn.Parameter(0.1 * torch.randn(columns, 1, width, generator=generator))
        self.update = DisjointMLP(columns, [width] * (depth + 1) + [n_out], F.silu)
        # A straight way past the update network, so that weak, nearly linear effects are found.
        self.straight = DisjointLinear(columns, width, n_out, bias=False, generator=generator)
        with torch.no_grad():
            # Unit variance through the sums at the start; outputs near their bias.
            arrivals = torch.zeros(columns).index_add_(0, target, torch.ones(len(edges)))
            spread = torch.randn(self.message.weight.shape, generator=generator)
            self.message.weight.copy_(spread / (n_in * arrivals[target]).sqrt().view(-1, 1, 1))
            for layer in self.update.layers:
                shape = layer.weight.shape
                layer.weight.copy_(
                    (2 * torch.rand(shape, generator=generator) - 1) * math.sqrt(3 / shape[1])
                )
                layer.bias.zero_()
            last = self.update.layers[-1]
            last.weight.mul_(0.1)
            self.straight.weight.zero_()
        self._edges_into: dict[tuple[int, ...], tuple[Tensor, Tensor]] = {}
        self.last = last

    def forward(
        self, h: Tensor, which: Sequence[int] | None = None, *, messages: bool = True
    ) -> Tensor:
        """Parameters of all columns, or of the columns ``which``; shape (columns, rows, n_out)."""
        source, target, edges, at = self.source, self.target, None, None
        count = self.columns
        if which is not None:
            at = torch.as_tensor(which, device=h.device)
            edges, target = self._into(which)
            source, count = source[edges], len(which)
        m = (self.bias if at is None else self.bias[at]).expand(count, h.shape[1], self.width)
        if messages and len(source):
            m = m.index_add(0, target, self.message(h[source], edges))
        return self.update(F.silu(m), at) + self.straight(m, at)

    def _into(self, which: Sequence[int]) -> tuple[Tensor, Tensor]:
        """The edges into some columns, and where in ``which`` they end."""
        key = tuple(which)
        if key not in self._edges_into:
            place = {column: i for i, column in enumerate(key)}
            pairs = [(e, place[t]) for e, t in enumerate(self.target.tolist()) if t in place]
            both = torch.tensor(pairs, dtype=torch.long, device=self.target.device).view(-1, 2)
            self._edges_into[key] = (both[:, 0], both[:, 1])
        return self._edges_into[key]


class ValueNetwork(nn.Module):
    """Encoder, decoder and likelihood over the columns of a table.

    Rows are laid out as (columns, rows): standardised values of continuous columns, codes of
    levels, and counts as they are.

    Parameters
    ----------
    parents : sequence of sequence of int
        Parents of each column; a topological order of the columns is not needed.
    columns : sequence of Discrete
        Kind and size of each column.
    width, depth, embedding : int
        Sizes of the update networks and of what a column tells its children.
    steps : int
        Steps of the increasing maps.
    noise : {"decoder", "column"} or float
        Output noise of continuous columns: given by the decoder from the parents, one learned
        number for each column, or a fixed variance.
    cap : float
        Largest sd of the output noise, in sds of the column, at the end of training.
    rounds : int, optional
        Rounds of messages when decoding; default as many as the graph needs.
    encoder_rounds : int
        Rounds of messages in the encoder; more than 1 breaks design condition 2.
    """

    def __init__(
        self,
        parents: Sequence[Sequence[int]],
        columns: Sequence[Discrete],
        *,
        width: int = 64,
        depth: int = 1,
        embedding: int = 16,
        steps: int = 8,
        noise: str | float = "decoder",
        cap: float = 0.05,
        rounds: int | None = None,
        encoder_rounds: int = 1,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.parents = [tuple(p) for p in parents]
        self.layers = _layers(self.parents)
        self.rounds = len(self.layers) - 1 if rounds is None else rounds
        self.noise, self.final_cap, self.cap = noise, cap, cap
        count = len(columns)
        edges = [(j, i) for i in range(count) for j in parents[i]]
        self.discrete = DiscreteLikelihood(columns)
        self.continuous = [i for i, c in enumerate(columns) if c.kind == "continuous"]
        self.map_size = parameter_count(steps)
        n_out = max(self.map_size + 1, self.discrete.parameters_needed)
        self.embed = Embedding(columns, embedding, generator)
        self.decoder = Trunk(edges, count, embedding, width, depth, n_out, generator)
        self.encoder_embed = Embedding(columns, embedding, generator)
        self.encoder = Trunk(edges, count, embedding, width, depth, self.map_size, generator)
        self.leaks = nn.ModuleList(
            DisjointLinear(len(edges), embedding, embedding, generator=generator)
            for _ in range(encoder_rounds - 1)
        )
        self.column_noise = nn.Parameter(torch.zeros(count, 1)) if noise == "column" else None
        with torch.no_grad():
            start = identity_parameters(steps)
            self.encoder.last.bias[:, 0, :] = start
            self.decoder.last.bias[self.continuous, 0, : self.map_size] = start

    # ------------------------------------------------------------------ the parts

    def anneal(self, cap: float) -> None:
        """Set the present cap on the output noise (during training it shrinks to its end)."""
        self.cap = cap

    def sigma(self, parameters: Tensor, which: Sequence[int]) -> Tensor:
        """Sd of the output noise of the continuous columns ``which``; shape (columns, rows)."""
        if self.noise == "decoder":
            raw = parameters[..., self.map_size]
        elif self.column_noise is not None:
            raw = self.column_noise[which].expand(parameters.shape[:-1])
        else:
            return parameters.new_full(parameters.shape[:-1], math.sqrt(float(self.noise)))
        floor = 0.06 * self.cap
        return floor + (self.cap - floor) * torch.sigmoid(raw)

    def posterior(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Mean and sd of q(z | x) for the continuous columns, and the decoder's parameters.

        Returns
        -------
        mean, sd : Tensors of shape (continuous columns, rows)
        parameters : Tensor of shape (columns, rows, n_out)
        """
        parameters = self.decoder(self.embed(x))
        h = self.encoder_embed(x)
        for leak in self.leaks:
            extra = leak(h[self.encoder.source])
            h = h.index_add(0, self.encoder.target, extra)
        own = self.encoder(h)[self.continuous]
        p = parameters[self.continuous]
        # The encoder works on the distance from the decoder's offset b_i(m_i), so that the two move
        # together: each alone would be held in place by the other, and weak effects never learned.
        mean, _ = increasing(own, x[self.continuous] - p[..., 0])
        _, slope = increasing(p[..., : self.map_size], mean)
        # The Laplace approximation of the true posterior: exact where the decoder is straight.
        sd = torch.rsqrt(1.0 + (slope / self.sigma(p, self.continuous)).square())
        return mean, sd, parameters

    def decode_continuous(self, parameters: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        """Decoded value and output sd of the continuous columns, given all parents' values."""
        p = parameters[self.continuous]
        value, _ = increasing(p[..., : self.map_size], z)
        return value, self.sigma(p, self.continuous)

    def terms(
        self, x: Tensor, k: int, generator: torch.Generator | None, *, stop: bool = False
    ) -> Terms:
        """See `vaca.nn.objectives.Variational`; z has the shape (k, columns, rows, 1)."""
        mean, sd, parameters = self.posterior(x)
        noise = torch.randn(
            (k, *mean.shape), generator=generator, dtype=x.dtype, device=x.device
        )
        z = (mean + sd * noise).unsqueeze(-1)
        flat = z.squeeze(-1)
        value, sigma = self.decode_continuous(parameters, flat)
        error = (x[self.continuous] - value) / sigma
        log_likelihood = (-0.5 * error.square() - sigma.log() - _HALF_LOG_2PI).sum(1)
        log_likelihood = log_likelihood + self.discrete.log_prob(parameters, x)
        centre, width = (mean.detach(), sd.detach()) if stop else (mean, sd)
        log_prior = (-0.5 * flat.square() - _HALF_LOG_2PI).sum(1)
        log_posterior = (
            -0.5 * ((flat - centre) / width).square() - width.log() - _HALF_LOG_2PI
        ).sum(1)
        kl = (0.5 * (mean.square() + sd.square() - 1.0) - sd.log()).sum(0)
        return Terms(z, log_likelihood, log_prior, log_posterior, kl)

    def encoder_parameters(self) -> list[nn.Parameter]:
        """Parameters of q alone."""
        parts = [self.encoder_embed, self.encoder, self.leaks]
        return [p for part in parts for p in part.parameters()]

    def decoder_parameters(self) -> list[nn.Parameter]:
        """Parameters of the likelihood."""
        own = {id(p) for p in self.encoder_parameters()}
        return [p for p in self.parameters() if id(p) not in own]

    # ------------------------------------------------------------------ the map x = F(u, do)

    def generate(
        self,
        z: Tensor,
        eps: Tensor,
        logistic: Tensor,
        gumbel: Tensor,
        shift: Tensor,
        do: Mapping[int, Tensor],
    ) -> Tensor:
        """The values of all columns as a function of the noise, differentiable in z and eps.

        Parameters
        ----------
        z, eps, logistic, shift : Tensors of shape (columns, rows)
        gumbel : Tensor of shape (categories, rows, levels)
        do : mapping of column to Tensor of shape (rows,)

        Returns
        -------
        Tensor of shape (columns, rows)
        """
        x = torch.zeros_like(z)
        known = set(self.continuous)

        def run(which: list[int], x: Tensor, messages: bool = True) -> Tensor:
            # Intervened columns are computed too and then set: the shapes of the products are the
            # same for every `do`, and so is, to the last bit, all that the `do` does not reach.
            p = self.decoder(self.embed(x), which, messages=messages)
            out = torch.zeros_like(z[which])
            at = [k for k, i in enumerate(which) if i in known]
            if at:
                columns = [which[k] for k in at]
                value, _ = increasing(p[at][..., : self.map_size], z[columns])
                value = value + self.sigma(p[at], columns) * eps[columns]
                out = out.index_copy(0, torch.as_tensor(at, device=x.device), value)
            out = self.discrete.draw(p, which, logistic[which], gumbel, shift[which], out)
            x = x.index_copy(0, torch.as_tensor(which, device=x.device), out)
            for i in do.keys() & set(which):
                x = x.index_copy(0, torch.tensor([i], device=x.device), do[i].unsqueeze(0))
            return x

        if self.rounds >= len(self.layers) - 1:
            # Enough rounds: a column is final after the round of its depth, so compute it then.
            for layer in self.layers:
                x = run(layer, x)
            return x
        everything = [i for layer in self.layers for i in layer]
        x = run(everything, x, messages=False)
        for _ in range(self.rounds):
            x = run(everything, x)
        return x


def _layers(parents: Sequence[Sequence[int]]) -> list[list[int]]:
    """Columns by the length of the longest path that leads to them."""
    depth: dict[int, int] = {}
    while len(depth) < len(parents):
        for i, own in enumerate(parents):
            if i not in depth and all(j in depth for j in own):
                depth[i] = 1 + max((depth[j] for j in own), default=-1)
    layers: list[list[int]] = [[] for _ in range(max(depth.values()) + 1)]
    for i in range(len(parents)):
        layers[depth[i]].append(i)
    return layers
