"""`--url`: commands that talk to a running server."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from axolotl_core.protocol.versions import REVISIONS
from tests.cli.conftest import CommandLine
from tests.support.clients.foreign_servers import foreign_server
from tests.support.clients.http_process import http_process
from tests.support.commands import ROOT

pytestmark = pytest.mark.slow

REVISION_NAMES = [revision.name for revision in REVISIONS][1:]
TOKEN = "t0ken-of-ada"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The URL of a server with every kind of feature."""
    with http_process("tests.support.clients.full_container:Container") as address:
        yield address


@pytest.fixture(scope="module")
def foreign() -> Iterator[str]:
    """The URL of a server of another framework."""
    with foreign_server("fastmcp") as address:
        yield address


class _Locked(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.server.tokens.append(self.headers.get("Authorization"))  # type: ignore[attr-defined]
        self.send_response(401)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *values: object) -> None:
        pass


_SEQUENCES = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"


class _Malicious(BaseHTTPRequestHandler):
    """Answers every request with texts that a terminal would obey, and with schemas that are cycles or none at all."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        cycle = {"anyOf": [{"$ref": "#/$defs/one"}] * 3 + [{"const": _SEQUENCES}]}
        schema = {"type": "object", "properties": {_SEQUENCES: {"$ref": "#/$defs/one"}}, "$defs": {"one": cycle}}
        texts = {"name": _SEQUENCES, "title": _SEQUENCES, "description": _SEQUENCES}
        result = {
            "resultType": "complete",
            "supportedVersions": [REVISION_NAMES[-1]],
            "capabilities": {"tools": {}, "resources": {}, _SEQUENCES: {}},
            "instructions": _SEQUENCES,
            "_meta": {"io.modelcontextprotocol/serverInfo": {**texts, "version": _SEQUENCES}},
            "tools": [{**texts, "inputSchema": schema}, {"name": "other", "inputSchema": {"type": [5]}}],
            "resources": [{**texts, "uri": _SEQUENCES, "mimeType": _SEQUENCES}],
            "resourceTemplates": [{**texts, "uriTemplate": _SEQUENCES}],
            "content": [{"type": _SEQUENCES}],
            "structuredContent": {_SEQUENCES: _SEQUENCES},
            "contents": [{"uri": _SEQUENCES, "mimeType": _SEQUENCES, "blob": "AAAA"}],
            "ttlMs": 0,
            "cacheScope": "private",
        }
        body = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *values: object) -> None:
        pass


@pytest.fixture
def malicious() -> Iterator[str]:
    """The URL of a server that attacks the terminal."""
    with HTTPServer(("127.0.0.1", 0), _Malicious) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/mcp"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("command", ["list", "inspect", "list --json", "inspect --json"])
def test_control_sequences(cli: CommandLine, malicious: str, command: str) -> None:
    """A terminal gets no control characters from a server, nor those that reverse a line, whatever its lists say."""
    shown = cli(*command.split(), "--url", malicious)
    assert shown.code == 0, shown.stderr
    assert "owned" in shown.stdout
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(shown.stdout + shown.stderr)
    if "--json" in command:
        assert json.loads(shown.stdout)["tools"][0]["name"] == _SEQUENCES


def on_terminal(*words: str) -> str:
    """Run a command whose output is a terminal; return what the terminal gets, without the colors."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    shown = b""
    with subprocess.Popen([sys.executable, "-m", "axolotl_cli", *words], stdout=theirs, stderr=theirs, cwd=ROOT):
        os.close(theirs)
        with suppress(OSError):  # the end, on Linux
            while piece := os.read(ours, 65536):
                shown += piece
    os.close(ours)
    return re.sub(r"\x1b\[[0-9;]*m", "", shown.decode())


@pytest.mark.parametrize(
    "command", ["list", "list --json", "inspect --json", "call other", "call other --json", "read any://thing"]
)
def test_control_sequences_at_a_terminal(malicious: str, command: str) -> None:
    """What is colored for a terminal has no other control characters, in JSON either."""
    shown = on_terminal(*command.split(), "--url", malicious)
    assert "owned" in shown
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(shown)


class _Hanging(_Malicious):
    """Answers the first request, and begins to answer the others."""

    def do_POST(self) -> None:
        if self.headers["Mcp-Method"] == "server/discover":
            super().do_POST()
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(b" ")
        self.rfile.read()  # until the client leaves


