r"""CAREFL: an autoregressive spline flow over a causal ordering.

.. math:: u = T_K \circ \dots \circ T_1(x), \qquad u_j = T_j(x_j \mid x_{<j}),\; u_j \sim N(0, 1)

All layers keep the same ordering, so the whole is triangular: a structural model in which a column
may depend on every earlier one, parent or not.

Reference: I. Khemakhem, R. Monti, R. Leech, A. Hyvarinen, "Causal autoregressive flows",
AISTATS 2021; with splines and the sizes of the paper's appendix E.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from vaca.engines.engine import Engine
from vaca.engines.fit_input import FitInput
from vaca.engines.nn.flow_network import Head, Mechanisms
from vaca.engines.paper_settings import CAREFL_SETTINGS, paper_parameters
from vaca.engines.parameters import TrainingParameters
from vaca.engines.train_config import TrainConfig, fingerprint, patience_in_epochs
from vaca.engines.training import train
from vaca.graph.dag import CausalGraph
from vaca.model.primitives import Noise
from vaca.table.columns import row_count
from vaca.table.schema import Columns

__all__ = ["CAREFL"]


@dataclass(eq=False, repr=False, kw_only=True)
class CAREFL(Engine, TrainingParameters):
    r"""Autoregressive neural spline flow over the graph's causal ordering.

    An intervention sets the node to its value; later columns follow with their noise unchanged.
    The flow knows the ordering and not the graph, so a column that is no descendant of the
    intervened node might still react to it: such columns are held at the values they have without
    the intervention.

    Discrete columns are spread over unit cells (code + uniform noise), as if they were continuous,
    and cut back to the nearest valid level; the order of the levels of a categorical column is that
    of the schema, and arbitrary.

    What all trained engines take is in `vaca.engines.parameters.TrainingParameters`.

    Parameters
    ----------
    flows : int
        Layers.
    width : int
        Hidden units of the network that each column has in each layer.
    bins : int
        Spline bins.
    bound : float
        The splines act on :math:`\pm` ``bound`` standard deviations.
    epochs : int
        See `vaca.engines.train_config.TrainConfig`.

    Examples
    --------
    >>> import vaca
    >>> scm = vaca.scms.load("chain-lin")
    >>> flow = vaca.CAREFL(scm.graph, flows=2, width=8, epochs=5).fit(scm.sample(200, seed=0))
    >>> flow.sample(3, do={"x2": 1.0}, seed=0)["x2"].tolist()
    [1.0, 1.0, 1.0]
    """

    _weighs = False
    _renamed = {"hidden": "width"}

    flows: int = 3
    width: int = 32
    bins: int = 8
    bound: float = 5.0
    epochs: int = 200
    patience: float | None = 0.25

    @classmethod
    def paper(cls, name: str, graph: CausalGraph | None = None, **changes: Any) -> CAREFL:
        """The configuration of the paper's appendix E for one of its SCMs.

        >>> CAREFL.paper("collider-lin").flows
        2
        """
        return cls(**paper_parameters(name, graph, CAREFL_SETTINGS, changes))

    # ------------------------------------------------------------------ learning

    @property
    def _names(self) -> list[str]:
        """Columns in the causal ordering."""
        return [c for node in self.graph.order for c in self.graph.columns(node)]

    def _cells(self) -> np.ndarray:
        """Which columns are spread over unit cells."""
        return np.array([self.schema_.kind(c) != "continuous" for c in self._names])

    def _build(self, generator: torch.Generator) -> nn.ModuleList:
        d = len(self._names)
        return nn.ModuleList(
            Mechanisms(
                [Head("continuous")] * d,
                [list(range(j)) for j in range(d)],
                hidden=self.width,
                layers=1,
                bins=self.bins,
                bound=self.bound,
                affine=False,
                generator=generator,
            )
            for _ in range(self.flows)
        )

    def _fit(self, given: FitInput) -> None:
        names, cells = self._names, self._cells()
        rows, held_out = (
            np.stack([x[c].astype(float) for c in names], 1)
            for x in (given.train, given.validation)
        )
        spread = np.sqrt(rows.var(0) + cells / 12)
        self._mean = rows.mean(0) + 0.5 * cells
        self._scale = np.where(spread > 1e-12 * np.abs(self._mean), spread, 0.0)
        rng = np.random.default_rng([self.seed, 2])
        held_out = held_out + cells * rng.random(held_out.shape)
        generator = torch.Generator().manual_seed(self.seed)
        layers = self._build(generator).to(self.device)
        values = torch.from_numpy((rows - self._mean) / self._unit).float().to(self.device)
        checked = torch.from_numpy((held_out - self._mean) / self._unit).float().to(self.device)
        width = torch.from_numpy(cells / self._unit).float().to(self.device)
        # Repeated values of a continuous column must not have an infinite density.
        jitter = torch.from_numpy(np.where(cells, 0.0, 1e-3)).float().to(self.device)

        def loss(index: Tensor, t: float, generator: torch.Generator) -> Tensor:
            batch = values[index]
            uniform = torch.rand(batch.shape, generator=generator).to(self.device)
            batch = batch + width * uniform + jitter * (uniform - 0.5)
            return -_log_prob(layers, batch).mean()

        history = train(
            layers,
            loss=loss,
            rows=len(values),
            validate=lambda: -float(_log_prob(layers, checked).mean()),
            config=TrainConfig(
                epochs=self.epochs,
                batch_size=self.batch_size,
                lr=self.lr,
                patience=patience_in_epochs(self.patience, self.epochs),
                schedule="cosine",
                grad_clip=10.0,
                time_budget=self.time_budget,
            ),
            generator=generator,
            checkpoint=given.checkpoint,
            progress=given.progress is not False,
            label="CAREFL",
            fingerprint=fingerprint(self.get_params(deep=False), values, checked),
        )
        self.history_ = history.frame()
        self._layers = layers.double().eval()

    @property
    def _unit(self) -> np.ndarray:
        return np.where(self._scale > 0, self._scale, 1.0)

    # ------------------------------------------------------------------ the three primitives

    def noise(self, n: int, rng: np.random.Generator) -> Noise:
        """Standard normal noise for every column; places in their cells for discrete ones."""
        u: Noise = {}
        for column, cell in zip(self._names, self._cells(), strict=True):
            u[f"noise/{column}"] = rng.standard_normal(n)
            if cell:
                u[f"cell/{column}"] = rng.random(n)
        return u

    @torch.no_grad()
    def abduct(self, x: Columns, rng: np.random.Generator | None = None) -> Noise:
        """Noise u = T(x); discrete values are put at random (or in the middle) in their cells."""
        u: Noise = {}
        spread = []
        for column, cell in zip(self._names, self._cells(), strict=True):
            values = np.asarray(x[column], float)
            if cell:
                place = np.full(len(values), 0.5) if rng is None else rng.random(len(values))
                u[f"cell/{column}"] = place
                values = values + place
            u[f"value/{column}"] = np.array(x[column])
            spread.append(values)
        z = torch.from_numpy((np.stack(spread, 1) - self._mean) / self._unit).to(self.device)
        for layer in _mechanisms(self._layers):
            z = layer.push(z)[0]
        for j, column in enumerate(self._names):
            u[f"noise/{column}"] = z[:, j].cpu().numpy().copy()
        return u

    def simulate(self, u: Noise, do: Columns) -> Columns:
        """Column by column in the ordering; what `do` cannot reach stays as it is without it."""
        reached = {self.graph.node_of(c) for c in do}
        reached.update(self.graph.descendants(*reached))
        held = [c for c in self._names if self.graph.node_of(c) not in reached]
        before = None
        if do and held and f"value/{held[0]}" not in u:
            # Up to the last column that is held, as it is without the intervention.
            before = self._run(u, {}, self._names[: self._names.index(held[-1]) + 1])
        return self._run(u, do, self._names, set(held), before)[0]

    @torch.no_grad()
    def _run(
        self,
        u: Noise,
        do: Columns,
        names: list[str],
        held: set[str] | frozenset[str] = frozenset(),
        before: tuple[Columns, list[Tensor]] | None = None,
    ) -> tuple[Columns, list[Tensor]]:
        """Fix or invert one column after the other, in all layers.

        Returns the columns, and the standardised rows (n, d) that go into each layer and out of the
        last one.
        """
        n = row_count(u)
        cells = self._cells()
        stages = [
            torch.zeros(n, len(cells), dtype=torch.float64, device=self.device)
            for _ in range(len(self._layers) + 1)
        ]
        x: Columns = {}
        factual = f"value/{names[0]}" in u
        same = np.full(n, factual)  # rows that are as they were observed, so far
        for j, column in enumerate(names):
            if before is not None and column in held:
                x[column] = before[0][column]
                for stage, old in zip(stages, before[1], strict=True):
                    stage[:, j] = old[:, j]
            elif column in do:
                self._fix(np.asarray(do[column]), column, u, stages, j)
                x[column] = np.asarray(do[column])
            elif factual and (column in held or same.all()):
                self._fix(u[f"value/{column}"], column, u, stages, j)
                x[column] = u[f"value/{column}"].copy()
            else:
                noise = torch.from_numpy(u[f"noise/{column}"]).to(self.device)
                values = self._invert(noise, stages, j) * self._scale[j] + self._mean[j]
                if cells[j]:
                    values = self._level(column, values)
                x[column] = np.where(same, u[f"value/{column}"], values) if factual else values
            if factual:
                same &= x[column] == u[f"value/{column}"]
        return x, stages

    def _invert(self, noise: Tensor, stages: list[Tensor], j: int) -> np.ndarray:
        """The standardised value (n,) of column j with this noise; fills its place in `stages`."""
        stages[-1][:, j] = noise
        for k in reversed(range(len(self._layers))):
            above = stages[k + 1][:, j : j + 1]
            layer = _mechanisms(self._layers)[k]
            stages[k][:, j] = layer.numeric_value(above, stages[k], [j])[:, 0]
        return stages[0][:, j].cpu().numpy()

    def _fix(self, values: np.ndarray, column: str, u: Noise, stages: list[Tensor], j: int) -> None:
        """Give column j its value: replaces the noise by the one that leads to it."""
        place = values.astype(float) + u.get(f"cell/{column}", 0.0)
        scaled = torch.from_numpy((place - self._mean[j]) / self._unit[j])
        stages[0][:, j] = scaled.to(self.device)
        for k, layer in enumerate(_mechanisms(self._layers)):
            stages[k + 1][:, j] = layer.numeric_noise(stages[k], [j])[0][:, 0]

    def _level(self, column: str, values: np.ndarray) -> np.ndarray:
        spec = self.schema_[column]
        if spec.kind == "count":
            return np.maximum(np.floor(values), 0.0)
        return np.clip(np.floor(values), 0, len(spec.levels) - 1).astype(np.int64)

    def _assumption(self, column: str) -> tuple[bool, str]:
        if self.schema_.kind(column) == "continuous":
            return True, "the column is monotone in its own noise, given all earlier columns"
        return (
            False,
            "the levels are cells of a continuous column; the place in the cell is unknown",
        )

    # ------------------------------------------------------------------ save and load

    def _state(self) -> dict[str, np.ndarray]:
        state = {
            f"flow/{k}": v.detach().cpu().float().numpy()
            for k, v in self._layers.state_dict().items()
        }
        return state | {"mean": self._mean, "scale": self._scale}

    def _set_state(self, state: dict[str, np.ndarray]) -> None:
        self._mean, self._scale = state["mean"], state["scale"]
        layers = self._build(torch.Generator().manual_seed(0))
        layers.load_state_dict(
            {k[5:]: torch.from_numpy(v) for k, v in state.items() if k.startswith("flow/")}
        )
        self._layers = layers.double().eval().to(self.device)


def _mechanisms(layers: nn.ModuleList) -> list[Mechanisms]:
    return cast("list[Mechanisms]", list(layers))


def _log_prob(layers: nn.ModuleList, z: Tensor) -> Tensor:
    """Log-density (n,) of standardised rows."""
    total = z.new_zeros(len(z))
    for layer in _mechanisms(layers):
        z, slope = layer.push(z)
        total = total + slope.sum(1)
    return total - 0.5 * z.square().sum(1) - 0.5 * z.shape[1] * math.log(2 * math.pi)
