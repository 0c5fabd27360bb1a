"""What the check of a fit says."""

import numpy as np
import pandas as pd

import vaca


def test_columns_of_a_block_may_go_together():
    rng = np.random.default_rng(0)
    age = rng.normal(40, 10, 400)
    years = age - 18 + rng.normal(size=400)
    t = (rng.random(400) < 1 / (1 + np.exp(-(age - 40) / 10))).astype(int)
    df = pd.DataFrame(
        {"age": age, "years": years, "t": t, "y": t + 0.1 * age + rng.normal(size=400)}
    )
    graph = vaca.CausalGraph.from_text("{age, years} -> t -> y\n{age, years} -> y")
    model = vaca.Composite(graph, families=[]).fit(df)
    found = vaca.check(model, df, quick=True, progress=False)
    assert str(found).endswith("verdict: good")
    # The same table with the claim that the two are independent.
    apart = vaca.CausalGraph.from_text("age -> t -> y\nyears -> t\nage -> y\nyears -> y")
    model = vaca.Composite(apart, families=[]).fit(df)
    found = vaca.check(model, df, quick=True, progress=False)
    assert "the noise of years goes with that of age" in str(found)
