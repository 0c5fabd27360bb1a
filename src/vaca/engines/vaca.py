"""VACA: a variational graph autoencoder that answers interventions and counterfactuals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from vaca.engines.conditions import check_conditions, check_variance
from vaca.engines.engine import Engine
from vaca.engines.fit_input import FitInput
from vaca.engines.latent import LatentEngine
from vaca.engines.layout import Layout
from vaca.engines.nn.monotone import Form
from vaca.engines.nn.network import Network
from vaca.engines.nn.objectives import Objective
from vaca.engines.nn.value_network import ValueNetwork
from vaca.engines.paper_vaca import PaperVACA
from vaca.engines.train_config import plan_epochs
from vaca.engines.walls import keep_within
from vaca.graph.dag import CausalGraph
from vaca.model.primitives import Noise
from vaca.table.schema import Columns

#: A validation row counts as at most this far from the middle one: in nats, and in the median of
#: such distances, together.
_FAR = 10.0
#: The longest gradient of a column.
_LONGEST = 10.0


@dataclass(eq=False, repr=False, kw_only=True)
class VACA(LatentEngine):
    r"""Variational causal graph autoencoder.

    .. math:: p(X) \approx \int p_\theta(X \mid Z, A)\, p(Z)\, dZ, \qquad q_\phi(Z \mid X, A)

    One latent per column with prior N(0, 1); a decoder and an encoder that are graph networks over
    the causal graph A. An intervention cuts the edges into a node and sets its value; a
    counterfactual encodes the factual row (abduction), cuts and sets (action) and decodes
    (prediction). The decoder needs as many rounds of messages as the longest path has edges (design
    condition 1), the encoder exactly one (design condition 2).

    Before training every column is fitted alone, by lines, curves and steps, and by a spread that
    follows its causes: the decoder starts from what these say (see `vaca.engines.nn.starts`).

    Nodes send their values to their children, and decoders increase in their own latent (see
    `vaca.engines.nn.value_network`). The published network sends hidden states instead: see
    `PaperVACA`, and `VACA.paper` for the settings of the paper's SCMs.

    What all autoencoders take is in `vaca.engines.latent.LatentEngine`.

    Parameters
    ----------
    width, depth : int
        Units and number of hidden layers of the update networks.
    embedding : int
        Features of a value that a node sends.
    map_steps : int
        Steps of the increasing maps.
    hidden_layers : int, optional
        Of the decoder: one less than its rounds of messages; by default as many as the graph needs.
    encoder_hidden_layers : int
        More than 0 breaks design condition 2.
    refinements : int
        Newton steps from the encoder's guess towards the mode of the posterior.
    objective, samples, validation_samples
        See `vaca.engines.latent.LatentEngine`. Under the ELBO, noise with a jump gets the wrong
        shape beside it: a normal posterior that reaches across the jump costs too much.
    variance : {"decoder", "column"} or float
        Output noise of continuous columns: given by the decoder, learned for each column, or fixed.
    noise_cap : float
        Largest sd of the output noise, in sds of the column.
    steps : int
        Gradient steps.
    weight_decay : float
        Not part of the gradient. With a block of causes, and more weights on the messages into one
        column than there are rows, it grows by that ratio.
    ema : float, optional
        See `vaca.engines.train_config.TrainConfig`.

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

    revision = 5
    _form: Form = field(init=False, default="scaled")  # of the decoder's maps
    _direct: bool = field(init=False, default=True)  # whether parents also act directly
    _breaks: int | None = field(init=False, default=0)  # steps and bends; None: of revision 4

    width: int = 64
    depth: int = 1
    embedding: int = 16
    map_steps: int = 8
    hidden_layers: int | None = None
    encoder_hidden_layers: int = 0
    objective: Objective = "iwae"
    samples: int = 8
    validation_samples: int = 8
    refinements: int = 1
    variance: str | float = "decoder"
    noise_cap: float = 0.05
    steps: int = 2000
    weight_decay: float = 1.0
    ema: float | None = 0.99

    @classmethod
    def paper(cls, name: str, graph: CausalGraph | None = None, **changes: Any) -> PaperVACA:
        """The paper's model for one of its SCMs, with the sizes of its appendix E.

        Parameters
        ----------
        name : str
            "collider-lin" and so on; see `vaca.scms.names`. Or "german-credit", with its graph.
        graph : CausalGraph, optional
            Default: the graph of that SCM.
        **changes
            Parameters of `PaperVACA` to set otherwise.

        Examples
        --------
        >>> VACA.paper("collider-lin").residual
        True
        """
        return PaperVACA.paper(name, graph, **changes)

    @classmethod
    def _renew(cls, parameters: Mapping[str, Any]) -> tuple[type[Engine], dict[str, Any]]:
        # In format 1 both networks were one class, told apart by what they sent.
        if parameters.get("messages") == "states":
            return PaperVACA._renew(parameters)
        return super()._renew(parameters)

    def _check_parameters(self) -> None:
        self._check_objective()
        check_variance(self.variance, "decoder", "column")
        check_conditions(self.graph.longest_path, self.hidden_layers, self.encoder_hidden_layers)

    def _given(self) -> tuple[str, ...]:
        """The columns of blocks without causes, unless there is nothing else."""
        drawn = tuple(self._observed)
        return drawn if len(drawn) < len(self.graph.all_columns) else ()

    def _decay(self, layout: Layout, rows: int) -> float:
        """More of it where a block gives a column more weights than there are rows."""
        if not layout.given:
            return self.weight_decay
        most = max(map(len, layout.column_parents()))
        return self.weight_decay * max(1.0, most * self.embedding * self.width / rows)

    def _scored(self, bound: Tensor) -> Tensor:
        # Where noise is small, a row in a hundred that is missed by far costs a thousand nats, and
        # the score would be of such rows alone: it would keep early weights, blurred for all rows.
        middle = bound.median()
        return bound.clamp(min=middle - _FAR * (1.0 + (bound - middle).abs().median()))

    def _fit(self, given: FitInput) -> None:
        self._form, self._direct, self._breaks = "scaled", True, 0
        super()._fit(given)

    def _state(self) -> dict[str, np.ndarray]:
        # Folders of revision 1 say nothing of the form, those up to 4 nothing of breaks.
        state = super()._state() | ({self._form: np.array([1])} if self._form != "softplus" else {})
        if self._breaks is None:
            return state
        return state | {"breaks": np.array([len(state.get("net/decoder.breaks.place", ()))])}

    def _set_state(self, state: dict[str, np.ndarray]) -> None:
        forms: tuple[Form, ...] = ("scaled", "squares", "softplus")
        self._form = next(form for form in forms if form in state or form == "softplus")
        self._direct = "net/decoder.direct" in state
        self._breaks = int(state["breaks"][0]) if "breaks" in state else None
        super()._set_state(state)

    def _build(self, layout: Layout, generator: torch.Generator) -> ValueNetwork:
        hidden, needed = self.hidden_layers, self.graph.longest_path - 1
        return ValueNetwork(
            layout.column_parents(),
            layout.specs(),
            width=self.width,
            depth=self.depth,
            embedding=self.embedding,
            steps=self.map_steps,
            noise=self.variance,
            cap=self.noise_cap,
            rounds=None if hidden is None or hidden >= needed else hidden + 1,
            encoder_rounds=1 + self.encoder_hidden_layers,
            refinements=self.refinements,
            form=self._form,
            # Lines from each column of a block would be many, and no decay would hold them.
            direct=self._direct and not layout.given,
            breaks=self._breaks,
            generator=generator,
        )

    def _loss(
        self, net: Network, x: Tensor, index: Tensor, gen: torch.Generator, own: Tensor | None
    ) -> Tensor:
        """The loss, whose gradients are left in the network, shortened for each column alone.

        A column that is missed by far has long ones, and would hold up all others.
        """
        loss = super()._loss(net, x, index, gen, own)
        if loss.requires_grad:  # else they are there already
            loss.backward()
        cast("ValueNetwork", net).calm(_LONGEST)
        return loss.detach()

    def _schedule(self, rows: int) -> dict[str, Any]:
        epochs, batch = plan_epochs(self.steps, rows, self.batch_size)
        return {
            "epochs": epochs,
            "steps": self.steps,
            "batch_size": batch,
            "schedule": "onecycle",
            "ema": self.ema,
            "validate_every": max(1, epochs // 50),
        }

    def simulate(self, u: Noise, do: Columns) -> Columns:
        """Decode the noise, with edges into intervened nodes cut; columns stay within walls."""
        out = super().simulate(u, do)
        for column, values in out.items():
            drawn = column in do or column in self._layout.given
            if not drawn and not self.schema_[column].discrete:
                out[column] = keep_within(values, self.schema_[column])
        return out

    def _assumption(self, column: str) -> tuple[bool, str]:
        kind = self.schema_.kind(column)
        if kind == "categorical":
            return super()._assumption(column)
        if kind == "continuous":
            return False, "noise that moves the column in one direction (monotone), one per column"
        return False, "one threshold noise: the column moves with the order of its levels"
