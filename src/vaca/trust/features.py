"""Columns as features of regressions: curves of numbers, indicators of levels, products."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vaca.table.columns import row_count
from vaca.table.schema import Columns, Schema
from vaca.table.standard import Standard

__all__ = ["SPANS", "Features"]

#: Kinds of features, simplest first: the columns as they are; with curves of the numbers and
#: products of two covariates; the columns, and treatment times covariates; all of it.
SPANS = ("plain", "curved", "crossed", "full")
#: Knots of a curve, as shares of the rows below them.
KNOTS = (0.05, 0.275, 0.5, 0.725, 0.95)
#: Up to this many features, all products of two covariates are taken.
PAIRS = 12
#: A level with fewer rows than this has no indicator of its own.
LEVEL_ROWS = 5


class Features:
    """Turns rows into matrices of features, see `SPANS`.

    Numbers are standardised by the rows that made this; beyond the outer knots a curve goes on as
    a straight line, so that a value outside the data is not thrown far off.

    Parameters
    ----------
    rows : Columns
        Encoded rows.
    schema : Schema
    treated, covariates : sequence of str
        The columns that are set, and those adjusted for.
    """

    def __init__(
        self, rows: Columns, schema: Schema, treated: Sequence[str], covariates: Sequence[str]
    ) -> None:
        self.schema, self.treated, self.covariates = schema, tuple(treated), tuple(covariates)
        self.levels: dict[str, np.ndarray] = {}
        self.scale: dict[str, Standard] = {}
        self.knots: dict[str, np.ndarray] = {}
        for name in (*self.treated, *self.covariates):
            values = rows[name]
            if schema[name].discrete:
                codes, counts = np.unique(values, return_counts=True)
                least = 1 if name in self.treated else LEVEL_ROWS
                kept = codes[counts >= least]
                self.levels[name] = kept[kept != codes[np.argmax(counts)]]
                continue
            self.scale[name] = Standard.of(values)
            self.knots[name] = np.unique(np.quantile(self.scale[name].to(values), KNOTS))

    def span(self, rows: Columns, kind: str) -> np.ndarray:
        """Features (n, p) of one of `SPANS`."""
        t, x = (self._linear(rows, names) for names in (self.treated, self.covariates))
        parts = [t, x]
        if kind in ("curved", "full"):
            bent_t, bent_x = (self._bent(rows, names) for names in (self.treated, self.covariates))
            if len(self.treated) > 1:
                bent_t = np.column_stack([bent_t, _pairs(t)])
            parts += [bent_t, bent_x]
            if x.shape[1] <= PAIRS:
                parts.append(_pairs(x))
        if kind in ("crossed", "full"):
            parts.append(_products(t, x))
        if kind == "full":
            parts.append(_products(bent_t, x))
            if t.shape[1] <= 2:
                parts.append(_products(t, bent_x))
        return np.column_stack(parts)

    def raw(self, rows: Columns) -> np.ndarray:
        """The columns as they are (n, columns), for trees."""
        names = (*self.treated, *self.covariates)
        return np.column_stack([np.asarray(rows[name], float) for name in names])

    def _linear(self, rows: Columns, names: Sequence[str]) -> np.ndarray:
        parts = [np.zeros((row_count(rows), 0))]
        for name in names:
            if name in self.levels:
                parts.append((rows[name][:, None] == self.levels[name]).astype(float))
            else:
                parts.append(self.scale[name].to(rows[name])[:, None])
        return np.column_stack(parts)

    def _bent(self, rows: Columns, names: Sequence[str]) -> np.ndarray:
        parts = [np.zeros((row_count(rows), 0))]
        for name in names:
            if name in self.knots:
                z = self.scale[name].to(rows[name])
                parts.append(_natural_spline(z, self.knots[name]))
        return np.column_stack(parts)


def _natural_spline(z: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """The curved terms (n, knots - 2) of a cubic spline that is straight beyond its outer knots."""
    if len(knots) < 3:
        return np.zeros((len(z), 0))
    cube = np.maximum(z[:, None] - knots, 0.0) ** 3
    last, width = cube[:, -1:], knots[-1] - knots[:-1]
    bend = (cube[:, :-1] - last) / width
    return (bend[:, :-1] - bend[:, -1:]) / (knots[-1] - knots[0])


def _pairs(a: np.ndarray) -> np.ndarray:
    one, other = np.triu_indices(a.shape[1], 1)
    return a[:, one] * a[:, other]


def _products(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a[:, :, None] * b[:, None, :]).reshape(len(a), -1)
