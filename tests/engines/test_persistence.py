"""Model folders: whole, damaged, hostile, half replaced."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

import vaca
from tests.fuzz.models import NAMES, answers, fitted, saved, sealed, write
from vaca.engines.persistence import _seal
from vaca.errors import VacaError
from vaca.table import atomic


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_model_answers_as_the_fitted_one(tmp_path, name: str) -> None:
    again = vaca.load(write(tmp_path / "m", saved(name)))
    pd.testing.assert_frame_equal(answers(again), answers(fitted(name)))


def swap(levels: list[Any]) -> None:
    levels[0], levels[1] = levels[1], levels[0]


EDITS = {
    "two levels swapped": lambda a: swap(a["schema"]["sex"]["levels"]),
    "a bound": lambda a: a["schema"]["income"].update(high=1e9),
    "a kind": lambda a: a["schema"]["visits"].update(kind="continuous"),
    "a dtype": lambda a: a["schema"]["visits"].update(dtype="float32"),
    "an edge less": lambda a: a["graph"]["edges"].pop(),
    "an edge turned": lambda a: a["graph"]["edges"][0].reverse(),
    "a parameter": lambda a: a["parameters"].update(seed=5),
    "the overlap": lambda a: a["overlap"].update(unseen=[["sex", "visits", [[1]]]]),
    "the number of rows": lambda a: a.update(rows=10**6),
    "the version": lambda a: a.update(vaca="9.9"),
}


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("name", ["CausalFlow", "AdditiveNoise"])
def test_an_edit_of_the_description_is_found(tmp_path, name: str, edit: str) -> None:
    about = json.loads(saved(name)["model.json"])
    before = json.dumps(about)
    EDITS[edit](about)
    assert json.dumps(about) != before
    files = {**saved(name), "model.json": json.dumps(about).encode()}
    with pytest.raises(VacaError, match="checksum is wrong"):
        vaca.load(write(tmp_path / "m", files))


@pytest.mark.parametrize("file", ["model.json", "arrays.safetensors"])
@pytest.mark.parametrize("seed", range(20))
def test_flipped_bits_are_found(tmp_path, file: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    files = dict(saved("CausalFlow"))
    content = bytearray(files[file])
    content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
    files[file] = bytes(content)
    try:
        model = vaca.load(write(tmp_path / "m", files))
    except VacaError:
        return
    pd.testing.assert_frame_equal(answers(model), answers(fitted("CausalFlow")))  # white space


def parameters(**values: Any) -> Any:
    return lambda a: a["parameters"].update(values)


HOSTILE = {
    "many layers": parameters(depth=1_000_000),
    "layers as far as allowed": parameters(depth=100),
    "wide": parameters(width=10**9),
    "wide as far as allowed": parameters(width=10_000),
    "many bins": parameters(bins=10**12),
    "bins as far as allowed": parameters(bins=1_000),
    "no layers": parameters(depth=-1),
    "half a layer": parameters(depth=1.5),
    "text for a number": parameters(width="8"),
    "a list for a number": parameters(width=[8]),
    "null for a number": parameters(width=None),
    "true for a number": parameters(depth=True),
    "a seed below 0": parameters(seed=-1),
    "a large seed": parameters(seed=2**64),
    "a device": parameters(device="cuda:7"),
    "no device": parameters(device="/etc/passwd"),
    "meta device": parameters(device="meta"),
    "not a number": parameters(lr=float("nan")),
    "bound infinite": parameters(bound=float("inf")),
    "unknown parameter": parameters(command="rm"),
    "graph parameter": parameters(graph={}),
    "schema parameter": parameters(schema={"kinds": 3}),
    "schema parameter, a list": parameters(schema=[1]),
    "parameters a list": lambda a: a.update(parameters=[1]),
    "parameters null": lambda a: a.update(parameters=None),
    "engine": lambda a: a.update(engine="os.system"),
    "engine a list": lambda a: a.update(engine=["CausalFlow"]),
    "engine of another": lambda a: a.update(engine="VACA"),
    "format 0": lambda a: a.update(format=0),
    "format true": lambda a: a.update(format=True),
    "format text": lambda a: a.update(format="3"),
    "format 4": lambda a: a.update(format=4),
    "graph null": lambda a: a.update(graph=None),
    "graph cyclic": lambda a: a["graph"]["edges"].append(["income", "sex"]),
    "graph with a node more": lambda a: a["graph"]["nodes"].update(more=["more"]),
    "graph with other columns": lambda a: a["graph"]["nodes"].update(income=["x", "y"]),
    "schema null": lambda a: a.update(schema=None),
    "schema empty": lambda a: a.update(schema={}),
    "schema a list": lambda a: a.update(schema=[["sex", 1]]),
    "a column null": lambda a: a["schema"].update(sex=None),
    "levels null": lambda a: a["schema"]["sex"].update(levels=None),
    "levels fewer": lambda a: a["schema"]["sex"]["levels"].pop(),
    "levels more": lambda a: a["schema"]["sex"]["levels"].extend(range(5)),
    "levels that are half a letter": lambda a: a["schema"]["sex"].update(
        levels=["f", "\ud800", "x"]
    ),
    "levels beyond all numbers": lambda a: a["schema"]["sex"].update(levels=[1, 10**400, 3]),
    "levels infinite": lambda a: a["schema"]["sex"].update(levels=[1, float("inf"), 3]),
    "levels true and 1": lambda a: a["schema"]["sex"].update(levels=[0, True, 3]),
    "a unit of a level": lambda a: a["schema"]["sex"].update(unit="cm"),
    "levels twice": lambda a: a["schema"]["sex"].update(levels=["f", "f", "m"]),
    "levels nested": lambda a: a["schema"]["sex"].update(levels=[["f"], ["m"], ["x"]]),
    "levels not numbers": lambda a: a["schema"]["sex"].update(levels=[None, True, 1]),
    "range text": lambda a: a["schema"]["income"].update(low="low"),
    "range list": lambda a: a["schema"]["income"].update(high=[1]),
    "range infinite": lambda a: a["schema"]["income"].update(high=float("inf")),
    "dtype unknown": lambda a: a["schema"]["income"].update(dtype="elephant"),
    "dtype of time": lambda a: a["schema"]["income"].update(dtype="datetime64[ns, /etc/passwd]"),
    "dtype a number": lambda a: a["schema"]["income"].update(dtype=5),
    "dtype complex": lambda a: a["schema"]["income"].update(dtype="complex128"),
    "dtype long": lambda a: a["schema"]["income"].update(dtype="f" * 10**6),
    "missing negative": lambda a: a["schema"]["income"].update(missing=-1),
    "rows text": lambda a: a.update(rows="many"),
    "rows below 0": lambda a: a.update(rows=-1),
    "history uneven": lambda a: a.update(history={"a": [1], "b": [1, 2]}),
    "history text": lambda a: a.update(history="none"),
    "overlap null": lambda a: a.update(overlap=None),
    "overlap of strangers": lambda a: a.update(overlap={"edges": {"q": [1]}, "unseen": []}),
    "overlap flat": lambda a: a.update(
        overlap={"edges": {}, "unseen": [["sex", "visits", [1, 0]]]}
    ),
    "overlap text": lambda a: a.update(overlap={"edges": {"sex": ["a"]}, "unseen": []}),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_folder_made_to_hurt_is_refused(tmp_path, case: str) -> None:
    files = sealed(saved("CausalFlow"), HOSTILE[case])
    with pytest.raises(VacaError) as caught:
        vaca.load(write(tmp_path / "m", files))
    assert len(str(caught.value)) < 3_000


def with_arrays(name: str, change: Any) -> dict[str, bytes]:
    arrays = load_arrays(saved(name)["arrays.safetensors"])
    change(arrays)
    raw = save_arrays({k: np.ascontiguousarray(v) for k, v in arrays.items()})
    about = json.loads(saved(name)["model.json"])
    about["sha256"] = _seal(about, raw)
    return {"model.json": json.dumps(about).encode(), "arrays.safetensors": raw}


ARRAYS = {
    "none": lambda a: a.clear(),
    "one less": lambda a: a.pop(sorted(a)[0]),
    "another shape": lambda a: a.update({k: v[..., :-1] for k, v in list(a.items()) if v.ndim > 1}),
    "transposed": lambda a: a.update({k: v.T for k, v in list(a.items()) if v.ndim > 1}),
    "empty": lambda a: a.update({k: v[:0] for k, v in list(a.items())}),
    "rows of strings of bytes": lambda a: a.update({"rows/sex": np.zeros(60, np.uint8)}),
    "rows that are no codes": lambda a: a.update({"rows/sex": np.full(60, 99)}),
    "rows of several lengths": lambda a: a.update({"rows/income": np.zeros(7)}),
    "rows as a matrix": lambda a: a.update({"rows/income": np.zeros((60, 2))}),
    "weights of another length": lambda a: a.update({"weights": np.ones(3)}),
    "a refit without a number": lambda a: a.update({"refit/x/mean": np.ones(3)}),
    "an empty refit": lambda a: a.update({"refit/0/mean": np.ones(3)}),
}


@pytest.mark.parametrize("case", ARRAYS)
@pytest.mark.parametrize("name", ["CausalFlow", "AdditiveNoise"])
def test_arrays_that_do_not_fit_are_refused(tmp_path, name: str, case: str) -> None:
    with pytest.raises(VacaError):
        vaca.load(write(tmp_path / "m", with_arrays(name, ARRAYS[case])))


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("model.json", b""),
        ("model.json", b"null"),
        ("model.json", b"[]"),
        ("model.json", b"[" * 10**6),
        ("model.json", b'{"a":' * 10**5 + b"1" + b"}" * 10**5),
        ("model.json", b"\xff\xfe"),
        ("model.json", b"9" * 10**5),
        ("model.json", b'{"format": 1e400, "engine": "VACA"}'),
        ("arrays.safetensors", b""),
        ("arrays.safetensors", b"\xff" * 8),
        ("arrays.safetensors", b"\x00" * 1000),
        ("arrays.safetensors", (2**62).to_bytes(8, "little") + b"{}"),
    ],
)
def test_other_files_are_refused(tmp_path, file: str, content: bytes) -> None:
    with pytest.raises(VacaError):
        vaca.load(write(tmp_path / "m", {**saved("CausalFlow"), file: content}))


def test_things_that_are_no_files_are_refused(tmp_path) -> None:
    for name in ("model.json", "arrays.safetensors"):
        folder = write(tmp_path / "m", saved("CausalFlow"))
        (folder / name).unlink()
        with pytest.raises(VacaError, match=name):
            vaca.load(folder)
        (folder / name).mkdir()
        with pytest.raises(VacaError, match=name):
            vaca.load(folder)
        (folder / name).rmdir()
        os.mkfifo(folder / name)
        with pytest.raises(VacaError, match=name):
            vaca.load(folder)
    (tmp_path / "file").write_text("")
    with pytest.raises(VacaError, match="a model is a folder"):
        vaca.load(tmp_path / "file")


def test_models_of_format_1_still_load(tmp_path) -> None:
    files = dict(saved("CausalFlow"))
    about = json.loads(files["model.json"]) | {"format": 1}
    about["sha256"] = hashlib.sha256(files["arrays.safetensors"]).hexdigest()
    files["model.json"] = json.dumps(about).encode()
    model = vaca.load(write(tmp_path / "m", files))
    pd.testing.assert_frame_equal(answers(model), answers(fitted("CausalFlow")))
    files["arrays.safetensors"] += b" "
    with pytest.raises(VacaError, match="checksum"):
        vaca.load(write(tmp_path / "m", files))


def test_models_of_format_2_still_load(tmp_path) -> None:
    """Its seal did not know the order of keys."""
    from vaca.engines import persistence

    files = dict(saved("CausalFlow"))
    about = json.loads(files["model.json"]) | {"format": 2}
    text = json.dumps(
        {k: v for k, v in about.items() if k != "sha256"}, sort_keys=True, separators=(",", ":")
    ).encode()
    parts = (hashlib.sha256(p).digest() for p in (text, files["arrays.safetensors"]))
    about["sha256"] = hashlib.sha256(b"".join(parts)).hexdigest()
    files["model.json"] = json.dumps(about).encode()
    model = vaca.load(write(tmp_path / "m", files))
    pd.testing.assert_frame_equal(answers(model), answers(fitted("CausalFlow")))
    assert persistence.FORMAT == 3


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("composite-2", 1.2824673081205495),
        ("composite-3", 2.5674193744635385),
        ("composite-4", 1.340208601780838),
        ("composite-5", 1.3056650553941542),
        ("composite-8", 1.3118182838394656),
    ],
)
def test_a_folder_of_an_earlier_version_answers_as_it_did(name: str, known: float) -> None:
    """Before ordered levels, proportions and steps; before walls and powers; before levels had
    steps or were shrunk; before blends; before ordered levels had spreads and counts an end."""
    model = vaca.load(Path(__file__).parent / "folders" / name)
    effect = model.effect("y", {"a": 1.0}, {"a": 0.0}, seed=0)
    assert effect.value == pytest.approx(known, abs=1e-9)
    assert len(model.refits_) == 2


@pytest.mark.parametrize(
    ("name", "form", "known", "density"),
    [
        ("vaca-1", "softplus", 1.2519675782992463, -3.4323036670684814),
        ("vaca-2", "squares", 0.6059227861774931, -3.3391335010528564),
        ("vaca-3", "scaled", 0.7266479803852643, -3.3937625885009766),
    ],
)
def test_a_folder_of_an_earlier_vaca_answers_as_it_did(
    tmp_path, name: str, form: str, known: float, density: float
) -> None:
    """Before heights were squares; before they had scales; before parents acted directly. Saved
    again, it is what it was."""
    model = vaca.load(Path(__file__).parent / "folders" / name)
    effect = model.effect("y", {"a": 1.0}, {"a": 0.0}, seed=0)
    assert effect.value == pytest.approx(known, abs=1e-5)  # single precision
    assert len(model.refits_) == 2
    model.save(tmp_path / "again")
    rows = model.sample(20, seed=0)
    pd.testing.assert_frame_equal(vaca.load(tmp_path / "again").sample(20, seed=0), rows)
    assert model._net.form == form
    assert model._net.decoder.allowed is None
    assert float(model.log_prob(rows, k=5).mean()) == pytest.approx(density, abs=1e-4)
    anew = model.fit(rows, progress=False)._net
    assert anew.form == "scaled"
    assert anew.decoder.allowed is not None


def test_a_folder_of_vaca_4_answers_as_it_did(tmp_path) -> None:
    """Before rows said where the decoder starts, and odds followed the network slowly."""
    model = vaca.load(Path(__file__).parent / "folders" / "vaca-4")
    effect = model.effect("y", {"a": 1.0}, {"a": 0.0}, seed=0)
    assert effect.value == pytest.approx(1.1220886161179555, abs=1e-5)  # single precision
    model.save(tmp_path / "again")
    rows = model.sample(20, seed=0)
    pd.testing.assert_frame_equal(vaca.load(tmp_path / "again").sample(20, seed=0), rows)
    assert float(model.log_prob(rows, k=5).mean()) == pytest.approx(-4.160000801086426, abs=1e-4)
    assert model.sample(2000, seed=1)["t"].mean() == pytest.approx(0.5025, abs=1e-3)
    assert not model._net.latest
    assert model.fit(rows, progress=False)._net.latest


# ---------------------------------------------------------------------- replacing a folder

KILLED = """
    import os, signal, sys
    from pathlib import Path
    from vaca.table import atomic

    path, at = Path(sys.argv[1]), int(sys.argv[2])
    if sys.argv[3] == "renames":
        atomic._exchange = lambda one, other: False
    steps = 0

    def counted(call):
        def step(*given, **named):
            global steps
            steps += 1
            if steps == at:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*given, **named)
        return step

    os.replace = counted(os.replace)
    atomic._exchange = counted(atomic._exchange)
    atomic.shutil.rmtree = counted(atomic.shutil.rmtree)
    Path.write_bytes = counted(Path.write_bytes)
    atomic.write_folder(path, {"model.json": b"new", "arrays.safetensors": b"new"})
