"""Throw changed input at every reader: `make fuzz SECONDS=60`, or `python -m tests.fuzz.run`.

A case is a reader and a number; the same two give the same case again:

    python -m tests.fuzz.run --reader graph --case 1234

A case fails if it raises anything but a `VacaError`, takes more than 5 s or 1 GiB more than before,
answers differently from the unchanged model, or tries to run a program, open a connection, or write
outside its folder (an audit hook looks).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import sys
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

from vaca.errors import VacaError

#: No case may take longer, or more memory on top of what was there.
SECONDS, BYTES = 5.0, 2**30
#: What no reader has any reason to do.
FORBIDDEN = (
    "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "subprocess.Popen",
    "socket.connect", "socket.bind", "pickle.find_class", "ctypes.dlopen", "webbrowser.open",
)  # fmt: skip

_watched = [False]
_seen: list[str] = []


def _hook(event: str, arguments: Any) -> None:
    if not _watched[0]:
        return
    if event in FORBIDDEN or (event in ("exec", "compile") and not _is_own(event, arguments)):
        _seen.append(event)
    elif event == "open" and len(arguments) > 1 and isinstance(arguments[1], str):
        from tests.fuzz.readers import PLACE

        inside = isinstance(arguments[0], int) or str(arguments[0]).startswith(str(PLACE))
        if any(letter in arguments[1] for letter in "wax+") and not inside:
            _seen.append(f"open {arguments[0]} to write")


def _is_own(event: str, arguments: Any) -> bool:
    # Python itself compiles and runs modules that are imported late, and dataclasses, named tuples.
    name = getattr(arguments[0], "co_filename", "") if event == "exec" else str(arguments[1])
    return name.endswith((".py", ".pyc")) or name.startswith("<") or not name


def one(reader: str, case: int) -> str | None:
    """Run a case: None if all is well, else what went wrong."""
    from tests.fuzz.readers import READERS

    rng = random.Random(f"{reader} {case}")
    start, before = time.process_time(), _peak()
    problem = None
    _seen.clear()
    _watched[0] = True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            READERS[reader](rng)
    except VacaError:
        pass
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        problem = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    finally:
        _watched[0] = False
    seconds, grown = time.process_time() - start, _peak() - before
    if _seen:
        return f"did {_seen[0]}"
    if problem is None and seconds > SECONDS:
        return f"took {seconds:.1f} s"
    if problem is None and grown > BYTES:
        return f"took {grown / 2**20:.0f} MiB"
    return problem


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


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
    if given.case is not None:
        print(one(names[0], given.case) or "well")
        return 0
    sys.addaudithook(_hook)
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        with suppress(VacaError):
            prepare(name)
        start, longest, failed, case = time.monotonic(), 0.0, [], given.first
        share = given.seconds / len(names)
        while (
            case < given.first + given.cases
            if given.cases is not None
            else time.monotonic() - start < share
        ):
            before = time.process_time()
            problem = one(name, case)
            longest = max(longest, time.process_time() - before)
            if problem:
                failed.append({"case": case, "problem": problem})
                print(f"{name} {case}: {problem}", flush=True)
            case += 1
        found[name] = {
            "cases": case - given.first,
            "failed": failed,
            "longest_seconds": round(longest, 3),
            "peak_MiB": _peak() // 2**20,
        }
        line = {k: len(v) if k == "failed" else v for k, v in found[name].items()}
        print(name, line, flush=True)
        if given.out:
            given.out.write_text(json.dumps({"first": given.first, "readers": found}, indent=1))
    remove_place()
    return min(1, sum(len(entry["failed"]) for entry in found.values()))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
