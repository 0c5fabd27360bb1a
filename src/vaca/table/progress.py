"""The one progress bar: on a terminal, for work of more than two seconds; elsewhere nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

#: Seconds before a bar appears: what is quicker needs none.
DELAY = 2.0
#: The bar on the screen, if any. There is one at a time: two would overwrite each other.
_on_screen: list[Progress] = []


class Bar:
    """Shows how far work has come; without a terminal it does nothing."""

    def __init__(self, screen: Progress | None = None, label: str = "", **task: Any) -> None:
        self._screen, self._label, self._begun = screen, label, False
        if screen is not None:
            self._task = screen.add_task(label, note="", **task)

    def advance(self, done: int = 1) -> None:
        """Show that this much more is done."""
        if self._screen is not None:
            self._screen.advance(self._task, done)

    def begin(self, name: str) -> None:
        """Name the step that begins; the one before it, if any, is done."""
        if self._screen is not None:
            self._screen.update(
                self._task, description=f"{self._label}: {name}", advance=int(self._begun)
            )
            self._begun = True

    def show(self, done: int, total: int, note: str) -> None:
        """Show how much of the total is done, with a note."""
        if self._screen is not None:
            self._screen.update(self._task, completed=done, total=total, note=note)


@contextmanager
def progress_bar(
    label: str,
    total: int | None = None,
    *,
    unit: str = "",
    done: int = 0,
    wanted: bool | None = None,
) -> Iterator[Bar]:
    """A bar on stderr, so that stdout holds only the answer; `wanted=False` for none.

    Without `total` it only counts; without `unit` too, it only shows that work goes on.

    >>> with progress_bar("reading", 3, unit="rows") as bar:
    ...     bar.advance(3)
    """
    if wanted is False or _on_screen or not sys.stderr.isatty():
        yield Bar()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    parts: list[Any] = [SpinnerColumn(), TextColumn("{task.description}")]
    if total is not None:
        counted = f"{{task.completed:,.0f}} of {{task.total:,.0f}} {unit}"
        parts += [BarColumn(), TextColumn(counted), TimeRemainingColumn()]
    elif unit:
        parts += [TextColumn(f"{{task.completed:,.0f}} {unit}")]
    screen = Progress(
        *parts,
        TextColumn("{task.fields[note]}"),
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    bar = Bar(screen, label, total=total, completed=done)
    timer = Timer(DELAY, screen.start)
    timer.daemon = True
    _on_screen.append(screen)
    timer.start()
    try:
        yield bar
    finally:
        timer.cancel()
        timer.join()
        screen.stop()
        _on_screen.remove(screen)


def screen_of_the_bar() -> Console | None:
    """The console of the bar on the screen, if any: other text must go through it."""
    return _on_screen[-1].console if _on_screen else None
