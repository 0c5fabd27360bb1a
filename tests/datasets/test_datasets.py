import hashlib
import lzma
from importlib.resources import files

import pandas as pd
import pytest

import vaca
from vaca.datasets import adult, german

SHIPPED = files("vaca.datasets") / "files"


def test_german_file_is_the_original():
    content = (SHIPPED / "german.data").read_bytes()
    assert hashlib.md5(content).hexdigest() == "6b94c2e35480e671545e52a808a8a549"
    assert hashlib.sha256(content).hexdigest() == german.SHA256


@pytest.mark.parametrize("name", adult.SHA256)
def test_adult_files_are_the_originals(name):
    content = lzma.decompress((SHIPPED / name).read_bytes())
    assert hashlib.sha256(content).hexdigest() == adult.SHA256[name]


def test_sources_name_licence_and_checksums():
    text = (SHIPPED / "SOURCES.md").read_text(encoding="utf-8")
    assert "CC BY 4.0" in text
    for sha256 in (german.SHA256, *adult.SHA256.values()):
        assert sha256 in text


def test_tracked_files_are_small():
    assert all(path.stat().st_size < 2**20 for path in SHIPPED.iterdir())


def test_german_counts():
    data = vaca.datasets.german_credit()
    assert data.data.shape == (1000, 7)
    assert data.data["sex"].value_counts().to_dict() == {"male": 690, "female": 310}
    assert data.target.value_counts().to_dict() == {"good": 700, "bad": 300}
    assert data.target.name == "credit_risk"
    assert data.frame.shape == (1000, 8)
    assert not data.frame.isna().any().any()


def test_german_columns_graph_and_schema():
    data = vaca.datasets.german_credit()
    columns = ["sex", "age", "credit_amount", "repayment_history", "checking_account"]
    assert list(data.data.columns) == [*columns, "savings", "housing"]
    graph = data.graph
    assert graph.nodes == ("sex", "age", "R", "H")
    assert graph.columns("R") == ("credit_amount", "repayment_history")
    assert graph.columns("H") == ("checking_account", "savings", "housing")
    assert set(graph.edges) == {("sex", "R"), ("sex", "H"), ("age", "R"), ("age", "H")}
    assert (graph.longest_path, graph.longest_shortest_path) == (1, 1)
    assert data.schema.kind("sex") == "binary"
    assert data.schema.levels("sex") == ("female", "male")
    assert data.schema.kind("credit_amount") == "continuous"
    assert len(data.schema.levels("repayment_history")) == 5
    assert set(data.schema.columns) == set(data.data.columns)


def test_german_rows_match_the_file():
    # The first line of the file: A11 6 A34 A43 1169 A65 A75 4 A93 ... 67 A143 A152 ... 1
    first = vaca.datasets.german_credit().frame.iloc[0].to_dict()
    assert first == {
        "sex": "male",
        "age": 67,
        "credit_amount": 1169,
        "repayment_history": "critical account",
        "checking_account": "below 0 DM",
        "savings": "unknown or none",
        "housing": "own",
        "credit_risk": "good",
    }


def test_german_is_not_sorted():
    # A corrupt copy that is about has its sex column sorted.
    sex = vaca.datasets.german_credit().data["sex"]
    assert not sex.is_monotonic_increasing
    assert not sex.is_monotonic_decreasing


def test_adult_counts():
    both = vaca.datasets.adult_census(missing="level")
    assert len(both.data) == 32_561 + 16_281
    complete = vaca.datasets.adult_census()
    assert len(complete.data) == 45_222
    assert set(complete.target.unique()) == {"<=50K", ">50K"}
    assert int((complete.target == ">50K").sum()) == 11_208
    assert "unknown" not in set(complete.data["workclass"])
    assert set(complete.schema.columns) == set(complete.graph.all_columns)
    assert complete.schema.kind("race") == "categorical"


def test_adult_parts():
    train, test = vaca.datasets.adult_census("train"), vaca.datasets.adult_census("test")
    assert (len(train.data), len(test.data)) == (30_162, 15_060)


def test_adult_unknown_part():
    with pytest.raises(vaca.VacaError, match="unknown part 'trian'; did you mean 'train'"):
        vaca.datasets.adult_census("trian")
    with pytest.raises(vaca.VacaError, match="unknown missing='keep'"):
        vaca.datasets.adult_census(missing="keep")


def test_index_is_shared():
    data = vaca.datasets.german_credit()
    pd.testing.assert_index_equal(data.data.index, data.target.index)
