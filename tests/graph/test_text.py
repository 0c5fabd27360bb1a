"""Graphs as text: blocks in braces, quoted names, and what is wrong with a line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import vaca
from vaca import CausalGraph
from vaca.errors import GraphError


def test_a_block_is_one_node_whose_columns_stay_columns():
    graph = CausalGraph.from_text("{age, educ,\n  black} -> treat -> pay  # a comment\n")
    assert graph.nodes == ("{age, educ, black}", "treat", "pay")
    assert graph.all_columns == ("age", "educ", "black", "treat", "pay")
    assert graph.parents("treat") == ("{age, educ, black}",)


def test_the_same_columns_are_the_same_block_in_any_order_and_by_name():
    graph = CausalGraph.from_text("z: a, b\n{b, a} -> y\nz -> x")
    assert set(graph.edges) == {("z", "y"), ("z", "x")}


def test_a_tuple_in_an_edge_is_the_block_of_the_text():
    graph = CausalGraph.from_edges([(("a", "b"), "t"), ("t", "y"), (("a", "b"), "y")])
    assert graph == CausalGraph.from_text("{a, b} -> t\nt -> y\n{a, b} -> y")


@pytest.mark.parametrize("form", ["text", "json", "dot", "gml"])
def test_blocks_survive_every_format(form):
    many = tuple(f"column {i}" for i in range(30))
    graph = CausalGraph.from_edges([(many, "t"), (("u", "v"), "t"), ("t", "k = 1")])
    written = getattr(graph, f"to_{form}")()
    assert getattr(CausalGraph, f"from_{form}")(written) == graph


def test_a_colon_may_stand_in_a_name_of_an_arrow():
    assert CausalGraph.from_text("at 10:30 -> b: c").edges == (("at 10:30", "b: c"),)


names = st.text(st.characters(exclude_categories=("C", "Zl", "Zp")), min_size=1, max_size=8)


@given(st.lists(names.filter(lambda n: n.strip() == n), min_size=4, max_size=4, unique=True))
def test_text_gives_back_any_name(found):
    a, b, c, d = found
    try:
        graph = CausalGraph.from_edges([((a, b), c), (c, d)])
    except GraphError:  # the name of the block is one of the others
        return
    assert CausalGraph.from_text(graph.to_text()) == graph


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("a, b -> c", "around a block of columns"),
        ("a -> c\n{a, b} -> c", "column 'a' is in two nodes"),
        ("{a, b -> c\nd", "line 1: a { that is not closed"),
        ("a\n{a b, {c} -> d", "line 2: a { that does not fit"),
        ("{a, a} -> b", "column 'a' is listed twice in a block"),
        ("a -> ", "not of the form 'cause -> effect'"),
        ("a <- b", "write 'cause -> effect'"),
        ("group: ", "line 1: no columns are listed"),
        ("{} -> b", "line 1: no columns are listed"),
    ],
)
def test_what_is_wrong_with_a_line(text, match):
    with pytest.raises(GraphError, match=match):
        CausalGraph.from_text(text)


def test_do_inside_a_block_is_refused_in_plain_words_and_the_whole_block_can_be_set():
    graph = CausalGraph.from_text("{age, educ} -> pay")
    schema = vaca.Schema(dict.fromkeys(graph.all_columns, vaca.Column("continuous")))
    from vaca.model.intervention import Intervention

    with pytest.raises(vaca.VacaError, match="does not say what causes what inside a block"):
        Intervention.parse({"age": 40}, graph, schema)
    whole = Intervention.parse({"age": 40, "educ": 12}, graph, schema)
    assert whole.parts == {"{age, educ}": {"age": 40, "educ": 12}}
    with pytest.raises(vaca.VacaError, match="'age' twice"):
        Intervention.parse({"{age, educ}": {"age": 1, "educ": 2}, "age": 3}, graph, schema)


@pytest.mark.parametrize(
    "text",
    [
        "a => b", "a ~> b", "a - > b", "a --> b", "a ->> b", "a <-> b", "a <- b", "a -- b",
        "a \u2192 b", "b \u2190 a", "a \u21d2 b", "a \u27f6 b", "c\na -> b\nd => e", "x: a => b, c",
        '{a, "b} -> c',
        '"a -> b', 'a -> "b', '"a', '"', 'x: "a, b', '{a} -> "', '"a b -> c\nd -> e',
    ],
)  # fmt: skip
def test_what_was_meant_for_an_arrow_or_a_quote_is_no_name(text: str) -> None:
    with pytest.raises(GraphError, match=r"line [123]: "):
        CausalGraph.from_text(text)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('"a => b" -> c', ["a => b", "c"]),
        ('a -> "b -"', ["a", "b -"]),
        ('"> 50" -> "a <"', ["> 50", "a <"]),
        ('12" -> b', ['12"', "b"]),
        ('a 5" b -> c', ['a 5" b', "c"]),
        ("income > 50 -> b", ["income > 50", "b"]),
        ("a=b -> c", ["a=b", "c"]),
        ("a-b -> c", ["a-b", "c"]),
        ("-1 -> -2", ["-1", "-2"]),
        ("a->b", ["a", "b"]),
        ("a\r\nb\r", ["a", "b"]),
        ("\ufeffa -> b", ["a", "b"]),
        ("at 10:30 -> b", ["at 10:30", "b"]),
        ('"\\"" -> b', ['"', "b"]),
    ],
)
def test_signs_that_belong_to_a_name(text: str, names: list[str]) -> None:
    graph = CausalGraph.from_text(text)
    assert list(graph.nodes) == names
    assert CausalGraph.from_text(graph.to_text()) == graph


@pytest.mark.parametrize(
    "text", ["a: b\nb: a", "a: b\nb -> c", "a: b, c\nc -> d", "a: x\nb: a", "{a, b} -> c\na: b, d"]
)
def test_a_column_does_not_have_the_name_of_another_node(text: str) -> None:
    with pytest.raises(GraphError, match="another node|in two nodes"):
        CausalGraph.from_text(text)
