"""Skills as an extension of the stateless revisions: `skills/list`, `skills/get` and `resources/directory/read`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import msgspec

from axolotl_core.arguments import ParseArguments
from axolotl_core.calls.context import Context
from axolotl_core.errors import ConfigurationError, InvalidParams, ProtocolError
from axolotl_core.features.feature import IFeature
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.protocol.client_text import shorten
from axolotl_core.protocol.identity import Principal
from axolotl_core.protocol.versions import STATELESS_REVISIONS, Revision
from axolotl_core.protocol.wire import decode_cursor, encode, encode_cursor
from axolotl_core.registry import AnyResource
from axolotl_core.resources.resource import IResource
from axolotl_core.resources.skills import SKILL_PAGE, SKILLS_EXTENSION
from axolotl_core.resources.uri_form import canonical_uri
from axolotl_server.calls.binding import Binding
from axolotl_server.calls.feature_method import ErrorFeatureMethod, RequestTarget
from axolotl_server.calls.running_call import RunningCalls
from axolotl_server.extension import Extension, FeatureSet
from axolotl_server.extensions.skills.published_skill import PublishedSkill, SkillDirectory, SkillFile, read_skills
from axolotl_server.features.catalogue import Catalogue, Views
from axolotl_server.features.resources import ResourceCatalogue, TemplateCatalogue, cache_hints, uri_in
from axolotl_server.protocol.eras.era import Row
from axolotl_server.protocol.eras.presentation import resource_definition
from axolotl_server.protocol.params import ListParams, read_params, read_raw_params
from axolotl_server.protocol.request import Request

if TYPE_CHECKING:
    from axolotl_server.access.authorization import Authorization
    from axolotl_server.hosting.assembly import ServerAssembly

_DIRECTORIES: Final = "resources/directory"


class _DirectoryParams(msgspec.Struct):
    uri: str
    cursor: str | None = None


class _DirectoryPage(NamedTuple):
    children: Sequence[SkillFile | SkillDirectory]
    next_cursor: str | None


class _DirectoryReading(IFeature):
    """Lists the directories of a skill; a feature, because the files of a dynamic skill come from its code."""

    input_model = _DirectoryParams

    def __init__(self, skill: PublishedSkill, page_size: int) -> None:
        self.name = skill.name
        self.tags, self.scopes = skill.tags, skill.scopes
        self._skill = skill
        self._page_size = page_size

    def argument_parser(self, *, coerce: bool) -> ParseArguments:
        return msgspec.json.Decoder(_DirectoryParams).decode

    async def execute(self, arguments: _DirectoryParams, context: Context) -> _DirectoryPage:
        children = await self._skill.children_of(canonical_uri(arguments.uri) or arguments.uri)
        if children is None:
            raise no_directory(arguments.uri)
        start = 0 if arguments.cursor is None else decode_cursor(_DIRECTORIES, arguments.cursor, "read")
        end = start + self._page_size
        return _DirectoryPage(children[start:end], encode_cursor(_DIRECTORIES, end) if end < len(children) else None)


def _encode_directory(page: _DirectoryPage, request: Request) -> bytes:
    revision = request.era.revision
    shown = [one if isinstance(one, SkillDirectory) else resource_definition(one, revision) for one in page.children]
    more = {} if page.next_cursor is None else {"nextCursor": page.next_cursor}
    return encode({"resources": shown, **more})[:-1] + request.era.tail


def no_directory(uri: str) -> InvalidParams:
    """Make the error for a URI that is not a directory of a skill."""
    return InvalidParams(f"Invalid params: {shorten(uri)} is not a directory of a skill")


class _SkillViews(Views[Any]):
    """The skills that principals see: those of which they may read all files."""

    def __init__(self, groups: Callable[[], Sequence[Sequence[FeatureSpec]]]) -> None:
        super().__init__(())
        self._find_groups = groups

    @cached_property
    def _groups(self) -> Sequence[Sequence[FeatureSpec]]:
        return self._find_groups()

    @cached_property
    def _specs(self) -> Sequence[FeatureSpec]:
        return list(dict.fromkeys(spec for group in self._groups for spec in group))

    async def _decide(self, principal: Principal, authorization: "Authorization") -> bytes:
        decisions = await authorization.allowed(principal, self._specs)
        allowed = dict(zip(self._specs, decisions, strict=True))
        return bytes(all(map(allowed.__getitem__, group)) for group in self._groups)


class SkillCatalogue(Catalogue[PublishedSkill, FeatureSpec]):
    """Finds skills by the URI of their `SKILL.md`, and lists them."""

    field = "skills"
    method_prefix = "skills"

    _by_uri: Mapping[str, Binding[FeatureSpec]]

    def __init__(self, resources: ResourceCatalogue, templates: TemplateCatalogue, *args: Any) -> None:
        self._resources = resources
        self._templates = templates
        self._readers: dict[str, Binding[FeatureSpec]] = {}
        super().__init__(*args)

    def find(self, uri: str) -> Binding[FeatureSpec] | None:
        """Find the skill with a URI."""
        return self._by_uri.get(canonical_uri(uri) or uri)

    def find_around(self, uri: str) -> Binding[FeatureSpec] | None:
        """Find the innermost skill that a directory belongs to."""
        directory = canonical_uri(uri) or uri
        while not directory.endswith("/"):
            found = self._by_uri.get(f"{directory}/{SKILL_PAGE}")
            if found is not None:
                return found
            directory = directory.rpartition("/")[0] or "/"
        return None

    def reader_of(self, binding: Binding[FeatureSpec]) -> Binding[FeatureSpec]:
        """Return what reads the directories of a skill."""
        return self._readers[binding.spec.name]

    def served(self, registered: Iterable[AnyResource]) -> Iterable[PublishedSkill]:
        return (one.page_of for one in registered if isinstance(one, SkillFile) and one.page_of is not None)

    def compile(self, item: PublishedSkill) -> Binding[FeatureSpec]:
        hint_for = cache_hints(item.cache, self._settings.caching, self.authorization is not None)

        def encode_entry(entry: Mapping[str, Any], request: Request) -> bytes:
            return b'{"skill":%b%b' % (encode(entry), request.era.cacheable_tail(hint_for(request)))

        reading = _DirectoryReading(item, self._page_size)
        self._readers[item.uri] = self._binder.bind(reading, "skill", item.uri, _encode_directory)
        return self._binder.bind(item, "skill", item.uri, encode_entry)

    def describe(self, binding: Binding[FeatureSpec], revision: Revision) -> dict[str, Any]:
        return dict(_skill_of(binding).entry)

    def index(self, bindings: Sequence[Binding[FeatureSpec]]) -> None:
        self._by_uri = {canonical_uri(one.spec.name) or one.spec.name: one for one in bindings}

    def make_views(self, bindings: Sequence[Binding[FeatureSpec]]) -> Views[Any]:
        return _SkillViews(lambda: [self._files_of(binding) for binding in bindings])

    async def is_visible(self, binding: Binding[FeatureSpec], principal: Principal) -> bool:
        """Whether a principal may read all files of a skill; raises InternalError if the authorizer failed."""
        if self.authorization is None:
            return True
        return all(await self.authorization.allowed(principal, self._files_of(binding)))

    def _files_of(self, binding: Binding[FeatureSpec]) -> Sequence[FeatureSpec]:
        """Return everything that a principal must be allowed to read to see a skill."""
        found = [
            self._resources.find(canonical_uri(one.uri) or one.uri)
            if isinstance(one, IResource)
            else self._templates.find_template(one.uri_template)
            for one in _skill_of(binding).resources
        ]
        return [binding.spec, *(one.spec for one in found if one is not None)]


def _skill_of(binding: Binding[FeatureSpec]) -> PublishedSkill:
    return cast("PublishedSkill", binding.spec.feature)


class SkillMethods(ErrorFeatureMethod):
    """Gives the entries of skills."""

    def __init__(self, skills: SkillCatalogue, inflight: RunningCalls) -> None:
        super().__init__(inflight)
        self._skills = skills

    def locate(self, request: Request) -> RequestTarget:
        uri = uri_in(request)
        return RequestTarget(self._skills.find(uri), uri=uri, needs_check=True)

    async def not_found(self, request: Request) -> ProtocolError:
        return InvalidParams(f"Invalid params: there is no skill {shorten(uri_in(request))}")

    async def checked(self, target: RequestTarget, request: Request) -> Binding[FeatureSpec]:
        """Hide a skill of which the principal may not read every file."""
        binding = await super().checked(target, request)
        skill = self._skills.find(binding.spec.name)
        if skill is None or not await self._skills.is_visible(skill, request.exchange.principal):
            raise await self.not_found(request)
        return binding


class DirectoryMethods(SkillMethods):
    """Lists the directories of skills."""

    def locate(self, request: Request) -> RequestTarget:
        uri = uri_in(request)
        skill = self._skills.find_around(uri)
        reader = None if skill is None else self._skills.reader_of(skill)
        return RequestTarget(reader, bytes(read_raw_params(request.data)), uri, needs_check=True)

    async def not_found(self, request: Request) -> ProtocolError:
        return no_directory(uri_in(request))

    async def checked(self, target: RequestTarget, request: Request) -> Binding[FeatureSpec]:
        """Refuse parameters that cannot be read before anything runs."""
        read_params(request.data, ListParams)
        return await super().checked(target, request)


class Skills(Extension):
    """Publishes folders of instructions, which clients list, and read as resources."""

    identifier = SKILLS_EXTENSION
    settings: Mapping[str, Any] = {"directoryRead": True}
    _server: "ServerAssembly"

    def __init__(self, skills: Sequence[FeatureSet] = ()) -> None:
        self._sources = skills

    async def features(self) -> Mapping[str, Sequence[FeatureSet]]:
        skillsets, filesets, faults = [], [], []
        for source in self._sources:
            skills, found = await read_skills(source.items)
            files = {id(file): file for skill in skills for file in skill.resources}  # some belong to several skills
            skillsets.append(FeatureSet(source.name, tuple(skills)))
            filesets.append(FeatureSet(source.name, tuple(files.values())))
            faults += found
        if faults:
            raise ConfigurationError(*faults)
        return {"skills": skillsets, "resources": filesets}

    def attach(self, server: "ServerAssembly", section: Any) -> None:
        self._server = server

    @cached_property
    def catalogue(self) -> SkillCatalogue:
        """The skills that are served."""
        one = self._server
        return SkillCatalogue(
            one.resources, one.templates, one.roles.resource_registry, one.binder, one.settings, one.authorization
        )

    def catalogues(self) -> Iterable[SkillCatalogue]:
        return (self.catalogue,)

    def rows(self) -> Iterable[Row]:
        get = SkillMethods(self.catalogue, self._server.inflight)
        read = DirectoryMethods(self.catalogue, self._server.inflight)
        return (
            Row("skills/list", STATELESS_REVISIONS, None, self.catalogue.list),
            Row("skills/get", STATELESS_REVISIONS, None, get.call, get),
            Row("resources/directory/read", STATELESS_REVISIONS, None, read.call, read),
        )

    def capabilities(self, revision: Revision) -> Mapping[str, Any]:
        return super().capabilities(revision) if revision.stateless else {}
