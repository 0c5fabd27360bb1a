"""Tables, figures and pages as pure functions of reports."""

from __future__ import annotations

import csv
import hashlib
import io

import numpy as np
import pytest

from vaca.commands.app import run as vaca
from vaca.errors import VacaError
from vaca.evaluation import METRICS
from vaca.reproduction import results_page
from vaca.reproduction.auto_study import CANDIDATES
from vaca.reproduction.catalogue import EXPERIMENTS
from vaca.reproduction.comparison import best_published, compare, published, results_table
from vaca.reproduction.experiment import Options, parse_seeds, write_outputs
from vaca.reproduction.fairness import CLASSIFIERS, LEARNERS, MEASURES, split
from vaca.reproduction.figures import Picture
from vaca.reproduction.paper import RESULT_MODELS, SCMS
from vaca.reproduction.result_tables import Cell, Table, to_csv, to_html, to_latex, to_markdown
from vaca.reproduction.run import Run, Store
from vaca.reproduction.studies import MODELS, edits_of
from vaca.reproduction.truths import load_truth


def made_up(run: Run) -> dict:
    """A report with numbers that depend on the run alone."""
    rng = np.random.default_rng(int(hashlib.sha256(run.key.encode()).hexdigest()[:8], 16))
    names = dict.fromkeys(run.protocols, METRICS)
    if run.task == "fairness":
        names = {
            "fairness": [
                f"{learner} {name} {measure}"
                for learner in LEARNERS
                for name in CLASSIFIERS
                for measure in MEASURES
            ]
        }
    if run.task == "selection":
        parts = ("int_mmd", "score")
        names = {"selection": [f"{name} {part}" for name in CANDIDATES for part in parts]}
    scores = {p: {m: [float(rng.gamma(2.0)), 0.5] for m in ms} for p, ms in names.items()}
    return {
        "run": run.to_dict(),
        "scores": {} if run.task == "parameters" else scores,
        "parameters": int(rng.integers(100, 9999)),
        "epochs": 10,
        "fit_seconds": float(rng.gamma(2.0)),
        "fit_cpu_seconds": float(rng.gamma(2.0)),
        "validation_mmd": float(rng.gamma(2.0)),
    }


def fixed(scm, model, value, seeds=3, floor=0.5, **by_metric):
    """Reports in which every metric has the same mean; seeds differ by 0.1."""
    return [
        {
            "run": Run(scm, model, seed=s).to_dict(),
            "scores": {
                protocol: {m: [by_metric.get(m, value) + 0.1 * (s - 1), floor] for m in METRICS}
                for protocol in ("paper", "published")
            },
            "parameters": 5600,
            "fit_seconds": 1.0,
        }
        for s in range(seeds)
    ]


def test_the_page_says_how_good_the_choice_of_auto_is():
    def report(seed, chosen, **scores):
        found = {f"{name} int_mmd": [value, 0.5] for name, value in scores.items()}
        found |= {f"{name} score": [1.0 if name == chosen else 2.0, None] for name in scores}
        run = Run("loan", "auto", seed=seed, task="selection").to_dict()
        return {"run": run, "scores": {"selection": found}}

    reports = [
        report(0, "flow", additive=3.0, flow=1.0, carefl=9.0, vaca=2.0),
        report(1, "vaca", additive=3.0, flow=1.0, carefl=9.0, vaca=2.0),
    ]
    (table,) = EXPERIMENTS["auto"].show(reports, Options())
    (row,) = table.rows
    shown = dict(zip(table.head[3:], (cell.mean for cell in row[3:]), strict=True))
    assert row[2].text == "CausalFlow"
    assert shown["Chosen"] == 1.5  # the mean of what was chosen, 1 and 2
    assert shown["Ratio"] == 1.5 and shown["Worst seed"] == 2.0
    assert "on 0 of 1 SCMs" in table.caption


@pytest.mark.parametrize("number", [100, 101, 104])
def test_random_truths_are_causal_models(number):
    truth = load_truth(f"random:{number}")
    assert 3 <= len(truth.graph.nodes) <= 9
    rows = truth.sample(200, seed=1)
    assert np.isfinite(rows.to_numpy()).all()
    back = truth.counterfactual(rows, {})
    np.testing.assert_allclose(back, rows, atol=1e-9)
    assert load_truth(f"random:{number}").sample(200, seed=1).equals(rows)


# ---------------------------------------------------------------------- published figures


