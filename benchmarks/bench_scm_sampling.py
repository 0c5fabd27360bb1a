"""Rows per second of `scm.sample`, the DataFrame included, in one thread.

Bars: 1,000,000 rows/s on triangle-nlin and 300,000 on adult. The peer is the same triangle model
written out in numpy by hand, with its DataFrame: what one would type without the package.

    python benchmarks/bench_scm_sampling.py [--rows 1000000] [--repeats 5]

Prints a table and writes it to benchmarks/results/.
"""

from __future__ import annotations

import argparse
import functools
import os
import time
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd

import vaca
from _record import finish, record

BARS = {"triangle-nlin": 1_000_000, "adult": 300_000}


def by_hand(rows: int) -> pd.DataFrame:
    """Triangle-nlin in plain numpy, all rows at once."""
    rng = np.random.default_rng(0)
    left = rng.random(rows) < 0.5
    x1 = np.where(left, rng.normal(-2, 1.5**0.5, rows), rng.normal(1.5, 1, rows))
    x2 = -1 + 3 / (1 + np.exp(-2 * x1)) + rng.normal(0, 0.1**0.5, rows)
    x3 = x1 + 0.25 * x2**2 + rng.normal(0, 1, rows)
    return pd.DataFrame({"x1": x1, "x2": x2, "x3": x3})


def measure(run: Callable[[], object], rows: int, repeats: int) -> dict[str, float]:
    """Best and median wall time of several runs, after one that is not counted."""
    run()
    walls = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        walls.append(time.perf_counter() - start)
    return {"best": rows / min(walls), "median": rows / float(np.median(walls))}


def main() -> None:
    parser = argparse.ArgumentParser(description="Rows per second of scm.sample, in one thread.")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    rows, repeats = options.rows, options.repeats

    runs: dict[str, Callable[[], object]] = {
        "triangle-nlin in plain numpy": functools.partial(by_hand, rows)
    }
    for name in vaca.scms.names():
        runs[name] = functools.partial(vaca.scms.load(name).sample, rows, seed=0)
    table = []
    for name, run in runs.items():
        speed = measure(run, rows, repeats)
        bar = BARS.get(name)
        table.append(
            {
                "model": name,
                "rows/s (median)": speed["median"],
                "rows/s (best)": speed["best"],
                "bar": f">= {bar:,}" if bar else "",
                "ok": speed["median"] >= (bar or 0),
            }
        )
    note = f"{rows:,} rows, {repeats} runs each after one that is not counted, one thread."
    finish(record("scm_sampling", "Rows sampled from a known model", table, note))


if __name__ == "__main__":
    main()
