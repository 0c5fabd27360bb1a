"""Little memory, few files, small stacks: an answer, or one line that says so; no traceback."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import vaca
from tests.fuzz.models import saved, write
from vaca.commands import app

pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="limits of Linux")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("limits")
    write(place / "model", saved("AdditiveNoise"))
    return place


def within(limit: int, amount: int) -> Callable[[], None]:
    def set_limits() -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(limit, (amount, amount))

    return set_limits


SAMPLE = "sample triangle-lin -n 3 --seed 0 --out out.csv --force"
CASES = {
    "60 MiB, before numpy": (SAMPLE, resource.RLIMIT_AS, 60 * 2**20),
    "120 MiB, within pandas": (SAMPLE, resource.RLIMIT_AS, 120 * 2**20),
    "320 MiB, before torch": ("sample model -n 3", resource.RLIMIT_AS, 320 * 2**20),
    "6 files": (SAMPLE, resource.RLIMIT_NOFILE, 6),
    "files of 2 KiB": (
        "sample triangle-lin -n 2000 --seed 0 --out out.csv --force", resource.RLIMIT_FSIZE, 2048,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_limit_is_one_line(folder, case: str) -> None:
    command, limit, amount = CASES[case]
    done = subprocess.run(
        [sys.executable, "-m", "vaca", *command.split()],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=within(limit, amount),
    )
    lines = [k for k in done.stderr.splitlines() if not k.startswith("<jemalloc>")]
    assert done.returncode in (0, 2), done.stderr
    assert len(lines) == 1, done.stderr
    assert "Traceback" not in done.stderr
    if done.returncode:
        assert lines[0].startswith("vaca: "), done.stderr
    assert not [p for p in folder.iterdir() if p.name.startswith(".")]


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        MemoryError("Unable to allocate 5 GiB"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried ..."),
        RuntimeError("can't start new thread"),
        ImportError("libx.so: failed to map\nsegment"),
        OSError(12, "Cannot allocate memory"),
        OSError(24, "Too many open files", "a.csv"),
        OSError(23, "Too many open files in system"),
    ],
    ids=str,
)
def test_what_runs_out_is_one_line(monkeypatch, capsys, error: Exception) -> None:
    def short(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(app, "_exhausted", [])
    monkeypatch.setattr(vaca.StructuralCausalModel, "sample", short)
    monkeypatch.setattr("vaca.model.streaming.sample_chunks", short)
    assert app.run(["sample", "triangle-lin", "-n", "3", "--seed", "0"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and said.startswith("vaca: "), said


def test_too_little_memory_does_not_mean_a_damaged_model(tmp_path, monkeypatch) -> None:
    folder = write(tmp_path / "model", saved("AdditiveNoise"))

    def short(error: Exception) -> None:
        def raise_it(*_: object) -> None:
            raise error

        monkeypatch.setattr("vaca.engines.persistence._try_out", raise_it)

    short(MemoryError())
    with pytest.raises(vaca.VacaError, match="not enough memory to load it"):
        vaca.load(folder)
    short(ImportError("libx.so"))
    with pytest.raises(ImportError):
        vaca.load(folder)
