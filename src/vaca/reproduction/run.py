"""A run: one model, one SCM, one seed, described completely; and the folder its report lives in."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vaca.errors import VacaError, did_you_mean
from vaca.table.atomic import complete

__all__ = ["Run", "Store"]


@dataclass(frozen=True)
class Run:
    """Everything that decides a result, and nothing else.

    Two runs with the same description are the same run; a changed description is a new one.

    Attributes
    ----------
    scm : str
        A built-in SCM's name, or one with a parameter: ``long-chain:8``, ``confounded:0.5``.
    model : str
        A recipe's name (see `vaca.reproduction.recipes`), or ``package.module:factory``.
    task : {"evaluate", "parameters", "fairness", "selection", "check-graph", "check",
        "coverage"}
        What is done with the model; see `vaca.reproduction.execute`.
    seed : int
        Of the model's initialisation and of the evaluation.
    data_seed : int, optional
        Of the training and validation rows; by default `seed`.
    config : mapping
        Settings that replace the recipe's own; JSON values.
    graph : tuple of str
        Changes to the graph that the model is given: ``-a->b`` leaves an edge out, ``+a->b`` adds
        one, ``~a->b`` turns one round.
    train, validation, factuals : int
        Rows to fit, rows to stop by, rows whose counterfactuals are scored.
    protocols : tuple of str
        See `vaca.evaluate`.
    nodes : tuple of str
        Nodes to intervene on; empty for the protocol's own.
    rows, resamples : int
        Sizes of the ``paper`` protocol.
    maker : str
        The engine with the revision of its code and a digest of all its settings; an experiment
        fills it in, see `vaca.reproduction.maker`.

    Examples
    --------
    >>> run = Run("triangle-lin", "vaca", seed=1, config={"epochs": 5})
    >>> run == Run.from_dict(run.to_dict())
    True
    >>> run.name.startswith("triangle-lin_vaca_1_")
    True
    """

    scm: str
    model: str
    seed: int = 0
    data_seed: int | None = None
    config: Mapping[str, Any] = dataclasses.field(default_factory=dict, hash=False)
    graph: tuple[str, ...] = ()
    train: int = 5000
    validation: int = 2500
    factuals: int = 2500
    protocols: tuple[str, ...] = ("paper", "published")
    nodes: tuple[str, ...] = ()
    rows: int = 20_000
    resamples: int = 10
    task: str = "evaluate"
    maker: str = ""

    def __post_init__(self) -> None:
        if self.data_seed is None:
            object.__setattr__(self, "data_seed", self.seed)
        for field in ("graph", "protocols", "nodes"):
            object.__setattr__(self, field, tuple(getattr(self, field)))
        try:
            config = json.loads(json.dumps(dict(self.config), sort_keys=True, allow_nan=False))
        except (TypeError, ValueError) as error:
            raise VacaError(f"config must be JSON: {error}") from None
        object.__setattr__(self, "config", config)

    def to_dict(self) -> dict[str, Any]:
        """The description as JSON values; `from_dict` reads it back."""
        return {
            field.name: list(value) if isinstance(value, tuple) else value
            for field in dataclasses.fields(self)
            for value in [getattr(self, field.name)]
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Run:
        """The run of a description made by `to_dict`."""
        known = [field.name for field in dataclasses.fields(cls)]
        for name in data:
            if name not in known:
                raise VacaError(f"unknown field {name!r} of a run; {did_you_mean(name, known)}")
        return cls(**data)

    @property
    def key(self) -> str:
        """A hash of the description."""
        # Without a maker the hash is what it was before runs had one.
        told = {k: v for k, v in self.to_dict().items() if k != "maker" or v}
        text = json.dumps(told, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def name(self) -> str:
        """The name of the run's folder: readable in front, the hash behind."""
        front = "_".join([self.scm, self.model, str(self.seed)])
        return re.sub(r"[^A-Za-z0-9._-]+", "-", front) + "_" + self.key


def _one_line(text: str) -> str:
    return re.sub(r"\n\s+", " ", text)


class Store:
    """A folder of reports: ``<folder>/<run name>/report.json``.

    A report is written beside its place and then moved there, so that it is whole or absent. A
    run that failed has ``failure.json`` instead, which a later success removes.

    Examples
    --------
    >>> import tempfile
    >>> store = Store(tempfile.mkdtemp())
    >>> run = Run("triangle-lin", "vaca")
    >>> store.done(run)
    False
    >>> store.write(run, {"scores": {}})
    >>> store.done(run)
    True
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def _path(self, run: Run, file: str) -> Path:
        return self.folder / run.name / file

    def done(self, run: Run) -> bool:
        """Whether the run has a report."""
        return self._path(run, "report.json").exists()

    def write(self, run: Run, report: Mapping[str, Any]) -> None:
        """Keep a finished run's report."""
        self._place(self._path(run, "report.json"), {"run": run.to_dict(), **report})
        self._path(run, "failure.json").unlink(missing_ok=True)

    def write_failure(self, run: Run, failure: Mapping[str, Any]) -> None:
        """Keep what went wrong with a run."""
        self._place(self._path(run, "failure.json"), {"run": run.to_dict(), **failure})

    @staticmethod
    def _place(path: Path, content: Mapping[str, Any]) -> None:
        text = json.dumps(content, indent=1, allow_nan=False) + "\n"
        # One line for a list of plain values: shorter files that read better.
        text = re.sub(r"\[\s+([^\[\]{}]*?)\s+\]", lambda m: f"[{_one_line(m[1])}]", text)
        path.parent.mkdir(parents=True, exist_ok=True)
        with complete(path) as part, part.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())

    def read(self, run: Run) -> dict[str, Any]:
        """The report of a finished run."""
        return self._load(self._path(run, "report.json"))

    def read_failure(self, run: Run) -> dict[str, Any] | None:
        """What went wrong with the run, or None."""
        path = self._path(run, "failure.json")
        return self._load(path) if path.exists() else None

    def reports(self, runs: Iterable[Run] | None = None) -> list[dict[str, Any]]:
        """The reports of the given runs that are done, or all of the folder, in a fixed order."""
        if runs is None:
            return [self._load(path) for path in sorted(self.folder.glob("*/report.json"))]
        return [self.read(run) for run in runs if self.done(run)]

    @staticmethod
    def _load(path: Path) -> dict[str, Any]:
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except json.JSONDecodeError as error:
            raise VacaError(f"{path} is not JSON ({error}); delete it to run it again") from None
