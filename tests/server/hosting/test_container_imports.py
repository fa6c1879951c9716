"""Containers that use libraries which dependency_injector would import at the start."""

import json
import subprocess
import sys

import pytest

from tests.support.commands import ROOT

pytestmark = pytest.mark.slow

CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {
        "name": "report",
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    },
}


def test_their_classes_are_recognized() -> None:
    """Pydantic settings, Starlette requests and YAML work, although the libraries are imported later."""
    done = subprocess.run(
        [sys.executable, "-m", "axolotl_cli", "serve", "tests.support.containers.configured_container:Container"],
        cwd=ROOT,
        input=json.dumps(CALL) + "\n",
        capture_output=True,
        text=True,
        check=True,
    )
    report = json.loads(done.stdout)["result"]["structuredContent"]
    assert report["greeting"] == "hello"
    assert report["refusal"].startswith(
        'Unable to recognize settings instance, expect "pydantic_settings.BaseSettings"'
    )
    assert report["excluded"] == [True, False, False]
    assert (report["plain"], report["custom"]) == ({"answer": 42}, {"custom": {"answer": 42}})
