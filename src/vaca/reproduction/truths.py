"""The true models of the experiments: the built-in SCMs, and families with a parameter."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import numpy as np

from vaca.errors import VacaError, did_you_mean
from vaca.graph.dag import CausalGraph
from vaca.model.causal_model import CausalModel
from vaca.model.primitives import Noise
from vaca.reproduction.wild import wild_scm
from vaca.scm import library as scms
from vaca.scm.distributions import Distribution, Gamma, Normal
from vaca.scm.structural import StructuralCausalModel
from vaca.table.schema import Columns, Kind, Schema

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
    return _named([parent], lambda x, u: 1.3 * np.tanh(x[:, 0]) + 0.1 * x[:, 0] + u)


def _named(
    parents: list[str], equation: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> Callable[..., np.ndarray]:
    """A function of the parents side by side and u, as an equation whose inputs have names."""

    def named(**inputs: np.ndarray) -> np.ndarray:
        u = inputs["u"]
        return equation(np.column_stack([inputs[p] for p in parents]) if parents else u, u)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    names = [inspect.Parameter(name, kind) for name in (*parents, "u")]
    named.__signature__ = inspect.Signature(names)  # type: ignore[attr-defined]
    return named


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


def random_scm(number: str) -> CausalModel:
    """A smooth SCM drawn at random by its number: 3 to 9 nodes, at most three parents each.

    A node is a sum of bent mixtures of its parents plus noise, normal or skewed, whose spread is
    the same everywhere or depends smoothly on the parents. Parents explain a third to two thirds
    of a node: with more, an intervention asks for rows that data never hold.
    """
    rng = np.random.default_rng([int(_number(number, "random", low=0, high=1e9)), 11])
    nodes = [f"x{i}" for i in range(1, int(rng.integers(3, 10)) + 1)]
    equations: dict[str, Callable[..., np.ndarray]] = {}
    noise: dict[str, Distribution] = {}
    rows: dict[str, np.ndarray] = {}  # drawn on the way, to know how far a node's parents move it
    for i, node in enumerate(nodes):
        wanted = int(rng.integers(1, min(i, 3) + 1)) if i else 0
        parents = [nodes[j] for j in sorted(rng.choice(i, wanted, replace=False))] if i else []
        noise[node] = Gamma(4, 0.5) if rng.random() < 0.3 else Normal(0, 1)  # both of variance 1
        u = noise[node].rvs(size=4000, random_state=rng)
        equation = _smooth(np.column_stack([rows[p] for p in parents]), rng) if parents else _alone
        rows[node] = equation(np.column_stack([rows[p] for p in parents]) if parents else u, u)
        equations[node] = _named(parents, equation)
    return StructuralCausalModel(equations, noise, name=f"random-{number}")


def _alone(x: np.ndarray, u: np.ndarray) -> np.ndarray:
    return u


def _smooth(rows: np.ndarray, rng: np.random.Generator) -> Callable[..., np.ndarray]:
    """A random equation of a node, given rows of its parents."""
    centre, width = rows.mean(0), rows.std(0)
    bends, d = 3, rows.shape[1]
    mix, start, height = rng.normal(size=(d, bends)), rng.normal(size=bends), rng.normal(size=bends)
    slope = rng.normal(size=d)
    varies = rng.normal(size=d) if rng.random() < 0.5 else np.zeros(d)

    def level(x: np.ndarray) -> np.ndarray:
        z = (x - centre) / width / np.sqrt(d)
        return z @ slope + np.tanh(z @ mix + start) @ height

    share = rng.uniform(1 / 3, 2 / 3)
    gain, rest = np.sqrt(share) / level(rows).std(), np.sqrt(1 - share)

    def equation(x: np.ndarray, u: np.ndarray) -> np.ndarray:
        spread = np.exp(0.5 * np.tanh((x - centre) / width @ varies / np.sqrt(d)))
        return gain * level(x) + rest * spread * u

    return equation


def mixed_scm(number: str) -> CausalModel:
    """An SCM with columns of all kinds, drawn at random by its number: 3 to 10 nodes.

    Numbers are made as in `random`; a binary or categorical node cuts such a number into levels, a
    count is the whole part of its exponential. Some nodes have no parents, none more than three.
    """
    return _mixed(int(_number(number, "mixed", low=0, high=1e9)), hidden=False)


def hidden_scm(number: str) -> CausalModel:
    """The same as `mixed`, with a hidden common cause of two of the nodes."""
    return Marginal(_mixed(int(_number(number, "hidden", low=0, high=1e9)), hidden=True), ("h",))


def _mixed(number: int, *, hidden: bool) -> StructuralCausalModel:
    rng = np.random.default_rng([number, 12])
    nodes = [f"x{i}" for i in range(1, int(rng.integers(3, 11)) + 1)]
    confounded = set(rng.choice(nodes, 2, replace=False)) if hidden else set()
    equations: dict[str, Callable[..., np.ndarray]] = {}
    noise: dict[str, Distribution] = {}
    kinds: dict[str, Kind] = {}
    levels: dict[str, range] = {}
    rows: dict[str, np.ndarray] = {}
    if hidden:
        equations["h"], noise["h"] = _named([], _alone), Normal(0, 1)
        rows["h"] = rng.normal(size=4000)
    for i, node in enumerate(nodes):
        wanted = int(rng.integers(0 if rng.random() < 0.3 else 1, min(i, 3) + 1)) if i else 0
        parents = [nodes[j] for j in sorted(rng.choice(i, wanted, replace=False))] if i else []
        parents = ["h", *parents] if node in confounded else parents
        kind = rng.choice(
            ["continuous", "binary", "categorical", "count"], p=[0.6, 0.15, 0.15, 0.1]
        )
        noise[node] = Gamma(4, 0.5) if rng.random() < 0.3 else Normal(0, 1)
        u = noise[node].rvs(size=4000, random_state=rng)
        x = np.column_stack([rows[p] for p in parents]) if parents else u
        number_of = _smooth(_worth(x, kinds, parents), rng) if parents else _alone
        latent = number_of(_worth(x, kinds, parents) if parents else u, u)
        cuts = np.quantile(latent, {"binary": [rng.uniform(0.3, 0.7)]}.get(kind, [0.3, 0.65]))
        equations[node] = _named(parents, _of_kind(kind, number_of, dict(kinds), parents, cuts))
        rows[node] = equations[node](**{p: rows[p] for p in parents}, u=u)
        if kind != "continuous":
            kinds[node] = kind
        if kind in ("binary", "categorical"):
            levels[node] = range(len(cuts) + 1)
    return StructuralCausalModel(
        equations,
        noise,
        kinds=kinds,
        levels=levels,
        name=f"{'hidden' if hidden else 'mixed'}-{number}",
    )


def _worth(x: np.ndarray, kinds: dict[str, Kind], parents: list[str]) -> np.ndarray:
    """How much each parent's value counts: the middle level of a category most, counts by root."""
    columns = []
    for name, values in zip(parents, x.T if parents else (), strict=True):
        kind = kinds.get(name, "continuous")
        middle = np.array([0.0, 1.0, -1.0])
        columns.append(
            middle[values.astype(int)] if kind == "categorical"
            else np.sqrt(values) if kind == "count" else values
        )  # fmt: skip
    return np.column_stack(columns) if columns else x


def _of_kind(
    kind: str,
    number_of: Callable[..., np.ndarray],
    kinds: dict,
    parents: list[str],
    cuts: np.ndarray,
) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    def equation(x: np.ndarray, u: np.ndarray) -> np.ndarray:
        value = number_of(_worth(x, kinds, parents) if parents else u, u)
        if kind == "count":
            return np.floor(np.exp(np.minimum(1.0 + 0.5 * value, 6.0)))
        return value if kind == "continuous" else np.searchsorted(cuts, value)

    return equation


def wild(number: str) -> CausalModel:
    """A table of any sort, by its number; see `vaca.reproduction.wild`."""
    return wild_scm(int(_number(number, "wild", low=0, high=1e9)), _named)


FAMILIES: dict[str, Callable[[str], CausalModel]] = {
    "random": random_scm,
    "mixed": mixed_scm,
    "hidden": hidden_scm,
    "wild": wild,
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
