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
    start[2 + steps : 2 + 2 * steps] = _UNIT
    start[2 + 2 * steps :] = torch.linspace(-2.0, 2.0, steps)
    return start


def increasing(parameters: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
    """The map and its slope.

    Parameters
    ----------
    parameters : Tensor of shape (..., 2 + 3 K)
    z : Tensor of shape (...), broadcast against the parameters' leading shape

    Returns
    -------
    value, slope : Tensors of the broadcast shape; the slope is positive.

    Examples
    --------
    >>> value, slope = increasing(identity_parameters(8), torch.linspace(-3, 3, 50))
    >>> bool((value.diff() > 0).all() and (slope > 0).all())
    True
    """
    steps = (parameters.shape[-1] - 2) // 3
    offset, tilt, height, width, place = torch.split(parameters, [1, 1, steps, steps, steps], -1)
    tilt, height, width = F.softplus(tilt), F.softplus(height), F.softplus(width)
    bent = torch.tanh(width * (z.unsqueeze(-1) - place))
    value = offset.squeeze(-1) + tilt.squeeze(-1) * z + (height * bent).sum(-1)
    slope = tilt.squeeze(-1) + (height * width * (1.0 - bent.square())).sum(-1)
    return value, slope
