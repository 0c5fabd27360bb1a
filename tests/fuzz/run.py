"""Throw changed input at every reader: `make fuzz SECONDS=60`, or `python -m tests.fuzz.run`.

A case is a reader and a number; the same two give the same case again:

    python -m tests.fuzz.run --reader graph --case 1234

A case fails if it raises anything but a `VacaError`, takes more than 5 s of processor time or 1 GiB
more than before, answers differently from the unchanged model, or tries to run a program, open a
connection, or write outside its folder (an audit hook looks).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import signal
import sys
import time
import warnings
from collections.abc import Iterable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from vaca.errors import VacaError

#: No case may take longer, or more memory on top of what was there.
SECONDS, BYTES = 5.0, 2**30
#: What no reader has any reason to do.
FORBIDDEN = (
    "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "subprocess.Popen",
    "socket.connect", "socket.bind", "pickle.find_class", "ctypes.dlopen", "webbrowser.open",
)  # fmt: skip

#: Who makes code of their own text: named tuples, dataclasses, decorators.
MAKERS = (
    "_frozen_importlib", "collections", "dataclasses", "importlib", "networkx", "numpy", "scipy",
    "sklearn",
)  # fmt: skip

_watched = [False]
_seen: list[str] = []
_hooked: list[bool] = []


def watch() -> None:
    """Look at what this process does, from now on: a hook cannot be taken off again."""
    if not _hooked:
        sys.addaudithook(_hook)
        _hooked.append(True)


def _hook(event: str, arguments: Any) -> None:
    if not _watched[0]:
        return
    if event == "exec":
        caller = str(sys._getframe(1).f_globals.get("__name__"))
        if not _is_own(arguments[0], caller):
            _seen.append(f"{event} {str(arguments[0])[:200]} by {caller}")
    elif event in FORBIDDEN:
        _seen.append(f"{event} {str(arguments[:2])[:200]}")
    elif event == "open" and len(arguments) > 1 and isinstance(arguments[1], str):
        from tests.fuzz.models import PLACE

        inside = isinstance(arguments[0], int) or str(arguments[0]).startswith(str(PLACE))
        if any(letter in arguments[1] for letter in "wax+") and not inside:
            _seen.append(f"open {arguments[0]} to write")


def _is_own(code: Any, caller: str) -> bool:
    """Whether code is run as libraries do for themselves: a module imported late, a class made."""
    if str(getattr(code, "co_filename", "")).endswith((".py", ".pyc", "<frozen>")):
        return True
    return caller.partition(".")[0] in MAKERS


class _TooLongError(BaseException):
    """Not an `Exception`, or a reader that takes all of those for damage would swallow it."""


def _too_long(number: int, frame: Any) -> None:
    raise _TooLongError


class Outcome(NamedTuple):
    """How a case ended: what went wrong, if anything; whether the input was refused; its cost."""

    problem: str | None
    refused: bool
    seconds: float
    grown: int


def one(reader: str, case: int) -> Outcome:
    """Run a case."""
    from tests.fuzz.readers import READERS

    rng = random.Random(f"{reader} {case}")
    problem, refused = None, False
    _seen.clear()
    before, start = _peak(new=True), time.process_time()
    old = signal.signal(signal.SIGPROF, _too_long)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    _watched[0] = True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            READERS[reader](rng)
    except VacaError:
        refused = True
    except _TooLongError:
        problem = f"took more than {SECONDS} s"
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        problem = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    finally:
        _watched[0] = False
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, old)
    seconds, grown = time.process_time() - start, _peak() - before
    if _seen:
        problem = f"did {_seen[0]}"
    elif problem is None and grown > BYTES:
        problem = f"took {grown / 2**20:.0f} MiB"
    return Outcome(problem, refused, seconds, grown)


def _peak(new: bool = False) -> int:
    """Bytes: the most that this process has had, or with `new` the most from now on."""
    try:
        if new:
            Path("/proc/self/clear_refs").write_text("5")
        status = Path("/proc/self/status").read_text()
        return 1024 * int(status.partition("VmHWM:")[2].split()[0])
    except (OSError, IndexError, ValueError):  # not Linux
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _many(reader: str, cases: Iterable[int], end: float | None) -> dict[str, Any]:
    """Run cases until they or the time are over; give what came of them."""
    found: dict[str, Any] = {"cases": 0, "read": 0, "refused": 0, "failed": []}
    longest, most = 0.0, 0
    for case in cases:
        if end is not None and time.monotonic() > end:
            break
        outcome = one(reader, case)
        found["cases"] += 1
        if outcome.problem:
            found["failed"].append({"case": case, "problem": outcome.problem})
            print(f"{reader} {case}: {outcome.problem}", flush=True)
        else:
            found["refused" if outcome.refused else "read"] += 1
        longest, most = max(longest, outcome.seconds), max(most, outcome.grown)
    return {**found, "longest_seconds": round(longest, 2), "most_MiB": most // 2**20}


def _keep(path: Path, found: dict[str, dict[str, Any]]) -> None:
    """Add these readers to a file of figures, in place of what it says of them."""
    old = json.loads(path.read_text())["readers"] if path.exists() else {}
    date = {"date": f"{datetime.now(timezone.utc):%Y-%m-%d}"}
    readers = {**old, **{name: {**date, **figures} for name, figures in found.items()}}
    path.write_text(json.dumps({"readers": readers}, indent=1) + "\n")


def main(arguments: list[str] | None = None) -> int:
    """Run cases until their number or the time is up; give how many failed."""
    from tests.fuzz.readers import READERS, prepare, remove_place

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--reader", choices=list(READERS), action="append")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--cases", type=int, help="for each reader, in place of --seconds")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--case", type=int, help="this one alone")
    parser.add_argument("--out", type=Path, help="a JSON file for the figures")
    given = parser.parse_args(arguments)
    names = given.reader or list(READERS)
    watch()
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        prepare(name)
        if given.case is not None:
            print(one(name, given.case))
            continue
        end = time.monotonic() + given.seconds / len(names)
        cases = range(given.first, given.first + (given.cases or 10**9))
        found[name] = _many(name, cases, None if given.cases else end)
        line = {k: len(v) if k == "failed" else v for k, v in found[name].items()}
        print(name, line, flush=True)
        if given.out:
            _keep(given.out, found)
    remove_place()
    return min(1, sum(len(entry["failed"]) for entry in found.values()))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
