"""What pages share: templates, and pictures inside the page."""

from __future__ import annotations

import base64
import io
from html import escape
from importlib.resources import files
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vaca.errors import VacaError

__all__ = ["picture", "render", "template"]


def template(name: str, room: str = "show") -> str:
    """A file of a room's templates folder."""
    return (files(f"vaca.{room}") / "templates" / name).read_text(encoding="utf-8")


def render(name: str, room: str = "show", filters: Any = None, **values: Any) -> str:
    """A page from a template of a room's templates folder; what it is given is escaped.

    A template may include others of the folder of `show`.
    """
    import jinja2

    environment = jinja2.Environment(
        autoescape=True,
        loader=jinja2.FunctionLoader(template),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(filters or {})
    return environment.from_string(template(name, room)).render(**values)


def picture(drawn: Axes | Figure, words: str, kind: str = "svg") -> str:
    """A picture as an element of a page, with words for those who do not see it."""
    figure = drawn if isinstance(drawn, Figure) else drawn.get_figure(root=True)
    if figure is None:
        raise VacaError("these axes belong to no figure")
    stream = io.BytesIO()
    figure.savefig(stream, format=kind, dpi=110, metadata={"Date": None} if kind == "svg" else None)
    mime = "image/svg+xml" if kind == "svg" else "image/png"
    content = base64.b64encode(stream.getvalue()).decode("ascii")
    # As an image of its own: ids inside one SVG then cannot meet those of another.
    return f'<img src="data:{mime};base64,{content}" alt="{escape(words, quote=True)}">'
