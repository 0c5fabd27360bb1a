"""The page of results is what the stored reports say, no more and no less."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("results_page", ROOT / "scripts/results_page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_page_is_rebuilt_from_the_reports_unchanged(script):
    stored = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert script.page() == stored, "run `make results-page` and commit what it writes"


def test_readme_shows_the_same_results(script):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = readme.split(script.BEGIN)[1].split(script.END)[0].strip()
    assert shown == script.summary().strip(), "run `make results-page` and commit what it writes"
