"""Hidden causes: robustness values against PySensemakr's, and causes of known strength.

PySensemakr brings a notebook server with it, so it lives in an environment of its own:

    python -m venv sensemakr && sensemakr/bin/pip install PySensemakr==0.0.8
    python benchmarks/bench_hidden.py sensemakr/bin/python
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit

import vaca
from _record import finish, record
from vaca.model.answers import Effect

TABLES = 100
GRAPH = vaca.CausalGraph.from_parents({"age": [], "t": ["age"], "y": ["age", "t"]})
PEER = """
import json, sys, pandas as pd, sensemakr as smkr, statsmodels.formula.api as smf
df = pd.read_csv(sys.argv[1])
model = smf.ols("y ~ t + age", data=df).fit()
rv = [float(smkr.robustness_value(model=model, covariates="t", q=1, alpha=a).iloc[0])
      for a in (1.0, 0.05)]
print(json.dumps(rv))
"""


def effect_of(df: pd.DataFrame, treatment: float, control: float) -> Effect:
    """The question to a model that keeps these rows; how it was fitted does not matter here."""
    model = vaca.AdditiveNoise(GRAPH)
    model.schema_ = vaca.Schema.infer(df, GRAPH)
    model.rows_ = model.schema_.encode(df)
    return Effect(0.0, 0.0, "y", {"t": treatment}, {"t": control}, model=model)


def straight(rng: np.random.Generator, n: int) -> tuple[pd.DataFrame, float, float]:
    """A table, and the partial R² of its hidden cause with treatment and outcome; effect 1."""
    age, hidden = rng.normal(size=(2, n))
    t = 0.5 * age + 0.5 * hidden + rng.normal(size=n)
    y = t + 0.5 * age + 0.8 * hidden + rng.normal(size=n)
    with_t = 0.25 / 1.25
    left = 0.64 * (1 - with_t)
    return pd.DataFrame({"age": age, "t": t, "y": y}), with_t, left / (1 + left)


def levels(rng: np.random.Generator, n: int) -> tuple[pd.DataFrame, float, float]:
    """The same with two levels of treatment, a curve of age, and a hidden cause that is -1 or 1."""
    age, hidden = rng.normal(size=n), rng.choice([-1.0, 1.0], n)
    t = (rng.random(n) < expit(0.7 * age + 0.6 * hidden)).astype(int)
    y = t + np.sin(age) + 0.6 * hidden + rng.normal(size=n)
    z, w = np.polynomial.hermite_e.hermegauss(60)  # the exact shares, by integration over age
    w = w / w.sum()
    e = expit(0.7 * z[:, None] + 0.6 * np.array([-1.0, 1.0]))
    short = e.mean(1)
    long_norm = w @ (1 / e + 1 / (1 - e)).mean(1)
    short_norm = w @ (1 / short + 1 / (1 - short))
    odds = [e[:, 1] / e.sum(1), (1 - e)[:, 1] / (1 - e).sum(1)]  # P(hidden = 1 | t, age)
    spread = w @ (short * odds[0] * (1 - odds[0]) + (1 - short) * odds[1] * (1 - odds[1]))
    left = 0.36 * 4 * spread
    shares = 1 - short_norm / long_norm, left / (1 + left)
    return pd.DataFrame({"age": age, "t": t, "y": y}), float(shares[0]), float(shares[1])


def main() -> None:
    if len(sys.argv) < 2:
        print("give the Python of an environment with PySensemakr; see the top of this file")
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(3):
            df, *_ = straight(np.random.default_rng([seed, 1]), 1000)
            path = Path(folder) / "table.csv"
            df.to_csv(path, index=False)
            out = subprocess.run(
                [sys.argv[1], "-W", "ignore", "-c", PEER, str(path)], check=True,
                capture_output=True, text=True,
            ).stdout  # fmt: skip
            found = effect_of(df, 1.0, 0.0).sensitivity()
            mine = found.robustness_value, found.robustness_value_interval
            peer = json.loads(out)
            for what, own, other in zip(("effect", "interval"), mine, peer, strict=True):
                rows.append(
                    {
                        "figure": f"robustness value, {what} to zero, straight table {seed}",
                        "vaca": float(own),
                        "peer": other,
                        "bar": "within 2 % of PySensemakr",
                        "ok": bool(abs(own / other - 1) <= 0.02),
                    }
                )
    for make, arms in ((straight, (1.0, 0.0)), (levels, (1, 0))):
        inside = 0
        for seed in range(TABLES):
            df, with_t, with_y = make(np.random.default_rng([seed, 2]), 500)
            low, high = effect_of(df, *arms).sensitivity().bounds(with_t, with_y, level=0.95)
            inside += bool(low <= 1.0 <= high)
        rows.append(
            {
                "figure": f"tables whose true effect is in the bounds, {make.__name__}",
                "vaca": inside,
                "peer": TABLES,
                "bar": ">= 95 of 100",
                "ok": inside >= 0.95 * TABLES,
            }
        )
    note = (
        "Straight tables of 1000 rows; hidden causes of known partial R² in tables of 500 rows, "
        "bounds with 95 % confidence."
    )
    finish(record("hidden", "Hidden causes, against PySensemakr and known strengths", rows, note))


if __name__ == "__main__":
    main()
