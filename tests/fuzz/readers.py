"""Everything that reads what a stranger may have written: a start, and a run of one case.

A run may raise `VacaError` and nothing else. What it gives back, if anything, is compared with
what the unchanged input gives.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import random
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

import vaca
from tests.fuzz import models
from tests.fuzz.changes import bytes_changed, json_changed, settings_changed, shuffled
from tests.fuzz.models import PLACE
from tests.fuzz.requests import explorer_requests
from vaca.errors import VacaError

GRAPH = vaca.CausalGraph({"a": [], "b": ["a"], "c d": ["a", "b"]}, {"b": ["u", "v, w"]})
SCHEMA = """\
[sex]
kind = "binary"
levels = ["f", "m"]

["income [k]"]
kind = "continuous"

[visits]
kind = "count"
"""
CONFIG = """\
graph = "graph.txt"
out = "model"
engine = "flow"
seed = 3
refits = 4
holdout = 0.2
[settings]
steps = 8
lr = 0.01
"""
DOS = (
    "m", "f", "x", "q", "", "0", "7", "-3", "+4", "1e3", "4.5", "1e308", "1e309", "nan", "inf",
    "-inf", "1_000", "0x10", "٣", "1,5", " 8 ", "True", "None", "[1]", "9" * 30, "9" * 5_000,
    "\x00", "\ud800", "5e-324", "-0.0", "1e-400", "m=f", "+=1", "'m'",
)  # fmt: skip
TABLE = models.table(20)


GRAPHS = {
    "txt": [GRAPH.to_text(), '{a, b} -> c -> d  # why\n"e # f": g, h\n'],
    "dot": [
        GRAPH.to_dot(),
        'strict digraph "g" { rankdir=LR; a -> b [x=y]; "c" -> b // no\n }',
        "digraph { subgraph s { a; b } /* no */ a -> {b c} -> d; e [label=<b>] }",
    ],
    "gml": [GRAPH.to_gml()],
    "json": [GRAPH.to_json(), '{"a": [], "b": ["a"]}'],
}


def graph_files(ending: str, rng: random.Random) -> None:
    """`CausalGraph.read`, and what is read is written and read again."""
    text = rng.choice(GRAPHS[ending])
    if ending == "json" and rng.random() < 0.5:
        data = json.dumps(json_changed(json.loads(text), rng)).encode()
    else:
        data = bytes_changed(text.encode(), rng)
    path = PLACE / f"graph.{ending}"
    path.write_bytes(data)
    graph = vaca.CausalGraph.read(path)
    assert vaca.CausalGraph.from_json(graph.to_json()) == graph
    assert graph.longest_path >= graph.longest_shortest_path


def schema_files(rng: random.Random) -> None:
    """`schema.toml`."""
    from vaca.table.toml import read_schema

    path = PLACE / "schema.toml"
    way = rng.random() < 0.5
    path.write_bytes(
        settings_changed(SCHEMA, ["kind", "levels"], rng)
        if way
        else bytes_changed(SCHEMA.encode(), rng)
    )
    read_schema(path)


def config_files(rng: random.Random) -> None:
    """The config of `vaca fit`, up to the engine that it describes."""
    from vaca.commands.fit import _engine
    from vaca.commands.fit_options import OPTIONS, read_options
    from vaca.engines.parameters import check_parameters

    path = PLACE / "config.toml"
    keys = [*OPTIONS, "settings", "steps", "lr", "patience", "device", "edges"]
    way = rng.random() < 0.5
    path.write_bytes(
        settings_changed(CONFIG, keys, rng) if way else bytes_changed(CONFIG.encode(), rng)
    )
    engines = _engine(*read_options({}, path), models.GRAPH, {})
    for engine in engines if isinstance(engines, list) else [engines]:
        check_parameters(engine)


def csv_files(rng: random.Random) -> None:
    """CSV tables, read and encoded."""
    text = TABLE.to_csv(index=False, sep=rng.choice([",", ";", "\t"]))
    path = PLACE / "table.csv"
    path.write_bytes(bytes_changed(text.encode(rng.choice(["utf-8", "utf-16"])), rng))
    _table(path)


def arrow_files(ending: str, rng: random.Random) -> None:
    """Parquet or Feather tables, read and encoded."""
    path = PLACE / f"table.{ending}"
    path.write_bytes(bytes_changed(_stored_table(ending), rng))
    _table(path)


@functools.cache
def _stored_table(ending: str) -> bytes:
    stream = io.BytesIO()
    TABLE.to_parquet(stream) if ending == "parquet" else TABLE.to_feather(stream)
    return stream.getvalue()


def _table(path: Path) -> None:
    from vaca.table.files import read_table
    from vaca.table.schema import Schema

    frame = read_table(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        schema = Schema.infer(frame, models.GRAPH)
    rows = schema.encode(frame)
    assert all(np.isfinite(values).all() for values in rows.values())


def do_texts(rng: random.Random) -> None:
    """`--do` on a model with text levels, a count and a number."""
    from vaca.commands.reading import parse_do
    from vaca.model.intervention import Intervention

    start = rng.choice([b"sex=m", b"visits+=3", b"income=4.5e3", b"visits = 7", b"income-=1"])
    text = bytes_changed(start, rng).decode("utf-8", "surrogateescape")
    if rng.random() < 0.5:
        column = rng.choice(["sex", "visits", "income", "nothing", ""])
        text = column + rng.choice(["=", "+=", "-=", " = ", "==", "=-"]) + rng.choice(DOS)
    model = models.fitted("AdditiveNoise")
    do = parse_do([text], model)
    parsed = Intervention.parse(do, model.graph, model.schema_).encode_rows(2)
    rows = {name: np.zeros(2) for name in model.schema_}
    values = parsed.resolve(lambda done: rows)
    assert all(np.isfinite(v).all() for v in values.values())


def model_folders(name: str, rng: random.Random) -> None:
    """`vaca.load`: changed bytes, and changes with a checksum that fits.

    Without a checksum that fits, whatever loads must answer as the original. With one, whatever
    loads must answer, or say why not.
    """
    files = dict(models.saved(name))
    way = rng.randrange(9)
    file = rng.choice(models.FILES)
    if way == 0:
        files[file] = bytes_changed(files[file], rng)
    elif way == 1:
        about = json_changed(json.loads(files["model.json"]), rng)
        files["model.json"] = json.dumps(about).encode()
    elif way == 2:
        files["model.json"] = json.dumps(shuffled(json.loads(files["model.json"]), rng)).encode()
    elif way == 3:  # a file of another model of the same or of another engine
        files[file] = models.saved(rng.choice(models.NAMES), seed=rng.randrange(2))[file]
    elif way == 4:  # a file that is missing, or not one
        del files[file]
    elif way == 5:
        about = json_changed(json.loads(files["model.json"]), rng)
        files["model.json"] = json.dumps(about).encode()
    elif way == 6:
        arrays = _arrays_changed(load_arrays(files["arrays.safetensors"]), rng)
        files["arrays.safetensors"] = save_arrays(arrays)
    elif way == 7:
        files["arrays.safetensors"] = bytes_changed(files["arrays.safetensors"], rng)
    else:  # what one engine says of another's arrays
        other = models.saved(rng.choice(models.NAMES), seed=rng.randrange(2))
        files["arrays.safetensors"] = other["arrays.safetensors"]
    if way > 4:
        files = models.sealed(files)
    folder = models.write(PLACE / "model", files)
    if way == 4:
        _odd_file(folder, file, rng)
    model = vaca.load(folder)
    if way > 4:
        models.answers(model)
        return
    whole = [n for n in models.NAMES for k in (0, 1) if files == models.saved(n, seed=k)]
    if whole != [name]:
        pd.testing.assert_frame_equal(models.answers(model), expected(name))


def _odd_file(folder: Path, file: str, rng: random.Random) -> None:
    """In the place of a file: nothing, a folder, a pipe, a link to nowhere, to itself or inside."""
    place = folder / file
    odd: list[Callable[[], Any]] = [
        lambda: None,
        place.mkdir,
        lambda: os.mkfifo(place),
        lambda: place.symlink_to(folder / "nowhere"),
        lambda: place.symlink_to(place),
        lambda: place.symlink_to("/dev/zero"),
        lambda: place.symlink_to(folder),
    ]
    rng.choice(odd)()


def _arrays_changed(arrays: dict[str, np.ndarray], rng: random.Random) -> dict[str, np.ndarray]:
    name = rng.choice(sorted(arrays))
    values = arrays[name]
    changes: list[Callable[[], Any]] = [
        lambda: arrays.pop(name),
        lambda: arrays.update({name + "x": values}),
        lambda: arrays.update({name: values[..., :-1].copy()}),
        lambda: arrays.update({name: np.repeat(values, 2, axis=0)}),
        lambda: arrays.update({name: values.astype(rng.choice(["f4", "f8", "i8", "u1"]))}),
        lambda: arrays.update({name: np.full_like(values, rng.choice([0, 1, 100]))}),
        lambda: arrays.update({name: np.zeros((0, *values.shape[1:]), values.dtype)}),
        lambda: arrays.update({name: values.reshape(-1)}),
        lambda: arrays.update(
            {name: -values if values.dtype.kind in "if" else values[::-1].copy()}
        ),
    ]
    rng.choice(changes)()
    return {k: np.ascontiguousarray(v) for k, v in arrays.items()}


_expected: dict[str, pd.DataFrame] = {}


def expected(name: str) -> pd.DataFrame:
    """What the unchanged model of an engine answers."""
    if name not in _expected:
        _expected[name] = models.answers(
            vaca.load(models.write(PLACE / "model", models.saved(name)))
        )
    return _expected[name]


READERS: dict[str, Callable[[random.Random], None]] = {
    **{f"graph-{ending}": functools.partial(graph_files, ending) for ending in GRAPHS},
    "schema": schema_files,
    "config": config_files,
    "csv": csv_files,
    "parquet": functools.partial(arrow_files, "parquet"),
    "feather": functools.partial(arrow_files, "feather"),
    "do": do_texts,
    "explorer": explorer_requests,
    **{f"model-{name}": functools.partial(model_folders, name) for name in models.NAMES},
}


def prepare(reader: str) -> None:
    """Make what the cases start from, so that it is no case's own work."""
    if reader.startswith("model-"):
        for name in models.NAMES:
            for seed in (0, 1):
                models.saved(name, seed=seed)
        expected(reader.removeprefix("model-"))
    for case in range(3):  # and what is imported late, or made at the first use
        with contextlib.suppress(VacaError):
            READERS["do" if reader.startswith("model-") else reader](random.Random(case))


def remove_place() -> None:
    """Forget the files of the last cases."""
    shutil.rmtree(PLACE, ignore_errors=True)
