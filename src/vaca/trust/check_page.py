"""The page of a check: one file, no script, nothing from the network."""

from __future__ import annotations

import base64
import io
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

import vaca
from vaca.table.files import complete

if TYPE_CHECKING:
    from vaca.trust.check import Check

__all__ = ["page", "section", "write_page"]


def write_page(found: Check, path: Path) -> Path:
    """Write the page, all or nothing."""
    with complete(path) as part:
        part.write_text(page(found), encoding="utf-8")
    return path


def page(found: Check) -> str:
    """The whole page as HTML."""
    return _PAGE.format(
        style=STYLE, verdict=found.verdict, rows=f"{found.rows:,}", body=section(found),
        version=escape(vaca.__version__),
    )  # fmt: skip


def section(found: Check) -> str:
    """The parts, and tables below them, as HTML; `STYLE` has its colours."""
    parts = found.parts.copy()
    body = [_strip(parts)]
    looks = found.graph.arrows.head(8)
    if len(looks):
        body += ["<h2>Arrows that deserve a second look</h2>"]
        body += [_table(looks[["words", "change", "cause", "effect", "gain"]])]
        body += [
            "<p>Hints: the graph is yours. gain: log-density per row, on rows not seen, that the "
            "change would bring.</p>"
        ]
    if len(found.graph.independences):
        tests = found.graph.independences.head(15).copy()
        tests["given"] = [", ".join(names) or "nothing" for names in tests["given"]]
        body += ["<h2>Independences that the graph implies</h2>", _table(tests)]
    body += ["<h2>Each column, given its causes</h2>", _table(found.columns.reset_index())]
    if len(found.questions):
        body += ["<h2>What can be asked</h2>", _table(found.questions.reset_index())]
        body += [_propensities(found.chances)]
    if len(found.axioms):
        body += ["<h2>Axioms of counterfactuals</h2>", _table(found.axioms.reset_index())]
    if len(found.engines):
        body += ["<h2>Main effects by another engine</h2>", _table(found.engines)]
    return "\n".join(body)


def _strip(parts: pd.DataFrame) -> str:
    lines = [
        f'<tr><th scope="row">{escape(line.part)}</th>'
        f'<td><span class="verdict {line.verdict}">{line.verdict}</span></td>'
        f'<td>{escape(line.words)}</td><td class="n">{line.figure:.3g}</td>'
        f"<td>{escape(line.reference)}</td></tr>"
        for line in parts.itertuples()
    ]
    head = "<tr><th>part</th><th>verdict</th><th></th><th>figure</th><th>reference</th></tr>"
    return f'<div class="wide"><table>{head}{"".join(lines)}</table></div>'


def _table(frame: pd.DataFrame) -> str:
    def cell(value: Any) -> str:
        if isinstance(value, float):
            text = "" if value != value else f"{value:.3g}"
            return f'<td class="n">{text}</td>'
        return f"<td>{escape(str(value))}</td>"

    head = "".join(f"<th>{escape(str(name))}</th>" for name in frame.columns)
    rows = "".join(
        f"<tr>{''.join(cell(value) for value in row)}</tr>"
        for row in frame.itertuples(index=False, name=None)
    )
    return f'<div class="wide"><table><tr>{head}</tr>{rows}</table></div>'


def _propensities(chances: dict[str, pd.DataFrame]) -> str:
    """The chance of the treatment's last value, for rows that have it and rows that do not."""
    if not chances:
        return ""
    from matplotlib.figure import Figure

    shown = list(chances.items())[:6]
    columns = min(3, len(shown))
    rows = -(-len(shown) // columns)
    figure = Figure(figsize=(3.2 * columns, 2.4 * rows), layout="constrained")
    for place, (name, chance) in enumerate(shown, start=1):
        ax = figure.add_subplot(rows, columns, place)
        for has, colour, hatch in ((False, "#0072b2", ""), (True, "#d55e00", "//")):
            ax.hist(
                chance["chance"][chance["has"] == has], bins=20, range=(0, 1), alpha=0.6,
                color=colour, hatch=hatch, label="has it" if has else "has it not",
            )  # fmt: skip
        ax.set_title(name.replace("$", r"\$"), fontsize=10)
        ax.set_yticks([])
    figure.axes[0].legend(fontsize=8)
    figure.supxlabel("chance of the last value compared, given the causes", fontsize=9)
    out = io.BytesIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    data = base64.b64encode(out.getvalue()).decode()
    text = "Overlap: the chance of a treatment for rows with and without it"
    return f'<img alt="{text}" src="data:image/svg+xml;base64,{data}">'


STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff;
  max-width: 64rem; margin: 0 auto; padding: 1rem; overflow-wrap: break-word; }
h1 { font-size: 1.8rem; } h2 { margin-top: 2.5rem; border-bottom: 2px solid #1a1a1a; }
table { border-collapse: collapse; font-size: .9rem; margin: 1rem 0; }
th, td { text-align: left; vertical-align: top; padding: .25rem .8rem .25rem 0;
  border-bottom: 1px solid #d0d0d0; }
td.n { text-align: right; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; } img { max-width: 100%; height: auto; }
.verdict { padding: .1rem .5rem; border-radius: .3rem; color: #fff; }
.good { background: #00664b; } .doubtful { background: #8a5a00; } .bad { background: #a8200d; }
@media print { .wide { overflow: visible; } tr, img { break-inside: avoid; } }
"""

_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Check: {verdict}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<h1>Can this model be relied on? <span class="verdict {verdict}">{verdict}</span></h1>
<p>{rows} rows. The verdict is the worst of the parts. It speaks of what data can show: a graph that
passes may still be wrong, and a hidden cause may leave no trace.</p>
{body}
<p>vaca {version}</p>
</body>
</html>
"""
