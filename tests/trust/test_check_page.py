"""The page of a check in a browser: no request, no overflow, and everyone can read it."""

import pytest

import vaca
from tests.browsing import DESKTOP, PHONE, look, violations


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    scm = vaca.scms.load("chain-lin")
    found = vaca.check(scm, scm.sample(300, seed=1), quick=True)
    return found.to_html(tmp_path_factory.mktemp("check") / "check.html").as_uri()


@pytest.mark.browser
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_page_is_alone_and_fits(browser, address, size):
    with look(browser, address, size) as view:
        assert "graph" in view.inner_text("body")


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everyone_can_read_it(browser, address, scheme):
    assert violations(browser, address, color_scheme=scheme) == []
