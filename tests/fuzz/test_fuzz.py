"""A short run of the fuzzing harness; `make fuzz` has the long one."""

from __future__ import annotations

import pytest

from tests.fuzz.readers import READERS
from tests.fuzz.run import one

#: Cases that once failed, kept for good: reader and number. One of 80 to 119 ended the process.
ONCE = [("parquet", case) for case in (41, 327, *range(80, 120))]


@pytest.mark.parametrize("block", range(4))
@pytest.mark.parametrize("reader", READERS)
def test_changed_input_is_read_or_refused(reader: str, block: int) -> None:
    size = 8 if reader == "model" else 25
    found = {case: one(reader, case) for case in range(block * size, (block + 1) * size)}
    assert not {case: problem for case, problem in found.items() if problem}


@pytest.mark.parametrize(("reader", "case"), ONCE)
def test_what_once_failed(reader: str, case: int) -> None:
    assert one(reader, case) is None
