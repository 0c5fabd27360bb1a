"""What both networks of VACA check before a fit: their output noise and the design conditions."""

from __future__ import annotations

from vaca.errors import VacaError, warn

#: On longer paths than this, the errors of the single steps add up to more than the answer.
LONG_PATH = 30


def check_variance(value: object, *words: str) -> None:
    """Refuse an output noise that is neither one of the words nor a positive number."""
    if value in words:
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        names = ", ".join(f'"{word}"' for word in words)
        raise VacaError(f"variance is {names} or a positive number; got {value!r}")


def check_conditions(longest: int, hidden: int | None, encoder_hidden: int) -> None:
    """Warn where the paper's design conditions are broken."""
    needed = max(0, longest - 1)
    if hidden is not None and hidden < needed:
        warn(
            f"hidden_layers={hidden} breaks design condition 1: the longest path of the graph has "
            f"{longest} edges, so effects along it do not arrive and interventions on it are "
            f"wrong. Use hidden_layers={needed} or more, or None"
        )
    if encoder_hidden > 0:
        warn(
            f"encoder_hidden_layers={encoder_hidden} breaks design condition 2: a node's latent "
            "then depends on more than the node and its parents, so abduction mixes in the noise "
            "of others. Use 0"
        )
    if longest > LONG_PATH:
        warn(
            f"the longest path of the graph has {longest} edges: the decoder runs as many rounds, "
            "and small errors add up along the path. Check the answers at its end"
        )
