"""What dowhy's `falsify_graph` says of cases of `vaca reproduce check`; it needs its own packages.

$ python scripts/check_dowhy.py export cases          # with vaca: rows and graphs as files
$ other/bin/python scripts/check_dowhy.py run cases   # with dowhy 0.14: verdicts.json in the folder

Only cases of 500 rows with at most eight nodes are taken, and some of each kind: kernel tests of 20
shuffled graphs take a minute each. `table` then writes what both say to benchmarks/results.

$ python scripts/check_dowhy.py table cases
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
OUT = ROOT / "benchmarks" / "results"
COUNT = 6
#: Of fewer nodes no graph can be told from its shuffles at the 5 % level.
NODES = range(4, 9)


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
        if len(graph) not in NODES:
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
    from dowhy.gcm.config import set_default_n_jobs
    from dowhy.gcm.falsify import falsify_graph

    set_default_n_jobs(1)  # so that the seconds of this process are all of them
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


def table(folder: Path) -> None:
    """Write what dowhy and the stored study say of the same cases."""
    from vaca.reproduction.check_study import CHECKS
    from vaca.reproduction.experiment import Options
    from vaca.reproduction.run import Store

    store = Store(ROOT / "results" / "runs")
    runs = {run.key: run for run in CHECKS[0].runs(Options())}
    verdicts = json.loads((folder / "verdicts.json").read_text())
    rows = []
    for key, theirs in verdicts.items():
        ours = store.read(runs[key])["check"]
        rows.append(
            {
                "key": key,
                "kind": theirs["kind"],
                "nodes": ours["nodes"],
                "ours": ours["verdict"],
                "dowhy": "falsified" if theirs["falsified"] else "not falsified",
                "dowhy, any test rejects": theirs["broken"] > 0,
                "our CPU seconds": ours["cpu_seconds"],
                "dowhy's CPU seconds": theirs["cpu_seconds"],
            }
        )
    (OUT / "check_dowhy.json").write_text(json.dumps(rows, indent=1) + "\n")
    lines = [
        "### `vaca check` beside dowhy.gcm's `falsify_graph`",
        "",
        "Some cases of `vaca reproduce check`, 500 rows and 4 to 8 nodes each; both at their "
        "defaults, dowhy 0.14. A case takes dowhy the better part of a minute, so not all are "
        "asked.",
        "",
        "| Graph | cases | doubted here | falsified by dowhy | one of dowhy's tests rejects | "
        "CPU s here | CPU s dowhy |",
        "| :-- | --: | --: | --: | --: | --: | --: |",
    ]
    for kind in ("right", "remove", "reverse", "add", "hidden"):
        own = [r for r in rows if r["kind"] == kind]
        if own:
            seconds = [sum(r[c] for r in own) / len(own) for c in list(own[0])[-2:]]
            lines.append(
                f"| {kind} | {len(own)} | {sum(r['ours'] != 'good' for r in own)} | "
                f"{sum(r['dowhy'] == 'falsified' for r in own)} | "
                f"{sum(r['dowhy, any test rejects'] for r in own)} | "
                f"{seconds[0]:.1f} | {seconds[1]:.1f} |"
            )
    (OUT / "check_dowhy.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=["export", "run", "table"])
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    {"export": export, "run": run, "table": table}[given.step](given.folder)
