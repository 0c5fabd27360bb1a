"""How every benchmark writes its results: one JSON file and one table."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def record(name: str, title: str, rows: Sequence[Mapping[str, Any]], note: str = "") -> bool:
    """Write results/<name>.json and .md, print the table, and say whether every bar is reached.

    Parameters
    ----------
    name : str
        Of the files.
    title : str
        Of the table: what was measured, in one line.
    rows : sequence of mapping
        The columns of the table; all rows have the same keys. A key `bar` (text, "" for none) says
        what a row must reach, and `ok` (bool) whether it does.
    note : str
        A sentence below the table: how it was measured.
    """
    machine = {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cpus": os.cpu_count(),
        "cpu": _cpu(),
    }
    RESULTS.mkdir(exist_ok=True)
    content = {"name": name, "title": title, "rows": list(rows), "note": note, "machine": machine}
    (RESULTS / f"{name}.json").write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    text = markdown(content)
    (RESULTS / f"{name}.md").write_text(text, encoding="utf-8")
    print(text)
    return all(row.get("ok", True) for row in rows)


def markdown(content: Mapping[str, Any]) -> str:
    """The table of one benchmark's JSON."""
    rows = content["rows"]
    heads = list(rows[0])
    lines = [f"### {content['title']}", "", "| " + " | ".join(heads) + " |"]
    lines.append("|" + " --- |" * len(heads))
    for row in rows:
        shown = {**row, "ok": ""} if row.get("bar") == "" else row  # nothing to reach
        lines.append("| " + " | ".join(_cell(shown[head]) for head in heads) + " |")
    machine = content["machine"]
    measured = (
        f"Measured on {machine['date']}, {machine['cpu']}, {machine['cpus']} CPUs, "
        f"Python {machine['python']}."
    )
    lines += ["", " ".join(part for part in (content["note"], measured) if part), ""]
    return "\n".join(lines)


def finish(reached: bool) -> None:
    """Exit with 1 when a bar was missed."""
    if not reached:
        print("A bar was missed.", file=sys.stderr)
        sys.exit(1)


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "**no**"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return str(value)


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return " ".join(line.split(":", 1)[1].split())
    except OSError:
        pass
    return platform.processor() or "unknown processor"
