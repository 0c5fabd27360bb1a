"""The report: everything inside one file, readable on a screen, a phone and paper."""

import os
import re
import shutil

import numpy as np
import pandas as pd
import pytest

import vaca
from vaca.errors import VacaError
from vaca.show.report import Question, default_effects, report_html, write_report

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
browser_test = pytest.mark.skipif(
    CHROMIUM is None, reason="Chromium is not installed (apt-get install chromium)"
)
# One process for all of them: they share a page that takes seconds to make.
pytestmark = pytest.mark.xdist_group("report")
GRAPH = vaca.CausalGraph.from_edges([("sex", "income"), ("age", "income"), ("income", "school")])


def table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n)
    age = rng.normal(40, 10, n)
    income = 20 * age + 100 * (sex == "m") + rng.normal(0, 50, n)
    school = np.array(["low", "middle & up", "high <b>"])[np.digitize(income, (750, 900))]
    return pd.DataFrame({"sex": sex, "age": age, "income": income, "school": school})


@pytest.fixture(scope="module")
def model():
    return vaca.AdditiveNoise(GRAPH).fit(table())


@pytest.fixture(scope="module")
def page(model):
    question = Question({"sex": "m", "age": 99.0}, {"sex": "f"}, ["income"])
    return report_html(
        model, table(), held_out=table(80, seed=1), question=question, title="A <i>title</i> & more"
    )


def test_nothing_outside_the_page_is_asked_for(page):
    links = re.findall(r'(?:src|href)="([^"#][^"]*)"', page)
    assert links
    assert all(link.startswith("data:") for link in links)
    assert "<script" not in page
    assert "url(" not in page


def test_text_of_the_user_is_escaped(page):
    assert "A &lt;i&gt;title&lt;/i&gt; &amp; more" in page
    assert "high &lt;b&gt;" in page
    assert "<i>title" not in page


def test_every_part_is_there(page):
    for part in ("data", "graph", "fit", "question", "effects", "assumptions"):
        assert f'id="{part}"' in page
    assert "80 rows that the model has not seen" in page
    assert "50 % is guessing" in page
    assert "No hidden common cause" in page
    assert "Outside the data" in page  # age 99
    assert len(re.findall(r'<img [^>]*alt="[^"]+"', page)) == page.count("<img ")


def test_without_held_out_rows_it_says_so(model):
    text = report_html(model, table())
    assert "may have been fitted to" in text
    assert 'id="question"' not in text


def test_a_known_scm_has_a_report_too():
    scm = vaca.scms.load("triangle-lin")
    assert "a known SCM" in report_html(scm, scm.sample(200, seed=0))


def test_default_effects_cover_every_cause(model):
    effects = default_effects(model, table())
    assert [list(e.treatment) for e in effects] == [["sex"], ["age"], ["income"]]
    assert {e.outcome for e in effects} == {"school"}


def test_no_rows(model):
    with pytest.raises(VacaError, match="no rows"):
        report_html(model, table().head(0))


def test_it_is_written_whole_or_not_at_all(model, tmp_path, monkeypatch):
    path = tmp_path / "r.html"
    path.write_text("precious")
    monkeypatch.setattr("vaca.show.report.report_html", lambda *a, **k: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_report(model, table(), path)
    assert path.read_text() == "precious"
    assert os.listdir(tmp_path) == ["r.html"]


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    with sync_api.sync_playwright() as tool:
        window = tool.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield window
        window.close()


@pytest.mark.browser
@browser_test
@pytest.mark.parametrize(("width", "height"), [(1280, 900), (390, 844)], ids=["desktop", "phone"])
def test_in_a_browser(width, height, page, browser, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(page, encoding="utf-8")
    said, asked = [], []
    view = browser.new_page(viewport={"width": width, "height": height})
    view.on("console", lambda message: said.append(message.text))
    view.on("pageerror", lambda error: said.append(str(error)))
    view.on("request", lambda request: asked.append(request.url))
    view.goto(path.as_uri())
    assert said == []
    assert all(url.startswith(("file:", "data:")) for url in asked)
    # Nothing is cut off at the side, and every picture has come out.
    assert view.evaluate("document.documentElement.scrollWidth") <= width
    sizes = view.evaluate("[...document.images].map(i => [i.complete, i.naturalWidth])")
    assert sizes
    assert all(done and wide > 100 for done, wide in sizes)
    assert view.inner_text("h1") == "A <i>title</i> & more"
    view.click("nav a:has-text('Assumptions')")
    assert view.evaluate("location.hash") == "#assumptions"
    view.close()


@pytest.mark.browser
@browser_test
def test_on_paper(page, browser, tmp_path):
    (tmp_path / "report.html").write_text(page, encoding="utf-8")
    view = browser.new_page()
    view.goto((tmp_path / "report.html").as_uri())
    pdf = view.pdf()
    assert pdf.startswith(b"%PDF")
    assert len(pdf) > 50_000
    view.close()
