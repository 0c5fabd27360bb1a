"""MultiCVAE: one conditional variational autoencoder for each column, given its parents' values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch

from vaca.engines.latent import LatentEngine
from vaca.engines.layout import Layout
from vaca.engines.nn.conditional_network import ConditionalNetwork
from vaca.engines.paper_settings import MULTICVAE_SETTINGS, paper_parameters
from vaca.engines.train_config import plan_epochs
from vaca.errors import VacaError
from vaca.graph.dag import CausalGraph
from vaca.graph.paths import depth_layers


@dataclass(eq=False, repr=False, kw_only=True)
class MultiCVAE(LatentEngine):
    r"""A conditional variational autoencoder per column, run in the order of the graph.

    .. math:: p(x) = \prod_i \int p(x_i \mid z_i, x_{pa(i)})\, p(z_i)\, dz_i

    Columns of a node with several follow one another: each is given the earlier ones and the
    parents. An intervention replaces a node's value, which its children then see; abduction encodes
    each column with its parents, and keeps what the decoder misses.

    What all autoencoders take is in `vaca.engines.latent.LatentEngine`.

    Parameters
    ----------
    latent_dim : int
        Dimension of each column's z.
    encoder_hidden, decoder_hidden : sequence of int
        Hidden sizes of each column's networks.
    dropout : float
        Rate at which hidden units are dropped in training.
    variance : float
        Output variance of continuous columns (standardised); the paper's lambda is twice this.
    steps, epochs, schedule, ema, grad_clip, validate_every
        See `vaca.engines.train_config.TrainConfig`; ``steps`` counts if ``epochs`` is not given.

    References
    ----------
    Karimi, von Kuegelgen, Schoelkopf and Valera (2020). Algorithmic recourse under imperfect causal
    knowledge. NeurIPS.

    Examples
    --------
    >>> import vaca
    >>> scm = vaca.scms.load("chain-lin")
    >>> model = vaca.MultiCVAE(scm.graph, steps=20).fit(scm.sample(500, seed=0), progress=False)
    >>> model.sample(2, do={"x2": 0.5}, seed=0)["x2"].tolist()
    [0.5, 0.5]
    """

    latent_dim: int = 2
    encoder_hidden: Sequence[int] = (32, 32)
    decoder_hidden: Sequence[int] = (32, 32)
    dropout: float = 0.0
    variance: float = 0.025
    steps: int = 2000
    epochs: int | None = None
    schedule: Literal["constant", "exponential", "onecycle", "cosine"] = "onecycle"
    ema: float | None = 0.99
    grad_clip: float | None = 10.0
    validate_every: int | None = None

    @classmethod
    def paper(cls, name: str, graph: CausalGraph | None = None, **changes: Any) -> MultiCVAE:
        """The paper's MultiCVAE for one of its SCMs, with the sizes of its appendix E.

        Examples
        --------
        >>> MultiCVAE.paper("collider-lin").decoder_hidden
        ()
        """
        return cls(**paper_parameters(name, graph, MULTICVAE_SETTINGS, changes))

    def _check_parameters(self) -> None:
        self._check_objective()
        if not self.variance > 0:
            raise VacaError(f"variance is a positive number; got {self.variance!r}")
        if not 0.0 <= self.dropout < 1.0:
            raise VacaError(f"dropout lies in [0, 1); got {self.dropout!r}")
        if not self.encoder_hidden:
            raise VacaError("encoder_hidden needs at least one size")

    def _build(self, layout: Layout, generator: torch.Generator) -> ConditionalNetwork:
        parents = layout.column_parents()
        return ConditionalNetwork(
            parents,
            depth_layers(parents),
            layout.specs(),
            latent=self.latent_dim,
            encoder_hidden=self.encoder_hidden,
            decoder_hidden=self.decoder_hidden,
            dropout=self.dropout,
            variance=self.variance,
            generator=generator,
        )

    def _schedule(self, rows: int) -> dict[str, Any]:
        if self.epochs:  # a given number of epochs is somebody's recipe: keep its batches
            epochs, batch = self.epochs, self.batch_size
        else:
            epochs, batch = plan_epochs(self.steps, rows, self.batch_size)
        return {
            "epochs": epochs,
            "batch_size": batch,
            "schedule": self.schedule,
            "ema": self.ema,
            "grad_clip": self.grad_clip,
            "validate_every": self.validate_every or max(1, epochs // 50),
        }
