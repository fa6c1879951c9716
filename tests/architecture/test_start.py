"""What a start loads and builds, counted in real processes."""

import json
import re
import signal
import subprocess
import sys
from typing import Final

import pytest

from tests.architecture.sources import ROOT

pytestmark = pytest.mark.slow

STARTER: Final = "axolotl_examples.starter:Container"
WITHOUT_OPTIONAL: Final = (
    "import runpy, sys; sys.modules.update(fastapi=None, starlette=None, yaml=None); "
    "runpy.run_module({!r}, run_name='__main__', alter_sys=True)"
)
"""Runs a module in a process without the libraries that dependency_injector imports where they are installed."""
SERVE: Final = [sys.executable, "-X", "importtime", "-c", WITHOUT_OPTIONAL.format("axolotl_cli"), "serve", STARTER]
IMPORTED: Final = re.compile(r"\| +([a-z_0-9A-Z.]+)$", re.MULTILINE)
RARE: Final = {
    "asyncpg", "httpx2", "jwt", "opentelemetry", "pgqueuer", "prometheus_client", "redis",
    "rich", "sqlite3", "yaml",
}  # fmt: skip


def modules_of(imports: str) -> tuple[set[str], set[str]]:
    """Split what a process imported into our own modules and the libraries behind them."""
    names = set(IMPORTED.findall(imports))
    own = {name for name in names if name.startswith("axolotl_") and not name.startswith("axolotl_examples")}
    return own, {name.partition(".")[0] for name in names - own}


def test_a_start_over_stdio_loads_little() -> None:
    """A server on standard input loads at most 150 of our modules, and no library that few servers need."""
    done = subprocess.run(
        [*SERVE, "--transport", "stdio"], cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
    )
    own, libraries = modules_of(done.stderr)
    assert "axolotl_server.handler" in own
    assert len(own) <= 150
    assert libraries.isdisjoint(RARE | {"uvicorn", "httptools"}), libraries & RARE


def test_a_start_builds_little() -> None:
    """No dataclasses, and one validator for all settings."""
    command = [sys.executable, "-c", WITHOUT_OPTIONAL.format("tests.support.start_objects"), "serve", STARTER]
    done = subprocess.run(
        command,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    built = json.loads(done.stderr.splitlines()[-1])
    assert built["dataclasses"] == []
    assert built["validated"] == ["ServerSettings"]


def test_a_start_over_http_loads_little() -> None:
    """A server over HTTP loads at most 175 of our modules, and no library that few servers need."""
    with subprocess.Popen([*SERVE, "--transport", "http", "--port", "0"], cwd=ROOT, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        lines: list[bytes] = []
        for line in process.stderr:
            lines.append(line)
            if b"http://127.0.0.1:" in line:
                process.send_signal(signal.SIGINT)
    own, libraries = modules_of(b"".join(lines).decode())
    assert "uvicorn" in libraries
    assert len(own) <= 175
    assert libraries.isdisjoint(RARE), libraries & RARE
