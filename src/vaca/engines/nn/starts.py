"""Where the decoder of `vaca.engines.nn.value_network` starts: what the rows say of each column.

Each column is fitted alone first, by lines, curves and steps chosen on held-out rows as `Composite`
chooses them. What they say is where training starts, not where it ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from vaca.engines.mechanisms.choosing import choose_numeric
from vaca.engines.mechanisms.choosing_levels import choose_levels
from vaca.engines.mechanisms.designs import Design
from vaca.engines.mechanisms.trials import Inputs, make_folds

__all__ = ["Spread", "Start", "start_of"]

#: Fewer rows than this say nothing of steps, curves and spreads.
FEWEST = 40
#: Columns with more features than this start from lines alone: the rest would take too long.
WIDEST = 50
#: Twice the log-likelihood that a coefficient of a spread must add, in logarithms of the rows.
PRICE = 3.0
#: The likelihood of a spread has few maxima; the highest of those found from this many starts.
TRIES = 4
#: Noise smaller than this, in sds of the column, has no spread worth a fit.
FINE = 0.02
#: The least spread, in sds of the column, so that rows that are met exactly have a likelihood.
LEAST = 1e-4
#: Rows count at most this many times as much as with the spread of the middle one.
MOST = 1e3


@dataclass
class Spread:
    r"""How far values go from their offset, as a function of the causes.

    .. math:: s(x)^2 = c^2 + \Big(\sum_{k=1}^2 (\beta_k^\top (1, x))^2\Big)^2

    Attributes
    ----------
    floor : float
        c, which is 0 where the rows are as likely without.
    roots : ndarray (2, 1 + causes)
    """

    floor: float
    roots: np.ndarray

    def __call__(self, causes: np.ndarray) -> np.ndarray:
        """The spread (n,) at causes (n, causes)."""
        return np.sqrt(self.floor**2 + _squares(_with_one(causes) @ self.roots.T) ** 2)


@dataclass
class Start:
    """What the rows say of a column.

    Attributes
    ----------
    design : Design
        The terms of the chosen location or odds.
    spread : Spread, optional
        Of a number; None where one for all rows is as likely, no cause is a number, or the noise
        is next to nothing.
    scores : ndarray (n, levels), optional
        Log-probabilities of the levels of a column that has some.
    """

    design: Design
    spread: Spread | None = None
    scores: np.ndarray | None = None


def start_of(
    inputs: np.ndarray,
    groups: Sequence[int],
    values: Sequence[int],
    y: np.ndarray,
    w: np.ndarray,
    levels: int,
) -> Start | None:
    """What the rows say of a column with these causes; None where these are many, or rows few.

    Parameters
    ----------
    inputs : ndarray (n, features)
        Causes as numbers.
    groups : sequence of int
        The cause that each feature belongs to.
    values : sequence of int
        Features that are numbers, not levels: a spread may follow these.
    y, w : ndarray (n,)
        Standardised values, or codes of levels; weights.
    levels : int
        Of the column; 0 for a number.
    """
    every, counts = inputs, w > 0
    inputs, y, w = inputs[counts], y[counts], w[counts] / w[counts].mean()
    if len(y) < FEWEST or not 0 < inputs.shape[1] <= WIDEST:
        return None
    folds = make_folds(len(y), [0, 7])
    if levels:
        families = frozenset({"curves", "steps", "spread"})
        given = Inputs(inputs, groups, y.astype(np.int64), w, folds, 0)
        chosen: Any = choose_levels(given, levels, families)[0]
        return Start(chosen.design, scores=chosen.log_levels(every))
    families = frozenset({"curves", "products", "steps"})
    given = Inputs(inputs, groups, y, w, folds, 0)
    location: Any = choose_numeric(given, count=False, families=families)[0].location
    spread = spread_of(inputs[:, values], y - location(inputs), w / w.sum())
    if spread is not None:
        # Where noise is wide it looks like steps. There, rows say little and count for little.
        size = spread(inputs[:, values]) ** 2
        weight = w / np.maximum(size, np.median(size) / MOST)
        given = Inputs(inputs, groups, y, weight / weight.mean(), folds, 0)
        location = choose_numeric(given, count=False, families=families)[0].location
    return Start(location.design, spread)


def spread_of(causes: np.ndarray, left: np.ndarray, share: np.ndarray) -> Spread | None:
    """The likeliest spread of what a location leaves, as if that were normal.

    Parameters
    ----------
    causes : ndarray (n, causes)
    left : ndarray (n,)
    share : ndarray (n,)
        Weights of the rows; their sum is one.
    """
    a, square = _with_one(causes), left**2
    size, unit = 2 * a.shape[1], float(np.sqrt(share @ square))
    if not causes.shape[1] or not unit > FINE:
        return None

    def loss(at: np.ndarray, raised: bool) -> tuple[float, np.ndarray]:
        lines = a @ at[:size].reshape(2, -1).T
        total = _squares(lines)
        variance = total**2 + raised * at[-1] ** 2 + LEAST**2
        pull = share * (1.0 - square / variance) / variance
        slope = 2.0 * ((pull * total)[:, None] * lines).T @ a
        value = 0.5 * share @ (np.log(variance) + square / variance)
        return float(value), np.append(slope.ravel(), raised * pull.sum() * at[-1])

    def best(raised: bool) -> Any:
        rng, found = np.random.default_rng(0), []
        for _ in range(TRIES):
            start = rng.standard_normal(size) * np.sqrt(unit / a.shape[1])
            start = np.append(start, 0.3 * unit)
            found.append(minimize(loss, start, args=(raised,), jac=True, method="L-BFGS-B"))
        return min(found, key=lambda one: one.fun)

    price = 0.5 * PRICE * np.log(len(left)) / len(left)
    plain, raised = best(False), best(True)
    better = raised.fun < plain.fun - price
    found = raised if better else plain
    if not found.fun < np.log(unit) + 0.5 - price * (size - 1):
        return None
    return Spread(abs(float(found.x[-1])) if better else 0.0, found.x[:size].reshape(2, -1))


def _with_one(causes: np.ndarray) -> np.ndarray:
    return np.hstack([np.ones((len(causes), 1)), causes])


def _squares(lines: np.ndarray) -> np.ndarray:
    return (lines**2).sum(1)
