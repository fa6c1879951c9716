"""`axolotl install`: entries for clients, their files, and existing content."""

import asyncio
import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from axolotl_cli.clients.client import ConfigPaths
from axolotl_cli.clients.config_file import ClientFile
from axolotl_cli.options import ClientName, Scope
from axolotl_core.errors import ConfigurationError
from tests.cli.conftest import CommandLine
from tests.support.commands import ROOT
from tests.support.processes import READY, Processes

pytestmark = pytest.mark.slow

GREETER = """
from dependency_injector import containers, providers
from axolotl_core import tool

@tool
async def greet(name: str) -> str:
    return f"Hello, {name}!"

class Container(containers.DeclarativeContainer):
    settings = providers.Object({"server": {"name": "acme greeter"}})
    tools = providers.List(providers.Object(greet))
"""
CANARY = "canary-5fa1c"


@pytest.fixture
def project(cli: CommandLine) -> CommandLine:
    """Give the commands a directory with a container."""
    cli.write("greeter.py", GREETER)
    return cli


def entry_of(cli: CommandLine, *words: str) -> dict[str, Any]:
    """Print a configuration and return its only server."""
    answer = cli("install", *words)
    assert answer.code == 0, answer.stderr
    document = json.loads(answer.stdout)
    (entry,) = document.get("mcpServers", document.get("servers")).values()
    assert isinstance(entry, dict)
    return entry


async def greeting_of(entry: dict[str, Any], directory: Path) -> str:
    """Start an entry as a client does, in another directory, and call the tool."""
    server = StdioServerParameters(command=entry["command"], args=entry["args"], env=entry["env"], cwd=directory)
    async with Client(server, mode="legacy", read_timeout_seconds=20) as client:
        result = await client.call_tool("greet", {"name": "Ada"})
    return str(getattr(result.content[0], "text", None))


async def tools_at(url: str) -> list[str]:
    """Connect to a URL and list the tools."""
    async with Client(url, mode="legacy", read_timeout_seconds=20) as client:
        return [tool.name for tool in (await client.list_tools()).tools]


def test_what_is_written_starts(project: CommandLine, tmp_path: Path) -> None:
    """The official client can start the written entry from any directory."""
    assert project("install", "cursor", "greeter.py", "--write", "--config", "c.json", *path_option()).code == 0
    written = json.loads((tmp_path / "c.json").read_text())["mcpServers"]["acme-greeter"]
    assert asyncio.run(greeting_of(written, Path("/"))) == "Hello, Ada!"


def test_the_project_is_found_again(project: CommandLine, tmp_path: Path) -> None:
    """The settings file, its target and modules of the project are found from any directory."""
    (tmp_path / "greeter.py").rename(tmp_path / "acme_greetings.py")
    project.write("axolotl.toml", "target = 'acme_greetings:Container'\n[server]\nname = 'of-the-file'\n")
    answer = project("install", "json", *path_option())
    assert list(json.loads(answer.stdout)["mcpServers"]) == ["of-the-file"]
    entry = json.loads(answer.stdout)["mcpServers"]["of-the-file"]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert asyncio.run(greeting_of(entry, elsewhere)) == "Hello, Ada!"


def test_working_directory_is_not_imported(project: CommandLine, tmp_path: Path) -> None:
    """Modules in the client's working directory are not imported, even if they have the same names."""
    hostile = tmp_path / "hostile"
    hostile.mkdir()
    for name in ("typer", "asyncio", "greeter", "axolotl_cli"):
        (hostile / f"{name}.py").write_text(f"raise SystemExit('{CANARY}')\n")
    entry = entry_of(project, "json", "greeter.py", *path_option())
    assert asyncio.run(greeting_of(entry, hostile)) == "Hello, Ada!"


