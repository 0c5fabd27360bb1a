r"""The one interface: a graph, a noise distribution p(u), and a deterministic map x = F(u, do).

- observational and interventional rows: :math:`x = F(u, do)` with :math:`u \sim p(u)`;
- counterfactual rows: :math:`x^{CF} = F(u, do)` with :math:`u \sim p(u \mid x)`
  (abduction, action, prediction).

True SCMs and learned models implement `noise`, `abduct` and `simulate`; all questions are
answered here, once, and never ask which of the two they hold.
"""

from __future__ import annotations

import abc
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, overload

import numpy as np
import pandas as pd

from vaca.errors import SchemaError, VacaError
from vaca.graph.dag import CausalGraph
from vaca.model.answers import CounterfactualFrame, Effect, GroupEffects
from vaca.model.arguments import check_count, check_room, check_seed
from vaca.model.intervention import Intervention, warn_outside_support
from vaca.table.schema import Columns, Schema, as_frame

#: Exogenous noise. A key is the name of a node or column, alone or after a prefix that ends in "/"
#: ("z/age"), so that noise can be told apart by node; every array has the rows on its first axis.
Noise = dict[str, np.ndarray]

#: Rows that are simulated at once, so that memory does not grow with the table.
CHUNK = 65_536


class CausalModel(abc.ABC):
    """Anything that can answer observational, interventional and counterfactual questions.

    A subclass has a `graph`, a `schema_`, and three primitives on encoded rows (see
    `vaca.table.schema.Columns`); the questions are built from them, once, here.
    """

    graph: CausalGraph
    schema_: Schema
    #: Whether the model was fitted to data, so that its answers are uncertain beyond chance.
    _learned = False

    # ------------------------------------------------------------------ the three primitives

    @abc.abstractmethod
    def noise(self, n: int, rng: np.random.Generator) -> Noise:
        """Draw the exogenous noise of `n` rows from p(u)."""

    @abc.abstractmethod
    def abduct(self, x: Columns, rng: np.random.Generator | None = None) -> Noise:
        """The noise of the given rows: a draw of p(u | x), or without `rng` one point answer."""

    @abc.abstractmethod
    def simulate(self, u: Noise, do: Columns) -> Columns:
        """The rows x = F(u, do), as a pure function.

        `do` holds the encoded value of every column of every intervened node, one per row; those
        columns come back as given.
        """

    # ------------------------------------------------------------------ questions

    def sample(
        self, n: int, do: Mapping[str, Any] | None = None, seed: int | None = None
    ) -> pd.DataFrame:
        """Draw `n` rows: as observed, or as they would be under the intervention `do`.

        Parameters
        ----------
        n : int
        do : mapping, optional
            Node -> value, array, Series, `Shift`, callable or distribution; see
            `vaca.model.intervention`.
        seed : int, optional
            The same seed gives the same rows; with the same seed, rows under different `do` share
            their noise and so can be compared one by one.

        Returns
        -------
        DataFrame of `n` rows in the user's units.

        Examples
        --------
        >>> import vaca
        >>> scm = vaca.scms.load("triangle-lin")
        >>> scm.sample(3, do={"x2": 0.5}, seed=0)["x2"].tolist()
        [0.5, 0.5, 0.5]
        """
        seed = _fresh_seed() if seed is None else seed
        x, intervention = self._sampled(n, do, seed)
        frame = self.schema_.decode(x, index=pd.RangeIndex(n))
        outside = self._outside(intervention, x)
        if outside:
            frame.attrs["outside_support"] = outside
            warn_outside_support(outside)
        self._record_sample(frame, n, seed, do)
        return frame

    def counterfactual(
        self,
        factual: Any,
        do: Mapping[str, Any],
        draws: int | None = None,
        seed: int | None = None,
        *,
        bounds: bool = False,
    ) -> CounterfactualFrame:
        """What each given row would have been under the intervention `do`.

        Parameters
        ----------
        factual : DataFrame
            The rows as they were observed.
        do : mapping
            See `sample`; a Series is aligned with the index of `factual`.
        draws : int, optional
            Without it, one point answer for each row, under the same index. With it, that many
            draws of p(x_cf | x, do) for each row, under the index (row, draw), and `.summary()`.
        seed : int, optional
            For the draws and for random interventions.
        bounds : bool
            Also give, as `.bounds`, between what the chance of each level of a discrete column
            lies: what no data can decide, and the model's choice of noise does.

        Returns
        -------
        CounterfactualFrame
            Columns that the intervention cannot reach keep their factual values exactly.

        Examples
        --------
        >>> import vaca
        >>> scm = vaca.scms.load("triangle-lin")
        >>> factual = scm.sample(2, seed=0)
        >>> scm.counterfactual(factual, do={"x2": 0.5})["x1"].equals(factual["x1"])
        True
        """
        frame = as_frame(factual)
        answer, intervention = self._answered(frame, do, draws, seed)
        index = frame.index
        if draws is not None:
            rows = np.repeat(np.arange(len(frame)), draws)
            labels = [index.get_level_values(k)[rows] for k in range(index.nlevels)]
            labels.append(pd.Index(np.tile(np.arange(draws), len(frame))))
            names = [*(name or "row" for name in index.names), "draw"]
            index = pd.MultiIndex.from_arrays(labels, names=names)
        result = CounterfactualFrame(self.schema_.decode(answer, index=index))
        self._keep_exactly(result, frame, intervention)
        result.draws, result.fits = draws, len(self._dealt())
        result.outside_support = self._outside(intervention, answer)
        warn_outside_support(result.outside_support)
        if bounds:
            from vaca.trust.bounds import counterfactual_bounds

            result.bounds = counterfactual_bounds(self, frame, do)
        return result

    def _keep_exactly(
        self, answer: pd.DataFrame, frame: pd.DataFrame, intervention: Intervention
    ) -> None:
        """Columns that `do` cannot reach are the factual's own, whatever a float loses of them."""
        rows = np.repeat(np.arange(len(frame)), len(answer) // len(frame))
        for node in set(self.graph.nodes) - intervention.affected:
            for column in self.graph.columns(node):
                answer[column] = frame[column].array.take(rows)

    def _outside(self, intervention: Intervention, x: Columns) -> list[str]:
        """A sentence for each way in which the answer `x` leaves the data."""
        return intervention.outside_support(x) + self._unseen(intervention, x)

    def _unseen(self, intervention: Intervention, x: Columns) -> list[str]:
        """A sentence for each pair of causes that the data never combine so; see `Engine`."""
        return []

    @overload
    def effect(
        self,
        outcome: str,
        treatment: Mapping[str, Any],
        control: Mapping[str, Any] | None = None,
        given: Any = None,
        *,
        among: Mapping[str, Any] | str | None = None,
        by: None = None,
        level: Any = None,
        n: int = 10_000,
        draws: int | None = None,
        seed: int | None = 0,
        engines: Sequence[str] = (),
    ) -> Effect: ...

    @overload
    def effect(
        self,
        outcome: str,
        treatment: Mapping[str, Any],
        control: Mapping[str, Any] | None = None,
        given: Any = None,
        *,
        among: Mapping[str, Any] | str | None = None,
        by: str | Sequence[str],
        level: Any = None,
        n: int = 10_000,
        draws: int | None = None,
        seed: int | None = 0,
        engines: Sequence[str] = (),
    ) -> GroupEffects: ...

    def effect(
        self,
        outcome: str,
        treatment: Mapping[str, Any],
        control: Mapping[str, Any] | None = None,
        given: Any = None,
        *,
        among: Mapping[str, Any] | str | None = None,
        by: str | Sequence[str] | None = None,
        level: Any = None,
        n: int = 10_000,
        draws: int | None = None,
        seed: int | None = 0,
        engines: Sequence[str] = (),
    ) -> Effect | GroupEffects:
        r"""The average effect on a column of `treatment` against `control`.

        .. math:: E[Y \mid do(treatment)] - E[Y \mid do(control)]

        Parameters
        ----------
        outcome : str
            A column. A discrete one counts by its levels if they are numbers; otherwise the effect
            is on the probability of `level` (for a binary column by default its second level).
        treatment, control : mapping
            Interventions, as in `sample`; no `control` means no intervention.
        given : DataFrame, optional
            Factual rows: then the effect is averaged over their counterfactuals and `per_row` has
            each one's own.
        among : mapping or str, optional
            Whom the effect is about: `{"treat": 1}`, or a condition on the columns like
            `"age > 40"`. Taken from the given rows, or else from those the model was fitted to.
        by : str or list of str, optional
            One effect for each level of a column (each quarter of a numeric one).
        n : int
            Rows to draw when none are given; both arms share their noise.
        draws : int, optional
            Draws for each given row. By default the point counterfactual where it is exact, and
            else enough draws for its mean.
        engines : sequence of str
            Other engines to fit to the model's rows and ask the same; their answers are in
            `Effect.engines`.

        Returns
        -------
        Effect
            With `by`, a `GroupEffects` table.

        Examples
        --------
        >>> import vaca
        >>> scm = vaca.scms.load("triangle-lin")
        >>> effect = scm.effect("x3", treatment={"x2": 1.0}, control={"x2": 0.0})
        >>> round(effect.value, 6)
        0.25
        """
        from vaca.model.effects import EffectQuestion, average_effect

        question = EffectQuestion(
            outcome=outcome,
            level=level,
            treatment=treatment,
            control={} if control is None else control,
            rows=given,
            n=n,
            draws=draws,
            seed=_fresh_seed() if seed is None else seed,
        )
        found = average_effect(self, question, among, by)
        if not engines:
            return found
        if isinstance(found, GroupEffects):
            raise VacaError("engines are asked one question: leave out by=")
        from vaca.trust.agreement import ask_engines

        return replace(found, engines=ask_engines(found, engines, seed=question.seed))

    def assumptions(self) -> pd.DataFrame:
        """Per column: is its noise recovered exactly, and what a counterfactual rests on."""
        rows = []
        for name in self.schema_.columns:
            exact, text = self._assumption(name)
            if not exact and self.schema_[name].discrete:
                text += "; counterfactual(..., bounds=True) shows what other choices could say"
            rows.append({"column": name, "exact": exact, "rests_on": text})
        return pd.DataFrame(rows).set_index("column")

    # ------------------------------------------------------------------ for subclasses

    def _fits(self) -> tuple[CausalModel | None, Sequence[CausalModel]]:
        """The fit that gives values (None: the mean of the others), and those that give spread."""
        return self, ()

    def _population(
        self, n: int, seed: int
    ) -> tuple[pd.DataFrame, np.ndarray | None, np.ndarray | None]:
        """Rows that stand for the population, their weights, and their places in the data."""
        return self.sample(n, seed=seed), None, None

    def _extrapolated(
        self, treatment: Mapping[str, Any], control: Mapping[str, Any], rows: pd.DataFrame | None
    ) -> np.ndarray | None:
        """For which rows (n,) nothing like the treatment or the control was seen; see `Engine`."""
        return None

    def _assumption(self, column: str) -> tuple[bool, str]:
        """Whether abduction of a column is exact, and the assumption behind it, in plain words."""
        return False, "the model's own noise for this column"

    def _record_sample(  # noqa: B027 (a hook: nothing to do is right for most)
        self, frame: pd.DataFrame, n: int, seed: int, do: Mapping[str, Any] | None
    ) -> None:
        """A chance to note on a sampled frame how it was made."""

    def _encode(self, frame: pd.DataFrame) -> Columns:
        """Factual rows as arrays, with gaps where the model can fill them."""
        return self.schema_.encode(frame)

    def _filled(self, x: Columns, rng: np.random.Generator | None) -> Columns:
        """Encoded rows without gaps: drawn, or without `rng` the likeliest."""
        return x

    def _abduct_frame(
        self,
        frame: pd.DataFrame,
        x: Columns,
        rng: np.random.Generator | None,
        below: Collection[str] | None = None,
    ) -> Noise:
        """`abduct`, for models that can use more of the frame, or that can do less work.

        Of the nodes not among `below`, if that is given, noise is not needed: no `do` moves them.
        """
        return self.abduct(x, rng)

    # ------------------------------------------------------------------ the common work

    def _parse(self, do: Mapping[str, Any] | None) -> Intervention:
        return Intervention.parse(do, self.graph, self.schema_)

    def _sampled(
        self, n: int, do: Mapping[str, Any] | None, seed: int
    ) -> tuple[Columns, Intervention]:
        """`sample`, encoded."""
        n = check_count("n", n)
        check_room(
            n, len(self.schema_), "Ask for fewer rows, or write them with `vaca sample --out`"
        )
        noise_rng, do_rng = _generators(seed, 2)
        intervention = self._parse(do).encode_rows(n).draw_random(n, do_rng)
        if intervention.has_policy():
            u = _join([self.noise(b - a, noise_rng) for a, b in _chunks(n)])
            return self._simulate(u, intervention, n), intervention
        pieces = [
            self._simulate(self.noise(b - a, noise_rng), intervention.rows(slice(a, b)), b - a)
            for a, b in _chunks(n)
        ]
        return _join(pieces), intervention

    def _answered(
        self,
        frame: pd.DataFrame,
        do: Mapping[str, Any],
        draws: int | None,
        seed: int | None,
        deal: bool = True,
    ) -> tuple[Columns, Intervention]:
        """`counterfactual`, encoded; draws are dealt in turn to all fits, or are all by this."""
        if len(frame) == 0:
            raise SchemaError("there are no factual rows")
        x = self._encode(frame)
        repeats = 1 if draws is None else check_count("draws", draws)
        advice = "Ask for fewer draws, or write them with `vaca counterfactual --out`"
        check_room(len(frame) * repeats, len(self.schema_), advice)
        rows = np.repeat(np.arange(len(frame)), repeats)
        dealt = self._dealt() if deal else [self]
        seed = _fresh_seed() if seed is None else seed
        abduct_rng, do_rng, *others = _generators(seed, 1 + len(dealt))
        # Values that are given belong to a row and repeat with it; random ones differ by draw.
        intervention = self._parse(do).encode_rows(len(frame), frame.index)
        intervention = intervention.rows(rows).draw_random(len(rows), do_rng)
        if draws is None:
            return self._counterfactuals(frame, x, rows, intervention, None), intervention
        turn = np.tile(np.arange(repeats), len(frame)) % len(dealt)
        parts = []
        for k, (fit, rng) in enumerate(zip(dealt, [abduct_rng, *others], strict=True)):
            mine = np.flatnonzero(turn == k)
            own = intervention.rows(mine)
            if len(mine):
                parts.append(fit._counterfactuals(frame, x, rows[mine], own, rng))
        return interleave(parts, turn), intervention

    def _dealt(self) -> list[CausalModel]:
        """The fits that draws are dealt to."""
        main, others = self._fits()
        return [*([] if main is None else [main]), *others]

    def _counterfactuals(
        self,
        frame: pd.DataFrame,
        x: Columns,
        rows: np.ndarray,
        intervention: Intervention,
        rng: np.random.Generator | None,
    ) -> Columns:
        """Abduction, action, prediction for the given places in a frame, by this fit alone."""
        # Draws of the noise of all nodes follow one another: leaving some out would change others.
        below = None if rng is not None else intervention.below

        def abducted(a: int, b: int) -> tuple[Noise, Columns]:
            take = rows[a:b]
            kept = self._filled({name: values[take] for name, values in x.items()}, rng)
            return self._abduct_frame(frame.iloc[take], kept, rng, below), kept

        if intervention.has_policy():
            parts = [abducted(a, b) for a, b in _chunks(len(rows))]
            u, kept = _join([p[0] for p in parts]), _join([p[1] for p in parts])
            return self._simulate(u, intervention, len(rows), kept)
        pieces = []
        for a, b in _chunks(len(rows)):
            u, kept = abducted(a, b)
            pieces.append(self._simulate(u, intervention.rows(slice(a, b)), b - a, kept))
        return _join(pieces)

    def _simulate(
        self,
        u: Noise,
        intervention: Intervention,
        n: int,
        factual: Columns | None = None,
    ) -> Columns:
        """Resolve `do` and run F in chunks; what `do` cannot reach keeps its factual value."""

        def run(do: Columns) -> Columns:
            pieces = [
                self.simulate(_rows(u, a, b), {c: v[a:b] for c, v in do.items()})
                for a, b in _chunks(n)
            ]
            x = _join(pieces)
            x.update(do)  # exactly, whatever the engine's precision
            if factual is not None:
                reached = {self.graph.node_of(c) for c in do} | below(do)
                for node in self.graph.nodes:
                    if node not in reached:
                        x.update({c: factual[c] for c in self.graph.columns(node)})
            return x

        def below(do: Columns) -> set[str]:
            nodes = {self.graph.node_of(c) for c in do}
            return set(self.graph.descendants(*nodes))

        def natural(do: Columns) -> Columns:
            # A shift looks at its own node alone. If nothing above it moves, that is the factual
            # value, and F need not be run to know it: half the work of a shifted counterfactual.
            shifted = not intervention.has_policy() and below(do).isdisjoint(intervention.nodes)
            return {**factual, **do} if factual is not None and shifted else run(do)

        return run(intervention.resolve(natural))


def _fresh_seed() -> int:
    return int(np.random.SeedSequence().generate_state(1)[0])


def _generators(seed: Any, count: int) -> list[np.random.Generator]:
    sequence = np.random.SeedSequence(check_seed(seed))
    return [np.random.default_rng(s) for s in sequence.spawn(count)]


def _chunks(n: int) -> Iterator[tuple[int, int]]:
    return ((a, min(a + CHUNK, n)) for a in range(0, n, CHUNK))


def _rows(u: Noise, a: int, b: int) -> Noise:
    return {key: values[a:b] for key, values in u.items()}


def _join(pieces: list[Columns]) -> Columns:
    if len(pieces) == 1:
        return dict(pieces[0])
    return {name: np.concatenate([p[name] for p in pieces]) for name in pieces[0]}


def interleave(parts: list[dict[str, np.ndarray]], turn: np.ndarray) -> dict[str, np.ndarray]:
    """Rows that several models were dealt in turn, put back in their order."""
    if len(parts) == 1:
        return dict(parts[0])
    result: dict[str, np.ndarray] = {}
    for key, like in parts[0].items():
        whole = np.empty((len(turn), *like.shape[1:]), dtype=like.dtype)
        for k, part in enumerate(parts):
            whole[turn == k] = part[key]
        result[key] = whole
    return result
