"""VACA: a variational graph autoencoder that answers interventions and counterfactuals."""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from vaca.errors import VacaError, VacaWarning, did_you_mean
from vaca.graph import CausalGraph
from vaca.model import CHUNK, Noise
from vaca.models.engine import Engine
from vaca.models.layout import Layout
from vaca.models.paper_settings import VACA_SETTINGS
from vaca.nn import objectives
from vaca.nn.disjoint import Aggregator
from vaca.nn.objectives import OBJECTIVES, Objective
from vaca.nn.state_network import StateNetwork
from vaca.nn.value_network import ValueNetwork
from vaca.schema import Column, Columns, Kind, Schema, as_frame
from vaca.training import TrainConfig, train

#: Beyond so many edges in a row, errors of the single steps add up to more than the answer.
LONG_PATH = 30
#: Rows of a query that go through the network at once.
BLOCK = 2048
#: The cap on the output noise starts here (in sds) and shrinks over this share of training.
CAP_START, CAP_SHARE = 0.5, 0.6


class VACA(Engine):
    r"""Variational causal graph autoencoder.

    .. math:: p(X) \approx \int p_\theta(X \mid Z, A)\, p(Z)\, dZ, \qquad q_\phi(Z \mid X, A)

    One latent per node with prior N(0, I); a decoder and an encoder that are graph networks over
    the causal graph A. An intervention cuts the edges into a node and sets its value; a
    counterfactual encodes the factual row (abduction), cuts and sets (action) and decodes
    (prediction). The decoder needs as many rounds of messages as the longest path has edges (design
    condition 1), the encoder exactly one (design condition 2).

    Two networks are offered. The default, ``messages="values"``, sends values from node to node and
    has decoders that increase in their own latent (see `vaca.nn.value_network`);
    ``messages="states"`` is the paper's (see `vaca.nn.state_network`, and `VACA.paper`).

    Parameters
    ----------
    graph : CausalGraph
    schema : Schema or mapping, optional
        Kinds of some or all columns; the others are read off the data.
    seed : int
        For starting weights, batches and the split into training and validation rows.
    device : str
        "cpu" or "cuda".
    messages : {"values", "states"}
        What nodes tell their children.
    hidden_layers : int, optional
        Of the decoder; by default as many as the graph needs.
    encoder_hidden_layers : int
        More than 0 breaks design condition 2.
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
    variance : {"decoder", "column"} or float
        Output noise of continuous columns: given by the decoder, learned for each column, or fixed.
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
    epochs, batch_size, lr, weight_decay, schedule, ema, grad_clip, patience, validate_every
        See `vaca.training.TrainConfig`.

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

    n_parameters_: int

    def __init__(
        self,
        graph: CausalGraph,
        schema: Schema | Mapping[str, Kind | Column] | None = None,
        *,
        seed: int = 0,
        device: str = "cpu",
        messages: Literal["values", "states"] = "values",
        hidden_layers: int | None = None,
        encoder_hidden_layers: int = 0,
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
        variance: str | float = "decoder",
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
        weight_decay: float = 0.0,
        schedule: Literal["constant", "exponential", "onecycle", "cosine"] = "onecycle",
        ema: float | None = 0.99,
        grad_clip: float | None = 10.0,
        patience: int | None = None,
        validate_every: int | None = None,
    ) -> None:
        self.graph = graph
        self.schema = schema
        self.seed = seed
        self.device = device
        self.messages = messages
        self.hidden_layers = hidden_layers
        self.encoder_hidden_layers = encoder_hidden_layers
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

    @classmethod
    def paper(cls, name: str, graph: CausalGraph | None = None, **changes: Any) -> VACA:
        """The paper's model for one of its SCMs, with the sizes of its appendix E.

        Parameters
        ----------
        name : str
            "collider-lin" and so on; see `vaca.scms.names`.
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
            from vaca import scms

            graph = scms.load(name).graph
        return cls(graph, **{**VACA_SETTINGS[name], **changes})

    # ------------------------------------------------------------------ fitting

    def _fit(
        self,
        train_rows: Columns,
        validation: Columns,
        progress: bool | None,
        checkpoint: str | Path | None,
    ) -> None:
        self._check_parameters()
        layout = Layout.of(self.graph, self.schema_, train_rows)
        generator = torch.Generator().manual_seed(self.seed)
        net = self._build(layout, generator, warn=True).to(self.device)
        draws = torch.Generator(device=self.device).manual_seed(self.seed + 1)
        x = torch.as_tensor(layout.tensor(train_rows), dtype=torch.float32, device=self.device)
        held_out = torch.as_tensor(
            layout.tensor(validation), dtype=torch.float32, device=self.device
        )
        rows = x.shape[1]
        batch = min(self.batch_size, max(32, rows // 8))
        per_epoch = math.ceil(rows / batch)
        epochs = self.epochs or max(1, math.ceil(self.steps / per_epoch))

        def loss(index: Tensor, t: float, gen: torch.Generator) -> Tensor:
            self._anneal(net, t)
            return objectives.loss(
                net,
                x[:, index],
                self.objective,
                k=self.samples,
                beta=self.beta,
                generator=gen,
            )

        def score() -> float:
            self._anneal(net, 1.0)
            gen = torch.Generator(device=self.device).manual_seed(0)
            return -float(_bound(net, held_out, self.validation_samples, gen).mean())

        history = train(
            net,
            loss=loss,
            rows=rows,
            validate=score,
            config=TrainConfig(
                epochs=epochs,
                batch_size=batch,
                lr=self.lr,
                weight_decay=self.weight_decay,
                patience=self.patience,
                schedule=self.schedule,
                ema=self.ema,
                grad_clip=self.grad_clip,
                validate_every=self.validate_every or max(1, epochs // 50),
            ),
            generator=draws,
            checkpoint=checkpoint,
            progress=progress is not False,
            label="VACA",
            fingerprint=_fingerprint(self, x),
        )
        self.history_ = history.frame()
        self._become(layout, net)

    def _become(self, layout: Layout, net: ValueNetwork | StateNetwork) -> None:
        self._anneal(net, 1.0)
        self._layout = layout
        self._net = net.eval()
        self.n_parameters_ = sum(p.numel() for p in net.parameters())

    def _anneal(self, net: ValueNetwork | StateNetwork, t: float) -> None:
        if isinstance(net, ValueNetwork):
            done = min(1.0, t / CAP_SHARE)
            start = max(CAP_START, self.noise_cap)
            net.anneal(start ** (1.0 - done) * self.noise_cap**done)

    def _check_parameters(self) -> None:
        for name, value, known in (
            ("messages", self.messages, ("values", "states")),
            ("objective", self.objective, OBJECTIVES),
        ):
            if value not in known:
                raise VacaError(f"{name} is one of {known}; got {value!r}")
        if not (self.variance in ("decoder", "column") or _positive(self.variance)):
            raise VacaError(
                f'variance is "decoder", "column" or a positive number; got {self.variance!r}'
            )
        if self.messages == "states" and self.variance == "decoder":
            raise VacaError(
                'variance="decoder" goes with messages="values"; with "states" use "column" or a '
                "number (the paper: 0.025)"
            )
        if not 0.0 <= self.parents_dropout < 1.0:
            raise VacaError(f"parents_dropout lies in [0, 1); got {self.parents_dropout!r}")
        for name in ("width", "latent_dim", "samples", "validation_samples", "steps", "batch_size"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise VacaError(f"{name} is a whole number of at least 1; got {value!r}")
        if self.hidden_layers is not None and self.hidden_layers < 0:
            raise VacaError(f"hidden_layers is at least 0; got {self.hidden_layers}")

    def _build(
        self, layout: Layout, generator: torch.Generator, *, warn: bool = False
    ) -> ValueNetwork | StateNetwork:
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
                noise=self.variance,
                cap=self.noise_cap,
                rounds=None if hidden is None or hidden >= longest - 1 else hidden + 1,
                encoder_rounds=1 + self.encoder_hidden_layers,
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
            noise=self.variance,
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

    def _state(self) -> dict[str, np.ndarray]:
        weights = {f"net/{k}": v.cpu().numpy() for k, v in self._net.state_dict().items()}
        return {**weights, **{f"layout/{k}": v for k, v in self._layout.arrays().items()}}

    def _set_state(self, state: dict[str, np.ndarray]) -> None:
        arrays = {k.removeprefix("layout/"): v for k, v in state.items() if k.startswith("layout/")}
        layout = Layout(self.graph, self.schema_, **arrays)
        net = self._build(layout, torch.Generator().manual_seed(0))
        weights = {k.removeprefix("net/"): v for k, v in state.items() if k.startswith("net/")}
        try:
            net.load_state_dict({k: torch.from_numpy(np.array(v)) for k, v in weights.items()})
        except RuntimeError as error:
            raise KeyError(str(error)) from None
        self._become(layout, net.to(self.device))

    # ------------------------------------------------------------------ the three primitives

    def noise(self, n: int, rng: np.random.Generator) -> Noise:
        """Draw z, the noise of the decoder and (states) of the action step's encoder."""
        u: Noise = {}
        for name, size in self._latents():
            u[f"z/{name}"] = rng.standard_normal((n, size) if size else n)
        u.update(self._layout.column_noise(n, rng))
        if not self.output_noise:
            u.update({k: np.zeros(n) for k in u if k.startswith("eps/")})
        if self.messages == "states":
            for name in self.graph.nodes:
                u[f"action/{name}"] = rng.standard_normal((n, self.latent_dim))
        return u

    @torch.no_grad()
    def abduct(self, x: Columns, rng: np.random.Generator | None = None) -> Noise:
        """Encode the rows; without ``rng`` the posterior mean. Keeps what the decoder misses."""
        layout, net = self._layout, self._net
        values = torch.from_numpy(layout.tensor(x)).to(self.device)
        rows = values.shape[1]
        uniforms = layout.uniforms(rows, rng, values.device)
        names = [name for name, _ in self._latents()]
        size = () if isinstance(net, ValueNetwork) else (self.latent_dim,)
        noise = _normal(rng, (len(names), rows, *size), values.device)
        parts = []
        for rows_ in _blocks(rows):
            here = [t[:, rows_] for t in (values, noise, *uniforms)]
            parts.append(net.abduct(*here))
        z, eps, logistic, gumbel, shift = (
            torch.cat(part, 1).cpu().numpy() for part in zip(*parts, strict=True)
        )
        u: Noise = {f"z/{name}": value for name, value in zip(names, z, strict=True)}
        if isinstance(net, StateNetwork):
            action = _normal(rng, noise.shape, values.device).cpu().numpy()
            u.update({f"action/{name}": value for name, value in zip(names, action, strict=True)})
        u.update(layout.unpack(eps, logistic, gumbel, shift))
        return u

    @torch.no_grad()
    def simulate(self, u: Noise, do: Columns) -> Columns:
        """Decode the noise with the edges into the intervened nodes cut and their values set."""
        layout, net = self._layout, self._net
        device = torch.device(self.device)
        packed = layout.pack(u, device)
        names = [name for name, _ in self._latents()]
        latents = ("z",) if isinstance(net, ValueNetwork) else ("z", "action")
        for key in latents:
            stacked = np.stack([u[f"{key}/{n}"] for n in names]) if names else np.zeros((0, 0))
            packed[key] = torch.from_numpy(stacked).to(device)
        given = {
            layout.names.index(c): torch.from_numpy(layout.values(c, v)).to(device)
            for c, v in do.items()
        }
        rows = packed["eps"].shape[1]
        parts = [
            net.generate(
                **{k: t[:, at] for k, t in packed.items()},
                do={i: v[at] for i, v in given.items()},
            )
            for at in _blocks(rows)
        ]
        out = layout.columns(torch.cat(parts, 1).cpu().numpy())
        out.update(do)
        return out

    # ------------------------------------------------------------------ beyond the contract

    def encode(self, data: Any) -> pd.DataFrame:
        """The latent Z of each row: for each node its columns ``node.z0``, ``node.z1``, ...

        Returns
        -------
        DataFrame with the index of ``data``; posterior means. With ``messages="values"`` a discrete
        column's latent is its noise: a normal score (binary, ordinal, count) or the Gumbel noise of
        each level (categorical), at the middle of its posterior.
        """
        frame = as_frame(data)
        parts = [self._encode(self.abduct(x, None)) for x in self._pieces(frame)]
        names = list(parts[0])
        whole = {k: np.concatenate([p[k] for p in parts]) for k in names}
        return pd.DataFrame(whole, index=frame.index)

    def _encode(self, u: Noise) -> dict[str, np.ndarray]:
        out: dict[str, np.ndarray] = {}
        for node in self.graph.nodes:
            found = []
            if self.messages == "states":
                found = list(u[f"z/{node}"].T)
            else:
                for column in self.graph.columns(node):
                    if f"z/{column}" in u:
                        found.append(u[f"z/{column}"])
                    elif f"gumbel/{column}" in u:
                        found += list(u[f"gumbel/{column}"].T)
                    else:
                        found.append(_normal_score(u[f"logistic/{column}"]))
            out.update({f"{node}.z{k}": value for k, value in enumerate(found)})
        return out

    def reconstruct(self, data: Any) -> pd.DataFrame:
        """The rows as the decoder gives them from the mean of their latents, without residual."""
        frame = as_frame(data)
        parts = []
        for x in self._pieces(frame):
            u = self.abduct(x, None)
            u.update({k: np.zeros_like(v) for k, v in u.items() if k.startswith("eps/")})
            parts.append(self.simulate(u, {}))
        whole = {k: np.concatenate([p[k] for p in parts]) for k in parts[0]}
        return self.schema_.decode(whole, index=frame.index)

    @torch.no_grad()
    def log_prob(self, data: Any, k: int = 100, seed: int = 0) -> pd.Series:
        r"""The importance-weighted lower bound on log p(x) with ``k`` samples, per row.

        .. math:: \log \frac1K \sum_{k=1}^K \frac{p(x, z_k)}{q(z_k \mid x)}, \quad z_k \sim q

        In the user's units: a density in continuous columns, a probability in discrete ones.
        """
        frame = as_frame(data)
        generator = torch.Generator(device=self.device).manual_seed(seed)
        parts = []
        for x in self._pieces(frame):
            values = torch.as_tensor(self._layout.tensor(x), dtype=torch.float32)
            values = values.to(self.device)
            parts.append(_bound(self._net, values, k, generator).cpu().numpy())
        found = np.concatenate(parts) - self._layout.log_scale()
        return pd.Series(found, index=frame.index, name="log_prob")

    def _pieces(self, frame: pd.DataFrame) -> list[Columns]:
        x = self.schema_.encode(frame)
        return [
            {c: v[a : a + CHUNK] for c, v in x.items()} for a in range(0, max(len(frame), 1), CHUNK)
        ]

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


def _bound(
    net: ValueNetwork | StateNetwork, x: Tensor, k: int, generator: torch.Generator
) -> Tensor:
    """The importance-weighted bound of each row (the ELBO for k = 1), in pieces that fit a cache."""
    out = []
    size = max(1, 20_000 // k)
    for part in x.split(size, dim=1):
        t = net.terms(part, k, generator)
        out.append(t.log_likelihood[0] - t.kl if k == 1 else objectives.importance_bound(t))
    return torch.cat(out)


def _normal(
    rng: np.random.Generator | None, shape: tuple[int, ...], device: torch.device
) -> Tensor:
    drawn = np.zeros(shape) if rng is None else rng.standard_normal(shape)
    return torch.from_numpy(drawn).to(device)


def _blocks(rows: int) -> list[slice]:
    """Rows in blocks whose intermediate results stay in the cache."""
    return [slice(a, a + BLOCK) for a in range(0, max(rows, 1), BLOCK)]


def _normal_score(logistic: np.ndarray) -> np.ndarray:
    from scipy.special import expit, ndtri

    return -np.sign(logistic) * ndtri(expit(-np.abs(logistic)))


def _positive(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0


def _fingerprint(model: VACA, x: Tensor) -> str:
    parts = [repr(sorted(model.get_params(deep=False).items(), key=lambda item: item[0]))]
    digest = hashlib.sha256("".join(parts).encode())
    digest.update(np.ascontiguousarray(x.cpu().numpy()).tobytes())
    return digest.hexdigest()
