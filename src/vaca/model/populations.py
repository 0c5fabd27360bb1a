"""How far the means of a population differ under an intervention, with the error of the fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from vaca.model.answers import half_width
from vaca.model.causal_model import CausalModel
from vaca.model.effects import combined, fit_variance
from vaca.model.primitives import Primitives
from vaca.table.contrast import contrast
from vaca.table.schema import Schema

__all__ = ["differences_interval"]


def differences_interval(
    model: CausalModel,
    do: Mapping[str, Any],
    schema: Schema,
    table: pd.DataFrame,
    n: int,
    seed: int,
    level: float = 0.95,
) -> pd.DataFrame | None:
    """`low` and `high` for the differences in a table of `vaca.table.contrast.contrast`.

    None if the model has neither refits nor members, which alone show the error of the fit.
    """
    main, others = model._fits()
    if not others:
        return None
    found = []
    for fit in others:
        before, after = (_rows(fit, n, arm, seed) for arm in ({}, do))
        found.append(contrast(before, after, schema, paired=True)["difference"])
    half = []
    for name, row in table.iterrows():
        members = np.array([one[name] for one in found])
        fit_part = fit_variance(row["difference"], members, main is not None)
        error, degrees = combined(row["standard_error"] ** 2, n - 1, *fit_part)
        half.append(half_width(error, degrees, level))
    return pd.DataFrame(
        {"low": table["difference"] - half, "high": table["difference"] + half}, index=table.index
    )


def _rows(model: Primitives, n: int, do: Mapping[str, Any], seed: int) -> pd.DataFrame:
    """Rows of a fit, without warnings about what leaves the data."""
    x, _ = model._sampled(n, do, seed)
    return model.schema_.decode(x, index=pd.RangeIndex(n))
