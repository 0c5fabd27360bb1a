"""Standardising: there and back, and columns that do not vary."""

from __future__ import annotations

import numpy as np

from vaca.table.standard import Standard, sd_of


def test_there_and_back_for_a_column_and_a_matrix() -> None:
    rows = np.random.default_rng(0).normal(5.0, 3.0, (200, 2))
    for values in (rows, rows[:, 0]):
        standard = Standard.of(values)
        z = standard.to(values)
        np.testing.assert_allclose([z.mean(), z.std()], [0, 1], atol=1e-12)
        np.testing.assert_allclose(standard.back(z), values)


def test_a_constant_column_has_unit_one() -> None:
    rows = np.array([[7.0, 1.0], [7.0, 5.0]])
    assert sd_of(rows).tolist() == [1.0, 2.0]
    assert Standard.of(rows).to(rows)[:, 0].tolist() == [0.0, 0.0]
