"""Our answers beside those of peers on tables of real studies whose answer is known.

Peers run in environments of their own (`benchmarks/peers_real.py`); both keep what is done in
small JSON files, and the page is a pure function of these.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from vaca.engines.registry import engine_class
from vaca.errors import VacaError, did_you_mean
from vaca.graph.dag import CausalGraph
from vaca.reproduction.real_tables import RealTable, load_real, real_names
from vaca.table.atomic import complete
from vaca.table.words import shown_number

__all__ = ["METHODS", "measure", "page", "reproduce_real"]

OURS, PEERS, TRUTHS = "ours.json", "peers.json", "truths.json"
#: What is measured: method -> engine and its settings. The first is the default.
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "vaca, default": ("Composite", {}),
    "vaca, AdditiveNoise": ("AdditiveNoise", {}),
    "vaca, CausalFlow": ("CausalFlow", {}),
    "vaca, VACA": ("VACA", {}),
}
GAPS = {
    "vaca, default, missing=drop": ("Composite", {"missing": "drop"}),
    "vaca, default, missing=model": ("Composite", {"missing": "model"}),
}
TITLES = {
    "lalonde": "LaLonde: job training and earnings, 185 treated and 15,992 controls of the CPS",
    "nhefs": "NHEFS: giving up smoking and weight, 1,566 complete rows",
    "nhefs-gaps": "NHEFS as it comes: 1,629 rows, gaps in the outcome and four covariates",
    "thornton": "Thornton: money for learning one's HIV result, assigned at random",
}
#: Answers that extrapolate for this share of the rows are marked.
MARKED = 0.05
WHOM = {"everyone": "everyone", "treated": "the treated"}


def graph_of(table: RealTable) -> CausalGraph:
    """The covariates as a block of causes of treatment and outcome."""
    block, treatment, outcome = table.covariates, table.treatment, table.outcome
    return CausalGraph.from_edges([(block, treatment), (block, outcome), (treatment, outcome)])


def answer(table: RealTable, engine: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The effect on everyone and on the treated, by an engine with refits."""
    kinds: dict[str, Any] = dict.fromkeys(table.levels, "categorical")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = engine_class(engine)(graph_of(table), schema=kinds or None, **settings)
        model.fit(table.data, refits=8, progress=False)
        found = {}
        treated = {table.treatment: 1}
        for whom, among in (("everyone", None), ("treated", treated)):
            effect = model.effect(table.outcome, treated, {table.treatment: 0}, among=among)
            low, high = effect.interval()
            found[whom] = {
                "value": effect.value,
                "low": low,
                "high": high,
                "extrapolated": round(effect.extrapolated_share, 3),
            }
    return found


def measure(
    folder: Path, names: Iterable[str], methods: Iterable[str], say: Callable[[str], None]
) -> None:
    """Measure what the folder does not hold yet, or holds for an engine that has changed since."""
    path = folder / OURS
    records = {(r["table"], r["method"]): r for r in _read(path)}
    methods = list(methods)
    for method in methods:
        if method not in METHODS:
            raise VacaError(f"unknown method {method!r}; {did_you_mean(method, METHODS)}")
    names, known = list(names), real_names()
    for name in names:
        if name not in known:
            raise VacaError(f"unknown table {name!r}; {did_you_mean(name, known)}")
    for name in names:
        offered = GAPS if name == "nhefs-gaps" else {m: METHODS[m] for m in methods}
        for method, (engine, settings) in offered.items():
            revision = getattr(engine_class(engine), "revision", 1)
            if records.get((name, method), {}).get("revision") == revision:
                continue
            begin = time.process_time()
            answers = answer(load_real(name), engine, settings)
            seconds = round(time.process_time() - begin, 1)
            records[name, method] = {
                "table": name, "method": method, "revision": revision, "answers": answers,
                "seconds": seconds,
            }  # fmt: skip
            folder.mkdir(parents=True, exist_ok=True)
            _keep_truth(folder / TRUTHS, name)
            with complete(path) as part:
                part.write_text(
                    json.dumps(list(records.values()), indent=1) + "\n", encoding="utf-8"
                )
            say(f"{name}, {method}: {seconds:.0f} CPU s")


def _keep_truth(path: Path, name: str) -> None:
    truths = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    truths[name] = load_real(name).truth
    with complete(path) as part:
        part.write_text(json.dumps(truths, indent=1) + "\n", encoding="utf-8")


