"""Kill commands at random moments, and see what is left.

Each case starts a command that replaces an existing output, ends it after a random time by SIGKILL
or SIGTERM (the command alone, as a machine that runs out of memory would), and asks:

- does the name hold the old output or the whole new one;
- is any child still alive 15 s later (one that was starting has its imports to finish first, and
  the machine may have other work);
- after SIGTERM, is there one line on standard error and nothing left beside the output;
- does the same command, run again to its end, clean up what was left and give the answer that an
  undisturbed run gives?

Commands start by a fork of this process, which has all libraries loaded: most of a kill's moments
would else fall into imports. `cold` starts a new interpreter, for those. Every second case of a
command leaves the old output of another seed, so that old and new differ.

    python benchmarks/kill_study.py --out benchmarks/results/kills.json

Each case is stored when it is done; the same call continues a stopped study. `--again`
starts the commands afresh.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

_FIT = "fit rows.csv --graph graph.txt --force --out model"
#: What each case does, what it writes, and how often it is killed by each signal. `{seed}` is 1;
#: `{cluster}` is the address of a Dask scheduler.
COMMANDS: dict[str, tuple[str, str, int]] = {
    "fit": (f"{_FIT} --engine additive --seed {{seed}}", "model", 14),
    "refits": (f"{_FIT} --config quick.toml --seed {{seed}}", "model", 12),
    "ensemble": (
        f"{_FIT} --engine additive --members 2 --jobs 2 --seed {{seed}}", "model", 6,
    ),
    "cluster": (
        f"{_FIT} --config quick.toml --cluster {{cluster}} --seed {{seed}}", "model", 8,
    ),
    "counterfactual": (
        "counterfactual triangle-lin rows.csv --do x1=0.5 --draws 300 --seed {seed} "
        "--out out.parquet --force", "out.parquet", 22,
    ),
    "parts": (
        "counterfactual triangle-lin parts --do x1=0.5 --draws 50 --jobs 2 --seed {seed} "
        "--out answers --force", "answers", 6,
    ),
    "sample": (
        "sample triangle-lin -n 15000 --seed {seed} --out out.csv --force", "out.csv", 20,
    ),
    "cold": (
        "sample triangle-lin -n 2000 --seed {seed} --out out.csv --force", "out.csv", 6,
    ),
    "reproduce": (
        "reproduce table-results --quick --scms triangle-lin --models additive --seeds 2 "
        "--workers 1 --out results", "results", 6,
    ),
}  # fmt: skip

#: These need an interpreter of their own: for its imports, and for an end that joblib cleans up at.
COLD = ("cold", "parts")


def digest(path: Path) -> str:
    """Of what a file or folder answers; not of the day or the time that it took."""
    if not path.exists():
        return "gone"
    found = hashlib.sha256()
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if not file.is_file() or any(
            p.startswith((".", "_")) for p in file.relative_to(path.parent).parts
        ):
            continue
        if path.name == "results":
            if file.name != "report.json":
                continue
            content = json.dumps(_without_times(json.loads(file.read_bytes()))).encode()
        elif file.name == "model.json":
            about = json.loads(file.read_bytes())
            content = json.dumps({k: about[k] for k in ("engine", "graph", "schema")}).encode()
        elif path.name == "model" and file.suffix != ".safetensors":
            continue
        else:
            content = file.read_bytes()
        found.update(file.name.encode() + content)
    return found.hexdigest()


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        rest = {k: v for k, v in value.items() if "second" not in k and k not in ("time", "made")}
        return {k: _without_times(v) for k, v in rest.items()}
    return [_without_times(v) for v in value] if isinstance(value, list) else value


def start(words: list[str], folder: Path, *, cold: bool = False) -> int:
    """Start a command in a folder, in a session of its own; give its process."""
    if cold:
        with (folder / "said").open("wb") as said:
            return subprocess.Popen(
                [sys.executable, "-m", "vaca", *words],
                cwd=folder,
                stdout=subprocess.DEVNULL,
                stderr=said,
                start_new_session=True,
            ).pid
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        atexit._clear()  # what this process puts away at its end is not the command's
        os.setsid()
        os.chdir(folder)
        said = os.open("said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(said, 2)
        from vaca.commands.app import main as vaca_main

        vaca_main(words)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        with contextlib.suppress(BaseException):
            sys.stderr.flush()
        os._exit(code)


def finish(words: list[str], folder: Path, *, cold: bool = False) -> float:
    """Run a command to its end; give how long it took."""
    begin = time.monotonic()
    _, status = os.waitpid(start(words, folder, cold=cold), 0)
    if status:
        raise SystemExit(f"{' '.join(words)}: {(folder / 'said').read_text()}")
    return time.monotonic() - begin


def prepare(folder: Path) -> None:
    """The inputs of all commands."""
    import vaca

    folder.mkdir()
    rows = vaca.scms.load("triangle-lin").sample(60, seed=0)
    rows.to_csv(folder / "rows.csv", index=False)
    (folder / "graph.txt").write_text("x1 -> x2\nx1 -> x3\nx2 -> x3\n")
    (folder / "quick.toml").write_text("refits = 3\n[settings]\nfamilies = []\n")
    (folder / "parts").mkdir()
    for k in range(4):
        rows[15 * k : 15 * (k + 1)].to_parquet(folder / "parts" / f"{k}.parquet")


def children(pid: int) -> list[int]:
    """The processes below one, as Linux tells."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            own = [int(k) for k in (task / "children").read_text().split()]
            found += own + [grandchild for child in own for grandchild in children(child)]
    return found


