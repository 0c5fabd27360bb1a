"""Pieces of a fit on other processes give what one process gives.

On a cluster, which takes seconds to start, too: test_partitions.py has that, and the loss of a
worker, in one test.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

import vaca
from vaca.model.workers import each

TRUTH = vaca.scms.load("chain-lin")
DATA = TRUTH.sample(200, seed=0)


@pytest.fixture(scope="module")
def alone():
    return vaca.Composite(TRUTH.graph).fit(DATA, refits=2)


def same(model, other) -> bool:
    do = {"x1": 0.5}
    pairs = [(model, other), *zip(model.refits_, other.refits_, strict=True)]
    return all(a.sample(30, do, seed=1).equals(b.sample(30, do, seed=1)) for a, b in pairs)


def test_local_processes_give_what_one_gives(alone):
    assert same(alone, vaca.Composite(TRUTH.graph).fit(DATA, refits=2, jobs=2))


def test_no_scheduler_says_so(monkeypatch):
    distributed = pytest.importorskip("distributed")

    def refuse(*args, **options):
        raise OSError("timed out")

    monkeypatch.setattr(distributed, "Client", refuse)
    with pytest.raises(vaca.VacaError, match="no Dask scheduler answers at tcp://nowhere:1"):
        vaca.Composite(TRUTH.graph).fit(DATA, cluster="tcp://nowhere:1")


def test_an_error_of_a_piece_is_the_error_of_the_whole():
    with pytest.raises(ZeroDivisionError):
        list(each(divmod, 1, [1, 0], jobs=2))


def test_processes_whose_pipes_could_not_be_opened_are_not_started(monkeypatch):
    import os
    import resource

    used = len(os.listdir("/dev/fd"))
    monkeypatch.setattr(resource, "getrlimit", lambda which: (used + 10, used + 10))
    with pytest.raises(vaca.VacaError, match="2 processes need 20 more open files"):
        list(each(pow, 3, range(4), jobs=2))
    assert list(each(pow, 3, range(4))) == [1, 3, 9, 27]


def test_a_process_whose_parent_was_gone_before_it_looked_ends():
    import subprocess
    import sys

    code = "import os, time; from vaca.model.workers import end_with_parent as end; "
    # Its parent is alive, and not the one that it was started for.
    ended = subprocess.run([sys.executable, "-c", f"{code} end(os.getpid()); time.sleep(60)"])
    assert ended.returncode == 1


FAULTS = """
import resource, sys
import numpy as np
from vaca.model.workers import keep_memory
if sys.argv[1:]:
    keep_memory()
for _ in range(50):
    np.ones(100_000)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library has no such switch")
def test_memory_is_kept_where_dask_would_give_it_back():
    faults = []
    for words in ((), ("keep",)):
        command = [sys.executable, "-c", FAULTS, *words]
        surroundings = {**os.environ, "MALLOC_TRIM_THRESHOLD_": "65536"}
        done = subprocess.run(command, env=surroundings, capture_output=True, check=True)
        faults.append(int(done.stdout))
    pages = 100_000 * 8 // 4096
    assert faults[0] - faults[1] > 40 * pages  # of 50 arrays
