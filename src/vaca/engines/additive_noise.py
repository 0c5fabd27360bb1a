r"""Additive noise model: the plain strong baseline.

.. math:: x_j = f_j(x_{pa(j)}) + u_j

with :math:`f_j` a regressor chosen by cross-validation and :math:`u_j` drawn from its residuals;
discrete columns by a classifier with threshold or Gumbel-max noise; roots as observed.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from scipy.special import log_softmax

from vaca.engines.choosing_predictors import (
    choose_classifier,
    choose_regressor,
    refit_classifier,
    refit_regressor,
)
from vaca.engines.columnwise import ColumnwiseEngine
from vaca.engines.fit_input import FitInput
from vaca.engines.predictors import Predictor, from_arrays, to_arrays
from vaca.table.progress import progress_bar
from vaca.table.schema import Columns

__all__ = ["AdditiveNoise"]

#: With more columns than this to learn, trees are grown only where small ones find something.
MANY = 20


@dataclass(eq=False, repr=False, kw_only=True)
class AdditiveNoise(ColumnwiseEngine):
    r"""Per column a scikit-learn regressor or classifier plus the empirical residual.

    Regressors tried: ridge on polynomials of degree 1 to 3 and on splines, gradient-boosted trees,
    and splines with trees for what they leave. Classifiers: frequencies, logistic regression on
    polynomials of degree 1 and 2 and on splines, gradient-boosted trees (up to 12 levels). The
    noise is drawn from residuals on rows that the regressor had not seen.

    It takes what all engines take: see `vaca.engines.parameters.EngineParameters`.

    Attributes
    ----------
    mechanisms_ : Series
        The kind of regressor or classifier that was chosen for each column.

    Examples
    --------
    >>> import vaca
    >>> scm = vaca.scms.load("triangle-lin")
    >>> model = vaca.AdditiveNoise(scm.graph).fit(scm.sample(300, seed=0))
    >>> round(model.effect("x2", {"x1": 1.0}, {"x1": 0.0}).value)
    -1
    """

    mechanisms_: pd.Series = field(init=False)

    # ------------------------------------------------------------------ learning

    def _fit(self, given: FitInput) -> None:
        rows, w = given.together()  # cross-validation holds out rows of its own
        self.n_rows_ = len(w)
        self._models: dict[str, Predictor] = {}
        self._residuals: dict[str, np.ndarray] = {}
        brief = sum(map(bool, self._parents.values())) > MANY
        chosen: dict[str, str] = {}
        total, wanted = len(self._parents), given.progress
        with progress_bar("fit", total, unit="columns", wanted=wanted) as bar:
            for column in self._parents:
                bar.begin(column)
                chosen[column] = self._choose(column, rows, w, brief)
        self.mechanisms_ = pd.Series(chosen, name="mechanism")

    def _choose(self, column: str, rows: Columns, w: np.ndarray, brief: bool) -> str:
        """Fit the best of all predictors to a column; gives its name."""
        y, parents = rows[column], self._parents[column]
        if column in self._observed:
            return "as observed"
        if self._discrete(column):
            x = self._inputs(column, rows) if parents else np.zeros((len(y), 1))
            levels = len(self.schema_.levels(column))
            self._models[column], name = choose_classifier(x, y, w, levels, self.seed, brief=brief)
        elif parents:
            x = self._inputs(column, rows)
            model, residual, name = choose_regressor(x, y, w, self.seed, brief=brief)
            self._models[column], self._residuals[column] = model, _even(residual, w)
        else:
            self._residuals[column], name = _even(y, w), "as observed"
        return name

    def _refit(self, train: Columns, weights: np.ndarray, seed: int) -> AdditiveNoise:
        result = copy.copy(self)
        result._models, result._residuals = {}, {}
        result._weigh_blocks(weights)
        for column, parents in self._parents.items():
            if column in self._observed:
                continue
            y, name = train[column], self.mechanisms_[column]
            if not parents and not self._discrete(column):
                result._residuals[column] = _even(y, weights)
                continue
            x = self._inputs(column, train) if parents else np.zeros((len(y), 1))
            model = self._models[column]
            if self._discrete(column):
                levels = len(self.schema_.levels(column))
                result._models[column] = refit_classifier(model, name, x, y, weights, levels)
            else:
                result._models[column], residual = refit_regressor(
                    model, name, x, y, weights, self.seed
                )
                result._residuals[column] = (
                    self._residuals[column] if residual is None else _even(residual, weights)
                )
        return result

    def _inputs(self, column: str, x: Columns) -> np.ndarray:
        """Parents of a column as numbers (n, features); levels one-hot."""
        parts = []
        for parent in self._parents[column]:
            values = x[parent]
            levels = len(self.schema_.levels(parent))
            if levels > 2:
                parts.append(np.eye(levels)[values])
            else:
                parts.append(np.asarray(values, float)[:, None])
        return np.concatenate(parts, axis=1)

    # ------------------------------------------------------------------ mechanisms

    def _mean(self, column: str, x: Columns) -> np.ndarray | float:
        if column not in self._models:
            return 0.0
        return self._models[column](self._inputs(column, x))[:, 0]

    def _draw(self, column: str, n: int, rng: np.random.Generator) -> np.ndarray:
        return rng.choice(self._residuals[column], size=n)

    def _noise_of(
        self, columns: list[str], x: Columns, rng: np.random.Generator | None
    ) -> dict[str, np.ndarray]:
        return {c: x[c] - self._mean(c, x) for c in columns}

    def _value_of(
        self, columns: list[str], u: dict[str, np.ndarray], x: Columns
    ) -> dict[str, np.ndarray]:
        return {c: self._counted(c, self._mean(c, x) + u[c]) for c in columns}

    def _log_levels(self, columns: list[str], x: Columns, n: int) -> dict[str, np.ndarray]:
        result = {}
        for column in columns:
            inputs = self._inputs(column, x) if self._parents[column] else np.zeros((n, 1))
            result[column] = log_softmax(self._models[column](inputs), axis=1)
        return result

    def _assumption(self, column: str) -> tuple[bool, str]:
        exact, text = super()._assumption(column)
        if not self._discrete(column):
            return True, "noise is added to a function of the parents, with the same spread"
        return exact, text

    # ------------------------------------------------------------------ save and load

    def _state(self) -> dict[str, np.ndarray]:
        state = {f"residual/{c}": values for c, values in self._residuals.items()}
        for column, model in self._models.items():
            state |= {f"model/{k}/{column}": v for k, v in to_arrays(model).items()}
        if self._block_weights is not None:
            state["block_weights"] = self._block_weights
        names = json.dumps(self.mechanisms_.to_dict())
        return state | {"mechanisms": np.frombuffer(names.encode(), np.uint8)}

    def _set_state(self, state: dict[str, np.ndarray]) -> None:
        self._residuals, parts = {}, {}
        self._block_weights = state.get("block_weights")
        for key, values in state.items():
            kind, _, rest = key.partition("/")
            if kind == "residual":
                self._residuals[rest] = values
            elif kind == "model":
                name, _, column = rest.partition("/")
                parts.setdefault(column, {})[name] = values
        self._models = {column: from_arrays(arrays) for column, arrays in parts.items()}
        text = bytes(state["mechanisms"]).decode()
        # Older models hold lines of two fields with a tab between.
        lines = [line.rsplit("\t", 1) for line in text.split("\n")]
        names = json.loads(text) if text.startswith("{") else dict(lines)
        self.mechanisms_ = pd.Series(names, name="mechanism")


def _even(values: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Values of equal weight, as many, with the distribution of the weighted ones."""
    if not np.ptp(w) > 0:
        return values.copy()
    order = np.argsort(values, kind="stable")
    at = (np.arange(len(values)) + 0.5) / len(values)
    place = np.searchsorted(np.cumsum(w[order]) / w.sum(), at)
    return values[order][np.minimum(place, len(values) - 1)]
