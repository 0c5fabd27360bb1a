"""`vaca graph`: look at a causal graph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vaca.commands.options import ForceOption
from vaca.commands.terminal import note
from vaca.commands.writing import check_writable
from vaca.errors import VacaError, visible

if TYPE_CHECKING:
    from rich.text import Text

    from vaca.graph.dag import CausalGraph

app = typer.Typer(
    help="Look at a causal graph.",
    epilog="Example: vaca graph show loan",
    no_args_is_help=True,
    rich_markup_mode=None,
)

PICTURES = (".png", ".svg", ".pdf")


@app.command()
def show(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Graph file (.txt edge list, .dot, .gml, .json), or a built-in SCM's name.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Also draw it to .png, .svg or .pdf.", show_default=False),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Draw a graph as text and print its facts.

    Each line is a node with its direct causes; nodes stand below everything that causes them.

    Example: vaca graph show graph.txt --out graph.png
    """
    from rich.console import Console

    if out is not None:
        if out.suffix.lower() not in PICTURES:
            raise VacaError(f"--out {out}: unknown kind of picture; use {', '.join(PICTURES)}")
        check_writable(out, force)
    graph = _load(file)
    console = Console(highlight=False, soft_wrap=True, markup=False, emoji=False)
    for line in drawing(graph):
        console.print(line)
    console.print()
    console.print(
        f"nodes {len(graph)}   edges {len(graph.edges)}   columns {len(graph.all_columns)}"
    )
    console.print(f"roots  {visible(', '.join(graph.roots))}")
    console.print(f"leaves {visible(', '.join(graph.leaves))}")
    console.print(f"delta  {graph.longest_shortest_path} (longest shortest path)")
    console.print(f"gamma  {graph.longest_path} (longest path)")
    if out is not None:
        _draw(graph, out)
        note(f"wrote {out}")


def drawing(graph: CausalGraph) -> list[Text]:
    """Give the graph as lines, one per node, layer by layer."""
    from rich.text import Text

    width = max(len(visible(node)) for node in graph.nodes)
    lines = []
    layers = graph.layers()
    for level, layer in enumerate(layers):
        for node in layer:
            line = Text("  " * level).append(visible(node), style="bold")
            columns = graph.columns(node)
            if columns != (node,):
                line.append(visible(f" ({', '.join(columns)})"))
            if graph.parents(node):
                line.append(" " * max(1, width + 2 * len(layers) - len(line)))
                line.append("<-", style="dim")
                line.append(visible(f" {', '.join(graph.parents(node))}"))
            lines.append(line)
    return lines


def _load(file: str) -> CausalGraph:
    from vaca.graph.dag import CausalGraph
    from vaca.scm import library as scms

    path = Path(file)
    if not path.exists():
        if file in scms.names():
            return scms.load(file).graph
        raise VacaError(f"{file}: no such file")
    if path.is_dir():
        raise VacaError(f"{file} is a folder; give a graph file (.txt, .dot, .gml, .json)")
    return CausalGraph.read(path)


def _draw(graph: CausalGraph, out: Path) -> None:
    from vaca.show.plot import save_picture

    save_picture(graph.plot(), out, dpi=160)
