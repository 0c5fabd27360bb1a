"""Does the model keep the axioms of counterfactuals: measured on rows, in standard deviations.

- **composition**: doing nothing changes nothing;
- **effectiveness**: what is set has the value it is set to;
- **reversibility**: undoing a change gives the row back;
- **agreement**: over many rows, the mean of counterfactuals is the mean under the intervention.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd

from vaca.errors import SupportWarning, VacaError
from vaca.model.causal_model import CausalModel
from vaca.table.dtypes import as_numbers

__all__ = ["axioms"]

ROWS = 300
#: Rows drawn under an intervention, and rows whose counterfactuals are averaged.
MANY = 2000


def axioms(model: CausalModel, data: pd.DataFrame, *, seed: int = 0) -> pd.DataFrame:
    """Measure the axioms on rows of the data.

    Returns
    -------
    DataFrame
        Indexed by axiom: `off` (mean over rows and columns), `worst`, both in standard deviations
        of the column (levels: share of rows that differ), and `noise`, what chance alone explains.
        Empty if the model cannot abduct these rows.
    """
    data = data.sample(min(len(data), MANY), random_state=seed)
    some = data.iloc[:ROWS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SupportWarning)
        try:
            return _measured(model, data, some, seed)
        except VacaError:
            return pd.DataFrame(columns=["off", "worst", "noise"])


def _measured(
    model: CausalModel, data: pd.DataFrame, some: pd.DataFrame, seed: int
) -> pd.DataFrame:
    graph = model.graph
    found: dict[str, list[np.ndarray]] = {
        "composition": [],
        "effectiveness": [],
        "reversibility": [],
    }
    found["composition"].append(_apart(model, model.counterfactual(some, {}, seed=seed), some))
    causes = [n for n in graph.order if graph.children(n) and len(graph.columns(n)) == 1]
    agreement, chance = [], []
    for node in causes[-3:]:  # those nearest to the outcomes: most can go wrong above them
        value = _value(data[graph.columns(node)[0]], model, node)
        there = pd.DataFrame(model.counterfactual(some, {node: value}, seed=seed))
        found["effectiveness"].append(_apart(model, there, some.assign(**{node: value}), node))
        # Rows are taken back one by one, to what each was.
        back = model.counterfactual(there, {node: some[node]}, seed=seed)
        found["reversibility"].append(_apart(model, back, some))
        off, noise = _agreement(model, data, node, value, seed)
        agreement.append(off)
        chance.append(noise)
    table = {
        name: {"off": float(np.mean(parts)), "worst": float(np.max(parts)), "noise": 0.0}
        for name, parts in found.items()
        if parts
    }
    if agreement:
        off, noise = np.concatenate(agreement), np.concatenate(chance)
        worst = int(np.argmax(off - 3 * noise))
        table["agreement"] = {
            "off": float(off.mean()), "worst": float(off[worst]), "noise": float(noise[worst])
        }  # fmt: skip
    return pd.DataFrame(table).T.rename_axis("axiom")


def _value(column: pd.Series, model: CausalModel, node: str) -> Any:
    spec = model.schema_[model.graph.columns(node)[0]]
    if spec.discrete:
        return column.mode().iloc[0]
    value = float(np.quantile(as_numbers(column), 0.6))
    whole = spec.kind == "count" or pd.api.types.is_integer_dtype(column.dtype)
    return round(value) if whole else value  # a column of whole numbers gives nothing else back


def _apart(model: CausalModel, a: Any, b: pd.DataFrame, only: str | None = None) -> np.ndarray:
    """Differences (rows, columns), in standard deviations; 0 or 1 for levels."""
    parts = []
    for name in model.schema_ if only is None else model.graph.columns(only):
        x, y = (model.schema_.encode_column(name, frame[name]) for frame in (a, b))
        if model.schema_[name].discrete:
            parts.append((x != y).astype(float))
        else:
            parts.append(np.abs(x - y) / (_spread(model, name, b) or 1.0))
    return np.column_stack(parts)


def _spread(model: CausalModel, name: str, frame: pd.DataFrame) -> float:
    column = model.schema_[name]
    if column.low is not None and column.high is not None:
        return max(float(np.std(as_numbers(frame[name]))), (column.high - column.low) / 100)
    return float(np.std(as_numbers(frame[name])))


def _agreement(
    model: CausalModel, data: pd.DataFrame, node: str, value: Any, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Mean of counterfactuals against the mean under do, for each column below; and its noise."""
    # One draw of each: of levels, the likeliest ones are no sample.
    twins = model.counterfactual(data, {node: value}, draws=1, seed=seed)
    twins = model.schema_.encode(pd.DataFrame(twins))
    done = model.schema_.encode(model.sample(len(data), {node: value}, seed=seed))
    off, noise = [], []
    for below in model.graph.descendants(node):
        for name in model.graph.columns(below):
            levels = len(model.schema_[name].levels)
            for k in range(levels) if levels > 2 else (0,):
                x, y = (side[name] == k if levels else side[name] for side in (twins, done))
                spread = float(np.std(y)) or 1.0
                off.append(abs(np.mean(x) - np.mean(y)) / spread)
                noise.append(np.sqrt((np.var(x) + np.var(y)) / len(x)) / spread)
    return np.array(off), np.array(noise)
