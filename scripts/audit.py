"""What the package stands on: known weaknesses, and a bill of materials (CycloneDX 1.5).

    python scripts/audit.py --out dist

Writes `sbom.json` and `audit.json`. Weaknesses are asked of pip-audit, if it is installed and can
reach its data; otherwise the record has the versions and the day alone, and says so.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata as metadata
import json
import re
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

ROOT = "vaca"


def needed(root: str) -> list[metadata.Distribution]:
    """The installed packages that one needs, directly or not, without its extras; by name."""
    found: dict[str, metadata.Distribution] = {}
    waiting = [root]
    while waiting:
        name = _plain(waiting.pop())
        if name in found:
            continue
        try:
            found[name] = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # for another system or another Python
        for line in found[name].requires or []:
            requirement, _, condition = line.partition(";")
            if "extra" not in condition:
                waiting.append(re.split(r"[\s\[<>=!~(]", requirement.strip())[0])
    return [found[name] for name in sorted(found)]


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def bill(packages: list[metadata.Distribution], today: str) -> dict[str, Any]:
    """A bill of materials in the CycloneDX form."""
    parts = [_part(package) for package in packages if _plain(package.name) != ROOT]
    own = next(package for package in packages if _plain(package.name) == ROOT)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(parts))}",
        "version": 1,
        "metadata": {"timestamp": f"{today}T00:00:00Z", "component": _part(own, "application")},
        "components": parts,
    }


def _part(package: metadata.Distribution, kind: str = "library") -> dict[str, Any]:
    name = _plain(package.name)
    about: Any = package.metadata
    licence = about.get("License-Expression") or about.get("License") or ""
    part: dict[str, Any] = {
        "type": kind,
        "bom-ref": f"pkg:pypi/{name}@{package.version}",
        "purl": f"pkg:pypi/{name}@{package.version}",
        "name": name,
        "version": package.version,
    }
    if licence and len(licence) < 100:
        part["licenses"] = [{"license": {"name": licence}}]
    return part


def weaknesses(packages: list[metadata.Distribution]) -> tuple[bool, list[dict[str, Any]], str]:
    """Whether the public list was reached, what it says of these packages, and why not."""
    run = subprocess.run(
        [sys.executable, "-m", "pip_audit", "--format", "json", "--progress-spinner", "off"],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    try:
        listed = json.loads(run.stdout)["dependencies"]
    except (ValueError, KeyError):
        why = (run.stderr.strip().splitlines() or ["no answer"])[-1][:300]
        return False, [], why.removeprefix(f"{sys.executable}: ")
    names = {_plain(package.name) for package in packages}
    wanted = [d for d in listed if _plain(d["name"]) in names and d.get("vulns")]
    return True, wanted, ""


def main() -> int:
    """Write both files; 1 if a known weakness was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("dist"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    packages = needed(ROOT)
    reached, found, why = weaknesses(packages)
    record = {
        "day": today,
        "python": sys.version.split()[0],
        "asked_for_weaknesses": reached,
        **({} if reached else {"not_asked_because": why}),
        "weaknesses": found,
        "versions": {_plain(package.name): package.version for package in packages},
    }
    (given.out / "sbom.json").write_text(json.dumps(bill(packages, today), indent=1) + "\n")
    (given.out / "audit.json").write_text(json.dumps(record, indent=1) + "\n")
    print(f"{len(packages)} packages; wrote {given.out / 'sbom.json'} and audit.json")
    for entry in found:
        ids = ", ".join(v["id"] for v in entry["vulns"])
        print(f"{entry['name']} {entry['version']}: {ids}")
    if not reached:
        print(f"weaknesses could not be asked for: {why}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
