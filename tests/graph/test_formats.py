"""Graphs from hostile, huge and odd text: a graph, or a GraphError that says where."""

from __future__ import annotations

import json

import networkx as nx
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from vaca import CausalGraph
from vaca.errors import GraphError, did_you_mean, shorten

READERS = {
    ".txt": CausalGraph.from_text,
    ".dot": CausalGraph.from_dot,
    ".gml": CausalGraph.from_gml,
    ".json": CausalGraph.from_json,
}
NODE = '{"nodes": {"a": ["a"], "b": ["b"]}, "edges": %s}'


def nested(opening: str, closing: str, depth: int = 100_000) -> str:
    return opening * depth + closing * depth


@pytest.mark.parametrize(
    ("ending", "text"),
    [
        (".json", nested("[", "]")),
        (".json", '{"a": ' + nested("[", "]") + "}"),
        (".json", nested('{"a":', "}")),
        (".json", "[" * 100_000),
        (".json", NODE % nested("[", "]")),
        (".json", NODE % "null"),
        (".json", NODE % "5"),
        (".json", NODE % '"ab"'),
        (".json", NODE % '{"a": "b"}'),
        (".json", NODE % '[{"a": 1, "b": 2}]'),
        (".json", NODE % "[[1, 2]]"),
        (".json", NODE % '[["a", null]]'),
        (".json", NODE % '[["a", ["b"]]]'),
        (".json", NODE % '[["a", {}]]'),
        (".json", NODE % '[["a", "b", "a"]]'),
        (".json", NODE % '[["a"]]'),
        (".json", NODE % "[null]"),
        (".json", NODE % '["ab"]'),
        (".json", NODE % "[[NaN, Infinity]]"),
        (".json", '{"nodes": 3, "edges": []}'),
        (".json", '{"nodes": null, "edges": []}'),
        (".json", '{"nodes": [["a"]], "edges": []}'),
        (".json", '{"nodes": {"a": null}, "edges": []}'),
        (".json", '{"nodes": {"a": 3}, "edges": []}'),
        (".json", '{"nodes": {"a": [3]}, "edges": []}'),
        (".json", '{"nodes": {"a": [["a"]]}, "edges": []}'),
        (".json", '{"nodes": {"a": []}, "edges": []}'),
        (".json", '{"nodes": {"a": {"b": 1}, "b": ["b"]}, "edges": []}'),
        (".json", '{"nodes": {"": ["a"]}, "edges": []}'),
        (".json", '{"nodes": ["a"], "edges": [], "columns": 7}'),
        (".json", '{"nodes": ["a"], "edges": [], "columns": {"a": 7}}'),
        (".json", '{"nodes": ["a"], "edges": [], "columns": {"b": ["a"]}}'),
        (".json", '{"a": [], "a": ["a"]}'),
        (".json", '{"a": [[]]}'),
        (".json", '{"a": [{}]}'),
        (".json", '{"a": [1]}'),
        (".json", '{"a": ["b"]}'),
        (".json", '{"a": ["a"]}'),
        (".json", '{"a": ["b", "b"], "b": []}'),
        (".json", '{"a": "b", "b": []}'),
        (".json", '{"\\ud800": []}'),
        (".json", "9" * 10_000),
        (".json", '{"a": [' + "9" * 10_000 + "]}"),
        (".json", '"\\' + '\\"' * 100_000),
        (".json", ""),
        (".json", "null"),
        (".json", "true"),
        (".json", "\x00"),
        (".gml", ""),
        (".gml", "graph [" + " node [" * 50_000),
        (".gml", "graph [ directed 1 " + "a [ " * 50_000 + "] " * 50_000 + "]"),
        (".gml", "graph [ directed 1 node [ id 0 ] node [ id 0 ] ]"),
        (".gml", "graph [ directed 1 edge [ source 0 target 1 ] ]"),
        (".gml", 'graph [ node [ id 0 label "a" ] ]'),
        (".gml", 'graph [ directed 1 multigraph 1 node [ id 0 label "a" ] ]'),
        (".gml", "graph [ directed 1 node 5 ]"),
        (".gml", "graph [ directed " + "9" * 10_000 + " ]"),
        (".gml", 'graph [ directed 1 node [ id 0 label "a" columns 5 ] ]'),
        (".gml", 'graph [ directed 1 node [ id 0 label "a" columns [ x 1 ] ] ]'),
        (".gml", 'graph [ directed 1 node [ id 0 label "\\" ' + "[ " * 50_000),
        (".gml", "digraph { a -> b }"),
        (".dot", ""),
        (".dot", "digraph"),
        (".dot", "digraph {"),
        (".dot", "digraph }"),
        (".dot", "digraph { }"),
        (".dot", "digraph { a -> }"),
        (".dot", "digraph { -> a }"),
        (".dot", "digraph { a -> ; }"),
        (".dot", "digraph { a -> [x=y] }"),
        (".dot", "digraph { a -> -> b }"),
        (".dot", "digraph { a [ }"),
        (".dot", "digraph { a [x] }"),
        (".dot", "digraph { a [x=] }"),
        (".dot", "digraph { a [x y z] }"),
        (".dot", "digraph { ] }"),
        (".dot", "digraph { a, b }"),
        (".dot", "digraph { a -- b }"),
        (".dot", "digraph { subgraph { a } }"),
        (".dot", "digraph " + "{" * 100_000 + "}" * 100_000),
        (".dot", 'digraph { "a }'),
        (".dot", "digraph { /* a }"),
        (".dot", 'digraph { a [columns=""] }'),
        (".dot", 'digraph { a [columns="[1, 2]"] }'),
        (".dot", "digraph { a\x00b }"),
        (".dot", "digraph { a:port -> b }"),
        (".dot", "digraph { a -> b -> a }"),
        (".txt", ""),
        (".txt", "->"),
        (".txt", "a ->"),
        (".txt", "-> b"),
        (".txt", "a -> -> b"),
        (".txt", "a: "),
        (".txt", ": b"),
        (".txt", "a: b, b"),
        (".txt", "a: x\na: y"),
        (".txt", "a: x\nb: x"),
        (".txt", "a -- b"),
        (".txt", "a <- b"),
        (".txt", '""'),
        (".txt", "a -> a"),
        (".txt", "a -> b\na -> b"),
    ],
)
def test_wrong_text_is_a_graph_error(ending: str, text: str) -> None:
    with pytest.raises(GraphError) as caught:
        READERS[ending](text)
    assert len(str(caught.value)) < 2_000


