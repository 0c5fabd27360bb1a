"""Can this model be relied on: its graph, its fit, its questions, in one look.

Every part is a figure with a reference and a verdict of its own; the verdict of the whole is the
worst of them. What the parts measure is in the modules beside this one; here they are put together
and put into words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from vaca.engines.engine import KEPT_ROWS
from vaca.errors import VacaError
from vaca.graph.dag import CausalGraph
from vaca.model.causal_model import CausalModel
from vaca.table.schema import Columns, Schema, as_frame
from vaca.trust import fit
from vaca.trust.arrows import arrow_changes
from vaca.trust.askable import SAFE, questions
from vaca.trust.axioms import axioms
from vaca.trust.engines import other_engine
from vaca.trust.independence import ALPHA, independence_tests, relabelings
from vaca.trust.leftover import some_rows

__all__ = ["Check", "GraphCheck", "check", "check_graph"]

Verdict = Literal["good", "doubtful", "bad"]
ORDER: tuple[Verdict, ...] = ("good", "doubtful", "bad")

#: Rows that any part looks at; of larger tables, so many drawn at random.
MOST_ROWS = 20_000
#: A broken independence is bad, not only doubtful, from this p and this correlation on.
BAD_P, BAD_SIZE = 1e-3, 0.1
#: A reversed arrow is preferred from so many standard errors and so much log-density per row on.
TURN_Z, TURN_GAIN = 4.0, 0.02
#: Of 100 pairs of a drawn and a held-out row, so many told apart: doubtful, bad.
TOLD = (0.60, 0.70)
#: Distance of ranks from uniform; correlation of noise with a cause; share left unexplained.
OFF, NOISE, UNEXPLAINED = (0.12, 0.25), (0.2, 0.4), (0.15, 0.3)
#: Share of draws that are impossible values.
OUTSIDE = (0.02, 0.2)
#: Counterfactuals in standard deviations: exact axioms, the way back, and means.
EXACT, BACK, MEANS = (1e-6, 1e-3), (0.1, 0.5), (0.1, 0.3)
#: Below this p a difference is not chance.
SURE = 0.01


@dataclass(frozen=True)
class Check:
    """What was found of a model; see `check`.

    Attributes
    ----------
    verdict : {"good", "doubtful", "bad"}
        The worst of the parts.
    parts : DataFrame
        part, verdict, figure, reference, words: a line for each part.
    graph : GraphCheck
        Independences and changes of arrows, ranked.
    columns, noise : DataFrame
        How each column fits given its causes; relations that its noise should not have.
    questions : DataFrame
        Each likely treatment, and the share of rows for which asking extrapolates.
    axioms, engines : DataFrame
        Axioms of counterfactuals, and main effects by another engine; empty if not measured.
    rows, held_out : int
        Rows of the table, and those that the fit was measured on.
    unseen : bool
        Whether the model had not been fitted to these.
    """

    verdict: Verdict
    parts: pd.DataFrame
    graph: GraphCheck
    columns: pd.DataFrame
    noise: pd.DataFrame
    questions: pd.DataFrame
    axioms: pd.DataFrame
    engines: pd.DataFrame
    rows: int
    held_out: int
    unseen: bool
    chances: dict[str, pd.DataFrame] = field(default_factory=dict, repr=False)

    def to_html(self, path: str | Path) -> Path:
        """Write one page with every part, and give its path."""
        from vaca.trust.check_page import write_page

        return write_page(self, Path(path))

    def __str__(self) -> str:
        width = max(len(part) for part in self.parts["part"])
        lines = [
            f"{line.part:<{width}}  {line.verdict:<8}  {line.words}"
            for line in self.parts.itertuples()
        ]
        return "\n".join([*lines, f"verdict: {self.verdict}"])


@dataclass(frozen=True)
class GraphCheck:
    """The graph against data; see `check_graph`.

    Attributes
    ----------
    verdict : {"good", "doubtful", "bad"}
    parts : DataFrame
        As in `Check`.
    independences : DataFrame
        Every implied independence with its p-value, the most doubtful first.
    arrows : DataFrame
        What deserves a second look, ranked: `change` (add, remove, reverse), `cause`, `effect`,
        `gain` (of log-density per row, on rows not seen), `z`, and `words`.
    groups : list of tuple
        Roots that the data say are dependent, to be grouped in a node.
    """

    verdict: Verdict
    parts: pd.DataFrame
    independences: pd.DataFrame
    arrows: pd.DataFrame
    groups: list[tuple[str, ...]]


# ---------------------------------------------------------------------- the public functions


def check(
    model: CausalModel,
    data: Any,
    *,
    held_out: Any = None,
    quick: bool = False,
    seed: int = 0,
    progress: bool | None = None,
) -> Check:
    """Check a model against a table: does its graph hold, does it fit, what can be asked.

    Parameters
    ----------
    model : CausalModel
    data : DataFrame
        Rows of the population, in the columns of the model. Of more than 20,000, so many are
        drawn; each part says how many of them it uses.
    held_out : DataFrame, optional
        Rows that the model has not seen, for its fit. By default those rows of `data` that are not
        among the rows it was fitted to; if there are too few, all of `data`, and the check says so.
    quick : bool
        Leave out directions, relabelings, questions, axioms and the other engine.
    seed : int
    progress : bool, optional
        Show a progress bar; by default only on a terminal.

    Returns
    -------
    Check

    Examples
    --------
    >>> import vaca
    >>> scm = vaca.scms.load("chain-lin")
    >>> found = vaca.check(scm, scm.sample(500, seed=1), quick=True)
    >>> found.verdict
    'good'
    >>> found.parts.columns.tolist()
    ['part', 'verdict', 'figure', 'reference', 'words']
    """
    frame = as_frame(data)
    if len(frame) < MIN_ROWS:
        raise VacaError(
            f"the table has {len(frame)} row(s); at least {MIN_ROWS} are needed to check"
        )
    rows = model.schema_.encode(frame)
    if held_out is not None:
        test, unseen = model.schema_.encode(held_out), True
    else:
        test, unseen = _unseen(model, rows)
    rows = some_rows(rows, MOST_ROWS, seed)
    with _bar(progress, quick) as step:
        step("graph")
        graph = check_graph(model.graph, model.schema_, rows, quick=quick, seed=seed)
        step("fit")
        told = fit.two_samples(model, test, seed=seed)
        step("columns")
        drawn = fit.draw_again(model, test, seed=seed)
        columns = fit.column_fit(model, drawn, rows, seed=seed)
        noise = fit.noise_tests(model, drawn)
        parts = [
            *graph.parts.to_dict("records"),
            _rows_part(told, _size(test), unseen),
            *_column_parts(columns),
            _noise_part(noise),
        ]
        empty = pd.DataFrame()
        asked, chances, kept, others = empty, {}, empty, empty
        if not quick:
            step("questions")
            asked, chances = questions(model.graph, model.schema_, rows, seed=seed)
            step("axioms")
            kept = axioms(model, model.schema_.decode(test), seed=seed)
            step("engines")
            others = other_engine(model, model.schema_.decode(rows), seed=seed)
            parts += [_question_part(asked), _axiom_part(kept), _engine_part(others)]
    table = pd.DataFrame([p for p in parts if p], columns=PART)
    return Check(
        _worst(table["verdict"]), table, graph, columns, noise, asked, kept, others,
        rows=len(frame), held_out=_size(test), unseen=unseen, chances=chances,
    )  # fmt: skip


def check_graph(
    graph: CausalGraph, schema: Schema, rows: Columns, *, quick: bool = False, seed: int = 0
) -> GraphCheck:
    """Check a graph alone, on encoded rows (see `Schema.encode`): no model is needed.

    Examples
    --------
    >>> import vaca
    >>> from vaca.trust.check import check_graph
    >>> scm = vaca.scms.load("chain-lin")
    >>> rows = scm.schema_.encode(scm.sample(500, seed=0))
    >>> cut = vaca.CausalGraph.from_edges([("x1", "x2")], nodes=["x1", "x2", "x3"])
    >>> check_graph(cut, scm.schema_, rows, quick=True).verdict
    'bad'
    """
    tests = independence_tests(graph, schema, rows, seed=seed)
    broken = tests[tests["adjusted"] < ALPHA]
    pairs = list(zip(broken["one"], broken["other"], strict=True))
    changes = arrow_changes(graph, schema, rows, pairs, arrows=not quick, seed=seed)
    arrows = _second_look(broken, changes, schema, graph)
    groups = _dependent_roots(graph, broken)
    parts = [_graph_part(tests, broken, arrows), _roots_part(graph, broken, groups)]
    if not quick:
        parts.append(_direction_part(arrows, bool(graph.edges)))
        parts.append(_relabel_part(*relabelings(graph, schema, rows, seed=seed), len(broken)))
    table = pd.DataFrame([p for p in parts if p], columns=PART)
    return GraphCheck(_worst(table["verdict"]), table, tests, arrows, groups)


# ---------------------------------------------------------------------- rows

MIN_ROWS = 50
PART = ["part", "verdict", "figure", "reference", "words"]


def _size(rows: Columns) -> int:
    return len(next(iter(rows.values())))


def _unseen(model: CausalModel, rows: Columns) -> tuple[Columns, bool]:
    """Rows that the model was not fitted to, and True; all of them and False if that is unknown."""
    known = vars(model).get("rows_")
    if not known:
        # A model without training rows, such as an SCM, has seen none of them.
        return rows, "n_rows_" not in vars(model)
    if _size(known) >= KEPT_ROWS:
        return rows, False  # only some of its rows are kept
    both = [
        np.ascontiguousarray(np.column_stack([np.asarray(side[c], float) for c in model.schema_]))
        for side in (rows, known)
    ]
    one, other = (m.view([("", m.dtype)] * m.shape[1]).ravel() for m in both)
    new = ~np.isin(one, other)
    if new.sum() < MIN_ROWS:
        return rows, False
    return {name: values[new] for name, values in rows.items()}, True


@contextmanager
def _bar(progress: bool | None, quick: bool) -> Iterator[Callable[[str], None]]:
    import sys

    if not (sys.stderr.isatty() if progress is None else progress):
        yield lambda name: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("checking: {task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=3 if quick else 6)
        started = False

        def step(name: str) -> None:
            nonlocal started
            bar.update(task, description=name, advance=int(started))
            started = True

        yield step


# ---------------------------------------------------------------------- the graph in words


def _second_look(
    broken: pd.DataFrame, changes: pd.DataFrame, schema: Schema, graph: CausalGraph
) -> pd.DataFrame:
    """What deserves a second look, ranked; of each pair the change that data like best."""
    found = []
    for pair in broken.itertuples():
        names = {pair.one, pair.other}
        own = [
            c for c in changes.itertuples() if c.change == "add" and {c.cause, c.effect} == names
        ]
        best = max(own, key=lambda c: c.gain, default=None)
        cause, effect = (pair.one, pair.other) if best is None else (best.cause, best.effect)
        gain, z = (0.0, 0.0) if best is None else (best.gain, best.z)
        found.append(["add", cause, effect, gain, z, _related(pair)])
    # The arrow that explains most stands first: what goes through it looks broken as well.
    found.sort(key=lambda row: -row[3])
    turned = [c for c in changes.itertuples() if c.change == "reverse" and _told(c, schema, graph)]
    for c in sorted(turned, key=lambda c: -c.z):
        words = f"data would rather have {c.effect} -> {c.cause} than {c.cause} -> {c.effect}"
        found.append(["reverse", c.cause, c.effect, c.gain, c.z, words])
    idle = [c for c in changes.itertuples() if c.change == "remove" and c.gain > -1e-4]
    for c in idle:
        words = f"{c.cause} -> {c.effect}: nothing is predicted worse without it"
        found.append(["remove", c.cause, c.effect, c.gain, c.z, words])
    return pd.DataFrame(found, columns=["change", "cause", "effect", "gain", "z", "words"])


def _told(change: Any, schema: Schema, graph: CausalGraph) -> bool:
    """Whether the form of the noise tells this arrow's direction: of numbers, and clearly."""
    columns = [c for node in (change.cause, change.effect) for c in graph.columns(node)]
    numbers = len(columns) == 2 and all(schema[c].kind == "continuous" for c in columns)
    return numbers and change.z > TURN_Z and change.gain > TURN_GAIN


