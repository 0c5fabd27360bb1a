"""Pictures: what is drawn is what was given; no window, no pyplot, nothing half-written."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

import vaca
from vaca.errors import GraphError, VacaError
from vaca.model.answers import CounterfactualFrame, Effect
from vaca.show.plot import (
    parts,
    plot_densities,
    plot_effects,
    plot_graph,
    plot_history,
    plot_pairs,
    plot_person,
    plot_population,
    save_picture,
)

GRAPH = vaca.CausalGraph.from_edges(
    [("sex", "income"), ("age", "income"), ("income", "loan"), ("sex", "loan"), ("age", "other")]
)


def table(n=300, shift=0.0, seed=0):
    rng = np.random.default_rng(seed)
    school = rng.choice(["low", "high", "middle"], n)
    return pd.DataFrame(
        {
            "age": rng.gamma(6, 6, n) + 18 + shift,
            "school": pd.Categorical(school, ["low", "middle", "high"], ordered=True),
            "children": rng.poisson(1.2, n),
            "approved": rng.choice(["no", "yes"], n),
        }
    )


def arrows(ax):
    return [p for p in ax.patches if isinstance(p, FancyArrowPatch)]


def test_graph_has_a_box_per_node_and_an_arrow_per_edge():
    ax = plot_graph(GRAPH)
    assert sum(isinstance(p, FancyBboxPatch) for p in ax.patches) == len(GRAPH)
    assert len(arrows(ax)) == len(GRAPH.edges)
    assert {t.get_text().replace("\n", "") for t in ax.texts} == set(GRAPH.nodes)


def test_graph_everything_is_inside_the_frame():
    chain = [(f"n{i}", f"n{j}") for i in range(6) for j in range(i + 1, 6)]
    ax = plot_graph(vaca.CausalGraph.from_edges(chain))
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    for arrow in arrows(ax):
        x, y = arrow._path_original.vertices.T
        assert left <= x.min()
        assert right >= x.max()
        assert bottom <= y.min()
        assert top >= y.max()


def test_graph_intervention_cuts_the_arrows_into_the_node():
    ax = GRAPH.plot(do={"income": 5.0})
    cut = [a for a in arrows(ax) if a.get_linestyle() == ":"]
    assert len(cut) == len(GRAPH.parents("income"))
    assert "do: 5" in [t.get_text() for t in ax.texts]
    assert sum(line.get_marker() == "x" for line in ax.lines) == len(cut)


def test_graph_unknown_node():
    with pytest.raises(GraphError, match="did you mean 'income'"):
        plot_graph(GRAPH, do=["incom"])


def test_graph_boxes_do_not_overlap():
    ax = plot_graph(GRAPH)
    boxes = [p for p in ax.patches if isinstance(p, FancyBboxPatch)]
    spans = [(b.get_x(), b.get_y(), b.get_width(), b.get_height()) for b in boxes]
    for i, (x, y, w, h) in enumerate(spans):
        for x2, y2, _, _ in spans[i + 1 :]:
            assert abs(x - x2) >= w or abs(y - y2) >= h


def test_graph_of_grouped_columns_names_them():
    graph = vaca.CausalGraph({"a": [], "b": ["a"]}, {"b": ["u", "v"]})
    assert any("(u, v)" in t.get_text() for t in plot_graph(graph).texts)


@pytest.mark.parametrize("name", ["covariates", None])
def test_graph_names_of_many_columns_stay_in_their_box(name):
    columns = [f"covariate_{i}" for i in range(58)]
    node = name or "{" + ", ".join(columns) + "}"
    graph = vaca.CausalGraph({node: [], "y": [node]}, {node: columns})
    ax = plot_graph(graph)
    ax.figure.canvas.draw()
    text = next(t for t in ax.texts if "58 columns" in t.get_text()).get_window_extent()
    boxes = [p.get_window_extent() for p in ax.patches if isinstance(p, FancyBboxPatch)]
    assert any(
        box.x0 <= text.x0 and text.x1 <= box.x1 and box.y0 <= text.y0 and text.y1 <= box.y1
        for box in boxes
    )


def test_the_axis_of_a_density_reaches_as_far_as_the_data():
    rng = np.random.default_rng(0)
    tables = [pd.DataFrame({"pay": np.exp(rng.normal(8, 1, 500))}) for _ in range(2)]
    figure = plot_population(*tables)
    low, high = figure.axes[0].get_xlim()
    assert high >= tables[0]["pay"].max()
    assert low >= 0  # and nothing is drawn where no pay can be


def test_person_ladder_has_a_rung_per_column_and_the_right_places():
    facts, answers = table(5), table(5, shift=7.0)
    figure = plot_person(facts, answers, row=2, population=table(50, seed=1))
    assert len(figure.axes) == 4
    age = figure.axes[0]
    marks = {
        line.get_marker(): line.get_xdata()[0] for line in age.lines if len(line.get_xdata()) == 1
    }
    assert marks["o"] == facts["age"][2]
    assert marks["D"] == answers["age"][2]
    assert [t.get_text() for t in figure.axes[1].get_xticklabels()] == ["low", "middle", "high"]


def test_person_ladder_interval_is_that_of_the_draws():
    facts, draws = table(1), table(400, shift=3.0)
    draws.index = pd.MultiIndex.from_product([[0], range(400)], names=["row", "draw"])
    figure = plot_person(facts, CounterfactualFrame(draws))
    (bar,) = [line for line in figure.axes[0].lines if line.get_linewidth() == 5]
    assert bar.get_xdata() == pytest.approx(np.quantile(draws["age"], (0.05, 0.95)))


def test_person_unknown_row_and_column():
    with pytest.raises(VacaError, match="no factual row 9"):
        plot_person(table(3), table(3), row=9)
    with pytest.raises(VacaError, match="did you mean 'age'"):
        plot_person(table(3), table(3), columns=["agee"])


def test_population_has_a_ridge_per_table():
    figure = plot_population({"a": table(), "b": table(seed=1), "c": table().assign(age=40.0)})
    names = [ax.get_title(loc="left") for ax in figure.axes if ax.get_visible()]
    assert names == ["age", "school", "children", "approved"]
    assert [t.get_text() for t in figure.axes[0].get_yticklabels()] == ["c", "b", "a"]


def test_population_needs_two_tables():
    with pytest.raises(VacaError, match="two tables"):
        plot_population(table())
    with pytest.raises(VacaError, match="'after' has no rows"):
        plot_population(table(), table().head(0))


def test_densities_bars_are_the_shares():
    figure = plot_densities(table(), {"do(x)": table(seed=3)}, columns=["approved"])
    bars = [p.get_height() for p in figure.axes[0].patches]
    shares = [
        (t["approved"] == level).mean() for t in (table(), table(seed=3)) for level in ("no", "yes")
    ]
    assert bars == pytest.approx(shares)


def test_densities_of_a_constant_is_a_line_at_it():
    figure = plot_densities(table(), table().assign(age=40.0), columns=["age"])
    assert [40.0, 40.0] in [list(line.get_xdata()) for line in figure.axes[0].lines]


def test_effects_are_where_they_belong():
    effects = {
        "first": Effect(1.0, 0.5, "y", {}, {}),
        "far": Effect(-2.0, 0.1, "y", {}, {}, outside_support=["!"]),
    }
    ax = plot_effects(effects)
    assert [t.get_text() for t in ax.get_yticklabels()] == ["far", "first"]
    places = {line.get_ydata()[0]: line for line in ax.lines if line.get_marker() == "s"}
    assert places[1].get_xdata()[0] == 1.0
    assert places[0].get_xdata()[0] == -2.0
    assert places[0].get_markerfacecolor() == "white"  # flagged as outside the data
    intervals = [tuple(line.get_xdata()) for line in ax.lines if len(line.get_xdata()) == 2]
    assert effects["first"].interval() in intervals


def test_effects_need_one():
    with pytest.raises(VacaError, match="no effects"):
        plot_effects([])


def test_history_marks_the_best_epoch():
    history = pd.DataFrame({"epoch": [1, 2, 3], "train_loss": [3, 2, 1.0], "val_loss": [3, 1, 2.0]})
    ax = plot_history(history)
    marks = [
        (line.get_xdata()[0], line.get_ydata()[0]) for line in ax.lines if line.get_marker() == "o"
    ]
    assert marks == [(2, 1.0)]
    with pytest.raises(VacaError, match="no history"):
        plot_history(pd.DataFrame())


def test_history_of_an_ensemble_draws_each_member():
    one = pd.DataFrame({"epoch": [1, 2], "loss": [2.0, 1.0]})
    both = pd.concat([one.assign(member=i) for i in range(3)])
    assert len(plot_history(both).lines) == 3


def test_pairs_are_a_matrix():
    figure = plot_pairs(table(), table(seed=1), columns=["age", "approved"])
    assert len(figure.axes) == 4
    below, above = figure.axes[2].collections[0], figure.axes[1].collections[0]
    assert len(below.get_offsets()) == len(above.get_offsets()) == 300


def test_colours_differ_in_grey_or_by_line():
    """Two series never share both their brightness and their line style."""
    grey = [np.dot(to_rgb(c), (0.299, 0.587, 0.114)) for c in parts.COLOURS]
    for i in range(len(grey)):
        for j in range(i):
            assert abs(grey[i] - grey[j]) > 0.08 or parts.LINES[i] != parts.LINES[j]
    assert len(set(map(str, parts.LINES))) == len(set(parts.HATCHES)) == len(parts.COLOURS)


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_save_picture(suffix, tmp_path):
    path = save_picture(plot_graph(GRAPH), tmp_path / f"a.{suffix}")
    assert path.stat().st_size > 1000
    assert os.listdir(tmp_path) == [path.name]


def test_save_picture_is_reproducible_in_svg_dates(tmp_path):
    text = save_picture(plot_graph(GRAPH), tmp_path / "a.svg").read_text()
    assert "<dc:date>" not in text


def test_save_picture_keeps_the_old_one_when_it_fails(tmp_path, monkeypatch):
    path = tmp_path / "a.png"
    path.write_text("precious")
    picture = plot_graph(GRAPH)

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", full)
    with pytest.raises(VacaError, match="No space"):
        save_picture(picture, path)
    assert path.read_text() == "precious"
    assert os.listdir(tmp_path) == ["a.png"]


def test_save_picture_bad_names(tmp_path):
    with pytest.raises(VacaError, match=r"\.png, \.svg, \.pdf"):
        save_picture(plot_graph(GRAPH), tmp_path / "a.gif")
    with pytest.raises(VacaError, match="no folder"):
        save_picture(plot_graph(GRAPH), tmp_path / "nowhere" / "a.png")


def test_plot_does_not_load_pyplot():
    code = (
        "import sys, vaca\n"
        "vaca.plot.plot_graph(vaca.CausalGraph.from_edges([('a', 'b')]))\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
