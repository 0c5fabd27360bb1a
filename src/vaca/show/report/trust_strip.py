"""The strip under an answer: how far it can be trusted, from four sides."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

from vaca.errors import VacaError
from vaca.model.answers import Effect
from vaca.model.causal_model import CausalModel
from vaca.show.words import number

__all__ = ["Card", "strip"]


@dataclass(frozen=True)
class Card:
    """One side of the evidence: its name, whether it supports the answer, and words."""

    name: str
    verdict: str  # good, doubtful, bad, or unknown
    words: str

    @property
    def style(self) -> str:
        """The class of its colour; the words say the same."""
        return self.verdict if self.verdict in ("good", "doubtful", "bad") else "none"


def strip(model: CausalModel, effect: Effect, graph: Any, seed: int) -> list[Card]:
    """Cards for the graph, a second method, other engines and a hidden cause.

    `graph` is its `GraphCheck`, or None without one.

    A side that cannot be looked at here is left out, rather than called good.
    """
    cards = [_interval(effect)]
    for look in (_graph, _second_method, _engines, _hidden):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                card = look(model, effect, graph, seed)
        except (VacaError, ImportError):
            card = None
        if card is not None:
            cards.append(card)
    return cards


def _interval(effect: Effect) -> Card:
    if not effect.covers_fit:
        return Card(
            "The interval",
            "doubtful",
            "There is none: the model was fitted once. Fit with refits to learn how far other "
            "samples of the table would change the answer.",
        )
    if effect.extrapolated_share > 0.05:
        return Card(
            "The interval",
            "doubtful",
            f"For {100 * effect.extrapolated_share:.0f} % of the rows the data hold nobody "
            "comparable: the interval allows any outcome for them.",
        )
    return Card(
        "The interval", "good", "Covers chance in the table and in the fit; not a wrong graph."
    )


def _graph(_: CausalModel, __: Effect, found: Any, ___: int) -> Card | None:
    if found is None:
        return None
    said = [_sentence(words) for words in found.parts["words"]]
    said += [_sentence(words) for words in found.arrows["words"].head(1)]
    words = " ".join(dict.fromkeys(said))  # the worst part may be that very arrow
    return Card("The graph against the data", str(found.verdict), words)


def _sentence(words: Any) -> str:
    text = str(words).rstrip(".")
    return f"{text[:1].upper()}{text[1:]}."


def _second_method(_: CausalModel, effect: Effect, __: Any, ___: int) -> Card | None:
    found: Any = getattr(effect, "cross_check", None)
    if found is None:
        return None
    words = getattr(found, "words", "") or (
        f"Straight from the rows: {number(found.value)} "
        f"({' to '.join(number(end) for end in found.interval())})."
    )
    agrees = getattr(found, "agrees", None)
    verdict = "unknown" if agrees is None else "good" if agrees else "doubtful"
    return Card("A second method", verdict, _sentence(words))


def _engines(model: CausalModel, effect: Effect, _: Any, seed: int) -> Card | None:
    from vaca.trust.agreement import BRIEF, ask_engines, engines_words

    others = [name for name in BRIEF if name != type(model).__name__]
    if not others:
        return None
    found = ask_engines(effect, others, brief=True, seed=seed)
    apart = found["apart"].max()
    verdict = "unknown" if apart != apart else "good" if apart <= 1 else "doubtful"
    asked = " and ".join(others)
    return Card("Other engines", verdict, f"{_sentence(engines_words(found))} Asked: {asked}.")


def _hidden(_: CausalModel, effect: Effect, __: Any, ___: int) -> Card | None:
    ask: Any = getattr(effect, "sensitivity", None)
    if ask is None:
        return None
    found = ask()
    sentence = getattr(found, "sentence", "")
    sentence = sentence() if callable(sentence) else sentence
    return Card("A hidden cause", "unknown", str(sentence))
