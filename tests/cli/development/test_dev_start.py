"""Starts of `axolotl dev` that fail."""

import socket
from pathlib import Path

import pytest

from tests.support.processes import Processes

TARGET = "tests.support.containers.command_containers:Container"


@pytest.mark.slow
def test_a_port_in_use(processes: Processes, tmp_path: Path) -> None:
    """`dev` does not wait for a change that cannot help, and shows no traceback."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, log = processes.run("dev", TARGET, "--port", str(port), directory=tmp_path)
    assert code == 2
    assert log == f"Error: Port {port} on 127.0.0.1 is in use: choose another with --port, or 0 for a free one\n"
