"""Sizes of the paper's models for its SCMs (tables of its appendix E)."""

from __future__ import annotations

from typing import Any

# lambda = 0.05 is twice the variance of the likelihood.
_VACA: dict[str, Any] = {
    "messages": "states",
    "latent_dim": 4,
    "message_hidden": (16,),
    "variance": 0.025,
    "output_noise": False,
    "epochs": 500,
    "batch_size": 1000,
    "lr": 0.005,
    "weight_decay": 1.2e-6,
    "schedule": "exponential",
    "ema": None,
    "grad_clip": None,
    "patience": 50,
    "validation_samples": 100,
    "validate_every": 1,
}


def _vaca(hidden: int, dropout: float, residual: bool, **changes: Any) -> dict[str, Any]:
    own = {"hidden_layers": hidden, "parents_dropout": dropout, "residual": residual, "width": 16}
    return {**_VACA, **own, **changes}


#: For `VACA.paper`. The number of parameters that the paper reports for chain-lin fits 64 units,
#: not the 16 of its table.
VACA_SETTINGS: dict[str, dict[str, Any]] = {
    "chain-lin": _vaca(1, 0.1, True, width=64),
    "chain-nlin": _vaca(2, 0.1, False),
    "chain-nadd": _vaca(1, 0.1, True, width=64),
    "collider-lin": _vaca(2, 0.2, True),
    "collider-nlin": _vaca(1, 0.1, False),
    "collider-nadd": _vaca(2, 0.1, True),
    "triangle-lin": _vaca(2, 0.1, False),
    "triangle-nlin": _vaca(2, 0.2, False),
    "triangle-nadd": _vaca(2, 0.1, False),
    "mgraph-lin": _vaca(1, 0.1, False),
    "mgraph-nlin": _vaca(2, 0.1, False),
    "mgraph-nadd": _vaca(2, 0.1, False),
    "loan": _vaca(3, 0.2, False, message_hidden=(16, 16)),
    "adult": _vaca(3, 0.2, True, width=8),
}
