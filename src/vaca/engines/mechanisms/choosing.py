"""The mechanism of a column: the simplest of those that predict held-out rows about best.

Every candidate is scored on rows that it had not seen by its log-density there, averaged over a
fiftieth of the column's standard deviation (of levels and counts: log-probability), a proper score:
in expectation the truth has the highest. No answer is read more finely than that, and a mechanism
must not win by being exact for some rows and far off for others. Candidates whose mean falls behind
the best one's by less than a standard error of the paired difference cannot be told from it; of
these the one with the fewest terms is taken. Outside the data, where no score helps, a simpler
mechanism has less to go wrong.

The search is greedy, so that most columns try a dozen cheap candidates and no trees or network:
the scale first (as it is, logarithm, logit), then the location, trees if they find something in
what is left, the spread, and less weight for far residuals if tails are heavy; last, several of
these together, and a network for noise whose shape follows the causes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

import numpy as np
from scipy.special import eval_legendre, ndtr

from vaca.engines.mechanisms.blend import Blend, ends, in_words, kept, nearest_shares
from vaca.engines.mechanisms.choosing_levels import choose_levels
from vaca.engines.mechanisms.designs import Design
from vaca.engines.mechanisms.hurdle import Hurdle
from vaca.engines.mechanisms.locations import crossfit
from vaca.engines.mechanisms.numeric import TOO_WIDE, Numeric, fit_numeric
from vaca.engines.mechanisms.recipe import Recipe
from vaca.engines.mechanisms.scale import PLAIN
from vaca.engines.mechanisms.trials import (
    FEW_ROWS,
    ROWS_FOR_CURVES,
    ROWS_FOR_STEPS,
    ROWS_FOR_TREES,
    STEPS_LEAD,
    Inputs,
    Trial,
    choose,
    lead,
    near_the_mark,
    possible_designs,
    score,
    together,
)
from vaca.engines.trees import leaves_trace
from vaca.engines.walls import walls

__all__ = ["choose_hurdle", "choose_numeric"]

#: The same for powers to beat lines: they take the place of curves, and few lines.
POWERS_LEAD = 2.0
#: The same for squares to be spreads: they have few terms, and are far off where they are wrong.
SQUARES_LEAD = 2.0
#: The same for draws that spread further than the data.
WIDE_LEAD = 4.0
#: Fewer rows than this train no network.
ROWS_FOR_FLOW = 300
#: Standard errors by which causes must predict the shape of the noise for a network to be tried.
SHAPE_LEFT = 4.0
#: The same for the size of the noise, for spreads that follow the causes to be tried.
SPREAD_LEFT = 1.0
#: Noise smaller than this, in standard deviations of the column, has no shape worth a network.
FINE = 0.02


def choose_numeric(
    given: Inputs, *, count: bool, families: frozenset[str]
) -> tuple[Numeric, list[Trial]]:
    """The mechanism of a continuous column or a count with causes, and all that were tried."""
    trials: dict[Recipe, Trial] = {}

    def attempt(recipe: Recipe) -> Trial:
        if recipe not in trials:
            rng = np.random.default_rng([given.seed, 6])  # the same dither for all
            alike = [t for r, t in trials.items() if r.scale == recipe.scale and not t.wide]
            near = max(alike, key=lambda t: np.nanmean(t.density)).mechanism if alike else None
            fitted, density, miss, told = fit_numeric(
                recipe, given.x, given.y, given.w, given.folds, given.groups, rng, near=near
            )
            terms = fitted.location.terms + 300 * recipe.trees + recipe.robust
            terms += 0 if fitted.spread is None else len(fitted.spread.beta)
            terms += recipe.scale[0] not in PLAIN
            density, wide = _tamed(given, fitted, density)
            trials[recipe] = Trial(recipe.words(), density, terms, fitted, miss, told, wide)
        return trials[recipe]

    def bent(recipe: Recipe) -> bool:
        """Whether it is no power, or one that is clearly better than its line."""
        if recipe.curves <= 1:
            return True
        own = trials.get(replace(recipe, added=False))  # what is added says nothing of bends
        line = trials.get(replace(recipe, added=False, curves=0))
        if own is None or line is None:
            return False
        return lead(own, line, given.w) > POWERS_LEAD

    def allowed() -> list[Recipe]:
        """All but powers, squares as spreads, wide draws and steps that do not lead clearly."""
        smooth = [r for r in trials if not r.steps and bent(r)]
        found = [r for r in smooth if not trials[r].wide] or smooth
        plain = [r for r in found if "squares" not in r.spread] or found
        top = trials[top_of(plain)]
        far = [r for r in found if r not in plain]
        found = plain + [r for r in far if lead(trials[r], top, given.w) > SQUARES_LEAD]
        top = trials[top_of(found)]
        found += [r for r in smooth if trials[r].wide and lead(trials[r], top, given.w) > WIDE_LEAD]
        top = trials[top_of(found)]
        bars = {r: WIDE_LEAD if trials[r].wide else STEPS_LEAD for r in trials if r.steps}
        return found + [r for r, bar in bars.items() if lead(trials[r], top, given.w) > bar]

    def top_of(recipes: list[Recipe]) -> Recipe:
        fair = near_the_mark([trials[r] for r in recipes], given.w)
        good = [r for r in recipes if trials[r] in fair]
        return max(good, key=lambda r: score(trials[r], first, given.w))

    def best() -> Recipe:
        return top_of(allowed())

    designs = possible_designs(given, families, wide=True)
    bend = (1, None) in designs
    start = Recipe(curves=int(bend), scale=_within(given.y, count), count=count)
    first = attempt(start)
    if first.mechanism.exact or first.mechanism.scale.unit == 0.0:
        attempt(replace(start, curves=0))
        return choose(list(trials.values()), given.w).mechanism, list(trials.values())
    scale = _scale(given, start, attempt, families)
    base = replace(start, scale=scale)
    whole = trials.get(replace(base, proportional=True))
    ways = [base]
    if whole is not None and lead(whole, trials[base], given.w) > -2.0:
        ways.append(replace(base, proportional=True))
    for way in ways:
        for curves, depth in designs:
            attempt(replace(way, curves=curves, depth=depth))

    def hopeful() -> list[tuple[int, int | None]]:
        """Designs without the powers that were no better than lines."""
        return [(c, d) for c, d in designs if bent(replace(base, curves=c, depth=d))]

    rough = {"trees", "steps"} & families and _trees_help(given, trials[best()].mechanism)
    if "steps" in families and len(given.y) >= ROWS_FOR_STEPS:
        top, line = best(), replace(base, curves=0)
        if lead(attempt(replace(line, steps=True)), trials[top], given.w) > 0 or rough:
            for recipe in (replace(top, proportional=False), replace(line, depth=0)):
                if recipe.depth in (None, 0) and (recipe.curves, recipe.depth) in designs:
                    attempt(replace(recipe, steps=True))
        if lead(trials[best()], trials[top], given.w) > 1.0:
            rough = _trees_help(given, trials[best()].mechanism)
    if rough and "trees" in families:
        for recipe in (best(), replace(base, curves=0)):
            attempt(replace(recipe, trees=True))

    def simplest() -> Recipe:
        """The recipe that would be chosen now."""
        return choose(
            list(trials.values()), given.w, [trials[r] for r in allowed()]
        ).mechanism.recipe

    def seek_spreads() -> None:
        """Try spreads that follow the causes, if these tell the size of the noise."""
        names = ["linear"] + (["curves"] if bend else [])
        names += ["surfaces"] if (1, 2) in designs else []
        names += [f"plain {name}" for name in names[1:]]
        names += ["plain squares"] if (2, None) in designs else []
        names += ["plain squares with products"] if (2, 0) in designs else []
        # Of few rows, a location that follows the far ones hides that spreads differ.
        for top in dict.fromkeys((best(), simplest()) if len(given.y) < FEW_ROWS else (best(),)):
            if not _told(given, trials[top].mechanism, ("size",), SPREAD_LEFT):
                continue
            place = top
            for _ in range(2):
                for name in names:
                    attempt(replace(place, spread=name))
                    if place.curves > 1:  # a power has to beat the line with the same spread
                        attempt(replace(place, curves=0, spread=name))
                found = best()
                if not found.spread or lead(trials[found], trials[top], given.w) <= 1.0:
                    break
                for curves, depth in hopeful():
                    attempt(replace(found, curves=curves, depth=depth, trees=False))
                # Another location, which a spread has brought out, may have another spread.
                now = replace(best(), spread="")
                if now == place:
                    break
                place = now

    if "spread" in families:
        seek_spreads()
    if "robust" in families and _heavy(trials[best()].mechanism):
        top = best()
        if lead(attempt(replace(top, robust=True, trees=False)), trials[top], given.w) > 0:
            for curves, depth in hopeful():
                for spread in dict.fromkeys(("", best().spread)):
                    attempt(replace(base, curves=curves, depth=depth, spread=spread, robust=True))
            if "spread" in families and not best().spread:
                seek_spreads()  # far rows hid it
    top = best()
    if top.spread and not top.count and _shape_left(given, trials[top].mechanism):
        squares = [r for r in trials if "squares" in r.spread and not trials[r].wide]
        for recipe in [top, *([top_of(squares)] if squares else [])]:
            attempt(replace(recipe, added=True))
            if recipe.steps:  # these have to beat what is smooth
                attempt(replace(recipe, added=True, steps=False))
    found = list(trials.values())
    chosen = choose(found, given.w, [trials[r] for r in allowed()])
    mixed = _blended(given, chosen, found) if "blends" in families else None
    if mixed is not None:
        found.append(mixed)
        chosen = next(t for t in found if t.chosen)
    if "flow" in families and _shape_left(given, chosen.mechanism):
        found.append(_with_flow(given, chosen))
    return next(t for t in found if t.chosen).mechanism, found


def _blended(given: Inputs, chosen: Trial, found: list[Trial]) -> Trial | None:
    """Locations of several candidates on the chosen one's scale; chosen if that is better."""
    recipe = chosen.mechanism.recipe
    if recipe.proportional or recipe.trees or chosen.mechanism.exact:
        return None
    kind = (recipe.scale, False, False)
    others = [
        trial
        for trial in near_the_mark(found, given.w)
        if (own := trial.mechanism.recipe) is not recipe
        and (own.scale, own.proportional, own.trees) == kind
    ]
    trials = [chosen, *others]
    t = chosen.mechanism.scaled(given.x, given.y, np.random.default_rng([given.seed, 6]))
    own = chosen.mechanism.own_weights(given.x, t, given.w) * np.isfinite(chosen.density)
    told = np.stack([trial.told for trial in trials], 1)  # type: ignore[misc]
    keep = kept(nearest_shares(told, t, given.w * own))
    if len(keep) == 1:
        return None
    trials, told = [trials[k] for k in keep], told[:, keep]
    recipes = [trial.mechanism.recipe for trial in trials]
    shares = nearest_shares(told, t, given.w * own)
    blend = Blend(
        [trial.mechanism.location for trial in trials], shares,
        np.array([bool(part.spread or part.robust) for part in recipes]), *ends(given.x),
    )  # fmt: skip
    fitted, density, miss, _ = fit_numeric(
        replace(recipe, steps=False), given.x, given.y, given.w, given.folds, given.groups,
        np.random.default_rng([given.seed, 6]), blend=(blend, told @ shares),
    )  # fmt: skip
    names = in_words(shares, [part.place() for part in recipes])
    density, wide = _tamed(given, fitted, density)
    trial = Trial(recipe.words(names), density, blend.terms, fitted, miss, wide=wide)
    return trial if wide and not chosen.wide else together(trial, chosen, given.w)


