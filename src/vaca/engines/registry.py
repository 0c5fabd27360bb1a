"""Every engine, once.

Whatever lists engines (save and load, `auto`, `Ensemble`, the command line, the façade, the paper's
studies, the conformance tests) reads this list: a new engine is its file and a line here.
Nothing is imported until an engine is used, so this file stays as light as `import vaca`.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vaca.errors import VacaError, did_you_mean

if TYPE_CHECKING:
    from vaca.engines.engine import Engine

__all__ = ["ENGINES", "Entry", "engine_class", "engine_names", "named_by"]


@dataclass(frozen=True)
class Entry:
    """Where an engine is and who offers it.

    Attributes
    ----------
    module : str
        Below `vaca`.
    word : str, optional
        What `vaca fit --engine` calls it; without one it is not offered there.
    paper : bool
        Whether it is a model of the paper, with the paper's settings as ``.paper(name)``.
    auto : bool
        Whether it is among the engines that `vaca fit --engine auto` and audits choose from.
    arrows : bool
        Whether it keeps to every arrow of the graph, and not only to an order of the columns.
    alone : bool
        Whether it learns from rows by itself; an `Ensemble` needs members.
    """

    module: str
    word: str | None = None
    paper: bool = False
    auto: bool = False
    arrows: bool = True
    alone: bool = True


#: By class name; strongest assumptions first, which is the order in which `auto` prefers them.
ENGINES = {
    "Composite": Entry("engines.composite", "composite"),
    "AdditiveNoise": Entry("engines.additive_noise", "additive", auto=True),
    "CausalFlow": Entry("engines.causal_flow", "flow", auto=True),
    "VACA": Entry("engines.vaca", "vaca", paper=True, auto=True),
    "PaperVACA": Entry("engines.paper_vaca"),
    "CAREFL": Entry("engines.carefl", "carefl", paper=True, auto=True, arrows=False),
    "MultiCVAE": Entry("engines.multicvae", "multicvae", paper=True),
    "Ensemble": Entry("engines.ensemble", alone=False),
}


def engine_names(**wanted: bool) -> tuple[str, ...]:
    """Names of the engines whose entries have these values.

    >>> engine_names(auto=True, arrows=True)
    ('AdditiveNoise', 'CausalFlow', 'VACA')
    """
    return tuple(
        name
        for name, entry in ENGINES.items()
        if all(getattr(entry, key) == value for key, value in wanted.items())
    )


def engine_class(name: str, among: tuple[str, ...] | None = None) -> type[Engine]:
    """The class of that name; `among` are the names that may be asked for (default: all).

    >>> engine_class("CausalFlow").__name__
    'CausalFlow'
    """
    known = tuple(ENGINES) if among is None else among
    if name not in known:
        raise VacaError(f"unknown engine {name!r}; {did_you_mean(str(name), known)}")
    return getattr(importlib.import_module(f"vaca.{ENGINES[name].module}"), name)


def named_by() -> dict[str, str]:
    """What the command line calls each engine, and its class name."""
    return {entry.word: name for name, entry in ENGINES.items() if entry.word is not None}
