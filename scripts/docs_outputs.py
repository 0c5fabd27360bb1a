"""Run the examples of a page and write what they print below them.

    python scripts/docs_outputs.py docs/tutorial.md

Below each `python` block, and each `console` block with a `vaca` command, stands what it printed,
in a block of the language `text`; one that is there is replaced. Pictures that the examples draw
are copied to docs/images/<page>-<name>, if the page refers to them. Nothing is written by hand.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import shlex
import shutil
import sys
import tempfile
import textwrap
import warnings
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: On the line before a block: do not show what it prints.
QUIET = "<!-- quiet -->"
#: Longer outputs are cut in the middle, with a word about it.
MOST_LINES = 64
#: Longer lines go on below: a page is not to be pushed sideways.
WIDTH = 96


def examples() -> object:
    """How the tests find blocks: the same functions."""
    spec = importlib.util.spec_from_file_location("test_docs", ROOT / "tests" / "test_docs.py")
    if spec is None or spec.loader is None:
        raise SystemExit("tests/test_docs.py cannot be read")
    module = importlib.util.module_from_spec(spec)
    sys.modules["test_docs"] = module
    spec.loader.exec_module(module)
    return module


def printed(block: object, names: dict, finder: object) -> str:
    """What a block prints, run in the folder we are in."""
    from vaca.commands.app import run

    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
        if block.language == "python":  # type: ignore[attr-defined]
            exec(compile(block.code, "example", "exec"), names)  # type: ignore[attr-defined]
        else:
            for line in finder.commands(block.code):  # type: ignore[attr-defined]
                if line.startswith("vaca "):
                    code = run(shlex.split(line)[1:])
                    if code:
                        raise SystemExit(f"{line} ended with {code}")
    lines = []
    for line in said.getvalue().rstrip().splitlines():
        long = len(line) > WIDTH
        lines += textwrap.wrap(line, WIDTH, subsequent_indent="  ") if long else [line.rstrip()]
    if len(lines) > MOST_LINES:
        half = MOST_LINES // 2
        lines = [*lines[:half], f"... ({len(lines) - 2 * half} lines)", *lines[-half:]]
    return "\n".join(lines)


def write(page: Path) -> None:
    """Run a page and write its outputs into it."""
    finder = examples()
    text = page.read_text(encoding="utf-8")
    lines = text.splitlines()
    found = [
        b
        for b in finder.blocks(text)  # type: ignore[attr-defined]
        if b.language in ("python", "console") and b.no_run is None
    ]
    names: dict = {"__name__": "__main__"}
    outputs: dict[int, str] = {}
    home = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.chdir(folder)
        try:
            for block in found:
                end = block.line - 1 + len(block.code.splitlines())  # of the closing fence
                said = printed(block, names, finder)
                quiet = lines[block.line - 3].strip() == QUIET
                outputs[end] = "" if quiet else said
                print(f"{page}:{block.line} done", flush=True)
            for name in re.findall(rf"images/{page.stem}-([\w.-]+)", text):
                shutil.copyfile(name, ROOT / "docs" / "images" / f"{page.stem}-{name}")
        finally:
            os.chdir(home)
    result: list[str] = []
    at = 0
    while at < len(lines):
        result.append(lines[at])
        said = outputs.get(at)
        if said is not None:
            if lines[at + 1 : at + 3] == ["", "```text"]:  # what it printed last time
                at = lines.index("```", at + 3)
            if said:
                result += ["", "```text", said, "```"]
        at += 1
    page.write_text("\n".join(result) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        write(Path(name).resolve())
