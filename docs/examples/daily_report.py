from collections.abc import Mapping
from typing import Any

from dependency_injector import containers, providers

from axolotl_core.resources.skills import ISkill

PAGE = """\
---
name: daily
description: Write the daily report.
---

Summarize [the numbers](numbers.json) in three sentences.
"""


class DailyReport(ISkill):
    uri = "skill://reports/daily/SKILL.md"
    frontmatter: Mapping[str, Any] = {"name": "daily", "description": "Write the daily report."}
    dynamic = True

    async def files(self) -> Mapping[str, bytes]:
        return {"SKILL.md": PAGE.encode(), "numbers.json": b'{"orders": 17}'}


class Container(containers.DeclarativeContainer):
    skills = providers.List(providers.Singleton(DailyReport))
