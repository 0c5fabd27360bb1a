"""Tables as values: what stands in which cell, and the same table as text, CSV, LaTeX and HTML."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["Cell", "Table", "to_csv", "to_html", "to_latex", "to_markdown", "to_rich"]

Tone = Literal["better", "worse", "same", "none"]


@dataclass(frozen=True)
class Cell:
    """One cell: a mean with its sd, or a text; whether it is good news; and what to say about it.

    Attributes
    ----------
    mean, sd : float, optional
        Shown as ``mean ± sd``; the sd is left out if it is None.
    text : str
        Shown if there is no mean.
    tone : {"better", "worse", "same", "none"}
        Against what was published.
    note : str
        More about the cell; on the HTML page it stands below it.
    mark : str
        A footnote sign.
    interval : (float, float), optional
        Of the mean; shown in brackets.
    """

    mean: float | None = None
    sd: float | None = None
    text: str = ""
    tone: Tone = "none"
    note: str = ""
    mark: str = ""
    interval: tuple[float, float] | None = None

    def plain(self, times: str = " ± ") -> str:
        """The cell as text."""
        if self.mean is None:
            return self.text + self.mark
        spread = "" if self.sd is None else f"{times}{number(self.sd)}"
        between = "" if self.interval is None else f" [{_between(self.interval, ', ')}]"
        return number(self.mean) + spread + between + self.mark


def _between(interval: tuple[float, float], to: str = " to ") -> str:
    return f"{number(interval[0])}{to}{number(interval[1])}"


@dataclass(frozen=True)
class Table:
    """A title, a head and rows of cells; the first columns name the row.

    Attributes
    ----------
    title, caption : str
    head : tuple of str
    rows : tuple of tuple of Cell
    names : int
        How many columns name the row.
    notes : tuple of str
        Footnotes.
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    names: int = 1
    caption: str = ""
    notes: tuple[str, ...] = field(default=())


def number(value: float) -> str:
    """Two decimals, as in the paper; more where that would show nothing.

    >>> number(12.345), number(0.004), number(1234.5), number(1e-15)
    ('12.35', '0.004', '1234.5', '0.00')
    """
    if abs(value) < 1e-9:  # rounding
        return "0.00"
    if abs(value) >= 1000:
        return f"{value:.1f}"
    return f"{value:.2f}" if abs(value) >= 0.01 else f"{value:.1g}"


def to_markdown(table: Table) -> str:
    """The table in Markdown; what is better than published is bold, what is worse is in italics."""
    marks = {"better": "**", "worse": "*"}

    def shown(cell: Cell) -> str:
        mark = marks.get(cell.tone, "")
        return f"{mark}{cell.plain().replace('|', '/')}{mark}"

    align = [":--"] * table.names + ["--:"] * (len(table.head) - table.names)
    lines = [_pipes(table.head), _pipes(align), *(_pipes(map(shown, row)) for row in table.rows)]
    text = "\n".join(lines) + "\n"
    if table.notes:
        text += "\n" + "\n".join(f"{note}  " for note in table.notes) + "\n"
    return text


def _pipes(cells: Any) -> str:
    return "| " + " | ".join(cells) + " |"


