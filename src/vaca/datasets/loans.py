"""Loan applications: a made-up table of mixed kinds whose generating equations are known.

The numbers are invented. The table is for learning and testing: every answer of a model can be
compared with the truth of `loan_applications_scm`.
"""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
from scipy.stats import poisson, uniform

from vaca.datasets.dataset import Dataset, read_shipped
from vaca.scm.distributions import Bernoulli, Categorical, Gamma, Normal
from vaca.scm.structural import StructuralCausalModel
from vaca.table.schema import Schema

__all__ = ["loan_applications", "loan_applications_scm"]

EDUCATION = ("basic", "school", "college", "university")
REGIONS = ("city", "coast", "north", "south")
#: How the shipped rows were drawn from the SCM, and to how many decimals they were rounded.
ROWS, SEED, DECIMALS = 5000, 7, {"experience": 1, "income": 0, "savings": 0, "loan_amount": 0}
_SHA256 = "e64de0b3ba57f6db7be0b5a6397a3ccb4e1f756a947f8f68bc2e8c18a88b5e82"


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _education(sex: np.ndarray, age: np.ndarray, region: np.ndarray, u: np.ndarray) -> np.ndarray:
    score = 0.5 * (region == 0) + 0.2 * sex - 0.015 * (age - 42) + u
    return np.digitize(score, (-1.1, 0.2, 1.1))


def _approved(
    income: np.ndarray, savings: np.ndarray, loan_amount: np.ndarray, u: np.ndarray
) -> np.ndarray:
    afford = 1.6 * np.log(6 * income / loan_amount) + 0.4 * np.log(savings / income)
    return (u < _sigmoid(afford)).astype(int)


def loan_applications_scm() -> StructuralCausalModel:
    """The equations behind `loan_applications`.

    Sex has no direct effect on the decision; it acts through education, experience and income.

    Examples
    --------
    >>> scm = loan_applications_scm()
    >>> scm.graph.parents("approved")
    ('income', 'savings', 'loan_amount')
    """
    return StructuralCausalModel(
        {
            "sex": lambda u: u,
            "age": lambda u: np.minimum(18 + np.floor(u), 85.0),
            "region": lambda u: u,
            "education": _education,
            "experience": lambda sex, age, education, u: (
                (age - 17 + 0.5) * _sigmoid(1.2 + 0.5 * sex - 0.25 * education + 0.6 * u)
            ),
            "income": lambda sex, region, education, experience, u: np.exp(
                7.2
                + 0.22 * education
                + 0.014 * experience
                + 0.1 * sex
                + 0.12 * (region == 0)
                - 0.1 * (region == 3)
                + 0.25 * u
            ),
            "children": lambda age, u: poisson.ppf(u, 2.0 * _sigmoid((age - 30) / 5)),
            "savings": lambda age, income, children, u: (
                income * np.exp(0.8 + 0.025 * (age - 42) - 0.2 * children + 0.7 * u)
            ),
            "loan_amount": lambda age, income, children, u: (
                np.sqrt(income) * np.exp(5.8 + 0.1 * children - 0.008 * (age - 42) + 0.45 * u)
            ),
            "approved": _approved,
        },
        {
            "sex": Bernoulli(0.5),
            "age": Gamma(4, 6),
            "region": Categorical((0.35, 0.25, 0.25, 0.15)),
            "education": Normal(0, 1),
            "experience": Normal(0, 1),
            "income": Normal(0, 1),
            "children": uniform(),
            "savings": Normal(0, 1),
            "loan_amount": Normal(0, 1),
            "approved": uniform(),
        },
        kinds={
            "sex": "binary",
            "age": "count",
            "region": "categorical",
            "education": "ordinal",
            "children": "count",
            "approved": "binary",
        },
        levels={
            "sex": ("female", "male"),
            "region": REGIONS,
            "education": EDUCATION,
            "approved": ("no", "yes"),
        },
        name="loan_applications",
    )


def loan_applications() -> Dataset:
    """5,000 made-up loan applications with sex, age, education, money and the decision.

    The decision `approved` is a column of the graph like the others, and is also the target.

    Examples
    --------
    >>> dataset = loan_applications()
    >>> dataset.data.shape
    (5000, 10)
    >>> sorted(dataset.data["approved"].unique())
    ['no', 'yes']
    """
    data = pd.read_csv(io.StringIO(read_shipped("loan_applications.csv", _SHA256)))
    scm = loan_applications_scm()
    return Dataset(
        name="loan applications",
        data=data,
        graph=scm.graph,
        schema=Schema.infer(
            data,
            scm.graph,
            {n: c if c.discrete else c.kind for n, c in scm.schema_.items()},
        ),
        target=data["approved"],
        positive="yes",
        description=(
            "Made-up applications for a loan: sex, age in years, region, education, years of "
            "experience, monthly income, children, savings, the amount asked for, and whether it "
            "was approved. Drawn from known equations (loan_applications_scm) and rounded; no "
            "person is described. Part of this package, under its licence."
        ),
    )
