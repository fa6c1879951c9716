"""The installation of the suite and its Node.js."""

import json
import re

import pytest

from tests.conformance.failure import CannotRun
from tests.conformance.installation import OLDEST_NODE, SUITE, major_version, node_package


def test_versions_are_exact() -> None:
    """The manifest pins exact versions, and the lock file has a hash but no URL for each package."""
    manifest = json.loads((SUITE / "package.json").read_text())
    lock = json.loads((SUITE / "package-lock.json").read_text())
    wanted = {**manifest["dependencies"], **manifest["optionalDependencies"]}
    packages = {name: package for name, package in lock["packages"].items() if name}
    assert all(re.fullmatch(r"\d+\.\d+\.\d+(-alpha\.\d+)?", version) for version in wanted.values())
    assert {name: packages[f"node_modules/{name}"]["version"] for name in wanted} == wanted
    assert all(package["integrity"].startswith("sha512-") for package in packages.values())
    assert not any("resolved" in package for package in packages.values())


def test_node_packages_are_locked() -> None:
    """Each supported Node.js package is in the manifest and is new enough."""
    optional = json.loads((SUITE / "package.json").read_text())["optionalDependencies"]
    assert {node_package("Linux", "x86_64"), node_package("Linux", "aarch64")} == set(optional)
    assert all(major_version(f"v{version}") >= OLDEST_NODE for version in optional.values())


def test_foreign_machine() -> None:
    """On a machine without a Node.js package, the message names the required version."""
    with pytest.raises(CannotRun, match=r"needs Node\.js >= 22.*Darwin on arm64; install it"):
        node_package("Darwin", "arm64")


@pytest.mark.parametrize(("said", "major"), [("v20.20.2\n", 20), ("v22.0.0\n", 22), ("v24.21.0\n", 24)])
def test_major_version(said: str, major: int) -> None:
    """The first number of the output is the major version."""
    assert major_version(said) == major


@pytest.mark.parametrize("said", ["", "24.1.0", "node: command failed"])
def test_no_version(said: str) -> None:
    """A node that does not print a version is rejected."""
    with pytest.raises(CannotRun, match=r"Node\.js >= 22"):
        major_version(said)
