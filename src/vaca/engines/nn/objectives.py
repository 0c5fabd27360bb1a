r"""Lower bounds on the log-evidence that a variational model can be trained on.

With :math:`w_k = p(x, z_k) / q(z_k \mid x)` and :math:`z_k \sim q`:

=========  ====================================================================================
elbo       :math:`E_q \log p(x \mid z) - \beta\, KL(q \,\|\, p)`
iwae       :math:`\log \frac1K \sum_k w_k` (Burda et al. 2016)
dreg       the gradient of iwae, with the doubly reparametrised estimator for the posterior
           (Tucker et al. 2019)
piwae      posterior on iwae, likelihood on the beta-ELBO (Rainforth et al. 2018)
=========  ====================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from torch import Tensor, nn

from vaca.errors import VacaError

Objective = Literal["elbo", "iwae", "dreg", "piwae"]
OBJECTIVES: tuple[Objective, ...] = ("elbo", "iwae", "dreg", "piwae")


@dataclass
class Terms:
    """The parts of a bound for K samples of each row.

    Attributes
    ----------
    z : Tensor
        The samples, still attached to the posterior.
    axes : tuple of int
        Which axes of z are those of ``log_ratio``.
    log_likelihood : Tensor of shape (K, rows) or (K, columns, rows)
        By column where the columns of a row have posteriors of their own: a bound for each column
        is closer than one for all.
    log_ratio : Tensor of the same shape
        log p(z) - log q(z).
    kl : Tensor of shape (rows,)
        KL(q || p), in closed form.
    known : Tensor of shape (rows,), optional
        Log-likelihood of what has no latent.
    """

    z: Tensor
    axes: tuple[int, ...]
    log_likelihood: Tensor
    log_ratio: Tensor
    kl: Tensor
    known: Tensor | None = None

    def by_row(self, values: Tensor) -> Tensor:
        """The sum over the columns, if there are any, and what is known."""
        total = values.sum(0) if values.dim() == 2 else values
        return total if self.known is None else total + self.known

    def elbo(self, beta: float = 1.0) -> Tensor:
        """The bound with one sample at a time; shape (rows,)."""
        return self.by_row(self.log_likelihood.mean(0)) - beta * self.kl


class Variational(Protocol):
    """What an objective asks of a network."""

    def terms(
        self, x: Tensor, k: int, generator: torch.Generator | None, *, stop: bool = False
    ) -> Terms:
        """Draw K samples from the posterior; ``stop`` cuts the gradient of log q's parameters."""
        ...

    def encoder_parameters(self) -> Sequence[nn.Parameter]:
        """Parameters of the posterior."""
        ...

    def decoder_parameters(self) -> Sequence[nn.Parameter]:
        """Parameters of the likelihood."""
        ...


def importance_bound(terms: Terms) -> Tensor:
    r""":math:`\log \frac1K \sum_k w_k` for each row; shape (rows,)."""
    log_w = terms.log_likelihood + terms.log_ratio
    return terms.by_row(torch.logsumexp(log_w, 0) - math.log(len(log_w)))


def loss(
    net: Variational,
    x: Tensor,
    objective: Objective,
    *,
    k: int = 1,
    beta: float = 1.0,
    generator: torch.Generator | None = None,
    weights: Tensor | None = None,
) -> Tensor:
    """Minus the bound, averaged over rows.

    For ``piwae`` the gradients are written into the parameters here, since they come from two
    bounds, and the value returned carries none.

    Parameters
    ----------
    net : Variational
    x : Tensor
        Rows in the layout of the network.
    objective : {"elbo", "iwae", "dreg", "piwae"}
    k : int
        Samples for each row.
    beta : float
        Weight of the KL term (elbo, piwae).
    weights : Tensor, optional
        Of the rows, with the mean 1 over all of them.
    """

    def mean(values: Tensor) -> Tensor:
        return values.mean() if weights is None else (weights * values).mean()

    if objective == "elbo":
        return -mean(net.terms(x, k, generator).elbo(beta))
    if objective == "iwae":
        return -mean(importance_bound(net.terms(x, k, generator)))
    if objective == "dreg":
        t = net.terms(x, k, generator, stop=True)
        log_w = t.log_likelihood + t.log_ratio
        share = torch.softmax(log_w.detach(), 0)
        if t.z.requires_grad:
            # The path through z counts with the square of the share, all else with the share.
            t.z.register_hook(lambda g: g * _spread(share, g.dim(), t.axes))
        return -mean(t.by_row((share * log_w).sum(0)))
    if objective == "piwae":
        t = net.terms(x, k, generator)
        encoder, decoder = list(net.encoder_parameters()), list(net.decoder_parameters())
        bound = -mean(importance_bound(t))
        beta_bound = -mean(t.elbo(beta))
        _accumulate(bound, encoder, keep=True)
        _accumulate(beta_bound, decoder, keep=False)
        return beta_bound.detach()
    raise VacaError(f"objective is one of {OBJECTIVES}; got {objective!r}")


def _spread(share: Tensor, dimensions: int, axes: tuple[int, ...]) -> Tensor:
    """The share of each sample, lined up with the axes of z."""
    shape = [1] * dimensions
    for axis, size in zip(axes, share.shape, strict=True):
        shape[axis] = size
    return share.view(shape)


def gaussian_log_ratio(
    z: Tensor, noise: Tensor, mean: Tensor, sd: Tensor, over: tuple[int, ...], stop: bool
) -> Tensor:
    """log p(z) - log q(z) for z = mean + sd * noise and p = N(0, I), summed over some axes.

    With ``stop`` the gradient of log q stops at its parameters and goes through z alone.
    """
    if stop:
        noise, sd = (z - mean.detach()) / sd.detach(), sd.detach()
    ratio = 0.5 * (noise.square() - z.square()) + sd.log()
    return ratio.sum(over) if over else ratio


def _accumulate(value: Tensor, parameters: list[nn.Parameter], *, keep: bool) -> None:
    if not parameters:
        return
    gradients = torch.autograd.grad(value, parameters, retain_graph=keep, allow_unused=True)
    for parameter, gradient in zip(parameters, gradients, strict=True):
        if gradient is not None:
            parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient
