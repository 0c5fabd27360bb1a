"""MultiCVAE: one conditional variational autoencoder for each column, given its parents' values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch

from vaca.engines.latent import LatentEngine
from vaca.engines.layout import Layout
from vaca.engines.nn.conditional_network import ConditionalNetwork
from vaca.engines.nn.objectives import Objective
from vaca.engines.nn.value_network import depth_layers
from vaca.engines.paper_settings import MULTICVAE_SETTINGS
from vaca.engines.training import plan_epochs
from vaca.errors import VacaError, did_you_mean
from vaca.graph.dag import CausalGraph
from vaca.table.schema import Column, Kind, Schema


class MultiCVAE(LatentEngine):
    r"""A conditional variational autoencoder per column, run in the order of the graph.

    .. math:: p(x) = \prod_i \int p(x_i \mid z_i, x_{pa(i)})\, p(z_i)\, dz_i

    Columns of a node with several follow one another: each is given the earlier ones and the
    parents. An intervention replaces a node's value, which its children then see; abduction encodes
    each column with its parents, and keeps what the decoder misses.

    Parameters
    ----------
    graph : CausalGraph
    schema : Schema or mapping, optional
        Kinds of some or all columns; the others are read off the data.
    seed : int
    missing : {"error", "drop", "model"}
        What to do about missing values: refuse them, leave their rows out, or learn from those rows
        too, with draws for what is missing.
    device : str
    latent_dim : int
        Dimension of each column's z.
    encoder_hidden, decoder_hidden : sequence of int
        Hidden sizes of each column's networks.
    dropout : float
        Rate at which hidden units are dropped in training.
    variance : float
        Output variance of continuous columns (standardised); the paper's lambda is twice this.
    output_noise : bool
        Whether samples get output noise.
    objective : {"elbo", "iwae", "dreg", "piwae"}
        With ``samples`` draws for each row and ``beta`` on the KL term.
    validation_samples : int
        Importance samples of the validation score.
    steps, epochs, batch_size, lr, weight_decay, schedule, ema, grad_clip, validate_every
        See `vaca.engines.training.TrainConfig`; ``steps`` counts if ``epochs`` is not given.
    patience : float, optional
        Stop after this share of the training without a better validation score; None: never.
    time_budget : float, optional
        Seconds for training at most.

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

    def __init__(
        self,
        graph: CausalGraph,
        schema: Schema | Mapping[str, Kind | Column] | None = None,
        *,
        seed: int = 0,
        missing: str = "error",
        device: str = "cpu",
        latent_dim: int = 2,
        encoder_hidden: Sequence[int] = (32, 32),
        decoder_hidden: Sequence[int] = (32, 32),
        dropout: float = 0.0,
        variance: float = 0.025,
        output_noise: bool = True,
        objective: Objective = "elbo",
        samples: int = 1,
        beta: float = 1.0,
        validation_samples: int = 1,
        steps: int = 2000,
        epochs: int | None = None,
        batch_size: int = 500,
        lr: float = 5e-3,
        weight_decay: float = 0.0,
        schedule: Literal["constant", "exponential", "onecycle", "cosine"] = "onecycle",
        ema: float | None = 0.99,
        grad_clip: float | None = 10.0,
        patience: float | None = None,
        validate_every: int | None = None,
        time_budget: float | None = None,
    ) -> None:
        self.graph = graph
        self.schema = schema
        self.seed = seed
        self.missing = missing
        self.device = device
        self.latent_dim = latent_dim
        self.encoder_hidden = encoder_hidden
        self.decoder_hidden = decoder_hidden
        self.dropout = dropout
        self.variance = variance
        self.output_noise = output_noise
        self.objective = objective
        self.samples = samples
        self.beta = beta
        self.validation_samples = validation_samples
        self.steps = steps
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.weight_decay = weight_decay
        self.schedule = schedule
        self.ema = ema
        self.grad_clip = grad_clip
        self.patience = patience
        self.validate_every = validate_every
        self.time_budget = time_budget

    @classmethod
    def paper(cls, name: str, graph: CausalGraph | None = None, **changes: Any) -> MultiCVAE:
        """The paper's MultiCVAE for one of its SCMs, with the sizes of its appendix E.

        Examples
        --------
        >>> MultiCVAE.paper("collider-lin").decoder_hidden
        ()
        """
        if name not in MULTICVAE_SETTINGS:
            raise VacaError(f"no settings for {name!r}; {did_you_mean(name, MULTICVAE_SETTINGS)}")
        if graph is None:
            from vaca.scm import library as scms

            graph = scms.load(name).graph
        return cls(graph, **{**MULTICVAE_SETTINGS[name], **changes})

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

    def _assumption(self, column: str) -> tuple[bool, str]:
        if self.schema_.kind(column) == "categorical":
            return False, "Gumbel-max noise: no move to a level that became relatively less likely"
        return False, "the encoder's posterior of the latent, plus the kept residual"
