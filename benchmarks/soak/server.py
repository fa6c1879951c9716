"""Tools that write down each execution, so that one that was done twice is found."""

import asyncio
import os

from dependency_injector import containers, providers

from axolotl_core import tool

LEDGER = "SOAK_LEDGER"
"""The variable that names the file for executions; none are written down without it."""


def _write_down(key: str) -> None:
    path = os.environ.get(LEDGER)
    if path is None:
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, f"{key}\n".encode())  # one write: lines of several processes do not mix
    finally:
        os.close(descriptor)


@tool
async def quick(key: str) -> str:
    """Do something at once."""
    _write_down(key)
    return key


@tool
async def slow(key: str) -> str:
    """Do something that takes a moment, of which half is left after it was done."""
    await asyncio.sleep(0.01)
    _write_down(key)
    await asyncio.sleep(0.01)
    return key


@tool(execution="thread")
def threaded(key: str) -> str:
    """Do something in a thread."""
    _write_down(key)
    return key


class Container(containers.DeclarativeContainer):
    """List the tools."""

    tools = providers.List(*map(providers.Object, (quick, slow, threaded)))
