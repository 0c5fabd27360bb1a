"""Questions about tables larger than memory: read, answer and write piece by piece."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vaca.errors import SupportWarning, VacaError, did_you_mean
from vaca.model.answers import CounterfactualFrame
from vaca.model.causal_model import CausalModel
from vaca.model.intervention import Intervention, Shift
from vaca.model.primitives import fresh_seed
from vaca.table.dtypes import LARGEST_EXACT, as_numbers
from vaca.table.files import TableReader, TableWriter

__all__ = ["Streamed", "counterfactual_chunks", "sample_chunks", "stream_counterfactuals"]

#: Answers (rows times draws) that are held at once.
CHUNK = 131_072
#: Rows that are drawn at once.
SAMPLED = 1_000_000
#: The column that says of each row whether its intervention leaves the range of the data.
FLAG = "outside_support"


@dataclass
class Streamed:
    """How many rows a stream read and wrote, and what it has to say about them.

    Attributes
    ----------
    rows : int
        Rows read.
    written : int
        Rows written.
    outside : dict of str to int
        Intervened column -> answers whose value lies outside the range of the training data.
    unseen : list of str
        Sentences of the first piece about causes that the data never combine like this.
    """

    rows: int = 0
    written: int = 0
    outside: dict[str, int] = field(default_factory=dict)
    unseen: list[str] = field(default_factory=list)


def stream_counterfactuals(
    model: CausalModel,
    source: str | Path,
    do: Mapping[str, Any],
    out: str | Path,
    *,
    draws: int | None = None,
    summary: bool = False,
    seed: int | None = None,
    keep: Sequence[str] = (),
    bounds: bool = False,
    chunk: int = CHUNK,
    progress: Callable[[int], None] | None = None,
) -> Streamed:
    """Counterfactuals of every row of a file, to a file, in memory that does not grow with it.

    Parameters
    ----------
    model : CausalModel
    source : path
        Factual rows: .csv, .parquet or .feather, or a folder of .parquet files.
    do : mapping
        Node -> value or `Shift`, the same for all rows.
    out : path
        Where the answers go; the file appears when it is complete.
    draws, seed
        See `CausalModel.counterfactual`. Answers depend on the seed and on `chunk`.
    summary : bool
        With `draws`: one row per factual row, with mean, sd and two quantiles of each column.
    keep : sequence of str
        Further columns of the source that are copied to the answer, such as an identifier.
    bounds : bool
        Also two columns for each level of a column that moves: its lowest and highest probability.
    chunk : int
        Answers held at once.
    progress : callable, optional
        Called after each piece with its number of rows.

    Returns
    -------
    Streamed
    """
    reader = open_factual(model, source, keep)
    result = Streamed()
    with TableWriter(out) as writer:
        for facts, answer in counterfactual_chunks(
            model,
            reader,
            do,
            draws=draws,
            summary=summary,
            seed=seed,
            keep=keep,
            bounds=bounds,
            chunk=chunk,
            tally=result,
        ):
            writer.write(answer)
            if progress is not None:
                progress(facts)
        result.written = writer.rows
    return result


def open_factual(model: CausalModel, source: str | Path, keep: Sequence[str] = ()) -> TableReader:
    """A reader of the columns that a model needs, and of those to keep; names what is missing."""
    wanted = model.schema_.columns
    reader = TableReader(source, columns=[*wanted, *keep], schema=model.schema_)
    for name in keep:
        if name in wanted:
            raise VacaError(
                f"--keep {name}: it is a column of the model and is in the answer anyway"
            )
    for name in (*wanted, *keep):
        if name not in reader.columns:
            raise VacaError(
                f"{source}: there is no column {name!r}; {did_you_mean(name, reader.columns)}"
            )
    return reader


def counterfactual_chunks(
    model: CausalModel,
    reader: TableReader,
    do: Mapping[str, Any],
    *,
    draws: int | None = None,
    summary: bool = False,
    seed: int | None = None,
    keep: Sequence[str] = (),
    bounds: bool = False,
    chunk: int = CHUNK,
    tally: Streamed | None = None,
) -> Iterator[tuple[int, pd.DataFrame]]:
    """Yield (factual rows, answers to them) for each piece of a file; see `stream_counterfactuals`.

    Where an intervention can leave the range of the data, the answers have a column
    `outside_support` that says of each row whether it does. With `bounds`, two columns for each
    level of a column that moves hold its lowest and highest probability.
    """
    if summary and draws is None:
        raise VacaError("a summary is over draws: give a number of draws, for example --draws 200")
    tally = Streamed() if tally is None else tally
    flagged = _can_leave_support(model, do)
    intervention = Intervention.parse(do, model.graph, model.schema_)
    intervened = [c for node in intervention.nodes for c in model.graph.columns(node)]
    base = fresh_seed() if seed is None else seed
    size = max(1, chunk // (draws or 1))
    for number, piece in enumerate(reader.chunks(size)):
        facts = _steady(piece, model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SupportWarning)  # told once, at the end
            answer = model.counterfactual(
                facts, do, draws=draws, seed=piece_seed(base, number), bounds=bounds
            )
        if number == 0:
            tally.unseen = model._unseen(intervention, model._filled(model._encode(answer), None))
        outside = _outside(model, answer, intervened, tally)
        frame = _flat(answer, draws, summary)
        if answer.bounds is not None:
            table = answer.bounds
            table.columns = [f"{column}={level} {end}" for column, level, end in table.columns]
            frame = pd.concat([frame, table.set_axis(frame.index)], axis=1)
        if flagged:
            if summary and draws is not None:
                outside = outside.reshape(len(facts), draws).any(axis=1)
            frame[FLAG] = outside
        if keep:
            times = 1 if summary or draws is None else draws
            kept = facts[list(keep)].iloc[np.repeat(np.arange(len(facts)), times)]
            frame = pd.concat([kept.reset_index(drop=True), frame.reset_index(drop=True)], axis=1)
        tally.rows += len(facts)
        yield len(facts), frame


def _steady(facts: pd.DataFrame, model: CausalModel) -> pd.DataFrame:
    """Keep a column's dtype where one piece of a CSV file happens to hold only whole numbers."""
    whole = {
        name: float
        for name, column in model.schema_.items()
        if column.dtype == "float64"
        and pd.api.types.is_integer_dtype(facts[name])
        and not column.discrete
        and facts[name].abs().max() <= LARGEST_EXACT
    }
    return facts.astype(whole) if whole else facts


