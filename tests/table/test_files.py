"""Tables in files: every dialect that people have, all or nothing, and streams."""

import bz2
import gzip
import lzma
import os
import warnings

import numpy as np
import pandas as pd
import pytest

import vaca
from vaca.errors import SupportWarning, VacaError
from vaca.model.streaming import (
    Streamed,
    counterfactual_chunks,
    sample_chunks,
    stream_counterfactuals,
)
from vaca.table.files import TableReader, TableWriter, complete, read_table, write_table

FRAME = pd.DataFrame(
    {
        "n": [1, 2, 3],
        "x": [0.5, -1.25, 3.0],
        "city": ["Köln", "a, b", 'q"q'],
        "flag": [True, False, True],
    }
)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "feather"])
def test_round_trip(suffix, tmp_path):
    path = tmp_path / f"a.{suffix}"
    write_table(FRAME, path)
    pd.testing.assert_frame_equal(read_table(path), FRAME)
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_categories_and_their_order_survive(suffix, tmp_path):
    frame = pd.DataFrame({"s": pd.Categorical(["b", "a"], ["b", "c", "a"], ordered=True)})
    write_table(frame, tmp_path / f"a.{suffix}")
    pd.testing.assert_frame_equal(read_table(tmp_path / f"a.{suffix}"), frame)


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_what_pandas_writes_is_read(suffix, tmp_path):
    path = tmp_path / f"a.{suffix}"
    getattr(FRAME, f"to_{suffix}")(path)
    pd.testing.assert_frame_equal(read_table(path), FRAME)


def test_a_parquet_file_keeps_the_record_of_an_scm(tmp_path):
    drawn = vaca.scms.load("adult").sample(30, seed=1)
    write_table(drawn, tmp_path / "a.parquet")
    assert read_table(tmp_path / "a.parquet").attrs == drawn.attrs


