"""For the reference: short doctests without a heading of their own are examples too.

In Markdown, lines that start with `>>>` would become quotations.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

HEADING = "Examples\n--------\n"


class Doctests(griffe.Extension):
    """Put the heading of examples above doctests that stand below the text."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Mend the docstring of an object that was just read."""
        if obj.docstring is None:
            return
        text = obj.docstring.value
        first = re.search(r"^>>> ", text, flags=re.MULTILINE)
        if first and not re.search(r"^Examples\n-+$", text[: first.start()], flags=re.MULTILINE):
            obj.docstring.value = text[: first.start()] + HEADING + text[first.start() :]
