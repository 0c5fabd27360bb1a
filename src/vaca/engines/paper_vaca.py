"""VACA with the network and the training of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from vaca.engines.conditions import check_conditions, check_variance
from vaca.engines.latent import LatentEngine
from vaca.engines.layout import Layout
from vaca.engines.nn.disjoint import Aggregator
from vaca.engines.nn.state_network import StateNetwork
from vaca.engines.paper_settings import VACA_SETTINGS, paper_parameters
from vaca.errors import VacaError
from vaca.graph.dag import CausalGraph


@dataclass(eq=False, repr=False, kw_only=True)
class PaperVACA(LatentEngine):
    r"""VACA as published: one latent vector per node, and messages that carry hidden states.

    See `vaca.engines.nn.state_network` for the equations, `VACA` for the model that is offered
    instead, and ``docs/deviations.md`` for where this departs from the paper. The defaults are the
    paper's; `PaperVACA.paper` (or `VACA.paper`) gives the sizes that it reports for an SCM.

    What all autoencoders take is in `vaca.engines.latent.LatentEngine`.

    Parameters
    ----------
    latent_dim : int
        Dimension of each node's z.
    width : int
        Features of a node in the hidden layers of the decoder.
    hidden_layers : int, optional
        Of the decoder; by default as many as the graph needs.
    encoder_hidden_layers : int
        More than 0 breaks design condition 2.
    message_hidden, update_hidden : sequence of int
        Hidden sizes of the encoder's message networks and of the update networks.
    aggregators : sequence of str
        How messages are combined: "sum", "mean", "max", "min", "std", or several.
    residual : bool
        Add a linear map of a node's input to each layer.
    parents_dropout : float
        Probability that a node loses its parents in a training step.
    variance : "column" or float
        Output noise of continuous columns: learned for each column, or fixed.
    discrete_weight : float
        Weight of the likelihood of discrete columns in training. The paper weighs the KL term with
        0.05 against a likelihood of weight 1, that is, the likelihood with 20; a Gaussian of
        variance 0.025 has that built in, a level does not.
    validate_every : int
        Epochs between validations.
    epochs : int
        See `vaca.engines.train_config.TrainConfig`; the weight decay is part of the gradient.

    Examples
    --------
    >>> import vaca
    >>> scm = vaca.scms.load("triangle-lin")
    >>> model = PaperVACA(scm.graph, epochs=2).fit(scm.sample(200, seed=0), progress=False)
    >>> model.sample(2, do={"x1": 1.0}, seed=0)["x1"].tolist()
    [1.0, 1.0]
    """

    latent_dim: int = 4
    width: int = 16
    hidden_layers: int | None = None
    encoder_hidden_layers: int = 0
    message_hidden: Sequence[int] = (16,)
    update_hidden: Sequence[int] | None = None
    aggregators: Sequence[Aggregator] = ("sum",)
    residual: bool = False
    parents_dropout: float = 0.0
    variance: str | float = 0.025
    discrete_weight: float = 20.0
    output_noise: bool = False
    validation_samples: int = 100
    validate_every: int = 1
    epochs: int = 500
    batch_size: int = 1000
    weight_decay: float = 1.2e-6
    patience: float | None = 0.1

    @classmethod
    def paper(cls, name: str, graph: CausalGraph | None = None, **changes: Any) -> PaperVACA:
        """The paper's sizes for one of its SCMs; see `VACA.paper`."""
        return cls(**paper_parameters(name, graph, VACA_SETTINGS, changes))

    def _check_parameters(self) -> None:
        self._check_objective()
        check_variance(self.variance, "column")
        if not self.discrete_weight > 0:
            raise VacaError(f"discrete_weight is a positive number; got {self.discrete_weight!r}")
        if not 0.0 <= self.parents_dropout < 1.0:
            raise VacaError(f"parents_dropout lies in [0, 1); got {self.parents_dropout!r}")
        check_conditions(self.graph.longest_path, self.hidden_layers, self.encoder_hidden_layers)

    def _build(self, layout: Layout, generator: torch.Generator) -> StateNetwork:
        hidden, needed = self.hidden_layers, max(0, self.graph.longest_path - 1)
        specs, columns = layout.specs(), layout.node_columns()
        simple = all(len(own) == 1 for own in columns) and all(
            s.kind == "continuous" or s.parameters == 1 for s in specs
        )
        return StateNetwork(
            layout.node_parents(),
            columns,
            specs,
            latent=self.latent_dim,
            message_hidden=self.message_hidden,
            hidden_layers=needed if hidden is None else hidden,
            width=self.width,
            aggregators=self.aggregators,
            update_hidden=self.update_hidden,
            residual=self.residual,
            discrete_weight=self.discrete_weight,
            noise=self.variance,
            dropout=self.parents_dropout,
            encoder_rounds=1 + self.encoder_hidden_layers,
            node_networks=None if simple else 16,
            generator=generator,
        )

    def _schedule(self, rows: int) -> dict[str, Any]:
        return {
            "epochs": self.epochs,
            "batch_size": self.batch_size,
            "schedule": "exponential",
            "validate_every": self.validate_every,
        }
