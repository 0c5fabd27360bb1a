"""Loan: seven columns of a loan application, most as deviations from their mean."""

from __future__ import annotations

import numpy as np

from vaca.scm.distributions import Bernoulli, Gamma, Normal
from vaca.scm.library._parts import sigmoid
from vaca.scm.structural import StructuralCausalModel

__all__ = ["loan"]


def loan() -> StructuralCausalModel:
    """Give the loan model; gender is binary, everything else continuous."""
    return StructuralCausalModel(
        {
            "gender": lambda u: u,
            "age": lambda u: -35 + u,
            "education": lambda gender, age, u: (
                -0.5 + sigmoid(-1 + 0.5 * gender + sigmoid(0.1 * age) + u)
            ),
            "loan_amount": lambda gender, age, u: 1 + 0.01 * (age - 5) * (5 - age) + gender + u,
            "loan_duration": lambda gender, age, loan_amount, u: (
                -1 + 0.1 * age + 2 * gender + loan_amount + u
            ),
            "income": lambda gender, age, education, u: (
                -4 + 0.1 * (age + 35) + 2 * gender + gender * education + u
            ),
            "savings": lambda income, u: -4 + 1.5 * np.maximum(income, 0) + u,
        },
        {
            "gender": Bernoulli(0.5),
            "age": Gamma(10, 3.5),
            "education": Normal(0, 0.25),
            "loan_amount": Normal(0, 4),
            "loan_duration": Normal(0, 9),
            "income": Normal(0, 4),
            "savings": Normal(0, 25),
        },
        inverse={
            "education": lambda gender, age, education: (
                np.log((0.5 + education) / (0.5 - education))
                + (1 - 0.5 * gender - sigmoid(0.1 * age))
            ),
        },
        kinds={"gender": "binary"},
        name="loan",
        published_nodes=("gender", "age"),
    )
