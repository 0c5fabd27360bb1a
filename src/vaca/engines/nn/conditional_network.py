r"""One conditional variational autoencoder per column, all of them in the same few products.

.. math::

    q(z_i \mid x_i, x_{pa(i)}) = N\big(\mathrm{MLP}_i([x_i, x_{pa(i)}])\big), \qquad
    p(x_i \mid z_i, x_{pa(i)}) = p\big(x_i; \mathrm{MLP}'_i([z_i, x_{pa(i)}])\big)

The networks share no parameters, so training them together on the sum of their bounds is training
each alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from vaca.engines.nn.disjoint import DisjointLinear
from vaca.engines.nn.likelihoods import Discrete, DiscreteLikelihood
from vaca.engines.nn.network import Network
from vaca.engines.nn.objectives import Terms, gaussian_log_ratio
from vaca.engines.nn.ragged import ColumnFeatures, RaggedLinear, Slots, parameter_slots

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


class ConditionalNetwork(Network):
    """Encoders and decoders of all columns.

    Rows are laid out as (columns, rows), as in `vaca.engines.nn.value_network.ValueNetwork`.

    Parameters
    ----------
    parents : sequence of sequence of int
        Parents of each column.
    layers : sequence of sequence of int
        Columns by depth: those of a layer have all their parents in layers before it.
    columns : sequence of Discrete
        Kind and size of each column.
    latent : int
        Dimension of each column's z.
    encoder_hidden, decoder_hidden : sequence of int
        Hidden sizes.
    dropout : float
        Dropout rate of hidden units.
    variance : float
        Fixed output variance of continuous columns.
    """

    def __init__(
        self,
        parents: Sequence[Sequence[int]],
        layers: Sequence[Sequence[int]],
        columns: Sequence[Discrete],
        *,
        latent: int = 4,
        encoder_hidden: Sequence[int] = (16,),
        decoder_hidden: Sequence[int] = (),
        dropout: float = 0.0,
        variance: float = 0.025,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        count = len(columns)
        self.layers = [list(layer) for layer in layers]
        self.latent, self.dropout, self.noise = latent, dropout, variance
        self.discrete = DiscreteLikelihood(columns)
        self.continuous = [i for i, c in enumerate(columns) if c.kind == "continuous"]
        self.features = ColumnFeatures(columns)
        own = [(f, i) for i in range(count) for f in self.features.of_columns([i])]
        above = [(f, i) for i in range(count) for f in self.features.of_columns(parents[i])]
        sizes = [*encoder_hidden, 2 * latent]
        self.encoder_in = RaggedLinear(own + above, count, sizes[0], generator=generator)
        self.encoder = _stack(count, sizes, generator)
        slots = parameter_slots(columns)
        self.slots = Slots(slots, count)
        self.slot_column = [i for i, _ in slots]
        # With no hidden layer each likelihood parameter is a group of its own.
        self.direct = not decoder_hidden
        groups = self.slot_column if self.direct else list(range(count))
        width = 1 if self.direct else decoder_hidden[0]
        start = len(self.features.owner)
        # z follows the features: its coordinate k of column i is feature start + i * latent + k.
        inputs = [
            (f, g)
            for g, i in enumerate(groups)
            for f in [
                *(start + i * latent + k for k in range(latent)),
                *self.features.of_columns(parents[i]),
            ]
        ]
        self.decoder_in = RaggedLinear(inputs, len(groups), width, generator=generator)
        self.decoder = _stack(count, list(decoder_hidden), generator)
        if not self.direct:
            bound = 1.0 / math.sqrt(decoder_hidden[-1])
            weight = 2 * torch.rand(len(slots), 1, decoder_hidden[-1], generator=generator) - 1
            self.out_weight = nn.Parameter(weight * bound)
            bias = 2 * torch.rand(len(slots), 1, generator=generator) - 1
            self.out_bias = nn.Parameter(bias * bound)

    @property
    def latent_shape(self) -> tuple[int, ...]:
        """A vector for each column."""
        return (self.latent,)

    def encode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and sd of q(z | x); each of shape (columns, rows, latent)."""
        h = self.encoder_in(self.features(x))
        for layer in self.encoder:
            h = layer(self._drop(torch.relu(h)))
        mean, log_variance = h.chunk(2, -1)
        return mean, torch.exp(0.5 * log_variance.clamp(-30.0, 20.0)) + 1e-4

    def decode(self, z: Tensor, x: Tensor) -> Tensor:
        """Likelihood parameters of shape (columns, rows, parameters), parents at their values."""
        flat = z.transpose(1, 2).reshape(-1, z.shape[1])
        inputs = torch.cat([self.features(x), flat], 0)
        h = self.decoder_in(inputs)
        if self.direct:
            return self.slots(h.squeeze(-1))
        h = self._drop(torch.relu(h))
        for layer in self.decoder:
            h = self._drop(torch.relu(layer(h)))
        return self.slots((h[self.slot_column] * self.out_weight).sum(-1) + self.out_bias)

    def _drop(self, h: Tensor) -> Tensor:
        if not (self.training and self.dropout):
            return h
        keep = torch.rand(h.shape, generator=self._generator, device=h.device) >= self.dropout
        return h * keep / (1.0 - self.dropout)

    _generator: torch.Generator | None = None

    def terms(
        self, x: Tensor, k: int, generator: torch.Generator | None, *, stop: bool = False
    ) -> Terms:
        """See `objectives.Variational`; z has the shape (columns, k, rows, latent)."""
        self._generator = generator
        mean, sd = self.encode(x)
        shape = (len(mean), k, *mean.shape[1:])
        noise = torch.randn(shape, generator=generator, dtype=x.dtype, device=x.device)
        z = mean.unsqueeze(1) + sd.unsqueeze(1) * noise
        rows = x.shape[1]
        flat = z.view(len(z), k * rows, self.latent)
        repeated = x.repeat(1, k) if k > 1 else x
        parameters = self.decode(flat, repeated)
        total = x.new_zeros(k * rows)
        if self.continuous:
            error = repeated[self.continuous] - parameters[self.continuous][..., 0]
            constant = 0.5 * math.log(self.noise) + _HALF_LOG_2PI
            total = total + (-0.5 * error.square() / self.noise - constant).sum(0)
        total = total + self.discrete.log_prob(parameters, repeated)
        ratio = gaussian_log_ratio(z, noise, mean.unsqueeze(1), sd.unsqueeze(1), (0, 3), stop)
        kl = (0.5 * (mean.square() + sd.square() - 1.0) - sd.log()).sum((0, 2))
        return Terms(z, (1, 2), total.view(k, rows), ratio, kl)

    def encoder_parameters(self) -> list[nn.Parameter]:
        """Parameters of q."""
        return [*self.encoder_in.parameters(), *self.encoder.parameters()]

    # ------------------------------------------------------------------ the map x = F(u, do)

    def abduct(
        self, x: Tensor, normal: Tensor, uniform: Tensor, uniform_levels: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """See `Network.abduct`; one latent for each column."""
        dtype = self.encoder_in.weight.dtype
        mean, sd = self.encode(x.to(dtype))
        z = mean + sd * normal.to(dtype)
        parameters = self.decode(z, x.to(dtype)).to(x.dtype)
        at = self.continuous
        missed = (x[at] - parameters[at][..., 0]) / math.sqrt(self.noise)
        rest = self.discrete.left_over(x, at, missed, parameters, uniform, uniform_levels)
        return z.to(x.dtype), *rest

    def generate(
        self,
        z: Tensor,
        eps: Tensor,
        logistic: Tensor,
        gumbel: Tensor,
        shift: Tensor,
        do: Mapping[int, Tensor],
    ) -> Tensor:
        """Values of all columns, layer by layer; shape (columns, rows)."""
        dtype = self.encoder_in.weight.dtype
        z = z.to(dtype)
        x = torch.zeros_like(eps)
        everything = range(len(eps))
        for layer in self.layers:
            parameters = self.decode(z, x.to(dtype)).to(eps.dtype)
            value = parameters[..., 0] + math.sqrt(self.noise) * eps
            value = self.discrete.draw(parameters, everything, logistic, gumbel, shift, value)
            for i in layer:
                x[i] = do[i] if i in do else value[i]
        return x


def _stack(groups: int, sizes: Sequence[int], generator: torch.Generator | None) -> nn.ModuleList:
    return nn.ModuleList(
        DisjointLinear(groups, a, b, generator=generator)
        for a, b in zip(sizes[:-1], sizes[1:], strict=True)
    )
