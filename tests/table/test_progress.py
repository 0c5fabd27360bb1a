"""The progress bar: quiet without a terminal, one at a time with one."""

import io
import sys

import pytest

from vaca.table import progress
from vaca.table.progress import progress_bar


class Screen(io.StringIO):
    def isatty(self):
        return True


def terminal(monkeypatch) -> Screen:
    screen = Screen()
    monkeypatch.setattr(progress, "DELAY", 0.0)
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    return screen


def shown(screen, bar) -> str:
    bar._screen.start()  # the timer may not have come to it
    bar._screen.refresh()
    return screen.getvalue()


def test_it_counts_and_names_steps(monkeypatch):
    screen = terminal(monkeypatch)
    with progress_bar("fit", 3, unit="columns") as bar:
        bar.begin("age")
        bar.begin("income")
        text = shown(screen, bar)
    assert "fit: income" in text and "1 of 3 columns" in text
    assert progress.screen_of_the_bar() is None


def test_it_shows_a_note_and_a_count_without_an_end(monkeypatch):
    screen = terminal(monkeypatch)
    with progress_bar("training", 10, unit="epochs", done=4) as bar:
        assert "4 of 10 epochs" in shown(screen, bar)
        bar.show(5, 8, "loss 0.5")
        text = shown(screen, bar)
        assert "5 of 8 epochs" in text and "loss 0.5" in text
    with progress_bar("reading", unit="rows") as bar:
        bar.advance(1234)
        assert "1,234 rows" in shown(screen, bar)


def test_one_at_a_time(monkeypatch):
    terminal(monkeypatch)
    with progress_bar("outer") as outer, progress_bar("inner") as inner:
        assert outer._screen is not None
        assert inner._screen is None
        assert progress.screen_of_the_bar() is not None


@pytest.mark.parametrize("wanted", [False, None, True])
def test_without_a_terminal_nothing_is_shown(wanted, capsys):
    with progress_bar("fit", 3, unit="columns", wanted=wanted) as bar:
        bar.begin("age")
        bar.advance()
        bar.show(1, 3, "loss")
    assert capsys.readouterr() == ("", "")


def test_an_error_takes_the_bar_away(monkeypatch):
    terminal(monkeypatch)
    with pytest.raises(KeyError), progress_bar("fit"):
        raise KeyError
    assert progress.screen_of_the_bar() is None
