"""Independent pieces of work, on this process, on local processes, or on a Dask cluster.

A piece is a function of what all pieces share and of its own number or name. It draws no random
numbers but those of its own seed, so the answers are the same wherever it is done.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from vaca.errors import VacaError

__all__ = ["each", "end_with_parent", "keep_memory"]

Piece = TypeVar("Piece")
Answer = TypeVar("Answer")
#: How often a piece is tried again when its worker dies.
RETRIES = 3
#: Seconds between two checks that the parent is alive.
EVERY = 0.5
#: Settings of the C library: the size from which memory is not kept, of one array and in all.
MMAP_FROM, TRIM_FROM = -3, -1
#: Open files that local processes need: for all of them, and more for each.
FILES, FILES_EACH = 12, 4

_watching = threading.Event()


def each(
    function: Callable[[Any, Piece], Answer],
    shared: Any,
    pieces: Iterable[Piece],
    *,
    jobs: int = 1,
    cluster: str | None = None,
) -> Iterator[Answer]:
    """Yield ``function(shared, piece)`` of every piece, in order, as soon as it is done.

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
        Address of a Dask scheduler. The pieces of a killed worker are done again elsewhere.

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
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    _check_files(min(jobs, len(pieces)))
    # Large arrays in `shared` are mapped into memory once and not copied for each process.
    with _loky(min(jobs, len(pieces))):
        try:
            yield from Parallel(return_as="generator")(
                delayed(_piece)(function, shared, piece, os.getpid()) for piece in pieces
            )
        except TerminatedWorkerError:
            raise VacaError(
                "one of the processes was killed; was there too little memory? Try fewer jobs"
            ) from None


def _check_files(jobs: int) -> None:
    """Refuse more processes than open files allow: half started, they would end in a traceback."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        free = limit - len(os.listdir("/dev/fd"))
    except (ImportError, OSError):  # not on every system
        return
    needed = FILES + FILES_EACH * jobs
    if limit != resource.RLIM_INFINITY and free < needed:
        raise VacaError(
            f"{jobs} processes need {needed} more open files, and only {max(free, 0)} of the "
            f"{limit} that this system allows are free; raise the limit (ulimit -n) or ask for "
            "one process"
        )


def _loky(jobs: int) -> Any:
    """Local processes that watch from the start whether this one has ended."""
    from joblib import parallel_config

    common: Any = {"n_jobs": jobs, "inner_max_num_threads": 1}
    try:
        watch: Any = {"initializer": end_with_parent, "initargs": (os.getpid(),)}
        return parallel_config("loky", **common, **watch)
    except TypeError:  # joblib before 1.5; a process watches once it has its first piece
        return parallel_config("loky", **common)


def _piece(function: Any, shared: Any, piece: Any, parent: int) -> Any:
    """Do a piece in a process that ends when the one that asked for it ends."""
    end_with_parent(parent)
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
            client.submit(_cluster_piece, function, common, piece, pure=False, retries=RETRIES)
            for piece in pieces
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


def _cluster_piece(function: Any, shared: Any, piece: Any) -> Any:
    """Do a piece on a worker of a cluster.

    Dask tells the C library to give freed memory back at once; arrays then cost twice the time.
    """
    keep_memory()
    return function(shared, piece)


def keep_memory() -> None:
    """Let the process keep the memory of a large array for the next one.

    Otherwise the C library of Linux gives it back to the system, which clears it before it is used
    again. Other systems have no such switch, and no need of it.
    """
    try:
        library = ctypes.CDLL(None)
        library.mallopt(MMAP_FROM, 2**25)
        library.mallopt(TRIM_FROM, 2**26)
    except (OSError, AttributeError, TypeError):
        return


# ---------------------------------------------------------------------- ending in time


def end_with_parent(parent: int | None = None) -> None:
    """Make this child process end soon after its parent, even a killed one; once is enough.

    Give the parent's process id if it is known, as the parent may already be gone.
    """
    if _watching.is_set():
        return
    _watching.set()
    number = os.getppid() if parent is None else parent
    threading.Thread(target=_watch, args=(number,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:  # a child whose parent is gone gets another one
        time.sleep(EVERY)
    os._exit(1)
