"""Statements that many tasks need: those that wait at the same time share a round trip and a commit."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from axolotl_server.extensions.tasks.engines.task_statements import Execute, Row

_MAX_TOGETHER: Final = 200

ExecuteAll: TypeAlias = Callable[[Sequence[Execute]], Awaitable[Sequence[Row]]]
"""Executes one statement with the arguments of each step, all or none, and returns the rows in the same order."""


class _Waiting(NamedTuple):
    step: Execute
    rows: "asyncio.Future[Sequence[Row]]"


class SharedStatements:
    """Executes each statement at once if it is idle; what arrives in the meantime is executed together after it."""

    def __init__(self, execute_all: ExecuteAll) -> None:
        self._execute_all = execute_all
        self._waiting: dict[str, list[_Waiting]] = {}
        """By the text of the statement; it is absent while nobody executes it."""
        self._working: set[asyncio.Task[None]] = set()

    async def execute(self, step: Execute) -> Sequence[Row]:
        """Execute a statement about one task, and return its row if there is one."""
        one = _Waiting(step, asyncio.get_running_loop().create_future())
        waiting = self._waiting.get(step.sql)
        if waiting is None:
            self._waiting[step.sql] = [one]
            working = asyncio.ensure_future(self._work(step.sql))  # whoever waits may be cancelled, the others not
            self._working.add(working)
            working.add_done_callback(self._working.discard)
        else:
            waiting.append(one)
        return await one.rows

    async def _work(self, sql: str) -> None:
        while waiting := [one for one in self._waiting[sql] if not one.rows.done()]:
            chosen: dict[str | None, _Waiting] = {}
            later: list[_Waiting] = []
            for one in waiting:  # a row is assigned by its task, so no task occurs twice
                if one.step.task_id in chosen or len(chosen) == _MAX_TOGETHER:
                    later.append(one)
                else:
                    chosen[one.step.task_id] = one
            self._waiting[sql] = later
            try:
                rows = await self._execute_all([one.step for one in chosen.values()])
            except Exception as error:
                for one in chosen.values():
                    if not one.rows.done():
                        one.rows.set_exception(error)
            else:
                found = {row["id"]: row for row in rows}  # type: ignore[call-overload]  # rows know their columns
                for task_id, one in chosen.items():
                    if not one.rows.done():
                        one.rows.set_result((found[task_id],) if task_id in found else ())
        del self._waiting[sql]