def _tamed(given: Inputs, fitted: Numeric, density: np.ndarray) -> tuple[np.ndarray, bool]:
    """Log-densities of which one far row does not outweigh all others, low if draws explode.

    Also whether draws spread further than the data, which may be chance.
    """
    anywhere = _background(given.y)
    with np.errstate(invalid="ignore"):  # rows that trees have no score for are NaN
        density = np.logaddexp(density, anywhere)
    far = fitted.overshoot(given.x, given.y, np.random.default_rng([given.seed, 8]))
    return np.minimum(density, anywhere) if far > TOO_WIDE else density, far > 1.0


def _shape_left(given: Inputs, mechanism: Numeric) -> bool:
    """Whether the noise still depends on the causes, by the Legendre polynomials of its rank."""
    if len(given.y) < ROWS_FOR_FLOW or mechanism.trees is not None:
        return False
    if mechanism.spread_near(given.x) < FINE:
        return False
    return _told(given, mechanism, range(1, 7), SHAPE_LEFT)


def _told(given: Inputs, mechanism: Numeric, what: Collection[int | str], errors: float) -> bool:
    """Whether causes predict the size of the noise, or a polynomial of its rank."""
    if mechanism.exact or not given.x.shape[1]:
        return False
    # Middles of the cells of counts tell the causes, draws within them do not.
    rng = np.random.default_rng([given.seed, 9]) if "size" not in what else None
    u = mechanism.noise(given.x, given.y, rng)
    inputs, several = given.x.shape[1], len(set(given.groups)) > 1
    depth = None if not several or inputs > 12 else 1 if inputs <= 3 else 0
    bent = len(given.y) >= ROWS_FOR_CURVES
    designs = [Design.build(given.x, given.groups, curves=bent, depth=depth)]
    if "size" in what and len(given.y) < FEW_ROWS:
        # Few rows tell a line where they do not carry curves and products.
        designs.append(Design.build(given.x, given.groups))
    for design in designs:
        a = design(given.x)
        for order in what:
            size = np.minimum(np.abs(u), 3.0)
            legendre = order != "size"
            target = eval_legendre(order, 2 * ndtr(u) - 1) if legendre else size - size.mean()
            told = crossfit(design, a, target, given.w, given.folds, None)[1]
            gains = given.w * (target**2 - (target - told) ** 2)
            if gains.mean() > errors * gains.std() / np.sqrt(len(gains)):
                return True
    return False


