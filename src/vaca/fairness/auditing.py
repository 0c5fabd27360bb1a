r"""The audit: what a prediction would have been with another sensitive attribute.

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

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from vaca.errors import SchemaError, VacaError
from vaca.fairness import estimates
from vaca.fairness.alternatives import Sensitive, read_sensitive
from vaca.fairness.decomposition import (
    DIRECT,
    Part,
)
from vaca.fairness.groups import group_metrics, read_target
from vaca.fairness.people import Inquiry
from vaca.fairness.predictor import Predictor, as_predictor
from vaca.fairness.result import AuditResult
from vaca.model.arguments import check_count, check_flag, check_number, check_seed
from vaca.model.causal_model import CausalModel
from vaca.table.schema import as_frame

#: Draws for each person where a point would hide what is uncertain.
DRAWS = 100
#: A group smaller than this is named in the caveats.
SMALL_GROUP = 30


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
        Counterfactual draws for each person; None takes the point counterfactual where it is
        exact for every column that the attribute reaches, and 100 draws where it is not.
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
    for what, share in {"threshold": threshold, "level": level}.items():
        if not 0 < check_number(what, share) < 1:
            raise VacaError(f"{what} lies between 0 and 1; got {share!r}")
    draws = None if draws is None else check_count("draws", draws)
    seed = check_seed(seed)
    most_affected = check_count("most_affected", most_affected, 0)
    paths = check_flag("paths", paths)
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

    if draws is None and not _exact(model, who):
        draws = DRAWS
    base = predictor(factual)
    parts = [Part(DIRECT, who.columns)]
    parts += [Part(f"through {node}", model.graph.columns(node)) for node in who.mediators]
    run = Inquiry(
        model, predictor, frame, factual, x, who, base, threshold, parts if paths else [], seed,
        fits=len(model._dealt()),
    )  # fmt: skip
    pairs = run.all_pairs(draws, level)
    if len(pairs) == 0:
        raise VacaError(
            "nobody's sensitive attribute differs from the alternatives, so nothing can be compared"
        )
    per_person = pairs.drop(columns=run.part_columns).set_index(frame.index[pairs["row"]])
    fits = [c for c in per_person.columns if c.startswith("fit:")]
    per_person = per_person.drop(columns=["row", "half", *fits])
    metric_frame = group_metrics(base >= threshold, truth, who.groups, ", ".join(who.columns))
    by_group = estimates.by_group(pairs, run, level)
    result = AuditResult(
        unfairness=float(estimates.per_row(pairs, "unfairness").mean()),
        interval=run.interval(pairs, estimates.per_row(pairs, "unfairness"), level),
        covers_fit=run.fits > 1 or not model._learned,
        flips=float(estimates.per_row(pairs, "flip").mean()),
        per_person=per_person,
        by_group=by_group,
        decomposition=estimates.decomposition(pairs, run, level) if paths else None,
        decomposition_by_group=estimates.decomposition_by_group(pairs, run, level)
        if paths
        else None,
        metric_frame=metric_frame,
        twins=run.twins(pairs, frame.index, most_affected, draws),
        graph=model.graph,
        assumptions=model.assumptions(),
        caveats=_caveats(model, predictor, factual, who, base, threshold, truth, extra, run)
        + estimates.chance(pairs, draws),
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


def _exact(model: CausalModel, who: Sensitive) -> bool:
    """Whether a point counterfactual is the only one, in all columns that can change."""
    below = [c for node in who.mediators for c in model.graph.columns(node)]
    return all(model._assumption(c)[0] for c in below)


def _check_features(predictor: Predictor, factual: pd.DataFrame) -> None:
    missing = [c for c in predictor.features or () if c not in factual.columns]
    if missing:
        raise SchemaError(
            f"the predictor {predictor.name} reads the column {missing[0]!r}, which the data "
            "does not have; give the table it was fitted on"
        )


def _caveats(
    model: CausalModel,
    predictor: Predictor,
    factual: pd.DataFrame,
    who: Sensitive,
    base: np.ndarray,
    threshold: float,
    truth: np.ndarray | None,
    extra: list[str],
    run: Inquiry,
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
