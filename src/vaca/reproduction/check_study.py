"""A study: `vaca.check` finds wrong graphs and bad fits, and leaves right ones alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vaca.reproduction.check_cases import wrong_edit
from vaca.reproduction.experiment import Experiment, Options, Reports
from vaca.reproduction.figures import Picture
from vaca.reproduction.result_tables import Cell, Table
from vaca.reproduction.run import Run
from vaca.reproduction.truths import load_truth
from vaca.scm import library as scms

__all__ = ["CHECKS"]

#: Numbers of SCMs and seeds of rows that no threshold was settled on; those were 10,000 and above.
FIRST = 500
SIZES = (500, 2000, 5000)
KINDS = ("remove", "reverse", "add", "hidden")
RIGHT, WRONG = 102, 51
#: SCMs for full fits: small and large, straight and curved, mixed kinds.
FITTED = (
    "collider-nlin", "triangle-lin", "triangle-nlin", "chain-lin", "chain-nlin", "mgraph-lin",
    "mgraph-nlin", "loan", "mixed:500", "mixed:501",
)  # fmt: skip
#: For models of five steps: curved ones, as both engines start from straight lines.
CURVED = ("triangle-nlin", "triangle-nadd", "chain-nlin", "chain-nadd", "collider-nadd")


def _right_runs(first: int, count: int) -> list[Run]:
    """A quarter of the paper's SCMs, a quarter smooth ones, half of mixed kinds."""
    runs = []
    for i in range(count):
        names = (f"mixed:{first + i}", f"random:{first + i}", f"mixed:{first + i}", _known(i))
        runs.append(_run(names[i % 4], first + i, SIZES[i % 3]))
    return runs


