"""Reading what a person wrote down: equations, their noise, inverses and kinds, all checked."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from vaca.errors import VacaError, did_you_mean
from vaca.graph.dag import CausalGraph
from vaca.scm.distributions import Distribution
from vaca.table.schema import Column, Kind, Schema

__all__ = ["Equation", "check_inverse", "check_noise", "inputs_of", "make_schema", "read_inputs"]

#: A function of named columns, each an array of shape (n,), that gives an array of shape (n,).
Equation = Callable[..., Any]


def read_inputs(equations: Mapping[str, Equation]) -> dict[str, tuple[str, ...]]:
    """Give what each node's equation takes: its parents and perhaps the noise ``u``.

    >>> read_inputs({"x": lambda u: u, "y": lambda x, u, slope=2.0: slope * x + u})
    {'x': ('u',), 'y': ('x', 'u')}
    """
    inputs = {node: inputs_of(f"the equation of {node!r}", f) for node, f in equations.items()}
    if "u" in inputs:
        raise VacaError("'u' stands for the noise in every equation; rename the node 'u'")
    for node, names in inputs.items():
        for parent in names:
            if parent != "u" and parent not in inputs:
                raise VacaError(
                    f"the equation of {node!r} takes {parent!r}, which is no node; "
                    f"{did_you_mean(parent, inputs)}. Name parameters after nodes, and the "
                    "noise 'u'; give a constant a default value"
                )
    return inputs


def inputs_of(owner: str, f: Equation) -> tuple[str, ...]:
    """Give the names of a function's parameters, without those that have a default value."""
    if not callable(f):
        raise VacaError(f"{owner} must be a function; got {f!r}")
    try:
        parameters = inspect.signature(f).parameters.values()
    except ValueError:
        raise VacaError(
            f"{owner}: the parameters of {f!r} cannot be read; wrap it in a lambda whose "
            "parameters are named after the parents and 'u'"
        ) from None
    names = []
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise VacaError(f"{owner} takes *{parameter.name}; name its parents one by one")
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise VacaError(
                f"{owner} takes {parameter.name!r} by position only; use a plain function whose "
                "parameters are named after the parents and 'u'"
            )
        if parameter.default is parameter.empty:
            names.append(parameter.name)
    return tuple(names)


def check_noise(
    noise: Mapping[str, Distribution], inputs: Mapping[str, tuple[str, ...]]
) -> dict[str, Distribution]:
    """Give the noise of each node that has some; every equation with ``u`` needs one."""
    for node, dist in noise.items():
        if node not in inputs:
            raise VacaError(
                f"noise was given for {node!r}, which has no equation; {did_you_mean(node, inputs)}"
            )
        if not callable(getattr(dist, "rvs", None)):
            raise VacaError(
                f"the noise of {node!r} must have rvs(size=, random_state=), like "
                f"vaca.distributions.Normal(0, 1) or scipy.stats.norm(); got {dist!r}"
            )
        if "u" not in inputs[node]:
            raise VacaError(
                f"noise was given for {node!r}, but its equation does not take u; add u to the "
                "equation's parameters, or drop the noise"
            )
    for node, names in inputs.items():
        if "u" in names and node not in noise:
            raise VacaError(
                f"the equation of {node!r} takes the noise u, but no noise was given for it; "
                f"add {node!r} to noise, or drop u from the equation"
            )
    return dict(noise)


def check_inverse(
    inverse: Mapping[str, Equation], graph: CausalGraph
) -> dict[str, tuple[tuple[str, ...], Equation]]:
    """Give each declared inverse together with the columns it takes."""
    checked = {}
    for node, f in inverse.items():
        if node not in graph:
            raise VacaError(
                f"an inverse was given for {node!r}, which has no equation; "
                f"{did_you_mean(node, graph.nodes)}"
            )
        names = inputs_of(f"the inverse of {node!r}", f)
        known = (*graph.parents(node), node)
        for name in names:
            if name not in known:
                raise VacaError(
                    f"the inverse of {node!r} takes {name!r}; it may take the node's parents and "
                    f"the node itself: {', '.join(known)}"
                )
        checked[node] = (names, f)
    return checked


def make_schema(
    nodes: Sequence[str], kinds: Mapping[str, Kind], levels: Mapping[str, Iterable[Any]]
) -> Schema:
    """Give the schema: continuous unless said otherwise, levels 0 and 1 for a binary column."""
    for name in (*kinds, *levels):
        if name not in nodes:
            raise VacaError(
                f"kinds or levels name {name!r}, which has no equation; {did_you_mean(name, nodes)}"
            )
    columns = {}
    for node in nodes:
        given = tuple(levels.get(node, ()))
        kind = kinds.get(node, "categorical" if given else "continuous")
        if kind in ("continuous", "count"):
            columns[node] = Column(kind, dtype="int64" if kind == "count" else "float64")
            continue
        if not given and kind in ("categorical", "ordinal"):
            raise VacaError(
                f"{node!r} is {kind}: name its levels, like levels={{{node!r}: ['low', 'high']}}"
            )
        given = given or (0, 1)
        columns[node] = Column(kind, given, dtype=_level_dtype(kind, given))
    return Schema(columns)


def _level_dtype(kind: Kind, levels: Sequence[Any]) -> str:
    if all(isinstance(level, bool) for level in levels):
        return "bool"
    if all(isinstance(level, int) for level in levels):
        return "int64"
    if all(isinstance(level, str) for level in levels):
        return "ordered category" if kind == "ordinal" else "category"
    return "object"
