"""Boosted trees as tables of numbers; scikit-learn grows them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import log_softmax
from threadpoolctl import ThreadpoolController

from vaca.errors import VacaError

if TYPE_CHECKING:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

__all__ = ["Trees", "grown", "leaves_trace", "one_thread", "unequal"]

#: Learning rates of regression and of classification.
RATE, LEVEL_RATE = 0.06, 0.08


@dataclass
class Trees:
    """Boosted trees as tables: for each node an input, a threshold, two successors and a value."""

    start: np.ndarray  # (trees,) root of each tree in the tables
    output: np.ndarray  # (trees,) the output a tree adds to
    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    value: np.ndarray
    depth: np.ndarray  # (trees,)
    bias: np.ndarray  # (outputs,)

    def __post_init__(self) -> None:
        # A file may say anything: with a depth beyond its nodes, an answer would never end.
        if len(self.depth) and not 0 <= self.depth.min() <= self.depth.max() <= len(self.left):
            raise VacaError("a tree is deeper than it has nodes")

    def __call__(self, x: np.ndarray) -> np.ndarray:
        result = np.tile(self.bias, (len(x), 1))
        for root, output, depth in zip(self.start, self.output, self.depth, strict=True):
            result[:, output] += self.value[self._leaf(x, root, depth)]
        return result

    @classmethod
    def regression(cls, x: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None) -> Trees:
        """Histogram gradient boosting."""
        from sklearn.ensemble import HistGradientBoostingRegressor

        model = HistGradientBoostingRegressor(
            max_iter=150, learning_rate=RATE, max_leaf_nodes=16, early_stopping=False,
            random_state=0,
        )  # fmt: skip
        return cls._read(grown(model, x, y, weights), np.array([0]), 1)

    @classmethod
    def classification(
        cls, x: np.ndarray, y: np.ndarray, levels: int, weights: np.ndarray | None = None
    ) -> Trees:
        """Histogram gradient boosting on the log-odds of the levels."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        model = HistGradientBoostingClassifier(
            max_iter=80, learning_rate=LEVEL_RATE, max_leaf_nodes=16, early_stopping=False,
            random_state=0,
        )  # fmt: skip
        return cls._read(grown(model, x, y, weights), model.classes_, levels)

    def with_values(self, x: np.ndarray, y: np.ndarray, w: np.ndarray) -> Trees:
        """The same splits, with leaves that hold the means of weighted rows."""
        value, bias = self.value.copy(), np.array([np.average(y, weights=w)])
        left = y - bias
        for root, depth in zip(self.start, self.depth, strict=True):
            at = self._leaf(x, root, depth)
            total = np.bincount(at, w, len(value))
            mean = np.bincount(at, w * left, len(value)) / np.maximum(total, 1e-12)
            value = np.where(total > 0, RATE * mean, value)
            left = left - value[at]
        return replace(self, value=value, bias=bias)

    def with_level_values(self, x: np.ndarray, y: np.ndarray, w: np.ndarray) -> Trees:
        """The same splits, with leaves that hold Newton steps on the log-odds of weighted rows."""
        levels, value, bias = len(self.bias), self.value.copy(), self.bias.copy()
        pair = len(np.unique(self.output)) == 1  # two levels: one score is enough
        share = np.bincount(y, w, levels) / w.sum()
        known = np.flatnonzero(self.bias > -40.0)
        if pair:
            one = self.output[0]
            bias[one] = np.log(max(share[one], 1e-9)) - np.log(max(1 - share[one], 1e-9))
        else:
            bias[known] = np.log(np.maximum(share[known], 1e-9))
        score, first = np.tile(bias, (len(x), 1)), self.output[0]
        p = np.empty_like(score)
        for root, output, depth in zip(self.start, self.output, self.depth, strict=True):
            if output == first:
                p = np.exp(log_softmax(score, axis=1))
            own = p[:, output]
            at = self._leaf(x, root, depth)
            steep = np.bincount(at, w * own * (1 - own), len(value))
            slope = np.bincount(at, w * ((y == output) - own), len(value))
            fresh = LEVEL_RATE * slope / np.maximum(steep, 1e-3)
            value = np.where(np.bincount(at, w, len(value)) > 0, np.clip(fresh, -4, 4), value)
            score[:, output] += value[at]
        return replace(self, value=value, bias=bias)

    def _leaf(self, x: np.ndarray, root: int, depth: int) -> np.ndarray:
        """The leaf (n,) of every row in one tree."""
        rows, at = np.arange(len(x)), np.full(len(x), root)
        for _ in range(depth):  # leaves are their own successors
            go_left = x[rows, self.feature[at]] <= self.threshold[at]
            at = np.where(go_left, self.left[at], self.right[at])
        return at

    @classmethod
    def _read(
        cls,
        model: HistGradientBoostingRegressor | HistGradientBoostingClassifier,
        classes: np.ndarray,
        levels: int,
    ) -> Trees:
        # scikit-learn has no public way to its boosted trees; tests compare with `predict`.
        base = np.asarray(model._baseline_prediction, float).ravel()
        pair = len(classes) == 2 and levels >= 2
        outputs = np.array([classes[1]]) if pair else np.asarray(classes)
        parts: dict[str, list[np.ndarray]] = {
            k: [] for k in ("feature", "threshold", "left", "right", "value")
        }
        start, output, depth, size = [], [], [], 0
        for trees in model._predictors:
            for k, tree in enumerate(trees):
                nodes = tree.nodes
                leaf, own = nodes["is_leaf"].astype(bool), np.arange(len(nodes)) + size
                parts["feature"].append(np.where(leaf, 0, nodes["feature_idx"]).astype(np.int64))
                parts["threshold"].append(np.where(leaf, 0.0, nodes["num_threshold"]))
                parts["left"].append(np.where(leaf, own, nodes["left"].astype(np.int64) + size))
                parts["right"].append(np.where(leaf, own, nodes["right"].astype(np.int64) + size))
                parts["value"].append(nodes["value"].astype(float))
                start.append(size)
                output.append(outputs[k])
                depth.append(int(nodes["depth"].max()))
                size += len(nodes)
        bias = np.zeros(levels)
        if levels >= 2:
            bias[:] = -50.0  # a level that never occurred
            bias[classes] = 0.0
        bias[outputs] = base
        return cls(
            np.array(start), np.array(output), depth=np.array(depth), bias=bias,
            **{k: np.concatenate(v) for k, v in parts.items()},
        )  # fmt: skip


