"""How cost grows: CPU time and memory against columns, arrows, rows and draws.

Ratios are taken in one run, in CPU seconds of one thread. Three parents for each column. The limit
of CausalFlow's step is the matrix products of its networks, forwards and backwards, as batched
products of the same shapes. The peer for rows is dowhy.gcm (quality GOOD), in a Python of its own.

Bars: exponents in columns of at most 1.1 for CausalFlow, VACA and the default engine; a step of
CausalFlow within 4 times its limit; 1,500 counterfactual rows a second at 1000 columns with one
cause set; the default engine's fit within 1.5 times dowhy's, its counterfactuals as quick.

    python benchmarks/bench_growth.py [--dowhy PYTHON] [--parts nodes edges rows draws]

Parts that are not asked for keep their last figures.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd

import vaca
from _record import RESULTS, finish, record

NODES = {"flow": (10, 30, 100, 300, 1000), "vaca": (10, 30, 100, 300, 1000),
         "default": (10, 30, 100)}  # fmt: skip
PARENTS = (1, 3, 10)
ROWS = (5_000, 50_000, 500_000)
DRAWS = (1, 10, 100, 1000)
BATCH = 500
PARTS = ("nodes", "edges", "rows", "draws")

DOWHY = """
import sys, time, json, warnings; warnings.simplefilter("ignore")
import networkx as nx, numpy as np, pandas as pd
from dowhy import gcm
gcm.config.disable_progress_bars()
gcm.config.set_default_n_jobs(1)  # all CPU time is in this process
values, edges, many = np.load(sys.argv[1]), json.loads(sys.argv[2]), int(sys.argv[3])
frame = pd.DataFrame(values, columns=[f"x{k}" for k in range(values.shape[1])])
model = gcm.InvertibleStructuralCausalModel(nx.DiGraph(edges))
start = time.process_time()
gcm.auto.assign_causal_mechanisms(model, frame, quality=gcm.auto.AssignmentQuality.GOOD)
gcm.fit(model, frame)
fit = time.process_time() - start
rows = frame.sample(many, replace=True, random_state=0).reset_index(drop=True)
start = time.process_time()
gcm.counterfactual_samples(model, {"x0": lambda x: 1.0}, observed_data=rows)
print(json.dumps([fit, many / (time.process_time() - start)]))
"""


def graph_of(nodes: int, parents: int = 3, seed: int = 0) -> vaca.CausalGraph:
    rng = np.random.default_rng(seed)
    edges = [
        (f"x{i}", f"x{j}")
        for j in range(1, nodes)
        for i in sorted(rng.choice(j, min(j, parents), replace=False))
    ]
    return vaca.CausalGraph.from_edges(edges)


def rows_of(graph: vaca.CausalGraph, n: int, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    found: dict[str, np.ndarray] = {}
    for node in graph.order:
        above = sum((found[p] for p in graph.parents(node)), np.zeros(n))
        found[node] = 0.5 * above + rng.normal(size=n)
    return pd.DataFrame(found)


def cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def step(family: Any, graph: vaca.CausalGraph, frame: pd.DataFrame, more: int) -> tuple[float, Any]:
    """CPU seconds of a training step: a longer fit less a shorter one; and the longer one."""
    settings: dict[str, Any] = {"polish_steps": 0} if family is vaca.CausalFlow else {}

    def fit(steps: int) -> Any:
        return family(graph, steps=steps, patience=None, **settings).fit(frame, progress=False)

    fit(1)
    short, _ = cpu(lambda: fit(2))
    long, model = cpu(lambda: fit(2 + more))
    return (long - short) / more, model


def products(nodes: int) -> float:
    """CPU seconds of the products in a step of CausalFlow, forwards and backwards, both stacks."""
    import torch

    def once() -> None:
        for last in (2, 37):
            for i, o in ((3, 48), (48, 48), (48, last)):
                h, w = torch.randn(nodes, BATCH, i), torch.randn(nodes, i, o)
                start = time.process_time()
                out = torch.bmm(h, w)
                torch.bmm(out, w.transpose(1, 2))
                torch.bmm(h.transpose(1, 2), out)
                spent[0] += time.process_time() - start

    best = np.inf
    for _ in range(3):
        spent = [0.0]
        once()
        best = min(best, spent[0])
    return best


def queries(model: Any, frame: pd.DataFrame) -> float:
    model.counterfactual(frame[:100], {"x0": 0.5})
    took, _ = cpu(lambda: model.counterfactual(frame, {"x0": 0.5}))
    return len(frame) / took


def child_nodes(engine: str) -> None:
    """One engine at growing numbers of columns; a line of JSON for each."""
    family = {"flow": vaca.CausalFlow, "vaca": vaca.VACA, "default": vaca.Composite}[engine]
    for nodes in NODES[engine]:
        graph = graph_of(nodes)
        frame = rows_of(graph, round(BATCH / 0.85))
        if engine == "default":
            took, model = cpu(lambda g=graph, f=frame: vaca.Composite(g).fit(f, progress=False))
        else:
            took, model = step(family, graph, frame, max(3, 100 // nodes))
        found = {"engine": engine, "nodes": nodes, "seconds": took}
        if engine == "flow":
            found["limit"] = products(nodes)
        found["queries"] = queries(model, rows_of(graph, 4096, seed=2))
        found["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(json.dumps(found), flush=True)


def child_edges() -> None:
    for parents in PARENTS:
        graph = graph_of(100, parents)
        took, _ = step(vaca.CausalFlow, graph, rows_of(graph, round(BATCH / 0.85)), 4)
        print(json.dumps({"edges": len(graph.edges), "seconds": took}), flush=True)


def child_rows(dowhy: str | None) -> None:
    graph = graph_of(5)
    for n in ROWS:
        frame = rows_of(graph, n)
        fit, model = cpu(lambda f=frame: vaca.Composite(graph).fit(f, progress=False))
        many = rows_of(graph, 100_000, seed=2)
        found = {"rows": n, "seconds": fit, "queries": queries(model, many)}
        if dowhy is not None:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "rows.npy"
                np.save(path, frame[[f"x{k}" for k in range(5)]].to_numpy())
                edges = json.dumps([list(edge) for edge in graph.edges])
                done = subprocess.run(
                    [dowhy, "-c", DOWHY, str(path), edges, "100000"],
                    stdout=subprocess.PIPE, text=True, check=True,
                    env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
                )  # fmt: skip
            found["peer"], found["peer_queries"] = json.loads(done.stdout.splitlines()[-1])
        print(json.dumps(found), flush=True)


def child_draws() -> None:
    graph = graph_of(10)
    model = vaca.Composite(graph).fit(rows_of(graph, 1000), progress=False)
    rows = rows_of(graph, 200, seed=2)
    for draws in DRAWS:
        took, _ = cpu(lambda d=draws: model.counterfactual(rows, {"x0": 0.5}, draws=d, seed=0))
        print(json.dumps({"draws": draws, "seconds": took}), flush=True)


def ask(*arguments: str) -> Iterator[dict[str, Any]]:
    """What a child prints, line by line."""
    with subprocess.Popen(
        [sys.executable, __file__, "--child", *arguments], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            print(line, end="", file=sys.stderr, flush=True)
            yield json.loads(line)


def exponent(sizes: list[float], seconds: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def row(what: str, value: float, against: str = "", bar: str = "", ok: bool = True) -> dict:
    return {"what": what, "value": float(f"{value:.4g}"), "against": against, "bar": bar, "ok": ok}


def of_nodes(points: list[dict]) -> list[dict]:
    table = []
    for engine in dict.fromkeys(f["engine"] for f in points):
        found = [f for f in points if f["engine"] == engine]
        large = [f for f in found if f["nodes"] >= 30]
        if len(large) > 1:
            slope = exponent([f["nodes"] for f in large], [f["seconds"] for f in large])
            what = "fit" if engine == "default" else "step"
            span = f"{large[0]['nodes']} to {large[-1]['nodes']} columns"
            name = f"{engine}: exponent of a {what}, {span}"
            table.append(row(name, slope, "", "<= 1.1", slope <= 1.1))
        for f in found:
            if "limit" in f and f["nodes"] in (10, 100, 1000):
                ratio, name = f["seconds"] / f["limit"], "flow: step / batched products"
                against = f"{1000 * f['seconds']:.0f} ms against {1000 * f['limit']:.1f} ms"
                table.append(
                    row(f"{name}, {f['nodes']} columns", ratio, against, "<= 4", ratio <= 4)
                )
            if f["nodes"] == 1000:
                name, speed = f"{engine}: counterfactual rows/s, 1000 columns", f["queries"]
                table.append(row(name, speed, "", ">= 1,500", speed >= 1500))
                table.append(row(f"{engine}: peak memory at 1000 columns, GiB", f["peak"]))
    return table


def of_edges(points: list[dict]) -> list[dict]:
    slope = exponent([f["edges"] for f in points], [f["seconds"] for f in points])
    return [row("flow: exponent of a step in arrows, 100 columns", slope)]


def of_rows(points: list[dict]) -> list[dict]:
    table = []
    for f in points:
        if "peer" in f:
            ratio, speed = f["seconds"] / f["peer"], f["queries"] / f["peer_queries"]
            against = f"{f['seconds']:.2f} s against {f['peer']:.2f} s"
            name = f"default: fit / dowhy GOOD, {f['rows']:,} rows"
            table.append(row(name, ratio, against, "<= 1.5", ratio <= 1.5))
            against = f"{f['queries']:,.0f} against {f['peer_queries']:,.0f} rows/s"
            name = f"default: counterfactuals / dowhy, fitted to {f['rows']:,}"
            table.append(row(name, speed, against, ">= 1", speed >= 1))
        else:
            table.append(row(f"default: fit of {f['rows']:,} rows, CPU s", f["seconds"]))
    return table


def of_draws(points: list[dict]) -> list[dict]:
    found = [f for f in points if f["draws"] >= 10]
    slope = exponent([f["draws"] for f in found], [f["seconds"] for f in found])
    name = "default: exponent of counterfactuals in draws, 10 to 1000"
    return [row(name, slope, "", "<= 1.1", slope <= 1.1)]


TABLES = {"nodes": of_nodes, "edges": of_edges, "rows": of_rows, "draws": of_draws}


def measure(part: str, engines: list[str], dowhy: str | None, before: list[dict]) -> list[dict]:
    if part == "nodes":
        kept = [f for f in before if f["engine"] not in engines]
        return kept + [f for engine in engines for f in ask("nodes", engine)]
    return list(ask(part, *([dowhy] if part == "rows" and dowhy else [])))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--dowhy", help="a Python that has dowhy")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--engines", nargs="+", choices=list(NODES), default=list(NODES))
    parser.add_argument("--child", nargs="+")
    given = parser.parse_args()
    if given.child:
        warnings.simplefilter("ignore")
        import torch

        torch.set_num_threads(1)
        part, *rest = given.child
        work: dict[str, Callable[..., None]] = {
            "nodes": child_nodes,
            "edges": child_edges,
            "draws": child_draws,
            "rows": lambda *a: child_rows(*(a or (None,))),
        }
        work[part](*rest)
        return
    path = RESULTS / "growth.json"
    points = json.loads(path.read_text(encoding="utf-8"))["points"] if path.exists() else {}
    reached = True
    for part in given.parts:
        points[part] = measure(part, given.engines, given.dowhy, points.get(part, []))
        table = [r for name in PARTS if name in points for r in TABLES[name](points[name])]
        load = os.getloadavg()[0]
        reached = record(
            "growth",
            "Growth: time and memory against columns, arrows, rows and draws",
            table,
            f"CPU seconds of one thread; the load of the machine was {load:.0f}.",
        )
        content = json.loads(path.read_text(encoding="utf-8")) | {"points": points}
        path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    finish(reached)


if __name__ == "__main__":
    main()