@pytest.mark.parametrize(
    "content",
    [
        b"a,b\n1,2.5\n3,4.5\n",
        b"\xef\xbb\xbfa,b\n1,2.5\n3,4.5\n",
        b"a;b\n1;2.5\n3;4.5\n",
        b"a;b\r\n1;2,5\r\n3;4,5\r\n",
        b"a\tb\n1\t2.5\n3\t4.5\n",
        b"a|b\n1|2.5\n3|4.5\n",
        b'"a","b"\n"1","2.5"\n"3","4.5"\n',
        b" a , b \n1,2.5\n3,4.5\n",
        "a,b\n1,2.5\n3,4.5\n".encode("utf-16"),
        b"\n\na,b\n1,2.5\n\n3,4.5\n",
    ],
    ids=[
        "plain",
        "bom",
        "semicolon",
        "decimal comma",
        "tab",
        "bar",
        "quotes",
        "spaces",
        "utf-16",
        "blank lines",
    ],
)
def test_csv_dialects(content, tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    frame = read_table(path)
    assert list(frame.columns) == ["a", "b"]
    assert frame.to_numpy().tolist() == [[1, 2.5], [3, 4.5]]


def test_none_is_a_level_and_na_is_missing(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("school,x\nNone,1\nNA,2\n,3\nhigh,4\n")
    frame = read_table(path)
    assert frame["school"].isna().tolist() == [False, True, True, False]
    assert frame["school"][0] == "None"


def test_text_levels_that_look_like_numbers(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("code\n01\n02\n")
    schema = vaca.Schema({"code": vaca.Column("binary", ("01", "02"), dtype="str")})
    assert read_table(path, schema)["code"].tolist() == ["01", "02"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "empty file"),
        (b"\n \n", "empty file"),
        (b"a,b\n", "no rows"),
        (b"a,b,a\n1,2,3\n", "two columns are named 'a'"),
        (b"a,b\n1,2\n1,2,3\n", "line 3 has 3 fields"),
        ("a\nKöln\n".encode("latin-1"), r"0xf6 in line 2.*Latin-1.*iconv"),
        (b"PK\x03\x04\x00\x00,\x00\n", "not a text file|not UTF-8"),
    ],
)
def test_bad_csv(content, says, tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    with pytest.raises(VacaError, match=says):
        read_table(path)


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_bad_binary(suffix, tmp_path):
    path = tmp_path / f"a.{suffix}"
    path.write_bytes(b"a,b\n1,2\n")
    with pytest.raises(VacaError, match=f"not a .{suffix} file"):
        read_table(path)


def test_bad_paths(tmp_path):
    with pytest.raises(VacaError, match="no such file"):
        read_table(tmp_path / "a.csv")
    (tmp_path / "b.csv").mkdir()
    with pytest.raises(VacaError, match="is a folder"):
        read_table(tmp_path / "b.csv")
    with pytest.raises(VacaError, match="unknown kind of file '.xlsx'"):
        read_table(tmp_path / "a.xlsx")


@pytest.mark.parametrize("suffix", ["csv", "parquet", "feather"])
def test_chunks_are_the_whole_in_order(suffix, tmp_path):
    path = tmp_path / f"a.{suffix}"
    whole = pd.DataFrame({"x": np.arange(1000.0), "s": ["a", "b"] * 500})
    write_table(whole, path)
    pieces = list(TableReader(path, columns=["x"]).chunks(300))
    assert [len(p) for p in pieces] == [300, 300, 300, 100]
    assert pieces[1].index[0] == 300
    pd.testing.assert_frame_equal(pd.concat(pieces), whole[["x"]])


@pytest.mark.parametrize("suffix", ["csv", "parquet", "feather"])
def test_an_error_while_writing_leaves_the_old_file(suffix, tmp_path):
    path = tmp_path / f"a.{suffix}"
    path.write_text("precious")

    def stop():
        with TableWriter(path) as writer:
            writer.write(FRAME)
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        stop()
    assert path.read_text() == "precious"
    assert os.listdir(tmp_path) == [path.name]


def test_a_full_disk_names_the_file(tmp_path):
    def fill():
        with complete(tmp_path / "a.csv") as part:
            part.write_text("half")
            raise OSError(28, "No space left on device")

    with pytest.raises(VacaError, match=r"a\.csv could not be written: No space left"):
        fill()
    assert os.listdir(tmp_path) == []


# ---------------------------------------------------------------------- streams


@pytest.fixture
def scm():
    return vaca.scms.load("triangle-nlin")


@pytest.mark.parametrize("suffix", ["csv", "parquet", "feather"])
def test_a_stream_is_the_library_answer(suffix, scm, tmp_path):
    facts = scm.sample(500, seed=1)
    write_table(facts, tmp_path / f"in.{suffix}")
    seen = []
    done = stream_counterfactuals(
        scm,
        tmp_path / f"in.{suffix}",
        {"x2": 0.5},
        tmp_path / f"out.{suffix}",
        chunk=120,
        progress=seen.append,
    )
    expected = pd.DataFrame(scm.counterfactual(facts, {"x2": 0.5}))
    pd.testing.assert_frame_equal(read_table(tmp_path / f"out.{suffix}"), expected)
    assert (done.rows, done.written, sum(seen)) == (500, 500, 500)


def test_a_stream_of_draws_and_its_summary(scm, tmp_path):
    facts = scm.sample(50, seed=1).assign(id=[f"p{i}" for i in range(50)])
    write_table(facts, tmp_path / "in.csv")
    options = {"draws": 4, "seed": 3, "keep": ["id"], "chunk": 40}
    stream_counterfactuals(scm, tmp_path / "in.csv", {"x2": 0.5}, tmp_path / "a.csv", **options)
    rows = read_table(tmp_path / "a.csv")
    assert rows["id"].tolist() == [f"p{i}" for i in range(50) for _ in range(4)]
    assert rows["row"].tolist() == [i for i in range(50) for _ in range(4)]
    stream_counterfactuals(
        scm, tmp_path / "in.csv", {"x2": 0.5}, tmp_path / "b.csv", summary=True, **options
    )
    table = read_table(tmp_path / "b.csv")
    assert len(table) == 50
    np.testing.assert_allclose(table["x3_mean"], rows.groupby("row")["x3"].mean())


def test_a_seed_repeats_a_stream(scm, tmp_path):
    write_table(scm.sample(50, seed=1), tmp_path / "in.csv")
    for name in ("a", "b"):
        stream_counterfactuals(
            scm,
            tmp_path / "in.csv",
            {"x2": 0.5},
            tmp_path / f"{name}.csv",
            draws=3,
            seed=5,
            chunk=30,
        )
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_answers_outside_the_data_are_flagged_row_by_row(tmp_path):
    graph = vaca.CausalGraph.from_edges([("x", "y")])
    frame = pd.DataFrame({"x": np.linspace(0, 9, 40)})
    frame["y"] = frame["x"] + np.sin(np.arange(40))
    model = vaca.AdditiveNoise(graph).fit(frame)
    write_table(frame, tmp_path / "in.csv")
    tally = Streamed()
    ((_, answer),) = counterfactual_chunks(
        model, TableReader(tmp_path / "in.csv"), {"x": vaca.Shift(2)}, tally=tally
    )
    outside = frame["x"] + 2 > 9
    assert answer["outside_support"].tolist() == outside.tolist()
    assert tally.outside == {"x": int(outside.sum())}
    ((_, inside),) = counterfactual_chunks(model, TableReader(tmp_path / "in.csv"), {"x": 3.0})
    assert "outside_support" not in inside


def test_samples_in_pieces(scm):
    pieces = list(sample_chunks(scm, 250, {"x2": 0.5}, seed=4, chunk=100))
    assert [len(p) for p in pieces] == [100, 100, 50]
    assert not np.allclose(pieces[0]["x1"], pieces[1]["x1"])
    (whole,) = sample_chunks(scm, 250, {"x2": 0.5}, seed=4)
    pd.testing.assert_frame_equal(whole, scm.sample(250, {"x2": 0.5}, seed=4))


def test_a_missing_column_is_named_before_work_starts(scm, tmp_path):
    write_table(scm.sample(5, seed=1).rename(columns={"x3": "x33"}), tmp_path / "in.csv")
    with pytest.raises(VacaError, match=r"in\.csv: there is no column 'x3'; did you mean 'x33'"):
        stream_counterfactuals(scm, tmp_path / "in.csv", {"x2": 0.5}, tmp_path / "out.csv")
    assert os.listdir(tmp_path) == ["in.csv"]


def test_no_warning_leaks_from_a_stream(tmp_path):
    graph = vaca.CausalGraph.from_edges([("x", "y")])
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 2)), columns=["x", "y"])
    model = vaca.AdditiveNoise(graph).fit(frame)
    write_table(frame, tmp_path / "in.csv")
    with warnings.catch_warnings():
        warnings.simplefilter("error", SupportWarning)
        stream_counterfactuals(model, tmp_path / "in.csv", {"x": 99.0}, tmp_path / "o.csv")
    assert read_table(tmp_path / "o.csv")["outside_support"].all()


