"""Save and load fitted engines: a folder of JSON and safetensors; nothing in it is ever run."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

import vaca
from vaca.engines.registry import ENGINES, engine_class
from vaca.errors import NotFittedError, VacaError
from vaca.graph.dag import CausalGraph
from vaca.model.support import Overlap
from vaca.table.schema import Column, Schema

if TYPE_CHECKING:
    from vaca.engines.engine import Engine

#: Grows when the format changes so that older versions could not read it.
FORMAT = 1
_JSON, _ARRAYS = "model.json", "arrays.safetensors"


def save(
    model: Engine,
    path: str | Path,
    overwrite: bool = True,
    notes: Mapping[str, str] | None = None,
) -> None:
    """Write a fitted engine to the folder `path`, all or nothing.

    An existing folder is replaced only if it holds a saved model (or nothing) and `overwrite` is
    set; anything else there is left alone. `notes` are further text files for the folder, by name.
    """
    path = Path(path)
    name = type(model).__name__
    if name not in ENGINES:
        raise VacaError(f"a {name} cannot be saved; engines that can: {', '.join(ENGINES)}")
    if "schema_" not in vars(model):
        raise NotFittedError("this model has not been fitted; call .fit(df) before .save()")
    if path.exists():
        if not path.is_dir():
            raise VacaError(f"{path} is a file; a model is saved as a folder, choose another name")
        if any(path.iterdir()) and (not overwrite or not (path / _JSON).is_file()):
            raise VacaError(
                f"{path} exists already"
                + ("" if (path / _JSON).is_file() else " and is not a saved model")
                + "; choose another name or remove it first"
            )
    arrays = save_arrays({k: np.ascontiguousarray(v) for k, v in _arrays(model).items()})
    about = {
        "format": FORMAT,
        "vaca": vaca.__version__,
        "engine": name,
        "parameters": _plain_parameters(model),
        "graph": json.loads(model.graph.to_json()),
        "schema": model.schema_.to_dict(),
        "overlap": model.overlap_.to_dict(),
        "rows": model.n_rows_,
        "history": model.history_.to_dict(orient="list"),
        "sha256": hashlib.sha256(arrays).hexdigest(),
    }
    files = {_ARRAYS: arrays, _JSON: json.dumps(about, indent=1).encode()}
    files.update({name: text.encode() for name, text in (notes or {}).items()})
    try:
        _write_folder(path, files)
    except OSError as error:
        raise VacaError(
            f"{path} could not be saved: {error.strerror or error}; nothing was changed. Free some "
            "space or choose another place"
        ) from None


def _write_folder(path: Path, files: Mapping[str, bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    try:
        for name, content in files.items():
            (fresh / name).write_bytes(content)
        fresh.chmod(0o777 & ~_umask())
        if not path.exists():
            os.replace(fresh, path)
            return
        old = Path(tempfile.mkdtemp(prefix=f".{path.name}-old-", dir=path.parent))
        os.replace(path, old)
        try:
            os.replace(fresh, path)
        except OSError:
            os.replace(old, path)
            raise
        shutil.rmtree(old)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def load(path: str | Path) -> Any:
    """The fitted engine saved in the folder `path`."""
    path = Path(path)
    if not path.exists():
        raise VacaError(f"{path}: no such folder")
    if not (path / _JSON).is_file():
        raise VacaError(f"{path}: not a saved model (it has no {_JSON})")
    try:
        about = json.loads((path / _JSON).read_text(encoding="utf-8"))
        version, engine = about["format"], about["engine"]
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError):
        raise VacaError(f"{path / _JSON}: damaged, or not of a saved model") from None
    if not isinstance(version, int) or version > FORMAT:
        raise VacaError(
            f"{path}: saved by a newer vaca ({about.get('vaca', 'unknown')}, format {version}); "
            f"this is {vaca.__version__}, which reads up to format {FORMAT}. Upgrade vaca"
        )
    if engine not in ENGINES:  # a file can name these classes and no others
        raise VacaError(f"{path}: unknown engine {engine!r}; known: {', '.join(ENGINES)}")
    if not (path / _ARRAYS).is_file():
        raise VacaError(f"{path}: incomplete, {_ARRAYS} is missing; save the model again")
    raw = (path / _ARRAYS).read_bytes()
    if hashlib.sha256(raw).hexdigest() != about.get("sha256"):
        raise VacaError(f"{path / _ARRAYS}: damaged (its checksum is wrong); save the model again")
    try:
        arrays = load_arrays(raw)
        graph = CausalGraph.from_json(json.dumps(about["graph"]))
        parameters = _restore_parameters(about["parameters"])
        model: Any = engine_class(engine)(graph, **parameters)
        model.schema_ = Schema.from_dict(about["schema"])
        if "overlap" in about:  # not in models saved before there was one
            model.overlap_ = Overlap.from_dict(about["overlap"])
        model.n_rows_ = about["rows"]
        model.history_ = pd.DataFrame(about["history"])
        _set_arrays(model, arrays)
    except (SafetensorError, KeyError, TypeError) as error:
        raise VacaError(f"{path}: damaged or not of this version ({error})") from None
    return model


def _arrays(model: Engine) -> dict[str, np.ndarray]:
    """What was learned, the kept rows with their weights, and the refits, under one name each."""
    arrays = dict(model._state())
    arrays |= {f"rows/{column}": values for column, values in model.rows_.items()}
    if model.weights_ is not None:
        arrays["weights"] = model.weights_
    for k, member in enumerate(model.refits_):
        arrays |= {f"refit/{k}/{name}": values for name, values in member._state().items()}
    return arrays


def _set_arrays(model: Engine, arrays: dict[str, np.ndarray]) -> None:
    """Become what `_arrays` was made of; models saved before rows were kept have none."""
    own: dict[str, np.ndarray] = {}
    rows: dict[str, np.ndarray] = {}
    refits: dict[int, dict[str, np.ndarray]] = {}
    for name, values in arrays.items():
        part, _, rest = name.partition("/")
        if part == "rows":
            rows[rest] = values
        elif part == "refit":
            k, _, rest = rest.partition("/")
            refits.setdefault(int(k), {})[rest] = values
        else:
            own[name] = values
    model.weights_ = own.pop("weights", None)
    model.rows_ = {column: rows[column] for column in model.schema_ if column in rows}
    model._set_state(own)
    members = []
    for k in sorted(refits):
        member = copy(model)
        member._set_state(refits[k])
        members.append(member)
    model.refits_ = members


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _plain_parameters(model: Engine) -> dict[str, Any]:
    parameters = model.get_params(deep=False)
    parameters.pop("graph")
    given = parameters.pop("schema", None)
    if isinstance(given, Schema):
        parameters["schema"] = {"columns": given.to_dict()}
    elif given is not None:
        parameters["schema"] = {
            "kinds": {
                name: Schema({name: kind}).to_dict()[name] if isinstance(kind, Column) else kind
                for name, kind in given.items()
            }
        }
    try:
        return json.loads(json.dumps(parameters))
    except TypeError as error:
        raise VacaError(f"a parameter of this model cannot be written as JSON: {error}") from None


def _restore_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    parameters = dict(parameters)
    given = parameters.pop("schema", None)
    if given and "columns" in given:
        parameters["schema"] = Schema.from_dict(given["columns"])
    elif given:
        parameters["schema"] = {
            name: Schema.from_dict({name: kind})[name] if isinstance(kind, dict) else kind
            for name, kind in given["kinds"].items()
        }
    return parameters
