"""Every example in the README and the documentation runs.

- ```python blocks of one page share one namespace and run in order, in an empty folder;
- ```console blocks: each line `$ vaca ...` is run by the command line and must exit with 0;
- `<!-- no-run: reason -->` on the line before a block leaves it out. It is for what a plain machine
  cannot do (a graphics card, a cluster), not for what is slow or broken.
"""

import re
import shlex
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SLOW = {"docs/tutorial.md", "docs/how-to/fairness-audit.md"}
FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>```+)(?P<language>\w*)")
NO_RUN = re.compile(r"<!--\s*no-run:\s*(?P<reason>.*?)\s*-->")


@dataclass
class Block:
    language: str
    line: int  # of its first line of code, counted from 1
    code: str
    no_run: str | None


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found: list[Block] = []
    lines = text.splitlines()
    at = 0
    mark: str | None = None
    while at < len(lines):
        fence = FENCE.match(lines[at])
        if not fence:
            if lines[at].strip():
                comment = NO_RUN.search(lines[at])
                mark = comment["reason"] if comment else None
            at += 1
            continue
        start = at = at + 1
        closing = fence["indent"] + fence["ticks"]
        while at < len(lines) and lines[at].rstrip() != closing:
            at += 1
        assert at < len(lines), f"the block that starts in line {start} has no end"
        code = "\n".join(line.removeprefix(fence["indent"]) for line in lines[start:at])
        found.append(Block(fence["language"], start + 1, code, mark))
        mark = None
        at += 1
    return found


def commands(code: str) -> list[str]:
    """The commands of a console block: lines that start with `$`, joined where they end in `\\`."""
    joined = code.replace("\\\n", " ")
    return [line[1:].strip() for line in joined.splitlines() if line.startswith("$")]


def run_command(command: str) -> None:
    from vaca.commands.app import run

    words = shlex.split(command)
    if words[0] != "vaca":
        return  # installing, make: not run here
    assert not {"|", ">", "<", "&&"} & set(words), f"use --out instead of the shell: {command}"
    code = run(words[1:])
    assert code == 0, f"exit code {code}: {command}"


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.fixture
def few_loans(monkeypatch):
    """Examples learn from some of the loan applications: they run, nobody reads what they say."""
    import vaca

    whole = vaca.datasets.loan_applications()
    some = replace(whole, data=whole.data.head(300), target=whole.target.head(300))
    monkeypatch.setattr(vaca.datasets, "loan_applications", lambda: some)


@pytest.mark.usefixtures("brief_second_opinions", "without_trees", "quick_checks", "few_loans")
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.slow] if name_of(page) in SLOW else [])
        for page in PAGES
    ],
    ids=name_of,
)
def test_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    namespace: dict = {"__name__": "__docs__"}
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.no_run is not None:
            assert block.no_run, f"{page}:{block.line}: no-run needs a reason"
        elif block.language == "python":
            padded = "\n" * (block.line - 1) + block.code  # so that a traceback names the line
            exec(compile(padded, str(page), "exec"), namespace)
        elif block.language == "console":
            for command in commands(block.code):
                run_command(command)


def test_blocks_are_found():
    text = (
        "a\n```python\nx = 1\n```\n<!-- no-run: needs a GPU -->\n\n```python\ny\n```\n"
        "- item\n    ```console\n    $ vaca scms \\\n        --help\n    out\n    ```\n"
    )
    first, second, third = blocks(text)
    assert (first.language, first.line, first.code, first.no_run) == ("python", 3, "x = 1", None)
    assert second.no_run == "needs a GPU"
    assert third.no_run is None
    assert [" ".join(c.split()) for c in commands(third.code)] == ["vaca scms --help"]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_relative_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    links = re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)", text)
    missing = [link for link in links if not (page.parent / link).exists()]
    # Pages under reference/ are made when the documentation is built.
    missing = [link for link in missing if "reference/" not in link]
    assert not missing


def test_every_picture_says_in_a_sentence_what_it_shows():
    pictures = 0
    for page in PAGES:
        for words in re.findall(r"!\[([^\]]*)\]", page.read_text(encoding="utf-8")):
            pictures += 1
            assert len(words.split()) >= 8, f"{page.name}: {words!r}"
            assert words.endswith("."), f"{page.name}: {words!r}"
    assert pictures > 10
