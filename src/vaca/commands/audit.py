"""`vaca audit`: how far predictions depend on a sensitive attribute, as a page to read."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vaca.commands.options import FixedSeedOption, ForceOption, ModelArgument
from vaca.commands.reading import load_model
from vaca.commands.terminal import note, say
from vaca.commands.writing import check_writable
from vaca.errors import VacaError

if TYPE_CHECKING:
    import pandas as pd

    from vaca.model.causal_model import CausalModel


def audit(
    model: ModelArgument,
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="The people to audit: .csv, .parquet or .feather.",
            show_default=False,
        ),
    ],
    sensitive: Annotated[
        list[str],
        typer.Option(
            "--sensitive",
            metavar="COLUMN",
            help="The sensitive attribute; several are changed together.",
            show_default=False,
        ),
    ],
    target: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The true outcome.", show_default=False),
    ] = None,
    predict: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.py:NAME",
            help="What to audit: a fitted classifier, or a function of a table.",
            show_default="a classifier fitted here",
        ),
    ] = None,
    classifier: Annotated[
        str, typer.Option(help="Without --predict: full, unaware, fair-x or fair-z.")
    ] = "full",
    learner: Annotated[str, typer.Option(help="Without --predict: lr or svm.")] = "lr",
    positive: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL",
            help="The favourable outcome.",
            show_default="the second in order",
        ),
    ] = None,
    alternatives: Annotated[
        list[str] | None,
        typer.Option(
            "--to",
            metavar="VALUE",
            help="A value to change to; may be repeated.",
            show_default="all that occur",
        ),
    ] = None,
    draws: Annotated[int, typer.Option(min=1, help="Counterfactual draws per person.")] = 100,
    threshold: Annotated[
        float, typer.Option(help="Probabilities of at least this count as favourable.")
    ] = 0.5,
    seed: FixedSeedOption = 0,
    graphs: Annotated[
        bool,
        typer.Option("--graphs", help="Also with each arrow removed or reversed (refits)."),
    ] = False,
    engines: Annotated[
        bool,
        typer.Option("--engines", help="Also with other causal models, fitted to this table."),
    ] = False,
    frontier: Annotated[
        bool,
        typer.Option(
            "--frontier", help="Also other predictors: accuracy against unfairness (--target)."
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Page to write: .html.", show_default="none"),
    ] = None,
    people: Annotated[
        Path | None,
        typer.Option(help="Table of every person to write: .csv.", show_default="none"),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Measure how predictions depend on a sensitive column.

    For each person: what would the predictor have said if the attribute had been different, with
    all that follows from that in the model's graph?

    Example: vaca audit model/ people.csv --sensitive sex --target credit_risk --out audit.html
    """
    for path in (out, people):
        if path is not None:
            check_writable(path, force)
    if out is not None and out.suffix.lower() not in (".html", ".htm"):
        raise VacaError(f"--out {out}: the report is a web page; end its name in .html")
    source = load_model(model)
    from vaca.table.files import read_table

    table = read_table(data)
    if target is not None and target not in table.columns:
        raise VacaError(f"--target {target}: the table has no such column")
    if predict is not None:
        predictor: Any = _load(predict)
    else:
        source.schema_.encode(table)  # or the error says which column or row does not fit
        predictor = _fit(source, table, sensitive, target, classifier, learner)
    from vaca.fairness import audit as run_audit

    label = _label(positive, table, target)
    options: dict[str, Any] = {
        "target": target,
        "positive": label,
        "draws": draws,
        "threshold": threshold,
        "seed": seed,
        "alternatives": alternatives,
    }
    name = predict or f"the {classifier} classifier"
    result = run_audit(source, predictor, table, sensitive, name=name, **options)
    if predict is None:
        result.caveats.append(
            f"The {classifier} classifier ({learner}) was fitted on these very rows; it may treat "
            f"others differently. {_read(source, sensitive, target, classifier)}"
        )
    say(result.summary())
    evidence: dict[str, Any] = {}
    if graphs:
        evidence["graph_robustness"] = _graphs(source, predictor, table, sensitive, options)
    if engines:
        compared = {predict or classifier: predictor}
        if target is not None:
            from vaca.fairness import readable_classifiers

            for other in readable_classifiers(source.graph, sensitive, target):
                if other not in compared and other != "fair-z":  # its features are one engine's own
                    compared[other] = _fit(source, table, sensitive, target, other, learner)
        by_engine = _engines(source, compared, table, sensitive, options)
        say(by_engine.attrs["verdict"])
        evidence["engine_robustness"] = by_engine
    if frontier:
        evidence["frontier"] = _frontier(source, table, sensitive, target, learner, options)
    if people is not None:
        from vaca.table.atomic import complete
        from vaca.table.writing import csv_quoting

        with complete(people) as part:
            told = result.per_person
            told.to_csv(part, index_label="person", quoting=csv_quoting(told.reset_index()))
        note(f"wrote {len(result.per_person):,} lines to {people}")
    if out is not None:
        result.to_html(out, **evidence)
        note(f"wrote the report to {out}")


