"""The command line: `vaca`. It names the commands and turns errors into one line each.

To add a command, write `vaca/commands/<name>.py` with a function whose signature and docstring are
the command's, and name it in the list below.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from vaca import __version__
from vaca.commands import (
    audit,
    check,
    counterfactual,
    do,
    effect,
    explore,
    fit,
    graph,
    init,
    report,
    reproduce,
    sample,
    scms,
)
from vaca.commands.terminal import note
from vaca.errors import VacaError, VacaWarning

app = typer.Typer(
    name="vaca",
    help="A table and a causal graph in; interventional and counterfactual answers out.",
    epilog="Example: vaca init data.csv, or on a built-in model: vaca do loan --do age+=5",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: the rich one takes longer to import than all else
)

# In the order of the help.
app.command()(init.init)
app.command()(fit.fit)
app.command()(sample.sample)
app.command()(do.do)
app.command()(counterfactual.counterfactual)
app.command()(effect.effect)
app.command()(audit.audit)
app.command()(check.check)
app.command()(report.report)
app.command()(explore.explore)
app.command()(scms.scms)
app.add_typer(graph.app, name="graph")
app.command()(reproduce.reproduce)


#: Signals that asked this process to end.
_ended: list[int] = []
#: Seconds after which one that did not end is asked again.
AGAIN = 1.0
#: How libraries without `MemoryError` say that memory ran out.
_NO_MEMORY = ("allocate memory", "not enough memory", "start new thread", "bad_alloc")
#: Whether memory ran out: libraries that were half loaded then may not survive a clean exit.
_exhausted: list[bool] = []


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"vaca {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0, 2 on bad input, 130 when interrupted, 143 when ended."""
    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        signal.signal(number, _end)
    os.environ["MPLBACKEND"] = "agg"  # pictures go to files, whatever a session has set
    code = run(arguments) if _has_folder() else 2
    if code in (130, 143) or _exhausted:
        # Python ends by the signal itself, and not with this code, if Ctrl-C came at certain
        # moments of an import; leave without asking it.
        shared: Any = sys.modules.get("multiprocessing.util")
        if shared is not None:
            with contextlib.suppress(BaseException):
                shared._run_finalizers()  # or a helper of joblib's complains of what is left
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _has_folder() -> bool:
    """Whether the current folder still exists; without it, libraries end the process."""
    try:
        os.getcwd()
    except OSError:
        _streams()
        _bad_input("the folder that this was started in is gone; go to another and try again")
        return False
    return True


def _streams() -> None:
    """Make the standard streams take any text, and stand in for those that are closed."""
    try:
        while (spare := os.open(os.devnull, os.O_RDWR)) <= 2:
            pass  # or the first file that is opened would be written to by every message
        os.close(spare)
    except OSError:
        return
    for name, number in (("stdout", 1), ("stderr", 2)):
        stream = getattr(sys, name)
        if stream is None:
            stream = open(number, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)
        if hasattr(stream, "reconfigure"):
            # A name in any bytes, and any letter on a terminal that has ASCII only.
            stream.reconfigure(errors="backslashreplace")


def _as_typed(text: str) -> str:
    """Advice for Python, written as an option.

    >>> _as_typed("or fit with missing='model'")
    'or fit with --missing model'
    """
    return re.sub(r"\bmissing='(\w+)'", r"--missing \1", text)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and give the exit code.

    Bad input is one line on stderr and exit code 2, a warning one line on stderr.
    """
    _streams()
    said: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = _as_typed(" ".join(str(message).split()))
        if text not in said:  # a command may ask the model twice, and needs no second warning
            said.add(text)
            note(f"vaca: warning: {text}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", VacaWarning)
        warnings.showwarning = show
        try:
            code = app(
                args=None if arguments is None else list(arguments),
                prog_name="vaca",
                standalone_mode=False,
            )
        except KeyboardInterrupt:
            return _interrupted()
        except Exception as error:
            # The parser's form of Ctrl-C; or what Python makes of one while a class is being made.
            if type(error).__name__ == "Abort" or _on_its_way_out(error):
                return _interrupted()
            return _told(error)
    if code == 130:
        return _interrupted()
    try:
        sys.stdout.flush()
    except OSError as error:  # the last words did not fit on the disk
        return _bad_input(_message(error))
    return code if isinstance(code, int) else 0


def _told(error: Exception) -> int:
    """Say in one line what went wrong; an unexpected error is raised again."""
    if isinstance(error, VacaError | OSError):
        return _bad_input(_as_typed(_message(error)))
    if isinstance(error, ImportError):
        _exhausted.append(True)
        why = " ".join(str(error).split()).rstrip(".")
        return _bad_input(f"a library could not be loaded: {why}. Is there enough memory?")
    short = isinstance(error, RuntimeError) and any(t in str(error) for t in _NO_MEMORY)
    if short or isinstance(error, MemoryError):
        return _out_of_memory()
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(error.ctx.get_help(), err=True)  # type: ignore[attr-defined]
        return 2
    if hasattr(error, "format_message"):  # the parser's usage errors
        return _bad_input(error.format_message())  # type: ignore[attr-defined]
    raise error


def _message(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}"
    return str(error)


def _bad_input(message: str) -> int:
    note(f"vaca: {' '.join(message.split())}")
    return 2


def _out_of_memory() -> int:
    _exhausted.append(True)
    return _bad_input("there is not enough memory for this; try fewer rows, draws or processes")


def _end(number: int, frame: Any) -> None:
    """Being asked to end is as good as Ctrl-C: what is half done is cleaned up on the way out."""
    _ended.append(number)
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, _end_again)
        signal.setitimer(signal.ITIMER_REAL, AGAIN, AGAIN)
    raise KeyboardInterrupt


def _end_again(number: int, frame: Any) -> None:
    """Ask once more, unless it is on its way out.

    An interrupt that comes inside a library's own clean-up (a weak reference, a finalizer) is
    printed or dropped there, and the command would go on as if nothing had been said.
    """
    if not _on_its_way_out(sys.exc_info()[1]):
        raise KeyboardInterrupt


def _on_its_way_out(error: BaseException | None) -> bool:
    """Whether an interrupt is behind this error."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__context__
    return False


def _interrupted() -> int:
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0)
    note("vaca: ended by a signal" if _ended else "vaca: interrupted")
    return 143 if _ended else 130


if __name__ == "__main__":
    main()