def sample_chunks(
    model: CausalModel,
    n: int,
    do: Mapping[str, Any] | None = None,
    seed: int | None = None,
    chunk: int = SAMPLED,
) -> Iterator[pd.DataFrame]:
    """Draw `n` rows in pieces; up to `chunk` rows they are those of `model.sample(n, do, seed)`."""
    base = fresh_seed() if seed is None else seed
    for number, start in enumerate(range(0, n, chunk)):
        size = min(chunk, n - start)
        with warnings.catch_warnings():
            if number:
                warnings.simplefilter("ignore", SupportWarning)
            yield model.sample(size, do, seed=piece_seed(base, number))


def piece_seed(base: int, number: int) -> int:
    """The seed of piece `number` of a stream."""
    # The first piece has the seed itself, so that a small file gets the library's own answer.
    return base if number == 0 else int(np.random.SeedSequence([base, number]).generate_state(1)[0])


def _can_leave_support(model: CausalModel, do: Mapping[str, Any]) -> bool:
    parts = Intervention.parse(do, model.graph, model.schema_).parts
    for columns in parts.values():
        for name, part in columns.items():
            column = model.schema_[name]
            if isinstance(part, Shift):
                if column.low is not None:
                    return True
            elif column.outside(np.array(model.schema_.encode_value(name, part))).any():
                return True
    return False


def _outside(
    model: CausalModel, answer: pd.DataFrame, intervened: Sequence[str], tally: Streamed
) -> np.ndarray:
    result = np.zeros(len(answer), dtype=bool)
    for name in intervened:
        if model.schema_[name].discrete:
            continue
        beyond = model.schema_[name].outside(as_numbers(answer[name]))
        if beyond.any():
            tally.outside[name] = tally.outside.get(name, 0) + int(beyond.sum())
        result |= beyond
    return result


def _flat(answer: CounterfactualFrame, draws: int | None, summary: bool) -> pd.DataFrame:
    if draws is None:
        return pd.DataFrame(answer)
    if not summary:
        return pd.DataFrame(answer).reset_index()
    table = answer.summary()
    table.columns = [f"{name}_{statistic}" for name, statistic in table.columns]
    return table.reset_index()
