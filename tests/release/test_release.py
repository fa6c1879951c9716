"""What the build and the audit of a release decide."""

from typing import Any

import pytest

from tests.release.distributions import unexpected_files
from tests.release.sources import changelog_section
from tests.release.vulnerabilities import Verdict, judge

CLEAN = {"name": "msgspec", "version": "1", "vulns": []}
SKIPPED = {"name": "rich", "skip_reason": "not found"}
VULNERABLE = {"name": "uvicorn", "version": "1", "vulns": [{"id": "CVE-1", "fix_versions": ["2"]}]}


@pytest.mark.parametrize(
    ("packages", "verdict"),
    [
        pytest.param([CLEAN], Verdict.CLEAN, id="clean"),
        pytest.param([CLEAN, VULNERABLE], Verdict.VULNERABLE, id="vulnerable"),
        pytest.param([SKIPPED, VULNERABLE], Verdict.VULNERABLE, id="vulnerable, and not all audited"),
        pytest.param([CLEAN, SKIPPED], Verdict.NOT_AUDITED, id="one skipped"),
        pytest.param([], Verdict.NOT_AUDITED, id="nothing audited"),
    ],
)
def test_verdict(packages: list[dict[str, Any]], verdict: Verdict) -> None:
    """Packages that could not be looked up are never reported as clean."""
    assert judge(packages)[0] is verdict


def test_vulnerability_names_package_and_fix() -> None:
    """A finding says which version to install."""
    assert judge([VULNERABLE])[1] == ["uvicorn 1: CVE-1, fixed in 2"]


@pytest.mark.parametrize(
    "name",
    ["tests/conftest.py", "benchmarks/model.py", "axolotl_core/tests/test_tool.py", "docs/index.md", "hatch_build.py"],
)
def test_wheel_with_other_files(name: str) -> None:
    """A wheel contains the packages only."""
    assert unexpected_files(["axolotl_core/layers.py", "axolotl_mcp-1.dist-info/METADATA", name]) == [
        f"{name} does not belong in the wheel"
    ]


def test_wheel_with_templates() -> None:
    """The templates of new projects contain tests."""
    assert unexpected_files(["axolotl_cli/scaffold/templates/full/tests/test_wire.py"]) == []


def test_changelog_section() -> None:
    """The changelog has a section for what is not released yet, and none for versions that do not exist."""
    assert changelog_section("Unreleased")
    assert changelog_section("99.0") is None
