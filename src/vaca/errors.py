"""The errors and warnings that vaca raises on purpose."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class VacaError(ValueError):
    """Something a user gave cannot be used; the message says what, where and how to mend it."""


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


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """A hint with the nearest known name and the list of valid ones.

    >>> did_you_mean("agee", ["age", "sex"])
    "did you mean 'age'? Valid: 'age', 'sex'"
    """
    names = [str(k) for k in known]
    close = difflib.get_close_matches(str(name), names, n=1)
    shown = ", ".join(repr(n) for n in names[:20])
    if len(names) > 20:
        shown += f", ... ({len(names)} in all)"
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}Valid: {shown}"
