"""What the parameters of an engine may be: its signature says the type, the lists here the size."""

from __future__ import annotations

import ast
import inspect
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from vaca.errors import VacaError, shorten
from vaca.graph.dag import CausalGraph
from vaca.model.arguments import check_count, check_names, check_number, check_seed
from vaca.table.schema import Column, Kind, Schema

#: Whole numbers: smallest and largest. A larger network must be a mistake.
WHOLE = {
    "batch_size": (1, 10**9),
    "bins": (2, 1_000),
    "decoder_hidden": (1, 10_000),
    "depth": (0, 100),
    "embedding": (1, 10_000),
    "encoder_hidden": (1, 10_000),
    "encoder_hidden_layers": (0, 1_000),
    "epochs": (1, 10**8),
    "flows": (1, 1_000),
    "hidden_layers": (0, 1_000),
    "jobs": (1, 10_000),
    "latent_dim": (1, 10_000),
    "max_rows": (10, 10**11),
    "map_steps": (1, 1_000),
    "members": (1, 1_000),
    "message_hidden": (1, 10_000),
    "polish_steps": (0, 10**8),
    "refinements": (0, 1_000),
    "samples": (1, 10**6),
    "steps": (1, 10**9),
    "update_hidden": (1, 10_000),
    "validate_every": (1, 10**8),
    "validation_samples": (1, 10**6),
    "width": (1, 10_000),
}
#: Numbers that must be above 0.
POSITIVE = ("bound", "grad_clip", "lr", "noise_cap", "patience", "polish_lr", "time_budget")


@dataclass(eq=False, repr=False)
class EngineParameters:
    """What every engine takes.

    Parameters
    ----------
    graph : CausalGraph
    schema : Schema or mapping, optional
        Kinds of some or all columns; the others are inferred from the data.
    seed : int
        For all that is random in a fit: starting weights, order of rows, splits and folds.
    missing : {"error", "drop", "model"}
        What to do about missing values: refuse them, leave their rows out, or learn from those rows
        too, with draws for what is missing.
    """

    graph: CausalGraph
    schema: Schema | Mapping[str, Kind | Column] | None = None
    _: KW_ONLY
    seed: int = 0
    missing: str = "error"


@dataclass(eq=False, repr=False, kw_only=True)
class TrainingParameters(EngineParameters):
    """What engines trained by gradient steps take, in addition to what all engines take.

    Parameters
    ----------
    device : str
        "cpu" or "cuda".
    batch_size, lr
        See `vaca.engines.train_config.TrainConfig`.
    patience : float, optional
        Stop after this share of the training without a better validation score; None: never.
    time_budget : float, optional
        Seconds for training at most.
    """

    device: str = "cpu"
    batch_size: int = 500
    lr: float = 5e-3
    patience: float | None = None
    time_budget: float | None = None


def check_parameters(engine: Any) -> None:
    """Refuse parameters of a wrong type or out of range."""
    for name, parameter in inspect.signature(type(engine)).parameters.items():
        if name in ("graph", "schema"):
            continue
        value = getattr(engine, name)
        if name == "seed":
            engine.seed = check_seed(value)
        elif name == "device":
            _check_device(value)
        else:
            _check(name, value, _options(str(parameter.annotation)))


def _options(annotation: str) -> list[str]:
    """The alternatives of a type such as "str | float | None"; not split inside brackets."""
    options, depth = [""], 0
    for letter in annotation:
        depth += (letter == "[") - (letter == "]")
        if letter == "|" and not depth:
            options.append("")
        else:
            options[-1] += letter
    return [option.strip() for option in options]


def _check(name: str, value: Any, options: list[str]) -> None:
    if value is None and "None" in options:
        return
    known = {"int", "float", "bool", "str", "None", "Sequence[int]"}
    if "Sequence[str]" in options:
        check_names(name, value)
        return
    if "Mapping[str, Any]" in options:
        if not isinstance(value, Mapping):
            raise VacaError(f"{name} is a dict from name to value; got {shorten(value)}")
        return
    literal = [option for option in options if option.startswith("Literal[")]
    if literal:
        values = ast.literal_eval(literal[0].removeprefix("Literal"))
        if value not in values:
            raise VacaError(f"{name} is one of {values}; got {shorten(value)}")
    elif not set(options) <= known:
        return  # an engine's own type, which it checks itself
    elif "str" in options and isinstance(value, str):
        return
    elif "bool" in options:
        if not isinstance(value, bool):
            raise VacaError(f"{name} is True or False; got {shorten(value)}")
    elif "Sequence[int]" in options:
        if isinstance(value, str) or not isinstance(value, Sequence) or len(value) > 1_000:
            raise VacaError(f"{name} is a list of whole numbers; got {shorten(value)}")
        for k, number in enumerate(value):
            check_count(f"{name}[{k}]", number, *WHOLE.get(name, (0, 10**9)))
    elif "float" in options:
        if not isinstance(value, numbers.Real):
            raise VacaError(f"{name} is a number; got {shorten(value)}")
        number = check_number(name, value, -1e12, 1e12)
        if name in POSITIVE and number <= 0:
            raise VacaError(f"{name} is a number above 0; got {shorten(value)}")
    elif "int" in options:
        check_count(name, value, *WHOLE.get(name, (0, 10**9)))
    elif "str" in options:
        raise VacaError(f"{name} is a text; got {shorten(value)}")


def _check_device(device: Any) -> None:
    if device == "cpu":
        return
    import torch

    try:
        torch.zeros(1, device=device).cpu()
    except Exception as error:
        why = str(error).strip().partition("\n")[0]
        raise VacaError(f'device {shorten(device)} cannot be used ({why}); take "cpu"') from None
