"""Made when the documentation is built: the reference of public names, and of the commands.

Nothing of it is stored, so it cannot be out of date.
"""

from __future__ import annotations

import html
import importlib
import importlib.util
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]


#: Rooms whose names stand in `vaca` itself, in the order of the menu.
ROOMS = {
    "graph": "Graphs",
    "table": "Tables",
    "model": "Questions and answers",
    "engines": "Engines",
    "scm": "Known models",
    "trust": "How far to trust an answer",
    "errors": "Errors",
}


def public() -> dict[str, tuple[str, list[str]]]:
    """Pages of the reference: file -> title and the full names of what it lists.

    Public is what `vaca` names, and what the modules that it names list in their `__all__`.
    """
    import vaca

    pages: dict[str, tuple[str, list[str]]] = {}
    for room, title in ROOMS.items():
        homes = {n: h for n, h in vaca._HOME.items() if h.partition(".")[0] == room}
        if homes:
            pages[room] = (title, [home_of(getattr(vaca, n), n) for n in homes])
    for name, home in vaca._MODULES.items():
        module = importlib.import_module(f"vaca.{home}")
        listed = getattr(module, "__all__", [])
        found = [home_of(getattr(module, n), n) for n in listed if hasattr(module, n)]
        pages[name] = (f"vaca.{name}", [n for n in found if n])
    return pages


def home_of(thing: Any, name: str) -> str:
    """Where a public class or function is defined; empty for a constant or a module."""
    home = getattr(thing, "__module__", None)
    return f"{home}.{name}" if home and home.startswith("vaca.") else ""


def on_config(config: Any) -> Any:
    """Add the reference to the pages that are named."""
    pages = [{"Command line": "reference/cli.md"}]
    pages += [{title: f"reference/{name}.md"} for name, (title, _) in public().items()]
    config["nav"] = [*config["nav"], {"Reference": pages}]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Write the reference pages."""
    spec = importlib.util.spec_from_file_location("cli", ROOT / "scripts" / "cli_reference.py")
    if spec is None or spec.loader is None:
        raise RuntimeError("scripts/cli_reference.py cannot be read")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    files.append(File.generated(config, "reference/cli.md", content=script.markdown()))
    for name, (title, listed) in public().items():
        parts = [f"# {title}"]
        for full in listed:
            if full:
                shown = full.rpartition(".")[2]
                parts.append(f"## {shown}\n\n::: {full}")
        text = "\n\n".join(parts) + "\n"
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    return files


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Load the mending of the search before the theme's own script."""
    up = "../" * page.url.count("/")
    mark = '<script id="__config"'
    output = output.replace(mark, f'<script src="{up}from_disk.js"></script>{mark}', 1)
    # The theme's dialog has no name that a screen reader could say.
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"', 1)


def on_post_build(config: Any) -> None:
    """Let the search work from the disk too, where a page may read scripts but no other file."""
    folder = Path(config["site_dir"]) / "search"
    index = (folder / "search_index.json").read_text(encoding="utf-8")
    (folder / "search_index.js").write_text(f"var __index = {index}", encoding="utf-8")


def on_page_content(text: str, **_: Any) -> str:
    """Show the formulas of docstrings as MathML, which browsers draw without any script."""

    def block(match: re.Match[str]) -> str:
        return mathml(match[1], "block")

    def inline(match: re.Match[str]) -> str:
        return mathml(match[1], "inline")

    text = re.sub(r"<p>\.\. math:: ([^<]+)</p>", block, text)
    text = re.sub(r"<p>\.\. math::</p>\s*<pre><code>([^<]+)</code></pre>", block, text)
    return re.sub(r":math:<code>([^<]+)</code>", inline, text)


def mathml(text: str, display: str) -> str:
    """A LaTeX formula as MathML."""
    formula = html.unescape(text).strip()
    if "&" in formula or r"\\" in formula:
        formula = rf"\begin{{aligned}}{formula}\end{{aligned}}"
    return convert(formula, display=display)
