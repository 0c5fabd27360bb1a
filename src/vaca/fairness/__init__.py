"""Counterfactual fairness: audit any predictor; build ones that leave out what they should not use.

Figures are measurements under stated assumptions (the causal graph, no hidden common causes, the
fitted model). No figure makes a predictor "fair".
"""

from vaca.fairness.auditing import audit
from vaca.fairness.classifiers import (
    CLASSIFIERS,
    LEARNERS,
    TOLERANCE,
    BalancedSVM,
    LatentFeatures,
    features_for,
    make_classifier,
    readable_classifiers,
)
from vaca.fairness.result import AuditResult
from vaca.fairness.robustness import engine_robustness, frontier, graph_robustness

__all__ = [
    "CLASSIFIERS",
    "LEARNERS",
    "TOLERANCE",
    "AuditResult",
    "BalancedSVM",
    "LatentFeatures",
    "audit",
    "engine_robustness",
    "features_for",
    "frontier",
    "graph_robustness",
    "make_classifier",
    "readable_classifiers",
]
