"""The parts of `bench_growth.py`: each runs in a process of its own and gives lines of JSON."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import vaca

NODES = (10, 30, 100, 300, 1000)
PARENTS = (1, 3, 10)
ROWS = (5_000, 50_000, 500_000)
LONG = (5_000_000, 50_000_000)
DRAWS = (1, 10, 100, 1000)
BATCH = 500
LOAN_ROWS = 100_000
TRAINING_ROWS = 20_000_000
WORKER_ROWS = 10_000_000

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
speed = 0.0
for _ in range(3):
    start = time.process_time()
    gcm.counterfactual_samples(model, {"x0": lambda x: 1.0}, observed_data=rows)
    speed = max(speed, many / (time.process_time() - start))
print(json.dumps([fit, speed]))
"""

CAUSALFLOWS = """
import sys, time, json; import numpy as np, torch; torch.set_num_threads(1)
from causalflows.flows import CausalNSF
values, edges = np.load(sys.argv[1]), json.loads(sys.argv[2])
d = values.shape[1]
table = torch.as_tensor((values - values.mean(0)) / values.std(0), dtype=torch.float32)
adjacency = torch.eye(d, dtype=torch.bool)
for cause, effect in edges:
    adjacency[int(effect[1:]), int(cause[1:])] = True
flow = CausalNSF(d, adjacency=adjacency, hidden_features=(64, 64))
optimiser = torch.optim.Adam(flow.parameters(), lr=1e-3)
def step():
    loss = -flow().log_prob(table[:500]).mean()
    optimiser.zero_grad(); loss.backward(); optimiser.step()
step()
start = time.process_time()
for _ in range(5): step()
took = (time.process_time() - start) / 5
with torch.no_grad():
    start = time.process_time()
    noise = flow().transform(table)
    noise[:, 0] += 0.5
    flow().transform.inv(noise)
print(json.dumps([took, len(table) / (time.process_time() - start)]))
"""


# ---------------------------------------------------------------------- tables and clocks


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


