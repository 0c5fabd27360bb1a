r"""Several fitted engines of one family as one model, so that answers carry their spread.

A single fit does not show how far another fit, on other rows of the same population and from other
starting weights, would have disagreed. Each member has its own seed and its own row weights (a
Bayesian bootstrap); the spread between members is then an estimate of that disagreement. Refits
(`Engine.fit(refits=)`) give it at a fraction of the cost; an ensemble also covers the chance in
training itself.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vaca.engines.engine import Engine
from vaca.engines.fit_input import FitInput, RowWeights
from vaca.engines.processes import Task, fit_all
from vaca.engines.registry import engine_class, engine_names
from vaca.errors import VacaError, did_you_mean
from vaca.graph.dag import CausalGraph
from vaca.model.causal_model import CausalModel
from vaca.model.primitives import Noise, interleave
from vaca.table.columns import row_count, take_rows
from vaca.table.progress import progress_bar
from vaca.table.schema import Column, Columns, Kind, Schema

__all__ = ["Ensemble"]


class Ensemble(Engine):
    r"""K engines of one family, fitted in parallel processes, that answer together.

    - `sample` and counterfactual draws are mixtures: the members take turns, row by row.
    - A point counterfactual is the average of the members' (the level most of them give, for a
      discrete column).
    - `effect` is the average of the members' effects; their standard deviation, with Student's
      quantiles, is the uncertainty of the fit.

    Parameters
    ----------
    graph : CausalGraph
    engine : str
        The family of the members: "CausalFlow", "VACA", "MultiCVAE", "CAREFL", "AdditiveNoise".
    members : int
        How many; at least 2.
    settings : mapping, optional
        Hyper-parameters of the members.
    schema, missing
        See `vaca.engines.parameters.EngineParameters`.
    seed : int
        Member k is fitted with the seed `seed + k`.
    bootstrap : bool
        Fit each member with random weights on the rows. Without it all see the same rows, each
        member is a little better, and the spread covers only training.
    jobs : int, optional
        Processes; by default one per core, and at most one per member.

    Attributes
    ----------
    members_ : list of Engine
        The fitted members.

    Examples
    --------
    >>> import numpy as np, pandas as pd, vaca
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=300)
    >>> df = pd.DataFrame({"x": x, "y": 2 * x + rng.normal(size=300)})
    >>> graph = vaca.CausalGraph.from_edges([("x", "y")])
    >>> model = vaca.Ensemble(graph, "AdditiveNoise", members=3, jobs=1).fit(df)
    >>> effect = model.effect("y", {"x": 1.0}, {"x": 0.0})
    >>> bool(abs(effect.value - 2) < 4 * effect.standard_error)
    True
    """

    members_: list[Engine]

    def __init__(
        self,
        graph: CausalGraph,
        engine: str = "CausalFlow",
        *,
        members: int = 5,
        settings: Mapping[str, Any] | None = None,
        schema: Schema | Mapping[str, Kind | Column] | None = None,
        seed: int = 0,
        missing: str = "error",
        bootstrap: bool = True,
        jobs: int | None = None,
    ) -> None:
        self.graph = graph
        self.engine = engine
        self.members = members
        self.settings = settings
        self.schema = schema
        self.seed = seed
        self.missing = missing
        self.bootstrap = bootstrap
        self.jobs = jobs

    @classmethod
    def _renew(cls, parameters: Mapping[str, Any]) -> tuple[type[Engine], dict[str, Any]]:
        family = engine_class(parameters["engine"])
        family, settings = family._renew(parameters.get("settings") or {})
        return cls, {**parameters, "engine": family.__name__, "settings": settings}

    @classmethod
    def of(cls, models: Sequence[Engine]) -> Ensemble:
        """An ensemble of engines that are fitted already, all of one family, graph and schema."""
        models = list(models)
        if len(models) < 2:
            raise VacaError(f"an ensemble needs at least 2 members; got {len(models)}")
        first = models[0]
        for k, model in enumerate(models):
            if type(model) is not type(first):
                raise VacaError(
                    f"member {k} is a {type(model).__name__}, the first a {type(first).__name__}; "
                    "the members of an ensemble are of one family"
                )
            if model.graph != first.graph or dict(model.schema_) != dict(first.schema_):
                raise VacaError(f"member {k} has another graph or schema than the first")
        settings = first.get_params(deep=False)
        for name in ("graph", "schema", "seed"):
            settings.pop(name, None)
        result = cls(
            first.graph,
            type(first).__name__,
            members=len(models),
            settings=settings,
            schema=first.schema,
            seed=first.seed,
        )
        result.schema_, result.overlap_ = first.schema_, first.overlap_
        result.n_rows_, result.rows_ = first.n_rows_, first.rows_
        result.members_ = models
        result.history_ = _histories(models)
        return result

    # ------------------------------------------------------------------ fitting

    def _fit(self, given: FitInput) -> None:
        if not isinstance(self.members, int) or self.members < 2:
            raise VacaError(f"members is a whole number of at least 2; got {self.members!r}")
        blank = self._blank_members()
        jobs = min(self.members, self.jobs or os.cpu_count() or 1)
        tasks: list[Task] = []
        for k, member in enumerate(blank):
            rows, own = self._rows_of(member, given.train, given.validation, given.weights, k)
            tasks.append(
                (member, rows, given.validation, _own_checkpoint(given.checkpoint, k), own)
            )
        with progress_bar("fitting", self.members, unit="members", wanted=given.progress) as bar:
            fitted: list[Engine | None] = [None] * self.members
            for k, member in fit_all(tasks, jobs, self._where.get("cluster")):
                fitted[k] = member
                bar.advance()
        self.members_ = [member for member in fitted if member is not None]
        self.history_ = _histories(self.members_)

    def _blank_members(self) -> list[Engine]:
        family: Any = engine_class(self.engine, among=engine_names(alone=True))
        settings = dict(self.settings or {})
        known = family(self.graph).get_params(deep=False)
        for name in settings:
            if name not in known or name in ("graph", "schema", "seed"):
                valid = [n for n in known if n not in ("graph", "schema", "seed")]
                raise VacaError(
                    f"{self.engine} has no setting {name!r}; {did_you_mean(name, valid)}"
                )
        members = []
        for k in range(self.members):
            member = family(self.graph, schema=self.schema, seed=self.seed + k, **settings)
            member.schema_, member.overlap_ = self.schema_, self.overlap_
            member.n_rows_, member.rows_ = self.n_rows_, self.rows_
            member.history_ = pd.DataFrame()
            members.append(member)
        return members

    def _rows_of(
        self,
        member: Engine,
        train: Columns,
        validation: Columns,
        given: RowWeights | None,
        k: int,
    ) -> tuple[Columns, RowWeights | None]:
        """The rows of a member and their weights: those of a Bayesian bootstrap.

        Rows drawn with replacement would do the same, but a row that is drawn twice can be on both
        sides of a cross-validation, which then favours whatever memorises rows.
        """
        if not self.bootstrap:
            return train, given
        sizes = (row_count(train), row_count(validation))
        rng = np.random.default_rng([self.seed, k, 2])
        if not member._weighs:  # and does not cross-validate either
            take = rng.integers(sizes[0], size=sizes[0])
            return take_rows(train, take), given
        drawn = [rng.standard_exponential(n) for n in sizes]
        own = drawn if given is None else [w * g for w, g in zip(drawn, given, strict=True)]
        mean = np.concatenate(own).mean()
        return train, (own[0] / mean, own[1] / mean)

    # ------------------------------------------------------------------ the three primitives

    @property
    def _turn(self) -> str:
        # Noise is told apart by node (see vaca.model.Noise); the turn stands with the first node.
        return f"member/{self.graph.order[0]}"

    def noise(self, n: int, rng: np.random.Generator) -> Noise:
        """The noise of `n` rows; row i belongs to member i mod K."""
        turn = np.arange(n) % len(self.members_)
        dealt = enumerate(self.members_[:n])  # fewer rows than members: the others have none
        parts = [member.noise(int((turn == k).sum()), rng) for k, member in dealt]
        return {self._turn: turn, **interleave(parts, turn)}

    def abduct(self, x: Columns, rng: np.random.Generator | None = None) -> Noise:
        """With `rng` a draw of one member for each row, in turn; without, all members' points."""
        if rng is None:
            return {
                f"{k}/{key}": values
                for k, member in enumerate(self.members_)
                for key, values in member.abduct(x, None).items()
            }
        turn = np.arange(row_count(x)) % len(self.members_)
        parts = [
            member.abduct(take_rows(x, turn == k), rng)
            for k, member in enumerate(self.members_[: len(turn)])
        ]
        return {self._turn: turn, **interleave(parts, turn)}

    def simulate(self, u: Noise, do: Columns) -> Columns:
        """Each row by its member; rows with all members' noise by the members' average."""
        if self._turn in u:
            turn = u[self._turn]
            rest = {key: values for key, values in u.items() if key != self._turn}
            present, place = np.unique(turn, return_inverse=True)
            parts = [
                self.members_[k].simulate(
                    take_rows(rest, turn == k),
                    take_rows(do, turn == k),
                )
                for k in map(int, present)
            ]
            return interleave(parts, place)
        answers = []
        for k, member in enumerate(self.members_):
            prefix = f"{k}/"
            own = {key[len(prefix) :]: v for key, v in u.items() if key.startswith(prefix)}
            answers.append(member.simulate(own, do))
        return {
            name: _average(np.stack([a[name] for a in answers]), self.schema_[name])
            for name in answers[0]
        }

    def _fits(self) -> tuple[CausalModel | None, Sequence[CausalModel]]:
        return None, self.members_

    def _assumption(self, column: str) -> tuple[bool, str]:
        exact, text = self.members_[0]._assumption(column)
        return exact, f"{text} (in each of {len(self.members_)} members)"

    # ------------------------------------------------------------------ save and load

    def _state(self) -> dict[str, np.ndarray]:
        state = {
            f"{k}/{name}": values
            for k, member in enumerate(self.members_)
            for name, values in member._state().items()
        }
        state["members"] = np.array([len(self.members_)])
        return state

    def _set_state(self, state: dict[str, np.ndarray]) -> None:
        count = int(state["members"][0])
        members = self._blank_members()
        if count != len(members):
            raise VacaError(f"{count} members are stored, {len(members)} are expected")
        for k, member in enumerate(members):
            prefix = f"{k}/"
            member._set_state(
                {name[len(prefix) :]: v for name, v in state.items() if name.startswith(prefix)}
            )
            if "member" in self.history_:
                part = self.history_[self.history_["member"] == k]
                member.history_ = part.drop(columns="member").reset_index(drop=True)
        self.members_ = members


# ---------------------------------------------------------------------- parts


def _average(values: np.ndarray, column: Column) -> np.ndarray:
    """Over members (axis 0): the mean, or the level that most give."""
    if column.discrete:
        votes = np.stack([(values == code).sum(axis=0) for code in range(len(column.levels))])
        return votes.argmax(axis=0).astype(np.int64)
    mean = values.mean(axis=0)
    mean = np.where((values == values[0]).all(axis=0), values[0], mean)  # no rounding where equal
    return np.rint(mean) if column.kind == "count" else mean


def _histories(members: Sequence[Engine]) -> pd.DataFrame:
    parts = [m.history_.assign(member=k) for k, m in enumerate(members) if len(m.history_)]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _own_checkpoint(checkpoint: str | Path | None, k: int) -> str | None:
    if checkpoint is None:
        return None
    path = Path(checkpoint)
    return str(path.with_name(f"{path.stem}-{k}{path.suffix}"))
