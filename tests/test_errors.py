"""Every error that vaca raises on purpose is a `VacaError`."""

import ast
import builtins

import pytest

from tests.test_layering import MODULES

#: What Python or another library expects to see in these places.
ASKED_FOR = {
    ("vaca.interop", "AttributeError"),  # of a module: a name that it lacks
    ("vaca.__init__", "AttributeError"),
    ("vaca.graph.dag", "AttributeError"),  # of a frozen object
    ("vaca.engines.engine", "AttributeError"),  # hasattr asks
    ("vaca.engines.persistence", "TypeError"),  # a hook of json.dumps
    ("vaca.show.explore.server", "ValueError"),  # a hook of json.loads
}


def raised(module: str) -> set[str]:
    """Python's own exceptions that a file raises."""
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    names = {
        node.exc.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise)
        and isinstance(node.exc, ast.Call)
        and isinstance(node.exc.func, ast.Name)
    }
    return {n for n in names if isinstance(getattr(builtins, n, None), type)}


@pytest.mark.parametrize("name", sorted({name for name, _ in ASKED_FOR}))
def test_exceptions_of_python_are_needed_where_they_are(name):
    assert {(name, error) for error in raised(name)} == {
        pair for pair in ASKED_FOR if pair[0] == name
    }


def test_every_other_error_is_vacas_own():
    strange = {(module, error) for module in MODULES for error in raised(module)} - ASKED_FOR
    assert not strange, f"raise a VacaError in place of {sorted(strange)}"
