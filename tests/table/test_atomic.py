"""Every writer replaces a file at once or leaves it alone."""

from __future__ import annotations

import functools
from pathlib import Path

import pandas as pd
import pytest

import vaca
from vaca.errors import VacaError
from vaca.table import atomic
from vaca.table.files import write_table

GRAPH = vaca.CausalGraph.from_edges([("a", "b")])


def _store(path: Path) -> None:
    from vaca.reproduction.run import Store

    Store._place(path, {"a": [1, 2]})


WRITERS = {
    **dict.fromkeys(("g.txt", "g.dot", "g.gv", "g.gml", "g.json"), GRAPH.write),
    **{
        ending: functools.partial(write_table, pd.DataFrame({"a": [1]}))
        for ending in ("t.csv", "t.parquet", "t.feather")
    },
    "report.json": _store,
    "audit.html": lambda path: _audit().to_html(path),
    **dict.fromkeys(("p.png", "p.svg", "p.pdf"), lambda path: _picture(path)),
}


def _picture(path: Path) -> None:
    from vaca.show.plot import save_picture

    save_picture(GRAPH.plot(), path, dpi=20)


def _audit():
    from vaca.fairness import audit

    scm = vaca.scms.load("loan")
    rows = scm.sample(40, seed=0)
    return audit(scm, lambda frame: frame["income"] > 0, rows, sensitive="gender")


@pytest.mark.parametrize("name", WRITERS)
def test_a_failed_write_leaves_what_was_there(tmp_path, monkeypatch, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"old")

    def full(*given: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic.os, "replace", full)
    with pytest.raises(VacaError, match="No space left on device; nothing was changed"):
        WRITERS[name](path)
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == [name]
    monkeypatch.undo()
    WRITERS[name](path)
    assert path.read_bytes() != b"old"
    assert [p.name for p in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["p.png", "t.csv", "g.txt"])
def test_what_a_killed_process_left_is_removed(tmp_path, name: str) -> None:
    path, dead = tmp_path / name, 2**22 - 3  # above the largest number of a process here
    (tmp_path / f".{name}.new-{atomic._host()}-{dead}-x").mkdir()
    (tmp_path / f".{name}.new-{atomic._host()}-{dead}-x" / name).write_bytes(b"half")
    other = tmp_path / f".{name}.new-elsewhere-{dead}-x"  # of another machine: it may be alive
    other.mkdir()
    WRITERS[name](path)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([name, other.name])
