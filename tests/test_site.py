"""The documentation's pages in a browser, opened from the disk: search, contrast, phone."""

import importlib.util
import shutil
from pathlib import Path

import pytest

from tests.browsing import DESKTOP, PHONE, look, violations

DOCS = Path(__file__).parents[1] / "docs"
HOOKS = """
import importlib.util
spec = importlib.util.spec_from_file_location("all_hooks", r"{path}")
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
on_post_page, on_post_build = module.on_post_page, module.on_post_build
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """The front page, with the theme and its mending, without the reference: that takes long."""
    for name in ("mkdocs", "material", "latex2mathml"):
        if importlib.util.find_spec(name) is None:
            pytest.skip("the documentation's tools are not installed (pip install '.[docs]')")
    import yaml
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("site")
    docs = folder / "docs"
    docs.mkdir()
    for name in ("index.md", "tables.css", "from_disk.js"):
        shutil.copy(DOCS / name, docs / name)
    shutil.copytree(DOCS / "images", docs / "images")
    (folder / "hooks.py").write_text(HOOKS.format(path=DOCS / "hooks.py"))
    text = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")
    config = yaml.safe_load(text)
    config |= {"plugins": ["search"], "nav": [{"Home": "index.md"}], "hooks": ["hooks.py"]}
    config |= {"validation": {}, "site_dir": "built"}
    (folder / "mkdocs.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
    build(load_config(str(folder / "mkdocs.yml")))
    return (folder / "built" / "index.html").as_uri()


@pytest.mark.browser
@pytest.mark.filterwarnings("ignore")
def test_the_search_works_from_the_disk(browser, home):
    with look(browser, home, DESKTOP) as view:
        view.wait_for_selector(".md-search:not([hidden]) input.md-search__input")
        # What is typed before the index is there is not looked up: type until something is found.
        for _ in range(40):
            view.fill("input.md-search__input", "")
            view.type("input.md-search__input", "counterfactual")
            view.wait_for_timeout(500)
            if view.locator(".md-search-result__item").count():
                break
        assert view.locator(".md-search-result__item").count()


@pytest.mark.browser
@pytest.mark.filterwarnings("ignore")
def test_the_front_page_fits_a_phone_and_has_words_for_its_pictures(browser, home):
    with look(browser, home, PHONE) as view:
        pictures = view.evaluate("[...document.querySelectorAll('article img')].map((i) => i.alt)")
        assert len(pictures) == 2 and all(len(words) > 60 for words in pictures)
        code = "[...document.querySelectorAll('pre > code')]"
        assert not view.evaluate(f"{code}.some((c) => c.scrollWidth > c.clientWidth)")


@pytest.mark.browser
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everyone_can_read_it(browser, home, scheme):
    assert violations(browser, home, color_scheme=scheme) == []