ODD_CELLS = [
    "a\rb", "a\r\nb", "a\nb", "\r", '"', '""', ",", ";", "\t", "=1+1", "@SUM(A1)", "-x", "+x", "'",
    " a", "a ", "#", "\\", "\\N", "\x1b[31m", "\x07", "\u2028", "\ufeff", "<b>", "[/x]", "x" * 5000,
]  # fmt: skip


@pytest.mark.parametrize("cell", ODD_CELLS, ids=repr)
@pytest.mark.parametrize("ending", [".csv", ".parquet", ".feather"])
def test_a_file_keeps_odd_cells_and_names(tmp_path, ending: str, cell: str) -> None:
    frame = pd.DataFrame({"name": [cell, "b", "c"], f"q{cell}q": [1.5, 2.5, -3.0]})
    path = tmp_path / f"table{ending}"
    write_table(frame, path)
    found = read_table(path)
    assert found.iloc[:, 0].tolist() == frame["name"].tolist()
    assert found.iloc[:, 1].tolist() == [1.5, 2.5, -3.0]
    assert list(found.columns) == list(frame.columns)


@pytest.mark.parametrize(("pack", "name"), [(gzip, "gzip"), (bz2, "bzip2"), (lzma, "xz")])
def test_a_packed_file_that_is_called_csv(tmp_path, pack, name):
    path = tmp_path / "a.csv"
    path.write_bytes(pack.compress(b"a,b\n1,2\n"))
    with pytest.raises(VacaError, match=f"compressed with {name}"):
        read_table(path)


def test_a_pipe_is_no_file(tmp_path):
    """What is read twice, for its columns and for its rows, is empty the second time."""
    path = tmp_path / "a.csv"
    os.mkfifo(path)
    with pytest.raises(VacaError, match="a pipe or a device"):
        read_table(path)
