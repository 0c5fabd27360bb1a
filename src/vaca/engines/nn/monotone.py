r"""Increasing maps of one number whose shape is given by parameters.

.. math:: g(z) = b + a_0 z + \sum_{k=1}^{K} a_k \tanh\big(w_k (z - t_k)\big),
          \qquad a_0, a_k \ge 0, \quad w_k > 0

In the form "softplus" the tilt :math:`a_0` and the heights :math:`a_k` are softplus of a parameter
each. The decoder's form is "scaled": a smooth part and a part of steps, each with one scale,

.. math:: g(z) = b + s_0 \big(c_0 + a_0 z + a_+ z_+^2 - a_- z_-^2\big)
                   + s_1 \Big(c_1 + \sum_{k=1}^{K} a_k \tanh\big(w_k (z - t_k)\big)\Big)

with scales that are sums of two squares. Squares reach zero, and as the square of a line: what
x3 = x1² u needs near x1 = 0; softplus only comes near it, by parameters that run off. And one scale
takes a whole part there at once: heights that each follow the parents on their own meet zero at
different places, and the shape that few rows show is not the one that many rows show.

In the form "squares", that of revision 2 of `vaca.VACA`, every height is a sum of two squares and
there are no scales.

A decoder that is increasing in its own latent keeps the order of the noise: for given parents a
larger :math:`z_i` always means a larger :math:`x_i`, which is what makes its counterfactuals the
ones of a structural equation with monotone noise.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

Form = Literal["softplus", "squares", "scaled"]

_UNIT = math.log(math.expm1(1.0))  # softplus of this is 1
_STEEP = 5.0  # the logarithm of the steepest step
_FLAT = -3.0  # softplus of this is 0.05: a step that is hardly there yet
_LOW = math.log1p(math.exp(_FLAT))
#: How fast the root of a height follows its parameters (form "squares"). At 1, shapes change with
#: every parent by chance, as decay holds the weights of all outputs alike.
_ROOT = 0.4
#: The form "scaled": how fast the root of a scale and the steepness of a step follow their
#: parameters, how much of the output of a network reaches shapes, and the tails at the start.
SCALE, _JUMP, _PACE, _TAIL = 3.0, 3.0, 0.05, 0.02
#: Parameters of the form "scaled" up to the end of its roots: the offset and two for each scale.
ROOTS = 5


def parameter_count(steps: int, *, form: Form = "softplus") -> int:
    """Parameters of one map with ``steps`` tanh steps.

    >>> [parameter_count(8, form=form) for form in ("softplus", "squares", "scaled")]
    [26, 35, 34]
    """
    return {"softplus": 2, "squares": 3 + steps, "scaled": 10}[form] + 3 * steps


def identity_parameters(steps: int, *, form: Form = "softplus") -> Tensor:
    """Parameters of a map near the identity, its steps spread over [-2, 2].

    Returns
    -------
    Tensor of shape (parameter_count(steps),)
    """
    start = torch.zeros(parameter_count(steps, form=form))
    if form == "scaled":
        start[[1, 2]] = 1.0 / SCALE
        start[7], start[8:10], start[10 : 10 + steps] = 1.0, math.sqrt(_TAIL), math.sqrt(_LOW)
    elif form == "squares":
        start[1], start[2 : 2 + steps] = 1.0 / _ROOT, math.sqrt(_LOW) / _ROOT
    else:
        start[1], start[2 : 2 + steps] = _UNIT, _FLAT
    start[len(start) - steps :] = torch.linspace(-2.0, 2.0, steps)
    return start


def pace(steps: int, *, form: Form = "softplus") -> Tensor | None:
    """How much of what a network says reaches each parameter; None: all of it reaches all.

    Shapes hardly change with the parents in the form "scaled": what parents do goes into the offset
    and the scales, where rows far from each other learn it together.
    """
    if form != "scaled":
        return None
    share = torch.full((parameter_count(steps, form=form),), _PACE)
    share[:ROOTS] = 1.0
    return share


class Increasing:
    """Increasing maps with the given parameters, ready to be evaluated more than once.

    Parameters
    ----------
    parameters : Tensor of shape (..., parameter_count(K))
    form : {"softplus", "squares", "scaled"}
        What the parameters mean.
    most : float
        The largest scale of the form "scaled".

    Examples
    --------
    >>> maps = Increasing(identity_parameters(8))
    >>> value, slope = maps(torch.linspace(-3, 3, 50))
    >>> bool((value.diff() > 0).all() and (slope > 0).all())
    True
    """

    def __init__(
        self, parameters: Tensor, *, form: Form = "softplus", most: float = math.inf
    ) -> None:
        size = parameters.shape[-1]
        self.up: Tensor | None = None
        self.down: Tensor | None = None
        if form == "scaled":
            steps = (size - 10) // 3
            sizes = [1, 4, 2, 3, steps, steps, steps]
            offset, roots, anchors, smooth, raw, width, self.place = parameters.split(sizes, -1)
            one, other = (SCALE * roots).square().chunk(2, -1)
            scales = (one + other).clamp(max=most)
            self.offset = offset.squeeze(-1) + (anchors * scales).sum(-1)
            self.tilt, self.up, self.down = (smooth.square() * scales[..., :1]).unbind(-1)
            self.height = raw.square() * scales[..., 1:]
            width = _JUMP * width
        else:
            steps = (size - 3) // 4 if form == "squares" else (size - 2) // 3
            sizes = [1, size - 1 - 2 * steps, steps, steps]
            offset, raw, width, self.place = parameters.split(sizes, -1)
            self.offset = offset.squeeze(-1)
            if form == "squares":
                one, other = (_ROOT * raw).square().chunk(2, -1)
                positive = one + other
            else:
                positive = F.softplus(raw)
            self.tilt, self.height = positive[..., 0], positive[..., 1:]
        # An exponential, so that a step can become a jump in few updates.
        self.width = width.clamp(max=_STEEP).exp()

    def spread(self) -> Tensor:
        """How far the map goes for a latent of 1: 0 where all latents give the same value."""
        spread = self.tilt + self.height.sum(-1)
        if self.up is not None and self.down is not None:
            spread = spread + 0.5 * (self.up + self.down)
        return spread

    def __call__(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Value and slope at ``z``, which is broadcast against the leading shape."""
        bent = torch.tanh(self.width * (z.unsqueeze(-1) - self.place))
        slope = self.tilt + (self.height * self.width * (1.0 - bent.square())).sum(-1)
        if self.up is not None and self.down is not None:
            slope = slope + 2.0 * (self.up * z.clamp(min=0.0) - self.down * z.clamp(max=0.0))
        return self._value(z, bent), slope

    def value(self, z: Tensor) -> Tensor:
        """The value alone."""
        return self._value(z, torch.tanh(self.width * (z.unsqueeze(-1) - self.place)))

    def _value(self, z: Tensor, bent: Tensor) -> Tensor:
        value = self.offset + self.tilt * z + (self.height * bent).sum(-1)
        if self.up is not None and self.down is not None:
            above, below = z.clamp(min=0.0).square(), z.clamp(max=0.0).square()
            value = value + self.up * above - self.down * below
        return value
