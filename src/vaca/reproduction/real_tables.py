"""Tables of real studies with known answers, from packages on PyPI; nothing is shipped.

`causaldata` holds LaLonde's and Thornton's tables, `causallib` NHEFS and the ACIC 2016 challenge.
This file needs only pandas, so that peers can be measured in environments of their own.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from vaca.errors import VacaError

__all__ = ["REPLICATES", "RealTable", "load_real", "real_names"]

#: Replicates of the ACIC 2016 challenge that causallib ships.
REPLICATES = 10

LALONDE = ("age", "educ", "black", "hisp", "marr", "nodegree", "re74", "re75")
#: The confounders of Hernan and Robins, "Causal Inference: What If", and four more with gaps.
NHEFS = (
    "sex", "race", "age", "education", "smokeintensity", "smokeyrs", "wt71", "exercise", "active",
)  # fmt: skip
NHEFS_GAPS = ("income", "sbp", "dbp", "cholesterol")
THORNTON = ("age", "distvct")


@dataclass(frozen=True)
class RealTable:
    """A table, the question asked of it, and what is known about the answer.

    Attributes
    ----------
    truth : dict of str to float
        "everyone" and "treated": the average effect on all rows and on the treated, where known.
    source : str
        Where the answer comes from.
    """

    name: str
    data: pd.DataFrame
    treatment: str
    outcome: str
    covariates: tuple[str, ...]
    truth: dict[str, float]
    source: str
    levels: tuple[str, ...] = ()


def real_names() -> list[str]:
    """Every table, by name."""
    acic = [f"acic-{k}" for k in range(1, REPLICATES + 1)]
    return ["lalonde", "nhefs", "nhefs-gaps", "thornton", *acic]


def load_real(name: str) -> RealTable:
    """The table of that name; its package has to be installed."""
    if name == "lalonde":
        nsw, cps = (_stata(part) for part in ("nsw_mixtape", "cps_mixtape"))
        data = pd.concat([nsw[nsw["treat"] == 1], cps], ignore_index=True)
        data = data[["treat", *LALONDE, "re78"]].astype({"treat": int})
        for column in ("re74", "re75", "re78"):
            data[column] = data[column].astype(float)
        known = {"treated": 1794.0}
        return RealTable(name, data, "treat", "re78", LALONDE, known, "the experiment")
    if name in ("nhefs", "nhefs-gaps"):
        data = _csv("nhefs/NHEFS.csv")
        covariates = NHEFS if name == "nhefs" else (*NHEFS, *NHEFS_GAPS)
        data = data[["qsmk", *covariates, "wt82_71"]]
        if name == "nhefs":
            data = data.dropna().reset_index(drop=True)
        known = {"everyone": 3.4}
        levels = ("education", "exercise", "active")
        source = "Hernan and Robins, 3.4 to 3.5"
        return RealTable(name, data, "qsmk", "wt82_71", covariates, known, source, levels)
    if name == "thornton":
        data = _stata("thornton_hiv")[["any", *THORNTON, "got"]].dropna().reset_index(drop=True)
        data = data.astype({"any": int, "got": int, "age": float, "distvct": float})
        known = {"everyone": 0.451}
        return RealTable(name, data, "any", "got", THORNTON, known, "assigned at random")
    number = name.removeprefix("acic-")
    covariates = _csv("acic_challenge_2016/x.csv")
    drawn = _csv(f"acic_challenge_2016/zymu_{number}.csv")
    data = covariates.assign(z=drawn["z"])
    data["y"] = drawn["y1"].where(drawn["z"] == 1, drawn["y0"])
    gain = drawn["mu1"] - drawn["mu0"]
    known = {"everyone": float(gain.mean()), "treated": float(gain[drawn["z"] == 1].mean())}
    text = tuple(c for c in covariates if not pd.api.types.is_numeric_dtype(covariates[c]))
    return RealTable(
        name, data, "z", "y", tuple(covariates.columns), known, "the challenge's own", text
    )


def _folder(package: str) -> Path:
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise VacaError(f"the table is in the package {package}: pip install --no-deps {package}")
    return Path(next(iter(found.submodule_search_locations)))


def _stata(name: str) -> pd.DataFrame:
    return pd.read_stata(_folder("causaldata") / name / f"{name}.dta")


def _csv(name: str) -> pd.DataFrame:
    return pd.read_csv(_folder("causallib") / "datasets" / "data" / name)
