"""What all learned models share: `fit`, refits, and the rows that answers can be checked with."""

from __future__ import annotations

import abc
import inspect
from collections.abc import Mapping, Sequence
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from vaca.engines.fit_input import (
    MIN_ROWS,
    FitInput,
    check_refits,
    check_weights,
    choose_schema,
    complete,
    split_rows,
)
from vaca.engines.missing import check_missing, drop_gaps, gaps_of
from vaca.engines.parameters import EngineParameters, check_parameters
from vaca.errors import NotFittedError, SchemaError, VacaError, shorten
from vaca.graph.dag import CausalGraph
from vaca.model.answers import Effect
from vaca.model.arguments import check_count
from vaca.model.causal_model import CausalModel
from vaca.model.intervention import Intervention
from vaca.model.support import Overlap
from vaca.model.workers import each
from vaca.table.columns import join_rows, row_count, take_rows
from vaca.table.progress import progress_bar
from vaca.table.schema import Columns, Schema, as_frame

if TYPE_CHECKING:
    from typing_extensions import Self

#: How many rows of its table a model keeps.
KEPT_ROWS = 20_000


class Engine(CausalModel, EngineParameters, BaseEstimator, abc.ABC):
    """A causal model that is fitted to a table and a graph.

    A subclass declares its hyper-parameters as fields of a dataclass, which stores them as given
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
    rows_ : dict of array
        The rows of the table, encoded; a random sample of `KEPT_ROWS` if there are more. Whatever
        needs the data behind an answer finds them here.
    weights_ : array or None
        The weight of each of those rows, if weights were given.
    refits_ : sequence of Engine
        Fits to the same rows under other weights (see `fit`); their spread is the uncertainty of
        this fit.
    history_ : DataFrame
        One row per epoch, for engines trained by gradient steps; else empty.
    """

    _learned = True
    _weighs = True  # whether `_fit` can weigh rows
    #: Raised with every change of code that alters the answers of an engine at equal settings, so
    #: that outdated results can be recognised.
    revision: int = 1
    overlap_: Overlap = Overlap({}, {})  # nothing is known before `fit`
    n_rows_: int
    rows_: Columns
    weights_: np.ndarray | None = None
    refits_: Sequence[Engine] = ()
    _block_weights: np.ndarray | None = None  # of the kept rows, in a refit
    _where: Mapping[str, Any] = {}  # on which processes a fit is done
    history_: pd.DataFrame

    def fit(
        self,
        data: Any,
        validation: Any = None,
        *,
        weights: Any = None,
        refits: int = 0,
        jobs: int = 1,
        cluster: str | None = None,
        progress: bool | None = None,
        checkpoint: str | Path | None = None,
    ) -> Self:
        """Learn from a table.

        Parameters
        ----------
        data : DataFrame or path
            One row per observation; the columns that the graph names are used. From a path to a
            Parquet file or a folder of them, only as many rows as the engine can use are drawn, in
            one pass (`Composite`: its `max_rows`, `CausalFlow`: its `steps` times `batch_size`), so
            that memory does not grow with the table; ranges and levels are those of all rows.
        validation : DataFrame, optional
            Rows for early stopping; by default 15 % of `data`, chosen by the seed.
        weights : array or Series, optional
            One number of at least 0 for each row of `data`: how many rows it stands for.
        refits : int
            How many more fits to make, each started from this one, with random weights on the rows
            (a Bayesian bootstrap). With them, answers have intervals that cover the fit.
        jobs : int
            Local processes that share the columns and refits, for engines that can.
        cluster : str, optional
            Address of a Dask scheduler, such as "tcp://10.0.0.1:8786", whose workers do that work
            instead. The answers are the same.
        progress : bool, optional
            False for no progress bar; by default there is one on a terminal.
        checkpoint : path, optional
            A file kept during training: a killed fit continues from it when called again.

        Returns
        -------
        self
        """
        if not isinstance(self.graph, CausalGraph):
            raise VacaError(
                f"graph must be a vaca.CausalGraph; got {type(self.graph).__name__}. Make one with "
                "vaca.CausalGraph.from_edges([(cause, effect), ...])"
            )
        check_parameters(self)
        frame, edges = self._read(data, weights, progress)
        if len(frame) < MIN_ROWS:
            raise SchemaError(
                f"the table has {len(frame)} row(s); at least {MIN_ROWS} are needed to learn from"
            )
        refits = check_refits(refits)
        if refits and type(self)._refit is Engine._refit:
            self._refit({}, np.zeros(0), 0)  # says that there are none, before the long fit
        if weights is not None and not self._weighs:
            raise VacaError(
                f"{type(self).__name__} cannot use weights; leave them out, or take "
                "another engine, such as Composite"
            )
        given = check_weights(weights, frame)
        if check_missing(self.missing) == "drop":
            full = drop_gaps(frame, self.graph.all_columns)
            frame, given = frame[full], None if given is None else given[full]
            edges = edges.dropna(subset=[c for c in self.graph.all_columns if c in edges])
            validation = None if validation is None else complete(validation, self.graph)
        model_gaps = self.missing == "model"
        known = frame if edges.empty else pd.concat([frame, edges])
        schema = choose_schema(self.schema, known, self.graph, model_gaps)
        whole = schema.encode(frame, missing=model_gaps)
        filler = None
        if gaps_of(whole, schema):
            filler = self._filler(schema)
            whole = filler.learn(whole, given)
        overlap = Overlap.of(whole, self.graph, schema)
        keep, out = split_rows(len(frame), self.seed)
        if validation is None:
            train, held_out = take_rows(whole, keep), take_rows(whole, out)
            pair = None if given is None else (given[keep], given[out])
        else:
            train, held_out = whole, schema.encode(validation, missing=model_gaps)
            if gaps_of(held_out, schema):
                filler = filler or self._filler(schema).remember(whole, given)
                held_out = filler.fill(held_out, np.random.default_rng([self.seed, 15]))
            whole = join_rows([whole, held_out])
            if given is None:
                pair = None
            else:
                pair = (given, np.ones(row_count(held_out)))
                given = np.concatenate(pair)
        if cluster is not None and not isinstance(cluster, str):
            raise VacaError(f"cluster is the address of a Dask scheduler; got {shorten(cluster)}")
        self._where = {"jobs": check_count("jobs", jobs), "cluster": cluster}
        self.schema_, self.overlap_ = schema, overlap
        self.n_rows_ = row_count(train)
        self.history_ = pd.DataFrame()
        self.refits_ = ()
        self._known: dict[str, Any] = {}
        self._keep_rows(whole, given)
        try:
            self._fit(FitInput(train, held_out, pair, progress, checkpoint))
            self.refits_ = self._refits(whole, given, refits, filler, progress)
        except BaseException:
            del self.schema_  # a half-trained model must not answer
            raise
        return self

    def _read(
        self, data: Any, weights: Any, progress: bool | None
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The table to learn from, and rows that show what else can occur (see `Drawn`)."""
        if not isinstance(data, (str, Path)):
            frame = as_frame(data)
            return frame, frame.iloc[:0]
        from vaca.table.drawing import draw_rows

        if weights is not None:
            raise VacaError("weights are one number for each row of a DataFrame; read the table")
        with progress_bar("reading", unit="rows", wanted=progress) as bar:
            drawn = draw_rows(
                data,
                self._rows_wanted(),
                columns=self.graph.all_columns,
                seed=self.seed,
                progress=bar.advance,
            )
        return drawn.frame, drawn.edges

    def _rows_wanted(self) -> int:
        """Of a table in files: how many rows this engine can use."""
        return 10 * KEPT_ROWS

    def _keep_rows(self, rows: Columns, weights: np.ndarray | None) -> None:
        kept = kept_places(row_count(rows), self.seed)
        if len(kept) < row_count(rows):
            rows, weights = take_rows(rows, kept), None if weights is None else weights[kept]
        self.rows_, self.weights_ = rows, weights

    def _refits(
        self,
        rows: Columns,
        given: np.ndarray | None,
        count: int,
        filler: Any = None,
        progress: bool | None = False,
    ) -> list[Engine]:
        """Fits to the whole table under weights of a Bayesian bootstrap; gaps are filled again."""
        found: list[Engine] = []
        bare = copy(self)  # the rows are sent only once
        bare.rows_, bare.weights_ = {}, None
        shared = (bare, rows, given, filler)
        wanted = progress if count else False
        with progress_bar("refits", count, unit="refits", wanted=wanted) as bar:
            for member in each(_one_refit, shared, range(count), **self._where):
                member.rows_, member.weights_, member.refits_ = self.rows_, self.weights_, ()
                found.append(member)
                bar.advance()
        return found

    def _refit(self, train: Columns, weights: np.ndarray, seed: int) -> Engine:
        """A copy of this fitted engine, started from this fit, for rows (n,) with weights (n,).

        The weights have the mean 1. Rows are those of the whole table: an early stop has been
        made, and is not made again.
        """
        raise VacaError(
            f"{type(self).__name__} has no quick refits: fit it with refits=0, or fit several in "
            f'an ensemble, vaca.Ensemble(graph, "{type(self).__name__}")'
        )

    @cached_property
    def _observed(self) -> dict[str, str]:
        """Columns of blocks without causes, and their blocks: whole rows of these are drawn."""
        blocks = [n for n in self.graph.roots if len(self.graph.columns(n)) > 1]
        return {column: block for block in blocks for column in self.graph.columns(block)}

    def _drawn(self, n: int, rng: np.random.Generator) -> Columns:
        """Rows of the blocks without causes."""
        drawn: Columns = {}
        for block in dict.fromkeys(self._observed.values()):
            columns = self.graph.columns(block)
            weights = self.weights_ if self._block_weights is None else self._block_weights
            share = None if weights is None else weights / weights.sum()
            rows = rng.choice(len(self.rows_[columns[0]]), size=n, p=share)
            drawn.update({column: self.rows_[column][rows] for column in columns})
        return drawn

    def _weigh_blocks(self, weights: np.ndarray) -> None:
        """Use the weights of a refit, of the rows (n,) of the whole table, for blocks too."""
        if self._observed:
            self._block_weights = weights[kept_places(len(weights), self.seed)]

    def save(self, path: str | Path, overwrite: bool = True) -> None:
        """Write the fitted model to a folder of JSON and safetensors; `vaca.load` reads it."""
        from vaca.engines.persistence import save

        save(self, path, overwrite=overwrite)

    def _unseen(self, intervention: Intervention, x: Columns) -> list[str]:
        return self.overlap_.sentences(x, self.graph, list(intervention.parts))

    def _fits(self) -> tuple[CausalModel | None, Sequence[CausalModel]]:
        if self.refits_ and any(column.missing for column in self.schema_.values()):
            # One set of draws for what is missing is as good as another; their mean is better.
            return None, [self, *self.refits_]
        return self, self.refits_

    def _encode(self, frame: pd.DataFrame) -> Columns:
        return self.schema_.encode(frame, missing=self.missing == "model")

    def _filled(self, x: Columns, rng: np.random.Generator | None) -> Columns:
        if not gaps_of(x, self.schema_):
            return x
        # Refits are copies of this engine and share what is in here.
        known = self.__dict__.setdefault("_known", {})
        if "filler" not in known:
            known["filler"] = self._filler(self.schema_).remember(self.rows_, self.weights_)
        return known["filler"].fill(x, rng)

    def _filler(self, schema: Schema) -> Any:
        from vaca.engines.filling import Filler

        return Filler(self.graph, schema, self.seed)

    def _population(
        self, n: int, seed: int
    ) -> tuple[pd.DataFrame, np.ndarray | None, np.ndarray | None]:
        if not self.rows_:  # saved before rows were kept
            return super()._population(n, seed)
        places = np.arange(row_count(self.rows_))
        rows = self.schema_.decode(self.rows_, index=pd.RangeIndex(len(places)))
        return rows, self.weights_, places

    def _extrapolated(
        self, treatment: Mapping[str, Any], control: Mapping[str, Any], rows: pd.DataFrame | None
    ) -> np.ndarray | None:
        from vaca.engines.evidence import extrapolated

        return extrapolated(self, treatment, control, rows) if self.rows_ else None

    def _answerable(self, effect: Effect) -> dict[str, Any] | None:
        """A group for which the data can answer an effect's question, if not for everyone."""
        from vaca.engines.evidence import answerable

        return answerable(self, effect) if self.rows_ else None

    # ------------------------------------------------------------------ for subclasses

    @abc.abstractmethod
    def _fit(self, given: FitInput) -> None:
        """Learn from encoded rows."""

    #: Parameters that had another name in folders of format 1 and in stored runs, by that name.
    _renamed: Mapping[str, str] = {}

    @classmethod
    def _renew(cls, parameters: Mapping[str, Any]) -> tuple[type[Engine], dict[str, Any]]:
        """The class and the parameters that correspond to those of a folder of format 1."""
        known = inspect.signature(cls).parameters
        renewed = {cls._renamed.get(name, name): value for name, value in parameters.items()}
        if isinstance(renewed.get("patience"), int):  # epochs then, a share of them now
            epochs = renewed.get("epochs") or known["epochs"].default
            renewed["patience"] = renewed["patience"] / epochs
        for name in ("variance", "weight_decay"):  # None stood for the default
            if name in renewed and renewed[name] is None:
                del renewed[name]
        return cls, {name: value for name, value in renewed.items() if name in known}

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


def _one_refit(shared: tuple[Engine, Columns, np.ndarray | None, Any], k: int) -> Engine:
    """Refit number `k`, under weights of its own."""
    engine, rows, given, filler = shared
    weights = np.random.default_rng([engine.seed, k, 4]).standard_exponential(row_count(rows))
    weights = weights if given is None else weights * given
    weights = weights / weights.mean()
    if filler is not None:
        rows = filler.again(weights, engine.seed + 1 + k, rows)
    return engine._refit(rows, weights, engine.seed + 1 + k)


def kept_places(n: int, seed: int) -> np.ndarray:
    """Which of n rows a model keeps: all, or a random `KEPT_ROWS`, in their order."""
    if n <= KEPT_ROWS:
        return np.arange(n)
    return np.sort(np.random.default_rng([seed, 3]).permutation(n)[:KEPT_ROWS])