def leaves_trace(
    x: np.ndarray, left: np.ndarray, w: np.ndarray, outs: Iterable[np.ndarray]
) -> bool:
    """Whether small trees find something in ``left`` (n,), each time on the rows that are out."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    gains = []
    for out in outs:
        keep = np.flatnonzero(~out)[:6000]
        small = HistGradientBoostingRegressor(
            max_iter=40, learning_rate=0.15, max_leaf_nodes=12, early_stopping=False, random_state=0
        )
        grown(small, x[keep], left[keep], w[keep])
        with one_thread():
            told = small.predict(x[out])
        gains.append(w[out] * (left[out] ** 2 - (left[out] - told) ** 2))
    gain = np.concatenate(gains)
    return bool(gain.mean() > 1.5 * gain.std() / np.sqrt(len(gain)))


def grown(model: Any, x: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None) -> Any:
    """A scikit-learn model of trees, fitted on one thread."""
    with one_thread():
        return model.fit(x, y, unequal(weights))


def one_thread() -> AbstractContextManager[Any]:
    """Let scikit-learn compute on one thread, once its trees are imported.

    On tables of thousands of rows a second thread gains little, and where other work keeps a core
    busy the two wait for one another: seconds became minutes.
    """
    return _threads().limit(limits=1)


@cache
def _threads() -> ThreadpoolController:
    return ThreadpoolController()


def unequal(weights: np.ndarray | None) -> np.ndarray | None:
    """Weights, unless they are all the same: bins are found much faster without."""
    return weights if weights is not None and np.ptp(weights) > 0 else None
