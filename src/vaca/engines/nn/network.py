"""What a `LatentEngine` asks of its network: latents, a bound to train on, and the map x = F(u)."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from vaca.engines.nn.objectives import Terms


class Network(nn.Module, abc.ABC):
    """Encoder, decoder and likelihood over the columns of a table, laid out as (columns, rows).

    Attributes
    ----------
    latent_noises : tuple of str
        The noises of the shape of the latents that `generate` takes, the latents themselves first.
    optimizer, beta2 : str, float
        What trains it well; see `vaca.engines.train_config.TrainConfig`.
    """

    latent_noises: tuple[str, ...] = ("z",)
    optimizer: Literal["adam", "adamw"] = "adam"
    beta2: float = 0.999

    @property
    @abc.abstractmethod
    def latent_shape(self) -> tuple[int, ...]:
        """Shape of one latent of one row: () for a plain number."""

    def latent_names(self, columns: Sequence[str], nodes: Sequence[str]) -> list[str]:
        """Which columns or nodes have a latent, in order; by default every column."""
        return list(columns)

    def begin(self, x: Tensor, weights: Tensor | None) -> None:
        """Take from the training rows ``x`` what is better known before training than learned."""

    def anneal(self, t: float) -> None:
        """Set what changes over training; ``t`` is the share that is done."""

    @abc.abstractmethod
    def terms(
        self, x: Tensor, k: int, generator: torch.Generator | None, *, stop: bool = False
    ) -> Terms:
        """The parts of the bound; see `vaca.engines.nn.objectives.Variational`."""

    @abc.abstractmethod
    def abduct(
        self, x: Tensor, normal: Tensor, uniform: Tensor, uniform_levels: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """The noise of the rows ``x``, as `generate` takes it: z, eps, logistic, gumbel, shift.

        Parameters
        ----------
        x, uniform : Tensors of shape (columns, rows)
        normal : Tensor of shape (latents, rows, *latent_shape)
            Draws for z; zeros for the posterior mean.
        uniform_levels : Tensor of shape (categories, rows, levels)
        """

    @abc.abstractmethod
    def generate(self, *, do: Mapping[int, Tensor], **noise: Any) -> Tensor:
        """The values of all columns as a function of the noise; shape (columns, rows).

        Parameters
        ----------
        do : mapping of column to Tensor of shape (rows,)
        z (and others of `latent_noises`) : Tensors of shape (latents, rows, *latent_shape)
        eps, logistic, shift : Tensors of shape (columns, rows)
        gumbel : Tensor of shape (categories, rows, levels)
        """

    @abc.abstractmethod
    def encoder_parameters(self) -> list[nn.Parameter]:
        """Parameters of the posterior alone."""

    def decoder_parameters(self) -> list[nn.Parameter]:
        """Parameters of the likelihood."""
        own = {id(p) for p in self.encoder_parameters()}
        return [p for p in self.parameters() if id(p) not in own]
