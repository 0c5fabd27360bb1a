from __future__ import annotations

import copy

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given

from tests.strategies import dags
from vaca import CausalGraph
from vaca.errors import GraphError

TRIANGLE = CausalGraph.from_edges([("x1", "x2"), ("x1", "x3"), ("x2", "x3")])


def test_facts_of_a_small_graph() -> None:
    g = CausalGraph.from_edges([("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")], nodes=["e"])
    assert g.nodes == ("e", "a", "b", "c", "d")
    assert g.roots == ("e", "a")
    assert g.leaves == ("e", "d")
    assert g.parents("c") == ("b", "a")
    assert g.children("a") == ("b", "c")
    assert set(g.ancestors("d")) == {"a", "b", "c"}
    assert set(g.descendants("b")) == {"c", "d"}
    assert g.longest_path == 3
    assert g.longest_shortest_path == 2
    assert g.layers() == [["e", "a"], ["b"], ["c"], ["d"]]
    assert "a" in g
    assert "z" not in g
    assert len(g) == 5


def test_adjacency_follows_the_paper() -> None:
    assert TRIANGLE.adjacency().tolist() == [[0, 0, 0], [1, 0, 0], [1, 1, 0]]
    assert np.array_equal(TRIANGLE.adjacency(self_loops=True), TRIANGLE.adjacency() + np.eye(3))


def test_do_cuts_incoming_edges_and_leaves_the_graph_alone() -> None:
    cut = TRIANGLE.do(["x2"])
    assert set(cut.edges) == {("x1", "x3"), ("x2", "x3")}
    assert len(TRIANGLE.edges) == 3
    with pytest.raises(GraphError, match="unknown node 'x9'"):
        TRIANGLE.do("x9")


@given(dags())
def test_facts_agree_with_networkx(graph: CausalGraph) -> None:
    g = graph.to_networkx()
    position = {node: i for i, node in enumerate(graph.order)}
    assert all(position[a] < position[b] for a, b in graph.edges)
    for node in graph.nodes:
        assert set(graph.ancestors(node)) == nx.ancestors(g, node)
        assert set(graph.descendants(node)) == nx.descendants(g, node)
    assert graph.longest_path == nx.dag_longest_path_length(g)
    distances = dict(nx.all_pairs_shortest_path_length(g))
    assert graph.longest_shortest_path == max(max(d.values()) for d in distances.values())


@given(dags())
def test_every_format_goes_and_comes_back(graph: CausalGraph) -> None:
    assert CausalGraph.from_networkx(graph.to_networkx()) == graph
    assert CausalGraph.from_dot(graph.to_dot()) == graph
    assert CausalGraph.from_gml(graph.to_gml()) == graph
    assert CausalGraph.from_json(graph.to_json()) == graph
    assert CausalGraph.from_text(graph.to_text()) == graph
    assert CausalGraph.from_adjacency(graph.adjacency(), graph.nodes) == graph
    frame = pd.DataFrame(graph.adjacency(True), index=graph.nodes, columns=graph.nodes)
    assert CausalGraph.from_adjacency(frame) == graph
    assert CausalGraph.from_parents({n: graph.parents(n) for n in graph.nodes}) == graph


@pytest.mark.parametrize("ending", [".txt", ".dot", ".gv", ".gml", ".json"])
def test_files(tmp_path, ending: str) -> None:
    graph = CausalGraph(
        {"S": [], "age": [], "R": ["S", "age"]},
        {"S": ["sex"], "R": ["credit amount", "repayment"]},
    )
    graph.write(tmp_path / f"g{ending}")
    assert CausalGraph.read(tmp_path / f"g{ending}") == graph


def test_dot_as_people_write_it() -> None:
    text = """
    strict digraph "my graph" {  // a comment
      rankdir=LR; node [shape=box]
      "credit amount" -> risk [label="why"]
      age -> "credit amount" -> default /* chain */
      lonely
    }
    """
    g = CausalGraph.from_dot(text)
    assert set(g.nodes) == {"credit amount", "risk", "age", "default", "lonely"}
    assert set(g.edges) == {
        ("credit amount", "risk"),
        ("age", "credit amount"),
        ("credit amount", "default"),
    }


