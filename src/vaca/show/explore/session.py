"""One exploration: a model and its table, and the questions that a page may ask."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vaca.errors import SupportWarning, VacaError
from vaca.graph.dag import CausalGraph
from vaca.model.causal_model import CausalModel
from vaca.show.plot.graph import layout
from vaca.show.whatif import (
    ask_person,
    ask_population,
    code_for,
    describe,
    filter_rows,
    read_settings,
    rows_code,
)
from vaca.show.words import effect_sentence

#: Of a larger table, this many rows are explored, the same ones each time.
ROWS = 10_000

Fit = Callable[[CausalModel, CausalGraph, pd.DataFrame], CausalModel]


class Session:
    """The state of one page: the model that answers, its table, and the fit under way, if any.

    Parameters
    ----------
    model : CausalModel
    data : DataFrame
    names : (str, str)
        The model's folder and the table's file, for the lines of code that a page shows.
    graph_file : Path, optional
        The one file that `save` may write.
    fit : callable, optional
        Gives a model like the first for another graph.
    """

    def __init__(
        self,
        model: CausalModel,
        data: pd.DataFrame,
        names: tuple[str, str] = ("model", "data.csv"),
        graph_file: Path | None = None,
        fit: Fit | None = None,
    ) -> None:
        self.model, self.names, self.graph_file, self.fit = model, names, graph_file, fit
        frame = data[list(model.schema_.columns)]
        self.all_rows = len(frame)
        if len(frame) > ROWS:
            kept = np.sort(np.random.default_rng(0).permutation(len(frame))[:ROWS])
            frame = frame.iloc[kept]
        self.data = frame.reset_index(drop=True)
        self.positions = kept if self.all_rows > ROWS else np.arange(len(frame))
        model.schema_.encode(self.data)  # a table that does not fit must fail now
        self._job: dict[str, Any] = {"state": "idle"}
        self._lock = threading.Lock()

    # ------------------------------------------------------------------ questions

    def start(self, _: Mapping[str, Any]) -> dict[str, Any]:
        """What the page needs to draw itself."""
        return {
            "columns": describe(self.model, self.data),
            "rows": len(self.data),
            "all_rows": self.all_rows,
            "engine": type(self.model).__name__,
            "names": list(self.names),
            "graph": self._drawn(self.model.graph),
            "graph_file": None if self.graph_file is None else self.graph_file.name,
            "can_fit": self.fit is not None,
            "refits": len(getattr(self.model, "refits_", ())),
        }

    def person(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """A row of the table under the settings."""
        row = _whole(asked.get("row", 0), "row", len(self.data))
        frame, settings = self.data.iloc[[row]], asked.get("settings", {})
        answer = ask_person(self.model, frame, settings)
        _, plain = read_settings(settings, self.model, frame)
        code = code_for(*self.names, plain, row=int(self.positions[row]))
        return {**answer, "row": row, "code": code}

    def population(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """All rows, or a subgroup, before and after."""
        mask = filter_rows(self.model, self.data, asked.get("filter", {}))
        return ask_population(self.model, self.data[mask], asked.get("settings", {}))

    def effect(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """The average effect on one column, with its interval."""
        chosen, outcome = asked.get("filter", {}), asked.get("outcome")
        rows = self.data[filter_rows(self.model, self.data, chosen)]
        if not isinstance(outcome, str) or outcome not in self.model.schema_:
            raise VacaError(f"there is no outcome {outcome!r}")
        do, plain = read_settings(asked.get("settings", {}), self.model, rows)
        if not do:
            raise VacaError("nothing is set: choose a column and a value")
        column = self.model.schema_[outcome]
        level = None
        if column.discrete and not column.numeric_levels:
            count = len(column.levels)
            level = column.levels[_whole(asked.get("level", count - 1), "level", count)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SupportWarning)
            # Where abduction is not exact it needs draws: one for each row is enough, and quick.
            found = self.model.effect(outcome, do, given=rows, level=level, draws=1, seed=0)
        low, high = found.interval()
        return {
            "value": found.value,
            "low": low,
            "high": high,
            "sentence": effect_sentence(replace(found, treatment=plain), column),
            "covers_fit": bool(getattr(found, "covers_fit", False)),
            "code": code_for(
                *self.names,
                plain,
                outcome=outcome,
                level=level,
                rows=rows_code(self.model, chosen),
            ),
        }

    # ------------------------------------------------------------------ the graph

    def graph(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Whether these arrows make a graph without a cycle, and where to draw it."""
        return self._drawn(self._read(asked))

    def check(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """What the data say about these arrows."""
        from vaca.trust.check import check_graph

        rows = self.model.schema_.encode(self.data)
        found = check_graph(self._read(asked), self.model.schema_, rows, quick=True)
        return {
            "verdict": found.verdict,
            "parts": found.parts[["part", "verdict", "words"]].to_dict("records"),
            "arrows": found.arrows["words"].head(8).tolist() if len(found.arrows) else [],
        }

    def save(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Write the graph to the one file that was agreed on at the start."""
        graph = self._read(asked)
        if self.graph_file is None:
            raise VacaError("there is no file to save to; start with --graph-out graph.txt")
        from vaca.table.files import complete

        with complete(self.graph_file) as part:
            part.write_text(graph.to_text(), encoding="utf-8")
        return {"saved": self.graph_file.name}

    def refit(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Start a fit to these arrows, unless one is under way; `status` tells how it goes."""
        graph = self._read(asked)
        if self.fit is None:
            raise VacaError("this model is a known SCM: it is not fitted to a table")
        with self._lock:
            if self._job["state"] == "running":
                raise VacaError("a fit is under way already")
            self._job = {"state": "running", "since": time.monotonic()}
        threading.Thread(target=self._fit, args=(self.fit, graph), daemon=True).start()
        return self.status({})

    def status(self, _: Mapping[str, Any]) -> dict[str, Any]:
        """How the fit goes."""
        job = dict(self._job)
        if "since" in job:
            job["seconds"] = round(time.monotonic() - job.pop("since"), 1)
        return job

    def _fit(self, fit: Fit, graph: CausalGraph) -> None:
        try:
            model = fit(self.model, graph, self.data)
        except VacaError as error:
            self._job = {"state": "failed", "error": str(error)}
        except Exception as error:  # the page must hear of it: nobody reads a thread's traceback
            self._job = {"state": "failed", "error": f"{type(error).__name__}: {error}"}
        else:
            self.model = model
            self._job = {"state": "done"}

    def _read(self, asked: Mapping[str, Any]) -> CausalGraph:
        edges = asked.get("edges")
        if not isinstance(edges, list) or len(edges) > 100_000:
            raise VacaError("edges are a list of pairs, cause and effect")
        for edge in edges:
            if not (
                isinstance(edge, list)
                and len(edge) == 2
                and all(isinstance(end, str) and end in self.model.graph for end in edge)
            ):
                raise VacaError("an edge is a pair of the model's nodes")
        old = self.model.graph
        groups = {n: old.columns(n) for n in old.nodes if old.columns(n) != (n,)}
        return CausalGraph.from_edges([(a, b) for a, b in edges], nodes=old.nodes, columns=groups)

    def _drawn(self, graph: CausalGraph) -> dict[str, Any]:
        places, routes = layout(graph)
        return {
            "nodes": [
                {
                    "name": n,
                    "x": places[n][0],
                    "y": -places[n][1],
                    "columns": list(graph.columns(n)),
                }
                for n in graph.nodes
            ],
            "edges": [list(edge) for edge in graph.edges],
            "routes": [[[x, -y] for x, y in routes[edge]] for edge in graph.edges],
            "fitted": [list(edge) for edge in self.model.graph.edges],
        }


def _whole(value: Any, name: str, end: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < end:
        raise VacaError(f"{name} is a whole number from 0 to {end - 1}")
    return value
