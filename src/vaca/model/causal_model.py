r"""The one interface: a graph, a noise distribution p(u), and a deterministic map x = F(u, do).

- observational and interventional rows: :math:`x = F(u, do)` with :math:`u \sim p(u)`;
- counterfactual rows: :math:`x^{CF} = F(u, do)` with :math:`u \sim p(u \mid x)`
  (abduction, action, prediction).

True SCMs and learned models implement `noise`, `abduct` and `simulate`; all questions are answered
here, once, for both alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, overload

import numpy as np
import pandas as pd

from vaca.errors import InterventionError, VacaError
from vaca.model.answers import CounterfactualFrame, Effect, GroupEffects
from vaca.model.arguments import check_flag, check_names
from vaca.model.intervention import Intervention, warn_outside_support
from vaca.model.primitives import Primitives, fresh_seed
from vaca.table.dtypes import like
from vaca.table.schema import as_frame


class CausalModel(Primitives):
    """Anything that can answer observational, interventional and counterfactual questions.

    A subclass has a `graph`, a `schema_`, and the three primitives `noise`, `abduct` and
    `simulate`; the questions are built from them, once, here.
    """

    #: Whether the model was fitted to data, so that its answers are uncertain beyond simulation.
    _learned = False

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
        seed = fresh_seed() if seed is None else seed
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
            Also give, as `.bounds`, the lowest and highest probability of each level of a discrete
            column: what no data can decide, and the model's choice of noise does.

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
        if check_flag("bounds", bounds):
            from vaca.trust.bounds import counterfactual_bounds

            result.bounds = counterfactual_bounds(self, frame, do)
        return result

    def _keep_exactly(
        self, answer: pd.DataFrame, frame: pd.DataFrame, intervention: Intervention
    ) -> None:
        """Copy columns that `do` cannot reach from the factual rows: floats may have lost digits.

        Copy also texts that are not levels, in rows that stay at the level that stands for them.
        """
        repeats = len(answer) // len(frame)
        rows = np.repeat(np.arange(len(frame)), repeats)
        for column, spec in self.schema_.items():
            if spec.other and self.graph.node_of(column) not in intervention.nodes:
                texts = frame[column].astype(object).take(rows).set_axis(answer.index)
                stays = (answer[column] == spec.other) & ~texts.isin(spec.levels) & texts.notna()
                shown = answer[column].astype(object).mask(stays, texts)
                answer[column] = like(shown, frame[column])
        for node in set(self.graph.nodes) - intervention.affected:
            for column in self.graph.columns(node):
                own = frame[column].array
                kept = own.copy() if repeats == 1 else own.take(rows)
                answer[column] = pd.Series(kept, index=answer.index, dtype=frame[column].dtype)

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
            A column. Levels that are numbers are averaged; for other levels the effect is on the
            probability of `level` (by default the second level of a binary column).
        treatment, control : mapping
            Interventions, as in `sample`; no `control` means no intervention.
        given : DataFrame, optional
            Factual rows: then the effect is averaged over their counterfactuals, and `per_row` has
            the effect on each row.
        among : mapping or str, optional
            The group the effect is about: `{"treat": 1}`, or a condition on the columns like
            `"age > 40"`. Taken from the given rows, or else from those the model was fitted to.
        by : str or list of str, optional
            One effect for each level of a column (each quarter of a numeric one).
        n : int
            Rows to draw when none are given; both arms share their noise.
        draws : int, optional
            Draws for each given row. By default the point counterfactual where it is exact, and
            else enough draws for its mean.
        engines : sequence of str
            Other engines to fit to the model's rows and ask the same question; their answers are in
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
            seed=fresh_seed() if seed is None else seed,
        )
        engines = check_names("engines", engines)
        if not isinstance(treatment, Mapping):
            raise InterventionError(f"treatment is a dict from node to value; got {treatment!r}")
        found = average_effect(self, question, among, by)
        if not engines:
            return found
        if isinstance(found, GroupEffects):
            raise VacaError("engines= compares one answer: leave out by=")
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

    def _record_sample(
        self, frame: pd.DataFrame, n: int, seed: int, do: Mapping[str, Any] | None
    ) -> None:
        """A chance to note on a sampled frame how it was made."""
