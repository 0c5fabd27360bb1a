"""The audit's page: its text, and how it looks in a browser on a screen, a phone and paper."""

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import vaca
from tests.browsing import DESKTOP, PHONE, look, violations
from vaca.fairness.audit_page import headline
from vaca.scm.distributions import Bernoulli, Normal
from vaca.show.words import number

VOID = {"meta", "link", "br", "hr", "img", "input"}


def score(frame):
    male = (frame["sex"] == "male").to_numpy(dtype=float)
    return 1 / (1 + np.exp(-(0.8 * male + 0.6 * frame["income"] - 0.4)))


@pytest.fixture(scope="module")
def scm():
    return vaca.StructuralCausalModel(
        {
            "sex": lambda u: u,
            "age": lambda u: u,
            "income": lambda sex, age, u: 0.7 * sex + 0.3 * age + u,
            "savings": lambda sex, income, u: income + 0.2 * sex + u,
        },
        {
            "sex": Bernoulli(0.5),
            "age": Normal(0, 1),
            "income": Normal(0, 1),
            "savings": Normal(0, 1),
        },
        kinds={"sex": "binary"},
        levels={"sex": ["female", "male"]},
    )


@pytest.fixture(scope="module")
def people(scm):
    return scm.sample(150, seed=0)


@pytest.fixture(scope="module")
def evidence(scm):
    bars = pd.DataFrame(
        {"unfairness": [0.1, 0.02], "low": [0.09, 0.01], "high": [0.11, 0.03]},
        index=pd.Index(["as assumed", "sex -> income removed"], name="graph"),
    )
    engines = pd.DataFrame({"one": [0.1, 0.0], "two": [0.12, 0.0]}, index=["full", "fair-x"])
    engines.attrs["verdict"] = "one, two rank the classifiers alike: full ≥ fair-x"
    frontier = pd.DataFrame(
        {
            "accuracy": [0.7, 0.6],
            "f1": [0.75, 0.55],
            "unfairness": [0.1, 0.0],
            "low": [0.09, 0.0],
            "high": [0.11, 0.0],
            "source": ["paper", "fairlearn"],
        },
        index=pd.Index(["full", "demographic parity"], name="classifier"),
    )
    return {"graph_robustness": bars, "engine_robustness": engines, "frontier": frontier}


@pytest.fixture(scope="module")
def page(scm, people, evidence, tmp_path_factory):
    outcome = (people["savings"] > 0).astype(int)
    result = vaca.audit(scm, score, people, "sex", target=outcome, draws=5, name="the score")
    path = tmp_path_factory.mktemp("report") / "audit.html"
    assert result.to_html(path, **evidence) == path
    return path, result


class Words(HTMLParser):
    """Collects the visible text, and checks that tags close in the order they opened."""

    def __init__(self):
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text.append(data)


def visible(html: str) -> str:
    parser = Words()
    parser.feed(html)
    assert parser.open == []
    return " ".join(" ".join(parser.text).split())


def test_page_is_self_contained(page):
    html = page[0].read_text(encoding="utf-8")
    assert not re.search(r'(src|href)="(?!#|data:)', html)
    assert "<script" not in html
    assert "url(" not in html


def test_page_says_what_it_must(page):
    path, result = page
    text = visible(path.read_text(encoding="utf-8"))
    for heading in (
        "What was asked",
        "The graph that was assumed",
        "Who is affected, and how sex reaches the prediction",
        "The people most affected, and their twins",
        "The groups as they are",
        "How firm is this",
        "Other predictors",
        "What this cannot tell",
    ):
        assert heading in text, heading
    assert f"{100 * result.unfairness:.2f} percentage points" in text
    low, high = result.interval
    assert f"{100 * low:.2f} to {100 * high:.2f}" in text
    assert "sex may change income, savings" in text
    assert "sex does not change age" in text
    assert "no hidden common causes" in text
    assert "one, two rank the classifiers alike" in text


def test_the_sign_comes_first(page):
    path, result = page
    text = visible(path.read_text(encoding="utf-8"))
    words = headline(result)
    assert re.fullmatch(
        r"Female would gain [\d.]+ points, male would lose [\d.]+ points\.|"
        r"Male would lose [\d.]+ points, female would gain [\d.]+ points\.",
        words,
    )
    assert text.index(words[1:]) < text.index(f"{100 * result.unfairness:.2f} percentage points")
    gaps = result.by_group["mean_gap"]
    assert gaps["female", "male"] > 0 > gaps["male", "female"]


