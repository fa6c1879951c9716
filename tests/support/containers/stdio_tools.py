"""A container for server processes, with noisy and slow tools."""

import asyncio
import atexit
import ctypes
import logging
import os
import subprocess
import sys
import time
import warnings

from dependency_injector import containers, providers

from axolotl_core import Context, tool
from tests.support.tools import echo

NOISE = "NOISE"

print(f"{NOISE} at import")
os.write(1, f"{NOISE} of the descriptor at import\n".encode())
atexit.register(print, f"{NOISE} at exit")


@tool
async def swell(size: int) -> str:
    return "x" * size


@tool
async def wait_a_little(seconds: float, context: Context) -> str:
    context.report_progress(1)
    await asyncio.sleep(seconds)
    return "rested"


@tool
async def wait_for_ever(context: Context) -> str:
    context.report_progress(1)
    await asyncio.Event().wait()
    return "never"


@tool
def print_it() -> str:
    print(f"{NOISE} of print")
    print(f"{NOISE} of print, flushed", flush=True)
    sys.stdout.write(f"{NOISE} of sys.stdout\n")
    sys.__stdout__.write(f"{NOISE} of sys.__stdout__\n")  # type: ignore[union-attr]
    sys.stdout.buffer.write(f"{NOISE} of the buffer\n".encode())
    sys.stdout.flush()
    return "silent"


@tool
def write_it() -> str:
    os.write(1, f"{NOISE} of os.write\n".encode())
    with open(1, "w", closefd=False) as stream:
        stream.write(f"{NOISE} of an open descriptor\n")
    return "silent"


@tool
def spawn_it() -> str:
    subprocess.run(["echo", f"{NOISE} of a child"], check=True)
    subprocess.run([sys.executable, "-c", f"print('{NOISE} of a Python child')"], check=True)
    os.system(f"echo {NOISE} of a shell")
    return "silent"


@tool
def call_c() -> str:
    library = ctypes.CDLL(None)
    library.puts(f"{NOISE} of puts".encode())
    library.printf(f"{NOISE} of printf\n".encode())
    library.fflush(None)
    library.write(1, b"NOISE of write\n", 15)
    return "silent"


@tool
def log_it() -> str:
    handler = logging.StreamHandler(sys.stdout)
    logging.getLogger("noisy").addHandler(handler)
    logging.getLogger("noisy").error("%s of a log", NOISE)
    warnings.warn(f"{NOISE} of a warning", stacklevel=1)
    return "silent"


@tool
def read_it() -> str:
    """Try to read the input of the protocol."""
    child = subprocess.run(["cat"], capture_output=True, check=True)
    return repr((sys.stdin.read(), os.read(0, 10), child.stdout))


@tool
def open_again(seconds: float) -> int:
    """Open and read a file again and again, and count the times that something is wrong with it."""
    size, wrong, end = os.path.getsize(__file__), 0, time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            with open(__file__, "rb") as file:
                wrong += len(file.read()) != size
        except OSError:
            wrong += 1
    return wrong


@tool
async def exit_it() -> str:
    sys.exit(3)


@tool
async def interrupt_it() -> str:
    raise KeyboardInterrupt


@tool
def exit_in_thread() -> str:
    raise SystemExit(4)


class Container(containers.DeclarativeContainer):
    tools = providers.List(
        *map(
            providers.Object,
            [
                *(echo, swell, wait_a_little, wait_for_ever, print_it, write_it, spawn_it, call_c, log_it, read_it),
                *(exit_it, interrupt_it, exit_in_thread, open_again),
            ],
        )
    )
