"""DoWhy: graphs in and out, and fitted engines as `dowhy.gcm` causal models.

With `as_gcm`, everything that `dowhy.gcm` offers (attribution, anomaly scores, its evaluation of a
causal model, ...) runs on mechanisms that vaca has learned. Needs the extra `vaca[dowhy]`.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from vaca.engines.columnwise import ColumnwiseEngine
from vaca.errors import VacaError
from vaca.graph.dag import CausalGraph
from vaca.table.schema import Columns, as_frame

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["as_gcm", "evaluate", "from_dowhy", "to_dowhy"]


def from_dowhy(graph: Any) -> CausalGraph:
    """The causal graph of a DoWhy object.

    Parameters
    ----------
    graph : networkx.DiGraph, dowhy.CausalModel, dowhy.gcm model, or anything with a ``graph``
        Nodes that DoWhy marks as unobserved are refused: vaca has no hidden causes.

    Examples
    --------
    >>> import networkx as nx
    >>> from_dowhy(nx.DiGraph([("x", "y")])).edges
    (('x', 'y'),)
    """
    found = graph
    for _ in range(3):  # CausalModel -> its CausalGraph -> the networkx graph
        if hasattr(found, "is_directed"):
            break
        inner = getattr(found, "graph", None) or getattr(found, "_graph", None)
        if inner is None:
            raise VacaError(
                f"no graph was found in a {type(graph).__name__}; give a networkx.DiGraph, a "
                "dowhy.CausalModel or a dowhy.gcm model"
            )
        found = inner
    for node, about in found.nodes(data=True):
        if about.get("observed", "yes") == "no":
            raise VacaError(
                f"node {node!r} is unobserved in the DoWhy graph; vaca assumes that there are no "
                "hidden common causes. Remove it, if it is the cause of one node only, or group "
                "the nodes that it confounds into one node"
            )
    return CausalGraph.from_parents(
        {str(node): [str(p) for p in found.predecessors(node)] for node in found.nodes}
    )


def to_dowhy(graph: CausalGraph) -> nx.DiGraph:
    """The graph as DoWhy takes it, a networkx graph over columns.

    >>> list(to_dowhy(CausalGraph.from_edges([("x", "y")])).edges)
    [('x', 'y')]
    """
    import networkx as nx

    grouped = [node for node in graph.nodes if graph.columns(node) != (node,)]
    if grouped:
        raise VacaError(
            f"node {grouped[0]!r} is made of the columns {list(graph.columns(grouped[0]))}; in "
            "DoWhy a node is a column of the same name"
        )
    result = nx.DiGraph()
    result.add_nodes_from(graph.nodes)
    result.add_edges_from(graph.edges)
    return result


def as_gcm(model: ColumnwiseEngine, *, seed: int = 0) -> Any:
    """A fitted engine as a `dowhy.gcm.InvertibleStructuralCausalModel`, ready without `gcm.fit`.

    Parameters
    ----------
    model : CausalFlow or AdditiveNoise
        Engines with one mechanism per column; others cannot be taken apart.
    seed : int
        For the rows that DoWhy draws.

    Notes
    -----
    DoWhy abducts one column at a time, with one point answer for a discrete one.
    """
    if not isinstance(model, ColumnwiseEngine):
        raise VacaError(
            f"a {type(model).__name__} has no mechanism per column that DoWhy could call; use "
            "CausalFlow or AdditiveNoise"
        )
    gcm = _dowhy().gcm
    from dowhy.gcm.causal_mechanisms import InvertibleFunctionalCausalModel, StochasticModel
    from dowhy.graph import get_ordered_predecessors

    try:
        from dowhy.gcm.causal_models import PARENTS_DURING_FIT
    except ImportError:  # its home in older versions
        from dowhy.gcm._noise import PARENTS_DURING_FIT  # type: ignore[no-redef]
    root, inner = _mechanism_classes(StochasticModel, InvertibleFunctionalCausalModel)
    scm = gcm.InvertibleStructuralCausalModel(to_dowhy(model.graph))
    rng = np.random.default_rng(seed)
    for node in model.graph.order:
        parents = list(get_ordered_predecessors(scm.graph, node))
        mechanism = inner(model, node, parents, rng) if parents else root(model, node, rng)
        scm.set_causal_mechanism(node, mechanism)
        scm.graph.nodes[node][PARENTS_DURING_FIT] = parents
    return scm


def evaluate(model: ColumnwiseEngine, data: Any, *, seed: int = 0, **settings: Any) -> Any:
    """DoWhy's evaluation (`dowhy.gcm.evaluate_causal_model`) of a fitted engine on a table.

    Parameters
    ----------
    settings
        Handed over, for instance ``compare_mechanism_baselines=False``.
    """
    gcm = _dowhy().gcm
    frame = as_frame(data)[list(model.schema_.columns)]
    return gcm.evaluate_causal_model(as_gcm(model, seed=seed), frame, **settings)


def _dowhy() -> Any:
    try:
        import dowhy
        import dowhy.gcm
    except ImportError as error:
        raise VacaError(
            f"DoWhy is needed for this and could not be imported ({error}); install it with: "
            "pip install 'vaca[dowhy]'"
        ) from error
    return dowhy


def _column(model: ColumnwiseEngine, name: str, values: np.ndarray) -> np.ndarray:
    """Encoded values (n,) as DoWhy wants them: (n, 1) in the user's units."""
    decoded = np.asarray(model.schema_.decode_column(name, values))
    if model.schema_[name].discrete:
        decoded = decoded.astype(object if not model.schema_[name].numeric_levels else float)
    return decoded.reshape(-1, 1)


