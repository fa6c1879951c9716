"""Messages that are made to cost a server as much as possible, and what each of them costs."""

import asyncio
import ctypes
import gc
import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from axolotl_core import tool
from axolotl_core.tools.schema_tool import SchemaTool
from axolotl_server import ServerHost
from tests.support.peers.memory_transport import MemoryTransport
from tests.support.peers.wire import INITIALIZE, META, call, message
from tests.support.tools import container_of

SIZE = 4 * 1024 * 1024 - 1024
"""The size of each message, just below the limit."""
VALUES = 99_000
"""Just below the limit for the values of a message."""


class Order(BaseModel):
    amount: int


class Orders(BaseModel):
    orders: list[Order] = []


@tool
async def total(numbers: list[int]) -> int:
    """Add numbers."""
    return sum(numbers)


@tool
async def choose(options: list[int | bool | float | Order | Orders | None]) -> int:
    """Count options."""
    return len(options)


@tool
async def store(orders: Orders) -> int:
    """Count orders."""
    return len(orders.orders)


@tool
async def echo(text: str) -> str:
    """Return a text."""
    return text[:10]


schema = SchemaTool("schema", {"properties": {"n": {"type": "array", "items": {"type": "integer"}}}}, len)


def with_arguments(name: str, arguments: str) -> bytes:
    """Make a stateless call with arguments that are written as they are."""
    return call(name, {"a": "@"}).replace(b'{"a": "@"}', arguments.encode())


def repeated(name: str, argument: str, item: str, count: int) -> bytes:
    """Make a call with a list of equal items."""
    return with_arguments(name, f'{{"{argument}":[{",".join([item] * count)}]}}')


def members(count: int, name: str = '"a{}":0') -> str:
    """Write an object with many members."""
    return "{" + ",".join(name.format(number) for number in range(count)) + "}"


MESSAGES: Mapping[str, Callable[[], bytes]] = {
    "wrong items": lambda: repeated("total", "numbers", '""', SIZE // 3),
    "allowed wrong items": lambda: repeated("total", "numbers", '""', VALUES),
    "wrong items of a union": lambda: repeated("choose", "options", '""', VALUES),
    "wrong items for a schema": lambda: repeated("schema", "n", '""', VALUES),
    "wrong items of models": lambda: with_arguments(
        "store", f'{{"orders":{{"orders":[{",".join(["{}"] * (VALUES // 2))}]}}}}'
    ),
    "valid items": lambda: repeated("total", "numbers", "1", SIZE // 2),
    "allowed valid items": lambda: repeated("total", "numbers", "1", VALUES),
    "arrays": lambda: repeated("echo", "text", "[]", SIZE // 3),
    "allowed arrays": lambda: repeated("echo", "text", "[]", VALUES // 2),
    "depth": lambda: with_arguments("echo", '{"text":' + "[" * (SIZE // 2) + "]" * (SIZE // 2) + "}"),
    "unknown arguments": lambda: with_arguments("echo", members(SIZE // 14)),
    "allowed unknown arguments": lambda: with_arguments("echo", members(VALUES // 2)),
    "unknown members of a model": lambda: with_arguments("store", '{"orders":' + members(VALUES // 2) + "}"),
    "duplicate members": lambda: with_arguments("echo", members(SIZE // 6, '"a":0')),
    "allowed duplicate members": lambda: with_arguments("echo", members(VALUES // 2, '"a":0')),
    "escapes": lambda: with_arguments("echo", '{"text":"' + '\\"' * (SIZE // 2) + '"}'),
    "text": lambda: with_arguments("echo", '{"text":"' + "x" * SIZE + '"}'),
    "half of a surrogate pair": lambda: with_arguments("echo", '{"text":["\\ud800"' + ',""' * (SIZE // 3) + "]}"),
    "batch": lambda: b"[" + b",".join([b"1"] * (SIZE // 2)) + b"]",
    "allowed batch values": lambda: b"[" + b",".join([b"1"] * VALUES) + b"]",
    "capabilities": lambda: message(
        "tools/list", {"_meta": {**META, "io.modelcontextprotocol/clientCapabilities": {"a": "@"}}}
    ).replace(b'"@"', b"[" + b",".join([b"[]"] * (SIZE // 3)) + b"]"),
    "handshake": lambda: message("initialize", {**INITIALIZE, "capabilities": {"experimental": "@"}}).replace(
        b'"@"', b"[" + b",".join([b"[]"] * (SIZE // 3)) + b"]"
    ),
    "allowed values in a handshake": lambda: message("initialize", {**INITIALIZE, "capabilities": {"a": "@"}}).replace(
        b'"@"', b"[" + b",".join([b"[]"] * (VALUES // 2)) + b"]"
    ),
}


def memory(field: str) -> int:
    """Read a figure of this process in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1]) * 1024


def forget_peak() -> None:
    """Let the highest memory use be the present one."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")


async def cost_of(make: Callable[[], bytes]) -> dict[str, Any]:
    """Send a message to a server that has handled others, and measure."""
    async with ServerHost(container_of(total, choose, store, echo, schema)) as host:
        data = make()
        transport = MemoryTransport(host.handler)
        batches = {**INITIALIZE, "protocolVersion": "2025-03-26"}
        first = message("initialize", batches) if data.startswith(b"[") else call("echo", {"text": "x"})
        transport.send(first)
        await transport.receive()
        forget_peak()
        idle, started = memory("VmRSS"), time.process_time()
        transport.send(data)
        reply = await transport.receive()
        return {
            "seconds": time.process_time() - started,
            "bytes": memory("VmHWM") - idle,
            "reply_bytes": len(reply),
            "reply": json.loads(reply),
        }


def main() -> None:
    """Print the cost of each message. Each one is sent in a process of its own, so that memory is not used again."""
    for name, make in MESSAGES.items():
        child = os.fork()
        if child == 0:
            print(json.dumps({"name": name, **asyncio.run(cost_of(make))}), flush=True)
            os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
