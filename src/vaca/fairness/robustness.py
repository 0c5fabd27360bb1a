"""Does the answer of an audit depend on the graph, the engine or the predictor? Comparisons."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score
from sklearn.pipeline import make_pipeline

from vaca.errors import GraphError, VacaError
from vaca.fairness.alternatives import sensitive_columns
from vaca.fairness.auditing import audit
from vaca.fairness.classifiers import (
    LearnerName,
    column_encoder,
    features_for,
    make_classifier,
    readable_classifiers,
)
from vaca.graph.dag import CausalGraph
from vaca.model.causal_model import CausalModel
from vaca.table.schema import as_frame


def changed_graphs(graph: CausalGraph) -> Iterator[tuple[str, CausalGraph]]:
    """The graph with each edge removed, and with each edge reversed where that makes no cycle.

    >>> graph = CausalGraph.from_edges([("a", "b"), ("b", "c"), ("a", "c")])
    >>> [name for name, _ in changed_graphs(graph)][:2]
    ['a -> b removed', 'b -> a instead of a -> b']
    """
    columns = {n: graph.columns(n) for n in graph.nodes}

    def with_edges(edges: list[tuple[str, str]]) -> CausalGraph:
        parents = {n: [a for a, b in edges if b == n] for n in graph.nodes}
        return CausalGraph(parents, columns)

    for cause, effect in graph.edges:
        rest = [e for e in graph.edges if e != (cause, effect)]
        yield f"{cause} -> {effect} removed", with_edges(rest)
        try:
            reversed_graph = with_edges([*rest, (effect, cause)])
        except GraphError:
            continue  # the effect can also be reached another way, so this would be a cycle
        yield f"{effect} -> {cause} instead of {cause} -> {effect}", reversed_graph


def graph_robustness(
    engine: Any,
    predict: Any,
    data: Any,
    sensitive: str | Sequence[str],
    *,
    fit_data: Any = None,
    progress: Callable[[str], None] | None = None,
    **options: Any,
) -> pd.DataFrame:
    """The audit under graphs that differ from the assumed one by one edge.

    Parameters
    ----------
    engine : Engine
        Fitted or not: a copy with the same settings is fitted for each graph.
    predict, data, sensitive
        As in `audit`.
    fit_data : DataFrame, optional
        Rows to fit on; by default `data`.
    progress : callable, optional
        Called with the name of each graph before it is fitted.
    **options
        Passed on to `audit`.

    Returns
    -------
    DataFrame indexed by `graph`, first "as assumed": unfairness, low, high, difference, flips.
    """
    frame = as_frame(data)
    rows = frame if fit_data is None else as_frame(fit_data)
    rows = rows[[c for c in rows.columns if c in engine.graph.all_columns]]
    kinds = getattr(engine, "schema_", None) or engine.schema
    options = {"paths": False, "most_affected": 0, **options}
    found: dict[str, dict[str, float]] = {}
    for name, graph in [("as assumed", engine.graph), *changed_graphs(engine.graph)]:
        if progress is not None:
            progress(name)
        model = clone(engine).set_params(graph=graph, schema=kinds)
        model.fit(rows, progress=False)
        result = audit(model, predict, frame, sensitive, **options)
        low, high = result.interval
        found[name] = {
            "unfairness": result.unfairness,
            "low": low,
            "high": high,
            "difference": result.unfairness - next(iter(found.values()), {}).get("unfairness", 0.0)
            if found
            else 0.0,
            "flips": result.flips,
        }
    return pd.DataFrame.from_dict(found, orient="index").rename_axis("graph")


def engine_robustness(
    engines: Mapping[str, CausalModel],
    classifiers: Mapping[str, Any],
    data: Any,
    sensitive: str | Sequence[str],
    **options: Any,
) -> pd.DataFrame:
    """The audit of several predictors by several causal models, and whether their rankings agree.

    Parameters
    ----------
    engines : mapping of str to CausalModel
        Fitted on the same table with the same graph.
    classifiers : mapping of str to predictor
        As in `audit`.

    Returns
    -------
    DataFrame
        Indexed by classifier, with one column of unfairness per engine. `attrs["agree"]` says
        whether all engines rank the classifiers alike (pairs whose intervals overlap are ties),
        `attrs["verdict"]` says so in words, `attrs["intervals"]` holds (engine, classifier) ->
        (low, high).
    """
    if not engines or not classifiers:
        raise VacaError("give at least one engine and one classifier, each under a name")
    options = {"paths": False, "most_affected": 0, **options}
    values: dict[str, dict[str, float]] = {}
    intervals: dict[tuple[str, str], tuple[float, float]] = {}
    for engine, model in engines.items():
        values[engine] = {}
        for name, predict in classifiers.items():
            result = audit(model, predict, data, sensitive, **options)
            values[engine][name] = result.unfairness
            intervals[engine, name] = result.interval
    table = pd.DataFrame(values).rename_axis("classifier")
    clashes = _clashes(list(engines), list(classifiers), intervals)
    table.attrs["agree"] = not clashes
    table.attrs["intervals"] = intervals
    if clashes:
        verdict = "The engines do not rank the classifiers alike: " + "; ".join(clashes)
    else:
        order = list(table.mean(axis=1).sort_values(ascending=False, kind="stable").index)
        verdict = f"{', '.join(engines)} rank the classifiers alike: {' ≥ '.join(order)}"
        close = _close(table, order)
        if close:
            verdict += f" (within the intervals: {'; '.join(close)})"
    table.attrs["verdict"] = verdict
    return table


def _close(table: pd.DataFrame, order: list[str]) -> list[str]:
    """Neighbours in the common order that an engine's figures put the other way round."""
    return [
        f"{engine} gives {below} the larger figure than {above}"
        for engine in table.columns
        for above, below in itertools.pairwise(order)
        if table.at[below, engine] > table.at[above, engine]
    ]


