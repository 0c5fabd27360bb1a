"""A short run of the fuzzing harness; `make fuzz` has the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.readers import READERS, prepare
from tests.fuzz.run import one, watch
from vaca.errors import VacaError
from vaca.table.files import read_table

#: Inputs that once failed. The first ended the process, the second asked for all memory.
ONCE = sorted((Path(__file__).parent / "once").iterdir())


@pytest.mark.parametrize("reader", READERS)
def test_changed_input_is_read_or_refused(reader: str) -> None:
    watch()
    prepare(reader)
    found = {case: one(reader, case) for case in range(15 if "model" in reader else 60)}
    assert not {case: outcome.problem for case, outcome in found.items() if outcome.problem}


@pytest.mark.parametrize("path", ONCE, ids=lambda path: path.name)
def test_what_once_failed(path: Path) -> None:
    with pytest.raises(VacaError, match="not a"):
        read_table(path)


@pytest.mark.parametrize(
    ("action", "problem"),
    [
        (lambda: 1 / 0, "ZeroDivisionError"),
        (lambda: __import__("os").system("true"), "did os.system"),
        (lambda: eval("1 + 1"), "did exec"),
        (lambda: open("/dev/null", "w").close(), "did open /dev/null to write"),
        (lambda: bytearray(b"x") * (80 * 2**20), "MiB"),
        (lambda: [None for _ in iter(int, 1)], "took"),
    ],
)
def test_the_harness_notices(monkeypatch, action, problem: str) -> None:
    """A harness that sees nothing would pass everything."""
    from tests.fuzz import readers, run

    run.watch()
    monkeypatch.setattr(run, "SECONDS", 0.3)
    monkeypatch.setattr(run, "BYTES", 2**26)
    monkeypatch.setitem(readers.READERS, "bad", lambda rng: action())
    assert problem in str(one("bad", 0).problem)