def _with_flow(given: Inputs, base: Trial) -> Trial:
    """The mechanism with a network for what it leaves; chosen if that is clearly better."""
    from vaca.engines.mechanisms.flow import Flow

    v = base.mechanism.simpler(given.x, given.y)
    out = given.folds == 0
    flow, gains = Flow.fit(given.x, v, given.w, out, given.seed)
    error = float(np.std(given.w[out] * gains) / np.sqrt(out.sum()))
    mechanism = replace(base.mechanism, flow=flow)
    better = float(np.average(gains, weights=given.w[out]))
    words = base.words + ", then a flow"
    trial = Trial(words, base.density, base.terms + 5000, mechanism)
    trial.score, trial.error = base.score + better, error
    far = mechanism.overshoot(given.x, given.y, np.random.default_rng([given.seed, 8]))
    bar = 2.0 if far <= 1.0 or base.wide else WIDE_LEAD
    if better > bar * error and far <= TOO_WIDE:
        base.chosen, trial.chosen = False, True
    return trial


def choose_hurdle(
    given: Inputs, edge: tuple[float, bool], *, count: bool, families: frozenset[str]
) -> tuple[Hurdle | Numeric, list[Trial]]:
    """The mechanism of a column one of whose ends repeats, and all that was tried for its parts.

    A count often has many zeros without a rule of their own: there the whole competes too.
    """
    hit = given.y == edge[0]
    at, first = choose_levels(replace(given, y=hit.astype(np.int64)), 2, families)
    rest = ~hit
    w = given.w[rest] / given.w[rest].mean()
    part = Inputs(given.x[rest], given.groups, given.y[rest], w, given.folds[rest], given.seed)
    other, second = choose_numeric(part, count=count, families=families)
    if count:
        whole, third = choose_numeric(given, count=True, families=families)
        both = np.array(next(t.density for t in first if t.chosen))
        both[rest] += next(t.density for t in second if t.chosen)
        plain = next(t for t in third if t.chosen)
        if lead(Trial("", both, 0, None), plain, given.w) < 1.0:
            return whole, third
    for trial in first:
        trial.words = f"{edge[0]:g} or not: {trial.words}"
    for trial in second:
        trial.words = f"if not {edge[0]:g}: {trial.words}"
    return Hurdle(*edge, at, other), first + second


