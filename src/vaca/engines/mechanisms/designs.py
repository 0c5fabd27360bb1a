r"""Functions of the parents that are linear in a design matrix: lines, curves, products, surfaces.

Curves are natural cubic splines: smooth between the data, straight beyond them. Their bends, and
what the bends of two inputs make together, are penalised by their curvature; lines, steps between
levels and plain products of two inputs are not, so nothing that a few rows support is shrunk
(odds of levels have a prior of their own, see `levels`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import ndtri

from vaca.engines.mechanisms.curves import Pieces
from vaca.engines.mechanisms.least_squares import Sums, solve

__all__ = ["Array", "Design", "telling_products", "too_many_pairs", "with_steps"]

Array = np.ndarray
#: Designs with more terms than this, or than a third of the rows, are not tried.
MAX_TERMS = 400
#: The same for numbers with many inputs: most of their terms are penalised.
WIDE_TERMS = 1000
#: Rounds in which products are looked for among many inputs, and how many each may add.
PAIR_ROUNDS, PAIRS_A_ROUND = 8, 10
#: A product of standardised inputs that varies less than this says nothing.
RARE_PAIR = 0.02
_FIELDS = ("mean", "scale", "bent", "knots", "pairs", "depth", "cuts", "power")
#: Powers end here, in standard deviations of an input, if its values go further: straight beyond.
POWERS_END = 5.0
#: The most steps, and the fewest rows on each side of one.
MAX_STEPS, STEP_ROWS = 12, 10
#: A step must raise twice the log-likelihood by this times the logarithm of the number of rows.
STEP_PRICE = 3.0
#: Steps with at most this share of the rows between them are the same.
STEP_MOVES = 0.01


@dataclass
class Design:
    """A matrix of terms in standardised inputs: an intercept, the inputs, bends and products.

    Parameters
    ----------
    mean, scale : ndarray (inputs,)
    bent : ndarray (curves,)
        Inputs that are bent.
    knots : ndarray (curves, knots)
        NaN after the last.
    pairs : ndarray (pairs, 2)
        Inputs that are multiplied.
    depth : int array
        0: products of inputs as they are; 1: also of one input and the bends of the other; 2: also
        of the bends of both.
    cuts : ndarray (steps, 2)
        An input and the value above which it makes a step.
    power : int array
        0: inputs are bent by natural splines; 2 or 3: by their powers up to that one between two
        knots, the ends of the data, and straight beyond.
    """

    mean: np.ndarray
    scale: np.ndarray
    bent: np.ndarray
    knots: np.ndarray
    pairs: np.ndarray
    depth: np.ndarray
    cuts: np.ndarray = field(default_factory=lambda: np.zeros((0, 2)))
    power: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int64))
    _shapes: list[np.ndarray] = field(default_factory=list, init=False, repr=False)

    @classmethod
    def build(
        cls,
        x: np.ndarray,
        groups: Sequence[int],
        *,
        curves: int = 0,
        depth: int | None = None,
        pairs: Sequence[tuple[int, int]] | None = None,
    ) -> Design:
        """A design for the inputs ``x`` (n, inputs); inputs of one group are levels of one column.

        ``curves``: 0 for lines, 1 for splines, 2 or 3 for powers up to that. ``depth``: None for no
        products, else see the class. ``pairs``: the inputs that are
        multiplied; by default all of different groups.
        """
        mean, scale = x.mean(0), x.std(0)
        scale = np.where(scale > 1e-12 * np.abs(x).max(0, initial=0.0), scale, 1.0)
        z = (x - mean) / scale
        power = curves if curves > 1 else 0
        none = np.zeros(0)
        ends = (lambda v: _ends(v, power)) if power else _knots
        found = [ends(z[:, i]) if curves else none for i in range(x.shape[1])]
        bent = [i for i, k in enumerate(found) if len(k)]
        width = max((len(found[i]) for i in bent), default=3)
        knots = np.full((len(bent), width), np.nan)
        for row, i in enumerate(bent):
            knots[row, : len(found[i])] = found[i]
        if depth is None:
            pairs = []
        elif pairs is None:
            pairs = [(i, j) for i in range(x.shape[1]) for j in range(i) if groups[i] != groups[j]]
        chosen = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        return cls(
            mean, scale, np.array(bent, np.int64), knots, chosen, np.array([depth or 0]),
            power=np.array([power]),
        )  # fmt: skip

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """The terms (n, terms) at inputs ``x``."""
        z = np.clip((x - self.mean) / self.scale, -1e6, 1e6)
        bends = self._bends(z)
        parts = [np.ones((len(z), 1)), z, *bends.values()]
        depth = int(self.depth[0])
        for i, j in self.pairs:
            parts.append((z[:, i] * z[:, j])[:, None])
            if depth >= 1:
                for one, other in ((i, j), (j, i)):
                    if one in bends:
                        parts.append(bends[one] * z[:, [other]])
            if depth >= 2 and i in bends and j in bends:
                both = bends[i][:, :, None] * bends[j][:, None, :]
                parts.append(both.reshape(len(z), -1))
        parts += [(x[:, [int(i)]] > at).astype(float) for i, at in self.cuts]
        return np.concatenate(parts, axis=1)

    def curves_of(self, beta: np.ndarray) -> dict[int, Pieces]:
        """For every input that splines bend: their sum with these coefficients, as one curve."""
        if self.power[0]:
            return {}
        self._set_shapes()
        found, at = {}, 1 + len(self.mean)
        for i, row, shape in zip(self.bent, self.knots, self._shapes, strict=True):
            knots = row[np.isfinite(row)]
            own = shape @ beta[at : at + len(knots) - 2]
            at += len(knots) - 2
            weights = np.append(own, -own.sum()) / (knots[-1] - knots[:-1])
            found[int(i)] = Pieces(knots, np.append(weights, -weights.sum()))
        return found

    def combined(self, x: np.ndarray, beta: np.ndarray, curves: Mapping[int, Pieces]) -> np.ndarray:
        """``self(x) @ beta`` (n,), without the matrix where inputs act one by one."""
        if len(self.pairs) or self.power[0]:
            return self(x) @ beta
        total = np.full(len(x), beta[0])
        for i in range(x.shape[1]):
            z = x[:, i] - self.mean[i]
            z /= self.scale[i]
            np.clip(z, -1e6, 1e6, out=z)
            if i in curves:
                total += curves[i](z)
            z *= beta[1 + i]
            total += z
        for k, (i, at) in enumerate(self.cuts):
            total += beta[k - len(self.cuts)] * (x[:, int(i)] > at)
        return total

    def penalty(self) -> np.ndarray:
        """What each term pays (terms,): nothing for lines, levels and plain products."""
        sizes = self._sizes()
        pays = np.zeros if self.power[0] else np.ones
        parts = [np.zeros(1 + len(self.mean)), *(pays(k) for k in sizes.values())]
        depth = int(self.depth[0])
        for i, j in self.pairs:
            parts.append(np.zeros(1))
            if depth >= 1:
                parts += [np.ones(sizes[one]) for one in (i, j) if one in sizes]
            if depth >= 2 and i in sizes and j in sizes:
                parts.append(np.ones(sizes[i] * sizes[j]))
        return np.concatenate([*parts, np.zeros(len(self.cuts))])

    def products(self) -> slice:
        """Which terms are products."""
        first = 1 + len(self.mean) + sum(self._sizes().values())
        return slice(first, len(self.penalty()) - len(self.cuts))

    @property
    def curves(self) -> bool:
        """Whether an input is bent."""
        return len(self.bent) > 0

    def arrays(self) -> dict[str, np.ndarray]:
        """The design as named arrays; see `from_arrays`."""
        return {name: getattr(self, name) for name in _FIELDS}

    @classmethod
    def from_arrays(cls, state: Mapping[str, np.ndarray]) -> Design:
        """The design of `arrays`, which may stand among others; older ones lack cuts and power."""
        later = ("cuts", "power")
        return cls(**{name: state[name] for name in _FIELDS if name in state or name not in later})

    def _sizes(self) -> dict[int, int]:
        power = int(self.power[0])
        counts = np.isfinite(self.knots).sum(1) - 2 if not power else [power - 1] * len(self.bent)
        return {int(i): int(k) for i, k in zip(self.bent, counts, strict=True)}

    def _set_shapes(self) -> None:
        if len(self._shapes) != len(self.bent):
            self._shapes = [_shape(row[np.isfinite(row)]) for row in self.knots]

    def _bends(self, z: np.ndarray) -> dict[int, np.ndarray]:
        """For every bent input its terms (n, knots - 2), scaled so that a unit has curvature 1."""
        if power := int(self.power[0]):
            ends = zip(self.bent, self.knots, strict=True)
            return {int(i): _powers(z[:, i], row[:2], power) for i, row in ends}
        self._set_shapes()
        result = {}
        for i, row, shape in zip(self.bent, self.knots, self._shapes, strict=True):
            result[int(i)] = _cubes(z[:, i], row[np.isfinite(row)]) @ shape
        return result


def with_steps(design: Design, x: np.ndarray, y: np.ndarray, w: np.ndarray) -> Design:
    """The design with steps where what it leaves of ``y`` jumps, the highest first.

    Each round adds the step that explains most in addition to a line in its input, and moves the
    earlier ones to where they are best now; it ends where chance would give as much.
    """
    inputs = [i for i in range(x.shape[1]) if len(np.unique(x[:, i])) > 8]
    orders = {i: np.argsort(x[:, i], kind="stable") for i in inputs}
    bar, cuts = STEP_PRICE * np.log(len(y)), np.zeros((0, 2))
    smooth = replace(design, cuts=cuts)(x)
    for _ in range(MAX_STEPS if inputs else 0):
        a = np.column_stack([smooth, x[:, cuts[:, 0].astype(int)] > cuts[:, 1]])
        beta = solve(Sums.of(a, y, w), replace(design, cuts=cuts).penalty(), None)[0]
        left = y - a @ beta
        for k, (i, _) in enumerate(cuts):
            step = beta[k - len(cuts)] * a[:, k - len(cuts)]
            cuts[k, 1] = _best_step(x[:, int(i)], left + step, w, orders[int(i)])[1]
        gains = [(*_best_step(x[:, i], left, w, orders[i]), i) for i in inputs]
        gain, at, i = max(gains)
        if not gain > bar * float(np.average(left**2, weights=w)):
            break
        cuts = np.append(cuts, [[i, at]], axis=0)
    return replace(design, cuts=cuts)


def moved_steps(design: Design, x: np.ndarray, y: np.ndarray, w: np.ndarray) -> Design:
    """The design with its steps where these rows put them."""
    if not len(design.cuts):
        return design
    return with_steps(replace(design, cuts=design.cuts[:0]), x, y, w)


def snapped(design: Design, whole: Design, x: np.ndarray) -> Design:
    """The design with each step where ``whole`` has one nearby: where it is, more rows say."""
    cuts = design.cuts.copy()
    for k, (i, at) in enumerate(cuts):
        near = whole.cuts[whole.cuts[:, 0] == i, 1]
        if len(near):
            best = near[np.argmin(np.abs(near - at))]
            low, high = min(at, best), max(at, best)
            if np.mean((x[:, int(i)] > low) & (x[:, int(i)] <= high)) <= STEP_MOVES:
                cuts[k, 1] = best
    return replace(design, cuts=cuts)


def _best_step(
    x: np.ndarray, left: np.ndarray, w: np.ndarray, order: np.ndarray
) -> tuple[float, float]:
    """The sum of squares that the best step in an input adds to that of a line, and its place."""
    x, left, w = x[order], left[order], w[order] / w.mean()
    n = w.sum()
    z = x - np.average(x, weights=w)
    left = left - np.average(left, weights=w)
    slope = float(w @ (z * left)) / max(float(w @ z**2), 1e-300)
    below, lean = np.cumsum(w)[:-1], np.cumsum(w * z)[:-1]
    told = np.cumsum(w * (left - slope * z))[:-1]
    size = below * (n - below) / n
    free = np.maximum(size - lean**2 / max(float(w @ z**2), 1e-300), 0.05 * size)
    gain = np.where(np.diff(x) > 0, told**2 / np.maximum(free, 1e-12), 0.0)
    gain[: STEP_ROWS - 1] = 0.0
    gain[len(gain) - STEP_ROWS + 1 :] = 0.0
    best = int(np.argmax(gain))
    return float(gain[best]), float(0.5 * (x[best] + x[best + 1]))


def too_many_pairs(inputs: int, rows: int) -> bool:
    """Whether products of all inputs are more than the rows can carry."""
    return inputs**2 / 2 > min(MAX_TERMS, rows / 3)


def telling_products(
    x: np.ndarray, groups: Sequence[int], y: np.ndarray, w: np.ndarray, *, curves: int, depth: int
) -> Design:
    """A design with the products that explain part of what lines or curves leave of ``y``.

    Rounds of: fit, correlate what is left with the products of all pairs, and add the significant
    ones (at 5 %, Bonferroni), the strongest first.
    """
    several = np.not_equal.outer(np.asarray(groups), np.asarray(groups)) & np.tri(
        len(groups), k=-1, dtype=bool
    )
    bar = float(ndtri(1.0 - 0.025 / max(several.sum(), 1)))
    found: list[tuple[int, int]] = []
    for _ in range(PAIR_ROUNDS):
        design = Design.build(x, groups, curves=curves, depth=0, pairs=found)
        a = design(x)
        left = y - a @ solve(Sums.of(a, y, w), design.penalty(), None)[0]
        z = np.clip((x - design.mean) / design.scale, -5.0, 5.0)  # one far row is no evidence
        v = w / w.sum()
        mean = (z * v[:, None]).T @ z
        square = (z**2 * v[:, None]).T @ z**2 - mean**2
        slope = (z * (v * (left - v @ left))[:, None]).T @ z
        noise = np.sqrt(np.maximum(square, 1e-12) * (v @ left**2) / len(y)) + 1e-15
        error = np.where(several & (square > RARE_PAIR), np.abs(slope) / noise, 0.0)
        for i, j in found:
            error[i, j] = 0.0
        best = np.argsort(-error, axis=None)[:PAIRS_A_ROUND]
        new = [divmod(int(k), len(groups)) for k in best if error.flat[k] > bar]
        if not new:
            break
        found += new
    while True:
        design = Design.build(x, groups, curves=curves, depth=depth, pairs=found)
        if not found or len(design.penalty()) <= WIDE_TERMS:
            return design
        found.pop()


def _knots(z: np.ndarray) -> np.ndarray:
    """Knots at quantiles of an input; few values have a knot each; two values have none."""
    values = np.unique(z)
    if len(values) <= 8:
        return values if len(values) >= 3 else np.zeros(0)
    count = 6 if len(z) < 300 else 8 if len(z) < 1500 else 10
    ends = 0.02 if len(z) < 1500 else 0.01
    knots = np.quantile(z, np.linspace(ends, 1 - ends, count))
    # Between two humps rows are few, and so would be knots at quantiles.
    if len(z) >= 300:
        knots = np.append(knots, np.linspace(knots[0], knots[-1], count)[1:-1])
    knots, kept = np.unique(knots), []
    for knot in knots:
        if not kept or knot - kept[-1] > 0.02 * (knots[-1] - knots[0]):
            kept.append(knot)
    return np.array(kept) if len(kept) >= 3 else np.zeros(0)


def _ends(z: np.ndarray, power: int) -> np.ndarray:
    """Between which values of an input its powers are taken; none if its values are too few."""
    if len(np.unique(z[:1000])) <= power and len(np.unique(z)) <= power:
        return np.zeros(0)
    return np.clip([z.min(), z.max()], -POWERS_END, POWERS_END)


def _powers(z: np.ndarray, ends: np.ndarray, power: int) -> np.ndarray:
    """Square and higher powers (n, power - 1) between the ends, their tangents beyond."""
    within = np.clip(z, *ends)
    steps = range(2, power + 1)
    return np.stack([within**k + k * within ** (k - 1) * (z - within) for k in steps], axis=1)


def _cubes(z: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """Natural cubic splines without their straight part: (n, knots - 2)."""
    above = np.maximum(z[:, None] - knots, 0.0)
    cubes = above * above * above  # a tenth of the time of ** 3
    bends = (cubes[:, :-1] - cubes[:, -1:]) / (knots[-1] - knots[:-1])
    return bends[:, :-1] - bends[:, -1:]


def _shape(knots: np.ndarray) -> np.ndarray:
    """The matrix that gives the splines unit curvature: the penalty becomes a sum of squares."""
    at = np.linspace(knots[0], knots[-1], 400)
    ramps = 6.0 * np.maximum(at[:, None] - knots, 0.0)
    bends = (ramps[:, :-1] - ramps[:, -1:]) / (knots[-1] - knots[:-1])
    second = bends[:, :-1] - bends[:, -1:]
    curvature = second.T @ second * (at[1] - at[0])
    values, vectors = np.linalg.eigh(curvature)
    return vectors / np.sqrt(np.maximum(values, 1e-9 * values.max()))
