"""Can this model be relied on: its graph, its fit, its questions, in one look.

Every part is a figure with a reference and a verdict of its own; the verdict of the whole is the
worst of them. What the parts measure is in the modules beside this one; here they are put together
and put into words.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd

from vaca.engines.engine import KEPT_ROWS
from vaca.errors import VacaError
from vaca.graph.parts import check_path
from vaca.model.arguments import check_model, check_seed
from vaca.model.causal_model import CausalModel
from vaca.table.columns import row_count, take_rows
from vaca.table.progress import progress_bar
from vaca.table.schema import Columns, as_frame
from vaca.trust import fit
from vaca.trust.agreement import other_engine
from vaca.trust.askable import questions
from vaca.trust.axioms import axioms
from vaca.trust.graph_check import GraphCheck, check_graph
from vaca.trust.leftover import some_rows
from vaca.trust.verdicts import (
    PART,
    Verdict,
    axiom_part,
    column_parts,
    engine_part,
    noise_part,
    question_part,
    rows_part,
    worst,
)

__all__ = ["Check", "check"]

#: Width of the text.
LINE = 96
#: Rows that any part looks at; larger tables are sampled.
MOST_ROWS = 20_000


@dataclass(frozen=True)
class Check:
    """What was found about a model; see `check`.

    Attributes
    ----------
    verdict : {"good", "doubtful", "bad"}
        The worst of the parts.
    parts : DataFrame
        part, verdict, figure, reference, words: a line for each part.
    graph : GraphCheck
        Independences and changes of arrows, ranked.
    columns, noise : DataFrame
        How each column fits given its causes; relations that its noise should not have.
    questions : DataFrame
        Each likely treatment, and the share of rows for which asking extrapolates.
    axioms, engines : DataFrame
        Axioms of counterfactuals, and main effects by another engine; empty if not measured.
    rows, held_out : int
        Rows of the table, and those that the fit was measured on.
    unseen : bool
        Whether the model had not been fitted to these.
    """

    verdict: Verdict
    parts: pd.DataFrame
    graph: GraphCheck
    columns: pd.DataFrame
    noise: pd.DataFrame
    questions: pd.DataFrame
    axioms: pd.DataFrame
    engines: pd.DataFrame
    rows: int
    held_out: int
    unseen: bool
    chances: dict[str, pd.DataFrame] = field(default_factory=dict, repr=False)

    def to_html(self, path: str | Path) -> Path:
        """Write one page with every part, and give its path."""
        from vaca.trust.check_page import write_page

        return write_page(self, check_path(path))

    def __str__(self) -> str:
        width = max(len(part) for part in self.parts["part"])
        lines = [
            fill(
                f"{line.part:<{width}}  {line.verdict:<8}  {line.words}",
                LINE, subsequent_indent=" " * (width + 12), break_long_words=False,
            )
            for line in self.parts.itertuples()
        ]  # fmt: skip
        return "\n".join([*lines, f"verdict: {self.verdict}"])


# ---------------------------------------------------------------------- the public functions


def check(
    model: CausalModel,
    data: Any,
    *,
    held_out: Any = None,
    quick: bool = False,
    seed: int = 0,
    progress: bool | None = None,
) -> Check:
    """Check a model against a table: does its graph hold, does it fit, what can be asked.

    Parameters
    ----------
    model : CausalModel
    data : DataFrame
        Rows of the population, in the columns of the model. If there are more than 20,000 rows,
        that many are drawn. For a model that expects missing values, only complete rows count.
    held_out : DataFrame, optional
        Rows that the model has not seen, for its fit. By default those rows of `data` that are not
        among the rows it was fitted to; if there are too few, all of `data`, and the check says so.
    quick : bool
        Leave out directions, relabelings, questions, axioms and the other engine.
    seed : int
    progress : bool, optional
        False for no progress bar; by default there is one on a terminal.

    Returns
    -------
    Check

    Examples
    --------
    >>> import vaca
    >>> scm = vaca.scms.load("chain-lin")
    >>> found = vaca.check(scm, scm.sample(500, seed=1), quick=True)
    >>> found.verdict
    'good'
    >>> found.parts.columns.tolist()
    ['part', 'verdict', 'figure', 'reference', 'words']
    """
    check_model("model", model)
    seed = check_seed(seed)
    frame = _complete(model, data)
    if len(frame) < MIN_ROWS:
        raise VacaError(
            f"the table has {len(frame)} row(s); at least {MIN_ROWS} are needed to check"
        )
    rows = model.schema_.encode(frame)
    if held_out is not None:
        test, unseen = model.schema_.encode(_complete(model, held_out)), True
    else:
        test, unseen = _unseen(model, rows)
    rows = some_rows(rows, MOST_ROWS, seed)
    with progress_bar("checking", 3 if quick else 6, unit="steps", wanted=progress) as bar:
        bar.begin("graph")
        graph = check_graph(model.graph, model.schema_, rows, quick=quick, seed=seed)
        bar.begin("fit")
        told = fit.two_samples(model, test, seed=seed)
        bar.begin("columns")
        drawn = fit.draw_again(model, test, seed=seed)
        columns = fit.column_fit(model, drawn, rows, seed=seed)
        noise = fit.noise_tests(model, drawn)
        parts = [
            *graph.parts.to_dict("records"),
            rows_part(told, row_count(test), unseen),
            *column_parts(columns),
            noise_part(noise),
        ]
        empty = pd.DataFrame()
        asked, chances, kept, others = empty, {}, empty, empty
        if not quick:
            bar.begin("questions")
            asked, chances = questions(model.graph, model.schema_, rows, seed=seed)
            bar.begin("axioms")
            kept = axioms(model, model.schema_.decode(test), seed=seed)
            bar.begin("engines")
            others = other_engine(model, model.schema_.decode(rows), seed=seed)
            parts += [question_part(asked), axiom_part(kept), engine_part(others)]
    table = pd.DataFrame([p for p in parts if p], columns=PART)
    return Check(
        worst(table["verdict"]), table, graph, columns, noise, asked, kept, others,
        rows=len(frame), held_out=row_count(test), unseen=unseen, chances=chances,
    )  # fmt: skip


# ---------------------------------------------------------------------- rows

MIN_ROWS = 50


def _complete(model: CausalModel, data: Any) -> pd.DataFrame:
    """The rows of a table; without those that have gaps, for a model that was told to expect them.

    Filling them in by the model would make them agree with it.
    """
    frame = as_frame(data)
    if getattr(model, "missing", "error") == "error":
        return frame
    return frame.dropna(subset=[c for c in model.schema_ if c in frame.columns])


def _unseen(model: CausalModel, rows: Columns) -> tuple[Columns, bool]:
    """Rows that the model was not fitted to, and True; all of them and False if that is unknown."""
    known = vars(model).get("rows_")
    if not known:
        # A model without training rows, such as an SCM, has seen none of them.
        return rows, "n_rows_" not in vars(model)
    if row_count(known) >= KEPT_ROWS:
        return rows, False  # only some of its rows are kept
    both = [
        np.ascontiguousarray(np.column_stack([np.asarray(side[c], float) for c in model.schema_]))
        for side in (rows, known)
    ]
    one, other = (m.view([("", m.dtype)] * m.shape[1]).ravel() for m in both)
    new = ~np.isin(one, other)
    if new.sum() < MIN_ROWS:
        return rows, False
    return take_rows(rows, new), True
