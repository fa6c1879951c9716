"""Skills as an extension of the revisions without a handshake."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from axolotl_core.errors import ConfigurationError
from axolotl_core.protocol.versions import STATELESS_REVISIONS, Revision
from axolotl_core.resources.skills import SKILLS_EXTENSION
from axolotl_server.extension import Extension, FeatureSet
from axolotl_server.extensions.skills.published_skill import read_skills
from axolotl_server.extensions.skills.skill_methods import DirectoryMethods, SkillCatalogue, SkillMethods
from axolotl_server.protocol.eras.era import Row

if TYPE_CHECKING:
    from axolotl_server.hosting.assembly import ServerAssembly


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
