"""The scores of a pair of samples, by protocol."""

from __future__ import annotations

from typing import Any

import numpy as np

from vaca.evaluation import metrics
from vaca.evaluation.questions import Question
from vaca.evaluation.table import make_row

__all__ = ["Scorer"]


class Scorer:
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

    def remember(self, question: Question, samples: list[np.ndarray]) -> None:
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
            table.append(make_row("interventional", label, node, "ate", values, 1))
        return table
