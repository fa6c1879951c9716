"""Skills: one with files, one in it, and one that is generated."""

from collections.abc import Mapping
from typing import Any

from dependency_injector import containers, providers

from axolotl_core import CacheHint
from axolotl_core.resources.skills import ISkill

LETTER = b"---\nname: letters\ndescription: Write letters.\nmetadata: {pages: 2}\n---\nSee templates.\n"


class Letters(ISkill):
    """A skill with a directory, a text and a file that is not text."""

    uri = "skill://office/letters/SKILL.md"
    frontmatter: Mapping[str, Any] = {"name": "letters", "description": "Write letters.", "metadata": {"pages": 2}}
    cache = CacheHint(60, "public")

    async def files(self) -> Mapping[str, bytes]:
        return {"SKILL.md": LETTER, "templates/thank you.md": b"Thanks\n", "templates/logo.png": b"\x89PNG\xff"}


class Report(ISkill):
    """A skill whose files are made when they are read."""

    uri = "skill://daily/SKILL.md"
    frontmatter: Mapping[str, Any] = {"name": "daily", "description": "Report."}
    dynamic = True

    async def files(self) -> Mapping[str, bytes]:
        page = b"---\nname: daily\ndescription: Report.\n---\n"
        return {"SKILL.md": page, "data/today.json": b"[1]", "notes.md": b"Notes"}


class Container(containers.DeclarativeContainer):
    """A server that has only skills."""

    settings: providers.Provider[Any] = providers.Object({"server": {"name": "transcripts", "version": "1"}})
    skills = providers.List(providers.Singleton(Letters), providers.Singleton(Report))


class SmallPages(Container):
    """The same server with small pages."""


class Guarded(Container):
    """A server whose callers may read everything but one file."""

    settings = providers.Object(
        {
            "server": {"name": "transcripts", "version": "1"},
            "authorization": {
                "default": "allow",
                "rules": [{"name": "no logo", "effect": "deny", "what": {"names": ["*/logo.png"]}}],
            },
        }
    )
