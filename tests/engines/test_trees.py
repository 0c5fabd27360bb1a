"""Trees: grown on one thread, whatever the machine has."""

import numpy as np
from threadpoolctl import threadpool_info

from vaca.engines.trees import grown, one_thread


class Watching:
    """Says on how many threads it was fitted."""

    def fit(self, x, y, weights):
        self.threads = [p["num_threads"] for p in threadpool_info()]
        self.weights = weights
        return self


def test_trees_grow_on_one_thread():
    from sklearn.ensemble import HistGradientBoostingRegressor

    x = np.arange(60.0)[:, None]
    HistGradientBoostingRegressor(max_iter=1).fit(x, x[:, 0])  # its threads are there now
    before = [p["num_threads"] for p in threadpool_info()]
    model = grown(Watching(), x, x[:, 0], np.ones(60))
    assert model.threads and set(model.threads) == {1}
    assert model.weights is None  # equal ones are none
    with one_thread():
        pass
    assert [p["num_threads"] for p in threadpool_info()] == before
