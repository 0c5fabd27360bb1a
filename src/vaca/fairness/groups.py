"""Group metrics beside the counterfactual ones, through fairlearn's MetricFrame."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from vaca.errors import SchemaError, VacaError, shorten


def read_target(
    target: Any, frame: pd.DataFrame, positive: Any
) -> tuple[np.ndarray | None, str | None]:
    """The true outcome as a bool array (n,), and its name if it is a column of the data."""
    if target is None:
        return None, None
    name = None
    if isinstance(target, str):
        if target not in frame.columns:
            raise SchemaError(f"the target {target!r} is not a column of the data")
        name, values = target, frame[target]
    else:
        if not hasattr(target, "__len__"):
            raise SchemaError(
                f"the target is a column's name or a value for each row; got {shorten(target)}"
            )
        if len(target) != len(frame):
            raise SchemaError(f"the target has {len(target)} values for {len(frame)} rows")
        if isinstance(target, pd.Series) and not target.index.equals(frame.index):
            raise SchemaError("the target's index differs from the data's; reindex one of them")
        name = str(target.name) if isinstance(target, pd.Series) and target.name else None
        values = target if isinstance(target, pd.Series) else pd.Series(np.asarray(target))
    if values.isna().any():
        raise SchemaError(f"the target is missing in {int(values.isna().sum())} row(s)")
    array = values.to_numpy()
    if positive is not None and (array == positive).any():
        return np.asarray(array == positive), name
    if set(np.unique(array).tolist()) <= {0, 1} and positive in (None, 0, 1):
        return array.astype(bool) if positive != 0 else ~array.astype(bool), name
    if positive is not None:
        return np.asarray(array == positive), name
    raise VacaError(
        f"the target takes the values {list(pd.unique(values)[:5])}: say which is favourable with "
        "positive="
    )


def group_metrics(
    decisions: np.ndarray, truth: np.ndarray | None, groups: np.ndarray, attribute: str
) -> Any:
    """Fairlearn's MetricFrame of the decisions by group.

    Without the true outcome it holds group sizes and selection rates only.
    """
    from fairlearn.metrics import (
        MetricFrame,
        count,
        false_positive_rate,
        selection_rate,
        true_positive_rate,
    )
    from sklearn.metrics import accuracy_score

    metrics: dict[str, Any] = {"people": count, "selection_rate": selection_rate}
    predicted = decisions.astype(int)
    if truth is None:
        outcome = predicted  # not used by these two
    else:
        outcome = truth.astype(int)
        metrics["accuracy"] = accuracy_score
        both = all(len(np.unique(outcome[groups == g])) == 2 for g in pd.unique(groups))
        if both:  # a rate among people who do not exist is not a number
            metrics["true_positive_rate"] = true_positive_rate
            metrics["false_positive_rate"] = false_positive_rate
    return MetricFrame(
        metrics=metrics,
        y_true=outcome,
        y_pred=predicted,
        sensitive_features=pd.Series(groups.astype(str), name=attribute),
    )