def test_a_server_at_its_url(project: CommandLine, processes: Processes, tmp_path: Path) -> None:
    """Over HTTP the entry has the address in the settings, and the official client can connect to it."""
    server = processes.start("serve", "greeter.py", "--transport", "http", "--port", "0", directory=tmp_path)
    banner = server.read_until(READY)
    port = banner.partition("127.0.0.1:")[2].partition("/")[0]
    project.write(".env", f"AXOLOTL_HTTP__PORT={port}\n")
    entry = entry_of(project, "vscode", "greeter.py", "--transport", "http")
    assert entry == {"type": "http", "url": f"http://127.0.0.1:{port}/mcp"}
    assert asyncio.run(tools_at(entry["url"])) == ["greet"]


def path_option() -> tuple[str, str]:
    """Let the server find the tested code; clients pass on hardly any of their environment."""
    return ("--env", f"PYTHONPATH={ROOT}")


@pytest.mark.parametrize(
    ("client", "section", "kind"),
    [
        ("claude-code", "mcpServers", {"type": "stdio"}),
        ("claude-desktop", "mcpServers", {}),
        ("cursor", "mcpServers", {"type": "stdio"}),
        ("vscode", "servers", {"type": "stdio"}),
        ("json", "mcpServers", {}),
    ],
)
def test_stdio_entries(client: str, section: str, kind: dict[str, str], project: CommandLine, tmp_path: Path) -> None:
    """Each client gets an entry in its format: interpreter, directory and target."""
    answer = project("install", client, "greeter.py", "--env", "A=1")
    program = {
        "command": os.path.abspath(sys.executable),
        "args": ["-P", "-m", "axolotl_cli", "--directory", str(tmp_path), "serve", "greeter.py"],
        "env": {"A": "1"},
    }
    assert json.loads(answer.stdout) == {section: {"acme-greeter": {**kind, **program}}}


@pytest.mark.parametrize(
    ("client", "entry"),
    [
        ("claude-code", {"type": "http", "url": "https://x.example/mcp", "headers": "Bearer ${ACME}"}),
        ("cursor", {"url": "https://x.example/mcp", "headers": "Bearer ${env:ACME}"}),
        ("vscode", {"type": "http", "url": "https://x.example/mcp", "headers": "Bearer ${input:acme-acme}"}),
        ("json", {"type": "http", "url": "https://x.example/mcp", "headers": "Bearer ${ACME}"}),
    ],
)
def test_http_entries(client: str, entry: dict[str, Any], cli: CommandLine) -> None:
    """A URL needs no target; the entry refers to the token and never contains it."""
    words = [client, "--url", "https://x.example/mcp", "--name", "acme", "--token-env", "ACME"]
    assert entry_of(cli, *words) == {**entry, "headers": {"Authorization": entry["headers"]}}


def test_vscode_asks_for_secrets(project: CommandLine, tmp_path: Path) -> None:
    """VS Code asks for values that must not be in the file; its other inputs stay."""
    project.write("mcp.json", '{"inputs": [{"id": "mine"}], "servers": {}}')
    words = ["install", "vscode", "greeter.py", "--env", "API_TOKEN", "--env", "REGION", "--config", "mcp.json"]
    assert project(*words, "--write").code == 0
    document = json.loads((tmp_path / "mcp.json").read_text())
    assert document["servers"]["acme-greeter"]["env"] == {
        "API_TOKEN": "${input:acme-greeter-api-token}",
        "REGION": "${input:acme-greeter-region}",
    }
    asked = {one["id"]: one.get("password") for one in document["inputs"]}
    assert asked == {"acme-greeter-api-token": True, "acme-greeter-region": False, "mine": None}
    assert "nothing was changed" in project(*words, "--write").stdout


