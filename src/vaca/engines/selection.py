r"""A fitted model without choosing an engine: `vaca.auto`.

By default it is a `Composite`, which chooses a mechanism for each column. Whole engines can compete
instead: they are fitted to part of the rows and scored on the others. Likelihoods cannot be
compared across engines, and a good observational fit can hide a model that ignores the parents. So
all scores are distances between held-out rows and rows that an engine makes *under interventions
whose answer the data hold*. With :math:`d` the squared MMD of `vaca.metrics.mmd`:

- ``observational``: :math:`d` of the held-out rows and rows drawn from the engine;
- ``mechanisms``: every node with its parents set to their held-out values. If no cause is missing
  from the graph, :math:`p(x_j \mid do(pa_j)) = p(x_j \mid pa_j)`, so the node must be distributed
  as in the held-out rows, overall and in every slice (quarter of the rows by a parent's value);
- ``roots``: every root set to its held-out values. :math:`p(x \mid do(x_i)) = p(x \mid x_i)` for a
  root, so all its descendants must be distributed as in the held-out rows, overall and in slices;
- ``counterfactuals``: held-out rows whose node is asked again under the parents of *another* row.
  If the abducted noise is independent of the parents, as it must be, parents and node together are
  distributed as in the held-out rows; noise that carries information on the parents shows here.

Held-out rows are few and scores are noisy, and none sees what happens outside the data, where most
interventions lead and where assumptions decide. So of the engines that score about as well as the
best, the first in the list is taken, and the list begins with the strongest assumptions (noise that
is added; then noise that acts through a monotone function; then nothing but an order of the
columns): what fits as well with less freedom has less to go wrong.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from vaca.engines.engine import Engine
from vaca.engines.missing import complete_rows
from vaca.engines.registry import engine_class, engine_names
from vaca.errors import VacaError, shorten
from vaca.evaluation import metrics
from vaca.evaluation.coding import Space
from vaca.graph.dag import CausalGraph
from vaca.graph.parts import check_list
from vaca.model.arguments import check_number, check_seed
from vaca.model.causal_model import CausalModel
from vaca.table.columns import row_count, take_rows
from vaca.table.progress import progress_bar
from vaca.table.schema import Columns, Schema, as_frame

__all__ = ["Selection", "auto", "score"]

#: Scores this near to the best (as a share of it) are as good. Two perfect engines, the truth and
#: the truth with other noise, differ by 11 % of their score: root mean square over six tables of
#: 1250 held-out rows each of chain-lin, triangle-nlin, mgraph-nlin, collider-nadd and loan (5 to
#: 17 %), averaged. This is a little more than two of them.
AS_GOOD = 0.25
HELD_OUT = 0.25
MAX_ROWS = 1500
SLICES = 4
#: Rows drawn from the engine for every held-out row, and how often all of it is done.
DRAWS = 3
REPEATS = 4
PARTS = ("observational", "mechanisms", "roots", "counterfactuals")


@dataclass(frozen=True)
class Selection:
    """How `auto` made its choice.

    Attributes
    ----------
    leaderboard_ : DataFrame
        One row per engine, best first: ``score`` (the mean of the parts, lower is better), the
        parts (squared MMD x100), ``seconds`` of the fit, ``chosen``, and ``note``, why there is no
        score.
    """

    leaderboard_: pd.DataFrame


def auto(
    data: Any,
    graph: CausalGraph,
    *,
    schema: Any = None,
    engines: Sequence[str | Engine] | None = None,
    seed: int = 0,
    missing: str = "error",
    weights: Any = None,
    refits: int = 8,
    time_budget: float | None = None,
    jobs: int = 1,
    cluster: str | None = None,
    progress: bool | None = None,
) -> Engine:
    """Fit a model that needs no choice: each column gets the mechanism that its rows support.

    Parameters
    ----------
    data : DataFrame
    graph : CausalGraph
    schema : Schema or mapping, optional
        Kinds of columns; by default inferred from the data.
    engines : sequence of str or Engine, optional
        Let whole engines compete instead: names ("CausalFlow", "AdditiveNoise", "CAREFL", "VACA",
        "MultiCVAE", "Composite") or unfitted engines. Of those that answer held-out questions
        about as well as the best, the first is taken.
    seed : int
        For the model, the split and the scores.
    missing : {"error", "drop", "model"}
        What to do about missing values: refuse them, leave their rows out, or learn from those rows
        too, with draws for what is missing. Unfitted engines bring their own.
    weights : array or Series, optional
        How many rows each row stands for.
    refits : int
        Fits under other weights, for intervals that cover the fit; engines of a contest that have
        no quick refits go without.
    time_budget : float, optional
        Seconds in all. Each engine of a contest gets an equal share of what is left; engines that
        would start after the end are skipped.
    jobs, cluster
        Where columns and refits are fitted; see `Engine.fit`.
    progress : bool, optional
        False for no progress bar; by default there is one on a terminal.

    Returns
    -------
    Engine
        A fitted `Composite`; what was tried is in ``leaderboard_``. Of a contest its winner, fitted
        to all rows (if the budget allows; else to three quarters of them), with the comparison in
        ``auto_.leaderboard_``.

    Examples
    --------
    >>> import vaca
    >>> scm = vaca.scms.load("chain-lin")
    >>> vaca.auto(scm.sample(3000, seed=0), scm.graph).columns_["mechanism"].to_dict()
    {'x1': 'as observed', 'x2': 'linear', 'x3': 'linear'}
    """
    start = time.perf_counter()
    if not isinstance(graph, CausalGraph):
        raise VacaError(
            f"graph is a CausalGraph; got {shorten(graph)}. Make one with "
            'vaca.CausalGraph.from_edges([("cause", "effect"), ...]) or CausalGraph.read(path)'
        )
    seed = check_seed(seed)
    if time_budget is not None:
        check_number("time_budget", time_budget)
    frame = as_frame(data)
    if engines is None:
        from vaca.engines.composite import Composite

        model = Composite(graph, schema, seed=seed, missing=missing, time_budget=time_budget)
        model.fit(
            frame, weights=weights, refits=refits, jobs=jobs, cluster=cluster, progress=progress
        )
        model.auto_ = Selection(model.leaderboard_)
        return model
    candidates = _candidates(engines, frame, graph, schema, seed, missing)
    board, fitted = contest(
        frame, candidates, seed=seed, time_budget=time_budget, progress=progress
    )
    best = str(board.index[board["chosen"]][0])
    model = fitted[best]
    spent = time.perf_counter() - start
    if time_budget is None or spent + float(board.loc[best, "seconds"]) <= time_budget:
        quick = type(model)._refit is not Engine._refit
        model = clone(candidates[best]).fit(
            frame,
            weights=weights,
            refits=refits if quick else 0,
            jobs=jobs,
            cluster=cluster,
            progress=False,
        )
    model.auto_ = Selection(board)
    return model


def contest(
    frame: pd.DataFrame,
    candidates: Mapping[str, Engine],
    *,
    seed: int = 0,
    time_budget: float | None = None,
    progress: bool | None = None,
) -> tuple[pd.DataFrame, dict[str, Engine]]:
    """Fit every candidate to part of the rows and score it on the rest.

    Returns
    -------
    DataFrame, dict
        The leaderboard, best first (see `Selection`), and the fitted engines by name.
    """
    start = time.perf_counter()
    order = np.random.default_rng([seed, 3]).permutation(len(frame))
    held = min(MAX_ROWS, max(1, round(HELD_OUT * len(frame))))
    held_out, rest = frame.iloc[order[:held]], frame.iloc[order[held:]]
    fitted: dict[str, Engine] = {}
    rows: list[dict[str, Any]] = []
    with progress_bar("auto", len(candidates), unit="engines", wanted=progress) as bar:
        for number, (name, engine) in enumerate(candidates.items()):
            bar.begin(name)
            left = None if time_budget is None else time_budget - (time.perf_counter() - start)
            share = None if left is None else left / (len(candidates) - number)
            rows.append(_try(name, engine, rest, held_out, seed, share, fitted))
    board = pd.DataFrame(rows).set_index("engine").sort_values("score", na_position="last")
    if not fitted:
        notes = "; ".join(f"{name}: {note}" for name, note in board["note"].items())
        raise VacaError(f"no engine could be fitted: {notes}")
    scores = board["score"].to_dict()
    best = choose({name: float(scores[name]) for name in candidates})
    board.insert(board.columns.get_loc("note"), "chosen", board.index == best)
    return board, fitted


def choose(scores: Mapping[str, float]) -> str:
    """The first engine whose score is about as good as the best; NaN is no score.

    >>> choose({"AdditiveNoise": 0.50, "CausalFlow": 0.42, "VACA": 0.41})
    'AdditiveNoise'
    >>> choose({"AdditiveNoise": 6.9, "CausalFlow": 0.35, "VACA": 0.22})
    'VACA'
    """
    best = min(score for score in scores.values() if not np.isnan(score))
    return next(name for name, score in scores.items() if score <= (1.0 + AS_GOOD) * best)


def _try(
    name: str,
    engine: Engine,
    rest: pd.DataFrame,
    held_out: pd.DataFrame,
    seed: int,
    share: float | None,
    fitted: dict[str, Engine],
) -> dict[str, Any]:
    """Fit and score one engine; a row of the leaderboard."""
    row: dict[str, Any] = {"engine": name, "score": np.nan}
    row |= dict.fromkeys(PARTS, np.nan) | {"seconds": np.nan, "note": ""}
    if share is not None and share <= 0 and fitted:  # one engine is always tried
        return row | {"note": "no time left"}
    engine = clone(engine)
    if share is not None and "time_budget" in engine.get_params():
        # Scores and the last fit need time as well.
        engine.set_params(time_budget=max(0.4 * share, 0.5))
    begin = time.perf_counter()
    try:
        engine.fit(rest, progress=False)
        row["seconds"] = time.perf_counter() - begin
        left = None if share is None else share - float(row["seconds"])
        row |= score(engine, held_out, seed=seed, time_budget=left)
    except (RuntimeError, ValueError, FloatingPointError, np.linalg.LinAlgError) as error:
        return row | {"note": f"{type(error).__name__}: {error}"}
    fitted[name] = engine
    return row


def score(
    model: CausalModel, held_out: Any, *, seed: int = 0, time_budget: float | None = None
) -> dict[str, float]:
    """Distances (squared MMD x100, lower is better) between held-out rows and a model's answers.

    See the module's description. Needs no truth and no likelihood. All of it is done `REPEATS`
    times with fresh noise and averaged; with a ``time_budget``, as often as fits, but once.

    Returns
    -------
    dict with ``score`` (the mean of the parts), ``observational``, ``mechanisms``, ``roots``,
    ``counterfactuals`` (NaN in a graph without edges)
    """
    rng = np.random.default_rng([seed, 4])
    x = complete_rows(model, as_frame(held_out), rng)
    space = Space(model, x, pairs=True)
    start = time.perf_counter()
    rounds = [_round(model, x, space, rng)]
    while len(rounds) < REPEATS:
        spent = time.perf_counter() - start
        if time_budget is not None and spent + spent / len(rounds) > time_budget:
            break
        rounds.append(_round(model, x, space, rng))
    result = {part: float(np.mean([found[part] for found in rounds])) for part in PARTS}
    return {"score": float(np.nanmean(list(result.values()))), **result}


def _round(
    model: CausalModel, x: Columns, space: Space, rng: np.random.Generator
) -> dict[str, float]:
    """The parts of the score, with noise drawn once."""
    graph, n = model.graph, row_count(x)
    many = {c: np.tile(v, DRAWS) for c, v in x.items()}
    every = list(graph.nodes)
    drawn = model.simulate(model.noise(DRAWS * n, rng), {})
    parts: dict[str, list[float]] = {part: [] for part in PARTS}
    parts["observational"].append(_distance(space, x, drawn, every))

    u = model.abduct(x, rng)
    other = rng.permutation(n)
    for node in every:
        above = graph.parents(node)
        if above:
            names = [c for p in above for c in graph.columns(p)]
            made = model.simulate(model.noise(DRAWS * n, rng), {c: many[c] for c in names})
            parts["mechanisms"] += _sliced(space, x, made, many, [node], above, graph)
            moved = model.simulate(u, {c: x[c][other] for c in names})
            given = {c: moved[c] for c in (*names, *graph.columns(node))}
            parts["counterfactuals"].append(_distance(space, x, given, [*above, node]))
        elif graph.children(node):
            names = list(graph.columns(node))
            made = model.simulate(model.noise(DRAWS * n, rng), {c: many[c] for c in names})
            below = list(graph.descendants(node))
            parts["roots"] += _sliced(space, x, made, many, below, [node], graph)
    return {k: float(np.mean(v)) if v else np.nan for k, v in parts.items()}


def _sliced(
    space: Space,
    x: Columns,
    made: Columns,
    many: Columns,
    nodes: Sequence[str],
    by: Sequence[str],
    graph: CausalGraph,
) -> list[float]:
    """Distance of the given nodes in all rows, and in quarters of the rows by a parent's value."""
    distances = [_distance(space, x, made, nodes)]
    for parent in by:
        column = graph.columns(parent)[0]
        edges = np.unique(np.quantile(x[column], np.linspace(0, 1, SLICES + 1)[1:-1]))
        own, theirs = np.digitize(x[column], edges), np.digitize(many[column], edges)
        for k in range(len(edges) + 1):
            if (own == k).sum() >= 20:
                left = take_rows(x, own == k)
                right = take_rows(made, theirs == k)
                distances.append(_distance(space, left, right, nodes))
    return distances


