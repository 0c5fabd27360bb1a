"""Pieces of a fit on other processes and on a cluster give what one process gives."""

from __future__ import annotations

import signal

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


def test_a_cluster_that_loses_a_worker_gives_what_one_process_gives(alone, cluster):
    address, workers = cluster
    assert same(alone, vaca.Composite(TRUTH.graph).fit(DATA, refits=2, cluster=address))
    answers = each(pow, 3, range(40), cluster=address)
    first = next(answers)
    workers[0].send_signal(signal.SIGKILL)
    workers[0].wait()
    assert [first, *answers] == [3**k for k in range(40)]
    assert workers[1].poll() is None


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
