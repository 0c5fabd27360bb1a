"""One self-contained page about a model: the answer, how far to trust it, pictures, what if.

The page needs no network; its pictures, its numbers and its one small script are inside it, and
without scripts it shows a plain picture instead. It reads on a phone and prints to PDF.
"""

from vaca.show.report.page import report_html, write_report
from vaca.show.report.question import Question, default_effects

__all__ = ["Question", "default_effects", "report_html", "write_report"]