def _distance(space: Space, x: Columns, y: Columns, nodes: Sequence[str]) -> float:
    data, drawn = (space.matrix(rows, nodes, "the model", "") for rows in (x, y))
    return 100 * float(metrics.mmd(data, drawn))


def _candidates(
    engines: Sequence[str | Engine],
    frame: pd.DataFrame,
    graph: CausalGraph,
    schema: Any,
    seed: int,
    missing: str,
) -> dict[str, Engine]:
    known = engine_names(alone=True)
    result: dict[str, Engine] = {}
    for given in [engines] if isinstance(engines, str) else check_list(engines, "engines"):
        if isinstance(given, str):
            family: Any = engine_class(given, among=known)
            made = family(graph, schema, seed=seed, missing=missing)
        elif isinstance(given, Engine):
            made = given
        else:
            raise VacaError(f"an engine is a name or an unfitted engine; got {given!r}")
        name = type(made).__name__
        while name in result:
            name += "'"
        result[name] = made
    if not result:
        raise VacaError(f"there are no engines to choose from; known: {', '.join(known)}")
    if any(not isinstance(engine.schema, Schema) for engine in result.values()):
        # Levels that only the held-out rows have must be known to all.
        kinds = schema if not isinstance(schema, Schema) else None
        gaps = all(engine.missing != "error" for engine in result.values())
        whole = Schema.infer(frame, graph, kinds, missing=gaps)
        for name, engine in result.items():
            if not isinstance(engine.schema, Schema):
                result[name] = clone(engine).set_params(schema=whole)
    return result