def _p(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def _related(pair: Any) -> str:
    given = f" given {_and(pair.given)}" if pair.given else ""
    still = "still related" if pair.given else "related"
    return (
        f"{pair.one} and {pair.other} are {still}{given} ({_p(pair.adjusted)}): an arrow or a "
        "hidden common cause is missing between them"
    )


def _and(names: Any) -> str:
    names = list(names)
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _dependent_roots(graph: CausalGraph, broken: pd.DataFrame) -> list[tuple[str, ...]]:
    """Roots that are dependent, directly or through one another, in the order of the graph."""
    groups: list[set[str]] = []
    for pair in broken.itertuples():
        if {pair.one, pair.other} <= set(graph.roots):
            touched = [g for g in groups if g & {pair.one, pair.other}]
            groups = [g for g in groups if g not in touched]
            groups.append({pair.one, pair.other}.union(*touched))
    return [tuple(n for n in graph.nodes if n in group) for group in groups]


def _worst(verdicts: Any) -> Verdict:
    return ORDER[max((ORDER.index(v) for v in verdicts), default=0)]


def _grade(value: float, limits: tuple[float, float]) -> Verdict:
    return ORDER[int(value > limits[0]) + int(value > limits[1])]


def _part(part: str, verdict: Verdict, figure: float, reference: str, words: str) -> dict[str, Any]:
    return dict(zip(PART, (part, verdict, float(figure), reference, words), strict=True))


def _graph_part(tests: pd.DataFrame, broken: pd.DataFrame, arrows: pd.DataFrame) -> dict[str, Any]:
    bad = (broken["adjusted"] < BAD_P) & (broken["size"] >= BAD_SIZE)
    verdict: Verdict = "bad" if bad.any() else "doubtful" if len(broken) else "good"
    if not len(tests):
        words = "every pair of columns has an arrow: nothing that data could contradict"
    elif not len(broken):
        words = f"all {len(tests)} independences that it implies hold"
    else:
        words = arrows["words"].iloc[0]
        words += f" (and {len(broken) - 1} more)" if len(broken) > 1 else ""
    return _part("graph", verdict, len(broken), f"0 of {len(tests)} independences broken", words)


def _roots_part(
    graph: CausalGraph, broken: pd.DataFrame, groups: list[tuple[str, ...]]
) -> dict[str, Any]:
    if len(graph.roots) < 2:
        return {}
    if not groups:
        return _part("roots", "good", 0, "0 dependent", "separate roots are independent, as drawn")
    names = "; ".join(_and(group) for group in groups)
    count = sum(len(group) for group in groups)
    words = f"separate roots claim to be independent, but {names} are not: put them into one node"
    return _part("roots", "doubtful", count, "0 dependent", words)


def _direction_part(arrows: pd.DataFrame, any_arrow: bool) -> dict[str, Any]:
    if not any_arrow:
        return {}
    turned = arrows[arrows["change"] == "reverse"]
    if not len(turned):
        return _part("directions", "good", 0, "0 arrows reversed", "no arrow looks reversed")
    words = turned["words"].iloc[0] + (f" (and {len(turned) - 1} more)" if len(turned) > 1 else "")
    return _part("directions", "doubtful", len(turned), "0 arrows reversed", words)


def _relabel_part(violations: int, share: float, broken: int) -> dict[str, Any]:
    words = f"{100 * share:.0f} % of graphs with the nodes shuffled break no more by a quick test"
    verdict: Verdict = "doubtful" if broken and violations and share > 0.05 else "good"
    return _part("shuffled graphs", verdict, share, "below 0.05, if it is a strong claim", words)


# ---------------------------------------------------------------------- the model in words


def _rows_part(told: tuple[float, float], count: int, unseen: bool) -> dict[str, Any]:
    share, p = told
    verdict = _grade(share, TOLD) if p < SURE else "good"
    which = "held-out rows" if unseen else "rows that it may have been fitted to"
    words = (
        f"drawn rows are told from {count:,} {which} in {100 * share:.0f} of 100 pairs ({_p(p)}; "
        "guessing: 50)"
    )
    return _part("rows", verdict, share, "0.5 for a perfect model", words)


def _column_parts(columns: pd.DataFrame) -> list[dict[str, Any]]:
    sure = columns["p"] < SURE
    worst = columns["off"].where(sure, 0.0)
    name = worst.idxmax() if sure.any() else columns["off"].idxmax()
    words = (
        f"{name} is furthest from calibrated, given its causes, by {columns.at[name, 'off']:.2f}"
    )
    if columns.at[name, "unreliable"] == columns.at[name, "unreliable"]:
        words += f"; its probabilities are off by {columns.at[name, 'unreliable']:.2f} on average"
    parts = [_part("calibration", _grade(worst.max(), OFF), columns["off"].max(), "0", words)]
    gap = columns["explainable"] - columns["explained"]
    name = gap.idxmax()
    words = (
        f"at worst, {name}: the causes explain {_percent(columns.at[name, 'explained'])}, a plain "
        f"regression {_percent(columns.at[name, 'explainable'])}"
    )
    parts.append(_part("explained", _grade(gap.max(), UNEXPLAINED), gap.max(), "at most 0", words))
    name = columns["outside"].idxmax()
    outside = columns["outside"].max()
    words = "no impossible values" if outside == 0 else (
        f"{_percent(outside)} of the values drawn for {name} are negative or far out, as no row is"
    )  # fmt: skip
    parts.append(_part("values", _grade(outside, OUTSIDE), outside, "0", words))
    return parts


def _percent(share: float) -> str:
    text = f"{100 * share:.0f}"
    return f"{text if text != '-0' else '0'} %" if abs(share) >= 0.01 or share == 0 else "below 1 %"


def _noise_part(noise: pd.DataFrame) -> dict[str, Any]:
    if not len(noise):
        return {}
    broken = noise[noise["adjusted"] < SURE]
    size = broken["size"].max() if len(broken) else 0.0
    if not len(broken):
        words = "what causes leave open is independent of them and of one another"
    else:
        first = broken.loc[broken["size"].idxmax()]
        what = first["other"] if first["kind"] == "cause" else f"that of {first['other']}"
        words = f"the noise of {first['column']} goes with {what} (correlation {first['size']:.2f})"
    return _part("noise", _grade(size, NOISE), size, "0", words)


def _question_part(asked: pd.DataFrame) -> dict[str, Any]:
    if not len(asked):
        return {}
    safe, rest = asked.index[asked["safe"]], asked[~asked["safe"]]
    words = f"safe to ask about: {', '.join(safe) or 'nothing'}"
    if len(rest):
        words += "; extrapolates for " + ", ".join(
            f"{name} ({_percent(share)} of rows)" for name, share in rest["extrapolates"].items()
        )
    verdict: Verdict = "good" if len(safe) else "doubtful"
    return _part("questions", verdict, len(safe) / len(asked), f"{SAFE:.0%} of rows or less", words)


def _axiom_part(kept: pd.DataFrame) -> dict[str, Any]:
    if not len(kept):
        return {}
    verdicts, figures = [], {}
    for name, row in kept.iterrows():
        if name == "agreement":
            verdicts.append(_grade(max(0.0, row["worst"] - 3 * row["noise"]), MEANS))
            figures["means of counterfactuals and of do"] = row["worst"]
        elif name == "reversibility":
            verdicts.append(_grade(row["off"], BACK))
            figures["there and back"] = row["off"]
        else:
            verdicts.append(_grade(row["worst"], EXACT))
            figures[str(name)] = row["worst"]
    words = "off by " + ", ".join(f"{value:.2g} ({name})" for name, value in figures.items())
    return _part("axioms", _worst(verdicts), max(figures.values()), "0, in sd", words)


def _engine_part(others: pd.DataFrame) -> dict[str, Any]:
    if not len(others):
        return {}
    apart = others["apart"].max()
    first = others.loc[others["apart"].idxmax()]
    words = (
        f"{first['other engine']} agrees on all {len(others)} main effects within {apart:.2f} sd"
        if apart <= 0.25
        else f"{first['effect']}: {first['model']:.3g} here, {first['other']:.3g} by "
        f"{first['other engine']}"
    )
    return _part("engines", "doubtful" if apart > 0.25 else "good", apart, "at most 0.25 sd", words)
