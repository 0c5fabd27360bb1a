"""What an audit gives: numbers with intervals, tables, and a report."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vaca.graph.dag import CausalGraph
from vaca.graph.parts import check_path

#: Resamples of people behind each interval.
RESAMPLES = 1000
#: Above this many people the mean is normal enough to do without resampling.
NORMAL_ABOVE = 2000


@dataclass(frozen=True, repr=False)
class AuditResult:
    """How far a predictor depends on a sensitive attribute, under a graph that was assumed.

    Attributes
    ----------
    unfairness : float
        uf, between 0 and 1: the average absolute gap between a person's predicted probability and
        the one their counterfactual twin gets.
    interval : (float, float)
        Of `unfairness`: it covers which people were audited, the draws and, if `covers_fit`, the
        fit; not a wrong graph or hidden causes.
    flips : float
        The share of people whose decision would have been the other one (on average over draws).
    per_person : DataFrame
        For each person (index of the data) and each alternative: from, to, factual and
        counterfactual probability, gap (counterfactual minus factual), unfairness (its size), low
        and high (of the gap, over the draws), flip (the share of draws with a different decision).
    by_group : DataFrame
        By ordered pair (from, to): people, unfairness with low and high, mean_gap, flips.
    decomposition : DataFrame or None
        By path: the size of the part that goes directly or through a mediator, averaged over
        people, with its interval; `alone` is its size when only this path is switched. Parts of
        opposite sign cancel in a person, so sizes may add up to more than the total.
    decomposition_by_group : DataFrame or None
        By (from, to, path): signed parts, which add up to the mean gap.
    metric_frame : fairlearn.metrics.MetricFrame
        Group metrics of the factual decisions.
    twins : list of dict
        The people with the widest gaps, each with its row and a typical counterfactual twin.
    caveats : list of str
        What a reader must know to use these figures.
    """

    unfairness: float
    interval: tuple[float, float]
    flips: float
    per_person: pd.DataFrame
    by_group: pd.DataFrame
    decomposition: pd.DataFrame | None
    decomposition_by_group: pd.DataFrame | None
    metric_frame: Any
    twins: list[dict[str, Any]]
    graph: CausalGraph
    assumptions: pd.DataFrame
    caveats: list[str]
    settings: dict[str, Any] = field(default_factory=dict)
    #: Whether intervals include the uncertainty of the fit: for a model with refits or members.
    covers_fit: bool = False

    @property
    def group_metrics(self) -> pd.DataFrame:
        """Group metrics of the factual decisions: people, selection rate, accuracy and so on."""
        return self.metric_frame.by_group

    def summary(self) -> str:
        """The figures in a few lines of plain text."""
        s = self.settings
        low, high = self.interval
        words = ", ".join(s["sensitive"])
        answer = "" if s["positive"] is None else f" of {s['positive']!r}"
        lines = [
            f"Audit of {s['predictor']} for {words}: {s['rows']:,} people, "
            + ("point counterfactuals" if s["draws"] is None else f"{s['draws']} draws each"),
            (
                f"  unfairness (uf)   {self.unfairness:.4f}  "
                f"({100 * s['level']:g} % interval {low:.4f} to {high:.4f}"
                + ("" if self.covers_fit else "; of the people alone, not of the fit")
                + ")"
            ),
            (
                f"    with another {words}, the probability{answer} would differ by "
                f"{100 * self.unfairness:.2f} points on average"
            ),
            f"  changed decisions {100 * self.flips:.2f} % of people",
        ]
        for (source, to), row in self.by_group.iterrows():  # type: ignore[misc]
            lines.append(
                f"  {source} -> {to}: uf {row['unfairness']:.4f}, average gap "
                f"{row['mean_gap']:+.4f}, {100 * row['flips']:.2f} % changed decisions, "
                + ("1 person" if row["people"] == 1 else f"{int(row['people']):,} people")
            )
        if self.decomposition is not None:
            lines.append("  by path (size of each part; parts may cancel):")
            for path, row in self.decomposition.iterrows():
                lines.append(f"    {path}: {row['unfairness']:.4f}")
        lines.append(
            f"  rests on: the causal graph ({len(self.graph)} nodes, {len(self.graph.edges)} "
            f"edges), no hidden common causes, and the fitted {s['model']} model"
        )
        lines += [f"  caveat: {text}" for text in self.caveats]
        return "\n".join(lines)

    def to_html(self, path: str | Path, **evidence: Any) -> Path:
        """Write the report: one self-contained page for a reader who does not program.

        Parameters
        ----------
        path : path
            The file to write; it is replaced if it exists.
        **evidence
            More to show, each optional: `title`, `graph_robustness` (from `graph_robustness`),
            `engine_robustness` (from `engine_robustness`), `frontier` (from `frontier`).
        """
        from vaca.fairness.audit_page import render
        from vaca.table.atomic import complete

        path = check_path(path)
        page = render(self, **evidence)
        with complete(path) as part:
            part.write_text(page, encoding="utf-8")
        return path

    def to_dict(self) -> dict[str, Any]:
        """The main figures as plain Python values, for JSON."""
        pairs = self.by_group.reset_index().to_dict("records")
        parts = None if self.decomposition is None else self.decomposition.reset_index()
        return {
            "unfairness": self.unfairness,
            "interval": list(self.interval),
            "flips": self.flips,
            "by_group": pairs,
            "decomposition": None if parts is None else parts.to_dict("records"),
            "caveats": list(self.caveats),
            "settings": dict(self.settings),
        }

    def __float__(self) -> float:
        return self.unfairness

    def __repr__(self) -> str:
        low, high = self.interval
        return f"AuditResult(unfairness={self.unfairness:.4f}, interval=({low:.4f}, {high:.4f}))"


def mean_interval(values: np.ndarray, level: float) -> tuple[float, float]:
    """A percentile bootstrap interval of a mean; of fewer than two values there is none.

    >>> mean_interval(np.zeros(50), 0.95)
    (0.0, 0.0)
    """
    n = len(values)
    if n < 2:
        return float("nan"), float("nan")
    if np.ptp(values) == 0:
        return float(values[0]), float(values[0])
    tail = (1 - level) / 2
    if n > NORMAL_ABOVE:
        from scipy.stats import norm

        half = float(norm.ppf(1 - tail)) * float(values.std(ddof=1)) / np.sqrt(n)
        return float(values.mean() - half), float(values.mean() + half)
    rng = np.random.default_rng(0)  # the same data, the same interval
    means = values[rng.integers(n, size=(RESAMPLES, n))].mean(axis=1)
    low, high = np.quantile(means, [tail, 1 - tail])
    return float(low), float(high)
