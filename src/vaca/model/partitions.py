"""Questions whose answers are a folder of Parquet files, made by many processes or machines.

Each file is a piece of its own: a worker reads its rows, answers, and writes the answers under the
same name. The folder remembers the question and which pieces are done, so the same call goes on
where a killed one stopped. Answers do not depend on which process gave them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vaca.errors import VacaError
from vaca.model.arguments import check_count
from vaca.model.causal_model import CausalModel
from vaca.model.primitives import fresh_seed
from vaca.model.streaming import (
    CHUNK,
    SAMPLED,
    Streamed,
    open_factual,
    piece_seed,
    stream_counterfactuals,
)
from vaca.model.workers import each
from vaca.table.atomic import clean, complete
from vaca.table.files import parquet_files
from vaca.table.writing import write_table

__all__ = ["dask_counterfactuals", "partitioned_counterfactuals", "partitioned_samples"]

#: In a folder of answers: the question, and a line for each piece that is done. Readers of Parquet
#: folders skip names that start with an underscore.
LOG = "_answers.jsonl"


def partitioned_counterfactuals(
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
    jobs: int = 1,
    cluster: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> Streamed:
    """Counterfactuals of every file of a folder, to a folder with files of the same names.

    Parameters
    ----------
    model : CausalModel
    source : path
        A folder of Parquet files.
    do, draws, summary, seed, keep, bounds, chunk
        See `vaca.model.streaming.stream_counterfactuals`; `row` in the answers counts the rows of
        one file.
    out : path
        The folder of answers. If it holds some answers to the same question, only the rest are
        computed; answers to another question are an error.
    jobs : int
        Local processes.
    cluster : str, optional
        Address of a Dask scheduler, whose workers do it instead. They read `source` and write `out`
        under the same paths as this process: both must be on a disk that all share.
    progress : callable, optional
        Called after each piece with its number of rows.

    Returns
    -------
    Streamed

    Examples
    --------
    >>> import tempfile, vaca
    >>> folder = Path(tempfile.mkdtemp())
    >>> scm = vaca.scms.load("triangle-lin")
    >>> _ = partitioned_samples(scm, 30, None, folder / "rows", seed=1, chunk=10)
    >>> done = partitioned_counterfactuals(scm, folder / "rows", {"x1": 0}, folder / "answers")
    >>> done.rows, sorted(p.name for p in (folder / "answers").glob("*.parquet"))
    (30, ['part-00000.parquet', 'part-00001.parquet', 'part-00002.parquet'])
    """
    files = [path.absolute() for path in parquet_files(source)]
    for path in files:  # before any work is done
        open_factual(model, path, keep)
    settings = {"draws": draws, "summary": summary, "keep": list(keep), "bounds": bounds}
    question = {
        "question": "counterfactual",
        "model": fingerprint(model),
        "do": {node: repr(value) for node, value in do.items()},
        **settings,
        "chunk": chunk,
        "files": {path.name: path.stat().st_size for path in files},
    }
    answers = _Answers(out, question, seed, [path.name for path in files])
    shared = (model, do, Path(out).absolute(), {**settings, "chunk": chunk}, answers.seed)
    todo = [(k, files[k]) for k in answers.todo]
    return answers.gather(each(_answer_file, shared, todo, jobs=jobs, cluster=cluster), progress)


def _answer_file(
    shared: tuple[CausalModel, Mapping[str, Any], Path, dict[str, Any], int],
    piece: tuple[int, Path],
) -> Streamed:
    model, do, out, settings, base = shared
    number, source = piece
    seed = piece_seed(base, number)
    return stream_counterfactuals(model, source, do, out / source.name, seed=seed, **settings)


def partitioned_samples(
    model: CausalModel,
    n: int,
    do: Mapping[str, Any] | None,
    out: str | Path,
    *,
    seed: int | None = None,
    chunk: int = SAMPLED,
    jobs: int = 1,
    cluster: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> Streamed:
    """Draw `n` rows to a folder of Parquet files of at most `chunk` rows each.

    The rows are those of `vaca.model.streaming.sample_chunks`, wherever they are drawn. See
    `partitioned_counterfactuals` for `out`, `jobs`, `cluster` and `progress`.
    """
    starts = range(0, check_count("n", n), chunk)
    question = {
        "question": "sample",
        "model": fingerprint(model),
        "do": {node: repr(value) for node, value in (do or {}).items()},
        "rows": n,
        "chunk": chunk,
    }
    answers = _Answers(out, question, seed, [f"part-{k:05}.parquet" for k in range(len(starts))])
    shared = (model, do, Path(out).absolute(), answers.seed)
    todo = [(k, answers.parts[k], min(chunk, n - starts[k])) for k in answers.todo]
    return answers.gather(each(_sample_part, shared, todo, jobs=jobs, cluster=cluster), progress)


def _sample_part(
    shared: tuple[CausalModel, Mapping[str, Any] | None, Path, int], piece: tuple[int, str, int]
) -> Streamed:
    import warnings

    from vaca.errors import SupportWarning

    model, do, out, base = shared
    number, name, n = piece
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SupportWarning)
        rows = model.sample(n, do, seed=piece_seed(base, number))
    write_table(rows, out / name)
    return Streamed(n, n, unseen=rows.attrs.get("outside_support", []))


def dask_counterfactuals(
    model: CausalModel,
    factual: Any,
    do: Mapping[str, Any],
    *,
    draws: int | None = None,
    seed: int | None = None,
) -> Any:
    """Counterfactuals of a Dask DataFrame: another, lazy one with the same partitions.

    Nothing is computed before it is asked for (`.compute()`, `.to_parquet(...)`); then it runs
    where Dask runs, on the workers of the current `distributed.Client` if there is one.

    Parameters
    ----------
    model : CausalModel
    factual : dask.dataframe.DataFrame
    do, draws
        See `CausalModel.counterfactual`; values are the same for all rows.
    seed : int, optional
        Partition k has a seed of its own, made from this and k.

    Returns
    -------
    dask.dataframe.DataFrame
    """
    base = fresh_seed() if seed is None else seed
    ask = partial(_answer_partition, model=model, do=dict(do), draws=draws, base=base)
    meta = ask(model.sample(1, seed=0)).iloc[:0]
    return factual[list(model.schema_)].map_partitions(ask, meta=meta)


def _answer_partition(
    rows: pd.DataFrame,
    partition_info: dict[str, Any] | None = None,
    *,
    model: CausalModel,
    do: Mapping[str, Any],
    draws: int | None,
    base: int,
) -> pd.DataFrame:
    import warnings

    from vaca.errors import SupportWarning

    seed = piece_seed(base, 0 if partition_info is None else partition_info["number"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SupportWarning)
        answer = model.counterfactual(rows, do, draws=draws, seed=seed)
    return pd.DataFrame(answer)


def fingerprint(model: CausalModel) -> str:
    """A digest of a model's graph, schema and numbers, which tells it from others."""
    digest = hashlib.sha256(type(model).__name__.encode())
    digest.update(json.dumps(model.graph.to_json(), sort_keys=True).encode())
    digest.update(json.dumps(model.schema_.to_dict(), sort_keys=True, default=str).encode())
    for fit in model._dealt():
        for name, values in sorted(getattr(fit, "_state", dict)().items()):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()