@pytest.mark.parametrize("command", ["list", "inspect"])
def test_a_list_without_an_end(cli: CommandLine, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    """A server that does not send the whole list is left after the time limit."""
    monkeypatch.setattr("axolotl_cli.commands.list._LISTING_SECONDS", 2.0)
    with HTTPServer(("127.0.0.1", 0), _Hanging) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/mcp"
        answer = cli(command, "--url", url)
        server.shutdown()
        thread.join()
    assert (answer.code, answer.stderr) == (3, f"Error: {url} gave no answer in time\n")


@pytest.fixture
def locked() -> Iterator[tuple[str, list[str | None]]]:
    """The URL of a server that rejects every token, and the tokens that it got."""
    with HTTPServer(("127.0.0.1", 0), _Locked) as server:
        tokens: list[str | None] = []
        server.tokens = tokens  # type: ignore[attr-defined]
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/mcp", tokens
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("revision", REVISION_NAMES)
def test_every_command_in_every_revision(cli: CommandLine, url: str, revision: str) -> None:
    """`list`, `inspect`, `call`, `prompt` and `read` print what they print for a container."""
    options = ["--url", url, "--revision", revision]
    listed = cli("list", *options)
    assert listed.code == 0
    assert "report         Return structured content." in listed.stdout
    assert listed.stdout.splitlines()[-1] == "30 tools, 3 prompts, 5 resources, 2 templates"
    inspected = cli("inspect", *options)
    assert f"revision      {revision}" in inspected.stdout
    assert "city  string" in inspected.stdout
    called = cli("call", *options, "report", "city=7", "--json")
    assert '{"city":"7"' in json.loads(called.stdout)["content"][0]["text"]
    assert cli("prompt", "--url", url, "--revision", revision, "review", "language=rust").stdout == (
        "Review this rust code.\n"
    )
    assert cli("read", *options, "config://app").stdout == '{"debug":true}'


def test_json(cli: CommandLine, url: str) -> None:
    """`--json` has the keys that are known about a running server."""
    tools = json.loads(cli("list", "--url", url, "--json").stdout)["tools"]
    assert tools[0] == {"name": "book", "title": None, "description": "Ask for a booking."}
    report = json.loads(cli("inspect", "--url", url, "--json").stdout)
    assert report["server"]["name"] == "features"
    assert report["revision"] == REVISION_NAMES[-1]
    assert report["tools"][0]["input_schema"]["type"] == "object"


@pytest.mark.parametrize("revision", REVISION_NAMES[-2:])
def test_exit_codes(cli: CommandLine, url: str, revision: str) -> None:
    """They are the same as for containers; a tool that runs only as a task is followed to its end."""
    options = ["--url", url, "--revision", revision]
    failed = cli("call", *options, "spoil")
    assert (failed.code, failed.stdout, failed.stderr) == (1, "", "spoiled\n")
    refused = cli("call", *options, "reprot")
    assert refused.code == 3
    assert "Tool not found: reprot" in refused.stderr
    assert cli("read", *options, "config://other").code == 3
    unknown = cli("list", "--url", url, "--revision", "2020-01-01")
    assert unknown.code == 2
    assert unknown.stderr.startswith("Error: '2020-01-01' is not a protocol revision: use 2024-11-05")


@pytest.mark.parametrize("revision", REVISION_NAMES[1:])
def test_questions(cli: CommandLine, url: str, revision: str) -> None:
    """Questions get the answers of the command line; without one, the message shows how to answer."""
    options = ["--url", url, "--revision", revision]
    assert cli("call", *options, "insist", "--answer", 'ask-1={"word": "soon"}').stdout == "soon\n"
    unanswered = cli("call", *options, "insist")
    assert unanswered.code == 2
    assert """answer for example with --answer 'ask-1={"word": "hello"}'""" in unanswered.stderr


def test_a_foreign_server(cli: CommandLine, foreign: str) -> None:
    """A server of another framework is listed and called like our own."""
    assert cli("list", "--url", foreign).stdout.splitlines()[-1] == "4 tools, 1 prompt, 1 resource, 1 template"
    assert json.loads(cli("call", "--url", foreign, "add", "a=1", "b=2").stdout) == {"result": 3}
    assert cli("call", "--url", foreign, "crash").code == 1


def test_tokens(cli: CommandLine, locked: tuple[str, list[str | None]], monkeypatch: pytest.MonkeyPatch) -> None:
    """The token comes from the variable, is sent once and never shown; a missing one is explained."""
    url, tokens = locked
    monkeypatch.setenv("ADA_TOKEN", TOKEN)
    for command in ("list", "inspect"):
        rejected = cli(command, "--url", url, "--token-env", "ADA_TOKEN")
        assert rejected.code == 3
        assert f"{url} rejects the token (status 401)\nFind out why" in rejected.stderr
        assert TOKEN not in rejected.stdout + rejected.stderr
    assert tokens == [f"Bearer {TOKEN}"] * 2
    missing = cli("call", "--url", url, "add")
    assert "requires a token (status 401)\nName the variable with the token: --token-env NAME" in missing.stderr
    unset = cli("call", "--url", url, "add", "--token-env", "BOB_TOKEN")
    assert (unset.code, unset.stderr) == (
        2, "Error: The environment variable BOB_TOKEN of --token-env is not set\n",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["list", "http://127.0.0.1:9/mcp"], "use --url http://127.0.0.1:9/mcp with list, call"),
        (["call", "http://127.0.0.1:9/mcp", "add"], "use --url http://127.0.0.1:9/mcp with list, call"),
        (["list", "--url", "127.0.0.1:9"], "'127.0.0.1:9' is not the URL of a server: write https://host/mcp"),
        (["list", "greeter.py", "--url", "http://127.0.0.1:9"], "leave out TARGET"),
        (["call", "--url", "http://127.0.0.1:9", "add", "--as", "ada"], "leave out TARGET"),
        (["call", "--url", "http://127.0.0.1:9"], "Missing argument 'NAME'"),
        (["read", "--url", "http://127.0.0.1:9"], "Missing argument 'URI'"),
        (["list", "--token-env", "ADA_TOKEN"], "add --url URL"),
    ],
)
def test_wrong_command_lines(cli: CommandLine, words: list[str], problem: str) -> None:
    """The message says what to write, and the exit code is 2."""
    answer = cli(*words)
    assert answer.code == 2
    assert problem in " ".join(answer.stderr.replace("│", " ").split())


def test_nobody_answers(cli: CommandLine) -> None:
    """The exit code is 3, as it is for `health`."""
    for words in (["list"], ["call", "add"], ["health"]):
        answer = cli(words[0], "--url", "http://127.0.0.1:9/mcp", *words[1:])
        assert answer.code == 3
        assert "http://127.0.0.1:9/mcp" in answer.stderr
