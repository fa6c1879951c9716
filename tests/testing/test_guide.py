"""The tests on the page about testing."""

import subprocess
import sys

import pytest

from tests.support.docs.pages import EXAMPLES
from tests.support.docs.running import environment

pytestmark = pytest.mark.slow


def test_the_tests_pass() -> None:
    """Every test on the page passes."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:axolotl",
        "-p",
        "axolotl_testing.plugin",
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run(
        command,
        cwd=EXAMPLES / "tested",
        env=environment({}),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout
