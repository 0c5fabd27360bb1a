r"""Increasing maps of one number whose shape is given by parameters.

.. math:: g(z) = b + a_0 z + \sum_{k=1}^{K} a_k \tanh\big(w_k (z - t_k)\big),
          \qquad a_0, a_k \ge 0, \quad w_k > 0

The tilt :math:`a_0` and the heights :math:`a_k` are softplus of a parameter each, or sums of two
squares. Squares reach zero, and as the square of a line: what x3 = x1² u needs near x1 = 0.
Softplus only comes near it, by parameters that run off.

A decoder that is increasing in its own latent keeps the order of the noise: for given parents a
larger :math:`z_i` always means a larger :math:`x_i`, which is what makes its counterfactuals the
ones of a structural equation with monotone noise.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

_UNIT = math.log(math.expm1(1.0))  # softplus of this is 1
_STEEP = 5.0  # the logarithm of the steepest step
_FLAT = -3.0  # softplus of this is 0.05: a step that is hardly there yet
_LOW = math.log1p(math.exp(_FLAT))
#: How fast the root of a height follows its parameters. At 1, shapes change with every parent by
#: chance, as decay holds the weights of all outputs alike.
_ROOT = 0.4


def parameter_count(steps: int, *, squares: bool = False) -> int:
    """Parameters of one map with ``steps`` tanh steps.

    >>> parameter_count(8), parameter_count(8, squares=True)
    (26, 35)
    """
    return 3 + 4 * steps if squares else 2 + 3 * steps


def identity_parameters(steps: int, *, squares: bool = False) -> Tensor:
    """Parameters of a map near the identity, its steps spread over [-2, 2].

    Returns
    -------
    Tensor of shape (parameter_count(steps),)
    """
    start = torch.zeros(parameter_count(steps, squares=squares))
    start[1] = 1.0 / _ROOT if squares else _UNIT
    start[2 : 2 + steps] = math.sqrt(_LOW) / _ROOT if squares else _FLAT
    start[len(start) - steps :] = torch.linspace(-2.0, 2.0, steps)
    return start


class Increasing:
    """Increasing maps with the given parameters, ready to be evaluated more than once.

    Parameters
    ----------
    parameters : Tensor of shape (..., parameter_count(K))
    squares : bool
        Whether heights are sums of two squares.

    Examples
    --------
    >>> maps = Increasing(identity_parameters(8))
    >>> value, slope = maps(torch.linspace(-3, 3, 50))
    >>> bool((value.diff() > 0).all() and (slope > 0).all())
    True
    """

    def __init__(self, parameters: Tensor, *, squares: bool = False) -> None:
        steps = (parameters.shape[-1] - 3) // 4 if squares else (parameters.shape[-1] - 2) // 3
        heights = parameters.shape[-1] - 1 - 2 * steps
        self.offset, raw, width, self.place = parameters.split([1, heights, steps, steps], -1)
        self.offset = self.offset.squeeze(-1)
        if squares:
            one, other = (_ROOT * raw).square().chunk(2, -1)
            positive = one + other
        else:
            positive = F.softplus(raw)
        self.tilt, self.height = positive[..., 0], positive[..., 1:]
        # An exponential, so that a step can become a jump in few updates.
        self.width = width.clamp(max=_STEEP).exp()

    def spread(self) -> Tensor:
        """How far the map goes for a latent of 1: 0 where all latents give the same value."""
        return self.tilt + self.height.sum(-1)

    def __call__(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Value and slope at ``z``, which is broadcast against the leading shape."""
        bent = torch.tanh(self.width * (z.unsqueeze(-1) - self.place))
        value = self.offset + self.tilt * z + (self.height * bent).sum(-1)
        slope = self.tilt + (self.height * self.width * (1.0 - bent.square())).sum(-1)
        return value, slope

    def value(self, z: Tensor) -> Tensor:
        """The value alone."""
        bent = torch.tanh(self.width * (z.unsqueeze(-1) - self.place))
        return self.offset + self.tilt * z + (self.height * bent).sum(-1)
