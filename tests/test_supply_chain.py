"""The record of what the package stands on: whole, dated, and honest about what was asked."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def audit() -> Any:
    place = importlib.util.spec_from_file_location("audit_script", ROOT / "scripts" / "audit.py")
    assert place is not None and place.loader is not None
    module = importlib.util.module_from_spec(place)
    place.loader.exec_module(module)
    return module


def told(module: Any, tmp_path: Path, monkeypatch: Any, answer: str, error: str = "") -> Any:
    """What the script writes if pip-audit gives this answer."""

    def run(*given: Any, **options: Any) -> Any:
        return subprocess.CompletedProcess(given, 0, stdout=answer, stderr=error)

    monkeypatch.setattr(module.subprocess, "run", run)
    monkeypatch.setattr(sys, "argv", ["audit.py", "--out", str(tmp_path)])
    code = module.main()
    record, bill = (json.loads((tmp_path / f"{n}.json").read_text()) for n in ("audit", "sbom"))
    return code, record, bill


def test_every_package_that_we_name_is_in_the_bill(audit, tmp_path, monkeypatch) -> None:
    code, record, bill = told(audit, tmp_path, monkeypatch, "", "no network")
    assert code == 0
    text = (ROOT / "pyproject.toml").read_text()
    named = re.search(r"^dependencies = \[(.*?)^\]", text, re.DOTALL | re.MULTILINE)
    assert named is not None
    lines = [line for line in re.findall(r'"([^"\n]+)"', named[1]) if ";" not in line]
    wanted = {re.split(r"[<>=!~\[ ]", line)[0] for line in lines}
    assert {"numpy", "torch"} <= wanted
    parts = {part["name"]: part for part in bill["components"]}
    assert wanted <= set(parts)
    assert bill["bomFormat"] == "CycloneDX"
    for part in parts.values():
        assert part["purl"] == f"pkg:pypi/{part['name']}@{part['version']}"
        assert record["versions"][part["name"]] == part["version"]


def test_a_list_that_was_not_reached_is_not_called_clean(audit, tmp_path, monkeypatch) -> None:
    said = f"{sys.executable}: cannot reach the list"
    _, record, _ = told(audit, tmp_path, monkeypatch, "", said)
    assert record["asked_for_weaknesses"] is False
    assert record["not_asked_because"] == "cannot reach the list"
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", record["day"])


@pytest.mark.parametrize(("package", "code"), [("numpy", 1), ("something-else", 0)])
def test_a_known_weakness_of_a_package_in_use_fails(
    audit, tmp_path, monkeypatch, package: str, code: int
) -> None:
    entry = {"name": package, "version": "1", "vulns": [{"id": "X-1"}]}
    answer = json.dumps({"dependencies": [entry]})
    found, record, _ = told(audit, tmp_path, monkeypatch, answer)
    assert found == code
    assert record["asked_for_weaknesses"] is True
    assert len(record["weaknesses"]) == code


def test_the_stored_list_is_of_the_tested_versions() -> None:
    record = json.loads((ROOT / "benchmarks" / "results" / "packages.json").read_text())
    pinned = dict(
        line.split(";")[0].strip().split("==")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line and not line.startswith("#")
    )
    shared = set(record["versions"]) & set(pinned)
    assert {"numpy", "pandas", "torch"} <= shared
    assert not {n for n in shared if record["versions"][n].partition("+")[0] != pinned[n]}


def test_the_model_of_threats_names_what_comes_from_strangers() -> None:
    text = (ROOT / "SECURITY.md").read_text()
    for what in ("a model folder", "a graph file", "a table", "a page", "explorer", "Dask"):
        assert what in text
