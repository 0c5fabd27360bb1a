"""Which column is likely the treatment and which the outcome: a guess, from names and kinds."""

from __future__ import annotations

import re
from collections.abc import Mapping

from vaca.graph.dag import CausalGraph
from vaca.table.schema import Column

__all__ = ["guess_roles", "likely_question"]

_TREATMENT = re.compile(
    r"(^|_)(treat(ed|ment)?|trt|exposed|exposure|intervention|assigned|arm|programme?|policy|"
    r"dose|drug|quit|qsmk|z|t|w)(_|\d|$)",
    re.IGNORECASE,
)
_OUTCOME = re.compile(
    r"(^|_)(y|outcome|response|result|target|label|score|died?|death|survived|approved|default|"
    r"earnings|income|wage|pay|sales|revenue|churn|re78)(_|\d|$)",
    re.IGNORECASE,
)


def guess_roles(
    columns: Mapping[str, Column], treatment: str | None = None, outcome: str | None = None
) -> tuple[str | None, str | None]:
    """The likely treatment and outcome of a table without a graph; what is given is kept.

    Names decide first (`treat`, `y`); else the treatment is a binary column and the outcome the
    last of the other columns.

    >>> guess_roles(
    ...     {
    ...         "age": Column("count"),
    ...         "treat": Column("binary", (0, 1)),
    ...         "re78": Column("continuous"),
    ...     }
    ... )
    ('treat', 're78')
    """
    names = [name for name in columns if name not in (treatment, outcome)]
    if treatment is None:
        two = [name for name in names if columns[name].kind == "binary"]
        named = [name for name in two if _TREATMENT.search(name)] or [
            name for name in names if _TREATMENT.search(name) and len(name) > 1
        ]
        treatment = next(iter([*named, *two]), None)
    if outcome is None:
        rest = [name for name in names if name != treatment]
        named = [name for name in rest if _OUTCOME.search(name)]
        outcome = next(iter([*reversed(named), *reversed(rest)]), None)
    return treatment, outcome


def likely_question(
    graph: CausalGraph, columns: Mapping[str, Column]
) -> tuple[str | None, str | None]:
    """The cause and the effect that a user of this graph most likely asks about.

    The outcome is a column without effects and with the most causes. The treatment is one of its
    causes that can be set on its own: by its name, else a binary one, else the nearest.

    >>> graph = CausalGraph.from_text("{age, educ} -> treat -> pay")
    >>> kinds = dict.fromkeys(graph.all_columns, Column("continuous"))
    >>> likely_question(graph, kinds)
    ('treat', 'pay')
    """
    alone = [node for node in graph.order if len(graph.columns(node)) == 1]
    column = {node: graph.columns(node)[0] for node in alone}
    causes = {node: [a for a in graph.ancestors(node) if a in column] for node in alone}
    ends = [node for node in alone if causes[node]]
    if not ends:
        return None, None
    leaves = set(graph.leaves)

    def weight(node: str) -> tuple[bool, bool, int, int]:
        named = bool(_OUTCOME.search(column[node]))
        return node in leaves, named, len(graph.ancestors(node)), graph.order.index(node)

    outcome = max(ends, key=weight)

    def claim(node: str) -> tuple[bool, bool, bool, int]:
        return (
            bool(_TREATMENT.search(column[node])),
            columns[column[node]].kind == "binary",
            node in graph.parents(outcome),
            graph.order.index(node),
        )

    return column[max(causes[outcome], key=claim)], column[outcome]
