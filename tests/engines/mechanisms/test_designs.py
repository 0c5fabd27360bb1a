import numpy as np
import pandas as pd

import vaca
from vaca.engines.mechanisms.designs import WIDE_TERMS, telling_products, too_many_pairs


def _wide(n: int, inputs: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, inputs))


def test_products_are_found_among_many_inputs_and_none_in_noise():
    x = _wide(600, 40, 0)
    assert too_many_pairs(40, 600)
    noise = np.random.default_rng(1).normal(size=600)
    y = x[:, 0] + 1.5 * x[:, 7] * x[:, 3] + noise
    groups, w = list(range(40)), np.ones(600)
    found = telling_products(x, groups, y, w, curves=False, depth=0)
    assert found.pairs.tolist() == [[7, 3]]
    assert len(telling_products(x, groups, noise, w, curves=False, depth=0).pairs) == 0


def test_levels_of_one_column_are_not_multiplied_and_terms_are_bounded():
    x = np.eye(40)[np.random.default_rng(0).integers(0, 40, 800)]
    design = telling_products(x, [0] * 40, x[:, 0] * x[:, 1], np.ones(800), curves=False, depth=0)
    assert len(design.pairs) == 0
    x = _wide(900, 45, 2)
    y = (x[:, :20] * x[:, 20:40]).sum(1)
    wide = telling_products(x, list(range(45)), y, np.ones(900), curves=True, depth=1)
    assert len(wide.pairs) > 0
    assert len(wide.penalty()) <= WIDE_TERMS


def test_an_effect_that_differs_among_many_covariates_is_found():
    rng = np.random.default_rng(3)
    x = _wide(1500, 40, 3)
    t = (rng.random(1500) < 1 / (1 + np.exp(-x[:, 0]))).astype(int)
    names = [f"c{i}" for i in range(40)]
    df = pd.DataFrame(x, columns=names).assign(
        t=t, y=t * (1 + 2 * x[:, 0]) + x[:, 1] + rng.normal(size=1500)
    )
    edges = [(tuple(names), "t"), (tuple(names), "y"), ("t", "y")]
    model = vaca.Composite(vaca.CausalGraph.from_edges(edges), families=["products"]).fit(df)
    treated = model.effect("y", {"t": 1}, {"t": 0}, among={"t": 1}).value
    assert abs(treated - (1 + 2 * x[t == 1, 0].mean())) < 0.25
    assert model.columns_["mechanism"]["y"] == "linear with products"
