"""A short run of the fuzzing harness; `make fuzz` has the long one."""

from __future__ import annotations

import json
import mmap
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


def _take_memory() -> None:
    """Take 80 MiB of the system: malloc may hand out pages that an earlier test has paid for."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
    mmap.mmap(-1, 80 * 2**20, flags=flags).close()


@pytest.mark.parametrize(
    ("action", "problem"),
    [
        (lambda: 1 / 0, "ZeroDivisionError"),
        (lambda: __import__("os").system("true"), "did os.system"),
        (lambda: eval("1 + 1"), "did exec"),
        (lambda: open("/dev/null", "w").close(), "did open /dev/null to write"),
        (_take_memory, "MiB"),
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


RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


def test_the_longest_run_had_every_reader_and_found_nothing() -> None:
    told = json.loads((RESULTS / "fuzz.json").read_text())["readers"]
    assert set(told) == set(READERS)
    for reader, found in told.items():
        assert found["cases"] == found["read"] + found["refused"] >= 20_000, reader
        assert found["read"] > 0 and found["failed"] == [], reader
        assert found["longest_seconds"] < 5 and found["most_MiB"] < 1024, reader


def test_every_kind_of_command_was_killed_by_both_signals() -> None:
    told = json.loads((RESULTS / "kills.json").read_text())
    for which in ("SIGKILL", "SIGTERM"):
        cases = [case for case in told["cases"] if case["signal"] == which]
        assert told["summary"][which] == len(cases) >= 100
        assert {case["command"] for case in cases} == {
            "fit", "refits", "ensemble", "cluster", "counterfactual", "parts", "sample", "cold",
            "reproduce",
        }  # fmt: skip
        assert not [case for case in cases if case["problems"]]
