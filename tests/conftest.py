"""Settings shared by all tests: one thread, pictures without a screen, quick property tests."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")

from hypothesis import HealthCheck, settings

settings.register_profile(
    "vaca",
    deadline=None,  # no absolute time in a test
    max_examples=30,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("vaca")


def pytest_collection_modifyitems(items):
    """Long tests first, so that no process is left alone with one at the end."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
