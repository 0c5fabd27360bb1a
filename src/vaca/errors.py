"""The errors and warnings that vaca raises on purpose."""

from __future__ import annotations

import difflib
import inspect
import warnings
from collections.abc import Iterable


class VacaError(ValueError):
    """Something a user gave cannot be used; the message says what, where and how to fix it."""


class GraphError(VacaError):
    """A causal graph that is not one: a cycle, a duplicate, an unknown parent."""


class SchemaError(VacaError):
    """A table that does not fit its schema, or a schema that does not fit its graph."""


class InterventionError(VacaError):
    """A `do` that names an unknown node or a value the node cannot take."""


class NotFittedError(VacaError, AttributeError):
    """A query was asked of an engine before `fit`."""


class VacaWarning(UserWarning):
    """Something a user should know, though an answer could be given."""


class SupportWarning(VacaWarning):
    """An intervention lies outside the values seen in the data."""


class AbductionError(VacaError):
    """The noise behind a row cannot be told from the row."""


class TrainingError(VacaError, RuntimeError):
    """Training cannot go on: the loss is not a number, or a checkpoint does not fit."""


def warn(message: str, category: type[VacaWarning] = VacaWarning) -> None:
    """Warn about the line outside this package that led here: the user's own."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "vaca":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def shorten(value: object, limit: int = 80) -> str:
    """A value as a message shows it: its repr, cut in the middle if it is long.

    >>> shorten("a" * 50, 20)
    "'aaaaaaaa ... aaaa'"
    """
    try:
        if isinstance(value, str) and len(value) > 4 * limit:
            value = value[: 2 * limit] + value[-2 * limit :]  # the rest is cut out below anyway
        text = repr(value)
    except Exception:  # a repr of a stranger, or nested too deeply
        text = f"<{type(value).__name__}>"
    tail = limit // 4
    return text if len(text) <= limit else f"{text[: limit - tail - 6]} ... {text[-tail:]}"


def visible(text: str) -> str:
    r"""Text that a terminal or a picture shows and does not obey: control signs are spelled out.

    Line ends and tabs stay. What turns the direction of writing is spelled out too, as it can make
    one name look like another.

    >>> visible("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    if text.isascii() and text.isprintable():
        return text
    kept = ("\n", "\t")
    return "".join(
        c
        if c in kept or c.isprintable() or (c.isspace() and ord(c) > 0xA0)
        else c.encode("unicode_escape").decode()
        for c in text
    )


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """A hint with the nearest known name and the list of valid ones.

    >>> did_you_mean("agee", ["age", "sex"])
    "did you mean 'age'? Valid: 'age', 'sex'"
    """
    names = [str(k) for k in known]
    # Bounded, as comparing costs the product of the lengths: a hint is not worth a wait.
    near = [n for n in names[:1000] if len(n) <= 200]
    close = difflib.get_close_matches(str(name), near, n=1) if _is_short(name) else []
    shown = ", ".join(shorten(n) for n in names[:20])
    if len(names) > 20:
        shown += f", ... ({len(names)} in all)"
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}Valid: {shown}"


def _is_short(name: object) -> bool:
    if isinstance(name, int) and not -(2**64) < name < 2**64:
        return False  # Python refuses to write out numbers of thousands of digits
    return len(str(name)) <= 200
