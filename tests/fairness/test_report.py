"""The audit's page: its text, and how it looks in a browser on a screen, a phone and paper."""

import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import vaca
from vaca.fairness import charts
from vaca.scm.distributions import Bernoulli, Normal

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
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
    assert not re.search(r'(src|href)="(?!#)', html)
    assert "<script" not in html
    assert "url(" not in html.replace("url(#tip)", "")


def test_page_says_what_it_must(page):
    path, result = page
    text = visible(path.read_text(encoding="utf-8"))
    for heading in (
        "What was asked",
        "The graph that was assumed",
        "The numbers",
        "By which way sex reaches the prediction",
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
    assert f"{twin['before']['income']:,.4g}" in text
    assert f"{twin['after']['income']:,.4g}" in text


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
    assert "By which way" not in text


def test_caveats_are_on_the_page(scm, people, tmp_path):
    lone = pd.concat([people[people["sex"] == "female"], people[people["sex"] == "male"].head(1)])
    result = vaca.audit(scm, score, lone, "sex", draws=1)
    text = visible(result.to_html(tmp_path / "a.html").read_text(encoding="utf-8"))
    assert "Read this first" in text
    assert "has 1 person" in text


def test_graph_picture_names_nodes_and_columns():
    picture = charts.draw_graph(vaca.datasets.german_credit().graph, ["sex"])
    for name in ("sex", "age", "credit_amount", "housing"):
        assert f">{name}</text>" in picture
    assert picture.count("<path d=") == 4 + 1  # one for each edge, and the arrow's tip


# ---------------------------------------------------------------------- in a browser


@pytest.fixture(scope="module")
def browser():
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("Chromium is not installed (apt-get install -y chromium)")
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=program, args=FLAGS)
        yield opened
        opened.close()


def open_page(browser, path: Path, width: int, height: int = 900):
    view = browser.new_page(viewport={"width": width, "height": height})
    problems: list[str] = []
    view.on("console", lambda message: problems.append(message.text))
    view.on("requestfailed", lambda request: problems.append(request.url))
    view.goto(path.as_uri())
    return view, problems


@pytest.mark.browser
@pytest.mark.parametrize("width", [360, 1200])
def test_page_fits_the_screen(browser, page, width):
    view, problems = open_page(browser, page[0], width)
    try:
        assert problems == []
        wide = view.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, "the page scrolls sideways"
        assert view.locator("svg").count() == 5
        assert "percentage points" in view.locator(".headline").inner_text()
        # Pictures are drawn at a size that can be read.
        boxes = [view.locator("svg").nth(i).bounding_box() for i in range(5)]
        assert all(box["width"] > 250 and box["height"] > 50 for box in boxes)
    finally:
        view.close()


@pytest.mark.browser
def test_links_lead_to_sections(browser, page):
    view, _ = open_page(browser, page[0], 800)
    try:
        for link in view.locator("nav a").all():
            target = link.get_attribute("href").removeprefix("#")
            assert view.locator(f"[id='{target}']").count() == 1
    finally:
        view.close()


@pytest.mark.browser
def test_page_prints(browser, page):
    view, _ = open_page(browser, page[0], 800)
    try:
        paper = view.pdf(format="A4", print_background=True)
    finally:
        view.close()
    assert paper.startswith(b"%PDF")
    pages = len(re.findall(rb"/Type\s*/Page\b(?!s)", paper))
    assert 2 <= pages <= 12