def alive(pid: int) -> bool:
    """Whether a process still runs; one that only waits to be counted does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def hidden(folder: Path) -> list[str]:
    """What is left under hidden names, here or deeper."""
    return sorted(str(p.relative_to(folder)) for p in folder.rglob(".*"))


def copy(source: Path, target: Path) -> None:
    """Replace a file or folder with a copy of another."""
    if target.is_dir():
        shutil.rmtree(target)
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copyfile(source, target)


class Case:
    """A command with the answer that an undisturbed run gives, and how long that takes."""

    def __init__(self, name: str, folder: Path, cluster: str) -> None:
        self.name, self.folder, self.cold = name, folder, name in COLD
        text, output, _ = COMMANDS[name]
        self.output = folder / output
        self.words, other = (text.format(seed=s, cluster=cluster).split() for s in (1, 2))
        # Answers in parts are added to: there the old output is one that was never finished.
        self.parted = output in ("results", "answers")
        finish(self.words if self.parted else other, folder, cold=self.cold)
        self.kept = folder.parent / f"{name} kept"
        copy(self.output, self.kept)
        self._clear()
        self.usual = finish(self.words, folder, cold=self.cold)
        self.new = digest(self.output)

    def _clear(self) -> None:
        """Take away all but the first of what a finished command would not do again."""
        if self.parted:
            parts = {*self.output.rglob("report.json"), *self.output.rglob("*.parquet")}
            for part in sorted(parts)[1:]:
                part.unlink()

    def kill(self, number: int) -> dict[str, Any]:
        """Kill one command, look, and run it again."""
        rng = random.Random(f"{self.name} {number}")
        which = signal.SIGKILL if number % 2 else signal.SIGTERM
        if (number // 2) % 2 and not self.parted:
            copy(self.kept, self.output)
        self._clear()
        before, wait = digest(self.output), rng.random() * self.usual
        pid = start(self.words, self.folder, cold=self.cold)
        time.sleep(wait)
        below = children(pid)
        os.kill(pid, which)
        _, status = os.waitpid(pid, 0)
        left = self._left(below)
        code = os.waitstatus_to_exitcode(status)
        said = (self.folder / "said").read_text(errors="replace")
        after, rest = digest(self.output), hidden(self.folder)
        problems = self._problems(which, code, said, before, after, rest)
        if left:
            problems.append(f"{left} children outlived it")
        # Other work on the machine makes it slower or faster: follow that.
        self.usual = finish(self.words, self.folder, cold=self.cold)
        if digest(self.output) != self.new:
            problems.append("another answer when run again")
        if hidden(self.folder):
            problems.append(f"running again left {hidden(self.folder)}")
        return {
            "command": self.name,
            "signal": which.name,
            "after_seconds": round(wait, 2),
            "ended_before": code == 0,
            "new_output": after == self.new != before,
            "left_by_kill": len(rest),
            "problems": problems,
        }

    def _problems(
        self, which: int, code: int, said: str, before: str, after: str, rest: list[str]
    ) -> list[str]:
        found = []
        whole = (before, self.new)
        # Results and parts come one file at a time, each whole: the rerun below compares them.
        if after not in whole and not self.parted:
            found.append("the output is neither the old nor the new one")
        if "Traceback" in said:
            found.append(f"a traceback: {said[-300:]}")
        if which == signal.SIGTERM and code not in (0, -15):
            # Before the command line is up, a signal ends Python without a word (-15).
            last = said.strip().splitlines()[-1:]
            if code not in (143, 130) or last not in (
                ["vaca: ended by a signal"], ["vaca: interrupted"],
            ):  # fmt: skip
                found.append(f"SIGTERM ended it with {code}: {said[-300:]}")
            if rest:
                found.append(f"SIGTERM left {rest}")
        return found

    @staticmethod
    def _left(below: list[int]) -> int:
        """How many of these live on, seconds after their parent; they are ended."""
        end = time.monotonic() + 15
        while any(alive(p) for p in below) and time.monotonic() < end:
            time.sleep(0.05)
        left = [p for p in below if alive(p)]
        for p in left:
            with contextlib.suppress(OSError):
                os.kill(p, signal.SIGKILL)
        return len(left)


@contextlib.contextmanager
def dask(place: Path) -> Iterator[str]:
    """A scheduler and two workers; gives the address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    no = ["--no-dashboard"]
    calls = [["dask_scheduler", "--host", "127.0.0.1", "--port", str(port), *no, "--no-jupyter"]]
    calls += [["dask_worker", address, "--nthreads", "1", "--no-nanny", *no]] * 2
    running = []
    try:
        for call in calls:
            command = [sys.executable, "-m", f"distributed.cli.{call[0]}", *call[1:]]
            quiet = subprocess.DEVNULL
            running.append(subprocess.Popen(command, cwd=place, stdout=quiet, stderr=quiet))
        yield address
    finally:
        for process in running:
            process.kill()
            process.wait()


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--command", choices=list(COMMANDS), action="append")
    parser.add_argument("--share", type=float, default=1.0, help="of the cases of each command")
    parser.add_argument("--out", type=Path, help="cases that it has already are not run again")
    parser.add_argument("--again", action="store_true", help="run them all the same")
    given = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    import joblib
    import pyarrow.parquet
    import sklearn.ensemble
    import torch

    import vaca.commands.app
    import vaca.engines.composite
    import vaca.reproduction.experiment
    import vaca.trust.check  # noqa: F401

    del joblib, pyarrow, sklearn, torch
    names = given.command or list(COMMANDS)
    found: list[dict[str, Any]] = []
    if given.out and given.out.exists():
        old = json.loads(given.out.read_text())["cases"]
        found = [case for case in old if not given.again or case["command"] not in names]
    with contextlib.ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cluster = stack.enter_context(dask(place)) if "cluster" in names else ""
        for name in names:
            done = sum(case["command"] == name for case in found)
            wanted = 2 * max(1, round(COMMANDS[name][2] * given.share))
            if done >= wanted:
                continue
            prepare(place / name)
            case = Case(name, place / name, cluster)
            print(f"{name}: {case.usual:.1f} s when undisturbed", flush=True)
            for number in range(done, wanted):
                found.append(case.kill(number))
                if found[-1]["problems"]:
                    print(found[-1], flush=True)
                _store(found, given.out)
            print(_summary(found), flush=True)


def _summary(found: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "date": f"{datetime.now(timezone.utc):%Y-%m-%d}",
        "SIGKILL": sum(f["signal"] == "SIGKILL" for f in found),
        "SIGTERM": sum(f["signal"] == "SIGTERM" for f in found),
        "ended_before_the_signal": sum(f["ended_before"] for f in found),
        "left_something_that_a_rerun_removed": sum(bool(f["left_by_kill"]) for f in found),
        "with_problems": sum(bool(f["problems"]) for f in found),
    }


def _store(found: list[dict[str, Any]], out: Path | None) -> None:
    if out:
        from vaca.table.atomic import complete

        lines = ",\n  ".join(json.dumps(case) for case in found)
        told = json.dumps(_summary(found))
        with complete(out) as part:
            part.write_text(f'{{\n "summary": {told},\n "cases": [\n  {lines}\n ]\n}}\n')


if __name__ == "__main__":
    main()