def _known(i: int) -> str:
    return scms.names()[(i // 4) % len(scms.names())]


def _run(scm: str, seed: int, size: int, edit: tuple[str, ...] = ()) -> Run:
    return Run(
        scm, "none", seed, graph=edit, train=size, validation=0, factuals=0, protocols=(), rows=0,
        resamples=0, task="check-graph",
    )  # fmt: skip


def _wrong_runs(first: int, count: int) -> list[Run]:
    runs = []
    for i in range(count):
        for kind in KINDS:
            seed, size = first + i, SIZES[i % 3]
            if kind == "hidden":
                runs.append(_run(f"hidden:{seed}", seed, size))
                continue
            scm = (f"mixed:{seed}", f"random:{seed}", f"mixed:{seed}", _known(i))[i % 4]
            edit = wrong_edit(load_truth(scm).graph, kind, seed)
            # Where no such change exists, a smooth SCM of that number takes the place.
            if edit is None:
                scm = f"random:{seed}"
                edit = wrong_edit(load_truth(scm).graph, kind, seed)
            if edit is not None:
                runs.append(_run(scm, seed, size, edit))
    return runs


def _fit_runs() -> list[Run]:
    fields: dict[str, Any] = {
        "train": 2000, "validation": 0, "factuals": 0, "protocols": (), "rows": 0, "resamples": 0,
        "task": "check",
    }  # fmt: skip
    few = {"flow": {"steps": 5, "polish_steps": 0}, "vaca": {"steps": 5}}
    brief = [Run(scm, m, 500, config=few[m], **fields) for m in few for scm in CURVED]
    return [*brief, *(Run(scm, "composite", 500, **fields) for scm in FITTED)]


def _runs(options: Options) -> list[Run]:
    first = FIRST + (options.seeds[0] if options.seeds else 0)
    right, wrong = (12, 4) if options.quick else (RIGHT, WRONG)
    wrongs = _wrong_runs(first, wrong)
    runs = []  # a right one and two wrong ones in turn, so that what is done so far is balanced
    for i, run in enumerate(_right_runs(first, right)):
        runs += [run, *wrongs[2 * i : 2 * i + 2]]
    runs += wrongs[2 * right :]
    return runs if options.quick else [*runs, *_fit_runs()]


# ---------------------------------------------------------------------- what to show


def kind_of(run: dict[str, Any]) -> str:
    """right, remove, reverse, add or hidden; or the model of a fitted one."""
    if run["task"] == "check":
        return "5 steps" if "steps" in run["config"] else "full fit"
    if run["scm"].startswith("hidden:"):
        return "hidden"
    if not run["graph"]:
        return "right"
    return {"-": "remove", "~": "reverse", "+": "add"}[run["graph"][0][0]]


def _share(cases: Iterable[bool]) -> Cell:
    cases = list(cases)
    if not cases:
        return Cell(text="-")
    return Cell(text=f"{100 * sum(cases) / len(cases):.0f} % of {len(cases)}")


def _show(reports: Reports, options: Options) -> list[Table | Picture]:
    cases = [
        {"kind": kind_of(r["run"]), "n": r["run"]["train"], **r["run"], **r["check"]}
        for r in reports
    ]
    return [_right_table(cases), _wrong_table(cases), _fit_table(cases)]


def _verdict_table(
    title: str, caption: str, by: str, groups: dict[str, list[dict[str, Any]]]
) -> Table:
    verdicts = ("good", "doubtful", "bad")
    rows = [
        (Cell(text=name), *(_share(c["verdict"] == v for c in own) for v in verdicts))
        for name, own in groups.items()
    ]
    return Table(title=title, caption=caption, head=(by, *verdicts), rows=tuple(rows))


def _right_table(cases: list[dict[str, Any]]) -> Table:
    right = [c for c in cases if c["kind"] == "right"]
    groups = {str(size): [c for c in right if c["n"] == size] for size in SIZES}
    return _verdict_table(
        "Right graphs",
        "What the check says of the graph. The paper's SCMs and random ones of 3 to 10 "
        "nodes, mixed kinds. Thresholds were settled on other SCMs.",
        "Rows",
        {**groups, "all": right},
    )


def flagged(case: dict[str, Any]) -> bool:
    """Whether the check doubts the graph."""
    return case["verdict"] != "good"


def told(case: dict[str, Any]) -> bool:
    """Whether some test could tell the graph is wrong: ours, or plain ones."""
    return flagged(case) or bool(case.get("plain"))


def _wrong_table(cases: list[dict[str, Any]]) -> Table:
    rows = []
    for kind in (*KINDS, "all"):
        for size in (*SIZES, "all"):
            own = [c for c in cases if c["kind"] in KINDS and kind in (c["kind"], "all")]
            own = [c for c in own if size in (c["n"], "all")]
            harmful = [c for c in own if c["harm"] > 0.25]
            rows.append(
                (
                    Cell(text=kind),
                    Cell(text=str(size)),
                    _share(flagged(c) for c in own),
                    _share(flagged(c) for c in harmful),
                    _share(flagged(c) for c in harmful if told(c)),
                    _share(flagged(c) for c in harmful if c["contradicted"]),
                    _share(flagged(c) for c in own if c["harm"] <= 0.25),
                    _share(_named(c) for c in own if kind == "remove" and c["broken"]),
                )
            )
    return Table(
        title="Wrong graphs",
        caption="Share that the check doubts. Harmful: a mean under an intervention is off by more "
        "than 0.25 sd. Told: by the check, or by plain tests with random forests on 1,000 rows. "
        "Contradicted: the true graph breaks an independence of the wrong one, however weakly. "
        "Named first: the pair whose arrow was removed leads the list.",
        head=(
            "Wrong",
            "Rows",
            "all",
            "harmful",
            "harmful, told by a test",
            "harmful, contradicted",
            "harmless",
            "named first",
        ),
        rows=tuple(rows),
        names=2,
    )


def _named(case: dict[str, Any]) -> bool:
    cause, _, effect = case["graph"][0][1:].partition("->")
    return set(case["first"][1:]) == {cause, effect}


def _fit_table(cases: list[dict[str, Any]]) -> Table:
    return _verdict_table(
        "Fitted models under the right graph",
        "The whole check, 2,000 rows: CausalFlow and VACA after 5 steps on curved SCMs "
        "(they start from straight lines), and the default engine as it comes.",
        "Model",
        {kind: [c for c in cases if c["kind"] == kind] for kind in ("5 steps", "full fit")},
    )


CHECKS = (Experiment("check", "Does `vaca check` find wrong graphs and bad fits?", _runs, _show),)
