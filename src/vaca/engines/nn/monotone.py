r"""Increasing maps of one number whose shape is given by parameters.

.. math:: g(z) = b + a_0 z + \sum_{k=1}^{K} a_k \tanh\big(w_k (z - t_k)\big),
          \qquad a_0, a_k, w_k > 0

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


def parameter_count(steps: int) -> int:
    """Parameters of one map with ``steps`` tanh steps.

    >>> parameter_count(8)
    26
    """
    return 2 + 3 * steps


def identity_parameters(steps: int) -> Tensor:
    """Parameters of a map near the identity, its steps spread over [-2, 2].

    Returns
    -------
    Tensor of shape (parameter_count(steps),)
    """
    start = torch.zeros(parameter_count(steps))
    start[1] = _UNIT
    start[2 : 2 + steps] = _FLAT
    start[2 + 2 * steps :] = torch.linspace(-2.0, 2.0, steps)
    return start


class Increasing:
    """Increasing maps with the given parameters, ready to be evaluated more than once.

    Parameters
    ----------
    parameters : Tensor of shape (..., 2 + 3 K)

    Examples
    --------
    >>> maps = Increasing(identity_parameters(8))
    >>> value, slope = maps(torch.linspace(-3, 3, 50))
    >>> bool((value.diff() > 0).all() and (slope > 0).all())
    True
    """

    def __init__(self, parameters: Tensor) -> None:
        steps = (parameters.shape[-1] - 2) // 3
        self.offset = parameters[..., 0]
        positive = F.softplus(parameters[..., 1 : 2 + steps])
        self.tilt = positive[..., 0]
        self.height = positive[..., 1:]
        # An exponential, so that a step can become a jump in few updates.
        self.width = parameters[..., 2 + steps : 2 + 2 * steps].clamp(max=_STEEP).exp()
        self.place = parameters[..., 2 + 2 * steps :]

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
