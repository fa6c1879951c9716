"""Tools that record each execution, so that repeated ones can be detected."""

import asyncio
import os

from dependency_injector import containers, providers

from axolotl_core import tool

LEDGER = "SOAK_LEDGER"
"""The environment variable with the file for executions; without it, nothing is recorded."""


def _record(key: str) -> None:
    path = os.environ.get(LEDGER)
    if path is None:
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
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
    await asyncio.sleep(0.01)
    _record(key)
    await asyncio.sleep(0.01)
    return key


@tool(execution="thread")
def threaded(key: str) -> str:
    """Run in a thread."""
    _record(key)
    return key


class Container(containers.DeclarativeContainer):
    tools = providers.List(*map(providers.Object, (quick, slow, threaded)))
