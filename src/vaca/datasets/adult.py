"""Adult: people in the US census of 1994, with a causal graph for the income question."""

from __future__ import annotations

import io
from typing import Literal

import pandas as pd

from vaca.datasets.dataset import Dataset, read_shipped
from vaca.errors import VacaError, did_you_mean
from vaca.graph.dag import CausalGraph
from vaca.table.schema import Schema

SHA256 = {
    "adult.data.xz": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult.test.xz": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
}

_NAMES = [
    "age",
    "workclass",
    "weight",
    "education",
    "education_years",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "native_country",
    "income",
]
_KEPT = [
    "sex",
    "race",
    "age",
    "native_country",
    "marital_status",
    "education_years",
    "workclass",
    "occupation",
    "hours_per_week",
]
_MISSING = "unknown"

_DESCRIPTION = """\
Adult, from the US census of 1994: does a person earn more than 50,000 dollars a year?

Columns: sex; race; age in years; native_country ("United-States" or "elsewhere", the 41 others
taken together); marital_status; education_years (the file's "education-num", 1 to 16); workclass;
occupation; hours_per_week. Target: income, ">50K" or "<=50K". Rows with a missing value are left
out unless asked for.

The causal graph follows Chiappa (2019): sex and the background (race, age, native country) are
causes of everything else; marital status is a cause of education and of work; education of work,
where work = {workclass, occupation, hours_per_week}. The graph is an assumption, and some of its
arrows are disputable (marital status and education above all).

Source: Becker, B. and Kohavi, R. (1996), UCI Machine Learning Repository,
https://doi.org/10.24432/C5XW20, CC BY 4.0. The shipped files are the originals, compressed.
"""


def adult_census(
    part: Literal["train", "test", "both"] = "both",
    missing: Literal["drop", "level"] = "drop",
) -> Dataset:
    """The real Adult census data as `Dataset`, with target income.

    Parameters
    ----------
    part : {"both", "train", "test"}
        The file's own split: 32,561 and 16,281 rows before missing values are left out.
    missing : {"drop", "level"}
        Leave out rows with a missing value, or give missing values the level "unknown".

    Examples
    --------
    >>> adult_census("test", missing="level").data.shape
    (16281, 9)
    """
    if not isinstance(part, str) or part not in ("train", "test", "both"):
        raise VacaError(f"unknown part {part!r}; {did_you_mean(part, ['train', 'test', 'both'])}")
    if not isinstance(missing, str) or missing not in ("drop", "level"):
        raise VacaError(f"unknown missing={missing!r}; {did_you_mean(missing, ['drop', 'level'])}")
    names = {"train": ["adult.data.xz"], "test": ["adult.test.xz"]}.get(part, list(SHA256))
    frame = pd.concat([_read(name) for name in names], ignore_index=True)
    if missing == "drop":
        frame = frame[(frame[[*_KEPT, "income"]] != _MISSING).all(axis=1)].reset_index(drop=True)
    elsewhere = ~frame["native_country"].isin(["United-States", _MISSING])
    frame["native_country"] = frame["native_country"].mask(elsewhere, "elsewhere")
    graph = CausalGraph(
        {
            "sex": [],
            "background": [],
            "marital_status": ["sex", "background"],
            "education_years": ["sex", "background", "marital_status"],
            "work": ["sex", "background", "marital_status", "education_years"],
        },
        {
            "background": ["race", "age", "native_country"],
            "work": ["workclass", "occupation", "hours_per_week"],
        },
    )
    data = frame[_KEPT].copy()
    for name in data.columns:
        if data[name].dtype != "int64":
            data[name] = data[name].astype("category")
    target = frame["income"].astype(pd.CategoricalDtype(["<=50K", ">50K"]))
    schema = Schema.infer(data, graph)
    return Dataset("adult_census", data, graph, schema, target, ">50K", _DESCRIPTION)


def _read(name: str) -> pd.DataFrame:
    frame = pd.read_csv(
        io.StringIO(read_shipped(name, SHA256[name])),
        names=_NAMES,
        skipinitialspace=True,
        skiprows=1 if "test" in name else 0,  # the test file opens with a remark
        keep_default_na=False,
    )
    frame["income"] = frame["income"].str.rstrip(".")  # the test file ends each label in a dot
    return frame.replace("?", _MISSING)