def _background(y: np.ndarray) -> np.ndarray:
    """Log-density (n,) of a wide Cauchy distribution that one row in a thousand may come from."""
    low, middle, high = np.quantile(y, [0.1, 0.5, 0.9])
    unit = (high - low) or float(y.std()) or 1.0
    return np.log(1e-3 / (np.pi * unit)) - np.log1p(((y - middle) / unit) ** 2)


def _scale(
    given: Inputs, start: Recipe, attempt: Callable[[Recipe], Trial], families: frozenset[str]
) -> tuple[int, float, float]:
    """The scale that predicts held-out rows best; another than its own only if clearly better."""
    y = given.y
    if "scales" not in families:
        return start.scale
    low, high = float(y.min()), float(y.max())
    others = []
    if start.count:
        if high > 5:
            others += [(1, -1.0, 1.0), (1, -0.5, 1.0)]
    else:
        if low > 0:
            others.append((1, 0.0, 1.0))
            if high < 1:
                others.append((2, 0.0, 1.0))
        edge = hard_edges(y)
        others += [(1, e, 1.0) for e in edge[:1] if e is not None and not 0 < low < 0.1 * high]
        others += [(3, 0.0, e) for e in edge[1:] if e is not None and high != 1]
    best = start.scale
    if not others:
        return best
    reach = ["", "linear"] if "spread" in families else [""]
    # A spread that is fitted directly may grow with the location, which looks like a logarithm.
    plain = ["plain curves"] if "spread" in families and start.curves else []
    tried = [attempt(replace(start, spread=s)) for s in reach + plain]
    calm = [t for t in tried if not t.wide] or tried
    top = max(calm, key=lambda t: np.nanmean(t.density))
    for scale in others:
        ways = [replace(start, scale=scale, spread=s) for s in reach]
        if scale[0] == 1 and not start.count:
            ways.append(replace(ways[0], proportional=True))
        for recipe in ways:
            trial = attempt(recipe)
            bar = 2.0 if not trial.wide else WIDE_LEAD if start.count else np.inf
            fair = trial in near_the_mark([top, trial], given.w)
            if fair and lead(trial, top, given.w) > bar:
                top, best = trial, scale
    return best


