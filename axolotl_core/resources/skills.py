"""Skills: `ISkill`, `skill_folder`, and the rules for the front matter of a `SKILL.md`."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from math import isfinite
from pathlib import Path
from typing import Any, Final

import msgspec

from axolotl_core.errors import ConfigurationError
from axolotl_core.protocol.messages import is_encodable
from axolotl_core.resources.resource import CacheHint

SKILLS_EXTENSION: Final = "io.modelcontextprotocol/skills"
"""The extension that adds skills to the stateless revision."""
SKILL_PAGE: Final = "SKILL.md"
"""The file that every skill has."""
MAX_SKILL_FILES: Final = 512
MAX_SKILL_BYTES: Final = 16 * 1024 * 1024
MAX_FRONT_MATTER_DEPTH: Final = 16
MAX_SKILL_DESCRIPTION: Final = 1024
_NAME: Final = re.compile(r"(?!.*--)[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")


class ISkill(ABC):
    """Instructions for a model, in a `SKILL.md`, with the files that they refer to.

    Use `skill_folder` for skills that are folders of files.
    """

    uri: str
    """The URI of its `SKILL.md`, such as `skill://billing/refunds/SKILL.md`."""
    frontmatter: Mapping[str, Any]
    """The front matter of its `SKILL.md`: the `name`, which the URI has before `SKILL.md`, and the `description`."""
    dynamic: bool = False
    """Whether the files may change: then `files` is called for every read, and clients get no digests."""
    tags: frozenset[str] = frozenset()
    scopes: frozenset[str] = frozenset()
    """The scopes that a caller needs, if an authorizer checks them."""
    cache: CacheHint | None = None
    """How long clients may cache the files; None for the server's settings."""

    @abstractmethod
    async def files(self) -> Mapping[str, bytes]:
        """Return the contents of all files by their paths, such as `SKILL.md` and `templates/letter.md`."""


class SkillFolder(msgspec.Struct, frozen=True):
    """A folder with skills, which is read when the server starts."""

    source: str | Path
    """The name of a package, or the path of a folder."""
    prefix: str = ""
    tags: frozenset[str] = frozenset()
    scopes: frozenset[str] = frozenset()
    cache: CacheHint | None = None


def skill_folder(
    source: str | Path,
    /,
    *,
    prefix: str = "",
    tags: frozenset[str] = frozenset(),
    scopes: frozenset[str] = frozenset(),
    cache: CacheHint | None = None,
) -> SkillFolder:
    """Serve the skills of a folder: every folder in it that has a `SKILL.md`, at any depth.

    A string is the name of a package, such as `shop.skills`, whose folder needs no `__init__.py`; a `Path` is a folder.
    The URIs contain the path of each skill below the folder, after the `prefix`.
    """
    return SkillFolder(source, prefix.strip("/"), tags, scopes, cache)


def check_skill(skill: ISkill) -> None:
    """Check a skill before it is served.

    Raises:
        ConfigurationError: with everything that is wrong with its URI and front matter.
    """
    kind, uri, matter = type(skill).__name__, getattr(skill, "uri", None), getattr(skill, "frontmatter", None)
    if not isinstance(uri, str) or not uri.endswith(f"/{SKILL_PAGE}") or "://" not in uri:
        raise ConfigurationError(f'{kind} has the URI {uri!r}: write one such as uri = "skill://refunds/{SKILL_PAGE}"')
    if not isinstance(matter, Mapping):
        raise ConfigurationError(f'{kind} has no front matter: write frontmatter = {{"name": …, "description": …}}')
    faults = tuple(faults_of_front_matter(matter, uri.split("/")[-2]))
    if faults:
        raise ConfigurationError(*(f"Skill {uri!r}: {fault}" for fault in faults))


def faults_of_front_matter(matter: Mapping[str, Any], folder: str) -> Iterator[str]:
    """Describe everything that is wrong with the front matter of the skill in a folder with this name."""
    name, description = matter.get("name"), matter.get("description")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        yield f"name is {name!r}; use 1 to 64 of a-z, 0-9 and single hyphens, with a letter or digit at both ends"
    elif name != folder:
        yield f"name is {name!r}, but its folder is {folder!r}; both must be the same"
    if not isinstance(description, str) or not description.strip():
        yield "it has no description: write when a model should use the skill"
    elif len(description) > MAX_SKILL_DESCRIPTION:
        yield f"the description has {len(description)} characters; at most {MAX_SKILL_DESCRIPTION} are allowed"
    yield from _without_json_form(matter, "", MAX_FRONT_MATTER_DEPTH)


def _without_json_form(value: Any, place: str, depth: int) -> Iterator[str]:
    """Find values that JSON cannot express, because clients compare the front matter field by field."""
    if depth == 0:
        yield f"{place} is nested more than {MAX_FRONT_MATTER_DEPTH} levels deep"
    elif isinstance(value, Mapping):
        for key, member in value.items():
            inner = f"{place}.{key}" if place else str(key)
            if not isinstance(key, str):
                yield f"the key {inner} is of type {type(key).__name__}; write it in quotes"
            elif not is_encodable(key):
                yield f"the key {inner!r} has half of a surrogate pair, which is not a character"
            yield from _without_json_form(member, inner, depth - 1)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _without_json_form(item, f"{place}[{index}]", depth - 1)
    elif isinstance(value, str) and not is_encodable(value):
        yield f"{place} has half of a surrogate pair, which is not a character"
    elif not (value is None or isinstance(value, str | int) or (isinstance(value, float) and isfinite(value))):
        yield f"{place} is of type {type(value).__name__}, which JSON does not have; write it in quotes"