@pytest.mark.parametrize(
    "variable",
    [
        f"GITHUB_TOKEN={CANARY}",
        f"api_key={CANARY}",
        f"DB_PASSWORD={CANARY}",
        f"AXOLOTL_PROTOCOL__STATE_KEYS={CANARY}",
        f"DATABASE=postgres://ada:{CANARY}@db/x",
        f"AXOLOTL_REDIS__URL=rediss://:{CANARY}@redis:6379/0",
        f"HEADER=Bearer {CANARY}",
        f"X=sk-{CANARY}",
        f"X=ghp_{CANARY}",
        f"HOOK=https://x.example/?access_token={CANARY}",
    ],
)
@pytest.mark.parametrize("client", ["cursor", "claude-desktop", "vscode"])
def test_secrets_are_not_written(client: str, variable: str, project: CommandLine, tmp_path: Path) -> None:
    """Values that look like secrets are refused and not printed, unless `--with-secrets` is given."""
    words = ["install", client, "greeter.py", "--env", variable, "--config", "c.json", "--write"]
    answer = project(*words)
    assert answer.code == 2
    assert "looks like a secret" in answer.stderr
    assert "canary" not in answer.stdout + answer.stderr
    assert not (tmp_path / "c.json").exists()
    assert project(*words, "--with-secrets").code == 0
    assert CANARY in (tmp_path / "c.json").read_text()


@pytest.mark.parametrize(
    "variable",
    ["AXOLOTL_AUDIT__KEY_FILE=/run/key", "AXOLOTL_AUTH__TOKEN_CACHE_SECONDS=5", "KEYBOARD=de", "API_KEY=", "T=${T}"],
)
def test_other_values_are_written(variable: str, project: CommandLine) -> None:
    """Other values, paths of secret files and references are written."""
    name, _, value = variable.partition("=")
    assert entry_of(project, "cursor", "greeter.py", "--env", variable)["env"] == {name: value}


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["cursor", "absent.py"], "There is no file absent.py"),
        (["cursor", "greeter.py", "--name", "a b"], "'a b' is not a valid server name"),
        (["cursor", "greeter.py", "--env", "=1"], "--env needs NAME=VALUE"),
        (["cursor", "greeter.py", "--env", "A B=1"], "--env needs NAME=VALUE"),
        (["cursor", "--url", "https://x.example/mcp"], "The server at this URL needs a name: use --name"),
        (["cursor", "--url", "x.example", "--name", "x"], "--url needs a URL"),
        (["cursor", "--url", f"https://a:{CANARY}@x.example/", "--name", "x"], "The URL contains a secret"),
        (["cursor", "--url", "https://x.example/mcp", "--name", "x", "--token-env", "a-b"], "--token-env needs"),
        (["cursor", "--url", "https://x.example/mcp", "--name", "x", "--env", "A=1"], "--env is for a server that"),
        (["cursor", "greeter.py", "-t", "stdio", "--url", "https://x.example/"], "use --transport http"),
        (["claude-desktop", "greeter.py", "-t", "http"], "cannot have servers at a URL"),
        (["claude-desktop", "greeter.py", "--env", "TOKEN"], "cannot refer to environment variables"),
        (["claude-desktop", "greeter.py", "--scope", "project"], "has no project file"),
        (["json", "greeter.py", "--write"], "must be named: use --config"),
    ],
)
def test_mistakes(words: list[str], problem: str, project: CommandLine) -> None:
    """Invalid options are refused with what to do instead."""
    answer = project("install", *words)
    assert (answer.code, answer.stdout) == (2, "")
    assert problem in answer.stderr
    assert "canary" not in answer.stderr


