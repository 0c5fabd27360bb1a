"""What a person sees while runs are done: a live table on a terminal, a line each elsewhere."""

from __future__ import annotations

import time
from typing import Any

from vaca.reproduction.run import Run
from vaca.reproduction.runner import Watcher

__all__ = ["LiveWatcher", "PlainWatcher", "watcher_for"]


class PlainWatcher(Watcher):
    """One line for each run that ends."""

    def __init__(self, console: Any) -> None:
        self._console = console
        self._total = 0
        self._ended = 0

    def begin(self, total: int, skipped: int) -> None:
        self._total, self._ended = total, skipped
        self._console.print(f"{total} runs, {skipped} of them done before")

    def finished(self, run: Run, seconds: float) -> None:
        self._ended += 1
        self._console.print(f"[{self._ended}/{self._total}] {run.name} {seconds:.1f} s")

    def failed(self, run: Run, error: str) -> None:
        self._ended += 1
        self._console.print(f"[{self._ended}/{self._total}] {run.name} FAILED: {_line(error)}")


class LiveWatcher(Watcher):
    """A table that is redrawn: done, running, failed, time left, and the last failures."""

    def __init__(self, console: Any, workers: int) -> None:
        from rich.live import Live

        self._workers = max(1, workers)
        self._live = Live(console=console, refresh_per_second=4, transient=True)
        self._running: dict[str, tuple[Run, float]] = {}
        self._seconds: list[float] = []
        self._failures: list[tuple[Run, str]] = []
        self._total = self._skipped = 0

    def __enter__(self) -> LiveWatcher:
        self._live.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._live.update(self._table())
        self._live.__exit__(*error)

    def begin(self, total: int, skipped: int) -> None:
        self._total, self._skipped = total, skipped
        self.tick()

    def started(self, run: Run) -> None:
        self._running[run.key] = (run, time.monotonic())
        self.tick()

    def finished(self, run: Run, seconds: float) -> None:
        self._running.pop(run.key, None)
        self._seconds.append(seconds)
        self.tick()

    def failed(self, run: Run, error: str) -> None:
        self._running.pop(run.key, None)
        self._failures.append((run, error))
        self.tick()

    def tick(self) -> None:
        self._live.update(self._table())

    def time_left(self) -> float | None:
        """Seconds until the list is through, if runs go on taking what they took so far."""
        left = self._total - self._skipped - len(self._seconds) - len(self._failures)
        if not self._seconds:
            return None
        return left * sum(self._seconds) / len(self._seconds) / self._workers

    def _table(self) -> Any:
        from rich.table import Table

        table = Table(box=None, pad_edge=False)
        for title in ("done", "running", "failed", "left"):
            table.add_column(title, justify="right")
        table.add_column("now", overflow="ellipsis", no_wrap=True)
        left = self.time_left()
        oldest = sorted(self._running.values(), key=lambda item: item[1])[: self._workers]
        now = time.monotonic()
        table.add_row(
            f"{self._skipped + len(self._seconds)}/{self._total}",
            str(min(len(self._running), self._workers)),
            str(len(self._failures)),
            "?" if left is None else _duration(left),
            ", ".join(f"{run.scm} {run.model} {run.seed} ({now - t:.0f} s)" for run, t in oldest),
        )
        for run, error in self._failures[-3:]:
            table.add_row("", "", "", "", f"failed: {run.name}: {_line(error)}")
        return table


def _line(text: str) -> str:
    return " ".join(text.split())[:200]


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"


def watcher_for(console: Any, workers: int) -> Watcher:
    """The watcher that suits where the output goes."""
    return LiveWatcher(console, workers) if console.is_terminal else PlainWatcher(console)
