"""Numbers and answers in words, the same on every page."""

from __future__ import annotations

from collections.abc import Mapping
from math import floor, isfinite, log10
from typing import TYPE_CHECKING, Any

from vaca.model.answers import shown_value

if TYPE_CHECKING:
    from vaca.model.answers import Effect
    from vaca.table.schema import Column

__all__ = ["change_words", "effect_sentence", "number", "points", "setting_words", "span"]


def number(value: float, step: float | None = None) -> str:
    """A number as people write it: separators, no exponent, no digits that say nothing.

    Parameters
    ----------
    value : float
    step : float, optional
        Digits finer than this are left out; by default three digits count.

    Examples
    --------
    >>> [number(v) for v in (12604.3, 505.21, 0.02849, -3, 0.00000123, 1e300)]
    ['12,604', '505', '0.0285', '−3', '0.00000123', '1.00e+300']
    >>> number(0.5, step=0.01), number(1234.5, step=100)
    ('0.50', '1,234')
    """
    if not isfinite(value):
        return "unknown"
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e15 or size < 1e-9:
        return f"{value:.2e}".replace("-", "−", 1) if value < 0 else f"{value:.2e}"
    first = floor(log10(size))
    decimals = max(0, 2 - first if step is None else -floor(log10(step)))
    text = f"{size:,.{min(decimals, 11)}f}"
    if step is None and "." in text:
        text = text.rstrip("0").rstrip(".")
    return f"−{text}" if value < 0 and text.strip("0.,") else text


def span(value: float, low: float, high: float) -> tuple[str, str, str]:
    """An estimate and the ends of its interval, with as many digits as the interval deserves.

    >>> span(505.21, 499.3, 510.9), span(0.0285, 0.0252, 0.0318), span(1.0, 1.0, 1.0)
    (('505', '499', '511'), ('0.0285', '0.0252', '0.0318'), ('1', '1', '1'))
    """
    width = abs(high - low)
    if not isfinite(width) or width < 1e-9 * max(abs(value), 1e-9):
        return number(value), number(low), number(high)
    step = 10.0 ** floor(log10(width / 10))
    return number(value, step), number(low, step), number(high, step)


def points(value: float) -> str:
    """A change of a probability in percentage points, with its sign.

    >>> points(0.0441), points(-0.041)
    ('+4.4', '−4.1')
    """
    text = f"{100 * abs(value):.1f}" if abs(value) >= 0.001 else f"{100 * abs(value):.2f}"
    return "0" if not text.strip("0.") else ("−" if value < 0 else "+") + text


def setting_words(do: Mapping[str, Any]) -> str:
    """What an intervention does, for a sentence.

    >>> from vaca import Shift
    >>> setting_words({"age": 40, "income": Shift(-500)})
    'age had been 40 and income had been 500 lower'
    """
    return " and ".join(change_words(name, value) for name, value in do.items()) or "nothing"


def change_words(name: str, value: Any) -> str:
    """One setting of an intervention: what the column would have been."""
    from vaca.model.intervention import Shift

    if isinstance(value, Mapping):
        return " and ".join(change_words(inner, one) for inner, one in value.items())
    if isinstance(value, Shift) and isinstance(value.delta, (int, float)):
        return (
            f"{name} had been {number(abs(value.delta))} {'lower' if value.delta < 0 else 'higher'}"
        )
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"{name} had been {number(value)}"
    if isinstance(value, str):
        return f"{name} had been {value}"
    return f"{name} had been {shown_value(value)}"


def effect_sentence(effect: Effect, column: Column | None = None, level: float = 0.95) -> str:
    """The question and its answer in one sentence, with its interval.

    >>> from vaca.model.answers import Effect
    >>> effect_sentence(Effect(505.2, 2.9, "income", {"age": 40}, {}, covers_fit=True))
    'If age had been 40 for everyone, income would be 505 higher on average (95 % interval 500 to 511).'
    >>> effect_sentence(
    ...     Effect(-0.0412, 0.01, "ok", {"age": 40}, {"age": 30}, "yes", covers_fit=True)
    ... )
    'If age had been 40 for everyone instead of 30, ok = yes would be 4.1 percentage points less likely (95 % interval 2.2 to 6.1).'
    >>> from vaca.table.schema import Column
    >>> lost = Effect(-3.0, 0.5, "weight", {"diet": 1}, {}, covers_fit=True)
    >>> effect_sentence(lost, Column("continuous", unit="kg"))
    'If diet had been 1 for everyone, weight would be 3.0 kg lower on average (95 % interval 2.0 to 4.0).'
    """  # noqa: E501
    low, high = effect.interval(level)
    value, share = effect.value, effect.level is not None
    scale = 100.0 if share else 1.0
    up = value >= 0
    ends = (low, high) if up else (-high, -low)
    shown, a, b = span(abs(value) * scale, ends[0] * scale, ends[1] * scale)
    subject = f"{effect.outcome} = {effect.level}" if share else effect.outcome
    if shown.strip("0.") == "":
        says = f"{subject} would not change on average"
    elif share:
        says = f"{subject} would be {shown} percentage points {'more' if up else 'less'} likely"
    else:
        unit = column.unit if column is not None else ""
        says = (
            f"{subject} would be {shown}{f' {unit}' if unit else ''} "
            f"{'higher' if up else 'lower'} on average"
        )
    question = f"If {setting_words(effect.treatment)} for everyone"
    if effect.control:
        question += f" instead of {_values(effect)}"
    if not effect.covers_fit:
        return f"{question}, {says} (no interval: the model was fitted once)."
    return f"{question}, {says} ({100 * level:g} % interval {a} to {b})."


def _values(effect: Effect) -> str:
    """What it is compared with, without repeating the column's name where it is the same."""
    if list(effect.control) == list(effect.treatment) and len(effect.control) == 1:
        ((name, value),) = effect.control.items()
        return change_words(str(name), value).removeprefix(f"{name} had been ")
    return setting_words(effect.control).replace(" had been ", " ")