def _encoded(model: ColumnwiseEngine, names: list[str], samples: np.ndarray) -> Columns:
    table = np.asarray(samples).reshape(len(samples), -1)
    return {c: model.schema_.encode_column(c, list(table[:, k])) for k, c in enumerate(names)}


@cache
def _mechanism_classes(stochastic: type, invertible: type) -> tuple[type, type]:
    """The two kinds of mechanism, made when DoWhy's base classes are at hand."""

    class Root(stochastic):
        """A column without causes."""

        def __init__(self, model: ColumnwiseEngine, name: str, rng: np.random.Generator) -> None:
            self.model, self.name, self.rng = model, name, rng

        def fit(self, X: np.ndarray) -> None:
            """Nothing to do: vaca has fitted it."""

        def draw_samples(self, num_samples: int) -> np.ndarray:
            u = self.model.noise(num_samples, self.rng)
            return _column(self.model, self.name, self.model.simulate(u, {})[self.name])

        def clone(self) -> Any:
            return type(self)(self.model, self.name, self.rng)

    class Inner(invertible):
        """A column given its parents."""

        def __init__(
            self,
            model: ColumnwiseEngine,
            name: str,
            parents: list[str],
            rng: np.random.Generator,
        ) -> None:
            self.model, self.name, self.parents, self.rng = model, name, parents, rng

        def fit(self, X: np.ndarray, Y: np.ndarray) -> None:
            """Nothing to do: vaca has fitted it."""

        def draw_noise_samples(self, num_samples: int) -> np.ndarray:
            noise = self.model.noise(num_samples, self.rng)[f"noise/{self.name}"]
            return noise.reshape(num_samples, -1)

        def evaluate(self, parent_samples: np.ndarray, noise_samples: np.ndarray) -> np.ndarray:
            n = len(parent_samples)
            u = self.model.noise(n, np.random.default_rng(0))  # of other columns: has no effect
            own = u[f"noise/{self.name}"]
            u[f"noise/{self.name}"] = np.asarray(noise_samples, float).reshape(own.shape)
            do = _encoded(self.model, self.parents, parent_samples)
            return _column(self.model, self.name, self.model.simulate(u, do)[self.name])

        def estimate_noise(
            self, target_samples: np.ndarray, parent_samples: np.ndarray
        ) -> np.ndarray:
            n = len(target_samples)
            x = self.model.simulate(self.model.noise(n, np.random.default_rng(0)), {})
            x |= _encoded(self.model, self.parents, parent_samples)
            x |= _encoded(self.model, [self.name], target_samples)
            return self.model.abduct(x)[f"noise/{self.name}"].reshape(n, -1)

        def clone(self) -> Any:
            return type(self)(self.model, self.name, self.parents, self.rng)

    return Root, Inner
