"""`axolotl dev` in real processes: hot reload while clients make calls."""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from textwrap import dedent
from typing import Any

import httpx2
import pytest

from axolotl_cli.development.reloader import is_relevant, project_directories
from axolotl_cli.development.report import explain, format_call
from axolotl_core.errors import ConfigurationError
from axolotl_core.protocol.messages import CLIENT_CAPABILITIES_KEY, CLIENT_INFO_KEY, PROTOCOL_VERSION_KEY
from axolotl_core.protocol.versions import LATEST_HANDSHAKE_REVISION, LATEST_STATELESS_REVISION
from axolotl_server.extensions.console.journal import CallRecord
from axolotl_server.hosting.container_loading import load_container
from axolotl_server.http.server.connections import _QUIET_SECONDS
from tests.cli.conftest import CommandLine
from tests.support.commands import PATIENCE_SECONDS
from tests.support.processes import READY, Processes, Server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="needs Unix sockets"),
]

HEAD = """
    import sys
    from pathlib import Path
    from typing import Annotated
    from dependency_injector import containers, providers
    from pydantic import BaseModel
    from axolotl_core import Context, tool
    from axolotl_core.policies.audit import Sensitive

    VERSION = "{version}"

    class Name(BaseModel):
        name: str

    @tool
    async def version(password: Annotated[str, Sensitive] = "", note: str = "") -> str:
        return VERSION

    @tool(timeout_seconds=25)
    def read(path: str) -> str:
        sys.stderr.write("reading\\n")
        sys.stderr.flush()
        return VERSION + Path(path).read_text(encoding="utf-8")

    @tool
    async def ask(context: Context) -> str:
        return VERSION + (await context.ask(Name, "Who?")).name
"""
TAIL = """
    class Container(containers.DeclarativeContainer):
        tools = providers.List({tools})
"""
TOOLS = "providers.Object(version), providers.Object(read), providers.Object(ask)"


def code(version: str, *, more: str = "") -> str:
    """Return the source of a server that reports its version."""
    tools = f"{TOOLS}, providers.Object({more})" if more else TOOLS
    extra = f"\n@tool\nasync def {more}() -> str:\n    return VERSION\n\n" if more else ""
    return dedent(HEAD).format(version=version) + extra + dedent(TAIL).format(tools=tools)


