"""Settings shared by all tests: one thread, pictures without a screen, quick property tests."""

from __future__ import annotations

import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "vaca",
    deadline=None,  # no absolute time in a test
    max_examples=30,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("vaca")


@pytest.fixture(autouse=True)
def _same_start_for_every_test() -> None:
    """Networks made without a generator start alike in every run of a test."""
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)


def pytest_collection_modifyitems(items):
    """Long tests first, so that no process is left alone with one at the end."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture(scope="session")
def browser():
    """One Chromium for all browser tests of a process; skipped, with a message, without one."""
    from tests.browsing import launch

    yield from launch()
