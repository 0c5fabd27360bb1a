r"""How near a model's answers are to the truth: one row for every question asked.

`evaluate` holds two causal models side by side, a model and the truth, and knows nothing of either
but `noise`, `abduct` and `simulate`. It asks both the same questions and scores the answers:

- observational: rows drawn from both;
- interventional: rows drawn from both under ``do(node = value)``, one node at a time;
- counterfactual: factual rows drawn from the truth, answered by both. The true answer is
  ``truth.simulate(u, do)`` with the very noise ``u`` that made the row, the model's answer is
  ``model.simulate(model.abduct(x), do)``.

Only the descendants of the intervened node are scored. Columns are standardised with the mean and
sd of the training rows; categories are not: a binary column counts as 0 and 1, any other category
as one indicator for each level.

**Two protocols.** ``paper`` follows the definitions in the text of the paper: every non-leaf node
is set to mean + {-1, -1/2, 0, 1/2, 1} sd, MMD is averaged over resamples of independent rows.
``published`` follows what the published figures measure: mean + {-1, 1/10, 1/2, 1} sd rounded to
two decimals, one MMD of 1000 rows drawn with replacement, counterfactual errors that are norms and
not squares, and a StdE with an unpaired distance mixed in, which is far from zero even for a
perfect model. A category is set to each of its levels in both.

**Floor.** Every score comes with the score that the truth itself gets when it is evaluated in the
model's place with fresh noise. A ratio of 1 is a perfect model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from vaca import metrics
from vaca.errors import VacaError, did_you_mean
from vaca.model import CausalModel, Noise
from vaca.schema import Columns, Schema

__all__ = ["METRICS", "Evaluation", "evaluate"]

Protocol = Literal["paper", "published"]

SIGMAS = {"paper": (-1.0, -0.5, 0.0, 0.5, 1.0), "published": (-1.0, 0.1, 0.5, 1.0)}
METRICS = ("obs_mmd", "int_mmd", "int_mean_e", "int_std_e", "cf_mse", "cf_sse")
"""The columns of the paper's table of results, in its order."""

PREFIX = {"observational": "obs", "interventional": "int", "counterfactual": "cf"}
TINY = 1e-12  # a squared error below this is rounding


class Evaluation(pd.DataFrame):
    """Scores as a tidy table: one row for each (query, intervention, metric).

    Columns: ``query``, ``intervention``, ``node``, ``metric``, ``value``, ``floor``, ``ratio`` and
    ``weight`` (how many pooled values the row stands for when rows are averaged).
    """

    _metadata = ["protocol"]
    protocol: str = "paper"

    @property
    def _constructor(self) -> type[Evaluation]:
        return Evaluation

    def summary(self, scale: float = 100.0) -> pd.DataFrame:
        """One column for each metric, averaged over interventions, like a row of the paper's table.

        Parameters
        ----------
        scale : float
            Scores are multiplied by this; the paper shows them x100.

        Returns
        -------
        DataFrame with the rows ``value``, ``floor``, ``ratio``
        """
        table: dict[str, list[float]] = {}
        for (query, metric), part in self.groupby(["query", "metric"], sort=False):
            weight = part["weight"].to_numpy(dtype=float)
            value = float(np.average(part["value"], weights=weight)) * scale
            floor = float(np.average(part["floor"], weights=weight)) * scale
            table[f"{PREFIX[str(query)]}_{metric}"] = [value, floor, _ratio(value, floor, scale)]
        order = [m for m in METRICS if m in table] + [m for m in table if m not in METRICS]
        return pd.DataFrame(table, index=["value", "floor", "ratio"])[order]


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
        See the module's description.
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
        Also score the truth in the model's place. Without it, ``floor`` and ``ratio`` are NaN. An
        earlier evaluation with the same truth, data, seed and sizes lends its floor, which does
        not depend on the model.

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
    if protocol not in SIGMAS:
        raise VacaError(f"unknown protocol {protocol!r}; {did_you_mean(protocol, SIGMAS)}")
    rows = (20_000 if protocol == "paper" else 2500) if rows is None else int(rows)
    _check_sizes(rows=rows, resamples=resamples, factuals=factuals)
    nodes = _nodes(truth, protocol, nodes)
    streams = [np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(7)]
    if data is None:
        training = truth.simulate(truth.noise(5000, streams[0]), {})
    else:
        training = truth.schema_.encode(data)
    space = _Space(truth, training)
    reference = _Side("the truth", truth, truth.schema_, streams[1])
    answers = [_Side("the model", model, truth.schema_, streams[2])]
    if floor is True:
        answers.append(_Side("the truth", truth, truth.schema_, streams[3]))
    u = truth.noise(factuals, streams[4])
    x = truth.simulate(u, {})
    for side in answers:
        side.abduct(x, u if side.model is truth else None)
    questions = [
        question for node in nodes for question in _interventions(truth, training, node, protocol)
    ]
    table: list[dict[str, Any]] = []

    # The two sides are scored with generators in the same state, so that a score differs from its
    # floor by the rows alone and not by which rows were picked.
    picks = streams[5].integers(2**63, size=1 + len(questions))
    chances = _Scorer(protocol, rows, resamples)
    for number, question in enumerate([None, *questions]):
        scored = _ask(question, reference, answers, space, chances, rows, int(picks[number]))
        table += scored
        if question is not None:
            true_answer = truth.simulate(u, question.repeat(factuals))
            table += _ask_counterfactual(question, true_answer, answers, space, chances)
    if protocol == "paper":
        table += chances.effects(len(answers))
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
        row["ratio"] = _ratio(row["value"], row["floor"])


