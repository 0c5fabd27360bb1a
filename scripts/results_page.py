"""Write docs/results.md, and the results in docs/paper.md and the README, from what is stored.

- results/runs: the reports of the runs of `vaca reproduce`, from which the tables of accuracy are
  made;
- benchmarks/results/*.md: the tables of speed and memory.

Nothing is measured here: the page is a function of those files.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from vaca.reproduction import results_page as experiments_page
from vaca.reproduction.figures import Picture
from vaca.reproduction.result_charts import growth
from vaca.reproduction.run import Store

ROOT = Path(__file__).parents[1]
RUNS = Store(ROOT / "results" / "runs")
SPEED = ROOT / "benchmarks" / "results"
BEGIN = "<!-- results: begin (written by `make results-page`) -->"
END = "<!-- results: end -->"
LINK = "[docs/results.md](docs/results.md)"


def tables(folder: Path) -> list[str]:
    return [path.read_text(encoding="utf-8").strip() for path in sorted(folder.glob("*.md"))]


def cost_picture() -> Picture | None:
    path = SPEED / "growth.json"
    return growth(json.loads(path.read_text(encoding="utf-8"))["points"]) if path.exists() else None


def page() -> str:
    parts = ["# Results", "Written by `make results-page` from the results that are stored."]
    accuracy = experiments_page.accuracy(RUNS).strip()
    if accuracy:
        parts.append(accuracy)
    found = tables(SPEED)
    if found:
        parts += ["## Speed and memory"]
        picture = cost_picture()
        if picture is not None:
            parts.append(experiments_page.shown_picture(picture))
        parts += found
    return "\n\n".join(parts) + "\n"


def bars() -> str:
    """How many bars of the benchmarks are reached."""
    reached = total = 0
    for path in sorted(SPEED.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        rows = content.get("rows", []) if isinstance(content, dict) else []
        judged = [row["ok"] for row in rows if row.get("bar") and "ok" in row]
        reached, total = reached + sum(judged), total + len(judged)
    return f"{reached} of {total} bars reached"


def summary() -> str:
    parts = [part for part in (experiments_page.summary(RUNS),) if part]
    parts.append(
        f"Speed, intervals, checks, fairness and every table: {LINK}. Benchmarks: {bars()}."
    )
    return "\n\n".join(parts)


def main() -> None:
    (ROOT / "docs" / "results.md").write_text(page(), encoding="utf-8")
    images = ROOT / "docs" / "images" / "results"
    paper = ROOT / "docs" / "paper.md"
    filled, pictures = experiments_page.paper_page(paper.read_text(encoding="utf-8"), RUNS)
    paper.write_text(filled, encoding="utf-8")
    cost = cost_picture()
    pictures += [cost] if cost is not None else []
    for picture in (*experiments_page.pictures(RUNS), *pictures):
        images.mkdir(parents=True, exist_ok=True)
        (images / f"{picture.name}.png").write_bytes(picture.png())
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    pattern = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.DOTALL)
    if not pattern.search(text):
        raise SystemExit("README.md has lost the marks between which its results stand")
    readme.write_text(pattern.sub(lambda _: f"{BEGIN}\n{summary()}\n{END}", text), encoding="utf-8")
    print("wrote docs/results.md and the results in README.md")


if __name__ == "__main__":
    main()
