r"""How the sensitive attribute reaches a prediction: directly, or through which mediator.

A person's gap is :math:`h(x^{CF}) - h(x^F)`. Its parts are found by path-specific counterfactuals:
the predictor is shown some inputs at their counterfactual value and holds the others at their
factual one. With parts :math:`P` (the sensitive attribute itself, and each mediator) and
:math:`v(A)` the prediction when the parts in A are counterfactual, a part's share is its Shapley
value

.. math:: \phi_j = \sum_{A \subseteq P \setminus j} \frac{|A|! (|P| - |A| - 1)!}{|P|!}
          \big( v(A \cup j) - v(A) \big),

the effect of switching j, averaged over the orders in which parts can be switched. The shares add
up to the gap exactly. For a predictor that is additive in its inputs, every order gives the same.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from vaca.fairness.predictor import Predictor

#: Up to this many parts every subset is tried; with more, random orders stand for all of them.
EXACT_PARTS = 6
#: Orders drawn in that case, each together with its reverse.
ORDERS = 8
DIRECT = "direct"
TOTAL = "total"


@dataclass(frozen=True)
class Part:
    """One way of reaching the prediction: the columns that carry it."""

    label: str
    columns: tuple[str, ...]


def predictions_needed(parts: int) -> int:
    """How often the predictor is asked about every row.

    >>> predictions_needed(3)
    8
    """
    return 2**parts if parts <= EXACT_PARTS else 2 * ORDERS * parts


def shapley_shares(
    predictor: Predictor,
    parts: list[Part],
    factual: pd.DataFrame,
    counterfactual: pd.DataFrame,
) -> tuple[np.ndarray, np.ndarray]:
    """Each part's share of every row's gap, and what the part does when switched alone.

    Parameters
    ----------
    factual, counterfactual : DataFrame
        n rows each, paired.

    Returns
    -------
    shares, alone : ndarray of shape (n, parts)
    """
    shape = len(factual), len(parts)
    shares, alone = np.zeros(shape), np.zeros(shape)
    read = read_parts(predictor, parts)

    @functools.cache
    def value(chosen: frozenset[int]) -> np.ndarray:
        return predictor(_mixed(factual, counterfactual, [parts[j] for j in chosen]))

    if len(read) <= EXACT_PARTS:
        for j in read:
            others = [i for i in read if i != j]
            for size in range(len(others) + 1):
                weight = 1 / (len(read) * math.comb(len(others), size))
                for chosen in itertools.combinations(others, size):
                    before = frozenset(chosen)
                    shares[:, j] += weight * (value(before | {j}) - value(before))
    else:
        rng = np.random.default_rng(0)
        orders = [rng.permutation(read).tolist() for _ in range(ORDERS)]
        for order in orders + [o[::-1] for o in orders]:
            for at, j in enumerate(order):
                before = frozenset(order[:at])
                shares[:, j] += (value(before | {j}) - value(before)) / (2 * ORDERS)
    for j in read:
        alone[:, j] = value(frozenset({j})) - value(frozenset())
    return shares, alone


def read_parts(predictor: Predictor, parts: list[Part]) -> list[int]:
    """The parts that the predictor can see at all; the others' shares are zero."""
    seen = predictor.features
    return [j for j, p in enumerate(parts) if seen is None or set(p.columns) & set(seen)]


def _mixed(factual: pd.DataFrame, counterfactual: pd.DataFrame, parts: list[Part]) -> pd.DataFrame:
    switched = {c for part in parts for c in part.columns}
    return pd.DataFrame(
        {
            c: (counterfactual if c in switched else factual)[c].array
            for c in counterfactual.columns
        },
        index=counterfactual.index,
        copy=False,
    )
