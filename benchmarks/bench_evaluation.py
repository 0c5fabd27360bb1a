"""How long an evaluation takes, and its MMD against one that holds the whole matrix."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from typing import Literal

import numpy as np

import vaca
from _record import finish, record
from vaca.evaluation.metrics import mmd

ADULT_BAR = 15.0


def whole_matrix_mmd(x: np.ndarray, y: np.ndarray) -> float:
    """The definition, with all distances and all kernels in memory at once."""
    pooled = np.concatenate([x, y])
    squared = ((pooled[:, None, :] - pooled[None, :, :]) ** 2).sum(-1)
    total = len(pooled)
    base = squared.sum() / (total * total - total)
    kernel = np.sum([np.exp(-squared / (base * s)) for s in (0.25, 0.5, 1.0, 2.0, 4.0)], axis=0)
    n = len(x)
    return float((kernel[:n, :n] + kernel[n:, n:] - kernel[:n, n:] - kernel[n:, :n]).mean())


def best(function: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def peak(function: Callable[[], object]) -> float:
    tracemalloc.start()
    function()
    size = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return size


def main() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(1000, 5)), rng.normal(size=(1000, 5)) + 0.1
    if abs(mmd(x, y) - whole_matrix_mmd(x, y)) > 1e-5:
        raise SystemExit("the two MMDs differ")
    blocks, whole = best(lambda: mmd(x, y), 20), best(lambda: whole_matrix_mmd(x, y), 3)
    rows = [
        row("MMD, 2 x 1000 rows, whole matrix", whole, peak(lambda: whole_matrix_mmd(x, y))),
        row("MMD, 2 x 1000 rows, vaca.metrics", blocks, peak(lambda: mmd(x, y)), whole, "<= whole"),
    ]
    truth = vaca.scms.load("adult")
    data = truth.sample(5000, seed=0)
    cases: list[tuple[Literal["paper", "published"], float | None]] = [
        ("published", ADULT_BAR),
        ("paper", None),
    ]
    for protocol, bar in cases:
        start = time.perf_counter()
        vaca.evaluate(truth, truth, protocol, data=data)
        elapsed = time.perf_counter() - start
        shown = "" if bar is None else f"<= {bar:g} s"
        rows.append(row(f"adult, protocol {protocol}, with floor", elapsed, 0.0, bar, shown))
    note = "One thread; the evaluations include the truth's own score, which doubles the work."
    finish(record("evaluation", "Evaluation against the truth", rows, note))


def row(
    name: str, seconds: float, megabytes: float, limit: float | None = None, bar: str = ""
) -> dict[str, object]:
    return {
        "what": name,
        "seconds": seconds,
        "peak MB": megabytes or "",
        "bar": bar,
        "ok": limit is None or seconds <= limit,
    }


if __name__ == "__main__":
    main()
