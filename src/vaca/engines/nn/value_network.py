r"""The default network of VACA: messages between nodes carry values.

For a continuous column i with parents pa(i):

.. math::

    \text{prior} \quad & z_i \sim N(0, 1) \\
    \text{decoder} \quad & x_i = g_i(z_i; m_i) + \sigma_i(m_i)\, \varepsilon_i, \qquad
        m_i = f^u_i\Big(\sum_{j \in pa(i)} f^m_{ij}(x_j)\Big)
            + \sum_{j \in pa(i)} \ell_{ij}(x_j) \\
    \text{encoder} \quad & q(z_i \mid x_i, x_{pa(i)}) = N\big(\mu_i, s_i^2\big), \qquad
        \mu_i = N_i\big(e_i(x_i - b_i; m'_i)\big), \quad s_i^{-2} = 1 + (g_i'(\mu_i) / \sigma_i)^2

with :math:`g_i` and :math:`e_i` increasing in their first argument, :math:`\ell_{ij}` a straight
line, a number for each level, or steps and bends, that act on few of the parameters and start where
the rows say (see `vaca.engines.nn.beginning`), :math:`b_i` the offset of :math:`g_i`, :math:`N_i` a
step of Newton's method on :math:`\log p(x_i, z_i \mid m_i)`, and :math:`\sigma_i` capped so that
the latent, not the output noise, explains the column. Discrete columns have a threshold or Gumbel
map of their own noise (see `vaca.engines.nn.likelihoods`), whose posterior is known exactly.

Running the decoder for one round of messages moves the influence of a column one edge further, so
a graph whose longest path has :math:`\gamma` edges needs :math:`\gamma` rounds: :math:`\gamma - 1`
hidden layers, design condition 1 of the paper. The encoder is one round: design condition 2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import cast

import torch
from torch import Tensor, nn

from vaca.engines.nn.beginning import Beginning
from vaca.engines.nn.disjoint import DisjointLinear
from vaca.engines.nn.likelihoods import Discrete, DiscreteLikelihood
from vaca.engines.nn.messages import Breaks, Embedding, Trunk
from vaca.engines.nn.monotone import (
    ROOTS,
    Form,
    Increasing,
    identity_parameters,
    pace,
    parameter_count,
)
from vaca.engines.nn.network import Network
from vaca.engines.nn.objectives import Terms, gaussian_log_ratio
from vaca.graph.paths import depth_layers

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
#: The cap on the output noise starts here (in sds) and shrinks over this share of training.
CAP_START, CAP_SHARE = 0.5, 0.6
#: The longest refinement of a latent in one step.
_STRIDE = 3.0
#: The share of the output noise that is left where the decoder's map is flat.
_POINT = 0.02
#: The largest scale of a map, in sds of the column: squares of lines can be huge beyond the rows.
_WIDEST = 30.0
#: Categories of more levels have odds that parents do not act on directly.
_MOST = 16
#: How much of what the network says reaches odds that parents act on directly. What it learns of
#: pairs of levels says anything about pairs that no row holds.
_ODDS = 0.1


class ValueNetwork(Network):
    """Encoder, decoder and likelihood over the columns of a table.

    Rows are laid out as (columns, rows): standardised values of continuous columns, codes of
    levels, and counts as they are.

    Parameters
    ----------
    parents : sequence of sequence of int
        Parents of each column; a topological order of the columns is not needed. Columns after the
        last of these are given: they send messages and are not learned.
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
    refinements : int
        Newton steps from the encoder's guess towards the mode of the posterior.
    form : {"softplus", "squares", "scaled"}
        Of the decoder's maps. With "softplus" the network is that of revision 1, whose output noise
        is not in proportion to the spread of the maps; with "squares" that of revision 2.
    direct : bool
        Whether values and levels of parents also act directly; False is the network of revision 3.
    breaks : int, optional
        Steps and bends that act directly, which `begin` finds; None is the network of revision 4.
    """

    # The cap on the output noise shrinks, so gradients grow during training.
    optimizer = "adamw"
    beta2 = 0.99

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
        refinements: int = 1,
        form: Form = "scaled",
        direct: bool = True,
        breaks: int | None = 0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.parents = [tuple(p) for p in parents]
        self.columns = tuple(columns)
        count = len(parents)
        self.latest = direct and breaks is not None
        self.reached = [_reached(c) if self.latest else 0 for c in columns[:count]]
        self._owners: dict[str, Tensor] = {}
        self.layers = depth_layers([[j for j in own if j < count] for own in parents])
        self.rounds = len(self.layers) - 1 if rounds is None else rounds
        self.noise, self.refinements = noise, refinements
        self.form: Form = form
        self.cap = self.cap_end = cap
        edges = [(j, i) for i in range(count) for j in parents[i]]
        self.discrete = DiscreteLikelihood(columns[:count])
        self.continuous = [i for i, c in enumerate(columns[:count]) if c.kind == "continuous"]
        self.map_size = parameter_count(steps, form=form)
        self.embed = Embedding(columns, embedding, generator)
        n_out = max(self.map_size + 1, self.discrete.parameters_needed)
        start = torch.zeros(count, 1, n_out)
        start[self.continuous, 0, : self.map_size] = identity_parameters(steps, form=form)
        shares = pace(steps, form=form)
        if shares is not None:
            everywhere = torch.ones_like(start)
            everywhere[self.continuous, 0, : self.map_size] = shares
            if self.latest:
                slow = [i for i, c in enumerate(columns[:count]) if c.levels and self.reached[i]]
                everywhere[slow] = _ODDS
            shares = everywhere
        lines = self._lines(edges, columns, embedding) if direct else None
        self.decoder = Trunk(edges, count, embedding, width, depth, start, generator, shares, lines)
        if direct and breaks:
            self.add_breaks(breaks)
        place = {column: k for k, column in enumerate(self.continuous)}
        # The encoder inverts the decoder: where that is flat it is steep, never flat itself.
        start = identity_parameters(steps).expand(len(place), 1, -1)
        into = [(j, place[i]) for j, i in edges if i in place]
        self.encoder = Trunk(into, len(place), embedding, width, depth, start, generator)
        self.leaks = nn.ModuleList(
            DisjointLinear(len(edges), embedding, embedding, generator=generator)
            for _ in range(encoder_rounds - 1)
        )
        self.column_noise = nn.Parameter(torch.zeros(count, 1)) if noise == "column" else None
        for name, parameter in self.named_parameters():
            # Decay shrinks effects of parents, not what a column is by itself.
            spared = not name.endswith("weight") or name.startswith("embed")
            setattr(parameter, "no_decay", spared)  # noqa: B010 (no attribute of every Parameter)

    def _lines(
        self, edges: Sequence[tuple[int, int]], columns: Sequence[Discrete], embedding: int
    ) -> Tensor:
        """Which features of a parent act directly on which numbers of a child: zeros and ones.

        A value, as a straight line, and levels act on the offset of a continuous column, on the
        place of an ordered one and on the odds of a category. Decay shrinks what few rows show;
        it leaves these alone, and they are few. Counts, and categories of many levels, have none.

        A value also acts on the roots of the scales, so that these can be a line that is zero
        where the noise is. Levels do not: squares of sums of them can be huge for levels that are
        never seen together.
        """
        reached = [_reached(column) for column in columns[: len(self.parents)]]
        allowed = torch.zeros(len(edges), embedding, max(reached, default=0))
        for number, (source, target) in enumerate(edges):
            if columns[source].levels:
                offset = columns[target].kind == "continuous"
                allowed[number, :, : 1 if offset else reached[target]] = 1.0
            else:  # the first feature is the value itself
                allowed[number, 0, : reached[target]] = 1.0
        return allowed

    # ------------------------------------------------------------------ where it starts

    @torch.no_grad()
    def begin(self, x: Tensor, weights: Tensor | None) -> None:
        """Find from the rows what acts directly, and where that starts.

        Steps of gradients take long to tell causes apart that nearly go together, and the update
        network meanwhile learns by heart the few rows that do.
        """
        if self.decoder.allowed is not None:
            Beginning(self, x, weights).find()

    def add_breaks(self, count: int) -> None:
        """Make room for steps and bends that act directly on the first numbers of columns."""
        whole = self.decoder.source.new_zeros(count)
        broken = self.decoder.direct.new_zeros(count, self.decoder.direct.shape[-1])
        place = broken[:, 0].clone()
        parts = (whole, whole.clone(), place, place.clone(), broken, broken.clone())
        self.decoder.breaks = Breaks(*parts, len(self.parents))
        setattr(self.decoder.breaks.size, "no_decay", True)  # noqa: B010

    def calm(self, most: float) -> None:
        """Shorten the gradient of what is each column's own to a length of ``most``."""
        parameters = {n: p for n, p in self.named_parameters() if p.grad is not None and p.numel()}
        own = [self._owner(name, len(p)) for name, p in parameters.items()]
        gradients = [cast("Tensor", p.grad).flatten(1) for p in parameters.values()]
        total = self.decoder.bias.new_zeros(len(self.parents) + len(self.columns))
        for at, gradient in zip(own, gradients, strict=True):
            total.index_add_(0, at, gradient.square().sum(1))
        share = most / total.sqrt().clamp(min=most)
        for at, gradient in zip(own, gradients, strict=True):
            gradient.mul_(share[at].unsqueeze(1))

    def _owner(self, name: str, size: int) -> Tensor:
        """The column that each part of a parameter belongs to; past the last, what columns send."""
        if name not in self._owners:
            part, count = name.split(".")[0], len(self.parents)
            if part == "embed":
                coded = self.embed.coded if name == "embed.table" else range(size)
                found = torch.tensor([count + i for i in coded])
            elif part == "encoder":
                found = torch.tensor(self.continuous)
                found = found[self.encoder.target.cpu()] if ".message." in name else found
            elif name == "decoder.breaks.size":
                found = cast("Breaks", self.decoder.breaks).target
            elif part == "leaks" or ".message." in name or name == "decoder.direct":
                found = self.decoder.target
            else:
                found = torch.arange(count)
            self._owners[name] = found.to(self.decoder.bias.device)
        return self._owners[name]

    # ------------------------------------------------------------------ the parts

    @property
    def latent_shape(self) -> tuple[int, ...]:
        """One number for each continuous column."""
        return ()

    def latent_names(self, columns: Sequence[str], nodes: Sequence[str]) -> list[str]:
        """The continuous columns."""
        return [columns[i] for i in self.continuous]

    def anneal(self, t: float) -> None:
        """Shrink the cap on the output noise from its start to its end."""
        done = min(1.0, t / CAP_SHARE)
        self.cap = max(CAP_START, self.cap_end) ** (1.0 - done) * self.cap_end**done

    def maps(self, parameters: Tensor) -> Increasing:
        """The decoder's maps of continuous columns with these parameters."""
        most = math.inf if self.decoder.allowed is None else _WIDEST
        return Increasing(parameters[..., : self.map_size], form=self.form, most=most)

    def sigma(self, parameters: Tensor, which: Sequence[int], maps: Increasing) -> Tensor:
        """Sd of the output noise of the continuous columns ``which``; shape (columns, rows)."""
        if self.noise == "decoder":
            raw = parameters[..., self.map_size]
        elif self.column_noise is not None:
            raw = self.column_noise[which].expand(parameters.shape[:-1])
        else:
            return parameters.new_full(parameters.shape[:-1], math.sqrt(float(self.noise)))
        floor = 0.06 * self.cap
        sd = floor + (self.cap - floor) * torch.sigmoid(raw)
        if self.noise == "decoder" and self.form != "softplus":
            # Where the latent makes hardly a difference, the truth is nearly a point.
            sd = sd * (maps.spread().clamp(max=1.0) + _POINT)
        return sd

    def posterior(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Mean and sd of q(z | x) for the continuous columns, and the decoder's parameters.

        Returns
        -------
        mean, sd : Tensors of shape (continuous columns, rows)
        parameters : Tensor of shape (columns, rows, n_out)
        """
        h = self.embed(x)
        parameters = self.decoder(h)
        mean, sd, _, _ = self._posterior(x, self.encoder(self._heard(h)), parameters)
        return mean, sd, parameters

    def _heard(self, h: Tensor) -> Tensor:
        """The features that reach the encoder's one round, or its last if there are more."""
        for leak in self.leaks:
            h = h.index_add(0, self.decoder.target, leak(h[self.decoder.source]))
        return h

    def _posterior(
        self, x: Tensor, own: Tensor, parameters: Tensor
    ) -> tuple[Tensor, Tensor, Increasing, Tensor]:
        """Mean and sd of q, and the decoder's maps and output sd, of the continuous columns.

        ``own`` is what the encoder gives for them, ``parameters`` what the decoder gives for all.
        """
        p = parameters[self.continuous]
        decode = self.maps(p)
        sigma = self.sigma(p, self.continuous, decode)
        # The encoder works on the distance from the decoder's offset b_i(m_i), so that the two move
        # together: each alone would be held in place by the other, and weak effects never learned.
        mean = Increasing(own).value(x[self.continuous] - decode.offset)
        for _ in range(self.refinements):
            # A step of Newton's method towards the mode of the true posterior. It makes the encoder
            # follow every change of the decoder, so that training does not wait for it.
            value, slope = decode(mean)
            steep = slope / sigma
            error = (x[self.continuous] - value) / sigma
            step = (error * steep - mean) / (1.0 + steep.square())
            mean = mean + step.clamp(-_STRIDE, _STRIDE)
        _, slope = decode(mean)
        # The Laplace approximation of the true posterior: exact where the decoder is straight.
        return mean, torch.rsqrt(1.0 + (slope / sigma).square()), decode, sigma

    def terms(
        self, x: Tensor, k: int, generator: torch.Generator | None, *, stop: bool = False
    ) -> Terms:
        """See `vaca.engines.nn.objectives.Variational`; z has the shape (k, columns, rows, 1)."""
        h = self.embed(x)
        parameters = self.decoder(h)
        mean, sd, decode, sigma = self._posterior(x, self.encoder(self._heard(h)), parameters)
        # In pairs: of two samples on either side of the mean, one stays clear of a jump beside it.
        # Networks of earlier revisions bound as they did, with single samples of whole rows.
        pairs = self.form == "scaled"
        shape = ((k + 1) // 2 if pairs else k, *mean.shape)
        noise = torch.randn(shape, generator=generator, dtype=x.dtype, device=x.device)
        noise = torch.cat([noise, -noise])[:k]
        z = (mean + sd * noise).unsqueeze(-1)
        flat = z.squeeze(-1)
        error = (x[self.continuous] - decode.value(flat)) / sigma
        log_likelihood = -0.5 * error.square() - sigma.log() - _HALF_LOG_2PI
        ratio = gaussian_log_ratio(flat, noise, mean, sd, (), stop)
        kl = (0.5 * (mean.square() + sd.square() - 1.0) - sd.log()).sum(0)
        known = self.discrete.log_prob(parameters, x)
        if not pairs:
            return Terms(z, (0, 2), log_likelihood.sum(1), ratio.sum(1), kl, known)
        return Terms(z, (0, 1, 2), log_likelihood, ratio, kl, known)

    def encoder_parameters(self) -> list[nn.Parameter]:
        """Parameters of q alone."""
        parts = [self.encoder, self.leaks]
        return [p for part in parts for p in part.parameters()]

    # ------------------------------------------------------------------ the map x = F(u, do)

    def abduct(
        self, x: Tensor, normal: Tensor, uniform: Tensor, uniform_levels: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """See `Network.abduct`; one latent for each continuous column."""
        # Layer by layer: the very products that `generate` will do again, so that what is kept
        # here as the residual is, to the last bit, what is missing there.
        dtype = self.decoder.bias.dtype
        low = x.to(dtype)
        h = self.embed(low)
        n_out = self.decoder.straight.weight.shape[-1]
        parameters = low.new_empty(len(self.parents), x.shape[1], n_out)
        by_row = h.transpose(0, 1).contiguous()
        for layer in self.layers:
            parameters[layer] = self.decoder.some(by_row, layer)
        heard = self._heard(h).transpose(0, 1).contiguous() if self.leaks else by_row
        own = self.encoder.some(heard, range(len(self.continuous)))
        mean, sd, decode, sigma = self._posterior(low, own, parameters)
        z = mean + sd * normal.to(dtype)
        at = self.continuous
        missed = (x[at] - decode.value(z).to(x.dtype)) / sigma.to(x.dtype)
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
        """See `Network.generate`; differentiable in z and eps."""
        # The network may be of lower precision than the rows; sums are taken in theirs.
        dtype = self.decoder.bias.dtype
        latent = {column: k for k, column in enumerate(self.continuous)}
        x = torch.zeros_like(eps)
        size = self.embed.weight.shape[-1] + 1
        h = eps.new_zeros(eps.shape[1], eps.shape[0], size, dtype=dtype)

        def run(which: list[int], messages: bool = True) -> None:
            # Intervened columns are computed too and then set: the shapes of the products are the
            # same for every `do`, and so is, to the last bit, all that the `do` does not reach.
            place = torch.as_tensor(which, device=x.device)
            p = self.decoder.some(h, which, messages=messages)
            out = torch.zeros_like(eps[place])
            at = [k for k, i in enumerate(which) if i in latent]
            if at:
                columns = [which[k] for k in at]
                own = z[[latent[i] for i in columns]].to(dtype)
                q = p[at]
                maps = self.maps(q)
                sigma = self.sigma(q, columns, maps)
                value = maps.value(own).to(x.dtype) + sigma.to(x.dtype) * eps[columns]
                out = out.index_copy(0, torch.as_tensor(at, device=x.device), value)
            out = self.discrete.draw(p, which, logistic[place], gumbel, shift[place], out)
            for k, i in enumerate(which):
                if i in do:
                    out = out.index_copy(0, torch.tensor([k], device=x.device), do[i][None])
            x.index_copy_(0, place, out)
            h.index_copy_(1, place, self.embed(out.to(dtype), which).transpose(0, 1))

        for i in range(len(self.parents), len(x)):
            x[i] = do[i]
            h[:, i] = self.embed(x[[i]].to(dtype), [i])[0]
        if self.rounds >= len(self.layers) - 1:
            # Enough rounds: a column is final after the round of its depth, so compute it then.
            for layer in self.layers:
                run(layer)
            return x
        everything = list(range(len(self.parents)))
        run(everything, messages=False)
        for _ in range(self.rounds):
            run(everything)
        return x


def _reached(column: Discrete) -> int:
    """How many of a column's numbers its parents act on directly."""
    if column.kind == "continuous":
        return ROOTS
    if column.kind == "categorical":
        return column.levels if column.levels <= _MOST else 0
    return 0 if column.kind == "count" else 1
