"""What engines with a latent per node or column share: training, the primitives, the latents."""

from __future__ import annotations

import abc
import math
from copy import copy, deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from vaca.engines.engine import Engine
from vaca.engines.fit_input import FitInput, weight_tensors
from vaca.engines.gumbel import ASSUMPTION
from vaca.engines.layout import Layout
from vaca.engines.nn import objectives
from vaca.engines.nn.network import Network
from vaca.engines.nn.objectives import OBJECTIVES, Objective
from vaca.engines.parameters import TrainingParameters
from vaca.engines.train_config import TrainConfig, fingerprint, patience_in_epochs
from vaca.engines.training import train as train_network
from vaca.errors import VacaError
from vaca.model.primitives import CHUNK, Noise
from vaca.table.columns import take_rows
from vaca.table.schema import Columns, as_frame

#: Steps of a refit: enough for the answers to move as far as other rows would move them.
REFIT_STEPS, REFIT_LR = 150, 3e-3
#: Rows of a query that go through the network at once.
BLOCK = 2048


@dataclass(eq=False, repr=False, kw_only=True)
class LatentEngine(Engine, TrainingParameters, abc.ABC):
    """A variational autoencoder over a table; a subclass says which network it has.

    In addition to what all trained engines take (`vaca.engines.parameters.TrainingParameters`):

    Parameters
    ----------
    output_noise : bool
        Whether samples get output noise.
    objective : {"elbo", "iwae", "dreg", "piwae"}
        The bound to train on, with ``samples`` draws for each row, and for "elbo" and "piwae"
        ``beta`` on the KL term.
    validation_samples : int
        Importance samples of the validation score.
    weight_decay : float
        See `vaca.engines.train_config.TrainConfig`.

    Attributes
    ----------
    n_parameters_ : int
        Trained numbers.
    """

    n_parameters_: int = field(init=False)

    output_noise: bool = True
    objective: Objective = "elbo"
    samples: int = 1
    beta: float = 1.0
    validation_samples: int = 1
    weight_decay: float = 0.0

    # ------------------------------------------------------------------ for subclasses

    @abc.abstractmethod
    def _check_parameters(self) -> None:
        """Raise VacaError if a parameter cannot be used."""

    @abc.abstractmethod
    def _build(self, layout: Layout, generator: torch.Generator) -> Network:
        """The network, with starting weights from the generator."""

    @abc.abstractmethod
    def _schedule(self, rows: int) -> dict[str, Any]:
        """`TrainConfig`'s epochs, batch_size, schedule and so on, for this number of rows."""

    def _given(self) -> tuple[str, ...]:
        """Columns that are not learned: rows of them are drawn."""
        return ()

    def _decay(self, layout: Layout, rows: int) -> float:
        """The weight decay for a table of this size."""
        return self.weight_decay

    def _scored(self, bound: Tensor) -> Tensor:
        """What each validation row with this bound adds to the score."""
        return bound

    def _check_objective(self) -> None:
        if self.objective not in OBJECTIVES:
            raise VacaError(f"objective is one of {OBJECTIVES}; got {self.objective!r}")

    # ------------------------------------------------------------------ fitting

    def _fit(self, given: FitInput) -> None:
        self._check_parameters()
        layout = Layout.of(self.graph, self.schema_, given.train, self._given())
        generator = torch.Generator().manual_seed(self.seed)
        net = self._build(layout, generator).to(self.device)
        draws = torch.Generator(device=self.device).manual_seed(self.seed + 1)
        x = torch.as_tensor(layout.tensor(given.train), dtype=torch.float32, device=self.device)
        held_out = torch.as_tensor(
            layout.tensor(given.validation), dtype=torch.float32, device=self.device
        )
        own, others = weight_tensors(given.weights, self.device)
        rows = x.shape[1]
        net.begin(x, own)
        schedule = self._schedule(rows)

        def loss(index: Tensor, t: float, gen: torch.Generator) -> Tensor:
            net.anneal(t)
            return self._loss(net, x, index, gen, own)

        def score() -> float:
            net.anneal(1.0)
            gen = torch.Generator(device=self.device).manual_seed(0)
            bound = self._scored(_bound(net, held_out, self.validation_samples, gen))
            return -float((bound if others is None else others * bound).mean())

        history = train_network(
            net,
            loss=loss,
            rows=rows,
            validate=score,
            config=TrainConfig(
                **schedule,
                lr=self.lr,
                weight_decay=self._decay(layout, rows),
                patience=patience_in_epochs(self.patience, schedule["epochs"]),
                optimizer=net.optimizer,
                beta2=net.beta2,
                time_budget=self.time_budget,
            ),
            generator=draws,
            checkpoint=given.checkpoint,
            progress=given.progress is not False,
            label=type(self).__name__,
            fingerprint=fingerprint(
                self.get_params(deep=False), x, held_out, *(w for w in (own,) if w is not None)
            ),
        )
        self.history_ = history.frame()
        self._become(layout, net)

    def _refit(self, train: Columns, weights: np.ndarray, seed: int) -> LatentEngine:
        """Some steps on the weighted rows from where this network is."""
        result = copy(self)
        result._weigh_blocks(weights)
        net = deepcopy(self._net).float().train()
        x = torch.as_tensor(self._layout.tensor(train), dtype=torch.float32, device=self.device)
        own, _ = weight_tensors((weights, weights), self.device)
        batch = min(self.batch_size, max(32, x.shape[1] // 8))

        def loss(index: Tensor, t: float, gen: torch.Generator) -> Tensor:
            return self._loss(net, x, index, gen, own)

        train_network(
            net,
            loss=loss,
            rows=x.shape[1],
            validate=None,
            config=TrainConfig(
                epochs=max(1, round(REFIT_STEPS / math.ceil(x.shape[1] / batch))),
                batch_size=batch,
                steps=REFIT_STEPS,
                lr=REFIT_LR,
                weight_decay=self._decay(self._layout, x.shape[1]),
                patience=None,
                schedule="cosine",
                ema=0.98,
                grad_clip=self._schedule(x.shape[1]).get("grad_clip"),
                optimizer=net.optimizer,
                beta2=net.beta2,
            ),
            generator=torch.Generator(device=self.device).manual_seed(seed),
            progress=False,
        )
        result._become(self._layout, net)
        return result

    def _loss(
        self, net: Network, x: Tensor, index: Tensor, gen: torch.Generator, own: Tensor | None
    ) -> Tensor:
        return objectives.loss(
            net,
            x[:, index],
            self.objective,
            k=self.samples,
            beta=self.beta,
            generator=gen,
            weights=None if own is None else own[index],
        )

    def _become(self, layout: Layout, net: Network) -> None:
        net.anneal(1.0)
        self._layout = layout
        self._net = net.eval()
        self.n_parameters_ = sum(p.numel() for p in net.parameters())

    def _state(self) -> dict[str, np.ndarray]:
        weights = {f"net/{k}": v.cpu().numpy() for k, v in self._net.state_dict().items()}
        if self._layout.given and self._block_weights is not None:
            weights["block_weights"] = self._block_weights
        return {**weights, **{f"layout/{k}": v for k, v in self._layout.arrays().items()}}

    def _set_state(self, state: dict[str, np.ndarray]) -> None:
        arrays = {k.removeprefix("layout/"): v for k, v in state.items() if k.startswith("layout/")}
        given = self._given() if arrays.pop("given", None) is not None else ()
        layout = Layout(self.graph, self.schema_, **arrays, given=given)
        self._block_weights = state.get("block_weights")
        net = self._build(layout, torch.Generator().manual_seed(0))
        weights = {k.removeprefix("net/"): v for k, v in state.items() if k.startswith("net/")}
        try:
            net.load_state_dict({k: torch.from_numpy(np.array(v)) for k, v in weights.items()})
        except RuntimeError as error:
            raise VacaError(str(error)) from None
        self._become(layout, net.to(self.device))

    # ------------------------------------------------------------------ the three primitives

    def noise(self, n: int, rng: np.random.Generator) -> Noise:
        """Draw z, the noise of the decoder and that of the action step's encoder, if any."""
        u: Noise = {}
        shape, (latent, *others) = (n, *self._net.latent_shape), self._net.latent_noises
        for name in self._latents():
            u[f"{latent}/{name}"] = rng.standard_normal(shape)
        u.update(self._layout.column_noise(n, rng))
        if not self.output_noise:
            u.update({k: np.zeros(n) for k in u if k.startswith("eps/")})
        for key in others:
            u.update({f"{key}/{name}": rng.standard_normal(shape) for name in self._latents()})
        if self._layout.given:
            u.update({f"given/{name}": values for name, values in self._drawn(n, rng).items()})
        return u

    def _latents(self) -> list[str]:
        """The nodes or columns that have a latent."""
        return self._net.latent_names(self._layout.names, self.graph.nodes)

    @torch.no_grad()
    def abduct(self, x: Columns, rng: np.random.Generator | None = None) -> Noise:
        """Encode the rows; without ``rng`` the posterior mean. Keeps what the decoder misses."""
        layout, net = self._layout, self._net
        values = torch.from_numpy(layout.tensor(x)).to(self.device)
        rows = values.shape[1]
        uniforms = layout.uniforms(rows, rng, values.device)
        names, (latent, *others) = self._latents(), net.latent_noises
        noise = _normal(rng, (len(names), rows, *net.latent_shape), values.device)
        parts = []
        for rows_ in _blocks(rows):
            here = [t[:, rows_] for t in (values, noise, *uniforms)]
            parts.append(net.abduct(*here))
        z, eps, logistic, gumbel, shift = (
            torch.cat(part, 1).cpu().numpy() for part in zip(*parts, strict=True)
        )
        u: Noise = {f"{latent}/{name}": value for name, value in zip(names, z, strict=True)}
        for key in others:
            drawn = _normal(rng, tuple(noise.shape), values.device).cpu().numpy()
            u.update({f"{key}/{name}": value for name, value in zip(names, drawn, strict=True)})
        u.update(layout.unpack(eps, logistic, gumbel, shift))
        return u | {f"given/{name}": np.array(x[name]) for name in layout.given}

    @torch.no_grad()
    def simulate(self, u: Noise, do: Columns) -> Columns:
        """Decode the noise with the edges into the intervened nodes cut and their values set."""
        layout, net = self._layout, self._net
        do = {name: u[f"given/{name}"] for name in layout.given} | do
        device = torch.device(self.device)
        packed = layout.pack(u, device)
        names = self._latents()
        for key in net.latent_noises:
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
        DataFrame with the index of ``data``; posterior means. A discrete column without a latent
        gives its noise instead, at the middle of its posterior: a normal score (binary, ordinal,
        count) or the Gumbel noise of each level (categorical).
        """
        frame = as_frame(data)
        parts = [self._latents_of(self.abduct(x, None)) for x in self._pieces(frame)]
        names = list(parts[0])
        whole = {k: np.concatenate([p[k] for p in parts]) for k in names}
        return pd.DataFrame(whole, index=frame.index)

    def _latents_of(self, u: Noise) -> dict[str, np.ndarray]:
        out: dict[str, np.ndarray] = {}
        latents = set(self._latents())
        for node in self.graph.nodes:
            found: list[np.ndarray] = []
            for name in (node,) if node in latents else self.graph.columns(node):
                if name in latents:
                    found += list(np.atleast_2d(u[f"z/{name}"].T))
                elif f"gumbel/{name}" in u:
                    found += list(u[f"gumbel/{name}"].T)
                elif f"logistic/{name}" in u:
                    found.append(_normal_score(u[f"logistic/{name}"]))
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

    def _assumption(self, column: str) -> tuple[bool, str]:
        if self.schema_.kind(column) == "categorical":
            return False, ASSUMPTION
        return False, "the encoder's posterior of the latent, plus the kept residual"

    def _pieces(self, frame: pd.DataFrame) -> list[Columns]:
        x = self.schema_.encode(frame)
        return [take_rows(x, slice(a, a + CHUNK)) for a in range(0, max(len(frame), 1), CHUNK)]


def _bound(net: Network, x: Tensor, k: int, generator: torch.Generator) -> Tensor:
    """The importance-weighted bound of each row (k = 1: the ELBO), in pieces that fit a cache."""
    out = []
    size = max(1, 4000 // k)
    for part in x.split(size, dim=1):
        t = net.terms(part, k, generator)
        out.append(t.elbo() if k == 1 else objectives.importance_bound(t))
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
