"""Regions of a table in which a level does not occur, found by trees.

A rule such as "nobody over 60 with a child is treated" has a shape that no smooth curve follows.
Trees find it: one grows on half of the rows, the other half says how often the level occurs in each
leaf, and the halves swap, so that no leaf is empty only because the tree looked for it.
"""

from __future__ import annotations

import numpy as np

__all__ = ["Regions"]

#: Leaves of a tree at most, and the fewest rows of one.
LEAVES, LEAF_ROWS = 16, 20
#: Confidence of the upper bound on the share of a level in a leaf.
SURE = 0.95


class Regions:
    """Two trees that predict the levels of a column, and the shares of levels in their leaves.

    Parameters
    ----------
    design : ndarray of shape (n, features)
    level : ndarray of int (n,)
    count : int
        How many levels there are.
    weights : ndarray (n,), optional

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(2000, 2))
    >>> level = rng.integers(0, 2, 2000) * ~((x > 0).all(axis=1))
    >>> Regions(x, level, 2).at_most(np.array([[1.0, 1.0], [1.0, -1.0]]), 1) < 0.02
    array([ True, False])
    """

    def __init__(
        self, design: np.ndarray, level: np.ndarray, count: int, weights: np.ndarray | None = None
    ) -> None:
        from scipy.stats import beta
        from sklearn.tree import DecisionTreeClassifier

        w = np.ones(len(level)) if weights is None else weights / weights.mean()
        half = np.random.default_rng(0).permutation(len(level)) % 2 == 0
        self.parts = []
        for grown in (half, ~half):
            tree = DecisionTreeClassifier(
                max_leaf_nodes=LEAVES, min_samples_leaf=LEAF_ROWS, random_state=0
            )
            tree.fit(design[grown], level[grown], w[grown])
            table = np.zeros((tree.tree_.node_count, count))
            np.add.at(table, (tree.apply(design[~grown]), level[~grown]), w[~grown])
            others = table.sum(axis=1, keepdims=True) - table
            # An upper bound: none seen among few rows says little.
            self.parts.append((tree, beta.ppf(SURE, table + 1.0, np.maximum(others, 1e-9))))

    def at_most(self, design: np.ndarray, level: int) -> np.ndarray:
        """The smaller of the trees' upper bounds (n,) on the share of a level, for such rows."""
        found = [shares[tree.apply(design), level] for tree, shares in self.parts]
        return np.minimum(*found)
