"""Skills as clients see them: the entry with its digests, the files as resources, and the directories."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from mimetypes import MimeTypes
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

import msgspec
from pydantic import BaseModel

from axolotl_core.arguments import NoArguments, ParseArguments
from axolotl_core.calls.context import Context
from axolotl_core.content import BlobResource, TextResource
from axolotl_core.errors import ConfigurationError, ResourceNotFound
from axolotl_core.features.feature import IFeature
from axolotl_core.registry import AnyResource
from axolotl_core.resources.resource import IResource, IResourceTemplate, ResourceOutput
from axolotl_core.resources.skills import MAX_SKILL_BYTES, MAX_SKILL_FILES, SKILL_PAGE, ISkill, SkillFolder, check_skill
from axolotl_server.extensions.skills.folder_reading import read_skill_folder

_ROOM: Final = 6
"""How many bytes of a result one byte of a file takes at most, if all of them are escaped."""
_HEAD_BYTES: Final = 16 * 1024
_MIME_TYPES: Final = MimeTypes(filenames=())  # not those of the machine, because clients compare what they get
for _type, _suffix in (("text/markdown", ".md"), ("application/yaml", ".yaml"), ("application/toml", ".toml")):
    _MIME_TYPES.add_type(_type, _suffix)


class SkillFile(IResource):
    """A file of a skill."""

    _kind = "skill"

    def __init__(self, skill: ISkill, path: str, content: bytes | None) -> None:
        is_page = path == SKILL_PAGE
        self.uri = f"{root_of(skill)}/{quote(path)}"
        self.name = skill.frontmatter["name"] if is_page else path.rpartition("/")[2]
        self.description = skill.frontmatter["description"] if is_page else ""
        self.mime_type = mime_type_of(path, content)
        self.tags, self.scopes, self.cache = skill.tags, skill.scopes, skill.cache
        self.max_result_bytes = MAX_SKILL_BYTES if content is None else len(content) * _ROOM + _HEAD_BYTES
        self.size = None if content is None else len(content)
        self.page_of: PublishedSkill | None = None
        """The skill whose `SKILL.md` it is."""
        self.content = content
        self._skill = skill

    async def read(self, context: Context) -> ResourceOutput:
        return readable(self.content if self.content is not None else (await self._skill.files())[SKILL_PAGE])


class _Path(BaseModel):
    path: str


class DynamicSkillFiles(IResourceTemplate[_Path]):
    """The files of a skill that may change."""

    _kind = "skill"
    max_result_bytes = MAX_SKILL_BYTES

    def __init__(self, skill: ISkill) -> None:
        self.uri_template = f"{root_of(skill)}/{{+path}}"
        self.name = skill.frontmatter["name"]
        self.description = skill.frontmatter["description"]
        self.tags, self.scopes, self.cache = skill.tags, skill.scopes, skill.cache
        self._skill = skill

    async def read(self, variables: _Path, context: Context) -> ResourceOutput:
        content = (await self._skill.files()).get(variables.path)
        if content is None:
            raise ResourceNotFound(context.uri)
        output, mime_type = readable(content), mime_type_of(variables.path, content)
        if isinstance(output, str):
            return TextResource(context.uri, output, mime_type)
        return BlobResource(context.uri, output, mime_type)


class SkillDirectory(msgspec.Struct, frozen=True, rename="camel"):
    """A directory of a skill, as lists of directories show it."""

    uri: str
    name: str
    mime_type: str = "inode/directory"


class PublishedSkill(IFeature):
    """A skill with everything that clients see of it. Running it returns its entry."""

    input_model = NoArguments

    def __init__(self, skill: ISkill, files: Sequence[SkillFile], others: Sequence[AnyResource]) -> None:
        self.uri = skill.uri
        self.name = skill.frontmatter["name"]
        self.description = skill.frontmatter["description"]
        self.tags, self.scopes, self.cache = skill.tags, skill.scopes, skill.cache
        self.files = files
        """Its files, those of skills in it included; for a dynamic skill, only its `SKILL.md`."""
        self.resources: Sequence[AnyResource] = (*files, *others)
        """All that a caller must be allowed to read to see the skill."""
        self.entry = _entry(skill, files)
        self._skill = skill
        next(file for file in files if file.uri == skill.uri).page_of = self
        self._directories = None if skill.dynamic else _directories(root_of(skill), files)

    def argument_parser(self, *, coerce: bool) -> ParseArguments:
        return lambda raw: None

    async def execute(self, arguments: Any, context: Context) -> Mapping[str, Any]:
        return self.entry

    async def children_of(self, uri: str) -> "Sequence[SkillFile | SkillDirectory] | None":
        """List what is directly in a directory; None if there is no such directory."""
        if self._directories is not None:
            return self._directories.get(uri)
        contents = await self._skill.files()
        return _directories(root_of(self._skill), [SkillFile(self._skill, *file) for file in contents.items()]).get(uri)


def root_of(skill: ISkill) -> str:
    """Return the URI of the folder of a skill."""
    return skill.uri.removesuffix(f"/{SKILL_PAGE}")


def readable(content: bytes) -> str | bytes:
    """Return the content of a file as text, if it is text that has the same bytes for the client."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return content
    return content if "\0" in text else text


