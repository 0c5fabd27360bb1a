"""The paper's two design conditions, looked at: which derivatives a network can have at all.

The networks are not trained: what their layers cannot carry, no training can add.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vaca.reproduction.figures import Picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["decoder_jacobian", "encoder_jacobian", "jacobian_picture"]

CHAIN = ((), (0,), (1,))
TRIANGLE = ((), (0,), (0, 1))
ROWS = 64


def _network(parents: Sequence[Sequence[int]], **settings: Any) -> Any:
    import torch

    from vaca.engines.nn.likelihoods import Discrete
    from vaca.engines.nn.state_network import StateNetwork

    nodes = range(len(parents))
    return StateNetwork(
        parents,
        [[i] for i in nodes],
        [Discrete("continuous") for _ in nodes],
        generator=torch.Generator().manual_seed(0),
        **settings,
    ).eval()


def _sizes(outputs: Any, inputs: Any) -> np.ndarray:
    """Mean size of the derivatives (outputs, inputs), over rows and latent dimensions."""
    import torch

    table = []
    for output in outputs:
        (slope,) = torch.autograd.grad(output.sum(), inputs, retain_graph=True)
        table.append(slope.abs().flatten(1).mean(1))
    return torch.stack(table).numpy()


def decoder_jacobian(
    parents: Sequence[Sequence[int]], hidden_layers: int, *, alone: int | None = None
) -> np.ndarray:
    """Mean size of dx_i / dz_j (nodes, nodes) of a decoder; `alone` has lost its incoming arrows.

    >>> decoder_jacobian(CHAIN, 0)[2, 0]  # x1 reaches x3 over two arrows, and one layer has one
    np.float32(0.0)
    >>> bool(decoder_jacobian(CHAIN, 1)[2, 0] > 0)
    True
    """
    import torch

    net = _network(parents, hidden_layers=hidden_layers)
    z = torch.randn(len(parents), ROWS, net.latent, generator=torch.Generator().manual_seed(1))
    z.requires_grad_(True)
    cut = torch.zeros(len(parents), 1, dtype=torch.bool)
    if alone is not None:
        cut[alone] = True
    return _sizes(net.decode(z, net.cut(cut))[..., 0], z)


def encoder_jacobian(parents: Sequence[Sequence[int]], hidden_layers: int) -> np.ndarray:
    """Mean size of d(mean of z_i) / dx_j (nodes, nodes) of an encoder.

    >>> encoder_jacobian(CHAIN, 0)[2, 0]  # x1 is no parent of x3
    np.float32(0.0)
    >>> bool(encoder_jacobian(CHAIN, 1)[2, 0] > 0)
    True
    """
    import torch

    net = _network(parents, encoder_rounds=1 + hidden_layers)
    x = torch.randn(len(parents), ROWS, generator=torch.Generator().manual_seed(1))
    x.requires_grad_(True)
    return _sizes(net.encode(x)[0], x)


def jacobian_picture() -> Picture:
    """Six Jacobians: decoders and encoders that keep the conditions, and some that break them."""
    panels = [
        ("chain, decoder, 0 hidden layers:\nz1 cannot reach x3", decoder_jacobian(CHAIN, 0), "z"),
        ("chain, decoder, 1 hidden layer:\nz1 reaches x3", decoder_jacobian(CHAIN, 1), "z"),
        ("chain, encoder, 0 hidden layers:\nz3 sees x2 and x3", encoder_jacobian(CHAIN, 0), "x"),
        ("triangle, what do(x2) changes,\n0 hidden layers: nothing at x3", _change(0), "z"),
        ("triangle, what do(x2) changes,\n1 hidden layer: the path by x2", _change(1), "z"),
        ("chain, encoder, 1 hidden layer:\nz3 sees x1, no parent", encoder_jacobian(CHAIN, 1), "x"),
    ]
    caption = (
        "Mean size of the derivative of a row's quantity (down) by a column's (across); white is "
        "exactly zero, in any network of this depth. Left and middle: condition 1 on the decoder; "
        "right: condition 2 on the encoder. For the triangle, what an intervention on x2 "
        "changes of the derivatives."
    )
    title = "The two design conditions as Jacobians"
    alt = (
        "Six small tables of derivatives: without a hidden layer the chain's decoder has a zero "
        "from z1 to x3 and with one it has none; a hidden layer in the encoder lets z3 see x1."
    )
    return Picture("figure-jacobians", title, _draw(panels), caption, alt)


def _change(hidden_layers: int) -> np.ndarray:
    """How the derivatives change at the nodes below when x2 of the triangle is cut off."""
    before = decoder_jacobian(TRIANGLE, hidden_layers)
    after = decoder_jacobian(TRIANGLE, hidden_layers, alone=1)
    return np.abs(after - before)


def _draw(panels: list[tuple[str, np.ndarray, str]]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 6.8), layout="constrained")
    for axis, (title, table, inputs) in zip(figure.subplots(2, 3).ravel(), panels, strict=True):
        shown = np.where(table > 0, table / table.max(), np.nan)
        axis.imshow(shown, cmap="Blues", vmin=-0.4, vmax=1.0)
        names = range(1, len(table) + 1)
        outputs = "z" if inputs == "x" else "x"
        axis.set_xticks(range(len(table)), [f"{inputs}{k}" for k in names])
        axis.set_yticks(range(len(table)), [f"{outputs}{k}" for k in names])
        for (row, column), value in np.ndenumerate(table):
            text = "0" if value == 0 else f"{value:.2f}"
            colour = "white" if value > 0.6 * table.max() else "black"
            axis.text(column, row, text, ha="center", va="center", color=colour, fontsize=11)
        axis.set_title(title, fontsize=10)
    return figure