"""


@pytest.mark.parametrize("way", ["exchange", "renames"])
@pytest.mark.parametrize("at", range(1, 7))
def test_a_kill_at_any_step_loses_no_model(tmp_path, way: str, at: int) -> None:
    path = tmp_path / "model"
    atomic.write_folder(path, {"model.json": b"old", "arrays.safetensors": b"old"})
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(KILLED), str(path), str(at), way], check=False
    )
    atomic.recover(path)
    found = {file.name: file.read_bytes() for file in path.iterdir()}
    assert set(found) == {"model.json", "arrays.safetensors"}
    assert len(set(found.values())) == 1  # all of one or all of the other
    if run.returncode == 0:
        assert set(found.values()) == {b"new"}
    atomic.write_folder(path, {"model.json": b"next", "arrays.safetensors": b"next"})
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


def test_what_a_living_process_writes_is_left_alone(tmp_path) -> None:
    path = tmp_path / "model"
    mine = atomic._hidden(path)
    (mine / "part").write_bytes(b"x")
    atomic.write_folder(path, {"a": b"1"})
    with atomic.complete(path / "b") as part:
        part.write_bytes(b"2")
    assert mine.is_dir()
    assert (path / "b").read_bytes() == b"2"


def test_two_writers_leave_one_whole_model(tmp_path) -> None:
    code = textwrap.dedent("""
        import sys
        from pathlib import Path
        from vaca.table import atomic
        for k in range(100):
            own = f"{sys.argv[2]}{k}".encode() * 1000
            atomic.write_folder(Path(sys.argv[1]), {"a": own, "b": own})
    """)
    path = tmp_path / "model"
    writers = [subprocess.Popen([sys.executable, "-c", code, str(path), w]) for w in "xy"]
    assert [w.wait() for w in writers] == [0, 0]
    assert (path / "a").read_bytes() == (path / "b").read_bytes()
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("name", ["a" * 250, "sp ace", "ü" * 100, "new\nline", b"\xff\xfe", "-x"])
def test_names_of_any_kind(tmp_path, name: str | bytes) -> None:
    path = tmp_path / (os.fsdecode(name) if isinstance(name, bytes) else name)
    for content in (b"1", b"2"):
        atomic.write_folder(path, {"a": content})
    assert (path / "a").read_bytes() == b"2"
    with atomic.complete(Path(str(path)[:-1] + ".")) as part:
        part.write_bytes(b"3")


def test_a_folder_that_is_no_model_is_left_alone(tmp_path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.jpg").write_bytes(b"")
    with pytest.raises(VacaError, match="is not a saved model"):
        fitted("AdditiveNoise").save(tmp_path / "photos")
    assert [p.name for p in tmp_path.iterdir()] == ["photos"]
