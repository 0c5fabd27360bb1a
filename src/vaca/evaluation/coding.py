"""The two sides of an evaluation, in one coding and on one scale."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vaca.errors import VacaError
from vaca.model.causal_model import CausalModel
from vaca.model.primitives import Noise
from vaca.table.schema import Columns, Schema
from vaca.table.standard import Standard

__all__ = ["Side", "Space"]


class Space:
    """Rows as a matrix of standardised columns and indicators, addressed by node.

    Two levels are one column of 0 and 1, as in the paper, or with `pairs` two columns.
    """

    def __init__(self, truth: CausalModel, training: Columns, pairs: bool = False) -> None:
        self.graph = truth.graph
        self._schema = truth.schema_
        self._pairs = pairs
        self._scale = {
            column: Standard.of(training[column])
            for column in self._schema
            if not self._schema[column].discrete
        }

    def matrix(self, x: Columns, nodes: Sequence[str], who: str, where: str) -> np.ndarray:
        parts: list[np.ndarray] = []
        for node in nodes:
            for column in self.graph.columns(node):
                part = self._column(column, x[column])
                if not np.isfinite(part).all():
                    row = int(np.flatnonzero(~np.isfinite(part).reshape(len(part), -1).all(1))[0])
                    raise VacaError(
                        f"{who} gave a value of {column!r} that is not finite {where}, first in "
                        f"row {row}; the model may not have converged"
                    )
                parts.append(part)
        return np.column_stack(parts)

    def _column(self, column: str, values: np.ndarray) -> np.ndarray:
        if column in self._scale:
            return self._scale[column].to(values)
        levels = len(self._schema.levels(column))
        if levels <= 2 and not self._pairs:
            return np.asarray(values, dtype=np.float64)
        return np.eye(levels)[np.asarray(values)]


class Side:
    """A causal model that takes and gives the truth's codes of categories."""

    def __init__(
        self, name: str, model: CausalModel, schema: Schema, rng: np.random.Generator
    ) -> None:
        self.name = name
        self.model = model
        self._rng = rng
        self._to: dict[str, np.ndarray] = {}
        self._from: dict[str, np.ndarray] = {}
        self._abducted: Noise = {}
        for column in schema:
            if column not in model.schema_:
                raise VacaError(f"the model has no column {column!r}, which the truth has")
            theirs, ours = model.schema_[column], schema[column]
            if theirs.discrete != ours.discrete:
                raise VacaError(
                    f"column {column!r} is {ours.kind} in the truth and {theirs.kind} in the "
                    "model; fit the model with the truth's schema"
                )
            if ours.discrete and theirs.levels != ours.levels:
                code = {level: i for i, level in enumerate(theirs.levels)}
                known = {level: i for i, level in enumerate(ours.levels)}
                strange = [level for level in theirs.levels if level not in known]
                if strange:
                    raise VacaError(
                        f"the model gives {strange[0]!r} for column {column!r}, a level that the "
                        "truth does not have; fit the model with the truth's schema"
                    )
                self._to[column] = np.array([code.get(level, -1) for level in ours.levels])
                self._from[column] = np.array([known[level] for level in theirs.levels])

    def _encode(self, x: Columns) -> Columns:
        out = {c: self._to[c][v] if c in self._to else v for c, v in x.items()}
        for column in self._to:
            if column in out and (out[column] < 0).any():
                raise VacaError(
                    f"the model has never seen one of the levels of column {column!r}; fit it "
                    "with the truth's schema"
                )
        return out

    def _answer(self, u: Noise, do: Columns) -> Columns:
        out = self.model.simulate(u, self._encode(do))
        return {c: self._from[c][v] if c in self._from else v for c, v in out.items()}

    def sample(self, n: int, do: Columns) -> Columns:
        return self._answer(self.model.noise(n, self._rng), do)

    def abduct(self, x: Columns, known: Noise | None = None) -> None:
        """Find the noise of the rows; the truth falls back on the noise that made them."""
        try:
            self._abducted = self.model.abduct(self._encode(x), None)
        except VacaError:
            # A row need not determine the noise behind it; the truth refuses to guess.
            if known is None:
                raise
            self._abducted = known

    def counterfactual(self, do: Columns) -> Columns:
        return self._answer(self._abducted, do)
