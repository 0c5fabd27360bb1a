"""What all learned models share: the constructor rule, `fit`, and save and load."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from vaca.errors import NotFittedError, SchemaError, VacaError
from vaca.graph.dag import CausalGraph
from vaca.model.causal_model import CausalModel
from vaca.model.intervention import Intervention
from vaca.model.support import Overlap
from vaca.table.schema import Column, Columns, Kind, Schema, as_frame

#: Fewer rows than this teach a model nothing.
MIN_ROWS = 10
#: The share of rows held out for early stopping when no validation table is given.
VALIDATION_SHARE = 0.15


class Engine(CausalModel, BaseEstimator, abc.ABC):
    """A causal model that is fitted to a table and a graph.

    A subclass writes its hyper-parameters out in its constructor and stores them as given
    (scikit-learn's rule, so `get_params`, `set_params` and `clone` work), and implements `_fit`,
    `_state` and `_set_state` beside the three primitives of `CausalModel`.

    Attributes
    ----------
    schema_ : Schema
        The kind, levels and observed range of every column.
    overlap_ : Overlap
        Which combinations of causes the data hold.
    n_rows_ : int
        Training rows.
    history_ : DataFrame
        One row per epoch, for engines trained by gradient steps; else empty.
    """

    graph: CausalGraph
    schema: Schema | Mapping[str, Kind | Column] | None
    seed: int
    overlap_: Overlap = Overlap({}, {})  # nothing is known before `fit`
    n_rows_: int
    history_: pd.DataFrame

    def fit(
        self,
        data: Any,
        validation: Any = None,
        *,
        progress: bool | None = None,
        checkpoint: str | Path | None = None,
    ) -> Any:
        """Learn from a table.

        Parameters
        ----------
        data : DataFrame
            One row per observation; the columns that the graph names are used.
        validation : DataFrame, optional
            Rows for early stopping; by default 15 % of `data`, chosen by the seed.
        progress : bool, optional
            Show a progress bar; by default only on a terminal.
        checkpoint : path, optional
            A file kept during training, from which a killed fit goes on when called again.

        Returns
        -------
        self
        """
        if not isinstance(self.graph, CausalGraph):
            raise VacaError(
                f"graph must be a vaca.CausalGraph; got {type(self.graph).__name__}. Make one with "
                "vaca.CausalGraph.from_edges([(cause, effect), ...])"
            )
        frame = as_frame(data)
        if len(frame) < MIN_ROWS:
            raise SchemaError(
                f"the table has {len(frame)} row(s); at least {MIN_ROWS} are needed to learn from"
            )
        schema = self._choose_schema(frame)
        train = schema.encode(frame)
        overlap = Overlap.of(train, self.graph, schema)
        if validation is None:
            train, held_out = _split(train, len(frame), self.seed)
        else:
            held_out = schema.encode(validation)
        self.schema_, self.overlap_ = schema, overlap
        self.n_rows_ = len(next(iter(train.values())))
        self.history_ = pd.DataFrame()
        try:
            self._fit(train, held_out, progress, checkpoint)
        except BaseException:
            del self.schema_  # a half-trained model must not answer
            raise
        return self

    def _choose_schema(self, frame: pd.DataFrame) -> Schema:
        if isinstance(self.schema, Schema):
            missing = [c for c in self.graph.all_columns if c not in self.schema]
            if missing:
                raise SchemaError(f"the schema lacks the column {missing[0]!r} of the graph")
            extra = [c for c in self.schema if c not in self.graph.all_columns]
            if extra:
                raise SchemaError(f"the schema names {extra[0]!r}, which the graph does not")
            # Ranges and dtypes come from the data; kinds and levels from the user.
            kinds = {name: self.schema[name] for name in self.schema}
            return _with_ranges(Schema.infer(frame, self.graph, kinds), frame)
        return _with_ranges(Schema.infer(frame, self.graph, self.schema), frame)

    def save(self, path: str | Path, overwrite: bool = True) -> None:
        """Write the fitted model to a folder of JSON and safetensors; `vaca.load` reads it."""
        from vaca.engines.persistence import save

        save(self, path, overwrite=overwrite)

    def _unseen(self, intervention: Intervention, x: Columns) -> list[str]:
        return self.overlap_.sentences(x, self.graph, list(intervention.parts))

    # ------------------------------------------------------------------ for subclasses

    @abc.abstractmethod
    def _fit(
        self,
        train: Columns,
        validation: Columns,
        progress: bool | None,
        checkpoint: str | Path | None,
    ) -> None:
        """Learn from encoded rows."""

    @abc.abstractmethod
    def _state(self) -> dict[str, np.ndarray]:
        """Everything learned, as arrays (see `_set_state`)."""

    @abc.abstractmethod
    def _set_state(self, state: dict[str, np.ndarray]) -> None:
        """Become fitted again from `_state`; `graph`, parameters and `schema_` are set already."""

    def __getattr__(self, name: str) -> Any:
        # Reached only when normal look-up fails: fitted attributes before `fit`.
        if name.endswith("_") and not name.startswith("_"):
            raise NotFittedError(
                f"this {type(self).__name__} has not been fitted (it has no {name!r}); "
                "call .fit(df) first"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def _with_ranges(schema: Schema, frame: pd.DataFrame) -> Schema:
    """The schema with the observed range of columns that the user described without one."""
    from dataclasses import replace

    columns = {}
    for name, column in schema.items():
        if not column.discrete and column.low is None:
            values = schema.encode_column(name, frame[name])
            column = replace(column, low=float(values.min()), high=float(values.max()))
        columns[name] = column
    return Schema(columns)


def _split(columns: Columns, n: int, seed: int) -> tuple[Columns, Columns]:
    order = np.random.default_rng([seed, 1]).permutation(n)
    held_out = max(1, round(VALIDATION_SHARE * n))
    keep, out = order[held_out:], order[:held_out]
    return {k: v[keep] for k, v in columns.items()}, {k: v[out] for k, v in columns.items()}
