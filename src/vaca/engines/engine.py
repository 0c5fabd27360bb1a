"""What all learned models share: `fit`, refits, and the rows that answers can be checked with."""

from __future__ import annotations

import abc
import inspect
from collections.abc import Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from vaca.engines.fit_input import FitInput
from vaca.engines.missing import check_missing, drop_gaps, gaps_of
from vaca.engines.parameters import EngineParameters, check_parameters
from vaca.errors import NotFittedError, SchemaError, VacaError
from vaca.graph.dag import CausalGraph
from vaca.model.answers import Effect
from vaca.model.arguments import check_count
from vaca.model.causal_model import CausalModel
from vaca.model.effects import EXTRAPOLATED
from vaca.model.intervention import Intervention
from vaca.model.support import Comparable, Overlap
from vaca.model.workers import each
from vaca.table.column import LARGEST
from vaca.table.schema import Columns, Schema, as_frame

if TYPE_CHECKING:
    from typing_extensions import Self

#: Fewer rows than this teach a model nothing.
MIN_ROWS = 10
#: The share of rows held out for early stopping when no validation table is given.
VALIDATION_SHARE = 0.15
#: Rows that a model keeps of its table.
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
        The rows of the table, encoded; of a table with more than `KEPT_ROWS`, so many by chance.
        What asks about the data behind an answer looks here.
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
    #: Grows with every change of code that alters the answers of an engine at equal settings, so
    #: that stored results can be told from what the engine would give now.
    revision: int = 1
    overlap_: Overlap = Overlap({}, {})  # nothing is known before `fit`
    n_rows_: int
    rows_: Columns
    weights_: np.ndarray | None = None
    refits_: Sequence[Engine] = ()
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
            One row per observation; the columns that the graph names are used. Of a path to a
            Parquet file or a folder of them, as many rows as the engine makes use of are drawn in
            one pass (`Composite`: its `max_rows`, `CausalFlow`: its `steps` times `batch_size`),
            so that memory does not grow with the table; ranges and levels are those of all rows.
        validation : DataFrame, optional
            Rows for early stopping; by default 15 % of `data`, chosen by the seed.
        weights : array or Series, optional
            One number of at least 0 for each row of `data`: how many rows it stands for.
        refits : int
            So many more fits, each started from this one and fitted under random weights of the
            rows (a Bayesian bootstrap). With them, answers have intervals that cover the fit.
        jobs : int
            Local processes among which columns and refits are divided, by engines that can.
        cluster : str, optional
            Address of a Dask scheduler, such as "tcp://10.0.0.1:8786", to whose workers columns
            and refits go instead. The answers are the same.
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
        check_parameters(self)
        frame, edges = self._read(data, weights, progress)
        if len(frame) < MIN_ROWS:
            raise SchemaError(
                f"the table has {len(frame)} row(s); at least {MIN_ROWS} are needed to learn from"
            )
        refits = _check_refits(refits)
        if refits and type(self)._refit is Engine._refit:
            self._refit({}, np.zeros(0), 0)  # says that there are none, before the long fit
        if weights is not None and not self._weighs:
            raise VacaError(
                f"{type(self).__name__} cannot use weights; leave them out, or take "
                "another engine, such as Composite"
            )
        given = _check_weights(weights, frame)
        if check_missing(self.missing) == "drop":
            complete = drop_gaps(frame, self.graph.all_columns)
            frame, given = frame[complete], None if given is None else given[complete]
            edges = edges.dropna(subset=[c for c in self.graph.all_columns if c in edges])
            validation = None if validation is None else _complete(validation, self.graph)
        schema = self._choose_schema(frame if edges.empty else pd.concat([frame, edges]))
        model_gaps = self.missing == "model"
        whole = schema.encode(frame, missing=model_gaps)
        filler = None
        if gaps_of(whole, schema):
            filler = self._filler(schema)
            whole = filler.learn(whole, given)
        overlap = Overlap.of(whole, self.graph, schema)
        keep, out = _split(len(frame), self.seed)
        if validation is None:
            train, held_out = _take(whole, keep), _take(whole, out)
            pair = None if given is None else (given[keep], given[out])
        else:
            train, held_out = whole, schema.encode(validation, missing=model_gaps)
            if gaps_of(held_out, schema):
                filler = filler or self._filler(schema).remember(whole, given)
                held_out = filler.fill(held_out, np.random.default_rng([self.seed, 15]))
            whole = {c: np.concatenate([whole[c], held_out[c]]) for c in whole}
            if given is None:
                pair = None
            else:
                pair = (given, np.ones(_length(held_out)))
                given = np.concatenate(pair)
        self._where = {"jobs": check_count("jobs", jobs), "cluster": cluster}
        self.schema_, self.overlap_ = schema, overlap
        self.n_rows_ = _length(train)
        self.history_ = pd.DataFrame()
        self.refits_ = ()
        self._known: dict[str, Any] = {}
        self._keep_rows(whole, given)
        try:
            self._fit(FitInput(train, held_out, pair, progress, checkpoint))
            self.refits_ = self._refits(whole, given, refits, filler)
        except BaseException:
            del self.schema_  # a half-trained model must not answer
            raise
        return self

    def _read(
        self, data: Any, weights: Any, progress: bool | None
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The table to learn from, and rows that say what can occur beside it (see `Drawn`)."""
        if not isinstance(data, (str, Path)):
            frame = as_frame(data)
            return frame, frame.iloc[:0]
        from vaca.table.drawing import draw_rows, reading_bar

        if weights is not None:
            raise VacaError("weights are one number for each row of a DataFrame; read the table")
        with reading_bar(None, progress) as advance:
            drawn = draw_rows(
                data,
                self._rows_wanted(),
                columns=self.graph.all_columns,
                seed=self.seed,
                progress=advance,
            )
        return drawn.frame, drawn.edges

    def _rows_wanted(self) -> int:
        """Of a table in files: rows beyond which more teach this engine nothing."""
        return 10 * KEPT_ROWS

    def _keep_rows(self, rows: Columns, weights: np.ndarray | None) -> None:
        kept = kept_places(_length(rows), self.seed)
        if len(kept) < _length(rows):
            rows, weights = _take(rows, kept), None if weights is None else weights[kept]
        self.rows_, self.weights_ = rows, weights

    def _refits(
        self, rows: Columns, given: np.ndarray | None, count: int, filler: Any = None
    ) -> list[Engine]:
        """Fits to the whole table under weights of a Bayesian bootstrap; gaps are filled anew."""
        found: list[Engine] = []
        bare = copy(self)  # the rows go along once
        bare.rows_, bare.weights_ = {}, None
        shared = (bare, rows, given, filler)
        for member in each(_one_refit, shared, range(count), **self._where):
            member.rows_, member.weights_, member.refits_ = self.rows_, self.weights_, ()
            found.append(member)
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

    def _choose_schema(self, frame: pd.DataFrame) -> Schema:
        gaps = self.missing == "model"
        if isinstance(self.schema, Schema):
            missing = [c for c in self.graph.all_columns if c not in self.schema]
            if missing:
                raise SchemaError(f"the schema lacks the column {missing[0]!r} of the graph")
            extra = [c for c in self.schema if c not in self.graph.all_columns]
            if extra:
                raise SchemaError(f"the schema names {extra[0]!r}, which the graph does not")
            # Ranges and dtypes come from the data; kinds and levels from the user.
            kinds = {name: self.schema[name] for name in self.schema}
            return _with_ranges(Schema.infer(frame, self.graph, kinds, missing=gaps), frame)
        return _with_ranges(Schema.infer(frame, self.graph, self.schema, missing=gaps), frame)

    def save(self, path: str | Path, overwrite: bool = True) -> None:
        """Write the fitted model to a folder of JSON and safetensors; `vaca.load` reads it."""
        from vaca.engines.persistence import save

        save(self, path, overwrite=overwrite)

    def _unseen(self, intervention: Intervention, x: Columns) -> list[str]:
        return self.overlap_.sentences(x, self.graph, list(intervention.parts))

    def _fits(self) -> tuple[CausalModel | None, Sequence[CausalModel]]:
        if self.refits_ and any(column.missing for column in self.schema_.values()):
            # One set of draws for what is missing is no better than another: their mean is.
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
        places = np.arange(_length(self.rows_))
        rows = self.schema_.decode(self.rows_, index=pd.RangeIndex(len(places)))
        return rows, self.weights_, places

    def _extrapolated(
        self, treatment: Mapping[str, Any], control: Mapping[str, Any], rows: pd.DataFrame | None
    ) -> np.ndarray | None:
        if not self.rows_:
            return None
        x = self.rows_ if rows is None else self._filled(self._encode(rows), None)
        n = _length(x)
        found = np.zeros(n, dtype=bool)
        for do in (treatment, control):
            intervention = self._parse(do)
            for value in (p for parts in intervention.parts.values() for p in parts.values()):
                if rows is None and (callable(value) or pd.api.types.is_list_like(value)):
                    return None  # of rows that are drawn, not of those in the data
            index = None if rows is None else rows.index
            intervention = intervention.encode_rows(n, index)
            intervention = intervention.draw_random(n, np.random.default_rng(0))
            asked = {**x, **intervention.resolve(lambda done: {**x, **done})}
            found |= self._beyond(x, asked, intervention)
        return found

    def _beyond(self, x: Columns, asked: Columns, intervention: Intervention) -> np.ndarray:
        """Rows `asked` that nothing in the data is like, though the rows `x` were."""
        found = self.overlap_.beyond(asked, self.graph, intervention.nodes)
        for node in intervention.nodes:
            causes = [c for p in self.graph.parents(node) for c in self.graph.columns(p)]
            for column in self.graph.columns(node):
                spec, values = self.schema_[column], asked[column]
                if not spec.discrete and spec.low is not None and spec.high is not None:
                    found |= (values < spec.low) | (values > spec.high)
                elif spec.discrete and causes:
                    likely = Comparable(self.rows_, column, causes, self.schema_, self.weights_)
                    for level in np.unique(values):
                        moved = (values == level) & (x[column] != level)
                        found |= moved & likely.lacking(asked, int(level))
        return found

    def _answerable(self, effect: Effect) -> dict[str, Any] | None:
        """Whom the data can answer the question of an effect for, if not for all."""
        if effect.among is not None or not self.rows_:
            return None
        rows, _, _ = self._population(0, 0)
        best: tuple[int, dict[str, Any]] | None = None
        for do in (effect.treatment, effect.control):
            for name, value in do.items():
                if name not in self.schema_ or not self.schema_[name].discrete:
                    continue
                if pd.api.types.is_list_like(value) or callable(value) or hasattr(value, "rvs"):
                    continue
                part = rows[self.rows_[name] == self.schema_.encode_value(name, value)]
                if len(part) < MIN_ROWS or (best is not None and len(part) <= best[0]):
                    continue
                far = self._extrapolated(effect.treatment, effect.control, part)
                if far is not None and far.mean() < EXTRAPOLATED:
                    best = len(part), {name: value}
        return None if best is None else best[1]

    # ------------------------------------------------------------------ for subclasses

    @abc.abstractmethod
    def _fit(self, given: FitInput) -> None:
        """Learn from encoded rows."""

    #: Parameters that had another name in folders of format 1 and in stored runs, by that name.
    _renamed: Mapping[str, str] = {}

    @classmethod
    def _renew(cls, parameters: Mapping[str, Any]) -> tuple[type[Engine], dict[str, Any]]:
        """The class and the parameters that answer to those of a folder of format 1."""
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


def _with_ranges(schema: Schema, frame: pd.DataFrame) -> Schema:
    """The schema with the observed range of columns that the user described without one."""
    from dataclasses import replace

    columns = {}
    for name, column in schema.items():
        if not column.discrete and column.low is None:
            values = column.encode(name, frame[name].dropna())
            column = replace(column, low=float(values.min()), high=float(values.max()))
        if column.low is not None and column.high is not None:
            width = column.high - column.low
            if 0 < width < 1 / LARGEST:
                raise SchemaError(
                    f"column {name!r}: its values, {width:g} apart at most, are too close to "
                    "compute with; use another unit"
                )
        columns[name] = column
    return Schema(columns)


def _one_refit(shared: tuple[Engine, Columns, np.ndarray | None, Any], k: int) -> Engine:
    """Refit number `k`, under weights of its own."""
    engine, rows, given, filler = shared
    weights = np.random.default_rng([engine.seed, k, 4]).standard_exponential(_length(rows))
    weights = weights if given is None else weights * given
    weights = weights / weights.mean()
    if filler is not None:
        rows = filler.again(weights, engine.seed + 1 + k, rows)
    return engine._refit(rows, weights, engine.seed + 1 + k)


def _complete(validation: Any, graph: CausalGraph) -> pd.DataFrame:
    frame = as_frame(validation)
    return frame.dropna(subset=[c for c in graph.all_columns if c in frame.columns])


def kept_places(n: int, seed: int) -> np.ndarray:
    """Which of n rows a model keeps: all, or `KEPT_ROWS` by chance, in their order."""
    if n <= KEPT_ROWS:
        return np.arange(n)
    return np.sort(np.random.default_rng([seed, 3]).permutation(n)[:KEPT_ROWS])


def _check_refits(refits: int) -> int:
    refits = check_count("refits", refits, 0, 10_000)
    if refits == 1:
        raise VacaError("one refit has no spread: refits is 0, or at least 2 (8 is usual)")
    return refits


def _check_weights(weights: Any, frame: pd.DataFrame) -> np.ndarray | None:
    """The weights of the rows with the mean 1."""
    if weights is None:
        return None
    if isinstance(weights, pd.Series) and not weights.index.equals(frame.index):
        raise VacaError("weights is a Series with another index than the table; align them first")
    try:
        found = np.asarray(weights, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise VacaError("weights has to be one number for each row of the table") from None
    if found.shape != (len(frame),):
        raise VacaError(f"weights has the shape {found.shape}; the table has {len(frame)} rows")
    wrong = np.flatnonzero(~np.isfinite(found) | (found < 0))
    if len(wrong):
        raise VacaError(
            f"weights are numbers of at least 0; row {wrong[0]} has {found[wrong[0]]:g}"
        )
    if np.count_nonzero(found) < MIN_ROWS:
        raise VacaError(
            f"only {np.count_nonzero(found)} rows have a weight above 0; at least "
            f"{MIN_ROWS} are needed to learn from"
        )
    return found / found.mean()


def _length(columns: Columns) -> int:
    return len(next(iter(columns.values())))


def _take(columns: Columns, rows: np.ndarray) -> Columns:
    return {name: values[rows] for name, values in columns.items()}


def _split(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Which rows to train on, and which to hold out."""
    order = np.random.default_rng([seed, 1]).permutation(n)
    held_out = max(1, round(VALIDATION_SHARE * n))
    return order[held_out:], order[:held_out]
