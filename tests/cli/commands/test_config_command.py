"""`axolotl config`, and the files that settings are read from."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from axolotl_server.settings.file_schema import file_schema
from tests.cli.conftest import CommandLine
from tests.support.processes import Processes, imported_modules

SAMPLE = "tests.support.containers.command_containers:Container"
CANARY = "canary-8b1f-and-longer-than-it-must-be"


def show(cli: CommandLine, *words: str) -> dict[str, tuple[Any, str, str | None]]:
    """Return the value, source and place of each setting."""
    answer = cli("config", "show", *words, "--json")
    assert answer.code == 0, answer.stderr
    return {
        one["setting"]: (one["value"], one["origin"]["source"], one["origin"]["place"])
        for one in json.loads(answer.stdout)["settings"]
    }


def test_no_arguments(cli: CommandLine) -> None:
    """Without arguments, the help lists both commands."""
    answer = cli("config")
    assert {"show", "schema"} <= set(answer.stdout.split()) | set(answer.stderr.split())


def test_every_source(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each value is shown with its source and place."""
    cli.write("axolotl.toml", "[http]\nport = 1\nhost = 'a'\n\n[tools.GREET]\ntimeout_seconds = 2\n")
    cli.write(".env", "\nAXOLOTL_HTTP__HOST=b\nAXOLOTL_HTTP__PATH=/b\n")
    monkeypatch.setenv("AXOLOTL_HTTP__PATH", "/c")
    shown = show(cli, SAMPLE)
    assert shown["http.port"] == (1, "file", "axolotl.toml:2")
    assert shown["http.host"] == ("b", "env_file", ".env:2")
    assert shown["http.path"] == ("/c", "environment", "AXOLOTL_HTTP__PATH")
    assert shown["server.name"] == ("sample", "container", None)
    assert shown["http.drain_seconds"][1:] == ("default", None)
    assert shown["tools.greet.timeout_seconds"] == (2.0, "file", "axolotl.toml:6")
    assert shown["tools.read.timeout_seconds"] == (20, "tool", None)
    assert "tools.double.timeout_seconds" not in shown


