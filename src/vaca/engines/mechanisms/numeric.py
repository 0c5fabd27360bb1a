r"""Mechanisms of continuous columns and counts: a location, a scale and a curve of noise.

.. math:: g(x_j) = m(x_{pa(j)}) + e^{s(x_{pa(j)})} Q(u_j), \qquad u_j \sim N(0, 1)

with :math:`m` and :math:`s` lines, curves, surfaces or trees of the parents, :math:`Q` an
increasing curve (see `noise`), and :math:`g` the identity, a logarithm or a logit, so that a
positive or bounded column stays what it is. :math:`x_j` is increasing in :math:`u_j`: noise is
abducted exactly. A count is the cell :math:`[x - 1/2, x + 1/2)`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from vaca.engines.columnwise import normal_between
from vaca.engines.mechanisms.added import Quantiles, TwoCurves, choose_smoothing
from vaca.engines.mechanisms.blend import Blend, location_of
from vaca.engines.mechanisms.cells import cells, most_of, open_ends
from vaca.engines.mechanisms.designs import (
    Design,
    moved_steps,
    snapped,
    telling_products,
    too_many_pairs,
    with_steps,
)
from vaca.engines.mechanisms.locations import (
    Linear,
    add_trees,
    alone,
    fit_location,
    fit_spread,
    linear_arrays,
    linear_of,
    logged,
    near,
    on_scale,
    stepwise,
)
from vaca.engines.mechanisms.locations import (
    width as width_of,
)
from vaca.engines.mechanisms.noise import NoiseCurve, log_between
from vaca.engines.mechanisms.recipe import SPREADS, Recipe
from vaca.engines.mechanisms.scale import PLAIN, Scale
from vaca.engines.trees import Trees

if TYPE_CHECKING:
    from vaca.engines.mechanisms.flow import Flow

__all__ = ["TOO_WIDE", "Numeric", "fit_numeric"]

#: Residuals below this, in standard deviations of the column, are rounding: there is no noise.
EXACT = 1e-6
#: Log-scales are kept within this of the ones seen in training.
SCALE_MARGIN = 0.5
#: How far a location on a logarithmic scale may leave the data, in ranges of its values there.
REACH = 0.5
#: Most drawn values may spread this many times as far as the observed ones, all this many times.
EXPLODES, EXPLODES_FAR = 1.3, 2.0
#: Shares of rows left out at both ends: a rare level alone may tell one of these quantiles.
OUTER = np.array([0.02, 0.01, 0.005])
#: Further than this times the most they may, nothing speaks for a mechanism any more.
TOO_WIDE = 1.5
#: Half the cell, in standard deviations of the column, over which a density is averaged to score.
CELL = 0.01


@dataclass
class Numeric:
    """A fitted mechanism of a numeric column; see the module's description."""

    recipe: Recipe
    scale: Scale
    location: Linear | Blend
    trees: Trees | None
    spread: Linear | None
    limits: np.ndarray  # of the log-scale
    curve: NoiseCurve | TwoCurves
    width: float
    exact: bool = False
    flow: Flow | None = None
    reach: tuple[float, float] = (-np.inf, np.inf)  # of the location, on a logarithmic scale
    most: float = np.inf  # of a count

    # ------------------------------------------------------------------ values and noise

    def _mean(self, x: np.ndarray) -> np.ndarray:
        mean = on_scale(self.recipe, self.scale, self.location(x))
        mean = mean if self.trees is None else mean + self.trees(x)[:, 0]
        return np.clip(mean, *self.reach)

    def _log_scale(self, x: np.ndarray) -> np.ndarray:
        if self.spread is None:
            return np.zeros(len(x))
        return np.clip(logged(self.recipe, self.spread(x)), *self.limits)

    def spread_near(self, x: np.ndarray) -> float:
        """The usual size of residuals, in standard deviations of the column."""
        return float(np.median(np.exp(self._log_scale(x)))) * self.curve.spread

    def value(self, x: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Values (n,) from inputs (n, features) and noise (n,)."""
        mean = self._mean(x)
        if self.flow is not None:
            u = self.flow.back(x, u)
        if not self.exact:
            log_scale = self._log_scale(x)
            mean = mean + np.exp(log_scale) * self.curve.at(log_scale).residual(u)
        else:
            mean = mean + u
        y = self.scale.back(mean)
        return np.clip(np.rint(y), 0.0, self.most) if self.recipe.count else y

    @property
    def adds(self) -> bool:
        """Whether the residual of a value can be added to what other parents give."""
        return self.recipe.additive and self.flow is None

    def left(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The residuals (n,) of values, without the way through the curve of noise."""
        return self.scale.forward(y) - self._mean(x)

    def with_left(self, x: np.ndarray, left: np.ndarray) -> np.ndarray:
        """Values (n,) from inputs and residuals under other parents: the inverse of `left`."""
        return self.scale.back(self._mean(x) + left)

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Noise of n rows."""
        return np.zeros(n) if self.exact else rng.standard_normal(n)

    def noise(self, x: np.ndarray, y: np.ndarray, rng: np.random.Generator | None) -> np.ndarray:
        """Noise (n,) of values: exact, or for a count within its cell."""
        if self.exact:
            return self.scale.forward(y) - self._mean(x)
        if self.recipe.count:
            return normal_between(*self._ends(x, y), rng)
        v = self._curve(x).noise(self._residual(x, y))
        return v if self.flow is None else self.flow.noise(x, v)[0]

    def log_density(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Log-density (n,) of values; of counts the log-probability."""
        if self.exact:
            return np.full(len(y), -np.log(EXACT * (self.scale.unit or 1.0)))
        if self.recipe.count:
            return log_between(*self._ends(x, y))
        residual = self._residual(x, y)
        curve = self._curve(x)
        density = curve.log_density(residual) - self._log_scale(x)
        if self.flow is not None:
            density = density + self.flow.gain(x, curve.noise(residual))
        return density + self.scale.log_slope(y)

    def simpler(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """What a flow is given: the noise (n,) without it, of counts the ends (n, 2) of cells."""
        plain = replace(self, flow=None)
        return np.stack(plain._ends(x, y), 1) if self.recipe.count else plain.noise(x, y, None)

    def _ends(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The noise at both ends of the cell of a count."""
        ends = self._curve(x).ends(*self._cell(x, y))
        return ends if self.flow is None else self.flow.ends(x, *ends)

    def _curve(self, x: np.ndarray) -> NoiseCurve:
        """The curve of noise of each row."""
        return self.curve.at(self._log_scale(x))

    def _residual(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return (self.scale.forward(y) - self._mean(x)) * np.exp(-self._log_scale(x))

    def _cell(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        low, high = cells(self.scale, y, self._mean(x), self._log_scale(x))
        return open_ends(y, low, high, self.most)

    # ------------------------------------------------------------------ again, under other weights

    def refit(
        self, x: np.ndarray, y: np.ndarray, w: np.ndarray, folds: np.ndarray, rng: Any
    ) -> Numeric:
        """The same mechanism fitted to weighted rows, with the same choices."""
        fitted, *_ = fit_numeric(self.recipe, x, y, w, folds, (), rng, like=self)
        if fitted.overshoot(x, y, rng) > TOO_WIDE:
            # A scale near zero at one row makes its noise huge everywhere else.
            fitted = replace(self, location=fitted.location, trees=fitted.trees, flow=None)
        if self.flow is None:
            return fitted
        flow = self.flow.refit(x, fitted.simpler(x, y), w, int(rng.integers(2**31)))
        return replace(fitted, flow=flow)

    def scaled(self, x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Values (n,) on the scale of the location; a count where noise puts it in its cell."""
        if not self.recipe.count:
            return self.scale.forward(y)
        curve = self._curve(x)
        u = normal_between(*curve.ends(*self._cell(x, y)), rng)
        return self._mean(x) + np.exp(self._log_scale(x)) * curve.residual(u)

    def own_weights(self, x: np.ndarray, t: np.ndarray, w: np.ndarray) -> np.ndarray:
        """What rows (n,) count by their noise, and if robust by how far they are."""
        return _own_weights(self.recipe, t - self._mean(x), self._log_scale(x), w)

    def overshoot(self, x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> float:
        """How far drawn values spread, in the most they may: tails, a wide scale."""
        if not self.recipe.spread and self.recipe.scale[0] in PLAIN and self.flow is None:
            return 0.0
        rows = np.arange(min(len(y), 3000))
        even = 0.0 * rows if self.exact else ndtri((rows + 0.5) / len(rows))
        drawn = [self.value(x[rows], rng.permutation(even)) for _ in range(3)]
        # Of heavy tails a few hundred rows say little: what they spread decides only if it is far.
        wide, own = (np.median([_ranges(v) for v in of], axis=0) for of in (drawn, [y[rows]]))
        wide = np.median(wide / np.maximum(own, y.std()))
        far = np.median([v.std() for v in drawn]) / float(y.std())
        if self.scale.kind in (1, 3):
            # The largest of heavy tails are most of a standard deviation: it says that draws are
            # wide, and how far they are out is said by their logarithms.
            own = np.median([self.scale.forward(v).std() for v in drawn])
            far = np.clip(far, own, max(own, 1.01 * EXPLODES_FAR))
        found = max(float(wide) / EXPLODES, float(far) / EXPLODES_FAR)
        return found if np.isfinite(found) else np.inf

    # ------------------------------------------------------------------ as arrays

    def arrays(self) -> dict[str, np.ndarray]:
        r = self.recipe
        plan = [r.curves, -1 if r.depth is None else r.depth, r.trees,
                ["", *SPREADS].index(r.spread), r.robust, r.count, self.exact,
                r.proportional, r.steps, r.added]  # fmt: skip
        state = {
            "plan": np.array(plan, np.int64),
            "scale": self.scale.array(),
            "limits": np.array([*self.limits, self.width, *self.reach]),
            "curve": self.curve.array(),
        }
        own = self.location
        place = own.arrays() if isinstance(own, Blend) else linear_arrays(own)
        state |= {f"location.{k}": v for k, v in place.items()}
        if np.isfinite(self.most):
            state["most"] = np.array([self.most])
        if self.spread is not None:
            state |= {f"spread.{k}": v for k, v in linear_arrays(self.spread).items()}
        if self.trees is not None:
            state |= {f"trees.{k}": np.asarray(v) for k, v in vars(self.trees).items()}
        if self.flow is not None:
            state |= {f"flow.{k}": v for k, v in self.flow.arrays().items()}
        return state

    @classmethod
    def from_arrays(cls, state: dict[str, np.ndarray]) -> Numeric:
        # Folders of the first Composite end before proportions and steps, of others before "added".
        plan = [*(int(v) for v in state["plan"]), 0, 0, 0][:10]
        curves, depth, trees, spread, robust, count, exact, proportional, steps, added = plan
        scale = Scale.from_array(state["scale"])
        recipe = Recipe(
            curves, None if depth < 0 else depth, bool(trees), ["", *SPREADS][spread],
            bool(robust), (scale.kind, scale.low, scale.high), bool(count), bool(proportional),
            bool(steps), bool(added),
        )  # fmt: skip
        curve = TwoCurves.from_array(state["curve"]) if added else NoiseCurve(*state["curve"])
        parts = {
            name: {k[len(name) + 1 :]: v for k, v in state.items() if k.startswith(name + ".")}
            for name in ("location", "spread", "trees", "flow")
        }
        flow = None
        if parts["flow"]:
            from vaca.engines.mechanisms.flow import Flow

            flow = Flow.from_arrays(parts["flow"])
        return cls(
            recipe, scale, location_of(parts["location"]),
            Trees(**parts["trees"]) if parts["trees"] else None,
            linear_of(parts["spread"]) if parts["spread"] else None,
            state["limits"][:2], curve, float(state["limits"][2]),
            bool(exact), flow, tuple(state["limits"][3:5].tolist()) or (-np.inf, np.inf),
            float(state["most"][0]) if "most" in state else np.inf,
        )  # fmt: skip


def _ranges(y: np.ndarray) -> np.ndarray:
    """How far values spread without the outermost ones."""
    return np.quantile(y, 1.0 - OUTER) - np.quantile(y, OUTER)


# ---------------------------------------------------------------------- fitting


def fit_numeric(
    recipe: Recipe,
    x: np.ndarray,
    y: np.ndarray,
    w: np.ndarray,
    folds: np.ndarray,
    groups: Any,
    rng: np.random.Generator,
    *,
    like: Numeric | None = None,
    near: Numeric | None = None,
    blend: tuple[Blend, np.ndarray] | None = None,
) -> tuple[Numeric, np.ndarray, np.ndarray, np.ndarray]:
    """Fit a mechanism, with residuals of rows that its parts had not seen.

    Parameters
    ----------
    folds : ndarray (n,)
        The fold that each row is held out with.
    groups : sequence of int
        For every input the parent it belongs to.
    like : Numeric, optional
        A fitted mechanism whose designs, strengths and tree structures are used again.
    near : Numeric, optional
        A fitted mechanism on the same scale, which says where in its cell a count lies at first.
    blend : Blend and ndarray (n,), optional
        The location, and each row's by rows of the other folds; then it is not fitted.

    Returns
    -------
    Numeric; of every row, by a fit that had not seen it: log-density (n,), the distance (n,) of its
    value from the median, both NaN for rows that are alone, and its location (n,), NaN where trees
    have none
    """
    scale = Scale.of(y, *recipe.scale) if like is None else like.scale
    rows = (x, w, folds, groups)
    if not recipe.count:
        return _fit(recipe, scale, y, scale.forward(y), *rows, like=like, blend=blend)
    # Even noise within cells blurs: what was fitted says better where in its cell a count lies.
    told = like or near
    even = scale.forward(y + rng.uniform(-0.5, 0.5, len(y)))
    t = even if told is None else told.scaled(x, y, rng)
    for _ in range(0 if recipe.trees else 1 if told else 2):
        told = _fit(recipe, scale, y, t, *rows, like=like, blend=blend, draft=True)[0]
        t = told.scaled(x, y, rng)
    return _fit(recipe, scale, y, t, *rows, like=like, blend=blend)


def _fit(
    recipe: Recipe,
    scale: Scale,
    y: np.ndarray,
    t: np.ndarray,
    x: np.ndarray,
    w: np.ndarray,
    folds: np.ndarray,
    groups: Any,
    *,
    like: Numeric | None,
    blend: tuple[Blend, np.ndarray] | None,
    draft: bool = False,
) -> tuple[Numeric, np.ndarray, np.ndarray, np.ndarray]:
    """`fit_numeric` of values ``t`` (n,) on the scale.

    A ``draft`` has no scores, and its residuals are those of rows that it has seen.
    """
    strength = None
    fold_designs: dict[int, Design] = {}  # steps that a row has helped to find flatter it
    if like is not None and isinstance(like.location, Blend):
        blend = like.location.refit(x, t, w, like.own_weights(x, t, w), folds)
    if blend is not None:
        design = blend[0].parts[0].design
    elif like is not None and isinstance(like.location, Linear):
        # Other rows would have put steps elsewhere.
        design, strength = moved_steps(like.location.design, x, t, w), like.location.strength
    else:
        kind: dict[str, Any] = {"curves": recipe.curves, "depth": recipe.depth}
        if recipe.depth is not None and too_many_pairs(x.shape[1], len(x)):
            design = telling_products(x, groups, t, w, **kind)
        else:
            design = Design.build(x, groups, **kind)
        if recipe.steps:
            bare, design = design, with_steps(design, x, t, w)
            for k in np.unique(folds) if len(design.cuts) and not draft else ():
                other = folds != k
                own = with_steps(bare, x[other], t[other], w[other])
                fold_designs[k] = snapped(own, design, x)
    none = np.zeros(0)  # a refit is not scored
    old_trees, old_spread = (None, None) if like is None else (like.trees, like.spread)
    a = design(x) if blend is None else x[:, :0]

    def located(by: np.ndarray) -> tuple[Linear | Blend, np.ndarray]:
        """The location of rows that count ``by``, and each row's by rows of the other folds."""
        if blend is not None:
            return blend
        held_out = None if draft else folds
        found, mean = fit_location(recipe, scale, design, a, t, by, held_out, strength)
        if fold_designs:
            mean = stepwise(fold_designs, x, t, by, folds, found.strength)
        return found, mean

    location, mean = located(w)
    trees = None
    if recipe.trees and isinstance(location, Linear):
        own_mean = on_scale(recipe, scale, a @ location.beta)
        trees, mean = add_trees(old_trees, own_mean, mean, x, t, w, folds)
    if like is not None and trees is not None:
        # What trees leave of rows they have seen is too little: the noise stays as it was found.
        return replace(like, location=location, trees=trees), none, none, none
    every = np.isfinite(mean)
    if not every.all():  # trees were tried on some rows only
        x, y, t, w, mean, a = x[every], y[every], t[every], w[every], mean[every], a[every]
        folds = np.arange(len(t)) % 3
    residual, seen = t - mean, ~alone(x, folds)
    spread, log_scale = None, np.zeros(len(t))
    limits = np.zeros(2)
    for _ in range(2 if recipe.spread or recipe.robust else 0):
        if recipe.spread:
            held_out = None if draft else folds
            spread, log_scale = fit_spread(
                recipe, x, residual, w * seen, held_out, groups, old_spread
            )
            if like is not None:
                log_scale = np.clip(log_scale, *like.limits)
            limits = np.array([log_scale.min() - SCALE_MARGIN, log_scale.max() + SCALE_MARGIN])
        if trees is None:
            location, mean = located(w * _own_weights(recipe, residual, log_scale, w))
            residual = t - mean
    exact = not recipe.count and float(np.abs(residual).max()) < EXACT
    e = residual * np.exp(-log_scale)
    own = (e[seen], log_scale[seen], w[seen], folds[seen])
    # Heavy tails of a logarithm would be heavier still.
    curve, width, others = _curve_of(recipe, *own, tails=scale.kind in PLAIN, like=like)
    reach = (-np.inf, np.inf)
    if scale.kind in (1, 3):  # a line there is an exponential: far outside the data it explodes
        further = REACH * float(np.ptp(mean)) + 1.0
        reach = (float(mean.min()) - further, float(mean.max()) + further)
        if recipe.proportional:  # a line that meets the wall would take all noise to zero there
            reach = (float(mean.min()) - np.log(2.0) / scale.unit, reach[1])
    most = np.inf
    if recipe.count:
        most = most_of(y) if like is None else like.most
    fitted = Numeric(
        recipe, scale, location, trees, spread, limits, curve, width, exact, None, reach, most
    )
    if like is not None or draft:
        return fitted, none, none, none
    # A density averaged over a cell: how fine a candidate is beyond that must not decide.
    half = 0.5 if recipe.count else CELL * float(y.std())
    miss = np.full(len(every), np.nan)
    nought = np.zeros(len(mean))
    middle = scale.back(mean + np.exp(log_scale) * curve.at(log_scale).residual(nought))
    # Far out in a heavy tail all are off by much, and must not speak for the others.
    far = float(np.ptp(np.quantile(y, [0.1, 0.9]))) or float(y.std())
    miss[every] = np.where(seen, np.minimum(np.abs(y - middle), far), np.nan)
    told = np.full(len(every), np.nan)
    told[every] = mean
    if exact:
        return fitted, np.full(len(every), -np.log(2 * half or 1.0)), miss, told
    found = np.empty(len(y))
    low, high = cells(scale, y, mean, log_scale, half)
    if recipe.count:
        low, high = open_ends(y, low, high, most)
    for k in np.unique(folds):
        out = folds == k
        found[out] = others(k).at(log_scale[out]).cell(low[out], high[out])
    density = np.full(len(every), np.nan)
    density[every] = np.where(seen, found - np.log(2 * half), np.nan)
    return fitted, density, miss, told


def _curve_of(
    recipe: Recipe,
    e: np.ndarray,
    log_scale: np.ndarray,
    w: np.ndarray,
    folds: np.ndarray,
    *,
    tails: bool,
    like: Numeric | None,
) -> tuple[NoiseCurve | TwoCurves, float, Callable[[int], NoiseCurve | TwoCurves]]:
    """The curve of noise ``e`` (n,) of rows, how smooth it is, and that without a fold's rows."""
    if not recipe.added:
        width = width_of(e, w, folds, tails) if like is None else like.width
        return (
            NoiseCurve.fit(e, w, width),
            width,
            lambda k: NoiseCurve.fit(e[folds != k], w[folds != k], width),
        )
    inverse = np.exp(-log_scale)
    old = None if like is None else like.curve
    if like is not None and isinstance(old, TwoCurves):
        again = Quantiles.of(e, inverse, w, start=old)
        return again.smoothed(int(like.width)), like.width, lambda k: old
    parts = {}
    for k in np.unique(folds):
        kept = folds != k
        parts[k] = Quantiles.of(e[kept], inverse[kept], w[kept])
    number = choose_smoothing(parts, e, log_scale, w, folds)
    whole = Quantiles.of(e, inverse, w)
    return whole.smoothed(number), float(number), lambda k: parts[k].smoothed(number)


def _own_weights(
    recipe: Recipe, residual: np.ndarray, log_scale: np.ndarray, w: np.ndarray
) -> np.ndarray:
    own = np.exp(-2 * (log_scale - np.average(log_scale, weights=w)))
    return own * near(residual * np.exp(-log_scale)) if recipe.robust else own
