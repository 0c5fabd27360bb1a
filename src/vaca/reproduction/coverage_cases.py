"""Tables of which everything is known, of eight kinds, and the question that each is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import logistic

from vaca.scm import library
from vaca.scm.distributions import Bernoulli, Categorical, Gamma, Normal
from vaca.scm.structural import StructuralCausalModel

__all__ = ["KINDS", "Kind"]


@dataclass(frozen=True)
class Kind:
    """A kind of table and its question.

    Attributes
    ----------
    truth : StructuralCausalModel
    treatment, control : dict
        Of one node.
    followed : str
        A continuous column whose counterfactuals are asked for.
    audited : bool
        Whether the treatment is asked about as a sensitive attribute too.
    scale : tuple
        The middle and the width of the followed column, for the score that is audited.
    """

    name: str
    truth: StructuralCausalModel
    treatment: dict[str, Any]
    control: dict[str, Any]
    outcome: str = "y"
    level: Any = None
    followed: str = "y"
    audited: bool = True
    scale: tuple[float, float] = (0.0, 1.0)


def _treated(name: str, equations: dict[str, Any], noise: dict[str, Any], **fields: Any) -> Kind:
    """A binary treatment `t`; noises are standard normal if not given, of coins logistic."""
    kinds = {"t": "binary", **fields.pop("kinds", {})}
    given = {node: Normal(0, 1) for node in equations} | {"t": logistic()} | noise
    levels = fields.pop("levels", None)
    truth = StructuralCausalModel(equations, given, kinds=kinds, levels=levels, name=name)
    return Kind(name, truth, {"t": 1}, {"t": 0}, **fields)


def _linear() -> Kind:
    truth = StructuralCausalModel(
        {
            "w": lambda u: u,
            "v": lambda u: u,
            "t": lambda w, v, u: 0.5 * w - 0.5 * v + u,
            "y": lambda w, v, t, u: t + w + 0.5 * v + u,
        },
        {node: Normal(0, 1) for node in "wvty"},
        name="linear",
    )
    return Kind("linear", truth, {"t": 1.0}, {"t": 0.0}, audited=False)


def _paper() -> Kind:
    truth = library.load("triangle-nlin")
    return Kind(
        "nlin", truth, {"x1": 1.0}, {"x1": -1.0}, outcome="x3", followed="x3", audited=False
    )


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        _linear(),
        _treated(
            "curved",
            {
                "w": lambda u: u,
                "t": lambda w, u: (0.7 * w + u > 0).astype(int),
                "y": lambda w, t, u: t * (1 + 0.5 * w) + np.sin(2 * w) + 0.5 * w**2 + u,
            },
            {},
        ),
        _treated(
            "mixed",
            {
                "age": lambda u: u,
                "sex": lambda u: u,
                "region": lambda u: u,
                "t": lambda age, sex, region, u: (
                    0.05 * (age - 36) + 0.6 * sex - 0.5 * (region == 2) + u > 0
                ).astype(int),
                "pay": lambda age, sex, region, t, u: (
                    20 + 0.3 * age + 3 * t + 2 * sex + 4 * (region == 1) + u
                ),
                "y": lambda age, t, pay, u: (
                    0.12 * (pay - 34) + 0.02 * (age - 36) + 0.5 * t + u > 0
                ).astype(int),
            },
            {
                "age": Gamma(9, 4),
                "sex": Bernoulli(0.5),
                "region": Categorical([0.3, 0.5, 0.2]),
                "pay": Normal(0, 16),
                "y": logistic(),
            },
            kinds={"sex": "binary", "region": "categorical", "y": "binary"},
            levels={"region": ("north", "middle", "south")},
            followed="pay",
            scale=(34.0, 6.0),
        ),
        _treated(
            "mediated",
            {
                "w": lambda u: u,
                "t": lambda w, u: (w + u > 0).astype(int),
                "m": lambda w, t, u: 1.5 * t + 0.5 * w + u,
                "y": lambda w, t, m, u: 2 * np.tanh(m) + 0.5 * t + w + u,
            },
            {"m": Normal(0, 0.5)},
            scale=(1.0, 2.0),
        ),
        _treated(
            "heteroscedastic",
            {
                "w": lambda u: u,
                "t": lambda w, u: (0.5 * w + u > 0).astype(int),
                "y": lambda w, t, u: t + w + np.exp(0.5 * w + 0.4 * t - 0.2) * u,
            },
            {},
        ),
        _treated(
            "rare",
            {
                "w": lambda u: u,
                "t": lambda w, u: (0.5 * w - 3.6 + u > 0).astype(int),
                "y": lambda w, t, u: 2 * t + w + u,
            },
            {},
        ),
        _treated(
            "confounded",
            {
                "a": lambda u: u,
                "b": lambda u: u,
                "c": lambda a, b, u: 0.6 * a - 0.4 * b + u,
                "t": lambda a, b, c, u: (0.8 * a - 0.6 * b + 0.5 * c + u > 0).astype(int),
                "y": lambda a, b, c, t, u: 1.5 * t + 1.5 * a + b - 0.8 * c + u,
            },
            {},
            scale=(0.0, 2.0),
        ),
        _paper(),
    )
}
