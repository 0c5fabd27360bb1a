"""What dowhy's `falsify_graph` says of cases of `vaca reproduce check`; it needs its own packages.

$ python scripts/check_dowhy.py export cases          # with vaca: rows and graphs as files
$ other/bin/python scripts/check_dowhy.py run cases   # with dowhy 0.14: verdicts.json in the folder

Only cases of 500 rows with at most five nodes are taken, a few of each kind: kernel tests of 20
shuffled graphs take minutes each.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

COUNT = 3


def export(folder: Path) -> None:
    """Write the rows of each case as CSV, and all graphs and kinds to cases.json."""
    from vaca.reproduction.check_cases import case
    from vaca.reproduction.check_study import CHECKS, kind_of
    from vaca.reproduction.experiment import Options

    folder.mkdir(parents=True, exist_ok=True)
    taken: dict[str, int] = {}
    cases = []
    for run in CHECKS[0].runs(Options()):
        kind = kind_of(run.to_dict())
        if run.task != "check-graph" or run.train != 500 or taken.get(kind, 0) >= COUNT:
            continue
        truth, graph, rows = case(run)
        if len(graph) > 5:
            continue
        taken[kind] = taken.get(kind, 0) + 1
        truth.schema_.decode(rows).to_csv(folder / f"{run.key}.csv", index=False)
        levels = [c for c in truth.schema_ if truth.schema_[c].discrete]
        edges = [list(edge) for edge in graph.edges]
        cases.append(
            {
                "key": run.key,
                "kind": kind,
                "nodes": list(graph.nodes),
                "edges": edges,
                "levels": levels,
            }
        )
    (folder / "cases.json").write_text(json.dumps(cases, indent=1))


def run(folder: Path) -> None:
    """Ask dowhy of each case that has no verdict yet."""
    import networkx as nx
    import pandas as pd
    from dowhy.gcm.falsify import falsify_graph

    out = folder / "verdicts.json"
    verdicts = json.loads(out.read_text()) if out.exists() else {}
    for one in json.loads((folder / "cases.json").read_text()):
        if one["key"] in verdicts:
            continue
        data = pd.read_csv(folder / f"{one['key']}.csv")
        data = data.astype(dict.fromkeys(one["levels"], str))
        graph = nx.DiGraph()
        graph.add_nodes_from(one["nodes"])
        graph.add_edges_from(map(tuple, one["edges"]))
        started = time.process_time()
        found = falsify_graph(graph, data, n_jobs=1, plot_histogram=False, show_progress_bar=False)
        verdicts[one["key"]] = {
            "kind": one["kind"],
            "falsifiable": bool(found.falsifiable),
            "falsified": bool(found.falsified),
            "broken": _broken(found.summary),
            "cpu_seconds": round(time.process_time() - started, 1),
        }
        out.write_text(json.dumps(verdicts, indent=1))


def _broken(summary: dict) -> int:
    """How many independences of the graph dowhy's tests reject."""
    parts = {getattr(key, "name", str(key)): value for key, value in summary.items()}
    local = {getattr(key, "name", str(key)): v for key, v in parts["VALIDATE_LMC"].items()}
    return int(local["GIVEN_VIOLATIONS"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=["export", "run"])
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    {"export": export, "run": run}[given.step](given.folder)
