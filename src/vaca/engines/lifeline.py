"""Processes that end with the one that started them, also when it is killed."""

from __future__ import annotations

import os
import threading
import time

#: Seconds between two looks at the parent.
EVERY = 0.5

_watching = threading.Event()


def end_with_parent() -> None:
    """Call in a child: it ends soon after its parent does. Calling again does nothing."""
    if _watching.is_set():
        return
    _watching.set()
    threading.Thread(target=_watch, args=(os.getppid(),), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:  # a child whose parent is gone is given to another
        time.sleep(EVERY)
    os._exit(1)
