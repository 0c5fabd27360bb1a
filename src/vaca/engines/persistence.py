"""Save and load fitted engines: a folder of JSON and safetensors; nothing in it is ever run."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

import vaca
from vaca.engines.bounded import Bounded
from vaca.engines.parameters import check_parameters
from vaca.engines.registry import ENGINES, engine_class
from vaca.errors import NotFittedError, VacaError, shorten
from vaca.graph.dag import CausalGraph
from vaca.graph.parts import check_depth, check_path
from vaca.model.arguments import check_count, check_number
from vaca.model.support import Overlap
from vaca.table.atomic import recover, write_folder
from vaca.table.column import GAP
from vaca.table.dtypes import read_dtype
from vaca.table.schema import Column, Schema

if TYPE_CHECKING:
    from vaca.engines.engine import Engine

#: Raised when the format changes so that older versions cannot read it.
FORMAT = 3
#: Bytes. A history of a million epochs fits; more would only fill the memory.
LARGEST_JSON = 2**28
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
    path = check_path(path)
    recover(path)
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
    }
    # As it will be read: keys are text, tuples are lists.
    about = json.loads(_json(about))
    about["sha256"] = _seal(about, arrays)
    files = {_ARRAYS: arrays, _JSON: json.dumps(about, indent=1).encode()}
    files.update({name: text.encode() for name, text in (notes or {}).items()})
    try:
        write_folder(path, files)
    except OSError as error:
        raise VacaError(
            f"{path} could not be saved: {error.strerror or error}; nothing was changed. Free some "
            "space or choose another place"
        ) from None


def load(path: str | Path) -> Engine:
    """The fitted engine saved in the folder `path`.

    Whatever is in the folder, this gives a model or a `VacaError`, and runs nothing of it.
    Everything that decides an answer is covered by a checksum.
    """
    path = check_path(path)
    recover(path)
    if not path.exists():
        raise VacaError(f"{path}: no such folder")
    about, arrays = _read(path)
    try:
        model = _build(about, load_arrays(arrays))
        _try_out(model)
    except VacaError as error:
        raise VacaError(f"{path}: damaged or not of this version: {error}") from None
    except ImportError:
        raise  # it says nothing about the model: a library of ours could not be loaded
    except MemoryError:
        raise VacaError(f"{path}: there is not enough memory to load it") from None
    except Exception as error:  # whatever wrong values lead to, deep inside an engine
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise VacaError(f"{path}: damaged or not of this version ({why[:300]})") from None
    return model


def _read(path: Path) -> tuple[dict[str, Any], bytes]:
    """The two files of a model, whose checksums fit them."""
    if not path.is_dir():
        raise VacaError(f"{path}: not a saved model; a model is a folder")
    # Through one handle: a model that is replaced meanwhile is read whole, old or new.
    folder = os.open(path, os.O_RDONLY) if os.open in os.supports_dir_fd else None
    try:
        text, arrays = (_read_file(path, folder, name) for name in (_JSON, _ARRAYS))
    finally:
        if folder is not None:
            os.close(folder)
    try:
        check_depth(text.decode("utf-8"), "a model")
        about = json.loads(text)
        version, engine = about["format"], about["engine"]
    except (ValueError, RecursionError, KeyError, TypeError):
        raise VacaError(f"{path / _JSON}: damaged, or not of a saved model") from None
    if isinstance(version, bool) or not isinstance(version, int) or not 1 <= version <= FORMAT:
        raise VacaError(
            f"{path}: saved by a newer vaca ({shorten(about.get('vaca'))}, format "
            f"{shorten(version)}); this is {vaca.__version__}, which reads up to format {FORMAT}. "
            "Upgrade vaca"
        )
    if not isinstance(engine, str) or engine not in ENGINES:  # these classes and no others
        raise VacaError(f"{path}: unknown engine {shorten(engine)}; known: {', '.join(ENGINES)}")
    expected = _seal(about, arrays) if version > 1 else hashlib.sha256(arrays).hexdigest()
    if expected != about.get("sha256"):
        which = path if version > 1 else path / _ARRAYS
        raise VacaError(f"{which}: damaged (its checksum is wrong); save the model again")
    return about, arrays


def _read_file(path: Path, folder: int | None, name: str) -> bytes:
    place = name if folder is not None else path / name
    # Not blocking, so that a pipe of that name is no trap.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        file = os.open(place, flags, dir_fd=folder)
        with os.fdopen(file, "rb") as stream:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise VacaError(f"{path / name}: not a file")
            if name == _JSON and os.fstat(file).st_size > LARGEST_JSON:
                raise VacaError(f"{path / name}: larger than that of any saved model")
            return stream.read()
    except FileNotFoundError:
        problem = (
            f"not a saved model (it has no {_JSON})"
            if name == _JSON
            else f"incomplete, {_ARRAYS} is missing; save the model again"
        )
        raise VacaError(f"{path}: {problem}") from None
    except OSError as error:
        raise VacaError(f"{path / name}: {error.strerror}") from None


def _seal(about: Mapping[str, Any], arrays: bytes) -> str:
    """A checksum over everything that decides an answer: all of model.json, and the arrays.

    The order of keys counts: that of the columns is the order in which noise is drawn for them.
    (Format 2 did not seal it.)
    """
    rest = {key: value for key, value in about.items() if key != "sha256"}
    ordered = about.get("format") == 2
    text = json.dumps(rest, sort_keys=ordered, separators=(",", ":")).encode()
    return hashlib.sha256(
        hashlib.sha256(text).digest() + hashlib.sha256(arrays).digest()
    ).hexdigest()


def _build(about: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    graph = CausalGraph.from_json(json.dumps(about["graph"]))
    schema = Schema.from_dict(about["schema"])
    if set(schema) != set(graph.all_columns):
        raise VacaError("its graph and its schema do not have the same columns")
    _check_schema(schema)
    with Bounded(arrays):
        family, parameters = engine_class(about["engine"]), about["parameters"]
        if about["format"] < 2:
            family, parameters = family._renew(parameters)
        model: Any = family(graph, **_restore_parameters(parameters))
        check_parameters(model)
        model.schema_ = schema
        if "overlap" in about:  # not in models saved before there was one
            model.overlap_ = _check_overlap(Overlap.from_dict(about["overlap"]), schema)
        model.n_rows_ = check_count("rows", about["rows"], 0)
        model.history_ = pd.DataFrame(about["history"])
        _set_arrays(model, arrays)
    _check_rows(model)
    return model


def _check_schema(schema: Schema) -> None:
    for name, column in schema.items():
        if column.dtype not in ("category", "ordered category"):
            read_dtype(column.dtype)
        for end in (column.low, column.high):
            if end is not None:
                check_number(f"an end of the range of {shorten(name)}", end)
        check_count(f"the missing values of {shorten(name)}", column.missing, 0)


def _check_overlap(overlap: Overlap, schema: Schema) -> Overlap:
    wrong = [
        c for c, edges in overlap.edges.items() if edges.ndim != 1 or edges.dtype.kind not in "if"
    ]
    wrong += [c for c in overlap.edges if c not in schema]
    wrong += [
        pair
        for pair, empty in overlap.unseen.items()
        if empty.ndim != 2 or not {*pair} <= set(schema)
    ]
    if wrong:
        raise VacaError(f"its overlap of {shorten(wrong[0])} cannot be used")
    return overlap


def _check_rows(model: Engine) -> None:
    """Kept rows are numbers or codes of levels, as many in every column."""
    sizes = {values.shape for values in model.rows_.values()}
    if model.weights_ is not None:
        sizes.add(model.weights_.shape)
    if len(sizes) > 1 or any(len(size) != 1 for size in sizes):
        raise VacaError("its rows are not as many in every column")
    for name, values in model.rows_.items():
        column = model.schema_[name]
        codes = values.dtype.kind == "i" and values.min(initial=0) >= GAP
        if column.discrete and not (codes and values.max(initial=0) < len(column.levels)):
            raise VacaError(f"its rows of {shorten(name)} are not codes of its levels")
        if not column.discrete and values.dtype.kind != "f":
            raise VacaError(f"its rows of {shorten(name)} are not numbers")


def _try_out(model: Any) -> None:
    """Abduct and simulate two rows by every fit: parts that do not fit together fail now."""
    for fit in (model, *model.refits_):
        with np.errstate(all="ignore"):
            rows = fit.simulate(fit.noise(2, np.random.default_rng(0)), {})
            fit.abduct({name: rows[name] for name in model.schema_})
        for name, column in model.schema_.items():
            if rows[name].shape != (2,):
                raise VacaError(f"column {shorten(name)} has the shape {rows[name].shape}")
            column.decode(rows[name])


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
    return json.loads(_json(parameters))


def _json(values: Any) -> str:
    def plain(value: Any) -> Any:
        if isinstance(value, np.generic | np.ndarray):
            return value.tolist()
        raise TypeError(f"{shorten(value)} is a {type(value).__name__}")

    try:
        return json.dumps(values, default=plain)
    except (TypeError, ValueError) as error:
        raise VacaError(f"a parameter of this model cannot be written as JSON: {error}") from None


def _restore_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    parameters = dict(parameters)
    given = parameters.pop("schema", None)
    if given and "columns" in given:
        parameters["schema"] = Schema.from_dict(given["columns"])
    elif given:
        parameters["schema"] = {
            name: Schema.from_dict({name: kind})[name] if isinstance(kind, dict) else str(kind)
            for name, kind in given["kinds"].items()
        }
    return parameters
