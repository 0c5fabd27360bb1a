"""The command-line reference as markdown, from the commands themselves.

Run it to see the page: `python scripts/cli_reference.py`.
"""

from __future__ import annotations

from typing import Any

import typer.main

from vaca.commands.app import app


def markdown() -> str:
    """One section per command, with its help at 80 columns."""
    lines = [
        "# The command line",
        "",
        "Answers go to the terminal or to the file of `--out`, messages to stderr.",
        "Exit codes: 0, 2 on bad input (with one line that says what is wrong), 130 on Ctrl-C.",
        "",
    ]

    def section(command: Any, name: str, parent: Any, level: int) -> None:
        context = type(parent)(command, info_name=name, parent=parent) if parent else None
        if context is None:
            context = command.make_context("vaca", [], resilient_parsing=True)
        context.terminal_width = context.max_content_width = 80
        lines.extend([f"{'#' * level} `{context.command_path}`", "", "```text"])
        lines.extend([command.get_help(context).rstrip(), "```", ""])
        for child_name in getattr(command, "commands", {}):
            section(command.commands[child_name], child_name, context, level + 1)

    section(typer.main.get_command(app), "vaca", None, 2)
    return "\n".join(lines)


if __name__ == "__main__":
    print(markdown())
