"""The command line on a real terminal (a pseudo-terminal): answers, bars and words stay apart."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

import pytest

SHELL = "sample triangle-lin -n 5 --seed 0"


def on_terminal(command: str, code: str = "", columns: int = 80) -> tuple[str, int]:
    """What a terminal shows of a shell line in which VACA stands for the command line."""
    start = f"{code}\nfrom vaca.commands.app import main\nmain()"
    env = {**os.environ, "START": start, "TERM": "xterm"}
    line = command.replace("VACA", f'"{sys.executable}" -c "$START"')
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen(
        ["/bin/sh", "-c", line], stdin=theirs, stdout=theirs, stderr=theirs, env=env
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the last one that held the terminal has gone
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    return shown.decode(), process.wait()


@pytest.mark.parametrize("code", ["", "import vaca.table.progress as p; p.DELAY = 0.0"])
def test_rows_go_to_the_file_and_none_to_the_terminal(tmp_path, code):
    out = tmp_path / "out.csv"
    shown, status = on_terminal(f"VACA {SHELL} > '{out}'", code)
    assert status == 0 and "x1,x2,x3" not in shown
    lines = out.read_text().splitlines()
    assert lines[0] == "x1,x2,x3" and len(lines) == 6
    assert all(len(line.split(",")) == 3 for line in lines)
    assert ("drawing" in shown) == bool(code)  # a bar from the first moment on, or none


def test_counterfactuals_go_to_a_file_and_through_a_pipe(tmp_path):
    people = tmp_path / "people.csv"
    people.write_text("x1,x2,x3\n1,2,3\n4,5,6\n")
    out = tmp_path / "out.csv"
    ask = f"VACA counterfactual triangle-lin '{people}' --do x2=0.5"
    shown, status = on_terminal(f"{ask} > '{out}'; {ask} | head -n 2")
    assert status == 0
    assert len(out.read_text().splitlines()) == 3
    assert shown.splitlines() == out.read_text().splitlines()[:2]


def test_words_are_not_cut_and_a_warning_comes_once(tmp_path):
    code = """
import time, warnings
import vaca, vaca.table.progress
from vaca.scm.structural import StructuralCausalModel
vaca.table.progress.DELAY = 0.0
draw = StructuralCausalModel.sample
def sample(*arguments, **named):
    time.sleep(0.2)
    warnings.warn("far " * 30 + "out", vaca.VacaWarning)
    return draw(*arguments, **named)
StructuralCausalModel.sample = sample
"""
    shown, status = on_terminal("VACA do loan --do income=1 -n 50", code)
    assert status == 0
    assert shown.count("vaca: warning:") == 1
    assert "rowsvaca" not in shown
    plain = [line for line in shown.splitlines() if "\x1b" not in line]
    assert "Unchanged, as no arrow leads there: gender, age, education, loan_amount," in plain
    assert "loan_duration." in plain
    assert max(map(len, plain)) <= 80


@pytest.mark.parametrize("columns", ["0", "1", "12", "-3", "abc"])
def test_a_narrow_terminal_still_shows_the_table(columns):
    """COLUMNS may say anything; the names of the columns are there all the same."""
    command = [sys.executable, "-m", "vaca", "do", "triangle-lin", "--do", "x1=1", "-n", "50"]
    said = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "COLUMNS": columns}, check=True
    )
    assert "x2" in said.stdout and "x3" in said.stdout


def test_more_rows_than_can_be_are_refused_at_once():
    command = [sys.executable, "-m", "vaca", "sample", "triangle-lin", "-n", str(10**12)]
    said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert said.returncode == 2 and said.stdout == ""
    assert said.stderr == "vaca: -n is at most 100,000,000,000; got 1000000000000\n"


def test_pictures_need_no_backend_of_the_session(tmp_path):
    command = [sys.executable, "-m", "vaca", "do", "triangle-lin", "--do", "x1=1", "-n", "50"]
    said = subprocess.run(
        [*command, "--plot", str(tmp_path / "a.png")],
        capture_output=True, text=True, check=False, env={**os.environ, "MPLBACKEND": "none such"},
    )  # fmt: skip
    assert said.returncode == 0 and "Traceback" not in said.stderr