def _clashes(
    engines: list[str],
    classifiers: list[str],
    intervals: dict[tuple[str, str], tuple[float, float]],
) -> list[str]:
    """Pairs of classifiers that two engines put in opposite order, beyond their intervals."""
    found = []
    for i, a in enumerate(classifiers):
        for b in classifiers[i + 1 :]:
            above = [e for e in engines if intervals[e, a][0] > intervals[e, b][1]]
            below = [e for e in engines if intervals[e, a][1] < intervals[e, b][0]]
            if above and below:
                found.append(
                    f"{a} has the larger figure by {', '.join(above)}, {b} by {', '.join(below)}"
                )
    return found


def frontier(
    model: CausalModel,
    train: Any,
    train_target: Any,
    test: Any,
    test_target: Any,
    sensitive: str | Sequence[str],
    *,
    positive: Any,
    learner: LearnerName = "lr",
    mitigations: bool = True,
    seed: int = 0,
    **options: Any,
) -> pd.DataFrame:
    """Accuracy against unfairness: the paper's classifiers and fairlearn's mitigations.

    Parameters
    ----------
    model : CausalModel
        Fitted on the training rows.
    train, train_target, test, test_target
        Classifiers are fitted on the first two; accuracy, f1 and unfairness are on the others.
    sensitive : str or list of str
    positive : label
        The favourable class.
    mitigations : bool
        Whether to add fairlearn's correlation remover, exponentiated gradient (demographic parity,
        equalised odds) and threshold optimiser. They aim at group measures, not at
        counterfactual ones.

    Returns
    -------
    DataFrame indexed by classifier: accuracy, f1, unfairness, low, high, source.
    """
    columns = list(model.schema_.columns)
    x, z = as_frame(train)[columns], as_frame(test)[columns]
    y = (np.asarray(train_target) == positive).astype(int)
    truth = (np.asarray(test_target) == positive).astype(int)
    # A classifier sees neither its target nor what follows from it.
    target = getattr(train_target, "name", None)
    candidates: dict[str, tuple[str, Any]] = {
        name: ("paper", make_classifier(name, model, sensitive, learner, target).fit(x, y))
        for name in readable_classifiers(model.graph, sensitive, target)
    }
    if mitigations:
        for name, predict in _mitigations(model, x, y, sensitive, target).items():
            candidates[name] = ("fairlearn", predict)
    options = {"paths": False, "most_affected": 0, "seed": seed, **options}
    rows = {}
    for name, (source, predict) in candidates.items():
        result = audit(model, predict, z, sensitive, **options)
        decided = predict.predict(z) if hasattr(predict, "predict") else predict(z) >= 0.5
        low, high = result.interval
        rows[name] = {
            "accuracy": float(accuracy_score(truth, decided)),
            "f1": float(f1_score(truth, decided)),
            "unfairness": result.unfairness,
            "low": low,
            "high": high,
            "source": source,
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("classifier")


def _mitigations(
    model: CausalModel,
    x: pd.DataFrame,
    y: np.ndarray,
    sensitive: str | Sequence[str],
    target: str | None,
) -> dict[str, Callable[[pd.DataFrame], np.ndarray]]:
    """Fairlearn's methods as functions of a frame."""
    from fairlearn.postprocessing import ThresholdOptimizer
    from fairlearn.preprocessing import CorrelationRemover
    from fairlearn.reductions import (
        DemographicParity,
        EqualizedOdds,
        ErrorRate,
        ExponentiatedGradient,
    )

    read = features_for("full", model.graph, sensitive, target)
    encoder = column_encoder(model.schema_, read).fit(x)
    names = [str(c) for c in encoder.get_feature_names_out()]
    columns = sensitive_columns(
        model.graph, [sensitive] if isinstance(sensitive, str) else sensitive
    )
    theirs = column_encoder(model.schema_, columns).fit(x).get_feature_names_out()
    own = [names.index(str(c)) for c in theirs]

    def coded(frame: pd.DataFrame) -> np.ndarray:
        return np.asarray(encoder.transform(frame), dtype=float)

    def group(frame: pd.DataFrame) -> np.ndarray:
        return frame[columns].astype(str).agg(", ".join, axis=1).to_numpy()

    def learner() -> LogisticRegression:
        return LogisticRegression(class_weight="balanced", max_iter=1000)

    remover = make_pipeline(CorrelationRemover(sensitive_feature_ids=own), learner())
    remover.fit(coded(x), y)
    found: dict[str, Callable[[pd.DataFrame], np.ndarray]] = {
        "correlation remover": lambda frame: remover.predict_proba(coded(frame))[:, 1]
    }
    # The same balance between the classes as class_weight="balanced" gives the others.
    costs = {"fp": float(y.mean()), "fn": float(1 - y.mean())}
    for name, constraint in {
        "demographic parity": DemographicParity(),
        "equalised odds": EqualizedOdds(),
    }.items():
        reduced = ExponentiatedGradient(
            LogisticRegression(max_iter=1000), constraint, objective=ErrorRate(costs=costs)
        )
        with _quiet():
            reduced.fit(coded(x), y, sensitive_features=group(x))
        found[name] = lambda frame, r=reduced: r._pmf_predict(coded(frame))[:, 1]
    optimiser = ThresholdOptimizer(
        estimator=learner().fit(coded(x), y),
        prefit=True,
        predict_method="predict_proba",
        objective="balanced_accuracy_score",
    )
    with _quiet():
        optimiser.fit(coded(x), y, sensitive_features=group(x))
    found["threshold optimiser"] = lambda frame: optimiser._pmf_predict(
        coded(frame), sensitive_features=group(frame)
    )[:, 1]
    return found


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence: fairlearn calls pandas and scipy in ways that they deprecate."""
    with warnings.catch_warnings():
        for category in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
            warnings.simplefilter("ignore", category)
        yield
