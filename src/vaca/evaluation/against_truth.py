"""Ask a model and the truth the same questions, and score the answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from vaca.errors import VacaError, did_you_mean, shorten
from vaca.evaluation.coding import Side, Space
from vaca.evaluation.protocol import SIGMAS, Probe, Scorer, choose_nodes, probes_of
from vaca.evaluation.result import Evaluation, make_row, ratio_to
from vaca.model.arguments import check_count, check_flag, check_model, check_room, check_seed
from vaca.model.causal_model import CausalModel
from vaca.table.schema import Columns

__all__ = ["evaluate"]

Protocol = Literal["paper", "published"]


def evaluate(
    model: CausalModel,
    truth: CausalModel,
    protocol: Protocol = "paper",
    *,
    seed: int = 0,
    data: Any = None,
    nodes: Sequence[str] | None = None,
    rows: int | None = None,
    resamples: int = 10,
    factuals: int = 2500,
    floor: bool | Evaluation = True,
) -> Evaluation:
    """Score a model's observational, interventional and counterfactual answers against the truth.

    Parameters
    ----------
    model, truth : CausalModel
        Any two with the same columns. `truth` makes the factual rows and answers every question.
    protocol : {"paper", "published"}
        See `vaca.evaluation`.
    seed : int
        Same seed, same scores.
    data : DataFrame, optional
        Training rows, whose mean and sd set the scale and the intervention values. By default
        5000 rows drawn from `truth`.
    nodes : sequence of str, optional
        Nodes to intervene on. By default every non-leaf node; in ``published`` the truth's
        ``published_nodes`` if it names any.
    rows : int, optional
        Rows drawn from each side for each distribution: by default 20 000 in ``paper`` and 2500 in
        ``published``.
    resamples : int
        Pairs of 1000 rows over which MMD is averaged (``paper`` only).
    factuals : int
        Rows whose counterfactuals are scored.
    floor : bool or Evaluation
        Also score the truth in the model's place. Without it, ``floor`` and ``ratio`` are NaN. Or
        an earlier evaluation with the same truth, data, seed and sizes, whose floor is used again:
        it does not depend on the model.

    Returns
    -------
    Evaluation
        See its `summary`.

    Examples
    --------
    >>> import vaca
    >>> truth = vaca.scms.load("triangle-lin")
    >>> scores = vaca.evaluate(truth, truth, rows=2000, resamples=2, factuals=500)
    >>> float(scores.summary().loc["ratio", "cf_mse"])
    1.0
    """
    check_model("model", model)
    check_model("truth", truth)
    if not isinstance(protocol, str) or protocol not in SIGMAS:
        raise VacaError(f"unknown protocol {shorten(protocol)}; {did_you_mean(protocol, SIGMAS)}")
    if not isinstance(floor, Evaluation):
        floor = check_flag("floor", floor)
    seed = check_seed(seed)
    rows = (20_000 if protocol == "paper" else 2500) if rows is None else rows
    rows, factuals = check_count("rows", rows, 10), check_count("factuals", factuals, 10)
    resamples = check_count("resamples", resamples, 1, 10**6)
    for size in (rows, factuals):
        check_room(size, len(truth.schema_), "Ask for less")
    nodes = choose_nodes(truth, protocol, nodes)
    streams = [np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(7)]
    if data is None:
        training = truth.simulate(truth.noise(5000, streams[0]), {})
    else:
        training = truth.schema_.encode(data)
    space = Space(truth, training)
    reference = Side("the truth", truth, truth.schema_, streams[1])
    answers = [Side("the model", model, truth.schema_, streams[2])]
    if floor is True:
        answers.append(Side("the truth", truth, truth.schema_, streams[3]))
    u = truth.noise(factuals, streams[4])
    x = truth.simulate(u, {})
    for side in answers:
        side.abduct(x, u if side.model is truth else None)
    probes = [probe for node in nodes for probe in probes_of(truth, training, node, protocol)]
    table: list[dict[str, Any]] = []

    # The two sides are scored with generators in the same state, so that a score differs from its
    # floor by the rows alone and not by which rows were picked.
    picks = streams[5].integers(2**63, size=1 + len(probes))
    scorer = Scorer(protocol, rows, resamples)
    for number, probe in enumerate([None, *probes]):
        scored = _ask(probe, reference, answers, space, scorer, rows, int(picks[number]))
        table += scored
        if probe is not None:
            true_answer = truth.simulate(u, probe.repeat(factuals))
            table += _ask_counterfactual(probe, true_answer, answers, space, scorer)
    if protocol == "paper":
        table += scorer.effects(len(answers))
    if isinstance(floor, Evaluation):
        _lend(floor, table)
    return _tidy(table, protocol)


def _lend(earlier: Evaluation, table: list[dict[str, Any]]) -> None:
    """Fill in the floors of an earlier evaluation."""
    names = ["query", "intervention", "metric"]
    known = dict(
        zip(earlier[names].itertuples(index=False, name=None), earlier["floor"], strict=True)
    )
    for row in table:
        key = tuple(row[name] for name in names)
        if key not in known:
            raise VacaError(
                f"the evaluation given as floor has no row for {key}; it must have the same truth, "
                "data, seed and sizes"
            )
        row["floor"] = known[key]
        row["ratio"] = ratio_to(row["value"], row["floor"])


def _ask(
    probe: Probe | None,
    reference: Side,
    answers: list[Side],
    space: Space,
    scorer: Scorer,
    rows: int,
    pick: int,
) -> list[dict[str, Any]]:
    """Score observational (`probe` None) or interventional rows of every side."""
    if probe is None:
        query, label, node, where = "observational", "", "", "without intervention"
        nodes: Sequence[str] = space.graph.nodes
        do: Columns = {}
    else:
        query, label, node = "interventional", probe.label, probe.node
        nodes, do, where = probe.descendants, probe.repeat(rows), f"under {label}"
    samples = [
        space.matrix(side.sample(rows, do), nodes, side.name, where)
        for side in (reference, *answers)
    ]
    if probe is not None:
        scorer.remember(probe, samples)
    scores = [
        scorer.distribution(samples[0], sample, len(nodes), probe is not None, pick)
        for sample in samples[1:]
    ]
    return _rows(query, label, node, scores)


def _ask_counterfactual(
    probe: Probe,
    true_answer: Columns,
    answers: list[Side],
    space: Space,
    scorer: Scorer,
) -> list[dict[str, Any]]:
    nodes, where = probe.descendants, f"in a counterfactual under {probe.label}"
    expected = space.matrix(true_answer, nodes, "the truth", where)
    do = probe.repeat(len(expected))
    scores = [
        scorer.counterfactual(
            expected, space.matrix(side.counterfactual(do), nodes, side.name, where), len(nodes)
        )
        for side in answers
    ]
    return _rows("counterfactual", probe.label, probe.node, scores)


def _rows(
    query: str, label: str, node: str, scores: list[dict[str, tuple[float, int]]]
) -> list[dict[str, Any]]:
    return [
        make_row(query, label, node, metric, [score[metric][0] for score in scores], weight)
        for metric, (_, weight) in scores[0].items()
    ]


def _tidy(table: list[dict[str, Any]], protocol: str) -> Evaluation:
    result = Evaluation(pd.DataFrame(table))
    result.protocol = protocol
    return result
