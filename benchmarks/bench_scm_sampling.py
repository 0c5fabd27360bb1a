"""Rows per second of `scm.sample`, the DataFrame included, in one thread.

Bars: 1,000,000 rows/s on triangle-nlin and 300,000 on adult. The peer is the same triangle model
written out in numpy by hand, with its DataFrame: what one would type without the package.

    python benchmarks/bench_scm_sampling.py [--rows 1000000] [--repeats 5]

Prints a table and writes benchmarks/results/scm_sampling.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd

import vaca

BARS = {"triangle-nlin": 1_000_000, "adult": 300_000}
RESULTS = Path(__file__).parent / "results" / "scm_sampling.json"


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
    walls, cpus = [], []
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        run()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return {
        "rows_per_second_best": rows / min(walls),
        "rows_per_second_median": rows / float(np.median(walls)),
        "rows_per_cpu_second": rows / min(cpus),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Rows per second of scm.sample.")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    rows, repeats = options.rows, options.repeats

    results = {"triangle-nlin, plain numpy": measure(lambda: by_hand(rows), rows, repeats)}
    for name in vaca.scms.names():
        scm = vaca.scms.load(name)
        results[name] = measure(lambda scm=scm: scm.sample(rows, seed=0), rows, repeats)

    print(f"{'model':28}{'rows/s (median)':>18}{'rows/s (best)':>16}{'bar':>12}")
    for name, result in results.items():
        bar = BARS.get(name)
        met = (
            ""
            if bar is None
            else "  met"
            if result["rows_per_second_median"] >= bar
            else "  MISSED"
        )
        print(
            f"{name:28}{result['rows_per_second_median']:18,.0f}"
            f"{result['rows_per_second_best']:16,.0f}{'' if bar is None else f'{bar:,}':>12}{met}"
        )
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    machine = {
        "cpu": platform.processor() or platform.machine(),
        "python": platform.python_version(),
    }
    record = {
        "rows": rows,
        "repeats": repeats,
        "machine": machine,
        "bars": BARS,
        "results": results,
    }
    RESULTS.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
