"""What the sources say about a release: its version, its date and its changelog."""

import re
import subprocess
from pathlib import Path
from typing import Final

from axolotl_core._version import __version__

ROOT: Final = Path(__file__).resolve().parents[2]


def version() -> str:
    return __version__


def changelog_section(name: str) -> str | None:
    """Give the text of a version's section in the changelog."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.search(rf"^## \[{re.escape(name)}\][^\n]*\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    return found.group(1).strip() if found else None


def commit_time() -> str:
    """Give the time of the newest commit, in seconds since 1970: the time of all files in a distribution."""
    command = ["git", "log", "-1", "--format=%ct"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
