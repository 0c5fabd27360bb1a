"""Anything that scores people, seen as one function: a table in, one probability per row out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from vaca.errors import VacaError, did_you_mean


@dataclass(frozen=True)
class Predictor:
    """A checked predictor: `predictor(frame)` gives p(y = positive | x), shape (n,).

    Attributes
    ----------
    name : str
    positive : object
        The favourable answer; None for a plain function that was given without one.
    features : tuple of str, optional
        The columns it reads, if it says so (`feature_names_in_`).
    decisions_only : bool
        Whether it gives decisions, 0 or 1, and no probabilities.
    own_decisions : callable, optional
        The classifier's own `predict`, as a 0/1 array.
    """

    name: str
    score: Callable[[pd.DataFrame], Any]
    positive: Any = None
    features: tuple[str, ...] | None = None
    decisions_only: bool = False
    own_decisions: Callable[[pd.DataFrame], np.ndarray] | None = None

    def select(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The columns that the predictor reads."""
        return frame if self.features is None else frame[list(self.features)]

    def __call__(self, frame: pd.DataFrame) -> np.ndarray:
        answer = self.score(self.select(frame))
        return _check_scores(answer, len(frame), self.name)


def as_predictor(predict: Any, positive: Any = None, name: str | None = None) -> Predictor:
    """The predictor of a fitted scikit-learn-like classifier or of a function of a DataFrame.

    Parameters
    ----------
    predict : classifier or callable
        A classifier has `predict_proba` or, failing that, `predict`. A function returns, for a
        frame of n rows, n probabilities, n decisions (0/1 or bool), or an array (n, 2).
    positive : label, optional
        The favourable class; by default the second of two `classes_`.
    """
    if isinstance(predict, Predictor):
        return predict
    label = name or _name_of(predict)
    if hasattr(predict, "predict_proba") or hasattr(predict, "predict"):
        return _of_classifier(predict, positive, label)
    if callable(predict):
        return Predictor(label, predict, positive)
    raise VacaError(
        "predict must be a fitted classifier (with predict_proba or predict) or a function of a "
        f"DataFrame; got {type(predict).__name__}"
    )


def _name_of(predict: Any) -> str:
    steps = getattr(predict, "steps", None)  # a Pipeline is known by what decides at its end
    if steps:
        predict = steps[-1][1]
    return getattr(predict, "__name__", None) or type(predict).__name__


def _of_classifier(classifier: Any, positive: Any, name: str) -> Predictor:
    classes = getattr(classifier, "classes_", None)
    if classes is None:
        raise VacaError(f"the classifier {name} has no classes_: fit it first")
    classes = list(np.asarray(classes).tolist())
    if len(classes) < 2:
        raise VacaError(
            f"the classifier {name} knows one class only, {classes[0]!r}, so its answer cannot "
            "depend on anything; fit it on data with both classes"
        )
    if positive is None:
        if len(classes) > 2:
            raise VacaError(
                f"the classifier {name} has {len(classes)} classes: say which is the favourable "
                f"one with positive=; its classes: {classes[:10]}"
            )
        positive = classes[1]
    elif positive not in classes:
        raise VacaError(
            f"positive={positive!r} is not a class of {name}; {did_you_mean(positive, classes)}"
        )
    at = classes.index(positive)
    names = getattr(classifier, "feature_names_in_", None)
    features = None if names is None else tuple(str(c) for c in names)

    def decide(frame: pd.DataFrame) -> np.ndarray:
        chosen = np.asarray(classifier.predict(frame))
        return (chosen == positive).astype(float)

    if not hasattr(classifier, "predict_proba"):
        return Predictor(name, decide, positive, features, decisions_only=True)

    def score(frame: pd.DataFrame) -> Any:
        answer = np.asarray(classifier.predict_proba(frame))
        if answer.ndim != 2 or answer.shape[1] != len(classes):
            raise VacaError(
                f"{name}.predict_proba returned the shape {answer.shape}; expected "
                f"({len(frame)}, {len(classes)}), one column per class"
            )
        return answer[:, at]

    return Predictor(name, score, positive, features, own_decisions=decide)


def _check_scores(answer: Any, n: int, name: str) -> np.ndarray:
    if isinstance(answer, pd.DataFrame | pd.Series):
        answer = answer.to_numpy()
    try:
        scores = np.asarray(answer, dtype=float)
    except (TypeError, ValueError):
        raise VacaError(
            f"the predictor {name} must return numbers (probabilities or 0/1); got values like "
            f"{np.ravel(np.asarray(answer, dtype=object))[0]!r}"
        ) from None
    if scores.ndim == 2 and scores.shape == (n, 2):
        scores = scores[:, 1]
    elif scores.ndim == 2 and scores.shape == (n, 1):
        scores = scores[:, 0]
    if scores.shape != (n,):
        raise VacaError(
            f"the predictor {name} returned the shape {scores.shape} for a table of {n} rows; "
            f"expected ({n},), one probability per row, or ({n}, 2)"
        )
    bad = ~np.isfinite(scores)
    if bad.any():
        raise VacaError(
            f"the predictor {name} returned {scores[bad][0]} for {int(bad.sum())} of {n} rows, "
            f"first at position {int(np.argmax(bad))}; it must give a probability for every row"
        )
    outside = (scores < -1e-9) | (scores > 1 + 1e-9)
    if outside.any():
        raise VacaError(
            f"the predictor {name} returned {scores[outside][0]:.6g} at position "
            f"{int(np.argmax(outside))}; probabilities lie between 0 and 1. If it returns a score, "
            "wrap it: lambda frame: 1 / (1 + numpy.exp(-score(frame)))"
        )
    return np.clip(scores, 0.0, 1.0)
