"""A table and what is assumed about it: the graph, the kinds of its columns, the target."""

from __future__ import annotations

import hashlib
import lzma
from dataclasses import dataclass
from importlib.resources import files

import pandas as pd

from vaca.errors import VacaError
from vaca.graph.dag import CausalGraph
from vaca.table.schema import Schema


@dataclass(frozen=True)
class Dataset:
    """A table, its causal graph and schema, and what is to be predicted from it.

    Attributes
    ----------
    name : str
    data : DataFrame
        The columns that the graph names; `model.fit(dataset.data)` works as it is.
    graph : CausalGraph
        An assumption, not a finding: `description` says whose.
    schema : Schema
    target : Series
        What classifiers predict; under the index of `data`. It is not part of the graph.
    positive : str
        The favourable level of the target.
    description : str
        What the rows and columns are, where they come from, and the licence.
    """

    name: str
    data: pd.DataFrame
    graph: CausalGraph
    schema: Schema
    target: pd.Series
    positive: str
    description: str

    @property
    def frame(self) -> pd.DataFrame:
        """The data with the target as its last column."""
        return self.data.assign(**{str(self.target.name): self.target})

    def __repr__(self) -> str:
        return (
            f"Dataset({self.name}: {len(self.data):,} rows, {len(self.data.columns)} columns, "
            f"target {self.target.name!r})"
        )


def read_shipped(name: str, sha256: str) -> str:
    """The text of a file that ships with the package, checked against its original's checksum."""
    content = (files("vaca.datasets") / "files" / name).read_bytes()
    if name.endswith(".xz"):
        content = lzma.decompress(content)
    if hashlib.sha256(content).hexdigest() != sha256:
        raise VacaError(
            f"the shipped file {name} is not the original (its checksum differs); install the "
            "package again"
        )
    return content.decode("ascii")
