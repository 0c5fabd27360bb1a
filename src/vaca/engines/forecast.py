"""How long a fit is going to take, said early enough to change one's mind."""

from __future__ import annotations

import time

from vaca.errors import warn

__all__ = ["Forecast"]

#: A fit that will take longer than this is announced, after watching it for so many seconds.
LONG, WATCHED = 1800.0, 10.0
#: Pieces of work that must be done before the pace is trusted.
FEW = 3


class Forecast:
    """Watches the pace of a fit, and warns once if the whole is going to be long.

    Parameters
    ----------
    label : str
        Whose fit it is.
    total : int
        Pieces of work: steps, columns.
    advice : str
        What would make it shorter.

    Examples
    --------
    >>> watch = Forecast("CausalFlow", 1400, "give it a time_budget")
    >>> watch.tell(1)  # too early to say
    """

    def __init__(self, label: str, total: int, advice: str) -> None:
        self.label, self.total, self.advice = label, total, advice
        self._start: float | None = time.perf_counter()

    def tell(self, done: int) -> None:
        """Report how many pieces are done."""
        if self._start is None or done < FEW:
            return
        spent = time.perf_counter() - self._start
        if spent < WATCHED:
            return
        self._start = None
        whole = spent * self.total / done
        if whole >= LONG:
            warn(
                f"{self.label}: at its present pace this fit takes about {_words(whole)}; "
                f"{self.advice}"
            )


def _words(seconds: float) -> str:
    """A length of time.

    >>> _words(2400), _words(14000), _words(300000)
    ('40 minutes', '3.9 hours', '3.5 days')
    """
    if seconds < 5400:
        return f"{seconds / 60:.0f} minutes"
    hours = seconds / 3600
    return f"{hours:.1f} hours" if hours < 48 else f"{hours / 24:.1f} days"
