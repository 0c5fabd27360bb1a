"""`vaca scms`: the built-in structural causal models."""

from __future__ import annotations

from vaca.commands.terminal import echo


def scms() -> None:
    """List the built-in structural causal models.

    The delta of a graph is its longest shortest path, its gamma the longest path.

    Example: vaca scms
    """
    from rich.console import Console
    from rich.table import Table

    import vaca.scm.library as library

    table = Table(box=None, pad_edge=False, header_style="bold")
    names = library.names()
    table.add_column("name", no_wrap=True, min_width=max(len(name) for name in names))
    for title in ("nodes", "edges", "delta", "gamma"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("columns")
    for name in names:
        graph = library.load(name).graph
        table.add_row(
            name,
            str(len(graph)),
            str(len(graph.edges)),
            str(graph.longest_shortest_path),
            str(graph.longest_path),
            ", ".join(graph.all_columns),
        )
    console = Console()
    console.print(table)
    echo("\nTry: vaca sample triangle-nlin -n 5 --do x2=0.5 --seed 1")
