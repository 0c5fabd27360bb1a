"""The classifiers of the paper: full, unaware, fair-x and fair-z.

- full reads every column;
- unaware leaves out the sensitive attribute;
- fair-x reads only what the sensitive attribute cannot reach;
- fair-z reads the causal model's latent variables, without those of the sensitive attribute, and
  steadied: see `LatentFeatures`;
- fair-z-plain reads them as they are, which is the paper's fair-z.

The names are the paper's. They say what a classifier reads, not that it is fair.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.utils.validation import check_is_fitted

from vaca.errors import VacaError, did_you_mean
from vaca.fairness.alternatives import read_sensitive, sensitive_columns
from vaca.graph.dag import CausalGraph
from vaca.model.arguments import check_count, check_names, check_number, check_seed
from vaca.model.causal_model import CausalModel
from vaca.table.columns import take_rows
from vaca.table.schema import Schema, as_frame
from vaca.table.standard import Standard

ClassifierName = Literal["full", "unaware", "fair-x", "fair-z", "fair-z-plain"]
LearnerName = Literal["lr", "svm"]

CLASSIFIERS: tuple[ClassifierName, ...] = ("full", "unaware", "fair-x", "fair-z")
#: With the paper's own form of fair-z.
ALL_CLASSIFIERS: tuple[ClassifierName, ...] = (*CLASSIFIERS, "fair-z-plain")
LEARNERS: tuple[LearnerName, ...] = ("lr", "svm")

#: How much fair-z's features may change, in sds, before they are held back. Chosen on training rows
#: of three splits of German Credit that no table uses (seeds 100 to 102): the smallest of 0.005,
#: 0.007, 0.01, 0.014 and 0.02 that costs less than 2.5 points of cross-validated f1 against full
#: (lr 0.6; svm 0.9, at 0.01 2.6). A kernel needs more: it sees little of what is held back.
TOLERANCE: dict[LearnerName, float] = {"lr": 0.005, "svm": 0.014}

#: Noise arrays under these prefixes are a row's exogenous noise; others repeat its values.
_NOISE_PREFIXES = ("", "noise/", "z/", "latent/")


class NothingToRead(VacaError):
    """Every column is the sensitive attribute or an effect of it."""


class LatentFeatures(TransformerMixin, BaseEstimator):
    r"""A scikit-learn transformer: rows in, the causal model's latent variables out.

    VACA gives its posterior means, columns `<node>.z0`, `<node>.z1`, ...; other models give the
    abducted noise of each column.

    A person's noise does not depend on the sensitive attribute, but what a row reveals about it
    does: a level (say, "rents") leaves its noise open, and the guess made from a person's row is
    not the one made from the row of the person's counterfactual twin. With `tolerance`, directions
    in which that guess changes are held back: with :math:`\Sigma_\Delta` the second moment, over
    the rows given to `fit`, of the change of the standardised latents between a row and its
    counterfactuals (averaged over draws), the features are
    :math:`(I + \Sigma_\Delta / \mathrm{tolerance}^2)^{-1/2} z`. No label is used.

    Parameters
    ----------
    model : CausalModel
        Fitted already; the transformer does not fit it, and `clone` shares it.
    without : str or list of str, optional
        Nodes (or columns, standing for their nodes) whose latent variables are left out: the
        sensitive attribute.
    target : str, optional
        A column of the graph that is to be predicted: its latent variables, and those of all that
        follows from it, are left out too.
    tolerance : float, optional
        Changes that are let through, in sds of the latent; None leaves the latents as they are.
        Features are then standardised, and should not be scaled again.
    draws : int
        Counterfactual draws for each row in `fit`, with `tolerance`.
    seed : int
        For those draws.

    Examples
    --------
    >>> import vaca
    >>> scm = vaca.scms.load("triangle-lin")
    >>> rows = scm.sample(3, seed=0)
    >>> list(LatentFeatures(scm, without="x1").fit_transform(rows))
    ['x2.z0', 'x3.z0']
    """

    def __init__(
        self,
        model: CausalModel,
        without: str | Sequence[str] | None = None,
        *,
        target: str | None = None,
        tolerance: float | None = None,
        draws: int = 50,
        seed: int = 0,
    ) -> None:
        self.model = model
        self.without = without
        self.target = target
        self.tolerance = tolerance
        self.draws = draws
        self.seed = seed

    def __sklearn_clone__(self) -> LatentFeatures:
        # scikit-learn would clone the model inside as well, and so forget what it has learned.
        return type(self)(**self.get_params(deep=False))

    def fit(self, X: Any, y: Any = None) -> LatentFeatures:
        """Note which latents to give; with `tolerance`, learn how they change with the attribute.

        Parameters
        ----------
        X : DataFrame
        y : ignored
        """
        names = [] if self.without is None else check_names("without", self.without)
        check_count("draws", self.draws)
        check_seed(self.seed)
        graph = self.model.graph
        dropped = {graph.node_of(c) for c in told_by(graph, self.target)}
        for name in names:
            if name not in graph and name not in graph.all_columns:
                raise VacaError(
                    f"without={name!r} is not in the causal graph; "
                    f"{did_you_mean(name, graph.nodes)}"
                )
            dropped.add(name if name in graph else graph.node_of(name))
        self.nodes_ = tuple(n for n in graph.nodes if n not in dropped)
        if not self.nodes_:
            raise VacaError("every node is left out, so there is nothing to predict from")
        frame = as_frame(X)
        self.feature_names_in_ = np.array(self.model.schema_.columns, dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        self.names_ = [c for c in _latent(self.model, frame.head(2)) if self._kept(c)]
        self.mix_ = None
        if self.tolerance is not None:
            if not check_number("tolerance", self.tolerance) > 0 or not names:
                raise VacaError(
                    "tolerance is a number above 0, and needs without= to name the sensitive "
                    f"attribute; got tolerance={self.tolerance!r}, without={self.without!r}"
                )
            self._steady(frame, names)
        return self

    def _kept(self, column: str) -> bool:
        return column.rpartition(".")[0] in self.nodes_

    def _steady(self, frame: pd.DataFrame, sensitive: list[str]) -> None:
        model = self.model
        z = self._plain(frame)
        self.mean_, self.scale_ = Standard.of(z)
        x = model.schema_.encode(frame)
        who = read_sensitive(model, sensitive, None, x)
        changes = []
        for alternative in who.alternatives:
            rows = np.flatnonzero(who.differs(alternative, x))
            do = who.do(alternative, take_rows(x, rows), model.graph, model)
            given = frame[list(x)].iloc[rows]
            twins = model.counterfactual(given, do, draws=self.draws, seed=self.seed)
            after = self._plain(pd.DataFrame(twins).reset_index(drop=True))
            after = after.reshape(len(rows), self.draws, -1).mean(axis=1)
            changes.append((after - z[rows]) / self.scale_)
        change = np.concatenate(changes)
        moment = change.T @ change / len(change)
        values, vectors = np.linalg.eigh(moment / float(self.tolerance or 1.0) ** 2)
        self.mix_ = (vectors / np.sqrt(1 + np.maximum(values, 0))) @ vectors.T

    def _plain(self, frame: pd.DataFrame) -> np.ndarray:
        return _latent(self.model, frame)[self.names_].to_numpy(dtype=float)

    def transform(self, X: Any) -> pd.DataFrame:
        """The latent variables of each row, under the row's index; shape (n, features)."""
        check_is_fitted(self, "names_")
        frame = as_frame(X)
        z = self._plain(frame)
        if self.mix_ is not None:
            z = (z - self.mean_) / self.scale_ @ self.mix_
        return pd.DataFrame(z, index=frame.index, columns=self.names_)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names of the columns that `transform` gives."""
        check_is_fitted(self, "names_")
        return np.array(self.names_, dtype=object)


def _latent(model: CausalModel, frame: pd.DataFrame) -> pd.DataFrame:
    if hasattr(model, "encode"):
        return model.encode(frame)  # type: ignore[attr-defined]
    graph = model.graph
    noise = model._abduct_frame(frame, model.schema_.encode(frame), None)
    found: dict[str, list[np.ndarray]] = {node: [] for node in graph.nodes}
    for key, values in noise.items():
        head, slash, name = key.rpartition("/")
        if head + slash not in _NOISE_PREFIXES:
            continue
        node = name if name in graph else graph.node_of(name) if name in graph.all_columns else None
        if node is not None:
            found[node].extend(np.asarray(values, dtype=float).reshape(len(frame), -1).T)
    columns = {
        f"{n}.z{i}": values for n, arrays in found.items() for i, values in enumerate(arrays)
    }
    return pd.DataFrame(columns, index=frame.index)


class BalancedSVM(ClassifierMixin, BaseEstimator):
    """A support vector machine with balanced class weights and Platt's probabilities.

    `predict` decides by the margin, as the plain SVM does; `predict_proba` is a logistic function
    of the margin, fitted by cross-validation.

    Parameters
    ----------
    C : float
    """

    def __init__(self, C: float = 1.0) -> None:
        self.C = C

    def fit(self, X: Any, y: Any) -> BalancedSVM:
        """Fit the machine and its probabilities."""
        if not check_number("C", self.C) > 0:
            raise VacaError(f"C is a number above 0; got {self.C}")
        svm = SVC(C=self.C, class_weight="balanced")
        self.calibrated_ = CalibratedClassifierCV(svm, ensemble=False).fit(X, y)
        self.classes_ = self.calibrated_.classes_
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The class on whose side of the margin each row lies."""
        return self.calibrated_.calibrated_classifiers_[0].estimator.predict(X)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, shape (n, 2)."""
        return self.calibrated_.predict_proba(X)


def told_by(graph: CausalGraph, target: str | None) -> list[str]:
    """The columns of the graph that give the outcome away: itself, and what follows from it.

    >>> told_by(CausalGraph.from_edges([("pay", "loan"), ("loan", "house")]), "loan")
    ['loan', 'house']
    """
    if target is None or target not in graph.all_columns:
        return []
    node = graph.node_of(target)
    below = {node, *graph.descendants(node)}
    return [c for c in graph.all_columns if graph.node_of(c) in below]


def features_for(
    classifier: ClassifierName,
    graph: CausalGraph,
    sensitive: str | Sequence[str],
    target: str | None = None,
) -> list[str]:
    """The columns that a classifier of the paper reads; never its target or what follows from it.

    >>> graph = CausalGraph.from_edges([("sex", "income"), ("age", "income")])
    >>> features_for("unaware", graph, "sex"), features_for("fair-x", graph, "sex")
    (['income', 'age'], ['age'])
    """
    if not isinstance(graph, CausalGraph):
        raise VacaError("features_for needs a CausalGraph, such as model.graph")
    names = check_names("sensitive", sensitive)
    own = sensitive_columns(graph, names)
    nodes = {graph.node_of(c) for c in own}
    hidden: set[str] = set()
    if not isinstance(classifier, str):
        raise VacaError(f"a classifier is a name: {', '.join(ALL_CLASSIFIERS)}")
    if classifier == "unaware":
        hidden = set(own)
    elif classifier == "fair-x":
        below = nodes.union(graph.descendants(*nodes))
        hidden = {c for n in below for c in graph.columns(n)}
    elif classifier not in ALL_CLASSIFIERS:
        raise VacaError(
            f"unknown classifier {classifier!r}; {did_you_mean(classifier, ALL_CLASSIFIERS)}"
        )
    hidden |= set(told_by(graph, target))
    columns = [c for c in graph.all_columns if c not in hidden]
    if not columns:
        every = " or ".join([*names, *([target] if target in graph.all_columns else [])])
        raise NothingToRead(
            f"{classifier} has nothing to read: every column of the graph is {every} or an effect "
            "of it"
        )
    return columns


def readable_classifiers(
    graph: CausalGraph, sensitive: str | Sequence[str], target: str | None = None
) -> tuple[ClassifierName, ...]:
    """The paper's classifiers that have something to read.

    >>> readable_classifiers(CausalGraph.from_edges([("sex", "income")]), "sex")
    ('full', 'unaware', 'fair-z')
    """
    found: list[ClassifierName] = []
    for name in CLASSIFIERS:
        try:
            features_for(name, graph, sensitive, target)
        except NothingToRead:
            continue
        found.append(name)
    return tuple(found)


def make_classifier(
    classifier: ClassifierName,
    model: CausalModel,
    sensitive: str | Sequence[str],
    learner: LearnerName = "lr",
    target: str | None = None,
) -> Pipeline:
    """An unfitted pipeline for one of the paper's classifiers; fit it on the columns of the graph.

    Parameters
    ----------
    classifier : {"full", "unaware", "fair-x", "fair-z", "fair-z-plain"}
    model : CausalModel
        Gives the graph and the kinds of the columns and, for fair-z, the latent variables.
    sensitive : str or list of str
    learner : {"lr", "svm"}
        Logistic regression or SVM, both with balanced class weights and otherwise defaults.
    target : str, optional
        The column of the graph that is predicted, if it is one: the classifier does not see it, nor
        what the graph puts downstream of it.

    Examples
    --------
    >>> import vaca
    >>> scm = vaca.scms.load("triangle-lin")
    >>> rows = scm.sample(100, seed=0)
    >>> clf = make_classifier("fair-x", scm, "x2").fit(rows, rows["x3"] > 0)
    >>> clf[:-1].get_feature_names_out().tolist()
    ['x1']
    """
    if not isinstance(learner, str) or learner not in LEARNERS:
        raise VacaError(f"unknown learner {learner!r}; {did_you_mean(learner, LEARNERS)}")
    last = (
        BalancedSVM()
        if learner == "svm"
        else LogisticRegression(class_weight="balanced", max_iter=1000)
    )
    columns = features_for(classifier, model.graph, sensitive, target)
    steps: list[tuple[str, Any]]
    if classifier == "fair-z":
        # Deviates from the paper: the latents are steadied. As they are, those of discrete columns
        # tell a twin from the person about as well as the columns themselves.
        latent = LatentFeatures(
            model, without=sensitive, target=target, tolerance=TOLERANCE[learner]
        )
        steps = [("latent", latent)]
    elif classifier == "fair-z-plain":
        latent = LatentFeatures(model, without=sensitive, target=target)
        steps = [("latent", latent), ("scale", StandardScaler())]
    else:
        steps = [("columns", column_encoder(model.schema_, columns))]
    return Pipeline([*steps, (learner, last)])


def column_encoder(schema: Schema, columns: Sequence[str]) -> ColumnTransformer:
    """Numbers standardised, levels as indicators; other columns are dropped."""
    numeric = [c for c in columns if not schema[c].discrete]
    levels = [c for c in columns if schema[c].discrete]
    encode = OneHotEncoder(
        categories=[np.array(schema.levels(c), dtype=object) for c in levels],
        drop="if_binary",
        sparse_output=False,
    )
    parts: list[tuple[str, Any, list[str]]] = []
    if numeric:
        parts.append(("number", StandardScaler(), numeric))
    if levels:
        parts.append(("level", encode, levels))
    return ColumnTransformer(parts, verbose_feature_names_out=False)
