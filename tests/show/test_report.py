"""The report: everything inside one file, readable on a screen, a phone and paper."""

import json
import os
import re

import numpy as np
import pandas as pd
import pytest

import vaca
from tests.browsing import DESKTOP, PHONE, look, violations
from vaca.errors import VacaError
from vaca.show.report import Question, default_effects, report_html, whatif_data, write_report
from vaca.show.report.model_part import quick_check
from vaca.show.report.trust_strip import strip
from vaca.show.words import number

# One process for all of them: they share a page that takes seconds to make.
pytestmark = [
    pytest.mark.xdist_group("report"),
    pytest.mark.usefixtures("without_trees", "quick_checks"),
]
GRAPH = vaca.CausalGraph.from_edges([("sex", "income"), ("age", "income"), ("income", "school")])


def table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n)
    age = rng.normal(40, 10, n)
    income = 20 * age + 100 * (sex == "m") + rng.normal(0, 50, n)
    school = np.array(["low", "middle & up", "high <b>"])[np.digitize(income, (750, 900))]
    return pd.DataFrame({"sex": sex, "age": age, "income": income, "school": school})


@pytest.fixture(autouse=True, scope="module")
def no_other_engines():
    """They take most of the time of a report; one test below asks them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vaca.trust.agreement.BRIEF", {})
        yield


@pytest.fixture(scope="module")
def model():
    return vaca.AdditiveNoise(GRAPH).fit(table())


@pytest.fixture(scope="module")
def page(model, quick_checks):
    question = Question({"sex": "m", "age": 99.0}, {"sex": "f"}, ["income"])
    return report_html(
        model, table(), held_out=table(80, seed=1), question=question, title="A <i>title</i> & more"
    )


def test_nothing_outside_the_page_is_asked_for(page):
    links = re.findall(r'(?:src|href)="([^"#][^"]*)"', page)
    assert links
    assert all(link.startswith("data:") for link in links)
    assert "default-src 'none'" in page
    assert "url(" not in page and "fetch(" not in page


def test_text_of_the_user_is_escaped(page):
    assert "A &lt;i&gt;title&lt;/i&gt; &amp; more" in page
    assert "high &lt;b&gt;" in page
    assert "<i>title" not in page


def test_every_part_is_there(page):
    for part in ("answer", "trust", "whatif", "effects", "graph", "check", "fit", "assumptions"):
        assert f'id="{part}"' in page
    assert "80 rows that the model has not seen" in page
    assert "where guessing picks 50" in page
    assert "No hidden common cause" in page
    assert "Outside the data" in page  # age 99
    assert len(re.findall(r'<img [^>]*alt="[^"]+"', page)) == page.count("<img ")


@pytest.mark.filterwarnings("ignore::vaca.errors.SupportWarning")
def test_the_answer_comes_first_and_is_one_number(page, model):
    effect = model.effect("income", {"sex": "m", "age": 99.0}, {"sex": "f"}, n=10_000)
    shown = number(effect.value)
    text = re.sub(r"<(style|script).*?</\1>|<[^>]*>", " ", page, flags=re.S)
    first = text.index(f"income would be {shown} higher on average")
    assert first < text.index("How far to trust it") < text.index("The model, for experts")
    assert "no interval: the model was fitted once" in text
    # The picture of the effect and the words for the population say the same.
    assert f"income rises by {shown} on average" in page


def test_a_known_scm_has_a_report_too_with_an_interval():
    scm = vaca.scms.load("chain-lin")
    asked = Question({"x1": 1.0}, {"x1": 0.0}, ["x3"])
    text = report_html(scm, scm.sample(200, seed=0), question=asked)
    assert re.search(r"x3 would be [\d.]+ (higher|lower) on average\.", text)
    assert "95 % interval" in text
    assert "The graph against the data" in text
    assert "a known SCM" in text


@pytest.mark.filterwarnings("ignore::vaca.errors.SupportWarning")
def test_what_if_holds_the_numbers_of_the_library(page, model):
    data = whatif(page)
    rows = table(80, seed=1)
    assert set(data["causes"]) == {"sex", "age", "income"}
    person = next(i for i, one in enumerate(data["people"]) if int(one["label"]) >= 0)
    row = rows.iloc[[int(data["people"][person]["label"])]]
    for cause in ("sex", "age"):
        stops = data["causes"][cause]["stops"]
        for k in (0, len(stops) - 1):
            value = model.schema_["sex"].levels[stops[k]] if cause == "sex" else stops[k]
            truth = model.counterfactual(row, {cause: value})["income"].iloc[0]
            at = person * len(stops) + k
            assert data["causes"][cause]["answers"]["income"]["after"][at] == exactly(truth)
    low, high = model.schema_["age"].low, model.schema_["age"].high
    assert data["causes"]["age"]["stops"][0] < low and data["causes"]["age"]["stops"][-1] > high
    assert data["start"]["cause"] == "sex"


def exactly(value):
    """All rows are asked about at once, which may round the last of sixteen digits otherwise."""
    return pytest.approx(value, rel=1e-14, abs=0)


def whatif(page):
    found = re.search(r'<script type="application/json" id="whatif-data">(.*?)</script>', page)
    return json.loads(found.group(1))


def test_the_person_is_one_who_moves(page):
    data = whatif(page)
    assert data["people"][0]["before"]["sex"] == 0  # the question sets sex to m


def test_a_page_stays_small_however_many_columns(model, monkeypatch):
    monkeypatch.setattr(whatif_data, "MOST_CELLS", 100)
    data = whatif_data.precomputed(model, table(80, seed=1), 0, "school", 0)
    assert len(data["causes"]) == 1


def test_without_held_out_rows_it_says_so(model):
    text = report_html(model, table())
    assert "may have been fitted to" in text
    assert 'id="answer"' in text  # of the cause that matters most


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
    monkeypatch.setattr("vaca.show.report.page.report_html", lambda *a, **k: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_report(model, table(), path)
    assert path.read_text() == "precious"
    assert os.listdir(tmp_path) == ["r.html"]


# ---------------------------------------------------------------------- in a browser


@pytest.fixture(scope="module")
def address(page, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(page, encoding="utf-8")
    return path.as_uri()


@pytest.mark.browser
@pytest.mark.parametrize(
    ("size", "scheme"), [(DESKTOP, "light"), (PHONE, "light"), (DESKTOP, "dark")]
)
def test_in_a_browser(size, scheme, address, browser, model, page):
    with look(browser, address, size, color_scheme=scheme) as view:
        # Every picture has come out, with words.
        view.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        sizes = view.evaluate("[...document.images].map(i => [i.complete, i.naturalWidth, i.alt])")
        assert sizes
        assert all(done and wide > 100 and len(words) > 20 for done, wide, words in sizes)
        assert view.inner_text("h1") == "A <i>title</i> & more"
        # The keyboard moves a column to exactly the number of the library.
        view.select_option("#cause", "age")
        slider = view.locator("#setting input")
        before = slider.get_attribute("aria-valuetext")
        slider.press("ArrowRight")
        assert slider.get_attribute("aria-valuetext") != before
        data = whatif(page)
        stop = data["causes"]["age"]["stops"][int(slider.input_value())]
        row = table(80, seed=1).iloc[[int(data["people"][0]["label"])]]
        truth = model.counterfactual(row, {"age": stop})["income"].iloc[0]
        shown = view.get_attribute("#rungs tr[data-column=income] .would", "data-value")
        assert float(shown) == exactly(truth)
        assert view.inner_text("#said") in view.inner_text("#sentence")
        assert view.locator("#rungs tr.still[data-column=sex]").count() == 1
        assert not view.locator("#plain").is_visible()


@pytest.mark.browser
def test_without_scripts_there_is_a_picture(address, browser):
    with look(browser, address, PHONE, java_script_enabled=False) as view:
        assert view.locator("#plain img").is_visible()
        assert not view.locator("#live").is_visible()


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everyone_can_read_it(address, browser, scheme):
    def unfold(view):
        view.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")

    assert violations(browser, address, unfold, color_scheme=scheme) == []


@pytest.mark.browser
def test_on_paper(address, browser):
    with look(browser, address) as view:
        view.emulate_media(media="print")
        assert view.locator("#plain").is_visible() and not view.locator("#live").is_visible()
        pdf = view.pdf()
        assert pdf.startswith(b"%PDF")
        assert len(pdf) > 50_000


def test_other_engines_are_asked_what_the_page_asks(monkeypatch):
    brief = {"AdditiveNoise": {}, "CausalFlow": {"steps": 20, "polish_steps": 0}}
    monkeypatch.setattr("vaca.trust.agreement.BRIEF", brief)
    model = vaca.Composite(GRAPH, families=()).fit(table(), refits=3)
    effect = model.effect("income", {"sex": "m"}, {"sex": "f"})
    cards = {
        card.name: card
        for card in strip(model, effect, quick_check(model, table(), None, 0).graph, 0)
    }
    words = cards["Other engines"].words
    assert words.startswith("Engines give ") and "AdditiveNoise and CausalFlow" in words
    assert cards["Other engines"].verdict in ("good", "doubtful")