def written(folder: Path, piece: Callable[[int, int], pd.DataFrame], rows: int, files: int) -> Path:
    """A folder of Parquet files, whose rows come by ``piece(n, seed)``."""
    folder.mkdir()
    for number in range(files):
        piece(rows // files, number).to_parquet(folder / f"{number:03d}.parquet", index=False)
    return folder


def cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def wall(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def peak() -> float:
    """GiB that this process has used at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


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
                out, back, own = torch.randn(nodes, BATCH, o), h.clone(), w.clone()
                start = time.process_time()  # into memory that is there: products alone
                torch.bmm(h, w, out=out)
                torch.bmm(out, w.transpose(1, 2), out=back)
                torch.bmm(h.transpose(1, 2), out, out=own)
                spent[0] += time.process_time() - start

    best = np.inf
    for _ in range(3):
        spent = [0.0]
        once()
        best = min(best, spent[0])
    return best


def queries(model: Any, frame: pd.DataFrame, do: dict[str, Any], times: int = 3) -> float:
    """Counterfactual rows per CPU second, at best."""
    model.counterfactual(frame[:100], do)
    return len(frame) / min(cpu(lambda: model.counterfactual(frame, do))[0] for _ in range(times))


def peer(python: str, script: str, graph: vaca.CausalGraph, frame: pd.DataFrame, *more: str) -> Any:
    """What a script prints in another Python, given the rows and the arrows."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        np.save(path, frame[[f"x{k}" for k in range(len(graph.nodes))]].to_numpy())
        edges = json.dumps([list(edge) for edge in graph.edges])
        done = subprocess.run(
            [python, "-c", script, str(path), edges, *more],
            stdout=subprocess.PIPE, text=True, check=True,
            env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
        )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


# ---------------------------------------------------------------------- the parts


def nodes_of(engine: str) -> Iterator[dict]:
    """One engine at growing numbers of columns: a step, or the default's fit."""
    family = {"flow": vaca.CausalFlow, "vaca": vaca.VACA, "default": vaca.Composite}[engine]
    for nodes in NODES:
        graph = graph_of(nodes)
        frame = rows_of(graph, round(BATCH / 0.85))
        if engine == "default":
            took, model = cpu(lambda g=graph, f=frame: vaca.Composite(g).fit(f, progress=False))
        else:
            took, model = step(family, graph, frame, max(20, 300 // nodes))
        found = {"engine": engine, "nodes": nodes, "seconds": took}
        if engine == "flow":
            found["limit"] = products(nodes)
        if engine == "vaca":
            found["weights"] = sum(p.numel() for p in model._net.parameters())
        found["queries"] = queries(model, rows_of(graph, 4096, seed=2), {"x0": 0.5})
        found["peak"] = peak()
        yield found


def edges() -> Iterator[dict]:
    for parents in PARENTS:
        graph = graph_of(100, parents)
        took, _ = step(vaca.CausalFlow, graph, rows_of(graph, round(BATCH / 0.85)), 4)
        yield {"edges": len(graph.edges), "seconds": took}


def rows(dowhy: str) -> Iterator[dict]:
    """The default engine's fit and counterfactuals beside dowhy's."""
    graph = graph_of(5)
    for n in ROWS:
        frame = rows_of(graph, n)
        fit, model = cpu(lambda f=frame: vaca.Composite(graph).fit(f, progress=False))
        speed = queries(model, rows_of(graph, 100_000, seed=2), {"x0": 1.0})
        told = peer(dowhy, DOWHY, graph, frame, "100000")
        yield {"rows": n, "seconds": fit, "queries": speed, "peer": told[0],
               "peer_queries": told[1]}  # fmt: skip


def long() -> Iterator[dict]:
    """The default engine's fit to a folder of Parquet files, and its memory."""
    graph = graph_of(5)
    for n in LONG:
        with tempfile.TemporaryDirectory() as name:
            piece = lambda k, seed: rows_of(graph, k, seed)  # noqa: E731
            folder = written(Path(name) / "rows", piece, n, n // 1_000_000)
            took, _ = cpu(lambda f=folder: vaca.Composite(graph).fit(f, progress=False))
        yield {"rows": n, "seconds": took, "peak": peak()}


def draws() -> Iterator[dict]:
    graph = graph_of(10)
    model = vaca.Composite(graph).fit(rows_of(graph, 1000), progress=False)
    frame = rows_of(graph, 200, seed=2)
    for count in DRAWS:
        took, _ = cpu(lambda d=count: model.counterfactual(frame, {"x0": 0.5}, draws=d, seed=0))
        yield {"draws": count, "seconds": took}


def loan() -> Iterator[dict]:
    scm = vaca.scms.load("loan")
    model = vaca.CausalFlow(scm.graph, steps=300).fit(scm.sample(5000, seed=0), progress=False)
    speed = queries(model, scm.sample(LOAN_ROWS, seed=2), {"gender": 1}, times=7)
    yield {"queries": speed}


def peer_flow(python: str) -> Iterator[dict]:
    """A step and the counterfactuals of causalflows' spline flow."""
    for nodes in (10, 100):
        graph = graph_of(nodes)
        took, speed = peer(python, CAUSALFLOWS, graph, rows_of(graph, 4096, seed=2))
        yield {"nodes": nodes, "seconds": took, "queries": speed}


def graph() -> Iterator[dict]:
    """Every fact of a complete graph of 500 nodes."""
    names = [f"x{k}" for k in range(500)]
    parents = {name: names[:k] for k, name in enumerate(names)}

    def facts() -> None:
        whole = vaca.CausalGraph.from_parents(parents)
        for name in names:
            _ = whole.parents(name), whole.children(name)
            _ = whole.ancestors(name), whole.descendants(name)
        _ = whole.order, whole.edges, whole.roots, whole.leaves, whole.layers()
        _ = whole.longest_path, whole.longest_shortest_path, whole.adjacency()

    yield {"seconds": cpu(facts)[0]}


def workers_fit() -> Iterator[dict]:
    graph = graph_of(100)
    frame = rows_of(graph, 1000)
    for jobs in (1, 2):
        work = lambda j=jobs: vaca.Composite(graph).fit(frame, jobs=j, progress=False)  # noqa: E731
        yield {"jobs": jobs, "seconds": wall(work)[0]}


def workers_rows() -> Iterator[dict]:
    """Counterfactuals of a folder on a cluster of one worker and of two, imports included."""
    from distributed import LocalCluster

    from vaca.model.partitions import partitioned_counterfactuals

    scm = vaca.scms.load("loan")
    model = vaca.CausalFlow(scm.graph, steps=100).fit(scm.sample(2000, seed=0), progress=False)
    with tempfile.TemporaryDirectory() as name:
        piece = lambda n, seed: scm.sample(n, seed=seed)  # noqa: E731
        folder = written(Path(name) / "rows", piece, WORKER_ROWS, 20)
        for workers in (1, 2):
            with LocalCluster(
                n_workers=workers, threads_per_worker=1, dashboard_address=":0"
            ) as cluster:
                address = str(cluster.scheduler_address)  # type: ignore[union-attr]
                took, _ = wall(
                    lambda a=address, w=workers: partitioned_counterfactuals(
                        model, folder, {"gender": 1}, Path(name) / f"out{w}", seed=0, cluster=a
                    )
                )
            yield {"workers": workers, "seconds": took, "rows": WORKER_ROWS}


def parquet(how: str) -> Iterator[dict]:
    """CausalFlow's fit to many rows, from a folder or out of memory, in a process each."""
    scm = vaca.scms.load("loan")
    with tempfile.TemporaryDirectory() as name:
        piece = lambda n, seed: scm.sample(n, seed=seed)  # noqa: E731
        data: Any = written(Path(name) / "rows", piece, TRAINING_ROWS, 20)
        if how == "memory":
            data = pd.read_parquet(data)
        took, _ = cpu(lambda: vaca.CausalFlow(scm.graph).fit(data, progress=False))
    yield {"how": how, "seconds": took, "rows": TRAINING_ROWS, "peak": peak()}


def wide() -> Iterator[dict]:
    graph = graph_of(1000)
    frame = rows_of(graph, 5000)
    took, _ = wall(lambda: vaca.Composite(graph).fit(frame, jobs=2, progress=False))
    yield {"minutes": took / 60}
