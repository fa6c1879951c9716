"""What the first page says about other projects is what their installed versions do."""

import json
import re
import subprocess
import sys
from typing import Any

import pytest

from tests.docs.pages import ROOT, read_page

ROWS = {
    "handshake": ("handshake revisions", True, True),
    "stateless": ("handshake revisions", True, True),
    "asks in the body": ("a question to the user, in `2026-07-28`", False, False),
    "any case": ("tool names", False, False),
    "coerced": ('`"1"` where an integer', True, True),
    "unknown ignored": ("unknown arguments", True, False),
    "exceptions hidden": ("the text of an unexpected exception", True, False),
    "foreign host refused": ("foreign `Host`", True, False),
    "foreign origin refused": ("foreign `Host`", True, False),
}
"""For each trial: the row of the table that it is about, and what that row says of `mcp` and of FastMCP."""


@pytest.fixture(scope="module")
def found() -> Any:
    """Try both projects in a process of their own."""
    command = [sys.executable, "-m", "tests.docs.peers"]
    return json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60, check=True).stdout)


def test_versions(found: Any) -> None:
    """The page names the versions that were looked at."""
    page = read_page("README.md")
    assert f"`mcp` {found['versions']['mcp']} and FastMCP {found['versions']['fastmcp']}" in page


@pytest.mark.parametrize("trial", ROWS)
def test_row(trial: str, found: Any) -> None:
    """A row of the table is there, and what it stands for is still so."""
    row, official, fast = ROWS[trial]
    assert re.search(rf"^\| {re.escape(row)}", read_page("README.md"), re.MULTILINE)
    assert (found["mcp"][trial], found["fastmcp"][trial]) == (official, fast)
