r"""The audit: what a prediction would have been, had the sensitive attribute been another.

For a person with factual row :math:`x^F` and sensitive attribute :math:`S = a`,

.. math:: \mathrm{uf} = E_{x^F} \big| p(\hat y = 1 \mid x^F) - p(\hat y = 1 \mid do(S = a'), x^F)
          \big|, \qquad a' \neq a,

where the second probability averages the predictor over the person's counterfactual rows
:math:`x^{CF}` (abduction, action, prediction). Both rows come from one abduction by one model:
under :math:`do(S = a)` the factual row comes back exactly, so what a model cannot reconstruct is
never counted as unfairness.

References: M. Kusner et al., "Counterfactual fairness", NeurIPS 2017; S. Chiappa, "Path-specific
counterfactual fairness", AAAI 2019.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from vaca.errors import SchemaError, SupportWarning, VacaError
from vaca.fairness.decomposition import (
    DIRECT,
    TOTAL,
    Part,
    predictions_needed,
    read_parts,
    shapley_shares,
)
from vaca.fairness.groups import group_metrics, read_target
from vaca.fairness.predictor import Predictor, as_predictor
from vaca.fairness.result import AuditResult, mean_interval
from vaca.fairness.settings import Sensitive, Setting, read_sensitive
from vaca.model.causal_model import CausalModel
from vaca.table.schema import Columns, as_frame

#: Counterfactual rows that are held at once.
BLOCK = 200_000
#: Predictions that the decomposition may ask for; it uses fewer draws for each person if needed.
PARTS_BUDGET = 100_000
#: A group smaller than this is named in the caveats.
SMALL_GROUP = 30
#: So are too few draws: when half of them would give a figure this many times as large.
STEADY = 1.1


def audit(
    model: CausalModel,
    predict: Any,
    data: Any,
    sensitive: str | Sequence[str],
    *,
    target: Any = None,
    positive: Any = None,
    alternatives: Sequence[Any] | None = None,
    draws: int | None = 100,
    threshold: float = 0.5,
    level: float = 0.95,
    paths: bool = True,
    most_affected: int = 10,
    name: str | None = None,
    seed: int = 0,
) -> AuditResult:
    """Measure how far predictions depend on a sensitive attribute, according to a causal model.

    Parameters
    ----------
    model : CausalModel
        A fitted engine or a true SCM whose graph has the sensitive attribute.
    predict : classifier or callable
        A fitted scikit-learn-like classifier (its `predict_proba` is used, or else `predict`), or
        a function that gives one probability per row of a DataFrame.
    data : DataFrame
        The people to audit: the columns of the graph, and any others that the predictor reads
        (those are held at their factual values).
    sensitive : str or list of str
        Columns of the graph. Several are changed together, to each combination that occurs.
    target : str, Series or array, optional
        The true outcome (a column of `data`, or one value per row), for group metrics.
    positive : label, optional
        The favourable class; by default the second of two.
    alternatives : list, optional
        The values to change to (needed for a numeric attribute); by default all that occur. For
        several attributes a list of dicts.
    draws : int, optional
        Counterfactual draws for each person; None takes the point counterfactual.
    threshold : float
        A decision is favourable when the probability reaches it; for flips and group metrics.
    level : float
        Of all intervals.
    paths : bool
        Whether to split the effect into direct and mediated parts.
    most_affected : int
        For how many people to show the counterfactual twin.
    name : str, optional
        What the predictor is called in the report.
    seed : int

    Returns
    -------
    AuditResult
        `.unfairness` between 0 and 1, `.interval`, `.per_person`, `.by_group`, `.decomposition`,
        `.summary()`, `.to_html(path)`.

    Examples
    --------
    >>> import numpy as np, vaca
    >>> from vaca.scm import Bernoulli, Normal
    >>> scm = vaca.StructuralCausalModel(
    ...     {"sex": lambda u: u, "income": lambda sex, u: sex + u},
    ...     {"sex": Bernoulli(0.5), "income": Normal(0, 1)},
    ...     kinds={"sex": "binary"},
    ... )
    >>> people = scm.sample(200, seed=0)
    >>> def score(frame):
    ...     return np.clip(0.5 + 0.1 * frame["income"], 0, 1)
    >>> result = vaca.audit(scm, score, people, sensitive="sex")
    >>> round(result.unfairness, 3)
    0.1
    """
    if not isinstance(model, CausalModel):
        raise VacaError(f"model must be a vaca causal model; got {type(model).__name__}")
    frame = as_frame(data)
    if len(frame) == 0:
        raise SchemaError("there are no rows to audit")
    if not 0 < threshold < 1:
        raise VacaError(f"threshold lies between 0 and 1; got {threshold!r}")
    if not 0 < level < 1:
        raise VacaError(f"level lies between 0 and 1, like 0.95; got {level!r}")
    predictor = as_predictor(predict, positive, name)
    x = model.schema_.encode(frame)
    who = read_sensitive(model, sensitive, alternatives, x)
    truth, target_name = read_target(target, frame, predictor.positive)
    # The factual row goes the same way as the counterfactual ones: encoded and decoded.
    factual = model.schema_.decode(x, index=pd.RangeIndex(len(frame)))
    extra = [
        c
        for c in frame.columns
        if c not in factual.columns
        and c != target_name
        and (predictor.features is None or c in predictor.features)
    ]
    for c in extra:
        factual[c] = frame[c].array
    _check_features(predictor, factual)

    base = predictor(factual)
    parts = [Part(DIRECT, who.columns)]
    parts += [Part(f"through {node}", model.graph.columns(node)) for node in who.mediators]
    run = _Run(
        model, predictor, frame, factual, x, who, base, threshold, parts if paths else [], seed
    )
    pairs = run.all_pairs(draws, level)
    if len(pairs) == 0:
        raise VacaError(
            "nobody's sensitive attribute differs from the alternatives, so nothing can be compared"
        )
    per_person = pairs.drop(columns=run.part_columns).set_index(frame.index[pairs["row"]])
    per_person = per_person.drop(columns=["row", "half"])
    metric_frame = group_metrics(base >= threshold, truth, who.groups, ", ".join(who.columns))
    by_group = _by_group(pairs, level)
    result = AuditResult(
        unfairness=float(_per_row(pairs, "unfairness").mean()),
        interval=mean_interval(_per_row(pairs, "unfairness"), level),
        flips=float(_per_row(pairs, "flip").mean()),
        per_person=per_person,
        by_group=by_group,
        decomposition=_decomposition(pairs, run, level) if paths else None,
        decomposition_by_group=_decomposition_by_group(pairs, run, level) if paths else None,
        metric_frame=metric_frame,
        twins=run.twins(pairs, frame.index, most_affected, draws),
        graph=model.graph,
        assumptions=model.assumptions(),
        caveats=_caveats(model, predictor, factual, who, base, threshold, truth, extra, run)
        + _chance(pairs, draws),
        settings={
            "predictor": predictor.name,
            "positive": predictor.positive,
            "model": getattr(model, "name", None) or type(model).__name__,
            "sensitive": list(who.columns),
            "rows": len(frame),
            "draws": draws,
            "decomposition_draws": run.part_draws,
            "threshold": threshold,
            "level": level,
            "seed": seed,
            "target": target_name,
            "numbered": frame.index.equals(pd.RangeIndex(len(frame))),
        },
    )
    return result


@dataclass
class _Run:
    """One audit in progress: asks the model and the predictor, block by block."""

    model: CausalModel
    predictor: Predictor
    given: pd.DataFrame  # as the user gave it: its index and attrs may tell a model more
    factual: pd.DataFrame
    x: Columns
    who: Sensitive
    base: np.ndarray
    threshold: float
    parts: list[Part]
    seed: int
    part_draws: int | None = None
    outside: dict[str, list[str]] = field(default_factory=dict)  # setting -> sentences
    beyond: dict[str, int] = field(default_factory=dict)  # column -> twins outside its range
    twins_seen: int = 0

    @property
    def part_columns(self) -> list[str]:
        return [f"{kind}:{part.label}" for part in self.parts for kind in ("share", "alone")]

    def counterfactual(
        self, rows: np.ndarray, setting: Setting, draws: int | None, seed: int
    ) -> pd.DataFrame:
        """The rows under do(S = setting), with the columns that the graph does not name."""
        x = {c: v[rows] for c, v in self.x.items()}
        do = self.who.do(setting, x, self.model.graph, self.model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SupportWarning)  # among the audit's own warnings
            answer = self.model.counterfactual(
                self.given[list(self.x)].iloc[rows], do, draws=draws, seed=seed
            )
        # The first rows speak for all: later ones would only say it with other figures.
        self.outside.setdefault(setting.label, answer.outside_support)
        repeated = np.repeat(rows, draws or 1)
        result = pd.DataFrame(answer).reset_index(drop=True)
        for c in self.factual.columns:
            if c not in result.columns:
                result[c] = self.factual[c].array.take(repeated)
        return result[list(self.factual.columns)]

    def all_pairs(self, draws: int | None, level: float) -> pd.DataFrame:
        """One line for each person and each setting that is not the person's own."""
        repeats = draws or 1
        n = len(self.base)
        step = max(1, BLOCK // repeats)
        starts = list(range(0, n, step))
        seeds = np.random.SeedSequence(self.seed).generate_state(len(starts))
        if self.parts:
            evaluations = predictions_needed(len(read_parts(self.predictor, self.parts)))
            per_draw = max(1, n * evaluations * max(1, len(self.who.alternatives) - 1))
            self.part_draws = int(np.clip(PARTS_BUDGET // per_draw, 1, min(repeats, 20)))
        found = []
        for start, seed in zip(starts, seeds, strict=True):
            block = np.arange(start, min(start + step, n))
            for setting in self.who.alternatives:
                rows = block[self.who.differs(setting, self.x)[block]]
                if len(rows):
                    found.append(self._pairs(rows, setting, draws, int(seed), level))
        if not found:
            return pd.DataFrame()
        # People in order; for each, the alternatives in order.
        return pd.concat(found, ignore_index=True).sort_values("row", kind="stable")

    def _pairs(
        self, rows: np.ndarray, setting: Setting, draws: int | None, seed: int, level: float
    ) -> pd.DataFrame:
        repeats = draws or 1
        twins = self.counterfactual(rows, setting, draws, seed)
        self._note_range(twins, np.repeat(rows, repeats))
        scores = self.predictor(twins).reshape(len(rows), repeats)
        base = self.base[rows]
        gaps = scores - base[:, None]
        tail = (1 - level) / 2
        low, high = np.quantile(gaps, [tail, 1 - tail], axis=1)
        flips = ((scores >= self.threshold) != (base >= self.threshold)[:, None]).mean(axis=1)
        gap = gaps.mean(axis=1)
        gap[np.ptp(gaps, axis=1) == 0] = gaps[np.ptp(gaps, axis=1) == 0, 0]  # no rounding of means
        table = {
            "row": rows,
            "from": self.who.groups[rows],
            "to": setting.label,
            "factual": base,
            "counterfactual": base + gap,
            "gap": gap,
            "unfairness": np.abs(gap),
            "low": low,
            "high": high,
            "flip": flips,
            "half": _halves(gaps) if repeats > 1 else np.abs(gap),
        }
        if self.parts and self.part_draws:
            d = self.part_draws
            take = (np.arange(len(rows))[:, None] * repeats + np.arange(d)).ravel()
            shares, alone = shapley_shares(
                self.predictor,
                self.parts,
                self.factual.iloc[np.repeat(rows, d)],
                twins.iloc[take],
            )
            for j, part in enumerate(self.parts):
                table[f"share:{part.label}"] = shares[:, j].reshape(-1, d).mean(axis=1)
                table[f"alone:{part.label}"] = alone[:, j].reshape(-1, d).mean(axis=1)
        return pd.DataFrame(table)

    def _note_range(self, twins: pd.DataFrame, rows: np.ndarray) -> None:
        """Count twins with values outside what the model was fitted on, if the person's are not."""
        self.twins_seen += len(twins)
        reached = [c for n in self.who.mediators for c in self.model.graph.columns(n)]
        for c in reached:
            column = self.model.schema_[c]
            if column.discrete or column.low is None or column.high is None:
                continue
            after, before = twins[c].to_numpy(dtype=float), self.x[c][rows]
            out = (after < column.low) | (after > column.high)
            out &= (before >= column.low) & (before <= column.high)
            self.beyond[c] = self.beyond.get(c, 0) + int(out.sum())

    def twins(
        self, pairs: pd.DataFrame, index: pd.Index, count: int, draws: int | None
    ) -> list[dict[str, Any]]:
        """For the people with the widest gaps: the row, and a typical counterfactual twin."""
        widest = pairs.sort_values("unfairness", ascending=False, kind="stable")
        widest = widest[widest["unfairness"] > 0].drop_duplicates("row").head(count)
        settings = {s.label: s for s in self.who.alternatives}
        result = []
        for person in widest.to_dict("records"):
            row = np.array([person["row"]])
            answers = self.counterfactual(row, settings[person["to"]], draws, self.seed)
            # Of the draws, the one whose prediction is nearest to their average.
            typical = int(np.argmin(np.abs(self.predictor(answers) - person["counterfactual"])))
            before = self.factual.iloc[person["row"]].to_dict()
            after = answers.iloc[typical].to_dict()
            shown = {k: person[k] for k in _TWIN_KEYS}
            label = index[person["row"]]
            result.append({"person": label, **shown, "before": before, "after": after})
        return result


_TWIN_KEYS = ("from", "to", "factual", "counterfactual", "gap", "low", "high", "flip")


def _check_features(predictor: Predictor, factual: pd.DataFrame) -> None:
    missing = [c for c in predictor.features or () if c not in factual.columns]
    if missing:
        raise SchemaError(
            f"the predictor {predictor.name} reads the column {missing[0]!r}, which the data has "
            "not; give the table that it was fitted on"
        )


def _per_row(pairs: pd.DataFrame, column: str) -> np.ndarray:
    """A person's average over the alternatives, so that everyone counts once."""
    return pairs.groupby("row", sort=True)[column].mean().to_numpy()


def _by_group(pairs: pd.DataFrame, level: float) -> pd.DataFrame:
    rows = {}
    for key, group in pairs.groupby(["from", "to"], sort=False):
        low, high = mean_interval(group["unfairness"].to_numpy(), level)
        rows[key] = {
            "people": len(group),
            "unfairness": group["unfairness"].mean(),
            "low": low,
            "high": high,
            "mean_gap": group["gap"].mean(),
            "flips": group["flip"].mean(),
        }
    table = pd.DataFrame.from_dict(rows, orient="index")
    table.index = pd.MultiIndex.from_tuples(rows, names=["from", "to"])
    return table.sort_index()


def _decomposition(pairs: pd.DataFrame, run: _Run, level: float) -> pd.DataFrame:
    rows = {}
    for part in run.parts:
        each = pairs.assign(size=pairs[f"share:{part.label}"].abs())
        size = _per_row(each, "size")
        low, high = mean_interval(size, level)
        alone = _per_row(pairs.assign(size=pairs[f"alone:{part.label}"].abs()), "size")
        rows[part.label] = {"unfairness": size.mean(), "low": low, "high": high}
        rows[part.label]["alone"] = alone.mean()
    total = _per_row(pairs, "unfairness")
    low, high = mean_interval(total, level)
    rows[TOTAL] = {"unfairness": total.mean(), "low": low, "high": high, "alone": total.mean()}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("path")


def _decomposition_by_group(pairs: pd.DataFrame, run: _Run, level: float) -> pd.DataFrame:
    rows = {}
    for key, group in pairs.groupby(["from", "to"], sort=True):
        for part in run.parts:
            share = group[f"share:{part.label}"].to_numpy()
            low, high = mean_interval(share, level)
            alone = group[f"alone:{part.label}"].mean()
            rows[(*key, part.label)] = {
                "effect": share.mean(),
                "low": low,
                "high": high,
                "alone": alone,
            }
        gap = group["gap"].to_numpy()
        low, high = mean_interval(gap, level)
        rows[(*key, TOTAL)] = {"effect": gap.mean(), "low": low, "high": high, "alone": gap.mean()}
    table = pd.DataFrame.from_dict(rows, orient="index")
    table.index = pd.MultiIndex.from_tuples(rows, names=["from", "to", "path"])
    return table


def _halves(gaps: np.ndarray) -> np.ndarray:
    """The size of the average gap by half of the draws, and by the other half; their mean."""
    middle = gaps.shape[1] // 2
    return (np.abs(gaps[:, :middle].mean(axis=1)) + np.abs(gaps[:, middle:].mean(axis=1))) / 2


def _chance(pairs: pd.DataFrame, draws: int | None) -> list[str]:
    """Whether the draws are too few: the average of a few is off by chance, and uf counts that."""
    figure, half = (float(_per_row(pairs, c).mean()) for c in ("unfairness", "half"))
    if draws is None or half <= STEADY * figure:
        return []
    return [
        f"By half of the {draws} draws for each person the figure would be {100 * half:.2f} "
        f"percentage points instead of {100 * figure:.2f}: part of it is chance, and more draws "
        "would make it smaller."
    ]


def _caveats(
    model: CausalModel,
    predictor: Predictor,
    factual: pd.DataFrame,
    who: Sensitive,
    base: np.ndarray,
    threshold: float,
    truth: np.ndarray | None,
    extra: list[str],
    run: _Run,
) -> list[str]:
    found = list(who.caveats)
    labels, counts = np.unique(who.groups.astype(str), return_counts=True)
    for label, count in zip(labels, counts, strict=True):
        if count < SMALL_GROUP:
            people = "1 person" if count == 1 else f"{count} people"
            found.append(
                f"The group “{label}” has {people}: its figures say little about others, and "
                f"with fewer than {SMALL_GROUP} people an interval is not to be trusted."
            )
    if extra:
        found.append(
            f"The causal graph does not name {', '.join(extra)}, which the predictor may read: "
            "they were held as they are, so what the sensitive attribute does through them is "
            "missing from every figure."
        )
    decided = base >= threshold
    if decided.all() or not decided.any():
        which = "favourable" if decided.all() else "unfavourable"
        found.append(
            f"At the threshold {threshold:g} the predictor gives everyone the same, {which} "
            "decision; shares of changed decisions can hide large gaps in probability."
        )
    if truth is not None and (truth.all() or not truth.any()):
        found.append(
            "The true outcome has one class only in these rows, so accuracy and error rates by "
            "group mean little; those that cannot be computed are left out."
        )
    if predictor.decisions_only:
        found.append(
            "The predictor gives decisions and no probabilities: a gap is the share of "
            "counterfactual twins who get the other decision."
        )
    elif predictor.own_decisions is not None:
        own = predictor.own_decisions(predictor.select(factual)) > 0.5
        differ = float((own != decided).mean())
        if differ > 0:
            found.append(
                f"For {100 * differ:.1f} % of people the classifier's own predict() differs from "
                f"probability ≥ {threshold:g}; changed decisions and group rates use the latter."
            )
    parents = [p for n in who.nodes for p in model.graph.parents(n)]
    if parents:
        found.append(
            f"In this graph {', '.join(who.nodes)} has causes of its own ({', '.join(parents)}). "
            "They are left as they are when the attribute is changed."
        )
    for label, sentences in run.outside.items():
        found += [f"{sentence} (to {label}): an extrapolation." for sentence in sentences]
    for c, count in run.beyond.items():
        share = count / run.twins_seen
        if share >= 0.005:
            column = model.schema_[c]
            found.append(
                f"{100 * share:.1f} % of twins have a {c} outside what the model was fitted on "
                f"({column.low:,.6g} to {column.high:,.6g}): an extrapolation."
            )
    return found
