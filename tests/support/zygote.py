"""A process that runs `axolotl` in forks of itself: `python -m tests.support.zygote DESCRIPTOR`.

The descriptor is a socket to `tests.support.commands`. Starting an interpreter and importing the command line takes
longer than most commands, and the tests run hundreds of them.
"""

import gc
import importlib
import json
import os
import signal
import socket
import sys
from contextlib import suppress
from types import ModuleType
from typing import Any, NoReturn

from axolotl_cli.__main__ import main
from tests.support.commands import CONSTANTS
from tests.support.stall_log import hide_stalls

_PRELOADED = (
    "axolotl_cli.app",
    "axolotl_cli.checking.trial_start",
    "axolotl_cli.runtime",
    "axolotl_cli.serving.http",
    "axolotl_cli.serving.stdio",
    "axolotl_cli.views.offer",
    "axolotl_server.extensions.console.console",
    "docstring_parser",
    "jsonschema_rs",
    "pytest",
    "tests.transcripts.tools",
    "uvicorn.protocols.http.httptools_impl",
    "uvloop",
)


def _serve(control: socket.socket) -> Any:
    """Fork for each command; returns in the fork, which becomes the command."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the processes that wait for commands are not waited for
    while True:
        size, descriptors, _, _ = socket.recv_fds(control, 4, 4)
        if not size:
            os._exit(0)
        order = json.loads(_receive(control, int.from_bytes(size)))
        if os.fork() == 0:
            control.close()
            return _become(order, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def _receive(control: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += control.recv(size - len(data))
    return data


def _become(order: Any, descriptors: list[int]) -> Any:
    *standard, report = descriptors
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    command = os.fork()
    if command:
        _report(command, standard, report)
    os.close(report)
    for number, descriptor in enumerate(standard):
        os.dup2(descriptor, number)
        os.close(descriptor)
    return order


def _report(command: int, standard: list[int], report: int) -> NoReturn:
    """Write the process id of the command, wait for its end, and write its exit code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError):  # the tests have ended first
        for descriptor in standard:
            os.close(descriptor)
        os.write(report, b"%d\n" % command)
        _, status = os.waitpid(command, 0)
        os.write(report, b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def _run(order: Any) -> None:
    os.chdir(order["directory"])
    os.environ.clear()
    os.environ.update(order["environment"])
    paths = order["environment"].get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:1] = [order["directory"], *filter(None, paths)]
    sys.argv = ["axolotl", *order["words"]]
    for name, value in json.loads(os.environ.pop(CONSTANTS, "{}")).items():
        module, _, constant = name.rpartition(".")
        setattr(importlib.import_module(module), constant, value)
    sys.modules["__main__"] = ModuleType("__main__")  # like a script: tool processes must not import this module
    main()


if __name__ == "__main__":
    for _name in _PRELOADED:
        importlib.import_module(_name)
    hide_stalls()
    gc.freeze()  # garbage collection would copy these pages into every fork
    _run(_serve(socket.socket(fileno=int(sys.argv[1]))))