def test_an_operator_beats_a_tool(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """If an operator sets a limit of a tool, the tool's own value is not shown."""
    monkeypatch.setenv("AXOLOTL_TOOLS__READ__TIMEOUT_SECONDS", "9")
    place = "AXOLOTL_TOOLS__READ__TIMEOUT_SECONDS"
    assert show(cli, SAMPLE)["tools.read.timeout_seconds"] == (9.0, "environment", place)


def test_without_a_target(cli: CommandLine) -> None:
    """Without a target no container is loaded, not even the starter set."""
    cli.write("axolotl.toml", "log_level = 'error'\n")
    answer = cli("config", "show", "--json")
    assert json.loads(answer.stdout)["target"] is None
    assert show(cli)["log_level"] == ("error", "file", "axolotl.toml:1")


@pytest.mark.parametrize("where", ["axolotl.toml", ".env", "environment", "argument"])
def test_a_target_that_is_named(cli: CommandLine, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the target is named, its container is loaded; if that fails, it is an error."""
    written = {"axolotl.toml": f"target = '{SAMPLE}'\n", ".env": f"AXOLOTL_TARGET={SAMPLE}\n"}
    if where in written:
        cli.write(where, written[where])
    elif where == "environment":
        monkeypatch.setenv("AXOLOTL_TARGET", SAMPLE)
    words = [SAMPLE] if where == "argument" else []
    assert show(cli, *words)["server.name"] == ("sample", "container", None)
    assert cli("config", "show", "absent:Container").code == 2


def test_changed(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--changed` leaves out defaults."""
    monkeypatch.setenv("AXOLOTL_LOG_LEVEL", "WARNING")
    assert show(cli, "--changed") == {"log_level": ("warning", "environment", "AXOLOTL_LOG_LEVEL")}
    assert len(show(cli, "--all")) == len(show(cli)) > 100


def test_changed_values_of_rules(cli: CommandLine) -> None:
    """What a rule does not say is not shown as set."""
    cli.write("axolotl.toml", "[[authorization.rules]]\nname = 'a'\neffect = 'deny'\nwho = { roles = ['b'] }\n")
    assert show(cli, "--changed") == {
        "authorization.rules.0.name": ("a", "file", "axolotl.toml:2"),
        "authorization.rules.0.effect": ("deny", "file", "axolotl.toml:3"),
        "authorization.rules.0.who.roles": (["b"], "file", "axolotl.toml:4"),
    }
    assert "settings, 3 of them set" in cli("config", "show", "--changed").stdout


def test_text(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table shows the settings, and with `--origin` where they come from."""
    cli.write("axolotl.toml", f"target = '{SAMPLE}'\n\n[http]\nallowed_hosts = ['a', 'b']\n")
    plain, full = cli("config", "show"), cli("config", "show", "--origin")
    assert plain.code == full.code == 0
    assert re.search(r"^http\.allowed_hosts +\[\"a\", \"b\"\]$", plain.stdout, re.MULTILINE)
    assert re.search(r"^http\.allowed_hosts +\[\"a\", \"b\"\] +axolotl\.toml:4$", full.stdout, re.MULTILINE)
    assert re.search(r"^http\.sse_path +– +default$", full.stdout, re.MULTILINE)
    assert re.search(r"^tools\.read\.timeout_seconds +20(\.0)? +tool attribute$", full.stdout, re.MULTILINE)
    assert re.search(r"^file +axolotl\.toml$", full.stdout, re.MULTILINE)
    assert re.search(r"^\d+ settings, \d+ of them set$", full.stdout, re.MULTILINE)


@pytest.mark.parametrize("width", [80, 120])
def test_a_terminal_shows_everything(width: int, cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal, however narrow, nothing is cut off: long values and origins are wrapped."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(width))
    hosts = [f"host-{number}.a-rather-long-name.example.com" for number in range(6)]
    monkeypatch.setenv("AXOLOTL_HTTP__ALLOWED_HOSTS", json.dumps(hosts))
    written = re.sub(r"\x1b\[[0-9;]*m", "", cli("config", "show", "--origin", "--changed").stdout)
    assert max(map(len, written.splitlines())) <= width
    assert "…" not in written
    assert written.count("host-") == len(hosts)
    assert hosts[-1] in "".join(written.split())
    assert "AXOLOTL_HTTP__ALLOWED_HOSTS" in written


def test_mistakes(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors are reported one per line with their places, and no settings are shown."""
    cli.write("axolotl.toml", "[http]\nprot = 1\n")
    cli.write(".env", "AXOLOTL_HTTP__PORT=eighty\n")
    monkeypatch.setenv("AXOLOTL_LIMITS__THREADS", "0")
    answer = cli("config", "show")
    assert (answer.code, answer.stdout) == (2, "")
    assert [line.rpartition("(")[2] for line in sorted(answer.stderr.splitlines())] == [
        ".env:1)",
        "axolotl.toml:2)",
        "environment AXOLOTL_LIMITS__THREADS)",
    ]


def test_invalid_flags(processes: Processes) -> None:
    """An invalid flag is reported by its name."""
    code, _, stderr = processes.run("serve", SAMPLE, "--transport", "http", "--path", "mcp")
    assert code == 2
    assert stderr.strip().endswith("(flag --path)")


def test_unknown_variables(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unknown variables cause a warning; those of the commands themselves do not."""
    cli.write(".env", "\nAXOLOTL_HTPP__PORT=1\nAXOLOTL_TOOLSETS=polite\n")
    monkeypatch.setenv("AXOLOTL_HTTP_PORT", "1")
    monkeypatch.setenv("AXOLOTL_TARGET", "tests.support.containers.command_containers:Sets")
    texts = [
        "The variable AXOLOTL_HTTP_PORT is unknown and ignored; did you mean AXOLOTL_HTTP__PORT?",
        "The variable AXOLOTL_HTPP__PORT is unknown and ignored; did you mean AXOLOTL_HTTP__PORT? (.env:2)",
    ]
    shown = cli("config", "show")
    assert shown.code == 0
    assert shown.stderr.splitlines() == [f"Warning: {text}" for text in texts]
    checked = cli("check", "--json")
    assert checked.code == 0
    findings = json.loads(checked.stdout)["findings"]
    assert [one["message"] for one in findings if "variable" in one["message"]] == texts
    assert cli("check", "--strict").code == 2


def test_schema(cli: CommandLine) -> None:
    """The schema is printed as JSON."""
    answer = cli("config", "schema")
    assert answer.code == 0
    assert json.loads(answer.stdout) == file_schema()


def test_env_files(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The env file is named by a flag or a variable, and is `.env` otherwise; the environment takes precedence."""
    for name in (".env", "by-variable.env", "by-flag.env"):
        cli.write(name, f"AXOLOTL_SERVER__NAME={name}\nAXOLOTL_SERVER__TITLE=of the file\n")
    assert show(cli)["server.name"][0] == ".env"
    monkeypatch.setenv("AXOLOTL_ENV_FILE", "by-variable.env")
    assert show(cli)["server.name"] == ("by-variable.env", "env_file", "by-variable.env:1")
    assert show(cli, "--env-file", "by-flag.env")["server.name"][0] == "by-flag.env"
    monkeypatch.setenv("AXOLOTL_SERVER__NAME", "environment")
    assert show(cli)["server.name"][0] == "environment"
    assert show(cli)["server.title"][0] == "of the file"
    monkeypatch.setenv("AXOLOTL_ENV_FILE", os.devnull)
    assert show(cli)["server.title"][0] is None


@pytest.mark.parametrize("by_flag", [True, False])
def test_a_named_env_file_must_be_there(cli: CommandLine, by_flag: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """An env file that is named must exist."""
    if not by_flag:
        monkeypatch.setenv("AXOLOTL_ENV_FILE", "absent.env")
    answer = cli("config", "show", *(["--env-file", "absent.env"] if by_flag else []))
    assert answer.code == 2
    assert "absent.env: there is no such file" in answer.stderr


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["inspect", "--json"], id="inspect"),
        pytest.param(["list", "--json"], id="list"),
        pytest.param(["check", "--json"], id="check"),
        pytest.param(["call", "-", "greet", "name=Ada"], id="call"),
        pytest.param(["prompt", "-", "praise"], id="prompt"),
        pytest.param(["read", "-", "ui://menu"], id="read"),
        pytest.param(["policy", "explain", "--as", "ada", "greet"], id="policy"),
        pytest.param(["serve"], id="serve"),
    ],
)
def test_every_command_reads_env_files(words: list[str], cli: CommandLine, processes: Processes) -> None:
    """All commands that load a server read the env file."""
    cli.write("prod.env", f"AXOLOTL_TARGET={SAMPLE}\nAXOLOTL_HTTP__PORT=eighty\n")
    code, stdout, stderr = processes.run(*words, "--env-file", "prod.env", directory=cli.directory)
    assert code == 2
    assert "(prod.env:2)" in stdout + stderr


def test_an_env_file_is_not_exported(processes: Processes, tmp_path: Path) -> None:
    """Variables of the env file are not exported to the container's code."""
    (tmp_path / ".env").write_text("AXOLOTL_SERVER__NAME=of-the-file\n")
    (tmp_path / "own.py").write_text(
        "import os\nfrom dependency_injector import containers, providers\n"
        "class Container(containers.DeclarativeContainer):\n"
        "    settings = providers.Object({'server': {'title': os.environ.get('AXOLOTL_SERVER__NAME', 'nothing')}})\n"
        "    tools = providers.List()\n"
    )
    code, stdout, stderr = processes.run("inspect", "own.py", "--json", directory=tmp_path)
    assert code == 0, stderr
    server = json.loads(stdout)["server"]
    assert (server["name"], server["title"]) == ("of-the-file", "nothing")


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["config", "show"], id="show"),
        pytest.param(["config", "show", "--origin", "--changed"], id="origins"),
        pytest.param(["config", "show", "--json"], id="show-json"),
        pytest.param(["inspect"], id="inspect"),
        pytest.param(["inspect", "--json"], id="inspect-json"),
        pytest.param(["check"], id="check"),
        pytest.param(["list", "--json"], id="list"),
    ],
)
@pytest.mark.parametrize("is_right", [True, False], ids=["right", "wrong"])
def test_secrets_are_never_written(
    words: list[str], is_right: bool, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No output contains a secret, whatever its source, on success and on errors, even at log level debug."""
    cli.write("key", f"{CANARY}\n")
    cli.write("axolotl.toml", f"target = '{SAMPLE}'\n[audit]\nkey_file = 'key'\nstderr = true\n")
    cli.write(".env", f"AXOLOTL_PROTOCOL__STATE_KEYS='[\"{CANARY}\"]'\n")
    monkeypatch.setenv("AXOLOTL_REDIS__URL", f"redis://user:{CANARY}@127.0.0.1:1/0")
    monkeypatch.setenv("AXOLOTL_LOG_LEVEL", "debug")
    if not is_right:
        monkeypatch.setenv("AXOLOTL_AUDIT__KEY_FILE", CANARY)
        monkeypatch.setenv("AXOLOTL_HTTP__PORT", CANARY)
    answer = cli(*words)
    assert answer.code == (0 if is_right else 2), answer.stderr
    assert "canary" not in answer.stdout + answer.stderr


def test_valid_settings_import_no_explanations() -> None:
    """A server with valid settings does not import the code that explains errors."""
    modules = set(imported_modules("list", SAMPLE))
    parts = ("effective", "file_schema", "mistakes")
    assert "axolotl_server.settings.loading" in modules
    assert not modules & {f"axolotl_server.settings.{part}" for part in parts}