def _check_sizes(**sizes: int) -> None:
    for name, size in sizes.items():
        least = 1 if name == "resamples" else 10
        if size < least:
            raise VacaError(f"{name} must be at least {least}; got {size}")


def _nodes(truth: CausalModel, protocol: str, nodes: Sequence[str] | None) -> list[str]:
    graph = truth.graph
    inner = [node for node in graph.nodes if graph.children(node)]
    if nodes is None and protocol == "published":
        nodes = getattr(truth, "published_nodes", None)
    chosen = list(nodes or inner)
    for node in chosen:
        if node not in graph:
            raise VacaError(f"unknown node {node!r}; {did_you_mean(node, graph.nodes)}")
        if node not in inner:
            raise VacaError(
                f"node {node!r} has no descendants, so nothing changes when it is set; "
                f"{did_you_mean(node, inner)}"
            )
    return chosen


# ---------------------------------------------------------------------- questions


@dataclass(frozen=True)
class _Question:
    """One intervention: the encoded value of every column of one node."""

    node: str
    label: str
    do: dict[str, float | int]
    descendants: tuple[str, ...]

    def repeat(self, n: int) -> Columns:
        return {column: np.full(n, value) for column, value in self.do.items()}


def _interventions(
    truth: CausalModel, training: Columns, node: str, protocol: str
) -> Iterator[_Question]:
    schema = truth.schema_
    columns = truth.graph.columns(node)
    descendants = truth.graph.descendants(node)
    settings: list[dict[str, float | int]] = []
    if len(columns) == 1 and schema[columns[0]].discrete:
        settings = [{columns[0]: code} for code in range(len(schema.levels(columns[0])))]
    else:
        for sigma in SIGMAS[protocol]:
            setting = {c: _value(schema, c, training[c], sigma, protocol) for c in columns}
            if setting not in settings:
                settings.append(setting)
    for setting in settings:
        shown = ", ".join(f"{c}={_shown(schema, c, v)}" for c, v in setting.items())
        yield _Question(node, f"do({shown})", setting, descendants)


def _value(
    schema: Schema, column: str, values: np.ndarray, sigma: float, protocol: str
) -> float | int:
    if schema[column].discrete:  # a category beside others in one node stays at its mode
        return int(np.bincount(values).argmax())
    value = float(values.mean() + sigma * values.std())
    if schema.kind(column) == "count":
        return float(max(0, round(value)))
    return round(value, 2) if protocol == "published" else value


def _shown(schema: Schema, column: str, value: float | int) -> str:
    return str(schema.levels(column)[int(value)]) if schema[column].discrete else f"{value:.4g}"


# ---------------------------------------------------------------------- the two sides


class _Space:
    """Rows as a matrix of standardised columns and indicators, addressed by node."""

    def __init__(self, truth: CausalModel, training: Columns) -> None:
        self._graph = truth.graph
        self._schema = truth.schema_
        self._scale = {}
        for column in self._schema:
            if not self._schema[column].discrete:
                sd = float(training[column].std())
                self._scale[column] = (float(training[column].mean()), sd if sd > 0 else 1.0)

    def matrix(self, x: Columns, nodes: Sequence[str], who: str, where: str) -> np.ndarray:
        parts: list[np.ndarray] = []
        for node in nodes:
            for column in self._graph.columns(node):
                part = self._column(column, x[column])
                if not np.isfinite(part).all():
                    row = int(np.flatnonzero(~np.isfinite(part).reshape(len(part), -1).all(1))[0])
                    raise VacaError(
                        f"{who} gave a value of {column!r} that is not finite {where}, first in "
                        f"row {row}; the model may not have converged"
                    )
                parts.append(part)
        return np.column_stack(parts)

    def _column(self, column: str, values: np.ndarray) -> np.ndarray:
        if column in self._scale:
            mean, sd = self._scale[column]
            return (np.asarray(values, dtype=np.float64) - mean) / sd
        levels = len(self._schema.levels(column))
        if self._schema.kind(column) == "binary" or levels <= 2:
            return np.asarray(values, dtype=np.float64)
        return np.eye(levels)[np.asarray(values)]


