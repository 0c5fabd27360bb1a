"""Kill commands at random moments, and see what is left.

Each case starts a command that replaces an existing output, ends it after a random time by SIGKILL
or SIGTERM (the whole command, as a machine that runs out of memory would), and asks:

- does the name hold the old output or the whole new one;
- is any child still alive a moment later;
- does the same command, run again to its end, clean up what was left and give the answer that an
  undisturbed run gives?

    python benchmarks/kill_study.py --cases 100 --out benchmarks/results/kill_study.json
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

VACA = [sys.executable, "-m", "vaca"]
#: What each case may do; `{out}` is the output, which exists already.
COMMANDS = {
    "fit": "fit rows.csv --graph graph.txt --engine additive --seed 1 --out model --force",
    "ensemble": "fit rows.csv --graph graph.txt --engine additive --members 2 --jobs 2 --seed 1 "
    "--out model --force",
    "sample": "sample triangle-lin -n 200000 --seed 1 --out out.csv --force",
    "counterfactual": "counterfactual triangle-lin rows.csv --do x1=0.5 --draws 200 --seed 1 "
    "--out out.parquet --force",
}
OUTPUT = {"fit": "model", "ensemble": "model", "sample": "out.csv", "counterfactual": "out.parquet"}


def digest(path: Path) -> str:
    """Of a file, or of all files of a folder but the day they were made."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    found = hashlib.sha256()
    for file in files:
        if file.is_file() and file.suffix != ".md":
            content = file.read_bytes()
            if file.name == "model.json":
                about = json.loads(content)
                content = json.dumps({k: about[k] for k in ("engine", "graph", "schema")}).encode()
            elif path.is_dir() and file.suffix != ".safetensors":
                continue
            found.update(file.name.encode() + content)
    return found.hexdigest()


def call(name: str, folder: Path) -> subprocess.Popen[bytes]:
    """Start a command in a folder, in a process group of its own."""
    return subprocess.Popen(
        [*VACA, *COMMANDS[name].split()],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def finish(name: str, folder: Path) -> float:
    """Run a command to its end; give how long it took."""
    start = time.monotonic()
    run = call(name, folder)
    _, words = run.communicate()
    if run.returncode:
        raise SystemExit(f"{name}: {words.decode()}")
    return time.monotonic() - start


def prepare(folder: Path) -> None:
    """The inputs of all commands."""
    subprocess.run(
        [*VACA, *["sample", "triangle-lin", "-n", "400", "--seed", "0", "--out", "rows.csv"]],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    (folder / "graph.txt").write_text("x1 -> x2\nx1 -> x3\nx2 -> x3\n")


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


def one(name: str, number: int, usual: float, expected: str, folder: Path) -> dict[str, Any]:
    """Kill one command, look, and run it again."""
    rng = random.Random(f"{name} {number}")
    which = signal.SIGKILL if number % 2 else signal.SIGTERM
    wait = rng.random() * usual
    output = folder / OUTPUT[name]
    before = digest(output)
    run = call(name, folder)
    time.sleep(wait)
    below = children(run.pid)
    run.send_signal(which)
    _, words = run.communicate()
    time.sleep(1.5)
    left = [pid for pid in below if alive(pid)]
    for pid in left:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    after = digest(output) if output.exists() else "gone"
    hidden = [path.name for path in folder.iterdir() if path.name.startswith(".")]
    problems = []
    if after not in (before, expected):
        problems.append("the output is neither the old nor the new one")
    if left:
        problems.append(f"{len(left)} children outlived it")
    if b"Traceback" in words:
        problems.append("a traceback")
    if which == signal.SIGTERM and hidden:
        problems.append(f"SIGTERM left {hidden}")
    finish(name, folder)
    if digest(output) != expected:
        problems.append("another answer when run again")
    rest = [path.name for path in folder.iterdir() if path.name.startswith(".")]
    if rest:
        problems.append(f"running again left {rest}")
    return {
        "command": name,
        "signal": which.name,
        "after_seconds": round(wait, 2),
        "ended_before": run.returncode == 0,
        "left_by_kill": len(hidden),
        "problems": problems,
    }


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=200, help="half of them of each signal")
    parser.add_argument("--command", choices=list(COMMANDS), action="append")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    names = given.command or list(COMMANDS)
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as place:
        ready: dict[str, tuple[float, str, Path]] = {}
        for name in names:
            folder = Path(place) / name
            folder.mkdir()
            prepare(folder)
            usual = finish(name, folder)
            ready[name] = (usual, digest(folder / OUTPUT[name]), folder)
        for number in range(given.cases):
            name = names[(number // 2) % len(names)]
            found.append(one(name, number, *ready[name]))
            if found[-1]["problems"]:
                print(found[-1], flush=True)
            summary = {
                "cases": len(found),
                "SIGKILL": sum(f["signal"] == "SIGKILL" for f in found),
                "SIGTERM": sum(f["signal"] == "SIGTERM" for f in found),
                "ended_before_the_signal": sum(f["ended_before"] for f in found),
                "with_problems": sum(bool(f["problems"]) for f in found),
            }
            if given.out:
                given.out.write_text(json.dumps({"summary": summary, "cases": found}, indent=1))
        print(summary)


if __name__ == "__main__":
    main()
