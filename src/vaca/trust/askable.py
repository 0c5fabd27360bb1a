"""What can be asked: for which rows the data hold both sides of a question.

A question about a node with causes compares values of it among rows whose causes are alike. Where
such rows hardly ever have one of the values, the answer is the model's extrapolation. Numbers are
asked about by thirds (low, middle, high), levels by level: the chance of each, given the node's
causes, is learned on other rows, and a row *extrapolates* where that of a value to compare is below
`RARE` (of a rare level: below a tenth of its share).
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from vaca.graph.dag import CausalGraph
from vaca.table.schema import Columns, Schema
from vaca.table.words import shown_number
from vaca.trust.leftover import chances, inputs, some_rows

__all__ = ["questions"]

ROWS = 5000
RARE = 0.02
#: A question with a larger share of rows that extrapolate is not safe.
SAFE = 0.1


def questions(
    graph: CausalGraph, schema: Schema, rows: Columns, *, seed: int = 0
) -> tuple[pd.DataFrame, dict[str, pd.DataFrame]]:
    """Each likely treatment (a node of one column with effects), and whether the data can answer.

    Returns
    -------
    DataFrame
        Indexed by treatment: `compared` (the values), `extrapolates` (share of rows), `safe`.
    dict of DataFrame
        For each treatment with causes: `chance` of the last value compared, and `has` it or not,
        for each row looked at; for the picture.
    """
    rows = some_rows(rows, ROWS, seed)
    table, pictures = [], {}
    for node in graph.order:
        if not graph.children(node) or len(graph.columns(node)) > 1:
            continue
        name = graph.columns(node)[0]
        groups, labels = _groups(rows[name], schema, name)
        if len(labels) < 2:
            continue
        causes = [c for parent in graph.parents(node) for c in graph.columns(parent)]
        one_hot = (groups[:, None] == np.arange(len(labels))).astype(float)
        share = one_hot.mean(axis=0)
        if causes:
            chance = chances(inputs(rows, schema, causes), one_hot, seed)
            limit = np.minimum(RARE, share / 10)
            lacking = float((chance[:, [0, -1]] < limit[[0, -1]]).any(axis=1).mean())
            shown = pd.DataFrame({"chance": chance[:, -1], "has": one_hot[:, -1] > 0})
            pictures[node] = shown
        else:
            lacking = 0.0
        table.append(
            {
                "treatment": node,
                "compared": f"{labels[0]} and {labels[-1]}",
                "extrapolates": lacking,
                "safe": lacking <= SAFE,
            }
        )
    names = ["treatment", "compared", "extrapolates", "safe"]
    return pd.DataFrame(table, columns=names).set_index("treatment"), pictures


def _groups(values: np.ndarray, schema: Schema, name: str) -> tuple[np.ndarray, list[str]]:
    """Group of each row, and what the groups are called; levels by how often they occur."""
    if not schema[name].discrete:
        cuts = np.unique(np.quantile(values, [1 / 3, 2 / 3]))
        groups = np.searchsorted(cuts, values, side="left")
        kept, groups = np.unique(groups, return_inverse=True)
        lowest, highest = cuts[0], cuts[-1]
        labels = [f"up to {shown_number(lowest)}", "the middle", f"above {shown_number(highest)}"]
        return groups, [labels[0], *(["the middle"] if len(kept) > 2 else []), labels[2]][
            : len(kept)
        ]
    levels = schema[name].levels
    counts = np.bincount(values, minlength=len(levels))
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] > 0]
    if schema[name].kind == "binary":
        order = np.sort(order)
    else:  # the two most frequent at the ends, the rest between
        order = np.concatenate([order[:1], order[2:], order[1:2]])
    place = np.full(len(levels), 0)
    place[order] = np.arange(len(order))
    return place[values], [str(levels[k]) for k in order]
