"""Tools that record each execution, so that lost and repeated ones can be detected."""

import asyncio
import os

from dependency_injector import containers, providers

from axolotl_core import tool
from axolotl_core.policies.tool_rules import Idempotency

LEDGER = "CHAOS_LEDGER"
"""The environment variable with the file for executions."""


def _record(key: str) -> None:
    descriptor = os.open(os.environ[LEDGER], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, f"{key}\n".encode())  # a single write, so that lines of several processes do not mix
    finally:
        os.close(descriptor)


@tool
async def quick(key: str) -> str:
    """Reply immediately."""
    _record(key)
    return key


@tool
async def slow(key: str) -> str:
    """Take a moment, half of it after the execution was recorded."""
    await asyncio.sleep(0.01)  # sleeps: a call that takes a moment is what this tool is for
    _record(key)
    await asyncio.sleep(0.01)  # sleeps: a call that takes a moment is what this tool is for
    return key


@tool(execution="thread")
def threaded(key: str) -> str:
    """Run in a thread."""
    _record(key)
    return key


@tool(idempotency=Idempotency(key="key", window_seconds=600))
async def once(key: str) -> str:
    """Run once for each key, however often it is called."""
    _record(key)
    return key


class Container(containers.DeclarativeContainer):
    tools = providers.List(*map(providers.Object, (quick, slow, threaded, once)))
