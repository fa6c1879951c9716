"""The objects of the role `skills`, read and prepared for clients."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from axolotl_core.errors import ConfigurationError
from axolotl_core.resources.skills import ISkill, SkillFolder
from axolotl_server.skills.folder_reading import read_skill_folder
from axolotl_server.skills.published_skill import PublishedSkill, publish_skills


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
        return [item]
    hint = "use an instance" if isinstance(item, type) else 'use skill_folder("pkg.skills"), a Path or an ISkill'
    raise ConfigurationError(f"The role skills contains {item!r}, which is not a skill: {hint}")
