"""`--as` and `--profile`: commands that act as a principal, and with settings for one situation."""

import json
from pathlib import Path

import pytest

from axolotl_server.audit.log_files import LogLock
from tests.cli.conftest import CommandLine

CODE = '''
from dependency_injector import containers, providers
from axolotl_core import Context, prompt, resource, tool

@tool
async def greet(context: Context) -> str:
    """Greet."""
    principal = context.principal
    return f"{principal.subject} of {principal.tenant}"

@prompt
async def advice() -> str:
    """Give advice."""
    return "rest"

@resource("notes://one")
async def notes() -> str:
    """Read notes."""
    return "one"

class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Object(greet))
    prompts = providers.List(providers.Object(advice))
    resources = providers.List(providers.Object(notes))
'''
SETTINGS = """
target = "acme.py"

[telemetry]
traces = true

[audit]
jsonl_path = "audit.jsonl"

[authorization]
default = "deny"

[[authorization.rules]]
name = "staff"
effect = "allow"
who = { roles = ["staff"] }

[profile.open.authorization]
default = "allow"
rules = []
"""
STAFF = ("--as", '{"subject": "ada", "roles": ["staff"], "tenant": "acme"}')
REQUESTS = [("call", "greet"), ("prompt", "advice"), ("read", "notes://one")]


@pytest.fixture(autouse=True)
def _project(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")  # an exporter would stay in the process, and retry
    cli.write("acme.py", CODE)
    cli.write("axolotl.toml", SETTINGS)


@pytest.mark.parametrize(("command", "name"), REQUESTS)
def test_a_principal_may_use_a_feature(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, command: str, name: str
) -> None:
    """With --as, the request has this principal, the audit log is not touched, and no telemetry is exported."""
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "missing")  # an export would fail
    answer = cli(command, "-", name, *STAFF)
    assert (answer.code, answer.stderr) == (0, "")
    assert answer.stdout.strip() in {"ada of acme", "rest", "one"}
    assert not list(cli.directory.glob("audit*"))


@pytest.mark.parametrize(("command", "name"), REQUESTS)
def test_a_running_server_keeps_its_audit_log(cli: CommandLine, command: str, name: str) -> None:
    """Commands work next to a server that holds the lock of the audit log."""
    lock = LogLock(cli.directory / "audit.jsonl")
    try:
        assert cli(command, "-", name, *STAFF).code == 0
    finally:
        lock.release()


@pytest.mark.parametrize(("command", "name"), REQUESTS)
def test_a_hidden_feature_has_a_hint(cli: CommandLine, command: str, name: str) -> None:
    """If the policy hides a feature from the developer at the shell, a hint says so and what to do."""
    answer = cli(command, "-", name)
    assert answer.code == 3
    assert f"{name} exists, but the policy hides it from anonymous (denied by: default)" in answer.stderr
    assert "Use --as with another principal" in answer.stderr


def test_a_missing_feature_has_no_hint(cli: CommandLine) -> None:
    """A feature that does not exist is only reported as missing."""
    assert "the policy hides" not in cli("call", "-", "nothing").stderr


def test_list_as_a_principal(cli: CommandLine) -> None:
    """With --as, only what the principal may use is listed."""
    assert "1 tool, 1 prompt, 1 resource" in cli("list").stdout
    assert "1 tool, 1 prompt, 1 resource" in cli("list", *STAFF).stdout
    assert json.loads(cli("list", "--as", "eve", "--json").stdout)["tools"] == []


def test_check_warns_about_an_empty_offer(cli: CommandLine) -> None:
    """A policy that leaves clients over stdio with nothing is worth a warning."""
    assert "The policy leaves clients over stdio with nothing" in cli("check").stdout
    assert "over stdio" not in cli("check", "--profile", "open").stdout


def test_check_validates_all_profiles(cli: CommandLine) -> None:
    """Mistakes in profiles that are not selected are found too."""
    cli.write("axolotl.toml", SETTINGS + "\n[profile.later.http]\nprot = 1\n")
    answer = cli("check")
    assert answer.code == 2
    assert "Setting http.prot is unknown; did you mean 'port'? (axolotl.toml:23, profile later)" in answer.stdout


def test_profiles_and_settings_files(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A profile is selected by an option or a variable, and --settings names another file."""
    assert cli("call", "-", "greet", "--profile", "open").code == 0
    monkeypatch.setenv("AXOLOTL_PROFILE", "open")
    assert cli("call", "-", "greet").code == 0
    facts = json.loads(cli("config", "show", "--json").stdout)
    assert facts["profile"] == "open"
    monkeypatch.setenv("AXOLOTL_PROFILE", "opne")
    assert "axolotl.toml has no profile 'opne'; did you mean 'open'?" in cli("check").stderr
    monkeypatch.delenv("AXOLOTL_PROFILE")
    cli.write("other.toml", 'target = "acme.py"\n[server]\nname = "other"\n')
    facts = json.loads(cli("config", "show", "--json", "--settings", "other.toml").stdout)
    assert Path(facts["file"]).name == "other.toml"
    assert cli("call", "-", "greet", "--settings", "other.toml").stdout == "anonymous of None\n"
