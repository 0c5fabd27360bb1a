r"""How strong a hidden common cause would have to be to explain an effect away.

An unseen cause of treatment and outcome moves an estimate by at most

.. math:: |bias| = S \sqrt{R_Y \, \frac{R_T}{1 - R_T}}, \qquad S^2 = E[(Y - g)^2] \, E[\alpha^2],

where :math:`R_Y` and :math:`R_T` are the shares that it explains of what the columns in the table
leave of the outcome and of the treatment (partial R², Chernozhukov, Cinelli, Newey, Sharma and
Syrgkanis, 2022; g and α are those of `vaca.trust.debiased`). For a straight line it is the formula
of Cinelli and Hazlett (2020), which sensemakr uses.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vaca.errors import VacaError
from vaca.graph.dag import CausalGraph
from vaca.model.answers import half_width
from vaca.show.words import number
from vaca.trust.cross_check import AskedRows, CrossCheck, table_of
from vaca.trust.features import Features

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from vaca.model.answers import Effect

__all__ = ["Sensitivity", "robustness_value", "sensitivity"]

#: Observed causes that a hidden one is compared with, at most.
COMPARED = 8
#: Beyond this, how many times does not matter.
MANY_TIMES = 20


def robustness_value(ratio: float) -> float:
    r"""The partial R² with both treatment and outcome that moves an estimate by `ratio` times S.

    .. math:: \tfrac12 \left(\sqrt{f^4 + 4 f^2} - f^2\right), \qquad f = |\theta| / S

    For a regression coefficient, f is :math:`|t| / \sqrt{df}`.

    >>> round(robustness_value(4.18445 / 783**0.5), 4)  # sensemakr's example
    0.1388
    """
    f2 = max(ratio, 0.0) ** 2
    return float(0.5 * (np.sqrt(f2**2 + 4 * f2) - f2))


@dataclass(frozen=True)
class Sensitivity:
    """What a hidden common cause of treatment and outcome could do to an effect.

    Attributes
    ----------
    check : CrossCheck
        The estimate from the rows that the figures are about.
    scale : float
        S of the module's formula, in the outcome's units.
    """

    check: CrossCheck
    scale: float
    _slope: np.ndarray = field(repr=False, compare=False)
    _table: AskedRows = field(repr=False, compare=False)
    _graph: CausalGraph = field(repr=False, compare=False)
    _seed: int = field(default=0, repr=False, compare=False)

    @cached_property
    def benchmarks(self) -> pd.DataFrame:
        """Observed causes, those first that come nearest to explaining the effect away.

        `treatment` and `outcome` are the partial R² of a hidden cause as strong as that one;
        `times`: how many times as strong it would have to be to bring the effect to zero.
        """
        ratio = abs(self.check.value) / self.scale
        span = None if self.check.parts is None else self.check.parts.span
        return _benchmarks(self._graph, self._table, ratio, self._seed, span)

    @property
    def robustness_value(self) -> float:
        """Share of what is left of treatment and of outcome that would bring the effect to zero."""
        return robustness_value(abs(self.check.value) / self.scale)

    @property
    def robustness_value_interval(self) -> float:
        """The same, to bring an end of the 95 % interval to zero; 0 if it holds zero already."""
        low, high = self.check.interval()
        near = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
        return robustness_value(near / self.scale)

    def bounds(
        self, r2_treatment: float, r2_outcome: float, level: float | None = None
    ) -> tuple[float, float]:
        """The range of the effect, if a hidden cause explains these shares of what is left.

        Parameters
        ----------
        r2_treatment, r2_outcome : float
            Partial R², from 0 to 1; for the treatment below 1.
        level : float, optional
            With it, a confidence interval for the two ends, for example 0.95.
        """
        for name, share, most in (("r2_treatment", r2_treatment, 1 - 1e-9),
                                  ("r2_outcome", r2_outcome, 1.0)):  # fmt: skip
            if not 0 <= share <= most:
                raise VacaError(f"{name} is a share from 0 to below 1; got {share!r}")
        strength = float(np.sqrt(r2_outcome * r2_treatment / (1 - r2_treatment)))
        ends = [self.check.value + sign * strength * self.scale for sign in (-1, 1)]
        if level is None:
            return ends[0], ends[1]
        influence = self.check.parts.influence if self.check.parts is not None else np.zeros(2)
        own = float(np.sqrt(np.sum(influence**2)))
        grow = self.check.standard_error / own * len(influence) if own else 1.0
        errors = [
            grow * float(np.sqrt(np.sum((influence + sign * strength * self._slope) ** 2)))
            / len(influence)
            for sign in (-1, 1)
        ]  # fmt: skip
        below, above = (half_width(error, self.check.degrees, level) for error in errors)
        return ends[0] - below, ends[1] + above

    @property
    def sentence(self) -> str:
        """The answer in words."""
        value, near = self.robustness_value, self.robustness_value_interval
        if near == 0:
            said = (
                "The cross-check's interval holds zero as it is; to bring its estimate to zero, "
                f"a hidden cause would have to explain {_percent(value)} of what is left of both "
                "treatment and outcome"
            )
        else:
            said = (
                f"A hidden cause would have to explain {_percent(value)} of what is left of both "
                f"treatment and outcome to bring the cross-check's estimate to zero, and "
                f"{_percent(near)} to bring its interval there"
            )
        if len(self.benchmarks):
            name = self.benchmarks["times"].idxmin()
            times = float(self.benchmarks["times"].min())
            if np.isfinite(times):
                said += (
                    f". That is {_times(times)} as strong as {name}, the strongest cause in the "
                    "table"
                )
            else:
                said += ". No cause in the table measurably moves both"
        return said + "."

    def plot(self, ax: Axes | None = None) -> Axes:
        """The effect left under hidden causes of each strength, and the observed causes."""
        from vaca.trust.hidden_picture import plot_sensitivity

        return plot_sensitivity(self, ax)

    def __str__(self) -> str:
        return self.sentence


def sensitivity(effect: Effect, seed: int = 0) -> Sensitivity:
    """What a hidden cause could do to an effect, by the model's rows; see `Effect.sensitivity`.

    The figures are about the cross-check of the effect, and come from its two regressions.
    """
    from vaca.trust.cross_check import check_effect

    check = effect.cross_check or check_effect(effect, seed)  # the second says what is wrong
    assert check.parts is not None
    table = table_of(
        effect.model, effect.outcome, effect.treatment, effect.control,
        level=effect.level, among=effect.among,
    )  # fmt: skip
    base = 1.0 if table.row_weights is None else table.row_weights / table.row_weights.mean()
    scale, slope = _scale(check.parts, base)
    return Sensitivity(check, scale, slope, table, effect.model.graph, seed)


def _scale(parts: Any, base: Any) -> tuple[float, np.ndarray]:
    """S, and how much each row moves it."""
    miss = base * parts.residual**2
    left, norm = float(np.mean(miss)), _norm(parts)
    scale = float(np.sqrt(left * norm))
    if scale == 0:
        raise VacaError("the outcome follows from the columns without error: nothing is left open")
    return scale, ((miss - left) * norm + (parts.weight_moment - norm) * left) / (2 * scale)


def _norm(parts: Any) -> float:
    """E[α²]; the debiased mean can come out below what is possible, the plain one cannot."""
    plain = float(np.mean(parts.weight**2))
    found = float(np.mean(parts.weight_moment))
    return found if found > 0.5 * plain else plain


def _benchmarks(
    graph: CausalGraph, table: AskedRows, ratio: float, seed: int, span: str | None
) -> pd.DataFrame:
    """Each observed cause left out in turn: what it added to both regressions, of one kind."""
    features = table.features
    nodes = list(dict.fromkeys(graph.node_of(c) for c in features.covariates))
    names = ["treatment", "outcome", "times"]
    if not nodes:
        return pd.DataFrame(columns=names, index=pd.Index([], name="cause"), dtype=float)
    full = table.estimate(seed=seed, boosted=False, span=span)
    left, norm = float(np.mean(full.residual**2)), _norm(full)
    found = {}
    for node in _likeliest(nodes, graph, table):
        kept = [c for c in features.covariates if graph.node_of(c) != node]
        fewer = Features(table.rows, features.schema, features.treated, kept)
        less = table.estimate(fewer, seed=seed, boosted=False, span=span)
        treatment = float(np.clip(norm / _norm(less) - 1, 0, 1))
        outcome = float(np.clip(np.mean(less.residual**2) / left - 1, 0, 1))
        found[node] = (treatment, outcome, _times_needed(treatment, outcome, ratio))
    result = pd.DataFrame.from_dict(found, orient="index", columns=names)
    result.index.name = "cause"
    return result.sort_values("times", kind="stable")


def _likeliest(nodes: list[str], graph: Any, table: AskedRows) -> list[str]:
    """The nodes that are most correlated with both treatment and outcome."""
    if len(nodes) <= COMPARED:
        return nodes
    t = Features(table.rows, table.features.schema, (), table.features.treated)
    given = t.span(table.rows, "plain")[:, 0]

    def strength(node: str) -> float:
        x = Features(table.rows, table.features.schema, (), graph.columns(node))
        columns = x.span(table.rows, "plain").T
        with np.errstate(all="ignore"):
            both = [
                abs(np.corrcoef(c, given)[0, 1] * np.corrcoef(c, table.y)[0, 1]) for c in columns
            ]
        return float(np.nanmax(both, initial=0.0))

    return sorted(nodes, key=strength, reverse=True)[:COMPARED]


def _times_needed(treatment: float, outcome: float, ratio: float) -> float:
    """k, so that a cause k times as strong moves the estimate by `ratio` times S."""
    if treatment <= 0:
        return float("inf")
    f2 = ratio**2
    if outcome > 0:
        a, b = outcome * treatment, treatment * f2
        k = float((-b + np.sqrt(b**2 + 4 * a * f2)) / (2 * a))
        if k * outcome <= 1:
            return k
        return f2 / (1 + f2) / treatment  # all that is left of the outcome, and still more
    return float("inf")


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{number(100 * share, 0.1)} %"


def _times(times: float) -> str:
    if times > MANY_TIMES:
        return f"more than {MANY_TIMES} times"
    return f"{number(round(times, 1 if times < 10 else 0))} times"
