"""The charts of the results page draw what was scored, and their words count it."""

from vaca.reproduction.comparison import Comparison
from vaca.reproduction.result_charts import chart, glance, growth


def cell(scm, model, mean, published, metric="int_mmd"):
    return Comparison(scm, model, metric, mean, 0.1, 5, 0.5, "VACA", published, 0.1, "better")


CELLS = [
    cell("chain-lin", "flow", 1.0, 5.0),
    cell("chain-lin", "vaca-paper", 6.0, 5.0),
    cell("loan", "flow", 2.0, 9.0),
    cell("loan", "vaca-paper", 3.0, 4.0),
]


def test_a_line_for_each_true_model_and_a_count_for_each_engine():
    picture = chart(CELLS, "int_mmd")
    (ax,) = picture.figure.axes
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["loan", "chain-lin"]
    assert "of 2 true models: CausalFlow in 2, VACA (paper) in 1" in picture.title
    marks = [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "o"]
    assert marks == [2.0, 1.0]  # from the bottom
    assert ax.get_xscale() == "log"


def test_only_what_was_scored_is_drawn():
    assert [picture.name for picture in glance(CELLS)] == ["results-int-mmd"]
    assert glance([]) == []


def test_growth_tells_the_power_with_which_time_grows():
    points = [
        {"nodes": n, "seconds": 2e-3 * n**1.5, "queries": 1e6 / n, "limit": 1e-3 * n}
        for n in (10, 30, 100, 1000)
    ]
    picture = growth({"flow": points, "rows": [{"rows": 5000}]})
    assert picture is not None
    assert "CausalFlow, a step: 1.50" in picture.caption
    assert "1.50" in picture.alt
    assert picture.png().startswith(b"\x89PNG")
    assert growth({"rows": []}) is None
