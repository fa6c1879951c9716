"""The project of the tutorial: its own tests pass. `make release` runs them with the wheel alone."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.docs.pages import EXAMPLES

pytestmark = pytest.mark.slow


def test_tutorial(tmp_path: Path) -> None:
    """The tests of all lessons pass in a copy of the project."""
    project = tmp_path / "shop"
    shutil.copytree(EXAMPLES / "tutorial" / "shop", project, ignore=shutil.ignore_patterns("*.db", "__pycache__"))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=project, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout
    assert not (project / "bookshop.db").exists()
