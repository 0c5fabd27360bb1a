"""Pictures of graphs, answers and training; `vaca.plot` is this package.

Each picture of one panel takes an `ax` and gives an Axes; each of several panels gives a Figure.
Nothing here touches pyplot's state, so pictures can be made on a server and in threads. Series
differ by line style, marker or hatch as well as by colour, and people with any form of
colour-blindness can tell the colours apart, so that the pictures also read in black and white.
"""

from vaca.show.plot.audit import plot_frontier, plot_gaps, plot_sizes, plot_waterfall
from vaca.show.plot.effects import effect_label, plot_effects, plot_history
from vaca.show.plot.graph import plot_graph
from vaca.show.plot.pairs import plot_pairs
from vaca.show.plot.parts import COLOURS, ENGINE_COLOURS, save_picture, with_levels
from vaca.show.plot.person import plot_person
from vaca.show.plot.population import plot_densities, plot_population

__all__ = [
    "plot_graph",
    "plot_person",
    "plot_population",
    "plot_densities",
    "plot_effects",
    "plot_history",
    "plot_pairs",
    "plot_waterfall",
    "plot_gaps",
    "plot_sizes",
    "plot_frontier",
    "save_picture",
    "with_levels",
    "effect_label",
    "COLOURS",
    "ENGINE_COLOURS",
]
