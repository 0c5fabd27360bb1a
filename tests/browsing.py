"""Looking at pages in a real Chromium, as the tests of report, audit, check and explorer do."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
#: `npm install --no-save axe-core` in the project's folder puts it here.
AXE = Path(__file__).parents[1] / "node_modules" / "axe-core" / "axe.min.js"
DESKTOP, PHONE = (1280, 900), (390, 844)


def launch() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed (apt-get install -y chromium)")
    sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    with sync_api.sync_playwright() as driver:
        opened = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield opened
        opened.close()


@contextmanager
def look(browser: Any, address: str, size: tuple[int, int] = DESKTOP, **context: Any):
    """A page that says nothing on the console, asks nobody else, and fits its screen."""
    window = browser.new_context(viewport={"width": size[0], "height": size[1]}, **context)
    said: list[str] = []
    asked: list[str] = []
    view = window.new_page()
    view.on("console", lambda message: said.append(message.text))
    view.on("pageerror", lambda error: said.append(str(error)))
    view.on("request", lambda request: asked.append(request.url))
    view.goto(address)
    try:
        yield view
        assert said == []
        home = urlsplit(address).netloc
        strangers = [u for u in asked if not u.startswith(("data:", "blob:", "file:"))]
        assert [u for u in strangers if urlsplit(u).netloc != home] == []
        if context.get("java_script_enabled", True):
            assert view.evaluate("document.documentElement.scrollWidth") <= size[0]
    finally:
        window.close()


def violations(browser: Any, address: str, prepare: Any = None, **context: Any) -> list[str]:
    """What axe finds that is serious or critical, a line for each rule."""
    if not AXE.is_file():
        pytest.skip("axe is not installed (npm install --no-save axe-core)")
    window = browser.new_context(
        viewport={"width": 1280, "height": 900}, bypass_csp=True, **context
    )
    try:
        view = window.new_page()
        view.goto(address)
        if prepare is not None:
            prepare(view)
        view.add_script_tag(path=str(AXE))
        found = view.evaluate("axe.run().then((result) => result.violations)")
        return [
            f"{v['id']}: {v['nodes'][0]['target']} {v['nodes'][0]['failureSummary']}"
            for v in found
            if v["impact"] in ("serious", "critical")
        ]
    finally:
        window.close()