def _within(y: np.ndarray, count: bool) -> tuple[int, float, float]:
    """The scale on which a column is as it is, but stays within its walls."""
    low, high = walls(float(y.min()), float(y.max()))
    if count or (np.isinf(low) and np.isinf(high)):
        return (0, 0.0, 1.0)
    return (4, low, high)


def hard_edges(y: np.ndarray) -> tuple[float | None, float | None]:
    """Where values end as if at a wall, below and above: a little beyond the last ones."""
    found: list[float | None] = []
    for sign in (1.0, -1.0):
        v = np.sort(sign * y)
        first, middle = np.quantile(v, [0.02, 0.5])
        wall = first - v[0] < 0.12 * (middle - first) and v[2] > v[0]
        found.append(sign * float(v[0] - (v[2] - v[0])) if wall else None)
    return found[0], found[1]


def _trees_help(given: Inputs, mechanism: Numeric) -> bool:
    """Whether small trees find something in the noise of rows they have not seen."""
    if len(given.y) < ROWS_FOR_TREES or mechanism.exact:
        return False
    u = mechanism.noise(given.x, given.y, None)
    folds = np.unique(given.folds)[: None if len(given.y) < FEW_ROWS else 1]
    return leaves_trace(given.x, np.clip(u, -4, 4), given.w, [given.folds == k for k in folds])


def _heavy(mechanism: Numeric) -> bool:
    """Whether residuals have tails too heavy for least squares."""
    if mechanism.exact:
        return False
    far = mechanism.curve.typical.residual(np.array([-2.5, -0.6745, 0.6745, 2.5]))
    return bool(far[3] - far[0] > 1.6 * 3.706 * (far[2] - far[1]))
