"""VACA: a variational graph autoencoder that answers interventions and counterfactuals."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch

from vaca.engines.latent import LatentEngine, Network
from vaca.engines.layout import Layout
from vaca.engines.nn.disjoint import Aggregator
from vaca.engines.nn.objectives import OBJECTIVES, Objective
from vaca.engines.nn.state_network import StateNetwork
from vaca.engines.nn.value_network import ValueNetwork
from vaca.engines.paper_settings import VACA_SETTINGS
from vaca.errors import VacaError, VacaWarning, did_you_mean
from vaca.graph.dag import CausalGraph
from vaca.table.schema import Column, Kind, Schema

#: Beyond so many edges in a row, errors of the single steps add up to more than the answer.
LONG_PATH = 30
#: The cap on the output noise starts here (in sds) and shrinks over this share of training.
CAP_START, CAP_SHARE = 0.5, 0.9


class VACA(LatentEngine):
    r"""Variational causal graph autoencoder.

    .. math:: p(X) \approx \int p_\theta(X \mid Z, A)\, p(Z)\, dZ, \qquad q_\phi(Z \mid X, A)

    One latent per node with prior N(0, I); a decoder and an encoder that are graph networks over
    the causal graph A. An intervention cuts the edges into a node and sets its value; a
    counterfactual encodes the factual row (abduction), cuts and sets (action) and decodes
    (prediction). The decoder needs as many rounds of messages as the longest path has edges (design
    condition 1), the encoder exactly one (design condition 2).

    Two networks are offered. The default, ``messages="values"``, sends values from node to node and
    has decoders that increase in their own latent (see `vaca.engines.nn.value_network`);
    ``messages="states"`` is the paper's (see `vaca.engines.nn.state_network`, and `VACA.paper`).

    Parameters
    ----------
    graph : CausalGraph
    schema : Schema or mapping, optional
        Kinds of some or all columns; the others are read off the data.
    seed : int
        For starting weights, batches and the split into training and validation rows.
    missing : {"error", "drop", "model"}
        What to do about missing values: refuse them, leave their rows out, or learn from those rows
        too, with draws for what is missing.
    device : str
        "cpu" or "cuda".
    messages : {"values", "states"}
        What nodes tell their children.
    hidden_layers : int, optional
        Of the decoder; by default as many as the graph needs.
    encoder_hidden_layers : int
        More than 0 breaks design condition 2.
    refinements : int
        Newton steps from the encoder's guess towards the mode of the posterior (values).
    width : int
        Units of the hidden layers.
    depth, embedding, map_steps : int
        Hidden layers of the update networks, features of a value, and steps of the increasing maps
        (values).
    latent_dim : int
        Dimension of each node's z (states; with values there is one for each column).
    message_hidden, update_hidden : sequence of int
        Hidden sizes of the encoder's message networks and of the update networks (states).
    aggregators : sequence of str
        How messages are combined: "sum", "mean", "max", "min", "std", or several (states).
    residual : bool
        Add a linear map of a node's input to each layer (states).
    parents_dropout : float
        Probability that a node loses its parents in a training step (states).
    variance : {"decoder", "column"} or float, optional
        Output noise of continuous columns: given by the decoder (values; the default there),
        learned for each column, or fixed (default of states: the paper's 0.025).
    discrete_weight : float
        Weight of the likelihood of discrete columns in training (states). The paper weighs the KL
        term with 0.05 against a likelihood of weight 1, that is, the likelihood with 20; a Gaussian
        of variance 0.025 has that built in, a level does not.
    noise_cap : float
        Largest sd of the output noise, in sds of the column (values).
    output_noise : bool
        Whether samples get output noise; the paper's do not.
    objective : {"elbo", "iwae", "dreg", "piwae"}
        The bound to train on, with ``samples`` draws for each row and ``beta`` on the KL term.
    validation_samples : int
        Importance samples of the validation score.
    steps : int
        Gradient steps, if ``epochs`` is not given.
    weight_decay : float, optional
        Default: 0.5, decoupled from the gradient (values); the paper's 1.2e-6, part of it (states).
    epochs, batch_size, lr, schedule, ema, grad_clip, patience, validate_every
        See `vaca.engines.training.TrainConfig`.
    time_budget : float, optional
        Seconds for training at most.

    Attributes
    ----------
    n_parameters_ : int
        Trained numbers.
    history_ : DataFrame
        Loss and validation score of each epoch.

    References
    ----------
    Sanchez-Martin, Rateike and Valera (2022). VACA: Design of variational graph autoencoders for
    interventional and counterfactual queries. AAAI.

    Examples
    --------
    >>> import vaca
    >>> scm = vaca.scms.load("triangle-lin")
    >>> model = vaca.VACA(scm.graph, steps=20).fit(scm.sample(500, seed=0), progress=False)
    >>> model.sample(2, do={"x1": 1.0}, seed=0)["x1"].tolist()
    [1.0, 1.0]
    """

    def __init__(
        self,
        graph: CausalGraph,
        schema: Schema | Mapping[str, Kind | Column] | None = None,
        *,
        seed: int = 0,
        missing: str = "error",
        device: str = "cpu",
        messages: Literal["values", "states"] = "values",
        hidden_layers: int | None = None,
        encoder_hidden_layers: int = 0,
        refinements: int = 1,
        width: int = 64,
        depth: int = 1,
        embedding: int = 16,
        map_steps: int = 8,
        latent_dim: int = 4,
        message_hidden: Sequence[int] = (16,),
        update_hidden: Sequence[int] | None = None,
        aggregators: Sequence[Aggregator] = ("sum",),
        residual: bool = False,
        parents_dropout: float = 0.0,
        variance: str | float | None = None,
        discrete_weight: float = 1.0,
        noise_cap: float = 0.05,
        output_noise: bool = True,
        objective: Objective = "elbo",
        samples: int = 1,
        beta: float = 1.0,
        validation_samples: int = 1,
        steps: int = 2000,
        epochs: int | None = None,
        batch_size: int = 500,
        lr: float = 5e-3,
        weight_decay: float | None = None,
        schedule: Literal["constant", "exponential", "onecycle", "cosine"] = "onecycle",
        ema: float | None = 0.99,
        grad_clip: float | None = 10.0,
        patience: int | None = None,
        validate_every: int | None = None,
        time_budget: float | None = None,
    ) -> None:
        self.graph = graph
        self.schema = schema
        self.seed = seed
        self.missing = missing
        self.device = device
        self.messages = messages
        self.hidden_layers = hidden_layers
        self.encoder_hidden_layers = encoder_hidden_layers
        self.refinements = refinements
        self.width = width
        self.depth = depth
        self.embedding = embedding
        self.map_steps = map_steps
        self.latent_dim = latent_dim
        self.message_hidden = message_hidden
        self.update_hidden = update_hidden
        self.aggregators = aggregators
        self.residual = residual
        self.parents_dropout = parents_dropout
        self.variance = variance
        self.discrete_weight = discrete_weight
        self.noise_cap = noise_cap
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
    def paper(cls, name: str, graph: CausalGraph | None = None, **changes: Any) -> VACA:
        """The paper's model for one of its SCMs, with the sizes of its appendix E.

        Parameters
        ----------
        name : str
            "collider-lin" and so on; see `vaca.scms.names`. Or "german-credit", with its graph.
        graph : CausalGraph, optional
            Default: the graph of that SCM.
        **changes
            Parameters to set otherwise.

        Examples
        --------
        >>> VACA.paper("collider-lin").residual
        True
        """
        if name not in VACA_SETTINGS:
            raise VacaError(f"no settings for {name!r}; {did_you_mean(name, VACA_SETTINGS)}")
        if graph is None:
            from vaca.scm import library as scms

            graph = scms.load(name).graph
        return cls(graph, **{**VACA_SETTINGS[name], **changes})

    # ------------------------------------------------------------------ the network

    def _anneal(self, net: Network, t: float) -> None:
        if isinstance(net, ValueNetwork):
            done = min(1.0, t / CAP_SHARE)
            start = max(CAP_START, self.noise_cap)
            net.anneal(start ** (1.0 - done) * self.noise_cap**done)
        elif isinstance(net, StateNetwork):
            net.discrete_weight = self.discrete_weight if t < 1.0 else 1.0

    def _check_parameters(self) -> None:
        for name, value, known in (
            ("messages", self.messages, ("values", "states")),
            ("objective", self.objective, OBJECTIVES),
        ):
            if value not in known:
                raise VacaError(f"{name} is one of {known}; got {value!r}")
        if not (self.variance in (None, "decoder", "column") or _positive(self.variance)):
            raise VacaError(
                f'variance is "decoder", "column" or a positive number; got {self.variance!r}'
            )
        if self.messages == "states" and self.variance == "decoder":
            raise VacaError(
                'variance="decoder" goes with messages="values"; with "states" use "column" or a '
                "number (the paper: 0.025)"
            )
        if not _positive(self.discrete_weight):
            raise VacaError(f"discrete_weight is a positive number; got {self.discrete_weight!r}")
        if not 0.0 <= self.parents_dropout < 1.0:
            raise VacaError(f"parents_dropout lies in [0, 1); got {self.parents_dropout!r}")
        for name in ("width", "latent_dim", "samples", "validation_samples", "steps", "batch_size"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise VacaError(f"{name} is a whole number of at least 1; got {value!r}")
        if self.hidden_layers is not None and self.hidden_layers < 0:
            raise VacaError(f"hidden_layers is at least 0; got {self.hidden_layers}")

    def _build(self, layout: Layout, generator: torch.Generator, *, warn: bool = False) -> Network:
        longest = self.graph.longest_path
        hidden = self.hidden_layers
        if warn:
            self._warn_about_conditions(longest, hidden)
        if self.messages == "values":
            return ValueNetwork(
                layout.column_parents(),
                layout.specs(),
                width=self.width,
                depth=self.depth,
                embedding=self.embedding,
                steps=self.map_steps,
                noise="decoder" if self.variance is None else self.variance,
                cap=self.noise_cap,
                rounds=None if hidden is None or hidden >= longest - 1 else hidden + 1,
                encoder_rounds=1 + self.encoder_hidden_layers,
                refinements=self.refinements,
                generator=generator,
            )
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
            hidden_layers=max(0, longest - 1) if hidden is None else hidden,
            width=self.width,
            aggregators=self.aggregators,
            update_hidden=self.update_hidden,
            residual=self.residual,
            noise=0.025 if self.variance is None else self.variance,
            dropout=self.parents_dropout,
            encoder_rounds=1 + self.encoder_hidden_layers,
            node_networks=None if simple else 16,
            generator=generator,
        )

    def _warn_about_conditions(self, longest: int, hidden: int | None) -> None:
        needed = max(0, longest - 1)
        if hidden is not None and hidden < needed:
            warnings.warn(
                f"hidden_layers={hidden} breaks design condition 1: the longest path of the graph "
                f"has {longest} edges, so effects along it do not arrive and interventions on it "
                f"are wrong. Use hidden_layers={needed} or more, or None",
                VacaWarning,
                stacklevel=5,
            )
        if self.encoder_hidden_layers > 0:
            warnings.warn(
                f"encoder_hidden_layers={self.encoder_hidden_layers} breaks design condition 2: a "
                "node's latent then depends on more than the node and its parents, so abduction "
                "mixes in the noise of others. Use 0",
                VacaWarning,
                stacklevel=5,
            )
        if longest > LONG_PATH:
            warnings.warn(
                f"the longest path of the graph has {longest} edges: the decoder runs as many "
                "rounds, and small errors add up along the path. Check the answers at its end",
                VacaWarning,
                stacklevel=5,
            )

    def _latents(self) -> list[tuple[str, int]]:
        """Names and sizes of the latents (size 0: a plain number)."""
        if self.messages == "states":
            return [(n, self.latent_dim) for n in self.graph.nodes]
        names = self._layout.names
        return [(names[i], 0) for i in self._net.continuous]

    def _assumption(self, column: str) -> tuple[bool, str]:
        kind = self.schema_.kind(column)
        if kind == "categorical":
            return False, "Gumbel-max noise: no move to a level that became relatively less likely"
        if self.messages == "states":
            return False, "the encoder's posterior of the latent, plus the kept residual"
        if kind == "continuous":
            return False, "noise that moves the column in one direction (monotone), one per column"
        return False, "one threshold noise: the column moves with the order of its levels"


def _positive(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0
