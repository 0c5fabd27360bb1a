"""Made when the documentation is built: a reference page per module, and one for the commands.

Nothing of it is stored, so it cannot be out of date.
"""

from __future__ import annotations

import html
import importlib.util
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "vaca"


def modules() -> list[str]:
    """The modules and packages of vaca, without the command line."""
    files = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__", "__main__", "cli"}
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")} - {"commands"}
    return sorted(files | packages)


def on_config(config: Any) -> Any:
    """Add the reference to the pages that are named."""
    pages = [{"Command line": "reference/cli.md"}]
    pages += [{f"vaca.{name}": f"reference/{name}.md"} for name in modules()]
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
    for name in modules():
        text = f"# vaca.{name}\n\n::: vaca.{name}\n"
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    return files


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