def test_published_table_is_whole():
    table = published()
    assert len(table) == 14 * 3 * 6
    assert set(table["scm"]) == set(SCMS)
    assert best_published("collider-lin", "obs_mmd") == ("VACA", 1.50, 0.67)
    assert best_published("collider-lin", "cf_mse") == ("CAREFL", 8.11, 0.58)
    assert best_published("collider-lin", "obs_mmd", "CAREFL")[1] == 9.27
    # of the published StdE the nearest to what a perfect model scores
    assert best_published("collider-lin", "int_std_e", floor=42.7)[0] == "VACA"
    assert np.isnan(best_published("long-chain:3", "obs_mmd")[1])


def test_verdicts_against_published():
    def tones(scm, model, value, floor=0.5, **by_metric):
        reports = fixed(scm, model, value, floor=floor, **by_metric)
        return {c.metric: c.tone for c in compare(reports, SCMS, RESULT_MODELS)}

    assert tones("collider-lin", "vaca", 0.1)["obs_mmd"] == "better"
    assert tones("collider-lin", "vaca", 1.5)["obs_mmd"] == "same"
    assert tones("collider-lin", "vaca", 9.0)["obs_mmd"] == "worse"
    # in the paper's configuration a model is compared with its own published row
    assert tones("collider-lin", "carefl-paper", 9.3)["obs_mmd"] == "same"
    # a StdE below the floor is no success
    floor = 42.7
    assert tones("collider-lin", "vaca", 42.7, floor)["int_std_e"] == "better"
    assert tones("collider-lin", "vaca", 30.0, floor)["int_std_e"] == "worse"
    # rows that answer another question are not judged
    assert tones("chain-nadd", "vaca", 0.1) == {}
    assert tones("adult", "vaca", 0.1) == {}


def test_results_table_holds_ours_published_and_floor():
    reports = fixed("collider-lin", "vaca-paper", 2.0) + fixed("loan", "flow", 1.0)
    table = results_table(reports, "published", ["collider-lin", "loan"], RESULT_MODELS)
    names = [(row[0].text, row[1].text) for row in table.rows]
    assert names == [
        ("collider-lin", "VACA (paper)"),
        ("collider-lin", "MultiCVAE, published"),
        ("collider-lin", "CAREFL, published"),
        ("collider-lin", "VACA, published"),
        ("collider-lin", "floor (truth)"),
        ("loan", "CausalFlow"),
        ("loan", "MultiCVAE, published"),
        ("loan", "CAREFL, published"),
        ("loan", "VACA, published"),
        ("loan", "floor (truth)"),
    ]
    cell = table.rows[0][2]
    assert (cell.mean, cell.sd) == (pytest.approx(2.0), pytest.approx(0.1))
    assert cell.note == "published VACA 1.50 ± 0.67; floor 0.50; ratio 4.00"
    assert table.rows[0][-2:] == (Cell(text="5600"), Cell(text="3"))
    paper = results_table(reports, "paper", ["collider-lin"], RESULT_MODELS)
    assert [row[1].text for row in paper.rows] == ["VACA (paper)", "floor (truth)"]
    assert all(cell.tone == "none" for row in paper.rows for cell in row)


# ---------------------------------------------------------------------- formats


@pytest.fixture
def table():
    rows = (
        (Cell(text="a_b"), Cell(1.234, 0.5, tone="better", note="n")),
        (Cell(text="c|<d>"), Cell(2.0, tone="worse")),
    )
    return Table("Title", ("Name & co", "Score"), rows, notes=("† said.",))


def test_markdown(table):
    assert to_markdown(table).splitlines()[:4] == [
        "| Name & co | Score |",
        "| :-- | --: |",
        "| a_b | **1.23 ± 0.50** |",
        "| c/<d> | *2.00* |",
    ]


def test_csv(table):
    rows = list(csv.reader(io.StringIO(to_csv(table))))
    assert rows[0] == ["Name & co", "Score", "Score sd", "Score note"]
    assert rows[1] == ["a_b", "1.234", "0.5", "n"]
    assert rows[2] == ["c|<d>", "2", "", ""]


def test_latex(table):
    text = to_latex(table)
    assert r"Name \& co & Score \\" in text
    assert r"a\_b & \textbf{1.23$\pm$0.50} \\" in text


def test_html(table):
    text = to_html("Page", [table])
    assert '<td class="better">1.23 ± 0.50<small>n</small></td>' in text
    assert "c|&lt;d&gt;" in text
    assert "† said." in text
    assert "http" not in text  # nothing is loaded from elsewhere


# ---------------------------------------------------------------------- every experiment


#: Their reports are of another shape, and have tests of their own.
OWN_REPORTS = ("check", "coverage", "missing", "default")


