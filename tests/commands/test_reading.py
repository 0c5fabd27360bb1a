"""What `--do` may be on the command line."""

from types import SimpleNamespace
from typing import Any

import pytest

import vaca
from vaca.commands.reading import parse_do

GRAPH = vaca.CausalGraph({"k = 1": [], "a": [], "y": ["k = 1", "a"]})


MODEL: Any = SimpleNamespace(graph=GRAPH)  # nothing else is asked of it


@pytest.mark.parametrize(
    "text", ["k = 1=2", "k = 1 = 2", '"k = 1"=2', "'k = 1' = 2", "`k = 1`=2", " k = 1=2 "]
)
def test_a_column_whose_name_holds_a_mark(text):
    assert parse_do([text], MODEL) == {"k = 1": "2"}


def test_a_shift_of_a_quoted_column():
    assert parse_do(['"a" += 1'], MODEL)["a"].delta == 1.0
    with pytest.raises(vaca.VacaError, match="there is no column '\"b\"'"):
        parse_do(['"b"=1'], MODEL)
