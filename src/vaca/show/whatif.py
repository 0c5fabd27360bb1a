"""What if: one person, or the people of a table, under settings chosen on a page.

The report and the explorer ask the same functions, so that a page shows exactly the number that
the library gives. Settings and answers are plain JSON: numbers, and codes of levels.
"""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from vaca.errors import InterventionError, SupportWarning, VacaError, did_you_mean
from vaca.model.causal_model import CausalModel
from vaca.model.intervention import Shift
from vaca.table.dtypes import as_numbers

__all__ = ["ask_person", "ask_population", "code_for", "describe", "filter_rows", "read_settings"]

#: Draws behind a band, and the quantiles at its ends.
DRAWS, BAND = 54, (0.05, 0.95)
BINS = 28


def describe(model: CausalModel, data: pd.DataFrame) -> list[dict[str, Any]]:
    """The columns of a page, causes first: kind, levels or range, and what a slider may reach.

    A slider goes a tenth of the range beyond the data on either side: a page hatches that part.
    """
    found = []
    graph = model.graph
    for name in (c for node in graph.order for c in graph.columns(node)):
        column, node = model.schema_[name], graph.node_of(name)
        about: dict[str, Any] = {
            "name": name,
            "node": node,
            "parents": list(graph.parents(node)),
            "reaches": sorted(graph.descendants(node)),
        }
        if column.discrete:
            about["levels"] = [str(level) for level in column.levels]
        else:
            numbers = as_numbers(data[name])
            low = float(numbers.min()) if column.low is None else column.low
            high = float(numbers.max()) if column.high is None else column.high
            whole = column.kind == "count" or bool(np.all(numbers == np.round(numbers)))
            about |= {"low": low, "high": high, "whole": whole, "unit": column.unit}
            about["min"], about["max"], about["step"] = _slider(low, high, whole)
        found.append(about)
    return found


def _slider(low: float, high: float, whole: bool) -> tuple[float, float, float]:
    """Ends and step of a slider, on round numbers.

    >>> _slider(18, 85, True), _slider(0.5, 2.5, False)
    ((11.0, 92.0, 1.0), (0.3, 2.7, 0.02))
    """
    wide = (high - low) or max(abs(low), 1.0)
    power = 10.0 ** np.floor(np.log10(wide / 100))
    step = float(power * min((1, 2, 5, 10), key=lambda k: abs(k * power - wide / 100)))
    step = max(1.0, step) if whole else step
    first, last = np.floor((low - wide / 10) / step), np.ceil((high + wide / 10) / step)
    if low >= 0:  # what is never negative stays so
        first = max(first, 0.0)
    digits = max(0, -int(np.floor(np.log10(step))))
    return round(float(first * step), digits), round(float(last * step), digits), step


