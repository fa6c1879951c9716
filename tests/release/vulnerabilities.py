"""Known vulnerabilities of locked packages. Packages that could not be looked up are never reported as clean."""

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any


class Verdict(StrEnum):
    CLEAN = "clean"
    VULNERABLE = "vulnerable"
    NOT_AUDITED = "not audited"


def audit(lock: Path) -> Verdict:
    """Look up the packages of a lock file, and print what was found."""
    command = [
        str(Path(sys.executable).with_name("pip-audit")),
        "--disable-pip",
        "--require-hashes",
        "--format",
        "json",
    ]
    done = subprocess.run([*command, "--requirement", str(lock)], check=False, capture_output=True, text=True)
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        print(f"{lock}: {Verdict.NOT_AUDITED}: pip-audit failed\n{done.stderr.strip()}")
        return Verdict.NOT_AUDITED
    verdict, findings = judge(packages)
    print("\n".join([f"{lock}: {verdict}", *(f"  {finding}" for finding in findings)]))
    return verdict


def judge(packages: Iterable[Mapping[str, Any]]) -> tuple[Verdict, list[str]]:
    """Decide from the report of pip-audit, which itself reports no vulnerabilities if it could look up nothing."""
    found, skipped, checked = [], [], 0
    for package in packages:
        if "skip_reason" in package:
            skipped.append(package["name"])
            continue
        checked += 1
        where = f"{package['name']} {package['version']}"
        found += [
            f"{where}: {each['id']}, fixed in {' or '.join(each['fix_versions']) or 'no version'}"
            for each in package["vulns"]
        ]
    if found:
        return Verdict.VULNERABLE, found
    if skipped or not checked:
        return Verdict.NOT_AUDITED, [f"{len(skipped)} of {checked + len(skipped)} packages could not be looked up"]
    return Verdict.CLEAN, []