@pytest.mark.parametrize(
    ("ending", "text", "place"),
    [
        (".txt", "a -> b\n\nb ->", "line 3"),
        (".txt", "a: x\nb: y\na: z", "line 3"),
        (".dot", "digraph {\n a -> b;\n b -> ;\n}", "line 3"),
        (".dot", "digraph {\n a -> b\n b -> c %\n}", "line 3"),
        (".dot", "digraph {\n a [\n}", "line 2"),
        (".json", '{"a": [],\n"b": ["a",]}', "line 2"),
        (".json", "[\n" * 100, "line 41"),
    ],
)
def test_errors_say_where(ending: str, text: str, place: str) -> None:
    with pytest.raises(GraphError, match=place):
        READERS[ending](text)


NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


@given(st.lists(NAMES, min_size=1, max_size=5, unique=True), st.data())
def test_every_format_keeps_every_name(names: list[str], data: st.DataObject) -> None:
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    edges = data.draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    columns = {names[0]: [names[0], names[0] + ",x", names[0] + " "]}
    assume(not set(names) & {names[0] + ",x", names[0] + " "})
    graph = CausalGraph.from_edges(edges, names, columns)
    assert CausalGraph.from_json(graph.to_json()) == graph
    assert CausalGraph.from_dot(graph.to_dot()) == graph
    try:
        text = graph.to_text()
    except GraphError:
        assert any("\n" in name or "\r" in name for name in names)
    else:
        assert CausalGraph.from_text(text) == graph


@settings(max_examples=60)
@given(st.text(), st.sampled_from(sorted(READERS)))
def test_any_text_is_a_graph_or_a_graph_error(text: str, ending: str) -> None:
    try:
        READERS[ending](text)
    except GraphError:
        pass


@pytest.mark.parametrize("ending", READERS)
def test_a_large_file_is_read_in_one_go(tmp_path, ending: str) -> None:
    # Quadratic readers, orders or checks would take hours on this.
    names = [f"n{i}" for i in range(5_000)]
    path = tmp_path / f"long{ending}"
    CausalGraph.from_edges(zip(names, names[1:], strict=False)).write(path)
    graph = CausalGraph.read(path)
    assert graph.longest_path == len(names) - 1
    assert len(graph.descendants("n5")) == len(names) - 6
    assert graph.ancestors("n3") == ("n0", "n1", "n2")


