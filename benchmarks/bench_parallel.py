"""How much faster a list of equal runs is done by two local processes than by one."""

from __future__ import annotations

import tempfile
import time

from _record import finish, record
from vaca.reproduction import Run, Store, run_all

RUNS = 20
BAR = 0.6


def seconds(workers: int) -> float:
    runs = [Run("mgraph-lin", "truth", seed=seed, protocols=("paper",)) for seed in range(RUNS)]
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        outcome = run_all(runs, Store(folder), workers=workers)
        elapsed = time.perf_counter() - start
    if outcome.exit_code:
        raise SystemExit(f"{len(outcome.failed)} runs failed")
    return elapsed


def main() -> None:
    times = {workers: seconds(workers) for workers in (1, 2)}
    ratio = times[2] / times[1]
    rows = [
        {"processes": 1, "seconds": times[1], "ratio to 1": 1.0, "bar": "", "ok": True},
        {
            "processes": 2,
            "seconds": times[2],
            "ratio to 1": ratio,
            "bar": f"<= {BAR}",
            "ok": ratio <= BAR,
        },
    ]
    note = f"{RUNS} evaluations of a known model, start of the processes included."
    finish(record("parallel", "A list of equal runs on one and on two processes", rows, note))


if __name__ == "__main__":
    main()
