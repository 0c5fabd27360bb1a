"""Very large, very small, constant and heavy-tailed columns: an answer or a clear refusal."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import vaca
from tests.fuzz.models import QUICK
from vaca.engines.registry import ENGINES, engine_class
from vaca.errors import VacaError

N = 40
RNG = np.random.default_rng(0)
X = RNG.normal(size=N)
COLUMNS = {
    "1e-300": X * 1e-300,
    "1e-200": X * 1e-200,
    "1e-100": X * 1e-100,
    "1e100": X * 1e100,
    "1e200": X * 1e200,
    "1e300": X * 1e299,
    "largest": X / np.abs(X).max() * 1.7e308,
    "denormal": X * 5e-322,
    "constant": np.full(N, 3.0),
    "constant at 0": np.zeros(N),
    "nearly constant": 1e9 + X * 1e-7,
    "one apart": np.r_[np.zeros(N - 1), 1e-9],
    "Cauchy": RNG.standard_cauchy(N),
    "duplicates": np.repeat(X[:2], N // 2),
    "far from 0": 1e15 + X,
}
REFUSED = {"1e-300", "1e-200", "1e200", "1e300", "largest", "denormal"}
GRAPH = vaca.CausalGraph.from_edges([("a", "b")])
KINDS: Any = {"a": "continuous", "b": "continuous"}


@pytest.mark.parametrize("role", ["cause", "effect"])
@pytest.mark.parametrize("case", COLUMNS)
@pytest.mark.parametrize("name", ["AdditiveNoise", "CausalFlow"])
def test_an_answer_or_a_refusal(name: str, case: str, role: str) -> None:
    pair = (COLUMNS[case], X) if role == "cause" else (X, COLUMNS[case])
    table = pd.DataFrame(dict(zip("ab", pair, strict=True)))
    family: Any = engine_class(name)
    known = family(GRAPH).get_params(deep=False)
    engine = family(GRAPH, KINDS, **{k: v for k, v in QUICK.items() if k in known})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if case in REFUSED:
            with pytest.raises(VacaError, match=r"column '[ab]'.*(too large|too close)"):
                engine.fit(table, progress=False)
            return
        model = engine.fit(table, progress=False)
        assert np.isfinite(model.sample(5, seed=0).to_numpy()).all()
        rows = table.head(3)
        assert np.isfinite(model.counterfactual(rows, {"a": float(pair[0][5])}).to_numpy()).all()
        pd.testing.assert_frame_equal(pd.DataFrame(model.counterfactual(rows, {})), rows)


@pytest.mark.parametrize("value", [1e200, -1e300, 1.7e308])
def test_a_question_too_far_out_is_refused(value: float) -> None:
    scm = vaca.scms.load("triangle-lin")
    with pytest.raises(VacaError, match="too large"):
        scm.sample(2, do={"x1": value})
    rows = scm.sample(2, seed=0).assign(x1=value)
    with pytest.raises(VacaError, match="too large"):
        scm.counterfactual(rows, do={"x2": 0.0})


@pytest.mark.parametrize("name", ENGINES)
def test_answers_do_not_depend_on_the_unit(name: str) -> None:
    family: Any = engine_class(name)
    known = family(GRAPH).get_params(deep=False)
    settings = {k: v for k, v in QUICK.items() if k in known}
    if name == "Ensemble":
        settings |= {"engine": "AdditiveNoise", "jobs": 1}
    rows = pd.DataFrame({"a": X, "b": X + 0.5 * RNG.normal(size=N)})
    found = {}
    for unit in (1.0, 2.0**-330, 2.0**330):  # about 1e-99 and 1e99; powers of 2 change no digit
        model = family(GRAPH, schema=KINDS, **settings).fit(rows * unit, progress=False)
        answer = model.counterfactual(rows.head(6) * unit, {"a": X[7] * unit})["b"].to_numpy()
        drawn = model.sample(6, seed=0)["b"].to_numpy()
        found[unit] = np.r_[answer, drawn] / unit
    for unit, values in found.items():
        np.testing.assert_allclose(values, found[1.0], rtol=1e-3, atol=1e-3, err_msg=f"{unit}")
