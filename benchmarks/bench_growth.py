"""How cost grows: CPU time and memory against columns, arrows, rows and draws.

Ratios are taken in one run, in CPU seconds of one thread. Three parents for each column. The limit
of CausalFlow's step is the matrix products of its networks, forwards and backwards, as batched
products of the same shapes. Peers are dowhy.gcm (quality GOOD) and causalflows, each in a Python of
its own.

    python benchmarks/bench_growth.py [PART ...] [--dowhy PYTHON] [--causalflows PYTHON]

Parts that are not asked for keep their last figures. Without a name all are run for which there is
a Python. Those marked * are wall times or rows per second, and need a machine that does nothing
else:

    flow*, vaca*, default    a step (or fit) and counterfactuals, 10 to 1000 columns
    edges, draws, graph      a step by arrows; counterfactuals by draws; facts of a complete graph
    rows, peer-flow          beside dowhy; beside causalflows
    loan*                    CausalFlow's counterfactuals on loan
    long                     the default's fit to 5 and 50 million rows of Parquet
    parquet                  CausalFlow's fit to 20 million rows, of Parquet and in memory
    workers-fit*, workers-rows*    two processes, or two workers of a cluster, against one
    wide*                    the default's fit of 1000 columns and 5,000 rows on two processes
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import growth_parts as parts
from _record import RESULTS, finish, record

#: Name -> how it is measured, once for each of these arguments; a Python is filled in by its name.
PARTS: dict[str, tuple[Callable[..., Iterator[dict]], tuple[str, ...]]] = {
    "flow": (lambda: parts.nodes_of("flow"), ("",)),
    "vaca": (lambda: parts.nodes_of("vaca"), ("",)),
    "default": (lambda: parts.nodes_of("default"), ("",)),
    "edges": (parts.edges, ("",)),
    "draws": (parts.draws, ("",)),
    "loan": (parts.loan, ("",)),
    "peer-flow": (parts.peer_flow, ("causalflows",)),
    "rows": (parts.rows, ("dowhy",)),
    "long": (parts.long, ("",)),
    "parquet": (parts.parquet, ("folder", "memory")),
    "graph": (parts.graph, ("",)),
    "workers-fit": (parts.workers_fit, ("",)),
    "workers-rows": (parts.workers_rows, ("",)),
    "wide": (parts.wide, ("",)),
}
PEERS = ("dowhy", "causalflows")


def row(what: str, value: float, against: str = "", bar: str = "", ok: bool = True) -> dict:
    return {"what": what, "value": float(f"{value:.4g}"), "against": against, "bar": bar, "ok": ok}


def most(what: str, value: float, bar: float, against: str = "") -> dict:
    return row(what, value, against, f"<= {bar:g}", value <= bar)


def least(what: str, value: float, bar: float, against: str = "") -> dict:
    return row(what, value, against, f">= {bar:,g}", value >= bar)


def exponent(points: list[dict], size: str) -> float:
    sizes, seconds = ([p[k] for p in points] for k in (size, "seconds"))
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


# ---------------------------------------------------------------------- lines of the table


def of_nodes(points: list[dict]) -> list[dict]:
    engine = points[0]["engine"]
    large = [p for p in points if p["nodes"] >= 30]
    what = "fit" if engine == "default" else "step"
    span = f"{large[0]['nodes']} to {large[-1]['nodes']} columns"
    table = [most(f"{engine}: exponent of a {what}, {span}", exponent(large, "nodes"), 1.1)]
    for p in points:
        if "limit" in p and p["nodes"] in (10, 100, 1000):
            against = f"{1000 * p['seconds']:.0f} ms against {1000 * p['limit']:.1f} ms"
            name = f"{engine}: step / batched products, {p['nodes']} columns"
            table.append(most(name, p["seconds"] / p["limit"], 4, against))
        if p["nodes"] == 1000:
            name = f"{engine}: counterfactual rows/s, 1000 columns"
            # Abduction and the answer each take every weight once.
            work = 2 * p.get("weights", 0) * p["queries"] / 1e9
            against = f"{work:.0f} billion products a second" if work else ""
            table.append(least(name, p["queries"], 1500, against))
            table.append(row(f"{engine}: peak memory at 1000 columns, GiB", p["peak"]))
    return table


def of_edges(points: list[dict]) -> list[dict]:
    return [row("flow: exponent of a step in arrows, 100 columns", exponent(points, "edges"))]


def of_draws(points: list[dict]) -> list[dict]:
    slope = exponent([p for p in points if p["draws"] >= 10], "draws")
    return [most("default: exponent of counterfactuals in draws, 10 to 1000", slope, 1.1)]


def of_loan(points: list[dict]) -> list[dict]:
    return [least("flow: counterfactual rows/s on loan", points[0]["queries"], 300_000)]


def of_peer_flow(points: list[dict]) -> list[dict]:
    return [
        row(
            f"causalflows: step, {p['nodes']} columns, ms",
            1000 * p["seconds"],
            f"its counterfactuals: {p['queries']:,.0f} rows/s",
        )
        for p in points
    ]


def of_rows(points: list[dict]) -> list[dict]:
    table = []
    for p in points:
        against = f"{p['seconds']:.2f} s against {p['peer']:.2f} s"
        name = f"default: fit / dowhy GOOD, {p['rows']:,} rows"
        table.append(most(name, p["seconds"] / p["peer"], 1.5, against))
        against = f"{p['queries']:,.0f} against {p['peer_queries']:,.0f} rows/s"
        name = f"default: counterfactuals / dowhy, fitted to {p['rows']:,}"
        table.append(least(name, p["queries"] / p["peer_queries"], 1, against))
    return table


def of_long(points: list[dict]) -> list[dict]:
    return [
        row(
            f"default: fit to {p['rows']:,} rows of Parquet, CPU s",
            p["seconds"],
            f"{p['peak']:.2f} GiB at most, the making of the files included",
        )
        for p in points
    ]


def of_parquet(points: list[dict]) -> list[dict]:
    folder, memory = (next(p for p in points if p["how"] == how) for how in ("folder", "memory"))
    against = f"{folder['seconds']:.1f} s against {memory['seconds']:.1f} s of CPU"
    what = f"flow: fit to {folder['rows']:,} rows, Parquet"
    return [
        most(f"{what} / in memory", folder["seconds"] / memory["seconds"], 1.3, against),
        most(f"{what}: peak memory, GiB", folder["peak"], 2, f"in memory {memory['peak']:.2f}"),
    ]


def of_graph(points: list[dict]) -> list[dict]:
    return [most("all facts of a complete graph of 500 nodes, CPU s", points[0]["seconds"], 2)]


def of_workers(points: list[dict]) -> list[dict]:
    one, two = (p["seconds"] for p in points)
    rows = f"counterfactuals of {points[0].get('rows', 0):,} rows"
    what = rows if "rows" in points[0] else "default's fit of 100 columns"
    who = "two workers" if "rows" in points[0] else "two processes"
    return [least(f"{who}: {what}, times as fast", one / two, 1.7, f"{one:.1f} s with one")]


def of_wide(points: list[dict]) -> list[dict]:
    name = "default: fit of 1000 columns and 5,000 rows on two processes, minutes"
    return [most(name, points[0]["minutes"], 20)]


TABLES: dict[str, Callable[[list[dict]], list[dict]]] = {
    "flow": of_nodes, "vaca": of_nodes, "default": of_nodes, "edges": of_edges, "draws": of_draws,
    "loan": of_loan, "peer-flow": of_peer_flow, "rows": of_rows, "long": of_long,
    "parquet": of_parquet, "graph": of_graph, "workers-fit": of_workers,
    "workers-rows": of_workers, "wide": of_wide,
}  # fmt: skip


# ---------------------------------------------------------------------- running them


def ask(part: str, argument: str) -> Iterator[dict[str, Any]]:
    """What a process of its own prints for a part, line by line."""
    command = [sys.executable, __file__, part, "--child", argument]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for line in child.stdout:
            print(line, end="", file=sys.stderr, flush=True)
            yield json.loads(line)
    if child.returncode:
        raise SystemExit(f"the part {part} failed")


def main() -> None:
    parser = argparse.ArgumentParser(description="How cost grows.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    for name in PEERS:
        parser.add_argument(f"--{name}", metavar="PYTHON", help=f"a Python that has {name}")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    for name in given.parts:
        if name not in PARTS:
            parser.error(f"no part {name!r}; there are {', '.join(PARTS)}")
    if given.child is not None:
        warnings.simplefilter("ignore")
        import torch

        torch.set_num_threads(1)
        for found in PARTS[given.parts[0]][0](*([given.child] if given.child else [])):
            print(json.dumps(found), flush=True)
        return
    path = RESULTS / "growth.json"
    stored = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    points, measured = stored.get("points", {}), stored.get("measured", {})
    reached = True
    for name in given.parts or PARTS:
        arguments = [getattr(given, a) if a in PEERS else a for a in PARTS[name][1]]
        if None in arguments:
            if given.parts:
                parser.error(f"the part {name!r} needs --{PARTS[name][1][0]} PYTHON")
            continue
        before = os.getloadavg()[0]
        points[name] = [found for argument in arguments for found in ask(name, argument)]
        measured[name] = {
            "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
            "load": round(before, 1),  # of other work, when it began
        }
        table = [line for n in PARTS if n in points for line in TABLES[n](points[n])]
        loads = ", ".join(f"{n} {measured[n]['load']:.0f}" for n in PARTS if n in measured)
        title = "Growth: time and memory against columns, arrows, rows and draws"
        note = f"CPU seconds of one thread. The load of the machine before each part: {loads}."
        reached = record("growth", title, table, note)
        content = json.loads(path.read_text(encoding="utf-8"))
        content |= {"points": points, "measured": measured}
        path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    finish(reached)


if __name__ == "__main__":
    main()