def mime_type_of(path: str, content: bytes | None) -> str:
    """Choose the MIME type of a file by its name, otherwise by its content."""
    found, encoding = _MIME_TYPES.guess_type(f"/{path}")
    if found is not None and encoding is None:
        return found
    return "text/plain" if content is not None and isinstance(readable(content), str) else "application/octet-stream"


async def read_skills(items: Iterable[Any]) -> tuple[list[PublishedSkill], list[str]]:
    """Read folders and skills, and tell what is wrong with those that cannot be served."""
    published: list[PublishedSkill] = []
    findings: list[str] = []
    for item in items:
        try:
            published += await publish_skills(_skills_of(item))
        except ConfigurationError as error:
            findings += error.findings
    return published, findings


def _skills_of(item: Any) -> list[ISkill]:
    if isinstance(item, Path):
        item = SkillFolder(item)
    if isinstance(item, SkillFolder):
        return [*read_skill_folder(item)]
    if isinstance(item, ISkill):
        check_skill(item)
        return [item]
    hint = "use an instance" if isinstance(item, type) else 'use skill_folder("pkg.skills"), a Path or an ISkill'
    raise ConfigurationError(f"The role skills contains {item!r}, which is not a skill: {hint}")


async def publish_skills(skills: Sequence[ISkill]) -> list[PublishedSkill]:
    """Prepare skills for clients: check their files, compute the digests, and make a resource of each file.

    A file that belongs to a skill and to a skill in it is one resource. A ConfigurationError lists everything that is
    wrong.
    """
    known: dict[str, SkillFile] = {}
    published: dict[int, PublishedSkill] = {}
    findings: list[str] = []
    for skill in sorted(skills, key=lambda one: -one.uri.count("/")):  # inner ones first: they describe their SKILL.md
        try:
            published[id(skill)] = await _publish(skill, known)
        except ConfigurationError as error:
            findings += error.findings
    if findings:
        raise ConfigurationError(*findings)
    return [published[id(skill)] for skill in skills]


async def _publish(skill: ISkill, known: dict[str, SkillFile]) -> PublishedSkill:
    if skill.dynamic:
        page = SkillFile(skill, SKILL_PAGE, None)
        return PublishedSkill(skill, [page], [DynamicSkillFiles(skill)])
    contents = await skill.files()
    findings = [f"Skill {skill.uri!r}: {fault}" for fault in _faults_of(contents)]
    if findings:
        raise ConfigurationError(*findings)
    files = []
    for path, content in contents.items():
        file = SkillFile(skill, path, content)
        same = known.setdefault(file.uri, file)
        files.append(same if same.content == content and path != SKILL_PAGE else file)
    return PublishedSkill(skill, files, [])


def _faults_of(contents: Mapping[str, bytes]) -> Iterator[str]:
    if SKILL_PAGE not in contents:
        yield f"files() returned no {SKILL_PAGE}"
    if len(contents) > MAX_SKILL_FILES:
        yield f"it has {len(contents)} files; at most {MAX_SKILL_FILES} are allowed"
    total = sum(map(len, contents.values()))
    if total > MAX_SKILL_BYTES:
        yield f"it has {total} bytes; at most {MAX_SKILL_BYTES} are allowed"
    for path in contents:
        if not path.isprintable() or "\\" in path or any(part.startswith(".") or not part for part in path.split("/")):
            yield f"it has a file {path!r}; use a relative path without parts that are empty or begin with a dot"


def _entry(skill: ISkill, files: Iterable[SkillFile]) -> Mapping[str, Any]:
    listed = [
        {"uri": file.uri, "digest": f"sha256:{sha256(file.content).hexdigest()}", "size": len(file.content)}
        for file in files
        if file.content is not None
    ]
    return {"uri": skill.uri, "frontmatter": skill.frontmatter, "resources": "dynamic" if skill.dynamic else listed}


def _directories(root: str, files: Iterable[SkillFile]) -> dict[str, list[SkillFile | SkillDirectory]]:
    """Return what is in each directory of a skill, by its URI."""
    found: dict[str, list[SkillFile | SkillDirectory]] = {root: []}
    for file in files:
        *parents, _ = file.uri.removeprefix(f"{root}/").split("/")
        here = root
        for part in parents:
            inner = f"{here}/{part}"
            if inner not in found:
                found[inner] = []
                found[here].append(SkillDirectory(inner, unquote(part)))
            here = inner
        found[here].append(file)
    return found