@pytest.mark.parametrize("name", [n for n in EXPERIMENTS if n not in OWN_REPORTS])
@pytest.mark.parametrize("quick", [False, True])
def test_experiment_plans_and_shows(name, quick, tmp_path):
    options = Options(quick=quick)
    if name in ("cross-validation", "figure-pairs", "figure-latent-dim"):
        options = Options(seeds=(0,), scms=("chain-nlin",), quick=quick)
    experiment = EXPERIMENTS[name]
    runs = experiment.runs(options)
    if quick and runs:
        assert {run.seed for run in runs} <= {0, 1}
        assert len(runs) <= 150
    assert len({run.key for run in runs}) == len(runs)
    if quick and name in ("sensitivity-graph", "sample-size"):  # one row of panels is enough
        runs = [run for run in runs if run.scm == runs[0].scm]
    shown = experiment.show([made_up(run) for run in runs], options)
    assert shown
    for table in (item for item in shown if isinstance(item, Table)):
        assert table.rows
        assert {len(row) for row in table.rows} == {len(table.head)}
    if not quick:  # drawn once is enough
        return
    files = write_outputs(tmp_path, name, name, shown, "")
    assert f"{name}.html" in {file.name for file in files}
    assert all(file.stat().st_size > 0 for file in files)
    if any(isinstance(item, Picture) for item in shown):
        assert any(file.suffix == ".png" for file in files)


def test_results_cover_the_paper_and_start_with_one_seed_of_everything():
    runs = EXPERIMENTS["table-results"].runs(Options())
    assert len(runs) == 14 * len(RESULT_MODELS) * 5
    first = runs[: 14 * len(RESULT_MODELS)]
    assert {run.seed for run in first} == {0}
    assert {run.scm for run in first} == set(SCMS)


def test_graph_edits_are_acyclic_and_complete():
    edits = edits_of("triangle-lin")
    assert edits["edge left out"] == ("-x1->x2", "-x1->x3", "-x2->x3")
    assert edits["edge turned"] == ("~x1->x2", "~x2->x3")  # x1 -> x3 would close a cycle
    assert edits["edge added"] == ()
    assert edits_of("chain-lin")["edge added"] == ("+x1->x3",)


@pytest.mark.parametrize(
    ("text", "seeds"), [("2", (0, 1)), ("3-4", (3, 4)), ("5,1", (5, 1)), ("7,", (7,))]
)
def test_seeds(text, seeds):
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["x", "0", "1-x", "1-2-3"])
def test_bad_seeds(text):
    with pytest.raises(VacaError, match="--seeds"):
        parse_seeds(text)


# ---------------------------------------------------------------------- the page


def test_page_of_made_up_reports(tmp_path):
    store = Store(tmp_path)
    assert results_page.accuracy(store) == results_page.summary(store) == ""
    runs = EXPERIMENTS["table-results"].runs(Options(seeds=(0, 1), scms=SCMS[:3]))
    for run in runs + EXPERIMENTS["depth"].runs(Options(seeds=(0,), models=("composite",))):
        report = made_up(run)
        store.write(run, {k: v for k, v in report.items() if k != "run"})
    quick = EXPERIMENTS["table-results"].runs(Options(quick=True))[0]
    store.write(quick, {k: v for k, v in made_up(quick).items() if k != "run"})
    text = results_page.accuracy(store)
    assert f"{len(runs)} runs, 2 seeds for each cell" in text  # the quick run does not count
    assert "Worse than published" in text
    assert "images/results/depth.png" in text
    assert "No run is stored for: triangle-lin" in text
    names = [picture.name for picture in results_page.pictures(store)]
    assert names == ["results-int-mmd", "results-cf-mse", "depth"]
    assert "Composite (default) in " in results_page.summary(store)


# ---------------------------------------------------------------------- the command