def _label(positive: str | None, table: pd.DataFrame, target: str | None) -> Any:
    """The label as the table has it: the text "1" may stand for the number 1."""
    if positive is None or target is None:
        return positive
    for value in table[target].unique().tolist():
        if str(value) == positive:
            return value
    raise VacaError(f"--positive {positive}: the column {target!r} has no such value")


def _fit(
    model: CausalModel,
    table: pd.DataFrame,
    sensitive: list[str],
    target: str | None,
    classifier: str,
    learner: str,
) -> Any:
    if target is None:
        raise VacaError(
            "name the predictor with --predict FILE.py:NAME, or the outcome with --target COLUMN, "
            "to fit one here"
        )
    from vaca.fairness import make_classifier
    from vaca.fairness.classifiers import features_for

    columns = list(model.schema_.columns)
    missing = [c for c in columns if c not in table.columns]
    if missing:
        raise VacaError(f"the table lacks the column {missing[0]!r} of the model's graph")
    if table[target].nunique() < 2:
        raise VacaError(f"--target {target}: all outcomes are the same; there is nothing to learn")
    pipeline = make_classifier(
        classifier,  # type: ignore[arg-type]
        model,
        sensitive,
        learner,  # type: ignore[arg-type]
        target,
    )
    if not classifier.startswith("fair-z"):  # which reads a row's noise, from all its columns
        columns = features_for(classifier, model.graph, sensitive, target)  # type: ignore[arg-type]
    try:
        return pipeline.fit(table[columns], table[target])
    except ValueError as error:
        why = " ".join(str(error).split())
        raise VacaError(
            f"--target {target}: the {classifier} classifier cannot be fitted to it: {why[:200]}"
        ) from None


def _read(model: CausalModel, sensitive: list[str], target: str | None, classifier: str) -> str:
    """What a classifier that was fitted here saw, and what it did not."""
    from vaca.fairness.classifiers import features_for, told_by

    seen = features_for(classifier, model.graph, sensitive, target)  # type: ignore[arg-type]
    hidden = told_by(model.graph, target)
    text = f"It read {', '.join(seen)}"
    if hidden:
        text += f"; not {', '.join(hidden)}: the outcome, and what follows from it"
    return text + "."


def _load(text: str) -> Any:
    """The object NAME of FILE.py or of a module."""
    where, colon, name = text.rpartition(":")
    if not colon or not where or not name:
        raise VacaError(f"--predict {text}: write FILE.py:NAME, like scoring.py:predict")
    if where.endswith(".py"):
        path = Path(where)
        if not path.is_file():
            raise VacaError(f"--predict {text}: there is no file {where}")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        if spec is None or spec.loader is None:
            raise VacaError(f"--predict {text}: {where} cannot be read as Python")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    else:
        try:
            module = importlib.import_module(where)
        except ModuleNotFoundError:
            raise VacaError(f"--predict {text}: there is no module {where!r}") from None
    if not hasattr(module, name):
        raise VacaError(f"--predict {text}: {where} has no {name!r}")
    return getattr(module, name)


def _graphs(
    model: CausalModel, predictor: Any, table: pd.DataFrame, sensitive: list[str], options: dict
) -> Any:
    from vaca.fairness import graph_robustness

    if not hasattr(model, "fit"):
        raise VacaError("--graphs fits the model again, and a built-in SCM is not fitted")

    def told(name: str) -> None:
        note(f"fitting: {name}")

    return graph_robustness(model, predictor, table, sensitive, progress=told, **_asked(options))


def _engines(
    model: CausalModel,
    classifiers: dict[str, Any],
    table: pd.DataFrame,
    sensitive: list[str],
    options: dict,
) -> pd.DataFrame:
    from vaca.engines.registry import engine_class, engine_names
    from vaca.fairness import engine_robustness

    engines: dict[str, CausalModel] = {getattr(model, "name", None) or type(model).__name__: model}
    for name in engine_names(auto=True, arrows=True):
        if name not in engines:
            note(f"fitting: {name}")
            family: Any = engine_class(name)
            other = family(model.graph, schema=model.schema_)
            engines[name] = other.fit(table[list(model.schema_.columns)], progress=False)
    return engine_robustness(engines, classifiers, table, sensitive, **_asked(options))


def _frontier(
    model: CausalModel,
    table: pd.DataFrame,
    sensitive: list[str],
    target: str | None,
    learner: str,
    options: dict,
) -> pd.DataFrame:
    if target is None:
        raise VacaError("--frontier fits predictors: name the true outcome with --target COLUMN")
    from sklearn.model_selection import train_test_split

    from vaca.fairness import frontier

    values = table[target]
    positive = options["positive"]
    if positive is None:
        positive = sorted(values.unique().tolist())[-1]
    train, test = train_test_split(
        table, test_size=0.3, stratify=values, random_state=options["seed"]
    )
    note(f"frontier: fitted on {len(train):,} of the rows, measured on the other {len(test):,}")
    asked = {**_asked(options), "positive": positive}
    asked["learner"] = learner
    return frontier(model, train, train[target], test, test[target], sensitive, **asked)


def _asked(options: dict) -> dict:
    names = ("positive", "draws", "threshold", "seed", "alternatives")
    return {name: options[name] for name in names}
