"""One audit in progress: what the model and the predictor say about each person, block by block."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from vaca.fairness.alternatives import Alternative, Sensitive
from vaca.fairness.decomposition import Part, predictions_needed, read_parts, shapley_shares
from vaca.fairness.predictor import Predictor
from vaca.fairness.result import mean_interval
from vaca.model.answers import half_width, spread_over_fits
from vaca.model.causal_model import CausalModel
from vaca.model.effects import fit_variance
from vaca.table.columns import take_rows
from vaca.table.schema import Columns

#: Counterfactual rows that are held at once.
BLOCK = 200_000
#: Predictions for the spread of the decomposition over fits; it looks at fewer people if needed.
FIT_PARTS = 200_000
#: Predictions that the decomposition may ask for; it uses fewer draws for each person if needed.
PARTS_BUDGET = 100_000


@dataclass
class Inquiry:
    """Asks the model and the predictor, block by block."""

    model: CausalModel
    predictor: Predictor
    given: pd.DataFrame  # as the user gave it: its index and attrs may tell a model more
    factual: pd.DataFrame
    x: Columns
    who: Sensitive
    base: np.ndarray
    threshold: float
    parts: list[Part]
    seed: int
    fits: int = 1
    part_draws: int | None = None
    outside: dict[str, list[str]] = field(default_factory=dict)  # alternative -> sentences
    beyond: dict[str, int] = field(default_factory=dict)  # column -> twins outside its range
    twins_seen: int = 0

    @property
    def part_columns(self) -> list[str]:
        return [f"{kind}:{part.label}" for part in self.parts for kind in ("share", "alone")]

    def counterfactual(
        self,
        rows: np.ndarray,
        alternative: Alternative,
        draws: int | None,
        seed: int,
        deal: bool = False,
    ) -> pd.DataFrame:
        """The rows under do(S = alternative), with the columns that the graph does not name.

        By the main fit, or with draws that all fits share in turn.
        """
        x = take_rows(self.x, rows)
        do = self.who.do(alternative, x, self.model.graph, self.model)
        given = self.given[list(self.x)].iloc[rows]
        answer, intervention = self.model._answered(given, do, draws, seed, deal=deal)
        # The first rows are enough: later ones would say the same with other figures.
        if alternative.label not in self.outside:
            self.outside[alternative.label] = self.model._outside(intervention, answer)
        repeated = np.repeat(rows, draws or 1)
        result = self.model.schema_.decode(answer, index=pd.RangeIndex(len(repeated)))
        for c in self.factual.columns:
            if c not in result.columns:
                result[c] = self.factual[c].array.take(repeated)
        return result[list(self.factual.columns)]

    def all_pairs(self, draws: int | None, level: float) -> pd.DataFrame:
        """One line for each person and each alternative that is not the person's own."""
        repeats = draws or 1
        n = len(self.base)
        step = max(1, BLOCK // repeats)
        starts = list(range(0, n, step))
        seeds = np.random.SeedSequence(self.seed).generate_state(len(starts))
        if self.parts:
            evaluations = predictions_needed(len(read_parts(self.predictor, self.parts)))
            per_draw = max(1, n * evaluations * max(1, len(self.who.alternatives) - 1))
            self.part_draws = int(np.clip(PARTS_BUDGET // per_draw, 1, min(repeats, 20)))
        found = []
        for start, seed in zip(starts, seeds, strict=True):
            block = np.arange(start, min(start + step, n))
            for alternative in self.who.alternatives:
                rows = block[self.who.differs(alternative, self.x)[block]]
                if len(rows):
                    found.append(self._pairs(rows, alternative, draws, int(seed), level))
        if not found:
            return pd.DataFrame()
        # People in order; for each, the alternatives in order.
        return pd.concat(found, ignore_index=True).sort_values("row", kind="stable")

    def _pairs(
        self, rows: np.ndarray, alternative: Alternative, draws: int | None, seed: int, level: float
    ) -> pd.DataFrame:
        repeats = draws or 1
        twins = self.counterfactual(rows, alternative, draws, seed)
        self._note_range(twins, np.repeat(rows, repeats))
        scores = self.predictor(twins).reshape(len(rows), repeats)
        base = self.base[rows]
        gaps = scores - base[:, None]
        tail = (1 - level) / 2
        low, high = np.quantile(gaps, [tail, 1 - tail], axis=1)
        fits: dict[str, np.ndarray] = {}
        if self.fits > 1:
            fits, low, high = self._over_fits(rows, alternative, repeats, seed, tail)
        flips = ((scores >= self.threshold) != (base >= self.threshold)[:, None]).mean(axis=1)
        gap = gaps.mean(axis=1)
        gap[np.ptp(gaps, axis=1) == 0] = gaps[np.ptp(gaps, axis=1) == 0, 0]  # no rounding of means
        table = {
            "row": rows,
            "from": self.who.groups[rows],
            "to": alternative.label,
            "factual": base,
            "counterfactual": base + gap,
            "gap": gap,
            "unfairness": np.abs(gap),
            "low": low,
            "high": high,
            "flip": flips,
            "half": _halves(gaps) if repeats > 1 else np.abs(gap),
            **fits,
        }
        if self.parts and self.part_draws:
            d = self.part_draws
            take = (np.arange(len(rows))[:, None] * repeats + np.arange(d)).ravel()
            shares, alone = shapley_shares(
                self.predictor,
                self.parts,
                self.factual.iloc[np.repeat(rows, d)],
                twins.iloc[take],
            )
            for j, part in enumerate(self.parts):
                table[f"share:{part.label}"] = shares[:, j].reshape(-1, d).mean(axis=1)
                table[f"alone:{part.label}"] = alone[:, j].reshape(-1, d).mean(axis=1)
        return pd.DataFrame(table)

    def _over_fits(
        self, rows: np.ndarray, alternative: Alternative, repeats: int, seed: int, tail: float
    ) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
        """The gaps by each fit, and where a person's gap lies by all of them.

        The fits share the draws, so that all of them cost as much as the main one alone. The main
        fit is among them: with as few draws as the others, it errs by chance as they do.
        """
        draws = self.fits * -(-repeats // self.fits)
        twins = self.counterfactual(rows, alternative, draws, seed, deal=True)
        scores = self.predictor(twins).reshape(len(rows), draws)
        gaps = scores - self.base[rows][:, None]
        turn = np.arange(draws) % self.fits
        found = {f"fit:{k}": gaps[:, turn == k].mean(axis=1) for k in range(self.fits)}
        spread = spread_over_fits(
            gaps.ravel(),
            np.repeat(np.arange(len(rows)), draws),
            np.tile(turn, len(rows)),
            (tail, 1 - tail),
        )
        low, high = (spread[f"{100 * q:g}%"] for q in (tail, 1 - tail))
        if self.parts:
            few = rows[: max(1, FIT_PARTS // (2 ** len(self.parts) * self.fits))]
            take = np.arange(len(few))[:, None] * draws + np.arange(self.fits)
            shares, _ = shapley_shares(
                self.predictor,
                self.parts,
                self.factual.iloc[np.repeat(few, self.fits)],
                twins.iloc[take.ravel()],
            )
            for j, part in enumerate(self.parts):
                every = np.full((len(rows), self.fits), np.nan)
                every[: len(few)] = shares[:, j].reshape(-1, self.fits)
                found |= {f"fit:{k}:{part.label}": every[:, k] for k in range(self.fits)}
        return found, low, high

    def interval(
        self,
        pairs: pd.DataFrame,
        values: np.ndarray,
        level: float,
        part: str = "",
        size: bool = True,
    ) -> tuple[float, float]:
        """An interval of a mean of values: for the choice of people and, if several, the fits.

        The fit's part is the spread of the same mean by each fit, over people it was asked for.
        """
        low, high = mean_interval(values, level)
        if self.fits < 2:
            return low, high
        means = []
        for k in range(self.fits):
            own = pairs[f"fit:{k}{part and ':' + part}"]
            own = (own.abs() if size else own).dropna()
            means.append(own.groupby(pairs["row"][own.index]).mean().mean())
        main, _ = self.model._fits()
        middle, others = (means[0], means[1:]) if main is not None else (np.mean(means), means)
        variance, degrees = fit_variance(float(middle), np.array(others), main is not None)
        half = half_width(np.sqrt(variance), degrees, level)
        value = float(values.mean())
        if np.isnan(low):  # one person: only the fit is uncertain
            low = high = value
        low, high = value - np.hypot(value - low, half), value + np.hypot(high - value, half)
        return (max(low, 0.0), min(high, 1.0)) if size else (low, high)

    def _note_range(self, twins: pd.DataFrame, rows: np.ndarray) -> None:
        """Count twins with values outside what the model was fitted on, if the person's are not."""
        self.twins_seen += len(twins)
        reached = [c for n in self.who.mediators for c in self.model.graph.columns(n)]
        for c in reached:
            column = self.model.schema_[c]
            if column.discrete or column.low is None:
                continue
            after, before = twins[c].to_numpy(dtype=float), self.x[c][rows]
            out = column.outside(after) & ~column.outside(before)
            self.beyond[c] = self.beyond.get(c, 0) + int(out.sum())

    def twins(
        self, pairs: pd.DataFrame, index: pd.Index, count: int, draws: int | None
    ) -> list[dict[str, Any]]:
        """For the people most affected: the row, and a typical counterfactual twin.

        Those whose decision would most likely change come first; then the widest gaps.
        """
        ranked = pairs.assign(turns=pairs["flip"] >= 0.5)
        widest = ranked.sort_values(["turns", "unfairness"], ascending=False, kind="stable")
        widest = widest[widest["unfairness"] > 0].drop_duplicates("row").head(count)
        alternatives = {a.label: a for a in self.who.alternatives}
        result = []
        for person in widest.to_dict("records"):
            row = np.array([person["row"]])
            answers = self.counterfactual(row, alternatives[person["to"]], draws, self.seed)
            # Of the draws, the one whose prediction is nearest to their average.
            typical = int(np.argmin(np.abs(self.predictor(answers) - person["counterfactual"])))
            before = self.factual.iloc[person["row"]].to_dict()
            after = answers.iloc[typical].to_dict()
            shown = {k: person[k] for k in _TWIN_KEYS}
            label = index[person["row"]]
            result.append({"person": label, **shown, "before": before, "after": after})
        return result


_TWIN_KEYS = ("from", "to", "factual", "counterfactual", "gap", "low", "high", "flip")


def _halves(gaps: np.ndarray) -> np.ndarray:
    """The size of the average gap by half of the draws, and by the other half; their mean."""
    middle = gaps.shape[1] // 2
    return (np.abs(gaps[:, :middle].mean(axis=1)) + np.abs(gaps[:, middle:].mean(axis=1))) / 2