def test_command_lists_experiments(capsys):
    assert vaca(["reproduce"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in EXPERIMENTS)


def test_command_runs_shows_and_resumes(tmp_path, capsys):
    arguments = ["reproduce", "table-results", "--scms", "chain-lin", "--models", "truth"]
    arguments += ["--seeds", "1", "--quick", "--workers", "1", "--out", str(tmp_path / "r")]
    assert vaca([*arguments, "--dry-run"]) == 0
    assert "1 runs, 1 to do" in capsys.readouterr().out
    assert vaca(arguments) == 0
    out = capsys.readouterr().out
    assert "VACA, published" in out
    assert "[1/1]" in out
    names = {path.name for path in (tmp_path / "r").iterdir()}
    assert names == {"runs", *(f"table-results.{end}" for end in ("csv", "md", "tex", "html"))}
    assert vaca(arguments) == 0
    assert "1 runs, 1 of them done before" in capsys.readouterr().out


def test_command_says_that_a_run_failed(tmp_path, capsys):
    arguments = ["reproduce", "table-results", "--scms", "no-such", "--models", "truth"]
    assert vaca([*arguments, "--seeds", "1", "--workers", "1", "--out", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "unknown SCM 'no-such'" in out
    assert "nothing to show" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tabel-results"], "did you mean 'table-results'"),
        (["table-results", "--models", "vacca"], "did you mean 'vaca'"),
        (["table-results", "--engine", "dask"], "--scheduler"),
        (["table-results", "--seeds", "many"], "--seeds many"),
    ],
)
def test_command_mistakes(arguments, message, capsys, tmp_path):
    assert vaca(["reproduce", *arguments, "--out", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err


# ---------------------------------------------------------------------- fairness


def fairness_reports(seeds=4, **values):
    """Reports of the fairness table with f1 70 and uf 5 throughout, but for `values`."""
    reports = []
    for seed in range(seeds):
        run = Run("german-credit", "flow", seed=seed, task="fairness", protocols=())
        scores = {}
        for learner in LEARNERS:
            for name in CLASSIFIERS:
                for measure in MEASURES:
                    plain = 5.0 if measure.startswith("uf") else 70.0
                    value = values.get(
                        f"{name} {measure}".replace("-", "_").replace(" ", "_"), plain
                    )
                    scores[f"{learner} {name} {measure}"] = [value + 0.1 * seed, None]
        reports.append({"run": run.to_dict(), "scores": {"fairness": scores}})
    return reports


def aims(reports):
    _, table = EXPERIMENTS["table-fairness"].show(reports, Options())
    return {row[0].text: row[3].text for row in table.rows}


def test_fairness_aims_are_judged():
    nothing_learned = aims(fairness_reports())
    assert nothing_learned == {
        "uf: full at least that of unaware": "reached",
        "uf: unaware well above fair-z": "missed",
        "uf: unaware well above fair-x": "missed",
        "uf of fair-z at most 1.0": "missed",
        "uf of fair-x at most 0.2": "missed",
        "f1: fair-z at most 3 below full": "reached",
    }
    good = aims(fairness_reports(full_uf=9.0, fair_z_uf=0.5, fair_x_uf=0.0, fair_z_f1=67.5))
    assert set(good.values()) == {"reached"}
    assert aims(fairness_reports(unaware_uf=5.1))["uf: full at least that of unaware"] == "missed"
    assert aims(fairness_reports(fair_z_f1=66.9))["f1: fair-z at most 3 below full"] == "missed"


def test_fairness_figures_stand_beside_the_published_with_intervals():
    figures, _ = EXPERIMENTS["table-fairness"].show(fairness_reports(), Options())
    rows = {(row[0].text, row[1].text): [c.plain() for c in row[2:]] for row in figures.rows}
    # 5.0, 5.1, 5.2, 5.3: mean 5.15, sd 0.129, t 3.182 x 0.129 / 2 = 0.205
    assert rows["lr: uf", "CausalFlow"][0] == "5.15 ± 0.13 [4.94, 5.36]"
    assert rows["lr: uf", "VACA, published"][:4] == [
        "18.30 ± 3.22", "17.65 ± 3.20", "0.16 ± 0.02", "0.44 ± 0.24"
    ]  # fmt: skip
    assert "4.94 to 5.36" in to_csv(figures)
    one = EXPERIMENTS["table-fairness"].show(fairness_reports(seeds=1), Options())[0]
    assert one.rows[0][2].plain() == "70.00"


def test_fairness_splits_are_stratified():
    target = np.repeat(["good", "bad"], [700, 300])
    parts = split(target, seed=3)
    assert sorted(np.concatenate(parts)) == list(range(1000))
    assert [(len(p), int((target[p] == "bad").sum())) for p in parts] == [
        (800, 240), (100, 30), (100, 30)
    ]  # fmt: skip
    assert not np.array_equal(parts[2], split(target, seed=4)[2])


def test_what_would_take_the_papers_model_hours_is_run_when_it_is_named():
    runs = EXPERIMENTS["depth"].runs(Options())
    longest = {m: max(int(r.scm.split(":")[1]) for r in runs if r.model == m) for m in MODELS}
    assert longest == {"vaca-paper": 12, "composite": 20}
    named = Options(models=("vaca-paper",), scms=("long-chain:20",))
    assert [r.scm for r in EXPERIMENTS["depth"].runs(named)] == ["long-chain:20"] * 3
    rows = EXPERIMENTS["sample-size"].runs(Options())
    most = {m: max(r.train for r in rows if r.model == m) for m in MODELS}
    assert most == {"vaca-paper": 16_000, "composite": 100_000}