def _read(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


# ---------------------------------------------------------------------- the page


def page(folder: Path) -> str:
    """The tables of docs/real-tables.md, from the stored answers and what is known."""
    truths = json.loads((folder / TRUTHS).read_text(encoding="utf-8"))
    records = [*_read(folder / OURS), *_read(folder / PEERS)]
    place = {method: k for k, method in enumerate(METHODS)}
    records.sort(key=lambda r: place.get(r["method"], len(place)))  # whatever was measured first
    records = [_dated(record) for record in records]
    parts = []
    for name, title in TITLES.items():
        mine = [r for r in records if r["table"] == name]
        if mine:
            parts += [f"## {title}", "", *_table(mine, truths.get(name, {})), ""]
    acic = [r for r in records if r["table"].startswith("acic-")]
    if acic:
        parts += ["## ACIC 2016: 58 covariates, 4,802 rows, ten replicates", ""]
        parts += [*_acic(acic, truths), ""]
    return "\n".join(parts)


def _dated(record: dict[str, Any]) -> dict[str, Any]:
    """The record; if the engine has changed since, the method says of which revision it is."""
    engine, _ = {**METHODS, **GAPS}.get(record["method"], (None, {}))
    then = record.get("revision")
    if engine is None or then == getattr(engine_class(engine), "revision", 1):
        return record
    return {**record, "method": f"{record['method']}, revision {then}"}


def _table(records: list[dict[str, Any]], truth: dict[str, float]) -> list[str]:
    known = [whom for whom in WHOM if whom in truth] or list(WHOM)
    heads = [
        f"effect on {WHOM[w]}" + (f" (known: {shown_number(truth[w])})" if w in truth else "")
        for w in known
    ]
    lines = [f"| method | {' | '.join(heads)} | CPU s |"]
    lines.append("| --- |" + " --- |" * len(known) + " ---: |")
    for record in records:
        cells = [_cell(record, whom) for whom in known]
        lines.append(f"| {record['method']} | {' | '.join(cells)} | {record['seconds']:.0f} |")
    return lines


def _cell(record: dict[str, Any], whom: str) -> str:
    if "error" in record:
        return "fails"
    found = record["answers"][whom]
    text = shown_number(found["value"], 3)
    if found["low"] is not None:
        text += f" ({shown_number(found['low'], 3)} to {shown_number(found['high'], 3)})"
    far = found.get("extrapolated") or 0.0
    return text + (f", {100 * far:.0f} % extrapolated" if far >= MARKED else "")


def _acic(records: list[dict[str, Any]], truths: dict[str, dict[str, float]]) -> list[str]:
    lines = [
        "| method | error, everyone | covers | error, the treated | covers | marked | replicates "
        "| CPU s |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for method in dict.fromkeys(r["method"] for r in records):
        mine = [r for r in records if r["method"] == method and "answers" in r]
        if not mine:
            continue
        cells = []
        for whom in WHOM:
            rows = [(r["answers"][whom], truths[r["table"]][whom]) for r in mine]
            cells.append(f"{np.mean([abs(a['value'] - t) for a, t in rows]):.3f}")
            sure = [(a, t) for a, t in rows if a["low"] is not None]
            held = sum(a["low"] <= t <= a["high"] for a, t in sure)
            cells.append(f"{held} of {len(sure)}" if sure else "-")
        far = [r["answers"]["everyone"].get("extrapolated") for r in mine]
        cells.append("-" if None in far else f"{sum(share >= MARKED for share in far)}")
        cells.append(_numbers([r["table"] for r in mine]))
        seconds = np.mean([r["seconds"] for r in mine])
        lines.append(f"| {method} | {' | '.join(cells)} | {seconds:.0f} |")
    return lines


def _numbers(names: list[str]) -> str:
    """Which replicates, such as "1-10" or "1, 3"."""
    found = sorted(int(name.removeprefix("acic-")) for name in names)
    if len(found) > 1 and found == list(range(found[0], found[-1] + 1)):
        return f"{found[0]}-{found[-1]}"
    return ", ".join(map(str, found))


def reproduce_real(
    folder: Path,
    tables: Iterable[str] | None,
    methods: Collection[str] | None,
    say: Callable[[str], None],
) -> str:
    """Measure what is left, and give the page; peers are measured by benchmarks/peers_real.py.

    ``methods``: "default" or the name of an engine; None means all.
    """
    short = {method.removeprefix("vaca, "): method for method in METHODS}
    for method in methods or ():
        if method not in short:
            raise VacaError(f"unknown method {method!r}; {did_you_mean(method, short)}")
    chosen = METHODS if methods is None else [short[method] for method in methods]
    measure(folder, tables or real_names(), chosen, say)
    return page(folder)