class Project:
    """A directory with a server, and `axolotl dev` running there."""

    def __init__(self, processes: Processes, directory: Path, *words: str, text: str = code("one")) -> None:
        self.file = directory / "served.py"
        self.file.write_text(text, encoding="utf-8")
        self.server: Server = processes.start("dev", "served.py", "--port", "0", *words, directory=directory)
        self.url = self.token = ""

    def begin(self) -> "Project":
        """Wait until it serves."""
        lines = self.server.read_until(READY).splitlines()
        self.url = next(line for line in lines if " serves " in line).rpartition(" ")[2]
        self.token = next(line for line in lines if line.startswith("Console: ")).rpartition("/console#token=")[2]
        return self

    def save(self, text: str) -> str:
        """Change the code, and wait until it is reloaded or refused."""
        self.file.write_text(text, encoding="utf-8")
        lines = ""
        while "reloaded" not in lines and "Fix the error" not in lines:
            lines += self.server.read_until("\n")
        return lines

    def call(self, tool: str, client: httpx2.Client | None = None, **arguments: Any) -> str:
        """Call a tool and return its text."""
        answer = self.request("tools/call", {"name": tool, "arguments": arguments}, client)
        return str(answer["result"]["content"][0]["text"])

    def request(self, method: str, params: dict[str, Any], client: httpx2.Client | None = None) -> Any:
        """Send a request of the stateless revision."""
        revision = LATEST_STATELESS_REVISION.name
        meta = {
            PROTOCOL_VERSION_KEY: revision,
            CLIENT_CAPABILITIES_KEY: {"elicitation": {"form": {}}},
            CLIENT_INFO_KEY: {"name": "tester", "version": "9"},
        }
        headers = {"MCP-Protocol-Version": revision, "Mcp-Method": method}
        if "name" in params:
            headers["Mcp-Name"] = params["name"]
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
        return (client or httpx2).post(self.url, json=body, headers=headers, timeout=20).json()

    @contextmanager
    def console(self) -> Iterator[Iterator[Any]]:
        """Yield the events that the console's page receives."""
        place = self.url.replace("/mcp", "/console/events")
        with httpx2.stream("GET", place, headers={"X-Axolotl-Console": self.token}, timeout=20) as response:
            lines = response.iter_lines()
            yield (json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: "))


def test_hot_reload(processes: Processes, tmp_path: Path, pipe: Path) -> None:
    """New code answers as soon as it serves, a running call ends in the old code, and each call is printed."""
    project = Project(processes, tmp_path).begin()
    assert project.call("version", note="hello") == "one"
    line = project.server.read_until("tester 9")
    assert (" ok " in line, " version " in line, " ms " in line, "hello" in line) == (True, True, True, False)
    with ThreadPoolExecutor(1) as pool, httpx2.Client() as kept:
        assert project.call("version", kept) == "one"
        running = pool.submit(project.call, "read", path=str(pipe))
        project.server.read_until("reading")
        output = project.save(code("two", more="extra"))
        assert "3 tools" not in output
        assert "4 tools" in output
        assert project.call("version") == "two"
        assert project.call("version", kept) == "two"
        assert project.call("extra") == "two"
        pipe.write_text("!", encoding="utf-8")
        assert running.result() == "one!"
    project.server.signal(signal.SIGINT)
    assert project.server.end()[0] == 0


class Caller:
    """A client that keeps calling in a thread, over a connection that it keeps."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._done = threading.Event()
        self._waiting: SimpleQueue[str | Exception] = SimpleQueue()
        self.answers: list[str] = []

    def call_until_done(self) -> None:
        """Call the tool `version` again and again."""
        transport = httpx2.HTTPTransport(retries=1)
        try:
            with httpx2.Client(transport=transport) as client:
                before = time.monotonic()
                while not self._done.is_set():
                    began = time.monotonic()
                    self._waiting.put(self._call(client, before))
                    before = began
        except Exception as error:
            self._waiting.put(error)

    def _call(self, client: httpx2.Client, before: float) -> str:
        try:
            return self._project.call("version", client)
        except httpx2.TransportError:
            # A process that is replaced closes connections that are quiet for a while: this machine may be that slow.
            if time.monotonic() - before < _QUIET_SECONDS:
                raise
            return self._project.call("version")

    def wait_for(self, version: str) -> None:
        """Wait until this version has answered; raise the error of a call that failed."""
        while not self.answers or self.answers[-1] != version:
            answer = self._waiting.get(timeout=PATIENCE_SECONDS)
            if isinstance(answer, Exception):
                raise answer
            self.answers.append(answer)

    def stop(self) -> None:
        """End after the running call."""
        self._done.set()


def test_no_request_is_lost(processes: Processes, tmp_path: Path) -> None:
    """A client that keeps calling during reloads gets every answer, never from older code again."""
    project = Project(processes, tmp_path).begin()
    caller = Caller(project)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(caller.call_until_done)
        try:
            caller.wait_for("one")
            for version in ("two", "tri"):
                project.save(code(version))
                caller.wait_for(version)
        finally:
            caller.stop()
    versions = ["one", "two", "tri"]
    assert caller.answers == sorted(caller.answers, key=versions.index)
    assert sorted(set(caller.answers), key=versions.index) == versions


def test_audit_logs_are_used_again(processes: Processes, tmp_path: Path, pipe: Path) -> None:
    """Reloads use two audit logs, also if a call in older code does not end: that call is stopped."""
    (tmp_path / "axolotl.toml").write_text('[audit]\njsonl_path = "audit.jsonl"\n', encoding="utf-8")
    project = Project(processes, tmp_path).begin()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(project.request, "tools/call", {"name": "read", "arguments": {"path": str(pipe)}})
        project.server.read_until("reading")
        for version in ("two", "tri", "four"):
            project.save(code(version))
            assert project.call("version") == version
        assert running.exception() is not None or "error" in running.result() or running.result()["result"]["isError"]
    project.server.signal(signal.SIGINT)
    assert project.server.end()[0] == 0
    assert {path.name for path in tmp_path.glob("audit*.jsonl")} == {"audit-dev-1.jsonl", "audit-dev-2.jsonl"}


def test_broken_code(processes: Processes, tmp_path: Path) -> None:
    """Code that does not start is reported in the terminal and the console; the old code keeps serving."""
    project = Project(processes, tmp_path).begin()
    with project.console() as heard:
        assert next(heard)["problem"] is None
        output = project.save(code("two") + "\ndef broken(:\n    pass\n")
        assert "SyntaxError" in output
        assert 'served.py", line' in output
        assert "keeps serving" in output
        problem = next(one for one in heard if one["type"] == "problem")
        assert "SyntaxError" in problem["problem"]
    assert project.call("version") == "one"
    assert "reloaded" in project.save(code("tri"))
    assert project.call("version") == "tri"
    with project.console() as heard:
        assert next(heard)["problem"] is None


def test_the_console_names_the_target(processes: Processes, tmp_path: Path) -> None:
    """The console learns from which file the container comes, for the commands and tests that it copies."""
    project = Project(processes, tmp_path).begin()
    place = project.url.replace("/mcp", "/console/state")
    target = httpx2.get(place, headers={"X-Axolotl-Console": project.token}, timeout=20).json()["target"]
    assert target["name"].endswith("served.py")
    assert (target["module"], target["attribute"], target["is_called"]) == ("served", "Container", True)


def test_broken_from_the_start(processes: Processes, tmp_path: Path) -> None:
    """If no code has started yet, the server waits for the next change."""
    project = Project(processes, tmp_path, text="import nothing_of_that_name\n")
    assert "nothing_of_that_name" in project.server.read_until("Fix the error and save")
    project.file.write_text(code("one"), encoding="utf-8")
    assert project.begin().call("version") == "one"


def test_sessions_and_questions_go_on(processes: Processes, tmp_path: Path) -> None:
    """A client keeps its session and is notified of changed lists; new code accepts the answer to an old question."""
    project = Project(processes, tmp_path).begin()
    asked = project.request("tools/call", {"name": "ask", "arguments": {}})["result"]
    assert asked["resultType"] == "input_required"
    with httpx2.Client(timeout=20, headers={"Accept": "application/json, text/event-stream"}) as client:
        begin = {
            "protocolVersion": LATEST_HANDSHAKE_REVISION.name,
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }
        reply = client.post(project.url, json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": begin})
        client.headers["Mcp-Session-Id"] = reply.headers["mcp-session-id"]
        client.headers["MCP-Protocol-Version"] = LATEST_HANDSHAKE_REVISION.name
        client.post(project.url, json={"jsonrpc": "2.0", "method": "notifications/initialized"})
        with client.stream("GET", project.url, headers={"Accept": "text/event-stream"}) as news:
            heard = news.iter_lines()
            project.save(code("two", more="extra"))
            assert any("notifications/tools/list_changed" in line for line in heard)
        listed = client.post(project.url, json={"jsonrpc": "2.0", "id": 2, "method": "tools/list"}).json()
    assert "extra" in [tool["name"] for tool in listed["result"]["tools"]]
    answer = {key: {"action": "accept", "content": {"name": "Ann"}} for key in asked["inputRequests"]}
    again = {"name": "ask", "arguments": {}, "inputResponses": answer, "requestState": asked["requestState"]}
    assert project.request("tools/call", again)["result"]["content"][0]["text"] == "twoAnn"


def test_json_lines(processes: Processes, tmp_path: Path) -> None:
    """With a log of JSON lines, each call is one of them; Ctrl-C is not reported as another signal."""
    (tmp_path / "axolotl.toml").write_text('[profile.dev.log]\nformat = "json"\n', encoding="utf-8")
    project = Project(processes, tmp_path, "--show-arguments").begin()
    project.call("version", password="hunter2", note="hello")
    line = project.server.read_until("tester 9").splitlines()[-1]
    found = json.loads(line)
    assert found["message"].startswith("version: ok in ")
    assert "for tester 9" in found["message"]
    assert "hunter2" not in line
    project.server.signal(signal.SIGINT)
    code, _, rest = project.server.end()
    assert code == 0
    assert "SIGTERM" not in rest


def test_show_arguments(processes: Processes, tmp_path: Path) -> None:
    """With the option, the line of a call has its arguments, except sensitive ones."""
    project = Project(processes, tmp_path, "--show-arguments").begin()
    project.call("version", password="hunter2", note="hello")
    line = project.server.read_until("tester 9")
    assert '"note":"hello"' in line
    assert "hunter2" not in line


def test_tracebacks_show_user_code(processes: Processes, tmp_path: Path) -> None:
    """A failure in a tool is shown with the lines of the project only."""
    project = Project(processes, tmp_path).begin()
    project.call("read", path=str(tmp_path / "nowhere"))
    shown = project.server.read_until("log level debug shows all")
    places = [line.strip() for line in shown.splitlines() if line.strip().startswith("File ")]
    assert places
    assert all(str(project.file) in place for place in places)


def test_ends_with_its_supervisor(processes: Processes, tmp_path: Path) -> None:
    """If the supervisor is killed, its worker ends too."""
    project = Project(processes, tmp_path).begin()
    with project.console() as heard:
        next(heard)
        project.server.signal(signal.SIGKILL)
        assert list(heard) == []
    assert project.server.end()[0] == -signal.SIGKILL


def test_server_that_exits(processes: Processes, tmp_path: Path) -> None:
    """A process that dies is reported, and the next change starts another."""
    dying = code("one").replace("return VERSION\n\n@tool(timeout", "import os; os._exit(7)\n\n@tool(timeout")
    project = Project(processes, tmp_path, text=dying).begin()
    with pytest.raises(httpx2.HTTPError):
        project.call("version")
    assert "with code 7" in project.server.read_until("The server exited")
    project.save(code("two"))
    assert project.call("version") == "two"


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "example.com"])
def test_other_hosts_are_refused(cli: CommandLine, host: str) -> None:
    """Only loopback addresses are accepted."""
    answer = cli("dev", "axolotl_examples.starter", "--host", host)
    assert answer.code == 2
    assert "listens on loopback addresses only" in answer.stderr


def test_missing_extra(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without watchfiles, the error says what to install."""
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    answer = cli("dev")
    assert answer.code == 2
    assert "axolotl dev needs the extra dev: pip install 'watchfiles>=1.1'" in answer.stderr


def test_missing_directories(cli: CommandLine) -> None:
    """The error names a directory that does not exist."""
    answer = cli("dev", "axolotl_examples.starter", "--watch", "nowhere")
    assert answer.code == 2
    assert "nowhere" in answer.stderr


@pytest.mark.parametrize(
    ("name", "matters"),
    [
        ("a.py", True),
        ("deep/down/a.py", True),
        ("axolotl.toml", True),
        (".env", True),
        ("a.pyc", False),
        ("notes.md", False),
        ("skills/new/SKILL.md", True),
        ("skills/letters/templates/thanks.txt", True),
        (".venv/lib/a.py", False),
        ("deep/node_modules/a.py", False),
        (".git/hooks/a.py", False),
        (".mypy_cache/a.py", False),
        ("a.py~", False),
    ],
)
def test_what_is_relevant(tmp_path: Path, name: str, matters: bool) -> None:
    """Python, settings and all files of skills are watched; generated and installed files are not."""
    (tmp_path / "skills" / "letters").mkdir(parents=True)
    (tmp_path / "skills" / "letters" / "SKILL.md").touch()
    assert is_relevant(str(tmp_path / name), [tmp_path]) is matters


def test_watched_directory_inside_an_ignored_one(tmp_path: Path) -> None:
    """Only the path below the watched directory decides whether a file is ignored."""
    inside = tmp_path / "build" / "project"
    assert is_relevant(str(inside / "a.py"), [inside])


def test_watched_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The current directory and that of the target are watched; a directory inside another is not watched twice."""
    (tmp_path / "one" / "deep").mkdir(parents=True)
    (tmp_path / "two").mkdir()
    monkeypatch.chdir(tmp_path / "one")
    one, two = tmp_path / "one", tmp_path / "two"
    assert project_directories("pkg.module:Container", []) == (one,)
    assert project_directories("deep/a.py:Container", []) == (one,)
    assert project_directories(f"{two / 'a.py'}", []) == (one, two)
    assert project_directories("a.py", [Path("../two")]) == (two,)


def test_problems_have_file_and_line(tmp_path: Path, pristine: None) -> None:
    """An error in imported code is shown with file and line, without the frames of the import."""
    file = tmp_path / "wrong.py"
    file.write_text("def made():\n    raise ValueError('no')\n\nmade()\n", encoding="utf-8")
    with pytest.raises(ConfigurationError) as output:
        load_container(str(file))
    text = explain(output.value)
    assert "ValueError: no" in text
    assert f'File "{file}", line 4' in text
    assert "importlib" not in text
    assert "loading.py" not in text


def test_lines_cannot_be_forged() -> None:
    """Names of clients and tools stay on one line, and cannot send control sequences to the terminal."""
    record = CallRecord(
        number=1,
        began=0.0,
        method="tools/call",
        revision="r",
        subject="a\nb",
        kind=None,
        name=None,
        client="evil\n\x1b[2J",
        outcome="error",
        seconds=0.001,
    )
    line = format_call(record)
    assert "\n" not in line
    assert "\x1b[2J" not in line
    assert os.linesep not in line


PRODUCTION = """
[log]
format = "json"

[telemetry]
traces = true

[auth]
resource = "https://mcp.example.com/mcp"
issuers = ["https://login.example.com"]

[authorization]
default = "deny"

[[authorization.rules]]
name = "staff"
effect = "allow"
who = { roles = ["staff"] }

[profile.dev.server]
name = "development"
"""


def test_settings_for_production(processes: Processes, tmp_path: Path) -> None:
    """Development uses its profile, needs no token, exports nothing, shows calls, and acts as the chosen principal."""
    (tmp_path / "axolotl.toml").write_text(PRODUCTION, encoding="utf-8")
    project = Project(processes, tmp_path, "--as", '{"subject": "ada", "roles": ["staff"]}')
    banner = project.server.read_until(READY)
    assert banner.startswith("development serves 3 tools at ")
    project.url = banner.splitlines()[0].rpartition(" ")[2]
    assert project.call("version") == "one"
    assert "tester" in project.server.read_until("version")
