"""A table as one tensor: the order of the columns, their scale, and the graph in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from vaca.engines.nn.likelihoods import Discrete
from vaca.graph.dag import CausalGraph
from vaca.table.columns import row_count
from vaca.table.schema import Columns, Schema
from vaca.table.standard import Standard

#: Uniform noise is kept this far from 0 and 1, where its logarithm ends.
_EDGE = 1e-12


@dataclass(frozen=True)
class Layout:
    """Where each column is and how it is scaled.

    In the tensor, of shape (columns, rows), continuous columns are standardised, discrete ones are
    codes and counts are as they are.

    Attributes
    ----------
    graph, schema : CausalGraph, Schema
    mean, scale, top : ndarray of shape (columns,)
        Centre and unit of continuous and count columns (0 and 1 for the others), and the largest
        value that a count may take.
    given : tuple of str
        Columns whose values are given to the network and not learned; they come last.
    """

    graph: CausalGraph
    schema: Schema
    mean: np.ndarray
    scale: np.ndarray
    top: np.ndarray
    given: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, graph: CausalGraph, schema: Schema, x: Columns, given: tuple[str, ...] = ()
    ) -> Layout:
        """The layout with the mean and sd of the given rows."""
        mean, scale, top = [], [], []
        for name in _ordered(graph, given):
            numeric = schema.kind(name) in ("continuous", "count")
            centre = float(x[name].mean()) if numeric else 0.0
            sd = float(x[name].std()) if numeric else 1.0
            # A constant column gets a unit so small that its samples stay where it is. A column of
            # small numbers is not constant.
            constant = numeric and sd <= 1e-12 * float(np.abs(x[name]).max())
            least = 1e-6 * (max(1.0, abs(centre)) if constant else abs(centre))
            mean.append(centre)
            scale.append(max(sd, least if schema.kind(name) == "continuous" else 0.5))
            top.append(4.0 * float(x[name].max()) + 100.0 if schema.kind(name) == "count" else 0.0)
        return cls(graph, schema, np.array(mean), np.array(scale), np.array(top), given)

    def arrays(self) -> dict[str, np.ndarray]:
        """What to save, beside graph and schema."""
        arrays = {"mean": self.mean, "scale": self.scale, "top": self.top}
        return arrays | ({"given": np.array([len(self.given)])} if self.given else {})

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Columns in the order of the tensor."""
        return _ordered(self.graph, self.given)

    @property
    def learned(self) -> tuple[str, ...]:
        """Columns that are not given."""
        return self.names[: len(self.names) - len(self.given)]

    def specs(self) -> list[Discrete]:
        """Kind and size of each column."""
        found = []
        for i, name in enumerate(self.names):
            kind, levels = self.schema.kind(name), len(self.schema.levels(name))
            if kind == "count":
                m, s, t = float(self.mean[i]), float(self.scale[i]), float(self.top[i])
                found.append(Discrete(kind, mean=m, scale=s, top=t))
            else:
                found.append(Discrete(kind, levels=levels))
        return found

    # ------------------------------------------------------------------ the graph in numbers

    def node_columns(self) -> list[list[int]]:
        """Columns of each node."""
        place = {name: i for i, name in enumerate(self.names)}
        return [[place[c] for c in self.graph.columns(n)] for n in self.graph.nodes]

    def node_parents(self) -> list[list[int]]:
        """Parents of each node."""
        place = {name: i for i, name in enumerate(self.graph.nodes)}
        return [[place[p] for p in self.graph.parents(n)] for n in self.graph.nodes]

    def column_parents(self) -> list[list[int]]:
        """Parents of each column: all columns of the parents, and earlier ones of its own node.

        Columns that are given have none and are left out.
        """
        columns, result = self.node_columns(), {}
        for node, own in enumerate(columns):
            above = [c for p in self.node_parents()[node] for c in columns[p]]
            for k, column in enumerate(own):
                result[column] = above + own[:k]
        return [result[i] for i in range(len(self.learned))]

    # ------------------------------------------------------------------ rows

    def tensor(self, x: Mapping[str, np.ndarray]) -> np.ndarray:
        """Encoded columns as an array of shape (columns, rows)."""
        rows = row_count(x)
        out = np.empty((len(self.names), rows))
        for i, name in enumerate(self.names):
            numeric = self.schema.kind(name) == "continuous"
            out[i] = self._standard(i).to(x[name]) if numeric else x[name]
        return out

    def values(self, name: str, x: np.ndarray) -> np.ndarray:
        """One column's standardised values."""
        if self.schema.kind(name) != "continuous":
            return np.asarray(x, dtype=float)
        return self._standard(self.names.index(name)).to(x)

    def columns(self, x: np.ndarray) -> Columns:
        """The inverse of `tensor`."""
        out: Columns = {}
        for i, name in enumerate(self.names):
            kind = self.schema.kind(name)
            if kind == "continuous":
                out[name] = self._standard(i).back(x[i])
            elif kind == "count":
                out[name] = np.rint(x[i])
            else:
                out[name] = np.rint(x[i]).astype(np.int64)
        return out

    def _standard(self, i: int) -> Standard:
        return Standard(self.mean[i], self.scale[i])

    def log_scale(self) -> float:
        """Sum of the logarithms of the units of the continuous columns."""
        at = [i for i, n in enumerate(self.learned) if self.schema.kind(n) == "continuous"]
        return float(np.log(self.scale[at]).sum())

    # ------------------------------------------------------------------ noise of the columns

    def column_noise(self, n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Prior noise of the decoder: `eps` of continuous, `logistic` or `gumbel` of discrete."""
        u: dict[str, np.ndarray] = {}
        for name in self.learned:
            kind = self.schema.kind(name)
            if kind == "continuous":
                u[f"eps/{name}"] = rng.standard_normal(n)
            elif kind == "categorical":
                u[f"gumbel/{name}"] = rng.gumbel(size=(n, len(self.schema.levels(name))))
            else:
                u[f"logistic/{name}"] = rng.logistic(size=n)
                if kind == "count":
                    u[f"shift/{name}"] = np.zeros(n)
        return u

    def pack(self, u: Mapping[str, np.ndarray], device: torch.device) -> dict[str, Tensor]:
        """The noise of `column_noise` as tensors: eps, logistic, shift and gumbel."""
        rows = row_count(u)
        out = {k: np.zeros((len(self.names), rows)) for k in ("eps", "logistic", "shift")}
        categories = [n for n in self.learned if self.schema.kind(n) == "categorical"]
        most = max((len(self.schema.levels(n)) for n in categories), default=0)
        gumbel = np.zeros((len(categories), rows, most))
        for i, name in enumerate(self.learned):
            for key, array in out.items():
                if f"{key}/{name}" in u:
                    array[i] = u[f"{key}/{name}"]
        for i, name in enumerate(categories):
            gumbel[i, :, : len(self.schema.levels(name))] = u[f"gumbel/{name}"]
        return {k: torch.from_numpy(v).to(device) for k, v in {**out, "gumbel": gumbel}.items()}

    def unpack(
        self, eps: np.ndarray, logistic: np.ndarray, gumbel: np.ndarray, shift: np.ndarray
    ) -> dict[str, np.ndarray]:
        """The inverse of `pack`."""
        u: dict[str, np.ndarray] = {}
        category = 0
        for i, name in enumerate(self.learned):
            kind = self.schema.kind(name)
            if kind == "continuous":
                u[f"eps/{name}"] = eps[i]
            elif kind == "categorical":
                levels = len(self.schema.levels(name))
                u[f"gumbel/{name}"] = gumbel[category, :, :levels]
                category += 1
            else:
                u[f"logistic/{name}"] = logistic[i]
                if kind == "count":
                    u[f"shift/{name}"] = shift[i]
        return u

    def uniforms(
        self, rows: int, rng: np.random.Generator | None, device: torch.device
    ) -> tuple[Tensor, Tensor]:
        """Uniforms for the posterior of the discrete noise; without ``rng`` the middle, 1/2."""
        categories = [n for n in self.learned if self.schema.kind(n) == "categorical"]
        most = max((len(self.schema.levels(n)) for n in categories), default=0)
        shapes = ((len(self.names), rows), (len(categories), rows, most))
        if rng is None:
            arrays = [np.full(shape, 0.5) for shape in shapes]
        else:
            arrays = [np.clip(rng.random(shape), _EDGE, 1.0 - _EDGE) for shape in shapes]
        first, second = (torch.from_numpy(a).to(device) for a in arrays)
        return first, second


def _ordered(graph: CausalGraph, given: tuple[str, ...]) -> tuple[str, ...]:
    return (*(c for c in graph.all_columns if c not in given), *given)