def read_settings(
    settings: Any, model: CausalModel, rows: pd.DataFrame
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Turn the settings of a page into the `do` of the library; all of it is checked.

    Parameters
    ----------
    settings : mapping
        Column -> {"value": number}, {"shift": number} or {"level": code}.
    rows : DataFrame
        The rows that are asked about: where a node has several columns, those that are not set
        keep their values.

    Returns
    -------
    (dict, dict)
        The `do`, and the same with the columns that were set alone, for people to read.
    """
    if not isinstance(settings, Mapping):
        raise InterventionError("settings are an object from column to what it is set to")
    plain: dict[str, Any] = {}
    for name, given in settings.items():
        if name not in model.schema_:
            raise InterventionError(
                f"there is no column {name!r}; {did_you_mean(str(name), model.schema_.columns)}"
            )
        plain[name] = _setting(name, given, model)
    do: dict[str, Any] = {}
    for name, value in plain.items():
        node = model.graph.node_of(name)
        columns = model.graph.columns(node)
        if columns == (node,):
            do[node] = value
        else:
            do.setdefault(node, {c: rows[c] for c in columns})[name] = value
    return do, plain


def _setting(name: str, given: Any, model: CausalModel) -> Any:
    column = model.schema_[name]
    if not isinstance(given, Mapping) or len(given) != 1:
        raise InterventionError(
            f'{name!r} is set by {{"value": 1}}, {{"shift": 1}} or {{"level": 0}}'
        )
    ((how, value),) = given.items()
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if column.discrete:
        count = len(column.levels)
        if how != "level" or not number or value != int(value) or not 0 <= value < count:
            raise InterventionError(
                f"{name!r} has levels: give one by its number, 0 to {count - 1}"
            )
        return column.levels[int(value)]
    if how not in ("value", "shift") or not number or not abs(value) < 1e15:
        raise InterventionError(f"{name!r} holds numbers: set it to one, or shift it by one")
    if column.dtype.lower().startswith(("int", "uint")) and value == int(value):
        value = int(value)
    return Shift(value) if how == "shift" else value


def ask_person(
    model: CausalModel, row: pd.DataFrame, settings: Any, *, draws: int = DRAWS, seed: int = 0
) -> dict[str, Any]:
    """One row as it was and as it would have been, with bands.

    Returns
    -------
    dict
        "columns": column -> before, after (the point answer), low and high (of the draws, which the
        model and its refits share) or the share of each level, and whether the column is "set",
        "reached" or "still"; "outside": a sentence for each extrapolation.
    """
    do, _ = read_settings(settings, model, row)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SupportWarning)  # the page says it
        answer = model.counterfactual(row, do, seed=seed)
        many = model.counterfactual(row, do, draws=draws, seed=seed) if do else answer
    before, after, spread = (_codes(model, frame) for frame in (row, answer, many))
    # Bands as in `summary`, which allows for the small number of refits.
    ends = many.summary(BAND) if do else pd.DataFrame()
    return {
        "columns": _person_columns(model, before, after, spread, ends, set(settings)),
        "outside": list(answer.outside_support),
    }


def _person_columns(
    model: CausalModel,
    before: Mapping[str, np.ndarray],
    after: Mapping[str, np.ndarray],
    spread: Mapping[str, np.ndarray],
    ends: pd.DataFrame,
    given: set[str],
) -> dict[str, Any]:
    nodes = {model.graph.node_of(c) for c in given}
    reached = model.graph.descendants(*nodes)
    result: dict[str, Any] = {}
    for name, column in model.schema_.items():
        role = "set" if name in given else "still"
        if model.graph.node_of(name) in reached and name not in given:
            role = "reached"
        one: dict[str, Any] = {
            "before": _plain(before[name][0]),
            "after": _plain(after[name][0]),
            "role": role,
        }
        if role == "reached":
            if column.discrete:
                counts = np.bincount(spread[name], minlength=len(column.levels))
                one["shares"] = [round(float(s), 4) for s in counts / counts.sum()]
            else:
                low, high = (ends[name, f"{100 * q:g}%"].iloc[0] for q in BAND)
                # The point answer stands inside its band, also where draws are few.
                one["low"] = min(float(low), one["after"])
                one["high"] = max(float(high), one["after"])
        result[name] = one
    return result


def _codes(model: CausalModel, frame: pd.DataFrame) -> dict[str, np.ndarray]:
    return model.schema_.encode(pd.DataFrame(frame).reset_index(drop=True))


def _plain(value: Any) -> float | int:
    return int(value) if isinstance(value, (int, np.integer)) else float(value)


def filter_rows(model: CausalModel, data: pd.DataFrame, chosen: Any) -> np.ndarray:
    """Which rows a subgroup has: numbers between two ends, or levels by their codes."""
    if not isinstance(chosen, Mapping):
        raise VacaError("a filter is an object from column to its range or levels")
    mask = np.ones(len(data), dtype=bool)
    for name, given in chosen.items():
        if name not in model.schema_:
            raise VacaError(f"there is no column {name!r} to filter by")
        column = model.schema_[name]
        values = model.schema_.encode_column(name, data[name])
        if column.discrete:
            codes = given.get("levels") if isinstance(given, Mapping) else None
            if not isinstance(codes, list) or not all(
                isinstance(c, int) and 0 <= c < len(column.levels) for c in codes
            ):
                raise VacaError(f"{name!r} is filtered by a list of levels, by their numbers")
            mask &= np.isin(values, codes)
        else:
            ends = [given.get(k) for k in ("low", "high")] if isinstance(given, Mapping) else []
            if len(ends) != 2 or not all(isinstance(e, (int, float)) for e in ends):
                raise VacaError(f"{name!r} is filtered by two numbers, low and high")
            mask &= (values >= ends[0]) & (values <= ends[1])
    if not mask.any():
        raise VacaError("nobody in the table is in this group: choose a wider one")
    return mask


def ask_population(
    model: CausalModel, rows: pd.DataFrame, settings: Any, *, seed: int = 0
) -> dict[str, Any]:
    """The given rows before and after: means and histograms of what is set or reached."""
    do, plain = read_settings(settings, model, rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SupportWarning)
        answer = model.counterfactual(rows, do, seed=seed)
    before, after = _codes(model, rows), _codes(model, answer)
    nodes = {model.graph.node_of(c) for c in plain}
    moved = nodes.union(model.graph.descendants(*nodes))
    columns: dict[str, Any] = {}
    for name, column in model.schema_.items():
        if model.graph.node_of(name) not in moved:
            continue
        a, b = before[name], after[name]
        if column.discrete:
            count = len(column.levels)
            shares = [np.bincount(v, minlength=count) / len(v) for v in (a, b)]
            columns[name] = {"before": shares[0].tolist(), "after": shares[1].tolist()}
            continue
        low, high = min(a.min(), *np.quantile(b, [0.01])), max(a.max(), *np.quantile(b, [0.99]))
        edges = np.linspace(low, high if high > low else low + 1, BINS + 1)
        counts = [np.histogram(np.clip(v, edges[0], edges[-1]), edges)[0] for v in (a, b)]
        columns[name] = {
            "edges": [float(edges[0]), float(edges[-1])],
            "before": counts[0].tolist(),
            "after": counts[1].tolist(),
            "means": [float(a.mean()), float(b.mean())],
        }
    return {"rows": len(rows), "columns": columns, "outside": list(answer.outside_support)}


def code_for(
    model: str,
    data: str,
    do: Mapping[str, Any],
    *,
    row: int | None = None,
    outcome: str | None = None,
    level: Any = None,
    rows: str = "df",
) -> dict[str, str]:
    """The Python lines and the command that reproduce an answer of a page.

    >>> code = code_for("model", "my loans.csv", {"age": 40}, row=3)
    >>> code["command"]
    "vaca counterfactual model 'my loans.csv' --do age=40"
    >>> print(code["python"].splitlines()[-1])
    model.counterfactual(df.iloc[[3]], {'age': 40})
    """
    sets = [f"{n}{_operator(v)}" for n, v in do.items()]
    words = " ".join(f"--do {shlex.quote(s)}" for s in sets)
    python = ["import pandas as pd", "import vaca", "", f"model = vaca.load({model!r})"]
    reader = (
        "read_csv"
        if data.endswith((".csv", ".csv.gz"))
        else ("read_feather" if data.endswith(".feather") else "read_parquet")
    )
    python.append(f"df = pd.{reader}({data!r})")
    shown = "{" + ", ".join(f"{n!r}: {_python(v)}" for n, v in do.items()) + "}"
    where = f"{shlex.quote(model)} {shlex.quote(data)}"
    if row is not None:
        python.append(f"model.counterfactual(df.iloc[[{row}]], {shown})")
        return {"python": "\n".join(python), "command": f"vaca counterfactual {where} {words}"}
    end = f"{'' if level is None else f', level={level!r}'}, draws=1"  # as the page asks
    python.append(f"print(model.effect({outcome!r}, {shown}, given={rows}{end}))")
    on = shlex.quote(str(outcome)) + (
        "" if level is None else f" --level {shlex.quote(str(level))}"
    )
    command = f"vaca effect {shlex.quote(model)} --on {on} {words} --given {shlex.quote(data)}"
    command += " --draws 1"
    if rows != "df":
        command = "A part of the table is chosen in Python; see there."
    return {"python": "\n".join(python), "command": command}


def _operator(value: Any) -> str:
    if isinstance(value, Shift):
        return f"{'-' if value.delta < 0 else '+'}={abs(value.delta)}"
    return f"={value}"


def _python(value: Any) -> str:
    if isinstance(value, Shift):
        return f"vaca.Shift({value.delta!r})"
    return repr(value.item() if isinstance(value, np.generic) else value)


def rows_code(model: CausalModel, chosen: Mapping[str, Any]) -> str:
    """The Python that picks a subgroup out of `df`."""
    parts: list[str] = []
    for name, given in chosen.items():
        column = model.schema_[name]
        if column.discrete:
            levels: Sequence[Any] = [column.levels[c] for c in given["levels"]]
            parts.append(f"df[{name!r}].isin({list(levels)!r})")
        else:
            parts.append(f"df[{name!r}].between({given['low']!r}, {given['high']!r})")
    return f"df[{' & '.join(parts)}]" if parts else "df"
