"""Find the files that the laws speak about."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = ROOT / "axolotl_cli/scaffold/templates"


@dataclass(frozen=True, slots=True)
class Source:
    """Hold one Python file: its path below the repository, with slashes, and its text."""

    path: str
    text: str


def read_sources(*patterns: str) -> Iterator[Source]:
    """Yield every Python file below the directories that match the patterns, in order of their paths.

    Templates of projects are left out: they are projects of their own.
    """
    directories = (directory for pattern in patterns for directory in ROOT.glob(pattern) if directory.is_dir())
    for file in sorted(file for directory in directories for file in directory.rglob("*.py")):
        if TEMPLATES in file.parents:
            continue
        yield Source(file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8"))
