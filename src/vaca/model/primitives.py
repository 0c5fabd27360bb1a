"""Three primitives, and the rows that follow from them: abduction, action, prediction.

Rows are encoded here, and nothing is checked but counts and seeds. The questions that a person
asks, in their own units, are in `vaca.model.causal_model`.
"""

from __future__ import annotations

import abc
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from vaca.errors import SchemaError
from vaca.graph.dag import CausalGraph
from vaca.model.arguments import check_count, check_room, check_seed
from vaca.model.intervention import Intervention
from vaca.table.columns import join_rows, take_rows
from vaca.table.schema import Columns, Schema

#: Exogenous noise. A key is the name of a node or column, alone or after a prefix that ends in "/"
#: ("z/age"), so that noise can be told apart by node; every array has the rows on its first axis.
Noise = dict[str, np.ndarray]

#: Rows that are simulated at once, so that memory does not grow with the table.
CHUNK = 65_536


class Primitives(abc.ABC):
    """The noise of a causal model, and the map from noise and intervention to rows.

    A subclass has a `graph`, a `schema_`, and three primitives on encoded rows (see
    `vaca.table.schema.Columns`).
    """

    graph: CausalGraph
    schema_: Schema

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

    # ------------------------------------------------------------------ for subclasses

    def _fits(self) -> tuple[Primitives | None, Sequence[Primitives]]:
        """The fit that gives values (None: the mean of the others), and those that give spread."""
        return self, ()

    def _encode(self, frame: pd.DataFrame) -> Columns:
        """Factual rows as arrays, with gaps where the model can fill them."""
        return self.schema_.encode(frame)

    def _filled(self, x: Columns, rng: np.random.Generator | None) -> Columns:
        """Encoded rows with gaps filled: by draws, or without `rng` by the likeliest values."""
        return x

    def _abduct_frame(
        self,
        frame: pd.DataFrame,
        x: Columns,
        rng: np.random.Generator | None,
        below: Collection[str] | None = None,
    ) -> Noise:
        """`abduct`, for models that can use more than the encoded rows, or can save work.

        If `below` is given, only the noise of those nodes is needed: `do` moves no others.
        """
        return self.abduct(x, rng)

    def _unseen(self, intervention: Intervention, x: Columns) -> list[str]:
        """A sentence for each pair of causes in a combination not in the data; see `Engine`."""
        return []

    # ------------------------------------------------------------------ rows, encoded

    def _parse(self, do: Mapping[str, Any] | None) -> Intervention:
        return Intervention.parse(do, self.graph, self.schema_)

    def _outside(self, intervention: Intervention, x: Columns) -> list[str]:
        """A sentence for each way in which the answer `x` leaves the data."""
        return intervention.outside_support(x) + self._unseen(intervention, x)

    def _sampled(
        self, n: int, do: Mapping[str, Any] | None, seed: int
    ) -> tuple[Columns, Intervention]:
        """`sample`, encoded."""
        n = check_count("n", n)
        check_room(
            n, len(self.schema_), "Ask for fewer rows, or write them with `vaca sample --out`"
        )
        noise_rng, do_rng = generators(seed, 2)
        intervention = self._parse(do).encode_rows(n).draw_random(n, do_rng)
        if intervention.has_policy():
            u = join_rows([self.noise(b - a, noise_rng) for a, b in chunks(n)])
            return self._simulate(u, intervention, n), intervention
        pieces = [
            self._simulate(self.noise(b - a, noise_rng), intervention.rows(slice(a, b)), b - a)
            for a, b in chunks(n)
        ]
        return join_rows(pieces), intervention

    def _answered(
        self,
        frame: pd.DataFrame,
        do: Mapping[str, Any],
        draws: int | None,
        seed: int | None,
        deal: bool = True,
    ) -> tuple[Columns, Intervention]:
        """`counterfactual`, encoded; draws are shared by all fits in turn, or all by this one."""
        if len(frame) == 0:
            raise SchemaError("there are no factual rows")
        x = self._encode(frame)
        repeats = 1 if draws is None else check_count("draws", draws)
        advice = "Ask for fewer draws, or write them with `vaca counterfactual --out`"
        check_room(len(frame) * repeats, len(self.schema_), advice)
        dealt = self._dealt() if deal else [self]
        seed = fresh_seed() if seed is None else seed
        abduct_rng, do_rng, *others = generators(seed, 1 + len(dealt))
        # Values that are given belong to a row and repeat with it; random ones differ by draw.
        intervention = self._parse(do).encode_rows(len(frame), frame.index)
        if draws is None:
            intervention = intervention.draw_random(len(frame), do_rng)
            return self._counterfactuals(frame, x, None, intervention, None), intervention
        rows = np.repeat(np.arange(len(frame)), repeats)
        intervention = intervention.rows(rows).draw_random(len(rows), do_rng)
        turn = np.tile(np.arange(repeats), len(frame)) % len(dealt)
        parts = []
        for k, (fit, rng) in enumerate(zip(dealt, [abduct_rng, *others], strict=True)):
            mine = np.flatnonzero(turn == k)
            own = intervention.rows(mine)
            if len(mine):
                parts.append(fit._counterfactuals(frame, x, rows[mine], own, rng))
        return interleave(parts, turn), intervention

    def _dealt(self) -> list[Primitives]:
        """The fits that share the draws."""
        main, others = self._fits()
        return [*([] if main is None else [main]), *others]

    def _counterfactuals(
        self,
        frame: pd.DataFrame,
        x: Columns,
        rows: np.ndarray | None,
        intervention: Intervention,
        rng: np.random.Generator | None,
    ) -> Columns:
        """Abduction, action, prediction for the given places in a frame, by this fit alone.

        Without places, for every row once, which saves copying them.
        """
        if rows is None and intervention.has_policy():
            rows = np.arange(len(frame))  # a policy may write into what it is shown
        n = len(frame) if rows is None else len(rows)
        # Draws of the noise of all nodes follow one another: leaving some out would change others.
        below = None if rng is not None else intervention.below

        def abducted(a: int, b: int) -> tuple[Noise, Columns]:
            take = slice(a, b) if rows is None else rows[a:b]
            kept = self._filled(take_rows(x, take), rng)
            return self._abduct_frame(frame.iloc[take], kept, rng, below), kept

        if intervention.has_policy():
            parts = [abducted(a, b) for a, b in chunks(n)]
            u, kept = join_rows([p[0] for p in parts]), join_rows([p[1] for p in parts])
            return self._simulate(u, intervention, n, kept)
        pieces = []
        for a, b in chunks(n):
            u, kept = abducted(a, b)
            pieces.append(self._simulate(u, intervention.rows(slice(a, b)), b - a, kept))
        return join_rows(pieces)

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
                self.simulate(take_rows(u, slice(a, b)), take_rows(do, slice(a, b)))
                for a, b in chunks(n)
            ]
            x = join_rows(pieces)
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


def fresh_seed() -> int:
    """A random seed."""
    return int(np.random.SeedSequence().generate_state(1)[0])


def generators(seed: Any, count: int) -> list[np.random.Generator]:
    """Independent generators that all follow from one seed."""
    sequence = np.random.SeedSequence(check_seed(seed))
    return [np.random.default_rng(s) for s in sequence.spawn(count)]


def chunks(n: int) -> Iterator[tuple[int, int]]:
    """Where each piece of `n` rows starts and stops."""
    return ((a, min(a + CHUNK, n)) for a in range(0, n, CHUNK))


def interleave(parts: list[dict[str, np.ndarray]], turn: np.ndarray) -> dict[str, np.ndarray]:
    """Rows that several models answered in turn, put back in their order."""
    if len(parts) == 1:
        return dict(parts[0])
    result: dict[str, np.ndarray] = {}
    for key, like in parts[0].items():
        whole = np.empty((len(turn), *like.shape[1:]), dtype=like.dtype)
        for k, part in enumerate(parts):
            whole[turn == k] = part[key]
        result[key] = whole
    return result