class _Side:
    """A causal model that takes and gives the truth's codes of categories."""

    def __init__(
        self, name: str, model: CausalModel, schema: Schema, rng: np.random.Generator
    ) -> None:
        self.name = name
        self.model = model
        self._rng = rng
        self._to: dict[str, np.ndarray] = {}
        self._from: dict[str, np.ndarray] = {}
        self._abducted: Noise = {}
        for column in schema:
            if column not in model.schema_:
                raise VacaError(f"the model has no column {column!r}, which the truth has")
            theirs, ours = model.schema_[column], schema[column]
            if theirs.discrete != ours.discrete:
                raise VacaError(
                    f"column {column!r} is {ours.kind} in the truth and {theirs.kind} in the "
                    "model; fit the model with the truth's schema"
                )
            if ours.discrete and theirs.levels != ours.levels:
                code = {level: i for i, level in enumerate(theirs.levels)}
                known = {level: i for i, level in enumerate(ours.levels)}
                strange = [level for level in theirs.levels if level not in known]
                if strange:
                    raise VacaError(
                        f"the model gives {strange[0]!r} for column {column!r}, a level that the "
                        "truth does not have; fit the model with the truth's schema"
                    )
                self._to[column] = np.array([code.get(level, -1) for level in ours.levels])
                self._from[column] = np.array([known[level] for level in theirs.levels])

    def _encode(self, x: Columns) -> Columns:
        out = {c: self._to[c][v] if c in self._to else v for c, v in x.items()}
        for column in self._to:
            if column in out and (out[column] < 0).any():
                raise VacaError(
                    f"the model has never seen one of the levels of column {column!r}; fit it "
                    "with the truth's schema"
                )
        return out

    def _answer(self, u: Noise, do: Columns) -> Columns:
        out = self.model.simulate(u, self._encode(do))
        return {c: self._from[c][v] if c in self._from else v for c, v in out.items()}

    def sample(self, n: int, do: Columns) -> Columns:
        return self._answer(self.model.noise(n, self._rng), do)

    def abduct(self, x: Columns, known: Noise | None = None) -> None:
        """Find the noise of the rows; the truth falls back on the noise that made them."""
        try:
            self._abducted = self.model.abduct(self._encode(x), None)
        except VacaError:
            # A row need not determine the noise behind it; the truth refuses to guess.
            if known is None:
                raise
            self._abducted = known

    def counterfactual(self, do: Columns) -> Columns:
        return self._answer(self._abducted, do)


# ---------------------------------------------------------------------- scores


