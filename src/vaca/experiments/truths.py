"""The true models of the experiments: the built-in SCMs, and families with a parameter."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import numpy as np

from vaca import scms
from vaca.distributions import Normal
from vaca.errors import VacaError, did_you_mean
from vaca.graph import CausalGraph
from vaca.model import CausalModel, Noise
from vaca.schema import Columns, Schema
from vaca.scm import StructuralCausalModel

__all__ = ["Marginal", "load_truth"]


class Marginal(CausalModel):
    """A causal model of which some nodes are hidden.

    Their noise is drawn and they act on the others, but no row shows them. The graph is the
    visible part. A row does not determine the noise behind it any more, so `abduct` refuses.
    """

    def __init__(self, whole: CausalModel, hidden: tuple[str, ...]) -> None:
        graph = whole.graph
        shown = [node for node in graph.nodes if node not in hidden]
        self.whole = whole
        self.graph = CausalGraph.from_parents(
            {node: [p for p in graph.parents(node) if p in shown] for node in shown}
        )
        self.schema_ = Schema({c: whole.schema_[c] for node in shown for c in graph.columns(node)})

    def noise(self, n: int, rng: np.random.Generator) -> Noise:
        return self.whole.noise(n, rng)

    def abduct(self, x: Columns, rng: np.random.Generator | None = None) -> Noise:
        raise VacaError("a row without its hidden columns does not determine the noise behind it")

    def simulate(self, u: Noise, do: Columns) -> Columns:
        whole = self.whole.simulate(u, do)
        return {column: whole[column] for column in self.schema_}


def long_chain(length: str) -> CausalModel:
    """x1 -> x2 -> ... -> xn: each a bent copy of the one before, and noise of a third of its sd."""
    n = int(_number(length, "long-chain", low=2, high=100))
    equations: dict[str, Callable[..., np.ndarray]] = {"x1": lambda u: u}
    equations |= {f"x{i}": _step(f"x{i - 1}") for i in range(2, n + 1)}
    noise = {"x1": Normal(0, 1), **{f"x{i}": Normal(0, 0.1) for i in range(2, n + 1)}}
    return StructuralCausalModel(equations, noise, name=f"long-chain-{n}")


def _step(parent: str) -> Callable[..., np.ndarray]:
    """The equation of a node of the chain; its parameter is named after the parent."""

    def step(**inputs: np.ndarray) -> np.ndarray:
        return _bend(inputs[parent]) + inputs["u"]

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    names = [inspect.Parameter(name, kind) for name in (parent, "u")]
    step.__signature__ = inspect.Signature(names)  # type: ignore[attr-defined]
    return step


def _bend(x: np.ndarray) -> np.ndarray:
    return 1.3 * np.tanh(x) + 0.1 * x


def confounded(strength: str) -> CausalModel:
    """Triangle with a hidden cause h of x2 and x3, which acts with the given strength."""
    s = float(_number(strength, "confounded", low=0.0, high=10.0))
    whole = StructuralCausalModel(
        {
            "h": lambda u: u,
            "x1": lambda u: u,
            "x2": lambda x1, h, u: np.tanh(x1) + s * h + u,
            "x3": lambda x1, x2, h, u: 0.5 * x1 + np.sin(x2) + s * h + u,
        },
        {"h": Normal(0, 1), "x1": Normal(0, 1), "x2": Normal(0, 0.25), "x3": Normal(0, 0.25)},
        name=f"confounded-{s:g}",
    )
    return Marginal(whole, ("h",))


FAMILIES: dict[str, Callable[[str], CausalModel]] = {
    "long-chain": long_chain,
    "confounded": confounded,
}


def _number(text: str, family: str, low: float, high: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not low <= value <= high:
        raise VacaError(f"{family}:{text}: a number from {low:g} to {high:g} is needed")
    return value


def load_truth(name: str) -> CausalModel:
    """The true model of that name: a built-in SCM, or ``family:parameter``.

    Examples
    --------
    >>> load_truth("long-chain:4").graph.longest_path
    3
    >>> load_truth("confounded:0.5").graph.nodes
    ('x1', 'x2', 'x3')
    """
    family, colon, parameter = name.partition(":")
    if colon and family in FAMILIES:
        return FAMILIES[family](parameter)
    if name not in scms.names():
        known = [*scms.names(), *(f"{family}:NUMBER" for family in FAMILIES)]
        raise VacaError(f"unknown SCM {name!r}; {did_you_mean(name, known)}")
    return scms.load(name)
