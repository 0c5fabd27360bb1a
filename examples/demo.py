"""A walk through vaca on the shipped table: fit, check, do, counterfactual, effect, audit, report.

Run by `make demo`. It prints what it does in plain words, compares each answer with the equations
that made the table, and writes two pages that need no other file.
"""

from __future__ import annotations

import argparse
import io
import time
import warnings
from pathlib import Path
from typing import Any

from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import vaca
from vaca.evaluation.heldout import holdout_scores
from vaca.fairness.audit_page import headline
from vaca.show.report import Question, write_report

#: Fits behind the intervals, beside the first.
REFITS = 8
UNIVERSITY = {"education": "university"}


def say(text: str = "") -> None:
    print(text, flush=True)


def step(number: int, title: str) -> None:
    say(f"\n{number}. {title}")


def fit(loans: Any, train: Any, test: Any) -> Any:
    step(1, "Fit: learn from a table and a graph")
    say(
        f"   {len(train):,} loan applications, {len(loans.graph)} columns, "
        f"{len(loans.graph.edges)} arrows from cause to effect."
    )
    start = time.perf_counter()
    model = vaca.Composite(loans.graph, loans.schema).fit(train, refits=REFITS)
    say(
        f"   Learned in {time.perf_counter() - start:.0f} s, and {REFITS} times more on weighted "
        "rows, for the intervals."
    )
    scores = holdout_scores(model, test, train)["explained"].sort_values(ascending=False)
    best = ", ".join(f"{name} {value:.0%}" for name, value in scores.head(4).items())
    say(f"   On {len(test):,} rows it has not seen, causes tell of a column: {best}, ...")
    return model


def check(model: Any, train: Any, test: Any) -> None:
    step(2, "Check: do the data speak against the graph or the fit?")
    found = vaca.check(model, train, held_out=test, quick=True, progress=False)
    for line in found.parts.itertuples():
        say(f"   {line.verdict}: {line.part}: {line.words}")


def do(model: Any, scm: Any, out: Path) -> None:
    step(3, "Do: what if everyone went to university?")
    before, after = model.sample(10_000, seed=0), model.sample(10_000, UNIVERSITY, seed=0)
    truth = scm.sample(100_000, UNIVERSITY, seed=1)
    for name in ("income", "savings", "loan_amount"):
        say(
            f"   mean {name}: {before[name].mean():,.0f} as is, {after[name].mean():,.0f} under do; "
            f"by the equations {truth[name].mean():,.0f}"
        )
    shares = [(table["approved"] == "yes").mean() for table in (before, after, truth)]
    say("   approved: {:.1%} as is, {:.1%} under do; by the equations {:.1%}".format(*shares))
    picture = vaca.plot.plot_population(
        vaca.plot.with_levels(before, model.schema_),
        vaca.plot.with_levels(after, model.schema_),
        columns=["education", "income", "savings", "approved"],
        labels=("as is", "do(education = university)"),
    )
    say(f"   drew {vaca.plot.save_picture(picture, out / 'population.png')}")


def imagine(model: Any, scm: Any, out: Path) -> None:
    step(4, "Counterfactual: what would these very people have been?")
    people = scm.sample(2000, seed=5)
    rows = people[people["education"] != "university"]
    truth = scm.counterfactual(rows, UNIVERSITY)
    answer = model.counterfactual(rows, UNIVERSITY)
    for name in ("income", "loan_amount"):
        missed = (answer[name] - truth[name]).abs().mean()
        moved = (rows[name] - truth[name]).abs().mean()
        say(
            f"   {name} would have moved by {moved:,.0f} on average; the model misses by "
            f"{missed:,.0f}."
        )
    one = rows.head(1)
    draws = model.counterfactual(one, UNIVERSITY, draws=200, seed=0)
    chance = (draws["approved"] == "yes").mean()
    say(
        f"   The first of them was {'approved' if one['approved'].iloc[0] == 'yes' else 'refused'}; "
        f"with a university degree approved in {chance:.0%} of 200 draws."
    )
    picture = vaca.plot.plot_person(one, draws, columns=list(model.schema_), population=people)
    say(f"   drew {vaca.plot.save_picture(picture, out / 'person.png')}")