def test_decisions_that_turn_are_told_by_direction(page):
    path, result = page
    text = visible(path.read_text(encoding="utf-8"))
    women = result.per_person[result.per_person["from"] == "female"]
    wins = (women["flip"] * (women["factual"] < 0.5)).sum()
    assert f"About {wins:.0f} would get the favourable decision and do not" in text
    turned = (result.per_person["flip"] >= 0.5).sum()
    assert turned > 0 and result.twins[0]["flip"] >= 0.5


def test_page_never_calls_a_model_fair(page):
    text = visible(page[0].read_text(encoding="utf-8")).lower()
    said = [m.group() for m in re.finditer(r"[^.]*\bfair\b(?!-)[^.]*\.", text)]
    assert said, "the warning is missing"
    assert all("does not make a predictor fair" in sentence for sentence in said)


def test_page_shows_twins_in_original_units(page):
    path, result = page
    text = visible(path.read_text(encoding="utf-8"))
    twin = result.twins[0]
    assert f"Person {twin['person']}: {twin['from']} → {twin['to']}" in text
    assert number(twin["before"]["income"]) in text
    assert number(twin["after"]["income"]) in text


def test_page_escapes_names(scm, people, tmp_path):
    result = vaca.audit(scm, score, people, "sex", draws=1, name="<b>bold</b> & co")
    html = result.to_html(tmp_path / "a.html", title="<script>alert(1)</script>").read_text("utf-8")
    assert "<b>bold" not in html
    assert "<script>" not in html
    assert "&lt;b&gt;bold&lt;/b&gt; &amp; co" in html


def test_page_without_effect_or_paths(scm, people, tmp_path):
    result = vaca.audit(scm, lambda f: (f["age"] > 0) * 1.0, people, "sex", draws=1, paths=False)
    text = visible(result.to_html(tmp_path / "a.html").read_text(encoding="utf-8"))
    assert "Nobody’s prediction changes" in text
    assert "0.00 percentage points" in text
    assert "emale would see no change" in text
    assert "The same as a table" not in text


def test_caveats_are_on_the_page(scm, people, tmp_path):
    lone = pd.concat([people[people["sex"] == "female"], people[people["sex"] == "male"].head(1)])
    result = vaca.audit(scm, score, lone, "sex", draws=1)
    text = visible(result.to_html(tmp_path / "a.html").read_text(encoding="utf-8"))
    assert "Read this first" in text
    assert "has 1 person" in text


# ---------------------------------------------------------------------- in a browser


@pytest.mark.browser
@pytest.mark.parametrize(
    ("size", "scheme"), [(DESKTOP, "light"), (PHONE, "light"), (DESKTOP, "dark")]
)
def test_page_in_a_browser(browser, page, size, scheme):
    with look(browser, page[0].as_uri(), size, color_scheme=scheme) as view:
        assert "would gain" in view.locator(".headline").inner_text()
        first, second = view.locator(".panel-of").all()
        assert first.is_visible() and not second.is_visible()
        view.locator("#d0").focus()
        view.keyboard.press("ArrowRight")  # the other direction
        assert second.is_visible() and not first.is_visible()
        for link in view.locator("nav a").all():
            target = link.get_attribute("href").removeprefix("#")
            assert view.locator(f"[id='{target}']").count() == 1
        seen = view.evaluate("[...document.images].map((i) => [i.complete, i.alt.length])")
        assert len(seen) == 8 and all(done and words > 30 for done, words in seen)


@pytest.mark.browser
def test_page_without_scripts(browser, page):
    with look(browser, page[0].as_uri(), java_script_enabled=False) as view:
        view.locator("#d1").check()
        assert view.locator("#p1").is_visible()


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everyone_can_read_it(browser, page, scheme):
    assert violations(browser, page[0].as_uri(), color_scheme=scheme) == []


@pytest.mark.browser
def test_page_prints(browser, page):
    with look(browser, page[0].as_uri()) as view:
        view.emulate_media(media="print")
        assert all(panel.is_visible() for panel in view.locator(".panel-of").all())
        paper = view.pdf(format="A4", print_background=True)
    assert paper.startswith(b"%PDF")
    pages = len(re.findall(rb"/Type\s*/Page\b(?!s)", paper))
    assert 2 <= pages <= 16