def test_a_large_cycle_has_a_short_message() -> None:
    names = [f"n{i}" for i in range(5_000)]
    with pytest.raises(GraphError, match=r"n0 .*4981 more nodes.* -> n0") as caught:
        CausalGraph.from_edges([*zip(names, names[1:], strict=False), (names[-1], names[0])])
    assert len(str(caught.value)) < 1_000


def test_facts_of_a_complete_graph() -> None:
    size = 200
    names = [f"n{i}" for i in range(size)]
    graph = CausalGraph({n: names[:i] for i, n in enumerate(names)})
    assert all(graph.descendants(n) == tuple(names[i + 1 :]) for i, n in enumerate(names))
    assert all(graph.ancestors(n) == tuple(names[:i]) for i, n in enumerate(names))
    assert (graph.longest_path, graph.longest_shortest_path) == (size - 1, 1)
    assert graph.layers() == [[n] for n in names]


def test_distance_does_not_count_paths() -> None:
    layers = [[f"n{i}_{j}" for j in range(4)] for i in range(30)]  # 4 ** 29 paths
    edges = [(a, b) for one, two in zip(layers, layers[1:], strict=False) for a in one for b in two]
    graph = CausalGraph.from_edges(edges)
    assert graph.longest_shortest_path == graph.longest_path == 29


@pytest.mark.parametrize(
    "make",
    [
        lambda: CausalGraph(None),  # type: ignore[arg-type]
        lambda: CausalGraph([("a", "b")]),  # type: ignore[arg-type]
        lambda: CausalGraph({1: []}),  # type: ignore[dict-item]
        lambda: CausalGraph({"a": None}),  # type: ignore[dict-item]
        lambda: CausalGraph({"a": [1]}),  # type: ignore[list-item]
        lambda: CausalGraph({"a": [["a"]]}),  # type: ignore[list-item]
        lambda: CausalGraph({"a": []}, {"a": [1]}),  # type: ignore[list-item]
        lambda: CausalGraph({"a": []}, ["a"]),  # type: ignore[arg-type]
        lambda: CausalGraph({"a": []}, {"a": None}),  # type: ignore[dict-item]
        lambda: CausalGraph.from_edges(None),  # type: ignore[arg-type]
        lambda: CausalGraph.from_edges(5),  # type: ignore[arg-type]
        lambda: CausalGraph.from_edges([5]),  # type: ignore[list-item]
        lambda: CausalGraph.from_edges([("a", 5)]),  # type: ignore[list-item]
        lambda: CausalGraph.from_edges([("a", "b")], nodes="ab"),
        lambda: CausalGraph.from_edges([("a", "b")], nodes=[None]),  # type: ignore[list-item]
        lambda: CausalGraph.from_adjacency([[0], [0, 0]]),
        lambda: CausalGraph.from_adjacency("ab"),
        lambda: CausalGraph.from_adjacency([["x", "y"], ["z", "w"]]),
        lambda: CausalGraph.from_adjacency([[0.5]]),
        lambda: CausalGraph.from_adjacency([[None]]),
        lambda: CausalGraph.from_adjacency([[0, 0], [0, 0]], ["a", "a"]),
        lambda: CausalGraph.from_adjacency([[0]], [["a"]]),  # type: ignore[list-item]
        lambda: CausalGraph.from_networkx(nx.DiGraph([(1, "1")])),
        lambda: CausalGraph({"a": []}).parents(["a"]),  # type: ignore[arg-type]
        lambda: CausalGraph({"a": []}).node_of({}),  # type: ignore[arg-type]
        lambda: CausalGraph({"a": []}).descendants(None),  # type: ignore[arg-type]
    ],
)
def test_wrong_types_are_graph_errors(make) -> None:
    with pytest.raises(GraphError):
        make()


def test_reading_says_why_a_file_cannot_be_read(tmp_path) -> None:
    with pytest.raises(GraphError, match=r"none\.txt: No such file"):
        CausalGraph.read(tmp_path / "none.txt")
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(GraphError, match="directory"):
        CausalGraph.read(tmp_path / "folder.json")
    (tmp_path / "latin.txt").write_bytes("größe -> a".encode("latin-1"))
    with pytest.raises(GraphError, match=r"latin\.txt: not UTF-8"):
        CausalGraph.read(tmp_path / "latin.txt")
    (tmp_path / "mark.json").write_text('{"a": []}', encoding="utf-8-sig")
    assert CausalGraph.read(tmp_path / "mark.json").nodes == ("a",)


