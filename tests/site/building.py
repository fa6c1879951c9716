"""The documentation site: the pages in `docs`, with the generated reference, and `llms.txt`."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tests.site.generated import fill

ROOT: Final = Path(__file__).resolve().parents[2]
DOCS: Final = ROOT / "docs"
FOLDER: Final = ROOT / "build" / "site"
ADDRESS: Final = "https://axolotl-mcp.github.io/axolotl/"

_SECTION: Final = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
_ROW: Final = re.compile(r"^\| \[(.+?)\]\((.+?)\) \| (.+?) \|$", re.MULTILINE)


class Entry(NamedTuple):
    """A page in a section of the navigation."""

    section: str
    title: str
    page: str
    content: str


def navigation() -> list[Entry]:
    """Read the tables of the index page."""
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    return [Entry(section, *row) for section, body in _SECTION.findall(text) for row in _ROW.findall(body)]


def build() -> Path:
    """Build the site and return its folder; a broken link is an error."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    shutil.copytree(DOCS, FOLDER / "docs", ignore=shutil.ignore_patterns("__pycache__"))
    fill(FOLDER / "docs")
    configuration = FOLDER / "zensical.toml"
    shutil.copy(ROOT / "zensical.toml", configuration)
    program = Path(sys.executable).with_name("zensical")
    command = [str(program), "build", "--clean", "--strict", "--config-file", str(configuration)]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(re.sub(r"\x1b\[[\d;]*m", "", f"{done.stdout}{done.stderr}"))
    output = FOLDER / "html"
    (output / "llms.txt").write_text(llms_text(), encoding="utf-8")
    return output


def llms_text() -> str:
    """List all pages with their contents, for language models (llmstxt.org)."""
    lines = ["# Axolotl", "", "> A framework for Model Context Protocol tool servers in Python.", ""]
    for section, entries in sections():
        links = [f"- [{entry.title}]({ADDRESS}{_path(entry.page)}): {_plain(entry.content)}" for entry in entries]
        lines += [f"## {section}", "", *links, ""]
    return "\n".join(lines)


def sections() -> Iterator[tuple[str, list[Entry]]]:
    """Group the navigation by section."""
    entries = navigation()
    for section in dict.fromkeys(entry.section for entry in entries):
        yield section, [entry for entry in entries if entry.section == section]


def _path(page: str) -> str:
    return page.removesuffix("index.md").removesuffix(".md") + "/"


def _plain(text: str) -> str:
    return text.replace("`", "")
