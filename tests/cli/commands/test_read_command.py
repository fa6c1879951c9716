"""`axolotl read`."""

import json
import subprocess
import sys

import pytest

from tests.cli.conftest import Answer, CommandLine
from tests.support.commands import ROOT
from tests.support.containers.full_container import PICTURE

SAMPLE = "tests.support.containers.full_container:Container"


def read(cli: CommandLine, *words: str) -> Answer:
    return cli("read", SAMPLE, *words)


def test_text(cli: CommandLine) -> None:
    """Text is printed unchanged."""
    answer = read(cli, "ui://menu")
    assert (answer.code, answer.stdout, answer.stderr) == (0, "<p>Soup</p>", "")


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        pytest.param("pictures://soup", PICTURE, id="fixed"),
        pytest.param("dishes://soup?lang=de", b"soup in de\n" + PICTURE, id="template"),
    ],
)
def test_bytes(uri: str, expected: bytes) -> None:
    """Bytes are printed unchanged; text before them ends with a line break."""
    command = [sys.executable, "-m", "axolotl_cli", "read", SAMPLE, uri]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True, cwd=ROOT)
    assert done.stdout == expected


def test_whole_result(cli: CommandLine) -> None:
    """With `--json`, the complete result is printed, including its cache hints."""
    result = json.loads(read(cli, "ui://menu", "--json").stdout)
    assert result["contents"] == [{"uri": "ui://menu", "text": "<p>Soup</p>", "mimeType": "text/html;profile=mcp-app"}]
    assert result["ttlMs"] == 0


@pytest.mark.parametrize("uri", ["dishes://stone", "nowhere://at-all"])
def test_missing(cli: CommandLine, uri: str) -> None:
    """An unknown resource gives exit code 3."""
    answer = read(cli, uri)
    assert (answer.code, answer.stdout, answer.stderr) == (3, "", f"Error: Resource not found: {uri} (-32602)\n")


def test_missing_as_json(cli: CommandLine) -> None:
    """A refusal is printed as a JSON-RPC error."""
    answer = read(cli, "nowhere://at-all", "--json")
    assert answer.code == 3
    assert json.loads(answer.stdout)["error"]["data"] == {"uri": "nowhere://at-all"}


def test_no_resources(cli: CommandLine) -> None:
    """A server without resources refuses the request, and the command says why."""
    answer = cli("read", "tests.support.containers.command_containers:Polite", "any://thing")
    assert (answer.code, answer.stderr.splitlines()) == (
        3,
        [
            "Error: Method not found: resources/read (-32601)",
            "The server has no resources. axolotl list shows what it has",
        ],
    )