def test_quotes_keep_the_signs_of_the_language() -> None:
    text = '"a # 1" -> "b: c" -> 5" pipe  # comment\n"x -> y": "u, v", w'
    graph = CausalGraph.from_text(text)
    assert graph.edges == (("a # 1", "b: c"), ("b: c", '5" pipe'))
    assert graph.columns("x -> y") == ("u, v", "w")


def test_a_node_may_be_called_edges() -> None:
    graph = CausalGraph.from_json(json.dumps({"edges": [], "b": ["edges"]}))
    assert graph.edges == (("edges", "b"),)


def test_messages_stay_short_whatever_the_value() -> None:
    class Odd:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    assert shorten(Odd()) == "<Odd>"
    assert len(shorten("x" * 10**6)) <= 80
    assert len(did_you_mean("y" * 10**6, ["x" * 10**6] * 100)) < 2_000
    assert "Valid: 'a'" in did_you_mean(10**5000, ["a"])


LONG = {
    "a chain on a line": (".txt", " -> ".join(f"a{k}" for k in range(20_000))),
    "a chain on lines": (".txt", "\n".join(f"a{k} -> a{k + 1}" for k in range(20_000))),
    "quotes": (".txt", '"' * 100_000),
    "quoted names": (".txt", '"a" ' * 50_000),
    "braces": (".txt", "{" * 100_000),
    "colons": (".txt", ":" * 100_000),
    "arrows": (".txt", "->" * 100_000),
    "commas": (".txt", "," * 100_000),
    "hashes": (".txt", "#" * 100_000),
    "backslashes": (".txt", '"a' + "\\" * 100_000),
    "a long name": (".txt", "x" * 200_000 + " -> y"),
    "spaces": (".txt", "a" + " " * 200_000 + "b -> c"),
    "dashes": (".txt", "- " * 100_000),
    "DOT quotes": (".dot", "digraph {" + '"' * 100_001),
    "DOT comments": (".dot", "digraph {" + "/*" * 100_000),
    "DOT brackets": (".dot", "digraph { a " + "[" * 100_000),
    "DOT attributes": (".dot", "digraph { a [" + "x=y," * 30_000 + "] }"),
    "DOT semicolons": (".dot", "digraph {" + ";" * 100_000 + "}"),
    "DOT markup": (".dot", "digraph {" + "<" * 100_000),
    "GML attributes": (".gml", "graph [ directed 1 " + "x 1 " * 20_000 + "]"),
    "GML entities": (
        ".gml", 'graph [ directed 1 node [ id 0 label "' + "&lt;" * 50_000 + '" ] ]',
    ),
    "GML digits": (".gml", "9" * 100_000),
    "JSON quotes": (".json", '"' * 100_001),
    "JSON digits": (".json", "9" * 100_000),
    "a large cycle": (
        ".json", json.dumps({"edges": [[f"n{k}", f"n{(k + 1) % 20_000}"] for k in range(20_000)]}),
    ),
    "a node of all": (
        ".json", json.dumps({"edges": [["n", f"n{k}"] for k in range(20_000)]}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LONG)
def test_time_is_linear_in_the_text(case: str) -> None:
    # Hours, where a reader looks at the rest of the text for every sign of it.
    ending, text = LONG[case]
    try:
        said = READERS[ending](text).nodes[0]
    except GraphError as error:
        said = str(error)
    assert said


ODD_NAMES = [
    "[bold]x[/bold]", "$\\alpha_{$", "a\x1b]8;;http://e\x07b", "\x9b31mx", "a\rb", "a\r\nb",
    "\u2066x", "\u200bzero", "{{7*7}}", "%(x)s", "<img src=x onerror=alert(1)>", "&lt;b&gt;",
    "&#38;", "@SUM(1)", "-1+1", "a\tb", ",", '"', "''", "`id`", "$(id)", "--help", "a=b", "x" * 300,
    "\x7f", "\ufeffbom", "node", "edge", "Graph", "subgraph", "strict", "\x85", "NUL", "edges",
    "nodes", "graph", "digraph", "#", "->", "a -> b", "\\", "\\n", "{a, b}",
]  # fmt: skip


@pytest.mark.parametrize("name", ODD_NAMES, ids=repr)
def test_every_file_keeps_odd_names(tmp_path, name: str) -> None:
    graph = CausalGraph.from_edges([("cause", name), (name, "effect")])
    for ending in READERS:
        graph.write(tmp_path / f"graph{ending}")
        assert CausalGraph.read(tmp_path / f"graph{ending}") == graph, ending
