r"""Mechanisms of continuous columns and counts: a location, a scale and a curve of noise.

.. math:: g(x_j) = m(x_{pa(j)}) + e^{s(x_{pa(j)})} Q(u_j), \qquad u_j \sim N(0, 1)

with :math:`m` and :math:`s` lines, curves, surfaces or trees of the parents, :math:`Q` an
increasing curve (see `noise`), and :math:`g` the identity, a logarithm or a logit, so that a
positive or bounded column stays what it is. :math:`x_j` is increasing in :math:`u_j`: noise is
abducted exactly. A count is the cell :math:`[x - 1/2, x + 1/2)`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from vaca.engines.columnwise import normal_between
from vaca.engines.mechanisms.designs import (
    Design,
    Sums,
    solve,
    telling_products,
    too_many_pairs,
    with_steps,
)
from vaca.engines.mechanisms.noise import FLAT, WIDTHS, NoiseCurve
from vaca.engines.predictors import Trees

if TYPE_CHECKING:
    from vaca.engines.mechanisms.flow import Flow

__all__ = ["Numeric", "Recipe", "Scale", "crossfit", "fit_numeric"]

#: Residuals below this, in standard deviations of the column, are rounding: there is no noise.
EXACT = 1e-6
#: Log-scales are kept within this of the ones seen in training.
SCALE_MARGIN = 0.5
#: Drawn values may spread so many times as far as the observed ones.
EXPLODES = 1.3
#: Of the mean size of residuals: a scale that is fitted as it is gets no smaller than this.
PLAIN_LEAST = 1e-3
#: Half the cell, in standard deviations of the column, over which a density is averaged to score.
CELL = 0.01
#: From so many rows on, trees are scored on one fold.
FEW_FOR_TREES = 2000


@dataclass
class Scale:
    """From a column's own units to the ones in which its mechanism is fitted, and back.

    ``kind`` 0: as it is; 1: logarithm above ``low``; 2: logit between ``low`` and ``high``; 3:
    logarithm below ``high``, turned so that it rises.
    """

    kind: int
    low: float
    high: float
    mean: float
    unit: float

    @classmethod
    def of(cls, y: np.ndarray, kind: int = 0, low: float = 0.0, high: float = 1.0) -> Scale:
        blank = cls(kind, low, high, 0.0, 1.0)
        t = blank.forward(y)
        unit = float(t.std())
        if not unit > 1e-12 * (1.0 + abs(float(t.mean()))):
            return cls(kind, low, high, float(t[0]), 0.0)  # constant: rounding is no spread
        return cls(kind, low, high, float(t.mean()), unit)

    def forward(self, y: np.ndarray) -> np.ndarray:
        if self.kind == 1:
            y = np.log(np.maximum(y - self.low, 1e-300))
        elif self.kind == 3:
            y = -np.log(np.maximum(self.high - y, 1e-300))
        elif self.kind == 2:
            p = np.clip((y - self.low) / (self.high - self.low), 1e-15, 1 - 1e-15)
            y = np.log(p) - np.log1p(-p)
        return (y - self.mean) / (self.unit or 1.0)

    def back(self, t: np.ndarray) -> np.ndarray:
        y = t * self.unit + self.mean
        if self.kind == 1:
            return self.low + np.exp(np.minimum(y, 700.0))
        if self.kind == 3:
            return self.high - np.exp(np.minimum(-y, 700.0))
        if self.kind == 2:
            return self.low + (self.high - self.low) / (1.0 + np.exp(np.clip(-y, -700, 700)))
        return y

    def log_slope(self, y: np.ndarray) -> np.ndarray:
        """Logarithm of the slope of `forward`."""
        slope = np.full(len(y), -np.log(self.unit or 1.0))
        if self.kind == 1:
            slope -= np.log(np.maximum(y - self.low, 1e-300))
        elif self.kind == 3:
            slope -= np.log(np.maximum(self.high - y, 1e-300))
        elif self.kind == 2:
            p = np.clip((y - self.low) / (self.high - self.low), 1e-15, 1 - 1e-15)
            slope -= np.log(p) + np.log1p(-p) + np.log(self.high - self.low)
        return slope

    def array(self) -> np.ndarray:
        return np.array([self.kind, self.low, self.high, self.mean, self.unit], float)

    @classmethod
    def from_array(cls, values: np.ndarray) -> Scale:
        return cls(int(values[0]), *(float(v) for v in values[1:]))


@dataclass(frozen=True)
class Recipe:
    """What is to be fitted: everything about a mechanism but its numbers.

    Attributes
    ----------
    curves, depth : bool, int or None
        The design of the location (see `designs.Design`).
    trees : bool
        Whether boosted trees add what the design leaves.
    spread : str
        Design of the scale: "" (the same for all rows), "linear", "curves", "surfaces" of its
        logarithm; "plain curves", "plain surfaces" of itself.
    robust : bool
        Whether far residuals count less.
    scale : tuple
        Kind, low and high of `Scale`.
    count : bool
        Whether values are cells of counts.
    proportional : bool
        On a logarithmic scale: the design gives the distance from the wall itself, which noise
        multiplies, and not its logarithm.
    steps : bool
        Whether the location may jump where an input passes a value.
    """

    curves: bool = False
    depth: int | None = None
    trees: bool = False
    spread: str = ""
    robust: bool = False
    scale: tuple[int, float, float] = (0, 0.0, 1.0)
    count: bool = False
    proportional: bool = False
    steps: bool = False

    @property
    def additive(self) -> bool:
        """Whether noise is added, the same for all rows."""
        return not self.spread and self.scale[0] == 0 and not self.count

    def words(self) -> str:
        """What a person reads in the leaderboard."""
        names = {
            (False, None): "linear", (False, 0): "linear with products",
            (True, None): "curves", (True, 0): "curves with products",
            (True, 1): "varying curves", (True, 2): "surfaces",
        }  # fmt: skip
        text = names[self.curves, self.depth] + (" with steps" if self.steps else "")
        text += ", then trees" if self.trees else ""
        text += f", spread {self.spread}" if self.spread else ""
        text += ", robust" if self.robust else ""
        if self.proportional:
            return f"in proportion: {text}"
        return ("", "log: ", "logit: ", "log from above: ")[self.scale[0]] + text


SPREADS = {
    "linear": {"curves": False, "depth": None},
    "curves": {"curves": True, "depth": None},
    "surfaces": {"curves": True, "depth": 2},
    "plain curves": {"curves": True, "depth": None},
    "plain surfaces": {"curves": True, "depth": 2},
}


@dataclass
class Linear:
    """Coefficients over a design, and the strength of their penalty."""

    design: Design
    beta: np.ndarray
    strength: float

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return self.design(x) @ self.beta


@dataclass
class Numeric:
    """A fitted mechanism of a numeric column; see the module's description."""

    recipe: Recipe
    scale: Scale
    location: Linear
    trees: Trees | None
    spread: Linear | None
    limits: np.ndarray  # of the log-scale
    curve: NoiseCurve
    width: float
    exact: bool = False
    flow: Flow | None = None

    # ------------------------------------------------------------------ values and noise

    def words(self) -> str:
        """What a person reads in the leaderboard."""
        return self.recipe.words() + (", then a flow" if self.flow is not None else "")

    def _mean(self, x: np.ndarray) -> np.ndarray:
        mean = self.location(x)
        if self.recipe.proportional:
            mean = np.log(np.maximum(mean, PLAIN_LEAST)) / self.scale.unit
        return mean if self.trees is None else mean + self.trees(x)[:, 0]

    def _log_scale(self, x: np.ndarray) -> np.ndarray:
        if self.spread is None:
            return np.zeros(len(x))
        return np.clip(_logged(self.recipe, self.spread(x)), *self.limits)

    def spread_near(self, x: np.ndarray) -> float:
        """The usual size of residuals, in standard deviations of the column."""
        return float(np.median(np.exp(self._log_scale(x)))) * self.curve.spread

    def value(self, x: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Values (n,) from inputs (n, features) and noise (n,)."""
        mean = self._mean(x)
        if self.flow is not None:
            u = self.flow.back(x, u)
        if not self.exact:
            mean = mean + np.exp(self._log_scale(x)) * self.curve.residual(u)
        else:
            mean = mean + u
        y = self.scale.back(mean)
        if self.recipe.count:
            y = np.maximum(np.rint(y), 0.0)
        return y

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Noise of n rows."""
        return np.zeros(n) if self.exact else rng.standard_normal(n)

    def noise(self, x: np.ndarray, y: np.ndarray, rng: np.random.Generator | None) -> np.ndarray:
        """Noise (n,) of values: exact, or for a count within its cell."""
        if self.exact:
            return self.scale.forward(y) - self._mean(x)
        if self.recipe.count:
            return normal_between(*self.curve.ends(*self._cell(x, y)), rng)
        v = self.curve.noise(self._residual(x, y))
        return v if self.flow is None else self.flow.noise(x, v)[0]

    def log_density(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Log-density (n,) of values; of counts the log-probability."""
        if self.exact:
            return np.full(len(y), -np.log(EXACT * (self.scale.unit or 1.0)))
        if self.recipe.count:
            return self.curve.cell(*self._cell(x, y))
        residual = self._residual(x, y)
        density = self.curve.log_density(residual) - self._log_scale(x)
        if self.flow is not None:
            density = density + self.flow.gain(x, self.curve.noise(residual))
        return density + self.scale.log_slope(y)

    def _residual(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return (self.scale.forward(y) - self._mean(x)) * np.exp(-self._log_scale(x))

    def _cell(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        low, high = cells(self.scale, y, self._mean(x), self._log_scale(x))
        return np.where(y <= 0, -np.inf, low), high  # no count is below zero

    # ------------------------------------------------------------------ again, under other weights

    def refit(
        self, x: np.ndarray, y: np.ndarray, w: np.ndarray, folds: np.ndarray, rng: Any
    ) -> Numeric:
        """The same mechanism fitted to weighted rows; nothing is chosen anew."""
        fitted, _, _ = fit_numeric(self.recipe, x, y, w, folds, (), rng, like=self)
        if fitted.explodes(x, y, rng):
            # A scale near zero at one row makes its noise huge everywhere else.
            fitted = replace(self, location=fitted.location, trees=fitted.trees, flow=None)
        if self.flow is None:
            return fitted
        v = replace(fitted, flow=None).noise(x, y, None)
        flow = self.flow.refit(x, v, w, int(rng.integers(2**31)))
        return replace(fitted, flow=flow)

    def explodes(self, x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> bool:
        """Whether drawn values spread much further than the observed ones: tails, a wide scale."""
        if not self.recipe.spread and self.recipe.scale[0] == 0:
            return False
        rows = np.arange(min(len(y), 3000))
        drawn = self.value(x[rows], self.draw(len(rows), rng))
        return not float(drawn.std()) <= EXPLODES * float(y.std())

    # ------------------------------------------------------------------ as arrays

    def arrays(self) -> dict[str, np.ndarray]:
        r = self.recipe
        plan = [r.curves, -1 if r.depth is None else r.depth, r.trees,
                ["", *SPREADS].index(r.spread), r.robust, r.count, self.exact,
                r.proportional, r.steps]  # fmt: skip
        state = {
            "plan": np.array(plan, np.int64),
            "scale": self.scale.array(),
            "limits": np.array([*self.limits, self.width]),
            "curve": np.stack([self.curve.u, self.curve.e, self.curve.slope]),
        }
        for name, part in (("location", self.location), ("spread", self.spread)):
            if part is not None:
                state |= {f"{name}.{k}": v for k, v in _linear_arrays(part).items()}
        if self.trees is not None:
            state |= {f"trees.{k}": np.asarray(v) for k, v in vars(self.trees).items()}
        if self.flow is not None:
            state |= {f"flow.{k}": v for k, v in self.flow.arrays().items()}
        return state

    @classmethod
    def from_arrays(cls, state: dict[str, np.ndarray]) -> Numeric:
        # Folders of the first Composite end before proportions and steps.
        plan = [*(int(v) for v in state["plan"]), 0, 0][:9]
        curves, depth, trees, spread, robust, count, exact, proportional, steps = plan
        scale = Scale.from_array(state["scale"])
        recipe = Recipe(
            bool(curves), None if depth < 0 else depth, bool(trees), ["", *SPREADS][spread],
            bool(robust), (scale.kind, scale.low, scale.high), bool(count), bool(proportional),
            bool(steps),
        )  # fmt: skip
        parts = {
            name: {k[len(name) + 1 :]: v for k, v in state.items() if k.startswith(name + ".")}
            for name in ("location", "spread", "trees", "flow")
        }
        flow = None
        if parts["flow"]:
            from vaca.engines.mechanisms.flow import Flow

            flow = Flow.from_arrays(parts["flow"])
        return cls(
            recipe, scale, _linear_of(parts["location"]),
            Trees(**parts["trees"]) if parts["trees"] else None,
            _linear_of(parts["spread"]) if parts["spread"] else None,
            state["limits"][:2], NoiseCurve(*state["curve"]), float(state["limits"][2]),
            bool(exact), flow,
        )  # fmt: skip


def _linear_arrays(model: Linear) -> dict[str, np.ndarray]:
    own = {"beta": model.beta, "strength": np.array([model.strength])}
    return own | model.design.arrays()


def _linear_of(state: dict[str, np.ndarray]) -> Linear:
    return Linear(Design.from_arrays(state), state["beta"], float(state["strength"][0]))


def cells(
    scale: Scale, y: np.ndarray, mean: np.ndarray, log_scale: np.ndarray, half: float = 0.5
) -> tuple[np.ndarray, np.ndarray]:
    """Residuals at the ends of a cell around each value."""
    low, high = ((scale.forward(y + end) - mean) * np.exp(-log_scale) for end in (-half, half))
    return low, high


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
) -> tuple[Numeric, np.ndarray, np.ndarray]:
    """Fit a mechanism, with residuals of rows that its parts had not seen.

    Parameters
    ----------
    folds : ndarray (n,)
        The fold that each row is held out with.
    groups : sequence of int
        For every input the parent it belongs to.
    like : Numeric, optional
        A fitted mechanism whose designs, strengths and tree structures are used again.

    Returns
    -------
    Numeric; of every row, by a fit that had not seen it: log-density (n,), and the distance (n,) of
    its value from the median
    """
    scale = Scale.of(y, *recipe.scale) if like is None else like.scale
    t = scale.forward(_dithered(y, rng) if recipe.count else y)
    if like is None:
        kind: dict[str, Any] = {"curves": recipe.curves, "depth": recipe.depth}
        if recipe.depth is not None and too_many_pairs(x.shape[1], len(x)):
            design = telling_products(x, groups, t, w, **kind)
        else:
            design = Design.build(x, groups, **kind)
        design = with_steps(design, x, t, w) if recipe.steps else design
        strength = None
    else:
        design, strength = like.location.design, like.location.strength
        if recipe.steps:  # other rows would have put them elsewhere
            design = with_steps(replace(design, cuts=design.cuts[:0]), x, t, w)
    a = design(x)
    location, mean = _fit_location(recipe, scale, design, a, t, w, folds, strength)
    trees = None
    if recipe.trees:
        trees, mean = _add_trees(like, location, a, mean, x, t, w, folds)
    if like is not None and trees is not None:
        # What trees leave of rows they have seen is too little: the noise stays as it was found.
        return replace(like, location=location, trees=trees), np.zeros(0), np.zeros(0)
    every = np.isfinite(mean)
    if not every.all():  # trees were tried on some rows only
        x, y, t, w, mean, a = x[every], y[every], t[every], w[every], mean[every], a[every]
        folds = np.arange(len(t)) % 3
    residual = t - mean
    spread, log_scale = None, np.zeros(len(t))
    limits = np.zeros(2)
    for _ in range(2 if recipe.spread or recipe.robust else 0):
        if recipe.spread:
            spread, log_scale = _fit_spread(recipe, x, residual, w, folds, groups, like)
            if like is not None:
                log_scale = np.clip(log_scale, *like.limits)
            limits = np.array([log_scale.min() - SCALE_MARGIN, log_scale.max() + SCALE_MARGIN])
        own = np.exp(-2 * (log_scale - np.average(log_scale, weights=w)))
        if recipe.robust:
            own = own * _near(residual * np.exp(-log_scale))
        if trees is None:
            location, mean = _fit_location(recipe, scale, design, a, t, w * own, folds, strength)
            residual = t - mean
    exact = not recipe.count and float(np.abs(residual).max()) < EXACT
    e = residual * np.exp(-log_scale)
    width = _width(e, w, folds) if like is None else like.width
    curve = NoiseCurve.fit(e, w, width)
    fitted = Numeric(recipe, scale, location, trees, spread, limits, curve, width, exact)
    if like is not None:
        return fitted, np.zeros(0), np.zeros(0)
    # A density averaged over a cell: how fine a candidate is beyond that must not decide.
    half = 0.5 if recipe.count else CELL * float(y.std())
    miss = np.full(len(every), np.nan)
    miss[every] = np.abs(y - scale.back(mean + np.exp(log_scale) * curve.residual(np.zeros(1))))
    if exact:
        return fitted, np.full(len(every), -np.log(2 * half or 1.0)), miss
    found = np.empty(len(y))
    low, high = cells(scale, y, mean, log_scale, half)
    low = np.where(y <= 0, -np.inf, low) if recipe.count else low
    for k in np.unique(folds):
        out = folds == k
        found[out] = NoiseCurve.fit(e[~out], w[~out], width).cell(low[out], high[out])
    density = np.full(len(every), np.nan)
    density[every] = found - np.log(2 * half)
    return fitted, density, miss


def _dithered(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return y + rng.uniform(-0.5, 0.5, len(y))


def crossfit(
    design: Design,
    a: np.ndarray,
    t: np.ndarray,
    w: np.ndarray,
    folds: np.ndarray,
    strength: float | None,
) -> tuple[Linear, np.ndarray]:
    """Coefficients from all rows, and each row's value by the rows of the other folds."""
    parts = {k: Sums.of(a[folds == k], t[folds == k], w[folds == k]) for k in np.unique(folds)}
    penalty = design.penalty()
    total = sum(list(parts.values())[1:], start=next(iter(parts.values())))
    beta, strength = solve(total, penalty, strength)
    mean = np.empty(len(t))
    for k, part in parts.items():
        # The same strength: it is one number out of all rows, and choosing it is most of the work.
        mean[folds == k] = a[folds == k] @ solve(total - part, penalty, strength)[0]
    return Linear(design, beta, strength), mean


def _fit_location(
    recipe: Recipe,
    scale: Scale,
    design: Design,
    a: np.ndarray,
    t: np.ndarray,
    w: np.ndarray,
    folds: np.ndarray,
    strength: float | None,
) -> tuple[Linear, np.ndarray]:
    """The location by all rows, and each row's by the rows of the other folds."""
    if not recipe.proportional:
        return crossfit(design, a, t, w, folds, strength)
    size = np.exp(np.minimum(t * scale.unit, 50.0))
    fitted, mean = _plain_spread(design, a, size, w, folds, strength, PLAIN_LEAST)
    return fitted, mean / scale.unit


def _add_trees(
    like: Numeric | None,
    location: Linear,
    a: np.ndarray,
    mean: np.ndarray,
    x: np.ndarray,
    t: np.ndarray,
    w: np.ndarray,
    folds: np.ndarray,
) -> tuple[Trees, np.ndarray]:
    """Trees for what the location leaves; each row's mean by trees that had not seen it."""
    left = t - a @ location.beta
    if like is not None and like.trees is not None:
        return like.trees.with_values(x, left, w), mean
    trees = Trees.regression(x, left, w)
    mean, told = np.full(len(t), np.nan), mean
    # Of many rows one fold is enough to score them.
    for k in np.unique(folds)[: 1 if len(t) >= FEW_FOR_TREES else None]:
        out = folds == k
        mean[out] = (
            told[out] + Trees.regression(x[~out], t[~out] - told[~out], w[~out])(x[out])[:, 0]
        )
    return trees, mean


def _fit_spread(
    recipe: Recipe,
    x: np.ndarray,
    residual: np.ndarray,
    w: np.ndarray,
    folds: np.ndarray,
    groups: Any,
    like: Numeric | None,
) -> tuple[Linear, np.ndarray]:
    r"""The log-scale: minimises :math:`\sum s + |r| e^{-s}`, which far residuals do not rule."""
    if like is not None and like.spread is not None:
        design, strength = like.spread.design, like.spread.strength
    else:
        design, strength = Design.build(x, groups, **SPREADS[recipe.spread]), None
    a, penalty = design(x), design.penalty()
    size = np.maximum(np.abs(residual), FLAT)
    parts = {k: Sums.of(a[folds == k], np.log(size[folds == k]), w[folds == k])
             for k in np.unique(folds)}  # fmt: skip
    total = sum(list(parts.values())[1:], start=next(iter(parts.values())))
    if recipe.spread.startswith("plain"):
        return _plain_spread(design, a, size, w, folds, strength)
    start, strength = solve(total, penalty, strength)
    found = _newton(a, size, w, total.gram, start, penalty, strength)
    log_scale = np.empty(len(size))
    for k, part in parts.items():
        keep = folds != k
        own = _newton(
            a[keep], size[keep], w[keep], total.gram - part.gram, found, penalty, strength
        )
        log_scale[~keep] = a[~keep] @ own
    low, high = np.quantile(log_scale, [0.002, 0.998])
    return Linear(design, found, strength), np.clip(log_scale, low - 0.5, high + 0.5)


def _plain_spread(
    design: Design,
    a: np.ndarray,
    size: np.ndarray,
    w: np.ndarray,
    folds: np.ndarray,
    strength: float | None,
    least: float | None = None,
) -> tuple[Linear, np.ndarray]:
    """The scale itself, by least squares on the size of residuals, each by its own scale."""
    if least is None:
        least = PLAIN_LEAST * float(np.average(size, weights=w))
    fitted, found = crossfit(design, a, size, w, folds, strength)
    for _ in range(4):
        own = w / np.maximum(found, 20 * least) ** 2
        fitted, found = crossfit(design, a, size, own / own.mean(), folds, strength)
    return fitted, np.log(np.maximum(found, least))


def _logged(recipe: Recipe, value: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(value, 1e-12)) if recipe.spread.startswith("plain") else value


def _newton(
    a: np.ndarray,
    size: np.ndarray,
    w: np.ndarray,
    gram: np.ndarray,
    beta: np.ndarray,
    penalty: np.ndarray,
    strength: float,
) -> np.ndarray:
    total = w.sum()
    ridge = strength * penalty + 1e-9
    inverse = np.linalg.inv(gram / total + np.diag(ridge))
    for _ in range(12):
        ratio = np.minimum(size * np.exp(-a @ beta), 5.0)
        step = inverse @ (a.T @ (w * (ratio - 1.0)) / total - ridge * beta)
        beta = beta + step
        if np.abs(step).max() < 1e-5:
            break
    return beta


def _near(e: np.ndarray) -> np.ndarray:
    """Huber's weights."""
    middle = np.median(e)
    unit = 1.4826 * np.median(np.abs(e - middle)) or 1.0
    return 1.345 / np.maximum(np.abs(e - middle) / unit, 1.345)


def _width(e: np.ndarray, w: np.ndarray, folds: np.ndarray) -> float:
    """How smooth the curve of noise is: the smoothest that held-out residuals do not refuse."""
    scores = []
    for width in WIDTHS:
        density = np.empty(len(e))
        for k in np.unique(folds):
            out = folds == k
            density[out] = NoiseCurve.fit(e[~out], w[~out], width).log_density(e[out])
        scores.append(density)
    best = int(np.argmax([np.average(s, weights=w) for s in scores]))
    for k in range(best):
        gain = scores[best] - scores[k]
        if np.average(gain, weights=w) <= gain.std() / np.sqrt(len(gain)):
            return WIDTHS[k]
    return WIDTHS[best]
