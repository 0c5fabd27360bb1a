"""The fourteen structural causal models of the paper: equations only, nothing else.

>>> scm = load("triangle-nlin")
>>> scm.graph.edges
(('x1', 'x2'), ('x1', 'x3'), ('x2', 'x3'))
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from vaca.errors import VacaError, did_you_mean

if TYPE_CHECKING:
    from vaca.scm.structural import StructuralCausalModel

__all__ = ["load", "names"]

_VARIANTS = ("lin", "nlin", "nadd")
# Name -> (module of this package, function in it); imported when asked for.
_WHERE: dict[str, tuple[str, str]] = {
    f"{graph}-{variant}": (graph, variant)
    for graph in ("collider", "triangle", "chain", "mgraph")
    for variant in _VARIANTS
} | {"loan": ("loan", "loan"), "adult": ("adult", "adult")}


def names() -> tuple[str, ...]:
    """Give the names that `load` knows.

    >>> len(names())
    14
    """
    return tuple(_WHERE)


def load(name: str) -> StructuralCausalModel:
    """Make the structural causal model of that name.

    >>> load("loan").graph.longest_path
    3
    """
    if not isinstance(name, str) or name not in _WHERE:
        raise VacaError(
            f"no structural causal model is called {name!r}; {did_you_mean(name, _WHERE)}"
        )
    module, function = _WHERE[name]
    return getattr(import_module(f"vaca.scm.library.{module}"), function)()
