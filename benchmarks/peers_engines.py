"""dowhy.gcm and causalflows on the tables of `vaca reproduce default`, with the same scores.

They want versions of their own, so they run in an environment of their own that also has vaca:

    python -m venv peers && peers/bin/pip install . dowhy causalflows
    peers/bin/python benchmarks/peers_engines.py [peer ...]
    peers/bin/python benchmarks/peers_engines.py --table

The budget, said before: seed 0 of the paper's SCMs and of the random tables; dowhy's automatic
choice with quality GOOD and BETTER; causalflows' NSF where all columns are continuous, as it has no
other kind. What is done is kept in results/peers_engines.json and not done again.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vaca.evaluation import evaluate
from vaca.model.causal_model import CausalModel
from vaca.reproduction.default import DEFAULT
from vaca.reproduction.execute import _scores, _seeds
from vaca.reproduction.experiment import Options
from vaca.reproduction.run import Run, Store
from vaca.reproduction.truths import load_truth
from vaca.table.atomic import complete
from vaca.table.schema import Columns

STORE = Path(__file__).parent / "results" / "peers_engines.json"
PEERS = ("dowhy-good", "dowhy-better", "causalflows-nsf")
#: Steps and rows per step of a causal flow: about what CausalFlow takes here.
STEPS, BATCH = 2000, 256


class DoWhy(CausalModel):
    """dowhy.gcm's automatic choice; its mechanisms are asked one by one, in causal order."""

    def __init__(self, truth: CausalModel, quality: str) -> None:
        self.graph, self.schema_, self.quality = truth.graph, truth.schema_, quality

    def fit(self, x: Columns) -> None:
        """Choose and fit mechanisms; levels are text, which dowhy takes for categories."""
        import networkx as nx
        from dowhy import gcm

        gcm.config.disable_progress_bars()
        gcm.util.general.set_random_seed(0)
        edges = nx.DiGraph([(p, n) for n in self.graph.nodes for p in self.graph.parents(n)])
        edges.add_nodes_from(self.graph.nodes)
        self.own = gcm.StructuralCausalModel(edges)
        frame = pd.DataFrame({c: self._shown(c, v)[:, 0] for c, v in x.items()})
        quality = gcm.auto.AssignmentQuality[self.quality]
        gcm.auto.assign_causal_mechanisms(self.own, frame, quality=quality)
        gcm.fit(self.own, frame)

    def _shown(self, column: str, values: np.ndarray) -> np.ndarray:
        if self.schema_[column].discrete:
            return np.array([f"l{int(v)}" for v in values], dtype=object)[:, None]
        return np.asarray(values, float)[:, None]

    def _read(self, column: str, values: np.ndarray) -> np.ndarray:
        if self.schema_[column].discrete:
            return np.array([int(str(v)[1:]) for v in values[:, 0]])
        return values[:, 0].astype(float)

    def _above(self, node: str, x: Columns) -> np.ndarray:
        from dowhy.graph import get_ordered_predecessors

        parents = get_ordered_predecessors(self.own.graph, node)
        parts = [self._shown(p, x[p]) for p in parents]
        mixed = any(self.schema_[p].discrete for p in parents)
        return np.concatenate([p.astype(object) if mixed else p for p in parts], axis=1)

    def noise(self, n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        np.random.seed(int(rng.integers(2**31)))  # noqa: NPY002  # dowhy draws from it
        result = {}
        for node in self.graph.nodes:
            own = self.own.causal_mechanism(node)
            if self.graph.parents(node):
                result[node] = np.asarray(own.draw_noise_samples(n)).reshape(n)
            else:
                result[node] = self._read(node, np.asarray(own.draw_samples(n)).reshape(n, 1))
        return result

    @property
    def invertible(self) -> bool:
        """Whether all mechanisms have noise that can be told from a row."""
        inner = [n for n in self.graph.nodes if self.graph.parents(n)]
        return all(hasattr(self.own.causal_mechanism(n), "estimate_noise") for n in inner)

    def abduct(self, x: Columns, rng: Any = None) -> dict[str, np.ndarray]:
        result = {}
        for node in self.graph.nodes:
            own, values = self.own.causal_mechanism(node), np.asarray(x[node])
            if not self.graph.parents(node):
                result[node] = values
            elif hasattr(own, "estimate_noise"):
                result[node] = own.estimate_noise(values[:, None], self._above(node, x)).reshape(-1)
            else:
                result[node] = np.full(len(values), 0.5)  # such answers are not scored
        return result

    def simulate(self, u: dict[str, np.ndarray], do: Columns) -> Columns:
        x: Columns = {}
        for node in self.graph.order:
            if node in do:
                x[node] = np.asarray(do[node])
            elif not self.graph.parents(node):
                x[node] = u[node]
            else:
                own = self.own.causal_mechanism(node)
                value = own.evaluate(self._above(node, x), u[node][:, None])
                x[node] = self._read(node, np.asarray(value).reshape(-1, 1))
        return {node: x[node] for node in self.graph.nodes}


class NSF(CausalModel):
    """causalflows' neural spline flow with the graph, on standardised columns."""

    invertible = True

    def __init__(self, truth: CausalModel) -> None:
        self.graph, self.schema_ = truth.graph, truth.schema_

    def fit(self, x: Columns) -> None:
        """Adam, with a tenth of the rows held out to keep the best weights."""
        import torch
        from causalflows.flows import CausalNSF

        torch.manual_seed(0)
        names = list(self.graph.nodes)
        rows = np.column_stack([x[n] for n in names])
        self.mean, self.unit = rows.mean(0), rows.std(0)
        table = torch.as_tensor((rows - self.mean) / self.unit, dtype=torch.float32)
        table = table[torch.randperm(len(table))]
        held, kept = table[: len(table) // 10], table[len(table) // 10 :]
        adjacency = torch.eye(len(names), dtype=torch.bool)
        for i, n in enumerate(names):
            for p in self.graph.parents(n):
                adjacency[i, names.index(p)] = True
        self.flow = CausalNSF(len(names), adjacency=adjacency, hidden_features=(64, 64))
        optimiser = torch.optim.Adam(self.flow.parameters(), lr=1e-3)
        best, state = np.inf, self.flow.state_dict()
        for step in range(STEPS):
            batch = kept[torch.randint(len(kept), (min(BATCH, len(kept)),))]
            loss = -self.flow().log_prob(batch).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            if step % 50 == 49:
                with torch.no_grad():
                    score = float(-self.flow().log_prob(held).mean())
                if score < best:
                    best = score
                    state = {k: v.clone() for k, v in self.flow.state_dict().items()}
        self.flow.load_state_dict(state)

    def noise(self, n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        return {node: rng.standard_normal(n) for node in self.graph.nodes}

    def abduct(self, x: Columns, rng: Any = None) -> dict[str, np.ndarray]:
        import torch

        rows = (np.column_stack([x[n] for n in self.graph.nodes]) - self.mean) / self.unit
        with torch.no_grad():
            u = self.flow().transform(torch.as_tensor(rows, dtype=torch.float32)).numpy()
        return {node: u[:, i].astype(float) for i, node in enumerate(self.graph.nodes)}

    def simulate(self, u: dict[str, np.ndarray], do: Columns) -> Columns:
        import torch

        names = list(self.graph.nodes)
        noise = torch.as_tensor(np.column_stack([u[n] for n in names]), dtype=torch.float32)
        with torch.no_grad():
            transform = self.flow().transform
            x = transform.inv(noise)
            for node in self.graph.order:  # the noise that gives the value that is set
                if node in do:
                    i = names.index(node)
                    set_to = (np.asarray(do[node], float) - self.mean[i]) / self.unit[i]
                    x[:, i] = torch.as_tensor(set_to, dtype=torch.float32)
                    noise[:, i] = transform(x)[:, i]
                    x = transform.inv(noise)
        rows = x.numpy().astype(float) * self.unit + self.mean
        return {n: np.asarray(do[n]) if n in do else rows[:, i] for i, n in enumerate(names)}


def make(peer: str, truth: CausalModel) -> Any:
    """The peer for a table, not fitted; None if it has not the column kinds."""
    if peer.startswith("dowhy-"):
        return DoWhy(truth, peer.removeprefix("dowhy-").upper())
    kinds = {truth.schema_.kind(c) for c in truth.schema_}
    return NSF(truth) if kinds == {"continuous"} else None


def measure(run: Run, peer: str) -> dict[str, Any] | None:
    """Scores of a peer on the table of a run of the default engine."""
    truth = load_truth(run.scm)
    model = make(peer, truth)
    if model is None:
        return None
    first, second = _seeds(run.data_seed or 0, 2)
    data = truth.sample(run.train, seed=first)
    both = pd.concat([data, truth.sample(run.validation, seed=second)], ignore_index=True)
    worked = time.process_time()
    model.fit(truth.schema_.encode(both))
    worked = time.process_time() - worked
    sizes: dict[str, Any] = {k: getattr(run, k) for k in ("rows", "resamples", "factuals")}
    (seed,) = _seeds(run.seed, 1, stream=1)
    result = evaluate(model, truth, "paper", seed=seed, data=data, floor=False, **sizes)
    scores = {k: v[0] for k, v in _scores(result).items()}
    if not model.invertible:
        scores = {k: v for k, v in scores.items() if not k.startswith("cf_")}
    return {"scores": scores, "fit_cpu_seconds": round(worked, 2)}


SHOWN = {
    "obs_mmd": "obs. MMD",
    "int_mmd": "int. MMD",
    "int_ate": "mean effects",
    "cf_mse": "CF MSE",
}


def table(
    done: dict[str, Any],
    own: dict[str, dict[str, float]],
    noise: dict[str, float],
    varies: dict[str, float],
) -> str:
    """How the default engine stands against each peer, on the tables that both have answered.

    ``own``: the default's scores by table. Ratios are the default's score over the peer's.
    ``noise``: by how much scores of the truth itself differ from seed to seed. ``varies``: by how
    much the default's do, in logarithms, for every seed has other rows to learn from.
    """
    lines = [
        "### The default engine beside dowhy.gcm and causalflows",
        "",
        "Seed 0 of the tables of `vaca reproduce default`, protocol paper. Default / peer: "
        "geometric mean; on how many tables the default is better; and on how many it is better "
        "or equal, that is, not worse by more than scores of the truth itself differ from seed to "
        "seed (their standard deviation, the median of all tables: "
        + ", ".join(f"{SHOWN[k]} {v:.2g}" for k, v in noise.items())
        + "). Clearly worse: by more than the default's own score differs between two sets of rows "
        "of the same table (the standard deviation of its logarithm, over all tables: a factor of "
        + ", ".join(f"{np.exp(v):.1f} for {SHOWN[k]}" for k, v in varies.items())
        + "). Of dowhy, "
        "counterfactuals are scored where all its mechanisms can be inverted; where a peer has "
        "fewer tables, the largest have not been run, or it has not the kinds of columns.",
        "",
        "| peer | score | tables | default / peer | better | better or equal | clearly worse |",
        "| :-- | :-- | --: | --: | --: | --: | --: |",
    ]
    for peer in PEERS:
        found = {n.split()[0]: r for n, r in done.items() if n.endswith(" " + peer) and r}
        failed = [n for n, r in found.items() if "error" in r]
        for metric, title in SHOWN.items():
            both = [
                (own[n][metric] + 1e-3, r["scores"][metric] + 1e-3)
                for n, r in found.items()
                if n in own and own[n].get(metric) is not None
                and r.get("scores", {}).get(metric) is not None
            ]  # fmt: skip
            if not both:
                continue
            a, b = np.array(both).T
            lines.append(
                f"| {peer} | {title} | {len(a)} | {np.exp(np.log(a / b).mean()):.2f} | "
                f"{100 * np.mean(a < b):.0f} % | {100 * np.mean(a <= b + noise[metric]):.0f} % | "
                f"{100 * np.mean(np.log(a / b) > varies[metric]):.0f} % |"
            )
        if failed:
            lines.append(f"| {peer} | no answer | {len(failed)} | | | | |")
    return "\n".join(lines) + "\n"


def write_table(results: Path) -> None:
    """Write results/peers_engines.md from what is stored of the peers and of the default."""
    store = Store(results / "runs")
    runs = [r for r in DEFAULT[0].runs(Options()) if r.model == "composite" and store.done(r)]
    scores = {(r.scm, r.seed): store.read(r)["scores"]["paper"] for r in runs}
    own = {scm: {k: v[0] for k, v in s.items()} for (scm, seed), s in scores.items() if not seed}
    noise, varies = {}, {}
    for metric in SHOWN:
        logs = {k: np.log(s[metric][0] + 1e-3) for k, s in scores.items() if metric in s}
        found = pd.Series(logs, dtype=float).groupby(level=0).var()
        varies[metric] = float(np.sqrt(found.mean()))
        floors = pd.Series({k: s[metric][1] for k, s in scores.items() if metric in s}, dtype=float)
        # The median: a table whose values explode has noise of any size.
        noise[metric] = float(np.sqrt(floors.groupby(level=0).var().median()))
    text = table(json.loads(STORE.read_text()), own, noise, varies)
    STORE.with_suffix(".md").write_text(text, encoding="utf-8")


def main(peers: list[str]) -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    done: dict[str, Any] = json.loads(STORE.read_text()) if STORE.exists() else {}
    runs = [r for r in DEFAULT[0].runs(Options()) if r.model == "composite" and r.seed == 0]
    for peer in peers or PEERS:
        for run in sorted(runs, key=lambda r: (r.train, r.scm)):
            name = f"{run.scm} {peer}"
            if name in done:
                continue
            try:
                done[name] = measure(run, peer)
            except Exception as error:  # a peer that fails has no score, and the reason is kept
                done[name] = {"error": f"{type(error).__name__}: {error}"[:300]}
            with complete(STORE) as path:
                path.write_text(json.dumps(done, indent=1, sort_keys=True) + "\n")
            print(name, json.dumps(done[name])[:200], flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["--table"]:
        write_table(Path(__file__).parents[1] / "results")
    else:
        main(sys.argv[1:])
