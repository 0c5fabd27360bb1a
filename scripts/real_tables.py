"""Put the tables of `vaca reproduce real` into docs/real-tables.md, from stored answers."""

import re
from pathlib import Path

from vaca.reproduction.real import page

ROOT = Path(__file__).parents[1]
MARKS = re.compile(r"(<!-- begin: tables -->\n).*?(<!-- end: tables -->)", re.DOTALL)


def renewed(text: str) -> str:
    tables = page(ROOT / "results" / "real")
    return MARKS.sub(lambda marks: f"{marks[1]}\n{tables}\n{marks[2]}", text)


if __name__ == "__main__":
    path = ROOT / "docs" / "real-tables.md"
    path.write_text(renewed(path.read_text(encoding="utf-8")), encoding="utf-8")
