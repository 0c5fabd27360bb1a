"""Structural causal models: equations and noise that a person wrote down."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from vaca.errors import AbductionError, VacaError, did_you_mean
from vaca.graph.dag import CausalGraph
from vaca.model.causal_model import CausalModel
from vaca.model.primitives import Noise, chunks, generators
from vaca.scm.distributions import Distribution
from vaca.scm.equations import Equation, check_inverse, check_noise, make_schema, read_inputs
from vaca.scm.inversion import solve_noise
from vaca.table.columns import row_count, take_rows
from vaca.table.schema import Columns, Kind

__all__ = ["StructuralCausalModel"]

#: Around the mean, in standard deviations: where the paper's text and its published runs intervene.
GRIDS = {"paper": (-1.0, -0.5, 0.0, 0.5, 1.0), "published": (-1.0, 0.1, 0.5, 1.0)}

#: What abduction loses through rounding, kept so that the factual row comes back exactly.
RESIDUAL = "rounding/"

#: Draws with which an equation is probed when its inverse was not declared.
_PROBE_DRAWS = 2048


class StructuralCausalModel(CausalModel):
    r"""A causal model given by its equations: :math:`x_i = f_i(x_{pa(i)}, u_i)`.

    Parameters
    ----------
    equations : dict of str to callable
        Node -> function of its parents and its own noise ``u``; parameter names are node names, so
        the graph is read off the signatures. Functions work on whole columns (numpy arrays of
        shape (n,)). A discrete node returns integer codes 0, 1, ... and is seen as codes by its
        children. A parameter with a default value is a constant, not a parent.
    noise : dict of str to distribution
        Node -> anything with ``rvs(size=, random_state=)``: a frozen ``scipy.stats`` distribution
        or one of `vaca.scm.distributions`. Not needed where the equation has no ``u``.
    inverse : dict of str to callable, optional
        Node -> function of the parents and of the node itself, giving ``u`` (NaN where the value
        does not determine it). Nodes left out are solved numerically when a counterfactual needs
        it: additive noise, integer noise with few values, and any equation monotone in ``u``.
    kinds : dict of str to str, optional
        Kind of each column that is not ``"continuous"``.
    levels : dict of str to sequence, optional
        Labels of the codes 0, 1, ... of each discrete column; (0, 1) for a binary one left out.
    name : str, optional
        Shown in messages.
    published_nodes : sequence of str, optional
        Nodes that the published study intervened on, if not all that have children.

    Notes
    -----
    Every answer of an inverse, declared or solved, is put back into the equation and must
    reproduce the row. Where a value does not determine its noise (a threshold, say), counterfactual
    rows must come from this model's own `sample`: the frame carries its seed, the noise is drawn
    again, and used once it has reproduced the row exactly.

    Examples
    --------
    >>> from vaca.scm import Normal
    >>> scm = StructuralCausalModel(
    ...     {
    ...         "dose": lambda u: u,
    ...         "effect": lambda dose, u: 2 * dose + u,
    ...         "cured": lambda effect, u: effect + u > 0,
    ...     },
    ...     {"dose": Normal(1, 1), "effect": Normal(0, 0.25), "cured": Normal(0, 1)},
    ...     kinds={"cured": "binary"},
    ... )
    >>> scm.graph.edges
    (('dose', 'effect'), ('effect', 'cured'))
    >>> df = scm.sample(1000, seed=0)
    >>> twin = scm.counterfactual(df, do={"dose": df["dose"] + 1})
    >>> bool(np.allclose(twin["effect"] - df["effect"], 2))
    True
    """

    def __init__(
        self,
        equations: Mapping[str, Equation],
        noise: Mapping[str, Distribution],
        *,
        inverse: Mapping[str, Equation] | None = None,
        kinds: Mapping[str, Kind] | None = None,
        levels: Mapping[str, Iterable[Any]] | None = None,
        name: str | None = None,
        published_nodes: Sequence[str] | None = None,
    ) -> None:
        self.name = name
        self._equations = dict(equations)
        inputs = read_inputs(equations)
        self.graph = CausalGraph({n: [p for p in i if p != "u"] for n, i in inputs.items()})
        self._has_noise = {node: "u" in names for node, names in inputs.items()}
        self._noise = check_noise(noise, inputs)
        self._inverse = check_inverse(inverse or {}, self.graph)
        self.schema_ = make_schema(self.graph.nodes, kinds or {}, levels or {})
        self._published = tuple(published_nodes) if published_nodes is not None else None

    # ------------------------------------------------------------------ the three primitives

    def noise(self, n: int, rng: np.random.Generator) -> Noise:
        """Draw the noise of every node; each array has shape (n,)."""
        return {node: self._draw(node, n, rng) for node in self.graph.nodes}

    def simulate(self, u: Noise, do: Columns) -> Columns:
        """Run the equations, causes first, with intervened columns in place of their equations."""
        n = row_count(u)
        x: Columns = {}
        for node in self.graph.order:
            if node in do:
                x[node] = do[node]
                continue
            value = self._evaluate(node, x, u[node], n)
            rest = u.get(RESIDUAL + node)
            x[node] = value if rest is None else value + rest
        return {node: x[node] for node in self.graph.nodes}

    def abduct(self, x: Columns, rng: np.random.Generator | None = None) -> Noise:
        """Give the noise that produces the rows exactly; `rng` is not used, as nothing is random.

        Raises
        ------
        AbductionError
            If a row does not determine its noise, or cannot come from this model.
        """
        u, bad = self._invert(x)
        if bad:
            raise self._refusal(bad, range(row_count(x)))
        return u

    # ------------------------------------------------------------------ the paper's interventions

    @property
    def intervened_nodes(self) -> tuple[str, ...]:
        """The nodes that the paper intervenes on: all that have children."""
        leaves = set(self.graph.leaves)
        return tuple(node for node in self.graph.nodes if node not in leaves)

    @property
    def published_nodes(self) -> tuple[str, ...]:
        """The nodes that the published figures intervened on."""
        return self.intervened_nodes if self._published is None else self._published

    def intervention_values(
        self, node: str, data: pd.DataFrame, protocol: str = "paper"
    ) -> list[Any]:
        """Give the values to which a node is set in the experiments.

        A continuous node: mean + c * sd of `data` (sd with divisor n), with c in
        {-1, -.5, 0, .5, 1} for ``"paper"``, and c in {-1, .1, .5, 1}, rounded to two decimals, for
        ``"published"``. A count: the same, rounded to whole numbers. A discrete node: each of
        its levels, since a mean of codes is no level.

        Examples
        --------
        >>> import vaca
        >>> scm = vaca.scms.load("loan")
        >>> scm.intervention_values("gender", scm.sample(100, seed=0))
        [0, 1]
        """
        if protocol not in GRIDS:
            raise VacaError(f"unknown protocol {protocol!r}; {did_you_mean(protocol, GRIDS)}")
        column = self.schema_[node]
        if column.discrete:
            return list(column.levels)
        values = np.asarray(data[node], dtype=float)
        grid = [float(values.mean() + c * values.std()) for c in GRIDS[protocol]]
        if column.kind == "count":
            grid = [float(max(round(value), 0)) for value in grid]
        elif protocol == "published":
            grid = [round(value, 2) for value in grid]
        return list(dict.fromkeys(grid))

    def __repr__(self) -> str:
        label = f"{self.name!r}, " if self.name else ""
        return f"StructuralCausalModel({label}{', '.join(self.graph.nodes)})"

    # ------------------------------------------------------------------ abduction

    def _invert(self, x: Columns) -> tuple[Noise, dict[str, tuple[np.ndarray, bool]]]:
        """Give noise for every row, and for each node that fails: the rows, and was u found."""
        u: Noise = {}
        bad: dict[str, tuple[np.ndarray, bool]] = {}
        for node in self.graph.nodes:
            value = x[node]
            with np.errstate(all="ignore"):
                u[node], found = self._solve(node, x)
                again = self._evaluate(node, x, u[node], len(value), strict=False)
                if self.schema_[node].discrete:
                    wrong = again != value
                else:
                    rest = value - again
                    scale = np.abs(value) + np.abs(value).max(initial=0.0)
                    wrong = ~(np.abs(rest) <= 1e-9 * scale + 1e-12)
                    u[RESIDUAL + node] = rest
            wrong |= ~found
            if wrong.any():
                bad[node] = (wrong, bool(found[wrong].all()))
        return u, bad

    def _solve(self, node: str, x: Columns) -> tuple[np.ndarray, np.ndarray]:
        """Give u in every row (any value where undetermined), and whether it is determined."""
        value = x[node]
        if not self._has_noise[node]:
            return np.zeros(len(value)), np.ones(len(value), dtype=bool)
        draws = self._draw(node, _PROBE_DRAWS, np.random.default_rng(0))
        if node in self._inverse:
            names, f = self._inverse[node]
            solved = np.asarray(f(**{name: x[name] for name in names}), dtype=float)
            solved = np.broadcast_to(solved, value.shape)
        else:
            solved = solve_noise(
                lambda u: self._evaluate(node, x, u, len(value), strict=False), value, draws
            )
        found = np.isfinite(solved)
        u = np.where(found, solved, draws[0])
        # An equation may use whole-numbered noise as an index, so it must stay whole-numbered.
        return (np.rint(u).astype(np.int64) if draws.dtype == np.int64 else u), found

    def _refusal(self, bad: dict[str, tuple[np.ndarray, bool]], labels: Any) -> AbductionError:
        node, (rows, found) = next(iter(bad.items()))
        model = f"the model {self.name!r}" if self.name else "this model"
        first = labels[int(np.argmax(rows))]
        where = f"node {node!r}, row {first} ({int(rows.sum())} such row(s))"
        if found or not self._has_noise[node]:
            return AbductionError(
                f"{where}: no noise gives this value under the node's equation, so the row cannot "
                f"come from {model}. Check the row's values and units"
                + (f", or the declared inverse of {node!r}" if node in self._inverse else "")
            )
        return AbductionError(
            f"{where}: the value does not determine the noise behind it (the equation cannot be "
            f"inverted there), and the row is not an unchanged one sampled by {model}. Pass rows "
            "of a frame from .sample(), with their index and .attrs kept (parquet files keep "
            "both, CSV files lose the second)"
            + ("" if node in self._inverse else f", or declare inverse={{{node!r}: ...}}")
        )

    # ------------------------------------------------------------------ noise known from sampling

    def _record_sample(
        self, frame: pd.DataFrame, n: int, seed: int, do: Mapping[str, Any] | None
    ) -> None:
        # Rows under an intervention do not follow the equations, so nothing could be checked.
        if not do:
            frame.attrs["vaca"] = {"model": self.name, "seed": int(seed), "rows": int(n)}

    def _abduct_frame(
        self,
        frame: pd.DataFrame,
        x: Columns,
        rng: np.random.Generator | None,
        below: Collection[str] | None = None,
    ) -> Noise:
        u, known = self._recorded(frame, x)
        if known.all():
            return u
        rest = np.flatnonzero(~known)
        solved, bad = self._invert(take_rows(x, rest))
        if bad:
            raise self._refusal(bad, frame.index[rest])
        merged: Noise = {}
        for key, values in solved.items():
            merged[key] = np.zeros(len(known), dtype=np.result_type(values, u.get(key, values)))
            merged[key][known] = u[key][known] if key in u else 0
            merged[key][rest] = values
        return merged

    def _recorded(self, frame: pd.DataFrame, x: Columns) -> tuple[Noise, np.ndarray]:
        """Draw the noise of sampled rows again; known where it reproduces the row exactly."""
        known = np.zeros(len(frame), dtype=bool)
        record = frame.attrs.get("vaca")
        if not isinstance(record, dict) or record.get("model") != self.name:
            return {}, known
        seed, n = record.get("seed"), record.get("rows")
        if not isinstance(seed, int) or not isinstance(n, int) or seed < 0:
            return {}, known
        if not pd.api.types.is_integer_dtype(frame.index.dtype):
            return {}, known
        labels = frame.index.to_numpy()
        inside = (labels >= 0) & (labels < n)
        generator = generators(seed, 2)[0]
        u: Noise = {}
        for start, stop in chunks(n):  # as `sample` drew it
            if not (inside & (labels >= start)).any():
                break
            drawn = self.noise(stop - start, generator)
            rows = np.flatnonzero(inside & (labels >= start) & (labels < stop))
            for node, values in drawn.items():
                if node not in u:
                    u[node] = np.zeros(len(labels), dtype=values.dtype)
                u[node][rows] = values[labels[rows] - start]
        rows = np.flatnonzero(inside)
        if len(rows):
            again = self.simulate(take_rows(u, rows), {})
            known[rows] = np.logical_and.reduce([again[node] == x[node][rows] for node in x])
        return u, known

    def _assumption(self, column: str) -> tuple[bool, str]:
        if not self._has_noise[column]:
            return True, "the equation alone: it has no noise"
        if column in self._inverse:
            return True, "the equation, and its inverse in the noise as declared"
        if self.schema_[column].discrete and self.graph.parents(column):
            return (
                True,
                "the equation, and the noise that sampled the row: it takes only its own rows",
            )
        return True, "the equation, solved for its noise"

    # ------------------------------------------------------------------ checks and evaluation

    def _draw(self, node: str, n: int, rng: np.random.Generator) -> np.ndarray:
        if not self._has_noise[node]:
            return np.zeros(n)
        drawn = np.asarray(self._noise[node].rvs(size=n, random_state=rng))
        if drawn.shape != (n,):
            raise VacaError(
                f"the noise of {node!r} gave the shape {drawn.shape} for size={n}; one number per "
                f"row, shape ({n},), is needed"
            )
        if np.issubdtype(drawn.dtype, np.integer):
            return drawn.astype(np.int64, copy=False)
        return drawn.astype(float, copy=False)

    def _evaluate(
        self, node: str, x: Columns, u: np.ndarray, n: int, strict: bool = True
    ) -> np.ndarray:
        arguments = {parent: x[parent] for parent in self.graph.parents(node)}
        if self._has_noise[node]:
            arguments["u"] = u
        value = np.asarray(self._equations[node](**arguments))
        if value.shape != (n,):
            if value.ndim:
                raise VacaError(
                    f"the equation of {node!r} gave the shape {value.shape} for {n} row(s); one "
                    f"value per row, shape ({n},), is needed"
                )
            value = np.full(n, value)
        if not self.schema_[node].discrete:
            return value.astype(float, copy=False)
        if not strict:
            return value.astype(float)
        codes = value.astype(np.int64, copy=False)
        levels = len(self.schema_[node].levels)
        if n and (codes.min() < 0 or codes.max() >= levels or not (codes == value).all()):
            raise VacaError(
                f"the equation of {node!r} gave {np.unique(value)[:5].tolist()}...; a "
                f"{self.schema_[node].kind} node with {levels} levels needs codes 0 to {levels - 1}"
            )
        return codes