def effect(model: Any, scm: Any, out: Path) -> None:
    step(5, "Effect: how much does sex matter for income, and through what?")
    arms = ({"sex": "male"}, {"sex": "female"})
    held = tuple({**arm, "education": "college"} for arm in arms)
    found = {}
    for label, (treatment, control) in {"in all": arms, "at the same education": held}.items():
        found[label] = model.effect("income", treatment, control)
        true = scm.effect("income", treatment, control, n=100_000).value
        low, high = found[label].interval()
        verdict = "inside" if low <= true <= high else "outside, as 1 of 20 are"
        say(
            f"   {label}: {found[label].value:,.0f} (95 % {low:,.0f} to {high:,.0f}); by the "
            f"equations {true:,.0f}, {verdict}"
        )
    first = found["in all"]
    if first.cross_check is not None:
        say(f"   a second method: {first.cross_check.words}")
    if hasattr(first, "sensitivity"):
        say(f"   a hidden cause: {first.sensitivity().sentence}")
    picture = vaca.plot.plot_effects(found)
    say(f"   drew {vaca.plot.save_picture(picture, out / 'effects.png')}")


def audit(model: Any, loans: Any, train: Any, test: Any, out: Path) -> None:
    step(
        6, "Audit: would a classifier have decided otherwise, had the person been of the other sex?"
    )
    features = [c for c in loans.data.columns if c != "approved"]
    levels = [c for c in features if loans.schema[c].discrete]
    numbers = [c for c in features if c not in levels]
    prepare = make_column_transformer((OneHotEncoder(), levels), (StandardScaler(), numbers))
    classifier = make_pipeline(prepare, LogisticRegression(max_iter=500))
    classifier.fit(train[features], train["approved"])
    result = vaca.audit(
        model, classifier, test.head(300), "sex", positive="yes", target="approved", draws=20
    )
    say(f"   {headline(result)} {100 * result.flips:.1f} % of decisions would be another.")
    parts = result.decomposition
    if parts is not None:
        ways = parts.drop(index="total")["unfairness"].sort_values(ascending=False).head(3)
        say("   mostly " + ", ".join(f"{way} ({100 * size:.1f})" for way, size in ways.items()))
    say(f"   wrote {result.to_html(out / 'audit.html')}")


def report(model: Any, loans: Any, test: Any, out: Path) -> Path:
    step(7, "Report: everything on one page")
    question = Question({"sex": "male"}, {"sex": "female"}, ["income", "approved"])
    return write_report(
        model,
        loans.data,
        out / "index.html",
        held_out=test,
        question=question,
        title="Loan applications: a causal model",
    )


def overview(path: Path) -> None:
    """Draw the picture of the README: the loan graph with an intervention, above what it changes."""
    from matplotlib.figure import Figure
    from PIL import Image

    scm = vaca.datasets.loan_applications_scm()
    before, after = scm.sample(20_000, seed=0), scm.sample(20_000, UNIVERSITY, seed=0)
    tables = [vaca.plot.with_levels(table, scm.schema_) for table in (before, after)]
    above = Figure(figsize=(10, 3.9), layout="constrained")
    vaca.plot.plot_graph(scm.graph, ax=above.subplots(), do=UNIVERSITY)
    below = vaca.plot.plot_population(
        *tables,
        columns=["education", "income", "savings", "approved"],
        labels=("as is", "everyone at university"),
        limits={name: tuple(before[name].quantile([0, 0.995])) for name in ("income", "savings")},
    )
    images = []
    for figure in (above, below):
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=120)
        images.append(Image.open(buffer).convert("RGB"))
    width = max(image.width for image in images)
    sheet = Image.new("RGB", (width, sum(image.height for image in images)), "white")
    top = 0
    for image in images:
        sheet.paste(image, ((width - image.width) // 2, top))
        top += image.height
    path.parent.mkdir(parents=True, exist_ok=True)
    sheet.quantize(64).save(path, optimize=True)
    say(f"wrote {path}")


def main() -> None:
    parser = argparse.ArgumentParser(description="A walk through vaca on the shipped table.")
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder of the pages")
    parser.add_argument("--picture", type=Path, help="only draw the README's picture to this file")
    arguments = parser.parse_args()
    if arguments.picture:
        overview(arguments.picture)
        return
    start = time.perf_counter()
    out = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    loans, scm = vaca.datasets.loan_applications(), vaca.datasets.loan_applications_scm()
    say("The example: made-up loan applications, from equations that are known. So every answer of")
    say("the model, which has seen the table alone, can be compared with the truth.")
    test = loans.data.sample(500, random_state=0)
    train = loans.data.drop(index=test.index)
    model = fit(loans, train, test)
    model.save(out / "model")
    check(model, train, test)
    do(model, scm, out)
    imagine(model, scm, out)
    effect(model, scm, out)
    audit(model, loans, train, test, out)
    page = report(model, loans, test, out)
    say(
        f"\nDone in {time.perf_counter() - start:.0f} s. Open {page} in a browser; the audit is "
        f"{out / 'audit.html'}."
    )
    say(f"The model is saved. Try: vaca do {out / 'model'} --do age+=5")


if __name__ == "__main__":
    warnings.simplefilter("ignore", vaca.SupportWarning)
    main()