def test_options_are_written(project: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The entry has the tool sets and the env file; other variables of this shell are named in a warning."""
    project.write("prod.env", "AXOLOTL_SERVER__NAME=prod\n")
    monkeypatch.setenv("AXOLOTL_TARGET", "greeter.py")
    monkeypatch.setenv("AXOLOTL_LOG_LEVEL", "debug")
    answer = project("install", "json", "--toolset", "a,b", "--env-file", "prod.env")
    entry = json.loads(answer.stdout)["mcpServers"]["prod"]
    expected = ["serve", "greeter.py", "--toolset", "a", "--toolset", "b"]
    assert entry["args"][5:] == [*expected, "--env-file", str(project.directory / "prod.env")]
    assert "the client does not set AXOLOTL_LOG_LEVEL" in answer.stderr
    assert "AXOLOTL_TARGET" not in answer.stderr


HOME, DATA = Path("/home/ada"), Path("C:/Users/ada/AppData/Roaming")
PLACES = [
    ("linux", {}, "claude-code", "user", HOME / ".claude.json"),
    ("linux", {"CLAUDE_CONFIG_DIR": "/cfg"}, "claude-code", "user", Path("/cfg/.claude.json")),
    ("win32", {"APPDATA": str(DATA)}, "claude-code", "project", Path("/project/.mcp.json")),
    ("linux", {}, "claude-desktop", "user", HOME / ".config/Claude/claude_desktop_config.json"),
    ("linux", {"XDG_CONFIG_HOME": "/x"}, "claude-desktop", "user", Path("/x/Claude/claude_desktop_config.json")),
    ("darwin", {}, "claude-desktop", "user", HOME / "Library/Application Support/Claude/claude_desktop_config.json"),
    ("win32", {"APPDATA": str(DATA)}, "claude-desktop", "user", DATA / "Claude/claude_desktop_config.json"),
    ("win32", {}, "claude-desktop", "user", HOME / "AppData/Roaming/Claude/claude_desktop_config.json"),
    ("darwin", {"APPDATA": "/no"}, "cursor", "user", HOME / ".cursor/mcp.json"),
    ("linux", {}, "cursor", "project", Path("/project/.cursor/mcp.json")),
    ("linux", {}, "vscode", "user", HOME / ".config/Code/User/mcp.json"),
    ("darwin", {}, "vscode", "user", HOME / "Library/Application Support/Code/User/mcp.json"),
    ("win32", {"APPDATA": str(DATA)}, "vscode", "user", DATA / "Code/User/mcp.json"),
    ("darwin", {}, "vscode", "project", Path("/project/.vscode/mcp.json")),
    ("linux", {}, "claude-desktop", "project", None),
    ("linux", {}, "json", "user", None),
]


@pytest.mark.parametrize(("platform", "variables", "client", "scope", "path"), PLACES)
def test_config_paths(platform: str, variables: dict[str, str], client: str, scope: str, path: Path | None) -> None:
    """The file of each client is where its documentation says, on every platform."""
    paths = ConfigPaths(platform, HOME, variables, Path("/project"))
    assert paths.find(ClientName(client), Scope(scope)) == path


def test_user_file(project: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without `--config` the user's file is changed, unless the client was never started."""
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    answer = project("install", "vscode", "greeter.py", "--write")
    assert answer.code == 2
    assert "start VS Code once" in answer.stderr
    file = home / ".config" / "Code" / "User" / "mcp.json"
    file.parent.mkdir(parents=True)
    answer = project("install", "vscode", "greeter.py", "--write")
    assert answer.stdout.splitlines()[0] == f"acme-greeter was written to {file}"
    assert list(json.loads(file.read_text())["servers"]) == ["acme-greeter"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_project_file(project: CommandLine, tmp_path: Path) -> None:
    """With `--scope project` the file is created in the project, with a warning about paths of this machine."""
    answer = project("install", "cursor", "greeter.py", "--scope", "project", "--write")
    assert answer.code == 0
    assert (tmp_path / ".cursor" / "mcp.json").is_file()
    assert "paths of this machine" in answer.stderr


def test_printing_changes_nothing(project: CommandLine, tmp_path: Path) -> None:
    """By default nothing is written, and stdout has only JSON."""
    answer = project("install", "claude-code", "greeter.py", "--config", "c.json")
    json.loads(answer.stdout)
    assert f"Add this to {tmp_path / 'c.json'}" in answer.stderr
    assert "claude mcp add-json --scope user acme-greeter '{" in answer.stderr
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".json"] == []


def test_a_file_is_merged(project: CommandLine, tmp_path: Path) -> None:
    """All other values in the file stay the same, and every change keeps a backup."""
    before = {"theme": "dark", "mcpServers": {"a": {"command": "a"}}}
    file = tmp_path / "c.json"
    file.write_text(json.dumps(before))
    file.chmod(0o640)
    words = ["install", "cursor", "greeter.py", "--config", "c.json", "--write"]
    assert project(*words).code == 0
    written = file.read_text()
    document = json.loads(written)
    assert document["mcpServers"].pop("acme-greeter")["type"] == "stdio"
    assert document == before
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert json.loads((tmp_path / "c.json.bak").read_text()) == before
    assert project(*words).stdout == f"acme-greeter is already in {file}; nothing was changed.\n"
    assert project(*words, "--name", "second").code == 0
    assert json.loads((tmp_path / "c.json.bak").read_text()) == before
    assert (tmp_path / "c.json.bak1").read_text() == written
    assert sorted(path.name for path in tmp_path.iterdir() if "c.json" in path.name) == [
        "c.json",
        "c.json.bak",
        "c.json.bak1",
    ]


def test_a_file_with_comments(project: CommandLine, tmp_path: Path) -> None:
    """A file with comments is not changed, and the entry is printed instead."""
    before = '{\n  // mine\n  "mcpServers": {}\n}\n'
    project.write("c.json", before)
    answer = project("install", "cursor", "greeter.py", "--config", "c.json", "--write")
    assert answer.code == 2
    assert list(json.loads(answer.stdout)["mcpServers"]) == ["acme-greeter"]
    assert "has comments" in answer.stderr
    assert "add the printed entry yourself" in answer.stderr
    assert (tmp_path / "c.json").read_text() == before


def test_another_server_of_that_name(project: CommandLine, tmp_path: Path) -> None:
    """A different server of the same name is refused; `--force` replaces it, except keys that its user added."""
    theirs = {"mcpServers": {"acme-greeter": {"command": "theirs", "env": {"K": CANARY}, "disabled": True}}}
    project.write("c.json", json.dumps(theirs))
    words = ["install", "cursor", "greeter.py", "--config", "c.json", "--write"]
    answer = project(*words)
    assert answer.code == 2
    assert "(different command and args and env)" in answer.stderr
    assert CANARY not in answer.stderr
    assert json.loads((tmp_path / "c.json").read_text()) == theirs
    assert project(*words, "--force").code == 0
    entry = json.loads((tmp_path / "c.json").read_text())["mcpServers"]["acme-greeter"]
    assert entry["disabled"] is True
    assert "env" not in entry


@pytest.mark.parametrize(
    "content",
    [b'{"a": 1', b"[]", b'{"mcpServers": []}', b'{"a": 1, "a": 2}', b"\xff\xfe{}", b"mcpServers:\n  a: {}\n"],
)
def test_invalid_files_are_not_changed(content: bytes, project: CommandLine, tmp_path: Path) -> None:
    """An invalid file is neither changed nor backed up."""
    (tmp_path / "c.json").write_bytes(content)
    answer = project("install", "cursor", "greeter.py", "--config", "c.json", "--write", "--force")
    assert answer.code == 2
    assert f"{tmp_path / 'c.json'} was not changed: " in answer.stderr
    assert (tmp_path / "c.json").read_bytes() == content
    assert not (tmp_path / "c.json.bak").exists()


def test_symbolic_links(project: CommandLine, tmp_path: Path) -> None:
    """A symbolic link stays a link, and its target is changed."""
    project.write("real.json", "{}")
    (tmp_path / "c.json").symlink_to("real.json")
    assert project("install", "cursor", "greeter.py", "--config", "c.json", "--write").code == 0
    assert (tmp_path / "c.json").is_symlink()
    assert "acme-greeter" in (tmp_path / "real.json").read_text()


def test_symbolic_links_out_of_the_project(project: CommandLine, tmp_path: Path) -> None:
    """In a project, which may be somebody else's, a link that leads out of it is refused, and nothing is changed."""
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    (outside / "mcp.json").write_text("{}")
    (tmp_path / ".cursor").symlink_to(outside)
    (tmp_path / ".mcp.json").symlink_to(outside / "mcp.json")
    for client in ("cursor", "claude-code"):
        answer = project("install", client, "greeter.py", "--scope", "project", "--write")
        assert answer.code == 2
        assert f"it leads to {outside / 'mcp.json'}, outside the project; remove the symbolic link" in answer.stderr
    assert [file.name for file in outside.iterdir()] == ["mcp.json"]
    assert (outside / "mcp.json").read_text() == "{}"


def test_concurrent_changes(tmp_path: Path) -> None:
    """A file that was changed after it was read is not overwritten, and only the backup is left next to it."""
    path = tmp_path / "c.json"
    path.write_text("{}")
    file = ClientFile.read(path)
    path.write_text('{"a": 1}')
    with pytest.raises(ConfigurationError, match="was changed by another program just now"):
        file.write("{}\n")
    assert path.read_text() == '{"a": 1}'
    assert sorted(one.name for one in tmp_path.iterdir()) == ["c.json", "c.json.bak"]


def test_unwritable_paths(project: CommandLine) -> None:
    """A file that cannot be read or created is an error without a traceback."""
    project.write("file", "")
    answer = project("install", "cursor", "greeter.py", "--config", "file/c.json", "--write")
    assert answer.code == 2
    assert "Not a directory" in answer.stderr or "File exists" in answer.stderr


def test_directory_option(project: CommandLine, processes: Processes, tmp_path: Path) -> None:
    """`--directory` runs a command in another directory; a path that is not a directory is refused."""
    project.write("axolotl.toml", "target = 'greeter.py'\n")
    code, stdout, stderr = processes.run("--directory", str(tmp_path), "list", "--json")
    assert code == 0, stderr
    assert [tool["name"] for tool in json.loads(stdout)["tools"]] == ["greet"]
    code, _, stderr = processes.run("-C", str(tmp_path / "greeter.py"), "list")
    assert code == 2


def test_gemini_cli(project: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gemini CLI has its own key for URLs, and reads variables from its environment."""
    monkeypatch.setenv("HOME", str(project.directory))
    entry = entry_of(project, "gemini-cli", "greeter.py", "--env", "API_TOKEN", "--env", "REGION=eu")
    assert entry["env"] == {"API_TOKEN": "${API_TOKEN}", "REGION": "eu"}
    assert set(entry) == {"command", "args", "env"}
    remote = entry_of(project, "gemini-cli", "--url", "https://a.example/mcp", "--name", "a", "--token-env", "TOKEN")
    assert remote == {"httpUrl": "https://a.example/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}
    (project.directory / ".gemini").mkdir()
    assert project("install", "gemini-cli", "greeter.py", "--write").code == 0
    written = json.loads((project.directory / ".gemini" / "settings.json").read_text(encoding="utf-8"))
    assert list(written["mcpServers"]) == ["acme-greeter"]


def test_uv(project: CommandLine) -> None:
    """With --uv, the entry has no path of this environment, and in a project's file no path of this machine."""
    entry = entry_of(project, "cursor", "greeter.py", "--uv")
    assert (entry["command"], entry["args"][:3]) == ("uv", ["run", "--directory", str(project.directory)])
    answer = project("install", "cursor", "greeter.py", "--uv", "--scope", "project")
    shared = json.loads(answer.stdout)["mcpServers"]["acme-greeter"]
    assert shared["args"] == ["run", "axolotl", "serve", "greeter.py"]
    assert "Warning" not in answer.stderr
