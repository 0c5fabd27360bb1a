"""The numbers that a user gives: counts, seeds, sizes. One rule and one message for each."""

from __future__ import annotations

import math
import operator
import os
from typing import Any

from vaca.errors import VacaError, shorten

#: The largest seed that numpy, torch and scikit-learn all take.
LARGEST_SEED = 2**32 - 1
#: More rows than anyone writes to files, piece by piece: a larger number is a mistake.
LARGEST_COUNT = 10**11


def check_count(
    name: str,
    value: Any,
    low: int = 1,
    high: int = LARGEST_COUNT,
    what: type[VacaError] = VacaError,
) -> int:
    """A whole number from `low` to `high`; numpy's integers are fine, True and 3.0 are not.

    >>> check_count("draws", 200)
    200
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or _is_bool(value) or number < low:
        raise what(f"{name} is a whole number of at least {low}; got {shorten(value)}")
    if number > high:
        raise what(f"{name} is at most {high:,}; got {shorten(number)}")
    return number


def check_seed(value: Any, name: str = "seed") -> int:
    """A seed: a whole number from 0 to 2**32 - 1.

    >>> check_seed(7)
    7
    """
    try:
        number = -1 if _is_bool(value) else operator.index(value)
    except TypeError:
        number = -1
    if not 0 <= number <= LARGEST_SEED:
        raise VacaError(
            f"{name} is a whole number from 0 to {LARGEST_SEED} (2**32 - 1); got {shorten(value)}"
        )
    return number


def check_number(
    name: str,
    value: Any,
    low: float = -math.inf,
    high: float = math.inf,
    what: type[VacaError] = VacaError,
) -> float:
    """A finite number from `low` to `high`; text is not one.

    >>> check_number("level", 0.95, 0, 1)
    0.95
    """
    try:
        number = math.nan if isinstance(value, str | bytes) or _is_bool(value) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise what(f"{name} is a finite number; got {shorten(value)}")
    if not low <= number <= high:
        ends = f"of at least {low:g}" if high == math.inf else f"from {low:g} to {high:g}"
        raise what(f"{name} is a number {ends}; got {shorten(value)}")
    return number


def check_flag(name: str, value: Any) -> bool:
    """True or False; numpy's are fine, 0 and 1 are not.

    >>> check_flag("bounds", True)
    True
    """
    if not _is_bool(value):
        raise VacaError(f"{name} is True or False; got {shorten(value)}")
    return bool(value)


def check_names(name: str, value: Any) -> list[str]:
    """One name, or a list of them.

    >>> check_names("sensitive", "sex")
    ['sex']
    """
    if isinstance(value, str):
        return [value]
    try:
        names = list(value)
    except TypeError:
        names = [value]
    if isinstance(value, bytes) or not all(isinstance(one, str) for one in names):
        raise VacaError(f"{name} is a name or a list of names; got {shorten(value)}")
    return names


def check_model(name: str, value: Any) -> None:
    """A model that answers questions: a fitted engine or an SCM."""
    if isinstance(value, type) or not all(
        hasattr(value, part) for part in ("graph", "noise", "abduct", "simulate")
    ):
        raise VacaError(f"{name} must be a vaca causal model; got {shorten(value)}")


def check_room(rows: int, columns: int, advice: str) -> None:
    """Refuse an answer of `rows` x `columns` numbers that this machine's memory cannot hold."""
    needed, there = 8 * rows * columns, memory()
    if needed > there:
        raise VacaError(
            f"{rows:,} rows of {columns} columns take {needed / 2**30:,.0f} GiB; this machine has "
            f"{there / 2**30:,.1f} GiB. {advice}"
        )


def memory() -> int:
    """Bytes of memory that this process may use."""
    try:
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not on every system
        there = 2**40
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    except (ImportError, OSError):
        return there
    return there if limit == resource.RLIM_INFINITY else min(there, limit)


def _is_bool(value: Any) -> bool:
    return type(value).__name__ in ("bool", "bool_")  # numpy's too, without importing it
