"""The whole audit of 1000 people with 100 draws each, on a fitted model: under 5 s, one thread."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys
import time

import torch

import vaca
from _record import record
from vaca import fairness

BAR = 5.0
ROWS, DRAWS, REPEATS = 1000, 100, 3


def main() -> int:
    torch.set_num_threads(1)
    german = vaca.datasets.german_credit()
    engines = {
        "VACA": vaca.VACA(german.graph, schema=german.schema, width=16, steps=300),
        "CausalFlow": vaca.CausalFlow(german.graph, schema=german.schema, steps=300),
        "AdditiveNoise": vaca.AdditiveNoise(german.graph, schema=german.schema),
    }
    rows = []
    for name, engine in engines.items():
        model = engine.fit(german.data, progress=False)
        classifier = fairness.make_classifier("full", model, "sex")
        classifier.fit(german.data, german.target)
        wall, busy = [], []
        for _ in range(REPEATS):
            start, worked = time.perf_counter(), time.process_time()
            result = vaca.audit(
                model, classifier, german.data, "sex", target=german.target, draws=DRAWS
            )
            wall.append(time.perf_counter() - start)
            busy.append(time.process_time() - worked)
        rows.append(
            {
                "engine": name,
                "people": ROWS,
                "draws": DRAWS,
                "seconds": round(min(wall), 2),
                "CPU seconds": round(min(busy), 2),
                "uf": round(result.unfairness, 4),
                "bar": f"< {BAR:g} s",
                "ok": min(busy) < BAR,
            }
        )
    done = record(
        "audit",
        "Audit of German Credit: per person, by group, by path, twins",
        rows,
        f"Best of {REPEATS}, one thread, logistic regression on all columns. The bar is held "
        "against CPU seconds, which do not depend on what else the machine does.",
    )
    return 0 if done else 1


if __name__ == "__main__":
    sys.exit(main())