class _Answers:
    """A folder of answers that come one by one, with the question that they answer."""

    def __init__(
        self, out: str | Path, question: dict[str, Any], seed: int | None, parts: list[str]
    ) -> None:
        self.folder, self.parts = Path(out), parts
        self.log = self.folder / LOG
        self.seed = fresh_seed() if seed is None else seed
        found = self._read()
        if found:
            if seed is None:
                self.seed = found[0]["seed"]
            self._compare(found[0], {**question, "seed": self.seed})
            self.done = {line["part"]: Streamed(**line["answers"]) for line in found[1:]}
        else:
            self.folder.mkdir(exist_ok=True)
            with complete(self.log) as place:
                place.write_text(json.dumps({**question, "seed": self.seed}) + "\n", "utf-8")
            self.done = {}
        # A file may be gone, and one without its line may be of another run: both are done again.
        there = {name for name in self.done if (self.folder / name).is_file()}
        self.todo = [k for k, name in enumerate(parts) if name not in there]

    def _read(self) -> list[dict[str, Any]]:
        if not self.folder.exists():
            return []
        if not self.log.is_file():
            if self.folder.is_dir() and not any(self.folder.iterdir()):
                return []
            raise VacaError(
                f"{self.folder} exists already and holds no answers to go on with; choose another "
                "name"
            )
        lines: list[dict[str, Any]] = []
        for text in self.log.read_text("utf-8", errors="replace").splitlines():
            with suppress(ValueError, RecursionError):  # a killed process may leave half a line
                line = json.loads(text)
                if isinstance(line, dict) and (not lines or _is_answer(line)):
                    lines.append(line)
        if not lines or "seed" not in lines[0]:
            raise VacaError(f"{self.log} is damaged; remove {self.folder} and ask again")
        return lines

    def _compare(self, before: dict[str, Any], now: dict[str, Any]) -> None:
        for name, value in json.loads(json.dumps(now)).items():
            if before.get(name) != value:
                raise VacaError(
                    f"{self.folder} holds answers to another question: {name} was "
                    f"{_short(before.get(name))} and is {_short(value)}; choose another folder, or "
                    "remove that one"
                )

    def gather(
        self, pieces: Iterator[Streamed], progress: Callable[[int], None] | None
    ) -> Streamed:
        """Log each piece as it comes; the sum of all, with those of earlier runs."""
        skipped = [name for k, name in enumerate(self.parts) if k not in set(self.todo)]
        if progress is not None:
            for name in skipped:
                progress(self.done[name].rows)
        try:
            self._note(pieces, progress)
        except BaseException:
            for number in self.todo:  # the processes that wrote them were ended on the way here
                clean(self.folder / self.parts[number])
            raise
        total = Streamed()
        for name in self.parts:
            one = self.done[name]
            total.rows += one.rows
            total.written += one.written
            for column, count in one.outside.items():
                total.outside[column] = total.outside.get(column, 0) + count
            total.unseen += [text for text in one.unseen if text not in total.unseen]
        return total

    def _note(self, pieces: Iterator[Streamed], progress: Callable[[int], None] | None) -> None:
        with self.log.open("a", encoding="utf-8") as log:
            for number, answers in zip(self.todo, pieces, strict=True):
                self.done[self.parts[number]] = answers
                line = {"part": self.parts[number], "answers": asdict(answers)}
                log.write("\n" + json.dumps(line))  # on a line of its own, whatever stands before
                log.flush()
                if progress is not None:
                    progress(answers.rows)


def _is_answer(line: dict[str, Any]) -> bool:
    """Whether a line of the log holds the result of a part; other lines are ignored."""
    told = line.get("answers")
    if not isinstance(line.get("part"), str) or not isinstance(told, dict):
        return False
    plain = asdict(Streamed())
    return told.keys() == plain.keys() and all(type(told[k]) is type(plain[k]) for k in plain)


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
