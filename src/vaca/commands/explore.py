"""`vaca explore`: a live page on this machine."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Annotated, Any

import typer

from vaca.commands.options import ModelArgument
from vaca.commands.reading import load_model
from vaca.commands.terminal import note, say
from vaca.commands.writing import check_folder
from vaca.errors import VacaError

LOOPBACK = ("127.0.0.1", "::1", "localhost")


def explore(
    model: ModelArgument,
    data: Annotated[
        Path,
        typer.Option(help="The table it was fitted to, or another like it.", show_default=False),
    ],
    graph_out: Annotated[
        Path, typer.Option(help="Where the page may save a changed graph.")
    ] = Path("graph.txt"),
    host: Annotated[
        str, typer.Option(help="Address to serve at; by default only this machine can reach it.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free one.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open a browser.")] = True,
) -> None:
    """Explore a model on a live page on this machine.

    Pick a person, set any columns, and see what would have been; compare everyone, or a group,
    before and after; redraw the graph, check it against the data, save it and fit again. The
    page gives the Python lines and the command behind every answer. Only this machine reaches it,
    and only with the token in its address. End it with Ctrl-C.

    Example: vaca explore model --data data.csv
    """
    if importlib.util.find_spec("starlette") is None or importlib.util.find_spec("uvicorn") is None:
        raise VacaError('explore needs a small server: pip install "vaca[explore]"')
    source = load_model(model)
    check_folder(graph_out, "--graph-out")
    from vaca.show.explore.server import serve
    from vaca.show.explore.session import Session
    from vaca.table.files import read_table

    table = read_table(data, source.schema_)
    fit = _fit_again if hasattr(source, "fit") else None
    session = Session(source, table, (model, str(data)), graph_out, fit)
    if host not in LOOPBACK:
        note(f"vaca: warning: {host} can be reached from other machines by whoever has the address")

    def started(address: str, _: Any) -> None:
        say(f"Open {address}\nEnd with Ctrl-C.")
        if browser:
            import webbrowser

            webbrowser.open(address)

    serve(session, host, port, started=started)


def _fit_again(model: Any, graph: Any, table: Any) -> Any:
    """The same kind of model for another graph."""
    from sklearn.base import clone

    fresh = clone(model).set_params(graph=graph, schema=model.schema_)
    refits = len(getattr(model, "refits_", ()))
    return fresh.fit(table, progress=False, **({"refits": refits} if refits else {}))
