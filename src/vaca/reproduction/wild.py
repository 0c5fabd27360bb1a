"""Tables of all sorts, drawn at random by their number, on which nothing was tuned.

What real tables have and smooth textbook models have not: products of nearly tied causes, steps,
noise with two humps, heavy tails or a spread that follows the causes, rare levels, counts, positive
and skewed columns. A table has 200 to 20,000 rows; its number says how many.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from vaca.scm.distributions import Distribution, Gamma, Mixture, Normal
from vaca.scm.structural import StructuralCausalModel
from vaca.table.schema import Kind
from vaca.table.standard import Standard

__all__ = ["SIZES", "rows_of", "wild_scm"]

#: Rows of tables, in turn.
SIZES = (500, 2000, 200, 5000, 1000, 20_000)
Equation = Callable[[np.ndarray, np.ndarray], np.ndarray]


def rows_of(number: int) -> int:
    """How many rows the table of that number has.

    >>> rows_of(0), rows_of(5)
    (500, 20000)
    """
    return SIZES[number % len(SIZES)]


@dataclass(frozen=True)
class HeavyTails:
    """Student's t with three degrees of freedom and unit scale."""

    def rvs(self, size: int, random_state: np.random.Generator) -> np.ndarray:
        """Draw numbers."""
        return random_state.standard_t(3.0, size)

    def mean(self) -> float:
        """Zero."""
        return 0.0

    def std(self) -> float:
        """The root of three."""
        return 3.0**0.5


def wild_scm(number: int, named: Callable[..., Callable[..., np.ndarray]]) -> StructuralCausalModel:
    """The table of that number; ``named`` gives an equation's inputs their names."""
    rng = np.random.default_rng([number, 13])
    nodes = [f"x{i}" for i in range(1, int(rng.integers(3, 8)) + 1)]
    equations: dict[str, Callable[..., np.ndarray]] = {}
    noise: dict[str, Distribution] = {}
    kinds: dict[str, Kind] = {}
    levels: dict[str, range] = {}
    rows: dict[str, np.ndarray] = {}
    for i, node in enumerate(nodes):
        most = min(i, 4)
        wanted = int(rng.integers(0 if rng.random() < 0.25 else min(1, most), most + 1))
        parents = [nodes[j] for j in sorted(rng.choice(i, wanted, replace=False))] if wanted else []
        kind = str(
            rng.choice(["continuous", "binary", "categorical", "count"], p=[0.6, 0.2, 0.1, 0.1])
        )
        noise[node] = _noise(rng)
        u = noise[node].rvs(4000, random_state=rng)
        x = np.column_stack([rows[p] for p in parents]) if parents else u
        latent = _latent(x, rng) if parents else (lambda x, u: u)
        value = latent(x, u)
        if kind == "binary":  # one in three is rare
            cuts = np.quantile(value, [rng.uniform(0.95, 0.985) if rng.random() < 0.33 else 0.55])
        else:
            cuts = np.quantile(value, [0.4, 0.75])
        skewed = kind == "continuous" and rng.random() < 0.2
        equations[node] = named(parents, _of_kind(kind, latent, cuts, skewed))
        rows[node] = equations[node](**{p: rows[p] for p in parents}, u=u)
        if kind != "continuous":
            kinds[node] = kind  # type: ignore[assignment]
        if kind in ("binary", "categorical"):
            levels[node] = range(len(cuts) + 1)
    return StructuralCausalModel(
        equations, noise, kinds=kinds, levels=levels, name=f"wild-{number}"
    )


def _noise(rng: np.random.Generator) -> Distribution:
    choices = [Normal(0, 1), Gamma(2, 0.7), Mixture([Normal(-1.2, 0.1), Normal(1.2, 0.1)])]
    return [*choices, HeavyTails()][int(rng.choice(4, p=[0.5, 0.2, 0.15, 0.15]))]


def _latent(rows: np.ndarray, rng: np.random.Generator) -> Equation:
    """A number as a function of the causes and of noise, increasing in the noise."""
    standard = Standard.of(rows)
    d = rows.shape[1]
    slope, bend, turn = rng.normal(size=(3, d))
    form = str(rng.choice(["linear", "bent", "product", "steps"], p=[0.3, 0.35, 0.2, 0.15]))
    varies = 0.6 * rng.normal(size=d) if rng.random() < 0.35 else np.zeros(d)
    at = rng.normal(size=d)

    def level(x: np.ndarray) -> np.ndarray:
        z = np.clip(standard.to(x), -6, 6)
        if form == "bent":
            return z @ slope + np.tanh(1.5 * z + turn) @ (2 * bend)
        if form == "product" and d > 1:
            return z @ (0.5 * slope) + z[:, 0] * z[:, -1]
        if form == "steps":
            return z @ (0.3 * slope) + (z > at) @ (2 * bend)
        return z @ slope

    share = rng.uniform(0.3, 0.7)
    gain, rest = np.sqrt(share) / max(float(level(rows).std()), 1e-9), np.sqrt(1 - share)

    def equation(x: np.ndarray, u: np.ndarray) -> np.ndarray:
        z = np.clip(standard.to(x), -6, 6)
        return gain * level(x) + rest * np.exp(np.tanh(z @ varies)) * u

    return equation


def _of_kind(kind: str, latent: Equation, cuts: np.ndarray, skewed: bool) -> Equation:
    def equation(x: np.ndarray, u: np.ndarray) -> np.ndarray:
        value = latent(x, u)
        if kind == "count":
            return np.floor(np.exp(np.clip(1.0 + 0.5 * value, -3.0, 5.0)))
        if kind == "continuous":
            return np.exp(np.clip(0.6 * value, -20, 20)) if skewed else value
        return np.searchsorted(cuts, value)

    return equation
