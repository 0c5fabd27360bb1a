"""What a mechanism of a number is made of: everything except its fitted numbers."""

from __future__ import annotations

from dataclasses import dataclass

from vaca.engines.mechanisms.scale import PLAIN

__all__ = ["SPREADS", "Recipe"]


@dataclass(frozen=True)
class Recipe:
    """What is to be fitted: everything about a mechanism except its numbers.

    Attributes
    ----------
    curves, depth : int, int or None
        The design of the location (see `designs.Design`).
    trees : bool
        Whether boosted trees add what the design leaves.
    spread : str
        Design of the scale: "" (the same for all rows), "linear", "curves", "surfaces" of its
        logarithm; "plain curves", "plain surfaces", "plain squares" (also "with products") of
        itself.
    robust : bool
        Whether far residuals count less.
    scale : tuple
        Kind, low and high of `Scale`.
    count : bool
        Whether values are cells of counts.
    proportional : bool
        On a logarithmic scale: the design gives the distance from the wall itself, which noise
        multiplies, and not its logarithm.
    steps : bool
        Whether the location may jump where an input passes a value.
    added : bool
        Whether a part of the noise is the same for all rows, whatever their spread.
    """

    curves: int = 0
    depth: int | None = None
    trees: bool = False
    spread: str = ""
    robust: bool = False
    scale: tuple[int, float, float] = (0, 0.0, 1.0)
    count: bool = False
    proportional: bool = False
    steps: bool = False
    added: bool = False

    @property
    def additive(self) -> bool:
        """Whether noise is added, the same for all rows."""
        return not self.spread and self.scale[0] in PLAIN and not self.count

    def place(self) -> str:
        """The location in words."""
        names = {
            (0, None): "linear", (0, 0): "linear with products",
            (1, None): "curves", (1, 0): "curves with products",
            (1, 1): "varying curves", (1, 2): "surfaces",
            (2, None): "squares", (2, 0): "squares with products",
            (3, None): "cubes", (3, 0): "cubes with products",
        }  # fmt: skip
        text = names[self.curves, self.depth] + (" with steps" if self.steps else "")
        return text + (", then trees" if self.trees else "")

    def words(self, place: str = "") -> str:
        """What a person reads in the leaderboard; ``place`` in place of its own location."""
        text = place or self.place()
        text += f", spread {self.spread}" if self.spread else ""
        text += ", partly added" if self.added else ""
        text += ", robust" if self.robust else ""
        if self.proportional:
            return f"in proportion: {text}"
        return ("", "log: ", "logit: ", "log from above: ", "")[self.scale[0]] + text


SPREADS = {
    "linear": {"curves": False, "depth": None},
    "curves": {"curves": True, "depth": None},
    "surfaces": {"curves": True, "depth": 2},
    "plain curves": {"curves": True, "depth": None},
    "plain surfaces": {"curves": True, "depth": 2},
    "plain squares": {"curves": 2, "depth": None},
    "plain squares with products": {"curves": 2, "depth": 0},
}
