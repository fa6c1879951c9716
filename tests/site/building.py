"""The documentation site: the pages in `docs`, with the generated reference, and `llms.txt`."""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

from tests.site.generated import fill

ROOT: Final = Path(__file__).resolve().parents[2]
DOCS: Final = ROOT / "docs"
FOLDER: Final = ROOT / "build" / "site"
ADDRESS: Final = "https://axolotl-mcp.github.io/axolotl/"


class Entry(NamedTuple):
    """A page in a section of the navigation; a page outside of sections is a section of its own."""

    section: str
    title: str
    page: str

    @property
    def content(self) -> str:
        """The first sentence of the page."""
        text = re.sub(r"^<!--.*?-->$", "", (DOCS / self.page).read_text(encoding="utf-8"), flags=re.MULTILINE)
        paragraph = text.partition("\n\n")[2].lstrip().partition("\n\n")[0]
        plain = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", paragraph.replace("\n", " ").replace("*", "").replace("`", ""))
        return re.split(r"(?<=[.:]) (?=[A-Z])", plain)[0].removesuffix(":")


def navigation() -> Iterator[Entry]:
    """List the pages in the order of the navigation."""
    configuration = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))
    for section in configuration["project"]["nav"]:
        [(name, content)] = section.items()
        pages = content if isinstance(content, list) else [section]
        yield from (Entry(name, title, page) for entry in pages for title, page in entry.items())


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
    """List all pages with their first sentences, for language models (llmstxt.org)."""
    lines = ["# Axolotl", "", "> A framework for Model Context Protocol tool servers in Python.", ""]
    for section, entries in groupby(navigation(), key=lambda entry: entry.section):
        links = [f"- [{entry.title}]({ADDRESS}{_path(entry.page)}): {entry.content}" for entry in entries]
        lines += [f"## {section}", "", *links, ""]
    return "\n".join(lines)


def _path(page: str) -> str:
    path = page.removesuffix("index.md").removesuffix(".md")
    return f"{path}/" if path else ""
