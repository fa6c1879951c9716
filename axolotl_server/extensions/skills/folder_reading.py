"""Folders with skills, read once: what clients see in the list is what they read."""

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from stat import S_ISREG
from typing import Any, Final
from urllib.parse import quote

from axolotl_core.errors import ConfigurationError
from axolotl_core.resources.skills import (
    MAX_FRONT_MATTER_DEPTH,
    MAX_SKILL_BYTES,
    MAX_SKILL_FILES,
    SKILL_PAGE,
    ISkill,
    SkillFolder,
    faults_of_front_matter,
)

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


MAX_FRONT_MATTER_BYTES: Final = 64 * 1024

_BLOCK: Final = re.compile(rb"(?:\xef\xbb\xbf)?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_TAG: Final = "tag:yaml.org,2002:"
_TYPES: Final = frozenset(f"{_TAG}{name}" for name in ("map", "seq", "str", "int", "float", "bool", "null"))
_GUESSED: Final = frozenset(f"{_TAG}{name}" for name in ("timestamp", "merge", "value"))
"""Types that parsers of YAML 1.1 find in plain text."""
_AGREED: Final = {
    "int": re.compile(r"[-+]?(?:0|[1-9][0-9]*)"),
    "float": re.compile(r"[-+]?(?:0|[1-9][0-9]*)\.[0-9]+(?:[eE][-+][0-9]+)?"),
    "bool": re.compile(r"true|True|TRUE|false|False|FALSE"),
    "null": re.compile(r"null|Null|NULL|~|"),
}
"""Plain scalars that YAML 1.1 and YAML 1.2 read in the same way."""
_NUMBER: Final = re.compile(
    r"[-+]?(?:[0-9]+|\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][-+]?[0-9]+)?|0o[0-7]+|0x[0-9a-fA-F]+|[-+]?\.inf|\.nan", re.I
)
"""Plain scalars that are numbers in YAML 1.2."""


def read_front_matter(page: bytes) -> dict[str, Any]:
    """Read the front matter of a `SKILL.md`, or raise ConfigurationError with what is wrong and where."""
    block = _BLOCK.match(page)
    if block is None:
        raise ConfigurationError("it does not begin with front matter: a line ---, YAML with name and description, ---")
    if len(block[1]) > MAX_FRONT_MATTER_BYTES:
        raise ConfigurationError(
            f"the front matter has {len(block[1])} bytes; at most {MAX_FRONT_MATTER_BYTES} are allowed"
        )
    try:
        import yaml  # few servers have skills
    except ImportError:
        raise ConfigurationError.missing_extra("A skill", "skills") from None
    try:
        matter = yaml.load(block[1].decode(), Loader=_loader())  # a SafeLoader that accepts less
    except UnicodeDecodeError:
        raise ConfigurationError("the front matter is not UTF-8") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:  # such as a number with thousands of digits
        mark = getattr(error, "problem_mark", None)
        place = "" if mark is None else f"line {mark.line + 2}: "  # after the line with ---
        problem = getattr(error, "problem", None) or error
        raise ConfigurationError(f"the front matter is not valid: {place}{problem}") from None
    if not isinstance(matter, dict):
        raise ConfigurationError("the front matter is not a mapping: write name: … and description: …")
    return matter


@cache
def _loader() -> Any:
    """Make the class that reads YAML: safe, without aliases and tags, and without values that parsers read differently.

    A parser of YAML 1.2 reads `yes` as text and `010` as ten, one of YAML 1.1 as true and as eight, and only some know
    dates. Clients compare the front matter with what they parse themselves, so such values must be in quotes.
    """
    import yaml

    class FrontMatterLoader(yaml.SafeLoader):
        depth = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            self.depth += 1
            if self.check_event(yaml.AliasEvent):
                raise self.fault("aliases are not allowed; write the value again")
            if self.depth > MAX_FRONT_MATTER_DEPTH:
                raise self.fault(f"it is nested more than {MAX_FRONT_MATTER_DEPTH} levels deep")
            node: Any = super().compose_node(parent, index)
            self.depth -= 1
            for problem in _problems_of(node, yaml):
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
            return node

        def fault(self, problem: str) -> yaml.YAMLError:
            next_event: Any = self.peek_event()  # type: ignore[no-untyped-call]
            return yaml.MarkedYAMLError(problem=problem, problem_mark=next_event.start_mark)

    return FrontMatterLoader


def _problems_of(node: Any, yaml: Any) -> Iterator[str]:
    if node.tag not in _TYPES | _GUESSED:
        yield f"the type {node.tag.removeprefix(_TAG)!r} is not allowed"
    if isinstance(node, yaml.MappingNode):
        times = Counter(str(key.value) for key, _ in node.value)
        yield from (f"{key!r} is there twice" for key, number in times.items() if number > 1)
    if isinstance(node, yaml.ScalarNode) and node.style is None and not _is_agreed(node.tag, node.value):
        yield f"write {node.value!r} in quotes, because parsers of YAML read it differently"


def _is_agreed(tag: str, value: str) -> bool:
    kind = tag.removeprefix(_TAG)
    if kind == "str":
        return _NUMBER.fullmatch(value) is None
    return kind in _AGREED and _AGREED[kind].fullmatch(value) is not None
