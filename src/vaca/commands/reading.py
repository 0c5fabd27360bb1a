"""What a command is asked: the model, `--do`, columns, rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vaca.errors import InterventionError, VacaError, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

    from vaca.model.causal_model import CausalModel


def load_model(name: str) -> CausalModel:
    """Give the SCM of that name, or the model saved in that folder."""
    from vaca.scm import library as scms

    if name in scms.names():
        return scms.load(name)
    if Path(name).exists():
        import vaca

        return vaca.load(name)
    raise VacaError(
        f"{name!r} is neither a built-in SCM nor a saved model's folder; "
        f"{did_you_mean(name, scms.names())}"
    )


def parse_do(texts: Iterable[str] | None, model: CausalModel) -> dict[str, Any]:
    """Turn `--do` texts into the `do` of the library.

    `column=value` sets, `column+=delta` and `column-=delta` shift. Where the name of a column holds
    such a mark itself (`k = 1`), the longest name that fits is meant; it may stand in quotes.
    """
    from vaca import Shift

    graph = model.graph
    result: dict[str, Any] = {}
    for text in texts or ():
        name, sign, value = _split_do(text, graph.all_columns)
        if not name or not value:
            raise InterventionError(
                f"--do {text}: write COLUMN=VALUE to set a column or COLUMN+=DELTA to shift it"
            )
        if name not in graph.all_columns:
            raise InterventionError(
                f"--do {text}: there is no column {name!r}; {did_you_mean(name, graph.all_columns)}"
            )
        if sign:
            delta = _number(value, text, name)
            answer: Any = Shift(-delta if sign == "-" else delta)
        else:
            answer = value  # the library reads it as a number or a level, by the column's kind
        if name in result:
            raise InterventionError(f"--do {text}: {name!r} is set twice; keep one of the two")
        result[name] = answer
    return result


def _split_do(text: str, known: Sequence[str]) -> tuple[str, str, str]:
    """The column, the sign of a shift ("" to set) and the value of a `--do`."""
    quoted = re.fullmatch(r"""\s*(["'`])(.+?)\1\s*([+-]?)=(.*)""", text, re.DOTALL)
    if quoted and quoted[2] in known:
        return quoted[2], quoted[3], quoted[4].strip()
    for name in sorted(known, key=len, reverse=True):
        if text.strip().startswith(name):
            rest = re.fullmatch(r"\s*([+-]?)=(.*)", text.strip()[len(name) :], re.DOTALL)
            if rest:
                return name, rest[1], rest[2].strip()
    name, equals, value = text.partition("=")
    sign = name[-1:] if name[-1:] in ("+", "-") else ""
    return name.removesuffix(sign).strip(), sign, value.strip() if equals else ""


def _number(value: str, text: str, name: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise InterventionError(
            f"--do {text}: {value!r} is not a number, and column {name!r} holds numbers"
        ) from None


def without_gaps(model: Any, frame: pd.DataFrame) -> pd.DataFrame:
    """Rows without missing values, left out or filled as the model was fitted."""
    if not frame[[c for c in model.schema_ if c in frame]].isna().any(axis=None):
        return frame
    import numpy as np

    from vaca.engines.missing import complete_rows

    return model.schema_.decode(complete_rows(model, frame, np.random.default_rng(0)))


def columns_of(names: list[str] | None, model: CausalModel, option: str) -> list[str]:
    """Check the columns that an option names."""
    for name in names or ():
        if name not in model.schema_:
            raise VacaError(
                f"{option} {name}: there is no such column; "
                f"{did_you_mean(name, model.schema_.columns)}"
            )
    return list(names or ())
