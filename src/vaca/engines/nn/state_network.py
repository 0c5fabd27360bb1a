r"""The paper's network of VACA: messages between nodes carry hidden states.

.. math::

    q(Z \mid X, A) &= N\big(\mu, \mathrm{diag}(s^2)\big), \quad (\mu_i, \log s_i^2) =
        \sum_{j \in pa^*(i)} f^{enc}_{ij}(x_i, x_j) \\
    h^0 &= Z, \qquad h_i^{l} = \sum_{j \in pa^*(i)} W^l_{ij} [h_i^{l-1}, h_j^{l-1}], \qquad
    p(X \mid Z, A) = \prod_i p(x_i; h_i^L)

with pa*(i) the parents and i itself, ReLU between the layers of the decoder, and, where a node has
several columns or a column several likelihood parameters, a linear network per node in front of the
encoder and behind the decoder.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from vaca.engines.nn.disjoint import Aggregator, DisjointLayer
from vaca.engines.nn.likelihoods import Discrete, DiscreteLikelihood
from vaca.engines.nn.network import Network
from vaca.engines.nn.objectives import Terms, gaussian_log_ratio
from vaca.engines.nn.ragged import ColumnFeatures, RaggedLinear, Slots, bound_of, parameter_slots

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


class StateNetwork(Network):
    """Encoder, decoder and likelihood over the nodes of a graph.

    Rows are laid out as (columns, rows): standardised values of continuous columns, codes of
    levels, and counts as they are.

    Parameters
    ----------
    parents : sequence of sequence of int
        Parents of each node.
    node_columns : sequence of sequence of int
        Columns of each node.
    columns : sequence of Discrete
        Kind and size of each column.
    latent : int
        Dimension of each node's z.
    message_hidden : sequence of int
        Hidden sizes of the encoder's message networks.
    hidden_layers, width : int
        Hidden layers of the decoder, and features of a node in them.
    discrete_weight : float
        Weight of the likelihood of discrete columns in training.
    noise : "column" or float
        One learned variance for each continuous column, or a fixed one.
    dropout : float
        Parents dropout: probability that a node loses all incoming edges but its self-loop, drawn
        for each row and step, the same for encoder and decoder.
    encoder_rounds : int
        Layers of the encoder; more than 1 breaks design condition 2.
    node_networks : int or None
        ColumnFeatures of the per-node input networks; None: no per-node networks.
    """

    latent_noises = ("z", "action")
    source: Tensor
    target: Tensor

    def __init__(
        self,
        parents: Sequence[Sequence[int]],
        node_columns: Sequence[Sequence[int]],
        columns: Sequence[Discrete],
        *,
        latent: int = 4,
        message_hidden: Sequence[int] = (16,),
        hidden_layers: int = 0,
        width: int = 16,
        aggregators: Sequence[Aggregator] = ("sum",),
        update_hidden: Sequence[int] | None = None,
        residual: bool = False,
        discrete_weight: float = 1.0,
        noise: str | float = 0.025,
        dropout: float = 0.0,
        encoder_rounds: int = 1,
        node_networks: int | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        nodes = len(parents)
        self.nodes, self.latent, self.noise, self.dropout = nodes, latent, noise, dropout
        self.discrete_weight = self.training_weight = discrete_weight
        pairs = [(j, i) for i in range(nodes) for j in (*parents[i], i)]
        edges = torch.tensor(pairs, dtype=torch.long).T
        self.register_buffer("source", edges[0].clone(), persistent=False)
        self.register_buffer("target", edges[1].clone(), persistent=False)
        self.discrete = DiscreteLikelihood(columns)
        self.continuous = [i for i, c in enumerate(columns) if c.kind == "continuous"]
        self.features = ColumnFeatures(columns)
        slots = parameter_slots(columns)
        self.slots = Slots(slots, len(columns))
        node_of = {c: i for i, own in enumerate(node_columns) for c in own}
        self.node_of = node_of
        self.node_order = [own[0] for own in node_columns]
        self.slot_node = [node_of[c] for c, _ in slots]
        self.in_order = self.slot_node == list(range(nodes))
        size_in, size_out = 1, 1
        self.enter = self.leave = None
        if node_networks is not None:
            size_in, size_out = node_networks, width
            incoming = [(f, node_of[c]) for f, c in enumerate(self.features.owner)]
            self.enter = RaggedLinear(incoming, nodes, size_in, generator=generator)
            start = 2 * torch.rand(len(slots), 1, width, generator=generator) - 1
            self.leave = nn.Parameter(start * bound_of(width))

        def layer(n_in: int, n_out: int, message: Sequence[int]) -> DisjointLayer:
            return DisjointLayer(
                edges,
                nodes,
                n_in,
                n_out,
                message_hidden=message,
                aggregators=aggregators,
                update_hidden=update_hidden,
                residual=residual,
                generator=generator,
            )

        sizes = [size_in] + [16] * (encoder_rounds - 1) + [2 * latent]
        self.encoder = nn.ModuleList(
            layer(a, b, message_hidden) for a, b in zip(sizes[:-1], sizes[1:], strict=True)
        )
        sizes = [latent] + [width] * hidden_layers + [size_out]
        self.decoder = nn.ModuleList(
            layer(a, b, ()) for a, b in zip(sizes[:-1], sizes[1:], strict=True)
        )
        self.log_variance = None
        if noise == "column":
            self.log_variance = nn.Parameter(torch.full((len(columns), 1), math.log(0.025)))

    # ------------------------------------------------------------------ the parts

    @property
    def latent_shape(self) -> tuple[int, ...]:
        """A vector for each node."""
        return (self.latent,)

    def latent_names(self, columns: Sequence[str], nodes: Sequence[str]) -> list[str]:
        """All nodes."""
        return list(nodes)

    def anneal(self, t: float) -> None:
        """Weigh discrete columns in training alone: a bound on log p(x) must not be weighted."""
        self.discrete_weight = self.training_weight if t < 1.0 else 1.0

    def variance(self) -> Tensor | float:
        """Output variance of the continuous columns; shape (continuous columns, 1) if learned."""
        if self.log_variance is None:
            return float(self.noise)
        return self.log_variance[self.continuous].exp().clamp(1e-4, 1.0)

    def cut(self, alone: Tensor) -> Tensor:
        """The mask of the edges when some nodes keep their self-loop only (A to A^I).

        Parameters
        ----------
        alone : bool Tensor of shape (nodes, rows) or (nodes, 1)

        Returns
        -------
        Tensor of shape (edges, rows) or (edges, 1)
        """
        loop = (self.source == self.target).unsqueeze(-1)
        return (loop | ~alone[self.target]).to(self.dtype)

    def whole(self) -> Tensor:
        """The mask of the whole graph; shape (edges, 1)."""
        return torch.ones(len(self.source), 1, dtype=self.dtype, device=self.source.device)

    @property
    def dtype(self) -> torch.dtype:
        """Type of the parameters."""
        return next(self.parameters()).dtype

    def encode(self, x: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Mean and sd of q(Z | X, A); each of shape (nodes, rows, latent)."""
        f = self.features(x)
        h = f[self.node_order].unsqueeze(-1) if self.enter is None else torch.relu(self.enter(f))
        for number, layer in enumerate(self.encoder):
            h = layer(h if number == 0 else torch.relu(h), mask)
        mean, log_variance = h.chunk(2, -1)
        return mean, torch.exp(0.5 * log_variance.clamp(-30.0, 20.0)) + 1e-4

    def decode(self, z: Tensor, mask: Tensor | None = None) -> Tensor:
        """Likelihood parameters p(X | Z, A) of shape (columns, rows, parameters)."""
        h = z
        for number, layer in enumerate(self.decoder):
            h = layer(h if number == 0 else torch.relu(h), mask)
        if self.leave is None:
            return self.slots(h.squeeze(-1) if self.in_order else h.squeeze(-1)[self.slot_node])
        return self.slots((h[self.slot_node] * self.leave).sum(-1))

    def terms(
        self, x: Tensor, k: int, generator: torch.Generator | None, *, stop: bool = False
    ) -> Terms:
        """See `objectives.Variational`; z has the shape (nodes, k, rows, latent)."""
        mask = None
        if self.training and self.dropout:
            coin = torch.rand(self.nodes, x.shape[1], generator=generator, device=x.device)
            mask = self.cut(coin < self.dropout)
        mean, sd = self.encode(x, mask)
        shape = (len(mean), k, *mean.shape[1:])
        noise = torch.randn(shape, generator=generator, dtype=x.dtype, device=x.device)
        z = mean.unsqueeze(1) + sd.unsqueeze(1) * noise
        rows = x.shape[1]
        flat = z.view(len(z), k * rows, self.latent)
        if mask is not None and k > 1:
            mask = mask.repeat(1, k)
        log_likelihood = self.log_likelihood(self.decode(flat, mask), x, k)
        ratio = gaussian_log_ratio(z, noise, mean.unsqueeze(1), sd.unsqueeze(1), (0, 3), stop)
        kl = (0.5 * (mean.square() + sd.square() - 1.0) - sd.log()).sum((0, 2))
        return Terms(z, (1, 2), log_likelihood, ratio, kl)

    def log_likelihood(self, parameters: Tensor, x: Tensor, k: int = 1) -> Tensor:
        """log p(x; parameters) with k blocks of rows in the parameters; shape (k, rows)."""
        rows = x.shape[1]
        total = x.new_zeros(k, rows)
        if self.continuous:
            mean = parameters[self.continuous][..., 0].view(-1, k, rows)
            variance = torch.as_tensor(self.variance(), dtype=x.dtype, device=x.device)
            variance = variance.view(-1, 1, 1)
            error = (x[self.continuous].unsqueeze(1) - mean).square() / variance
            constant = torch.log(variance)
            total = total + (-0.5 * (error + constant) - _HALF_LOG_2PI).sum(0)
        if len(self.continuous) < len(x):
            repeated = x.repeat(1, k) if k > 1 else x
            discrete = self.discrete.log_prob(parameters, repeated).view(k, rows)
            total = total + self.discrete_weight * discrete
        return total

    # ------------------------------------------------------------------ the map x = F(u, do)

    def abduct(
        self, x: Tensor, normal: Tensor, uniform: Tensor, uniform_levels: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """See `Network.abduct`; one latent for each node."""
        mean, sd = self.encode(x.to(self.dtype))
        z = mean + sd * normal.to(self.dtype)
        # With the mask that `generate` has, though all edges are there: the same products, so that
        # the residual is, to the last bit, what is missing.
        parameters = self.decode(z, self.whole()).to(x.dtype)
        # Deviates from the paper: what the decoder misses is kept, so that `do={}` is exact.
        at = self.continuous
        missed = (x[at] - parameters[at][..., 0]) / self.unit(x)
        rest = self.discrete.left_over(x, at, missed, parameters, uniform, uniform_levels)
        return z.to(x.dtype), *rest

    def generate(
        self,
        z: Tensor,
        action: Tensor,
        eps: Tensor,
        logistic: Tensor,
        gumbel: Tensor,
        shift: Tensor,
        do: Mapping[int, Tensor],
    ) -> Tensor:
        """See `Network.generate`; ``action`` is the noise of the encoder in the action step."""
        mask = self.whole()
        z, action = z.to(self.dtype), action.to(self.dtype)
        if do:
            hit = {self.node_of[column] for column in do}
            alone = torch.tensor([i in hit for i in range(self.nodes)], device=z.device)
            mask = self.cut(alone.unsqueeze(-1))
            # The action step: q(Z^I | x^I, A^I). Other columns do not count; zeros stand for them.
            given = torch.zeros_like(eps)
            for column, value in do.items():
                given[column] = value
            mean, sd = self.encode(given.to(self.dtype), mask)
            z = torch.where(alone.view(-1, 1, 1), mean + sd * action, z)
        parameters = self.decode(z, mask).to(eps.dtype)
        out = torch.zeros_like(eps)
        at = torch.as_tensor(self.continuous, dtype=torch.long, device=eps.device)
        out = out.index_copy(0, at, parameters[at][..., 0] + eps[at] * self.unit(eps))
        every = range(len(eps))
        return self.discrete.draw(parameters, every, logistic, gumbel, shift, out)

    def unit(self, like: Tensor) -> Tensor:
        """Sd of the output noise; shape (continuous columns, 1) or ()."""
        return torch.as_tensor(self.variance(), dtype=like.dtype, device=like.device).sqrt()

    def encoder_parameters(self) -> list[nn.Parameter]:
        """Parameters of q."""
        parts = [self.encoder] if self.enter is None else [self.encoder, self.enter]
        return [p for part in parts for p in part.parameters()]
