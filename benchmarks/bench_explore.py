"""How fast the explorer answers over HTTP, beside the plain library on the same rows."""

from __future__ import annotations

import http.client
import json
import statistics
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import vaca
from _record import finish, record
from vaca.show.explore import server
from vaca.show.explore.session import Session

REPEATS = 15
PEOPLE = 10_000
SET = {"education": "university"}
#: Milliseconds.
BARS = {"one person": 100.0, "everyone before and after": 1000.0, "the effect on everyone": 1000.0}


def milliseconds(work: Callable[[], Any]) -> float:
    work()  # imports and caches
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times)


def address_of(session: Session) -> tuple[int, str]:
    """Start the server in a thread; give its port and token."""
    ready, found = threading.Event(), []

    def started(address: str, running: Any) -> None:
        found.append(address)
        ready.set()

    threading.Thread(
        target=server.serve, args=(session,), kwargs={"started": started}, daemon=True
    ).start()
    ready.wait(60)
    _, _, rest = found[0].partition("://")
    place, _, token = rest.rstrip("/").partition("/")
    return int(place.partition(":")[2]), token


def main() -> None:
    warnings.simplefilter("ignore")
    loans = vaca.datasets.loan_applications()
    table = loans.data.iloc[np.arange(PEOPLE) % len(loans.data)].reset_index(drop=True)
    model = vaca.Composite(loans.graph, loans.schema).fit(loans.data, refits=8, progress=False)
    port, token = address_of(Session(model, table))
    levels = {name: list(model.schema_[name].levels).index(value) for name, value in SET.items()}
    settings = {name: {"level": number} for name, number in levels.items()}

    def ask(path: str, **question: Any) -> None:
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        sent = json.dumps({"settings": settings, **question})
        line.request("POST", f"/{token}/api/{path}", sent, {"Content-Type": "application/json"})
        reply = line.getresponse()
        text = reply.read().decode()
        line.close()
        if reply.status != 200:
            raise SystemExit(f"{path}: {reply.status} {text}")

    cases = {
        "one person": (
            lambda: ask("person", row=7),
            lambda: model.counterfactual(table.iloc[[7]], SET),
        ),
        "everyone before and after": (
            lambda: ask("population"),
            lambda: model.counterfactual(table, SET),
        ),
        "the effect on everyone": (
            lambda: ask("effect", outcome="income"),
            lambda: model.effect("income", SET, given=table, draws=1),
        ),
    }
    rows = []
    for name, (over_http, plain) in cases.items():
        took, beside = milliseconds(over_http), milliseconds(plain)
        rows.append(
            {
                "question": name,
                "median ms": took,
                "the library's one answer, ms": beside,
                "ratio": took / beside,
                "bar": f"< {BARS[name]:g} ms",
                "ok": took < BARS[name],
            }
        )
    note = (
        f"Loan applications, the default engine with 8 refits, {PEOPLE:,} people; median of "
        f"{REPEATS} requests each. A page's answer has the bands of all refits."
    )
    finish(record("explore", "The explorer's answers", rows, note))


if __name__ == "__main__":
    main()
