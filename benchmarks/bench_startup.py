"""How long the command line takes to start, against importing what it is built on."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from _record import finish, record

REPEATS = 25
BARS = {"vaca --help": 2.0}
PEER = "import typer, rich"
RUN = "from vaca.commands.app import main; main()"
CASES = {
    "vaca --help": f"import sys; sys.argv[1:] = ['--help']; {RUN}",
    "vaca sample --help": f"import sys; sys.argv[1:] = ['sample', '--help']; {RUN}",
    "import vaca": "import vaca",
    "the first use of Composite": "import vaca; vaca.Composite",
    "import torch": "import torch",
    "the first use of CausalFlow": "import vaca; vaca.CausalFlow",
}


def seconds(code: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    programs = {PEER: PEER, **CASES}
    for code in programs.values():
        seconds(code)  # so that byte code and disk caches are warm for all
    times: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(REPEATS):
        for name, code in programs.items():
            times[name].append(seconds(code))
    middle = {name: statistics.median(values) for name, values in times.items()}
    rows = [
        {
            "program": name,
            "median ms": 1000 * middle[name],
            f"ratio to `{PEER}`": middle[name] / middle[PEER],
            "bar": f"<= {BARS[name]:g}" if name in BARS else "",
            "ok": middle[name] / middle[PEER] <= BARS.get(name, float("inf")),
        }
        for name in programs
    ]
    note = (
        f"Median of {REPEATS} fresh processes each, taken in turns. Networks need torch, whose own "
        "import is most of what the first of them costs; the default engine does without."
    )
    finish(record("startup", "Start-up of the command line", rows, note))


if __name__ == "__main__":
    main()