def to_csv(table: Table) -> str:
    """The table as CSV, means and sds in columns of their own."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    head = list(table.head[: table.names])
    for title in table.head[table.names :]:
        head += [title, f"{title} sd", f"{title} note"]
    writer.writerow(head)
    for row in table.rows:
        line: list[Any] = [cell.plain() for cell in row[: table.names]]
        for cell in row[table.names :]:
            note = cell.note or ("" if cell.interval is None else _between(cell.interval))
            line += [_exact(cell.mean, cell.text), _exact(cell.sd, ""), note]
        writer.writerow(line)
    return out.getvalue()


def _exact(value: float | None, text: str) -> str:
    return text if value is None else f"{value:.6g}"


_LATEX = {"&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "±": r"$\pm$", "†": r"$\dagger$"}


def to_latex(table: Table) -> str:
    """The table as a LaTeX ``tabular`` (needs booktabs); better than published is bold."""

    def escape(text: str) -> str:
        return "".join(_LATEX.get(character, character) for character in text)

    def shown(cell: Cell) -> str:
        text = escape(cell.plain("±"))
        return rf"\textbf{{{text}}}" if cell.tone == "better" else text

    align = "l" * table.names + "r" * (len(table.head) - table.names)
    lines = [rf"\begin{{tabular}}{{{align}}}", r"\toprule"]
    lines += [" & ".join(map(escape, table.head)) + r" \\", r"\midrule"]
    group = None
    for row in table.rows:
        if group is not None and row[0].text != group:
            lines.append(r"\midrule")
        group = row[0].text
        lines.append(" & ".join(map(shown, row)) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


_STYLE = """
figure { overflow-x: auto; } caption { text-align: left; padding: .4rem 0; }
th, td { padding: .25rem .6rem; text-align: right; white-space: nowrap; font-size: 13px; }
.name { text-align: left; } small { display: block; color: var(--soft); }
.better, .worse { color: #1c2126; } .better { background: #dcf3e3; } .worse { background: #fbe0dd; }
.better small, .worse small { color: #48505a; } .same { background: var(--card); }
tr.first td { border-top: 2px solid var(--still); }
""".strip()


def to_html(title: str, parts: Sequence[Table | str], introduction: str = "") -> str:
    """A page of tables and of ready-made HTML, for a browser without a network."""
    from vaca.show.pages import template

    body = [part if isinstance(part, str) else _html_table(part) for part in parts]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{html.escape(title)}</title>\n"
        f"<style>\n{template('page.css')}{_STYLE}\n</style></head>\n"
        f'<body class="wide-page"><h1>{html.escape(title)}</h1>\n{introduction}\n'
        + "\n".join(body)
        + "</body></html>\n"
    )


def _html_table(table: Table) -> str:
    lines = [f"<h2>{html.escape(table.title)}</h2>", "<figure><table>"]
    if table.caption:
        lines.append(f"<caption>{html.escape(table.caption)}</caption>")
    head = [
        f'<th scope="col" class="{"name" if i < table.names else ""}">{html.escape(title)}</th>'
        for i, title in enumerate(table.head)
    ]
    lines.append("<thead><tr>" + "".join(head) + "</tr></thead><tbody>")
    group = None
    for row in table.rows:
        kind = ' class="first"' if row[0].text != group else ""
        group = row[0].text
        cells = []
        for i, cell in enumerate(row):
            note = f"<small>{html.escape(cell.note)}</small>" if cell.note else ""
            css = "name" if i < table.names else cell.tone
            cells.append(f'<td class="{css}">{html.escape(cell.plain())}{note}</td>')
        lines.append(f"<tr{kind}>" + "".join(cells) + "</tr>")
    lines.append("</tbody></table></figure>")
    lines += [f"<p>{html.escape(note)}</p>" for note in table.notes]
    return "\n".join(lines)


def to_rich(table: Table) -> Any:
    """The table for a terminal."""
    from rich.table import Table as Rich
    from rich.text import Text

    styles = {"better": "green", "worse": "red", "same": "", "none": ""}
    out = Rich(title=table.title, caption=table.caption or None, box=None, title_justify="left")
    for i, title in enumerate(table.head):
        out.add_column(title, justify="left" if i < table.names else "right", no_wrap=True)
    group = None
    for row in table.rows:
        if group is not None and row[0].text != group:
            out.add_section()
        group = row[0].text
        # An interval goes below its mean: on one line, columns would not fit a terminal.
        texts = [cell.plain().replace(" [", "\n[") for cell in row]
        out.add_row(*(Text(t, style=styles[c.tone]) for t, c in zip(texts, row, strict=True)))
    return out
