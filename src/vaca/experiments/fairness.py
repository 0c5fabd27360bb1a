"""The paper's use case: unfairness and accuracy of four classifiers on German Credit."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from vaca.experiments.recipes import recipe
from vaca.experiments.run import Run

__all__ = ["CLASSIFIERS", "LEARNERS", "PUBLISHED_FAIRNESS", "fairness_scores"]

CLASSIFIERS = ("full", "unaware", "fair-x", "fair-z")
LEARNERS = ("lr", "svm")
SENSITIVE = "sex"

# Table 6 of the paper: (learner, measure) -> full, unaware, fair-x, fair-z; mean and sd, x100.
PUBLISHED_FAIRNESS: dict[tuple[str, str], tuple[tuple[float, float | None], ...]] = {
    ("lr", "acc"): ((61.0, None), (62.0, None), (43.0, None), (63.6, 4.74)),
    ("svm", "acc"): ((66.0, None), (64.0, None), (51.0, None), (64.2, 4.52)),
    ("lr", "f1"): ((67.23, None), (68.33, None), (47.71, None), (70.89, 4.11)),
    ("svm", "f1"): ((71.67, None), (69.49, None), (59.5, None), (70.79, 5.15)),
    ("lr", "uf"): ((18.3, 3.22), (17.65, 3.2), (0.16, 0.02), (0.44, 0.24)),
    ("svm", "uf"): ((14.01, 2.26), (13.27, 2.28), (0.14, 0.02), (0.51, 0.19)),
}


def fairness_scores(run: Run) -> dict[str, Any]:
    """Fit the causal model and the classifiers on 80 % of the people; measure on the last 10 %.

    Unfairness is the mean absolute difference between a person's predicted probability and that
    of their point counterfactual under the other sex. 10 % are kept for early stopping. Which
    rows go where is drawn with the data seed.
    """
    from sklearn.metrics import accuracy_score, f1_score

    from vaca.datasets import german_credit
    from vaca.fairness import audit, make_classifier

    dataset = german_credit()
    order = np.random.default_rng(run.data_seed).permutation(len(dataset.data))
    fit, stop, test = np.split(order, [int(0.8 * len(order)), int(0.9 * len(order))])
    frame, target = dataset.data, dataset.target
    model: Any = recipe(run.model).make(
        run.scm, dataset.graph, dataset.schema, run.seed, run.config
    )
    started = time.perf_counter()
    model.fit(frame.iloc[fit], frame.iloc[stop], progress=False)
    seconds = round(time.perf_counter() - started, 3)
    scores: dict[str, list[float | None]] = {}
    for learner in LEARNERS:
        for name in CLASSIFIERS:
            classifier = make_classifier(name, model, SENSITIVE, learner)  # type: ignore[arg-type]
            classifier.fit(frame.iloc[fit], target.iloc[fit])
            predicted = classifier.predict(frame.iloc[test])
            true = target.iloc[test]
            result = audit(
                model,
                classifier,
                frame.iloc[test],
                SENSITIVE,
                positive=dataset.positive,
                draws=None,
                paths=False,
                most_affected=1,
                seed=run.seed,
            )
            measured = {
                "acc": accuracy_score(true, predicted),
                "f1": f1_score(true == dataset.positive, predicted == dataset.positive),
                "uf": result.unfairness,
            }
            for measure, value in measured.items():
                scores[f"{learner} {name} {measure}"] = [float(f"{100 * value:.6g}"), None]
    return {"scores": {"fairness": scores}, "fit_seconds": seconds}
