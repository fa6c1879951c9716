"""Folders with skills, read once: what clients see in the list is what they read."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from stat import S_ISREG
from typing import Any, Final
from urllib.parse import quote

from axolotl_core.errors import ConfigurationError
from axolotl_core.resources.skills import (
    MAX_SKILL_BYTES,
    MAX_SKILL_FILES,
    SKILL_PAGE,
    ISkill,
    SkillFolder,
    faults_of_front_matter,
)
from axolotl_server.extensions.skills.front_matter import read_front_matter

_LEFT_OUT: Final = re.compile(r"__pycache__|\.DS_Store|\..*\.sw[a-z]|\.#.*|.*~")
"""Names of files and folders that Python, editors and desktops make."""


class FolderSkill(ISkill):
    """A skill that was read from a folder."""

    def __init__(self, uri: str, matter: Mapping[str, Any], files: Mapping[str, bytes], source: SkillFolder) -> None:
        self.uri = uri
        self.frontmatter = matter
        self.tags, self.scopes, self.cache = source.tags, source.scopes, source.cache
        self._files = files

    async def files(self) -> Mapping[str, bytes]:
        return self._files


def read_skill_folder(source: SkillFolder) -> list[FolderSkill]:
    """Read all skills of a folder, or raise ConfigurationError with everything that is wrong with them."""
    root = _location(source.source)
    pages = sorted(folder / SKILL_PAGE for folder, _, names in _walk(root) if SKILL_PAGE in names)
    findings = [f"{root / name}: there is no {SKILL_PAGE} in it" for name in _folders_without(root, pages)]
    if not pages and not findings:
        findings.append(f"{root}: there is no {SKILL_PAGE} in it or in a folder in it")
    skills = []
    for page in pages:
        try:
            skills.append(_read_skill(page.parent, root, source))
        except ConfigurationError as error:
            findings += error.findings
    if findings:
        raise ConfigurationError(*findings)
    return skills


def _location(source: str | Path) -> Path:
    if isinstance(source, Path):
        folder = source
    else:
        try:
            spec = find_spec(source)
        except (ImportError, ValueError) as error:
            raise ConfigurationError(f"skill_folder({source!r}): {error}") from error
        places = [] if spec is None else list(spec.submodule_search_locations or ())
        if not places:
            raise ConfigurationError(
                f"skill_folder({source!r}): there is no such package; for a folder, write skill_folder(Path(…))"
            )
        folder = Path(places[0])
    if not folder.is_dir():
        raise ConfigurationError(f"skill_folder: {folder} is not a folder")
    return folder.resolve()


def _walk(root: Path) -> Iterator[tuple[Path, Sequence[str], Sequence[str]]]:
    """Walk through a folder in the order of names."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not _LEFT_OUT.fullmatch(name))
        yield Path(folder), folders, sorted(name for name in names if not _LEFT_OUT.fullmatch(name))


def _folders_without(root: Path, pages: Sequence[Path]) -> Iterator[str]:
    """Find the folders in a folder of skills that are not skills and have none in them."""
    if (root / SKILL_PAGE) in pages:
        return
    for entry in sorted(root.iterdir()):
        is_skill = any(page.is_relative_to(entry) for page in pages)
        if entry.is_dir() and not is_skill and not _LEFT_OUT.fullmatch(entry.name) and entry.name[0] != ".":
            yield entry.name


def _read_skill(folder: Path, root: Path, source: SkillFolder) -> FolderSkill:
    name, below = folder.name, folder.relative_to(root).parts
    path = PurePosixPath(source.prefix, *(below or (name,)))
    uri = f"skill://{quote(str(path))}/{SKILL_PAGE}"
    files = dict(_read_files(folder, root))
    page = folder / SKILL_PAGE
    try:
        matter = read_front_matter(files[SKILL_PAGE])
    except ConfigurationError as error:
        raise ConfigurationError(*(f"{page}: {finding}" for finding in error.findings)) from error
    faults = [f"{page}: {fault}" for fault in faults_of_front_matter(matter, name)]
    if faults:
        raise ConfigurationError(*faults)
    return FolderSkill(uri, matter, files, source)


def _read_files(folder: Path, root: Path) -> Iterator[tuple[str, bytes]]:
    """Read the files of one skill; the size is checked before anything large is read."""
    total = 0
    for number, file in enumerate(_files_of(folder, root), start=1):
        if number > MAX_SKILL_FILES:
            raise ConfigurationError(f"{folder}: the skill has more than {MAX_SKILL_FILES} files")
        with file.open("rb") as opened:
            content = opened.read(MAX_SKILL_BYTES - total + 1)
        total += len(content)
        if total > MAX_SKILL_BYTES:
            raise ConfigurationError(f"{folder}: the files of the skill have more than {MAX_SKILL_BYTES} bytes")
        yield file.relative_to(folder).as_posix(), content


def _files_of(folder: Path, root: Path) -> Iterator[Path]:
    for inside, folders, names in _walk(folder):
        for name in (*folders, *names):
            entry = inside / name
            if name.startswith("."):
                raise ConfigurationError(f"{entry}: files whose names begin with a dot are not served; remove it")
            if not name.isprintable():
                raise ConfigurationError(f"{str(entry)!r}: the name has characters that cannot be shown; rename it")
            if entry.is_symlink() and (name in folders or not entry.resolve().is_relative_to(root)):
                raise ConfigurationError(f"{entry}: links to folders, and links out of {root}, are not served; copy it")
        for name in names:
            file = inside / name
            try:
                regular = S_ISREG(file.stat().st_mode)
            except OSError as error:
                raise ConfigurationError(f"{file} cannot be read: {error.strerror}") from error
            if not regular:
                raise ConfigurationError(f"{file} is not a regular file; remove it")
            yield file
