"""Independent pieces of work, on this process, on local processes, or on a Dask cluster.

A piece is a function of what all pieces share and of its own number or name. It draws no random
numbers but those of its own seed, so the answers are the same wherever it is done.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from vaca.errors import VacaError

__all__ = ["each", "end_with_parent"]

Piece = TypeVar("Piece")
Answer = TypeVar("Answer")
#: How often a piece is started again when its worker dies under it.
RETRIES = 3
#: Seconds between two looks at the parent.
EVERY = 0.5

_watching = threading.Event()


def each(
    function: Callable[[Any, Piece], Answer],
    shared: Any,
    pieces: Iterable[Piece],
    *,
    jobs: int = 1,
    cluster: str | None = None,
) -> Iterator[Answer]:
    """Give ``function(shared, piece)`` of every piece, in their order, as they are done.

    Parameters
    ----------
    function : callable
        At the top of a module, so that another process can find it.
    shared : object
        Sent to a process once, and not with every piece.
    pieces : iterable
    jobs : int
        Local processes.
    cluster : str, optional
        Address of a Dask scheduler. A killed worker costs the pieces that it had at hand: they are
        done again elsewhere.

    Examples
    --------
    >>> list(each(pow, 2, [1, 2, 3]))
    [2, 4, 8]
    """
    found = list(pieces)
    if cluster is not None:
        return _on_cluster(function, shared, found, cluster)
    if jobs > 1 and len(found) > 1:
        return _on_processes(function, shared, found, jobs)
    return (function(shared, piece) for piece in found)


def _on_processes(function: Any, shared: Any, pieces: Sequence[Any], jobs: int) -> Iterator[Any]:
    from joblib import Parallel, delayed, parallel_config
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    # Large arrays in `shared` are mapped into memory once and not copied for each process.
    with parallel_config("loky", n_jobs=min(jobs, len(pieces)), inner_max_num_threads=1):
        try:
            yield from Parallel(return_as="generator")(
                delayed(_piece)(function, shared, piece) for piece in pieces
            )
        except TerminatedWorkerError:
            raise VacaError(
                "one of the processes was killed; was there too little memory? Try fewer jobs"
            ) from None


def _piece(function: Any, shared: Any, piece: Any) -> Any:
    """A piece in a process that does not outlive the one that asked for it."""
    end_with_parent()
    return function(shared, piece)


def _on_cluster(function: Any, shared: Any, pieces: Sequence[Any], address: str) -> Iterator[Any]:
    try:
        from distributed import Client
    except ImportError:
        raise VacaError(
            "cluster= needs Dask; install it with: pip install 'vaca[cluster]'"
        ) from None
    try:
        client = Client(address, timeout="20s")
    except (OSError, ValueError) as error:
        raise VacaError(f"no Dask scheduler answers at {address}: {error}") from None
    with client:
        sent: Any = client.scatter([shared], broadcast=True, hash=False)
        common = sent[0]
        futures = [
            client.submit(function, common, piece, pure=False, retries=RETRIES) for piece in pieces
        ]
        try:
            for future in futures:
                try:
                    yield future.result()
                except VacaError:
                    raise
                except Exception as error:
                    if type(error).__module__.partition(".")[0] not in ("distributed", "asyncio"):
                        raise
                    raise VacaError(
                        f"the cluster at {address} lost its workers {RETRIES + 1} times: {error}"
                    ) from None
        finally:
            client.cancel(futures, force=True)


# ---------------------------------------------------------------------- ending in time


def end_with_parent() -> None:
    """Call in a child: it ends soon after its parent does, also a killed one. Again: nothing."""
    if _watching.is_set():
        return
    _watching.set()
    threading.Thread(target=_watch, args=(os.getppid(),), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:  # a child whose parent is gone is given to another
        time.sleep(EVERY)
    os._exit(1)