def test_text_as_people_write_it() -> None:
    g = CausalGraph.from_text("# causes\nsex -> income\nage->income -> loan\n\ncredit: amount, n\n")
    assert g.columns("credit") == ("amount", "n")
    assert set(g.edges) == {("sex", "income"), ("age", "income"), ("income", "loan")}


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: CausalGraph({}), "at least one node"),
        (lambda: CausalGraph.from_edges([("a", "b"), ("b", "c"), ("c", "a")]), r"a -> b -> c -> a"),
        (lambda: CausalGraph.from_edges([("a", "a")]), r"a -> a"),
        (lambda: CausalGraph.from_edges([("a", "b"), ("a", "b")]), "'a' -> 'b' is given twice"),
        (lambda: CausalGraph({"a": ["q"]}), "unknown parent 'q'"),
        (lambda: CausalGraph({"a": "b", "b": []}), "list of names"),
        (lambda: CausalGraph({"": []}), "non-empty strings"),
        (
            lambda: CausalGraph({"a": [], "b": []}, {"a": ["u"], "b": ["u"]}),
            "column 'u' is in two nodes, 'a' and 'b'",
        ),
        (lambda: CausalGraph({"a": []}, {"a": ["u", "u"]}), "listed twice"),
        (lambda: CausalGraph({"a": []}, {"b": ["u"]}), "unknown node 'b'"),
        (lambda: CausalGraph({"a": []}, {"a": []}), "no columns"),
        (lambda: CausalGraph.from_edges(["ab"]), "pair"),
        (lambda: CausalGraph.from_adjacency([[0, 1]]), "square"),
        (lambda: CausalGraph.from_adjacency([[0, 2], [0, 0]]), "only 0 and 1"),
        (lambda: CausalGraph.from_adjacency([[0, 1], [1, 0]]), "cycle"),
        (lambda: CausalGraph.from_adjacency([[0]], ["a", "b"]), "2 node names"),
        (lambda: CausalGraph.from_dot("graph { a -- b }"), "digraph"),
        (lambda: CausalGraph.from_gml("nothing"), "not GML"),
        (lambda: CausalGraph.from_json("{"), "not JSON"),
        (lambda: CausalGraph.from_json("[1]"), "JSON of a graph"),
        (lambda: CausalGraph.from_text("a <- b"), "line 1"),
        (lambda: CausalGraph.from_text("# nothing"), "no node"),
        (lambda: CausalGraph.from_networkx(nx.Graph()), "DiGraph"),
        (lambda: TRIANGLE.parents("x7"), "unknown node 'x7'; Valid: 'x1'"),
        (lambda: TRIANGLE.node_of("q"), "no node has the column 'q'"),
        (lambda: TRIANGLE.is_d_separated("x1", "x1"), "share"),
    ],
)
def test_errors_name_what_is_wrong(make, match: str) -> None:
    with pytest.raises(GraphError, match=match):
        make()


def test_unknown_file_kind(tmp_path) -> None:
    with pytest.raises(GraphError, match="unknown kind of graph file"):
        CausalGraph.read(tmp_path / "g.xyz")
    with pytest.raises(GraphError, match="unknown kind of graph file"):
        TRIANGLE.write(tmp_path / "g.xyz")


def test_it_is_a_value() -> None:
    assert copy.deepcopy(TRIANGLE) == TRIANGLE
    assert hash(copy.deepcopy(TRIANGLE)) == hash(TRIANGLE)
    assert TRIANGLE.do("x3") != TRIANGLE
    with pytest.raises(AttributeError, match="does not change"):
        TRIANGLE.nodes_ = ()


def test_d_separation() -> None:
    collider = CausalGraph.from_edges([("a", "c"), ("b", "c")])
    assert collider.is_d_separated("a", "b")
    assert not collider.is_d_separated("a", "b", given=["c"])