class _Scorer:
    """The scores of one pair of samples, by protocol; remembers means for the effects."""

    MMD_ROWS = 1000

    def __init__(self, protocol: str, rows: int, resamples: int) -> None:
        self.protocol = protocol
        self._size = min(self.MMD_ROWS, rows)
        self._resamples = min(resamples, max(1, rows // self._size))
        self._means: dict[str, list[tuple[str, int, list[np.ndarray]]]] = {}

    def distribution(
        self, x: np.ndarray, y: np.ndarray, nodes: int, moments: bool, pick: int
    ) -> dict[str, tuple[float, int]]:
        rng = np.random.default_rng(pick)
        if self.protocol == "published":
            chosen = rng.integers(0, len(x), size=self._size)
            scores = {"mmd": (metrics.mmd(x[chosen], y[chosen]), 1)}
            if moments:
                # Published figures pool one value for each descendant of each intervention, and
                # for StdE one more: the sd of the distance between unrelated rows.
                unpaired = metrics.unpaired_norm_sd(x, y, nodes=nodes)
                spread = metrics.std_error(x, y, nodes=nodes)
                scores["mean_e"] = (metrics.mean_error(x, y, nodes=nodes), nodes)
                scores["std_e"] = ((spread * nodes + unpaired) / (nodes + 1), nodes + 1)
            return scores
        blocks = [slice(i * self._size, (i + 1) * self._size) for i in range(self._resamples)]
        scores = {"mmd": (float(np.mean([metrics.mmd(x[b], y[b]) for b in blocks])), 1)}
        if moments:
            scores["mean_e"] = (metrics.mean_error(x, y, nodes=nodes), 1)
            scores["std_e"] = (metrics.std_error(x, y, nodes=nodes), 1)
        few = blocks[:3]
        scores["energy"] = (float(np.mean([metrics.energy_distance(x[b], y[b]) for b in few])), 1)
        scores["c2st"] = (metrics.classifier_score(x[:2000], y[:2000], rng), 1)
        return scores

    def counterfactual(
        self, x: np.ndarray, y: np.ndarray, nodes: int
    ) -> dict[str, tuple[float, int]]:
        if self.protocol == "published":
            return {
                "mse": (metrics.cf_norm_mean(x, y, nodes=nodes), 1),
                "sse": (metrics.cf_norm_sd(x, y, nodes=nodes), 1),
            }
        return {"mse": (metrics.cf_mse(x, y, nodes=nodes), 1), "sse": (metrics.cf_sse(x, y), 1)}

    def remember(self, question: _Question, samples: list[np.ndarray]) -> None:
        """Keep the means of [truth, model, floor], from which effects are made."""
        means = [sample.mean(axis=0, keepdims=True) for sample in samples]
        entry = (question.label, len(question.descendants), means)
        self._means.setdefault(question.node, []).append(entry)

    def effects(self, sides: int) -> list[dict[str, Any]]:
        """Errors of the effect of the highest against the lowest setting of each node."""
        table = []
        for node, settings in self._means.items():
            (low_label, nodes, low), (high_label, _, high) = settings[0], settings[-1]
            values = [
                metrics.ate_error(low[0], high[0], low[side], high[side], nodes=nodes)
                for side in range(1, sides + 1)
            ]
            label = f"{low_label} to {high_label}"
            table.append(_row("interventional", label, node, "ate", values, 1))
        return table


def _row(
    query: str, label: str, node: str, metric: str, values: Sequence[float], weight: int
) -> dict[str, Any]:
    floor = values[1] if len(values) > 1 else float("nan")
    return {
        "query": query,
        "intervention": label,
        "node": node,
        "metric": metric,
        "value": values[0],
        "floor": floor,
        "ratio": _ratio(values[0], floor),
        "weight": weight,
    }


def _ratio(value: float, floor: float, scale: float = 1.0) -> float:
    """Value over floor; 1 where both are nothing but rounding."""
    if np.isnan(floor):
        return float("nan")
    if floor < TINY * scale:
        return 1.0 if value < TINY * scale else float("inf")
    return value / floor


def _ask(
    question: _Question | None,
    reference: _Side,
    answers: list[_Side],
    space: _Space,
    scorer: _Scorer,
    rows: int,
    pick: int,
) -> list[dict[str, Any]]:
    """Score observational (`question` None) or interventional rows of every side."""
    if question is None:
        query, label, node, where = "observational", "", "", "without intervention"
        nodes: Sequence[str] = space._graph.nodes
        do: Columns = {}
    else:
        query, label, node = "interventional", question.label, question.node
        nodes, do, where = question.descendants, question.repeat(rows), f"under {label}"
    samples = [
        space.matrix(side.sample(rows, do), nodes, side.name, where)
        for side in (reference, *answers)
    ]
    if question is not None:
        scorer.remember(question, samples)
    scores = [
        scorer.distribution(samples[0], sample, len(nodes), question is not None, pick)
        for sample in samples[1:]
    ]
    return _rows(query, label, node, scores)


def _ask_counterfactual(
    question: _Question,
    true_answer: Columns,
    answers: list[_Side],
    space: _Space,
    scorer: _Scorer,
) -> list[dict[str, Any]]:
    nodes, where = question.descendants, f"in a counterfactual under {question.label}"
    expected = space.matrix(true_answer, nodes, "the truth", where)
    do = question.repeat(len(expected))
    scores = [
        scorer.counterfactual(
            expected, space.matrix(side.counterfactual(do), nodes, side.name, where), len(nodes)
        )
        for side in answers
    ]
    return _rows("counterfactual", question.label, question.node, scores)


def _rows(
    query: str, label: str, node: str, scores: list[dict[str, tuple[float, int]]]
) -> list[dict[str, Any]]:
    return [
        _row(query, label, node, metric, [score[metric][0] for score in scores], weight)
        for metric, (_, weight) in scores[0].items()
    ]


def _tidy(table: list[dict[str, Any]], protocol: str) -> Evaluation:
    result = Evaluation(pd.DataFrame(table))
    result.protocol = protocol
    return result
