"""Small noise distributions: frozen, fast, and called like those of ``scipy.stats``.

Anything with ``rvs(size=..., random_state=...)`` may serve as noise of a structural causal
model; the classes here save the import of scipy and state variances the way papers do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from vaca.errors import VacaError, shorten

__all__ = ["Bernoulli", "Categorical", "Distribution", "Gamma", "Mixture", "Normal"]

#: Floats go further, but draws must leave room to compute with.
LARGEST = 1e150


def _all_finite(*values: Any) -> bool:
    return all(isinstance(v, int | float | np.number) and abs(v) <= LARGEST for v in values)


@runtime_checkable
class Distribution(Protocol):
    """Anything that draws like a frozen ``scipy.stats`` distribution."""

    def rvs(self, size: Any = 1, random_state: Any = None) -> Any:
        """Draw ``size`` values."""
        ...


@dataclass(frozen=True)
class Normal:
    """The normal distribution N(mean, variance).

    Examples
    --------
    >>> Normal(0, 4).rvs(size=3, random_state=0).round(3)
    array([ 0.251, -0.264,  1.281])
    """

    mean: float = 0.0
    variance: float = 1.0

    def __post_init__(self) -> None:
        if not _all_finite(self.mean, self.variance) or not self.variance > 0:
            raise VacaError(
                f"Normal: the mean must be a number and the variance must be positive, got "
                f"{shorten(self.mean)} and {shorten(self.variance)}."
            )

    def rvs(self, size: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw ``size`` values; shape (size,), float64."""
        out = np.random.default_rng(random_state).standard_normal(size)
        if self.variance != 1.0:
            out *= self.variance**0.5
        if self.mean != 0.0:
            out += self.mean
        return out


@dataclass(frozen=True)
class Gamma:
    """The gamma distribution with a shape and a scale: mean = shape * scale.

    Examples
    --------
    >>> float(Gamma(10, 3.5).rvs(size=100_000, random_state=0).mean().round(1))
    35.0
    """

    shape: float
    scale: float = 1.0

    def __post_init__(self) -> None:
        if not (_all_finite(self.shape, self.scale) and self.shape > 0 and self.scale > 0):
            raise VacaError(
                "Gamma: shape and scale must be positive numbers, got "
                f"{shorten(self.shape)} and {shorten(self.scale)}."
            )

    def rvs(self, size: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw ``size`` values; shape (size,), float64."""
        rng = np.random.default_rng(random_state)
        # Gamma with shape 1 is the exponential, whose own sampler is several times faster.
        draw = rng.standard_exponential(size) if self.shape == 1 else None
        out = rng.standard_gamma(self.shape, size) if draw is None else draw
        if self.scale != 1.0:
            out *= self.scale
        return out


@dataclass(frozen=True)
class Bernoulli:
    """1 with probability ``p``, else 0.

    Examples
    --------
    >>> Bernoulli(0.5).rvs(size=4, random_state=0).tolist()
    [0, 1, 1, 1]
    """

    p: float

    def __post_init__(self) -> None:
        if not (_all_finite(self.p) and 0 <= self.p <= 1):
            raise VacaError(f"Bernoulli: p must lie in [0, 1], got {shorten(self.p)}.")

    def rvs(self, size: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw ``size`` values; shape (size,), int64."""
        return (np.random.default_rng(random_state).random(size) < self.p).astype(np.int64)


@dataclass(frozen=True)
class Categorical:
    """The code k = 0, 1, ..., K-1 with probability ``probabilities[k]``.

    Examples
    --------
    >>> Categorical([0.2, 0.3, 0.5]).rvs(size=5, random_state=0).tolist()
    [2, 1, 0, 0, 2]
    """

    probabilities: Sequence[float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "probabilities", _weights("Categorical", self.probabilities))

    def rvs(self, size: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw ``size`` codes; shape (size,), int64."""
        uniform = np.random.default_rng(random_state).random(size)
        codes = np.zeros(np.shape(uniform), dtype=np.int64)
        # One comparison per level beats a binary search for the few levels met in practice.
        for edge in np.cumsum(self.probabilities)[:-1]:
            codes += uniform >= edge
        return codes


@dataclass(frozen=True)
class Mixture:
    """A mixture of other distributions: draw a component by weight, then draw from it.

    Parameters
    ----------
    components
        Distributions with ``rvs``.
    weights
        One weight per component, summing to 1; equal weights when left out.

    Examples
    --------
    >>> two_humps = Mixture([Normal(-2, 1.5), Normal(1.5, 1)])
    >>> float((two_humps.rvs(size=100_000, random_state=0) > 0).mean().round(1))
    0.5
    """

    components: Sequence[Distribution]
    weights: Sequence[float] = field(default=())

    def __post_init__(self) -> None:
        parts = self.components
        components = () if isinstance(parts, str) or not _listed(parts) else tuple(parts)
        if not components or not all(isinstance(part, Distribution) for part in components):
            raise VacaError(
                "Mixture: a list of distributions is needed, such as [Normal(), Gamma(2)]; got "
                f"{shorten(parts)}"
            )
        if not _listed(self.weights):
            raise VacaError(f"Mixture: weights are a list of numbers; got {shorten(self.weights)}")
        weights = tuple(self.weights) or (1 / len(components),) * len(components)
        if len(weights) != len(components):
            raise VacaError(
                f"Mixture: {len(components)} components but {len(weights)} weights; "
                "give one weight per component."
            )
        object.__setattr__(self, "components", components)
        object.__setattr__(self, "weights", _weights("Mixture", weights))

    def rvs(self, size: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw ``size`` values; shape (size,), float64."""
        rng = np.random.default_rng(random_state)
        which = Categorical(self.weights).rvs(size, rng)
        out = np.empty(np.shape(which))
        for k, component in enumerate(self.components):
            rows = np.flatnonzero(which == k)
            out[rows] = component.rvs(size=len(rows), random_state=rng)
        return out


def _listed(values: Any) -> bool:
    return hasattr(values, "__iter__") and hasattr(values, "__len__")


def _weights(owner: str, values: Sequence[float]) -> tuple[float, ...]:
    try:
        weights = tuple(float(value) for value in values)
    except (TypeError, ValueError, OverflowError):
        raise VacaError(
            f"{owner}: probabilities are a list of numbers; got {shorten(values)}"
        ) from None
    if not weights or not min(weights) >= 0 or not abs(sum(weights) - 1) <= 1e-9:
        raise VacaError(
            f"{owner}: probabilities must be non-negative and sum to 1, got {list(weights)}."
        )
    return weights
