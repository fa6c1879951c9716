"""`axolotl inspect`."""

import json
from typing import Any

import pytest

from axolotl_core.protocol.versions import REVISIONS
from tests.cli.conftest import CommandLine

SAMPLE = "tests.support.containers.command_containers:Container"


def inspect(cli: CommandLine, *words: str) -> Any:
    answer = cli("inspect", *words, "--json")
    assert answer.code == 0, answer.stderr
    return json.loads(answer.stdout)


def test_identity(cli: CommandLine) -> None:
    """The report has the identity of the server and its revisions."""
    report = inspect(cli, SAMPLE)
    assert report["target"] == SAMPLE
    assert (report["server"]["name"], report["server"]["version"]) == ("sample", "7")
    assert report["revisions"] == [revision.name for revision in REVISIONS]


def test_layers(cli: CommandLine) -> None:
    """Each tool has the layers that apply to it, outermost first."""
    cli.write("axolotl.toml", "[tools.double]\nmax_concurrency = 3\n")
    layers = {tool["name"]: tool["layers"] for tool in inspect(cli, SAMPLE)["tools"]}
    assert [name.rpartition(".")[2] for name in layers["greet"]][-1] == "Bystander"
    assert [name.rpartition(".")[2] for name in layers["double"]][-1] == "ConcurrencyLayer"
    assert layers["greet"][:-1] == layers["double"][:-1] == layers["crash"]


def test_limits(cli: CommandLine) -> None:
    """Limits are the effective ones."""
    cli.write("axolotl.toml", "[tools.double]\nmax_concurrency = 3\n")
    limits = {tool["name"]: tool["limits"] for tool in inspect(cli, SAMPLE)["tools"]}
    assert limits["read"]["timeout_seconds"] == 20
    assert limits["read"]["execution"] == "thread"
    assert limits["greet"]["timeout_seconds"] == 5
    assert limits["double"]["max_concurrency"] == 3


def test_schemas(cli: CommandLine) -> None:
    """Schemas are complete."""
    double = next(tool for tool in inspect(cli, SAMPLE)["tools"] if tool["name"] == "double")
    assert double["input_schema"]["properties"]["number"] == {"description": "What is doubled.", "type": "integer"}
    assert double["output_schema"]["type"] == "object"


def test_settings_precedence(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment takes precedence over the file, which takes precedence over the container."""
    assert inspect(cli, SAMPLE)["settings"]["limits"]["timeout_seconds"] == 5
    cli.write("axolotl.toml", "[limits]\ntimeout_seconds = 6\n")
    assert inspect(cli, SAMPLE)["settings"]["limits"]["timeout_seconds"] == 6
    monkeypatch.setenv("AXOLOTL_LIMITS__TIMEOUT_SECONDS", "7")
    assert inspect(cli, SAMPLE)["settings"]["limits"]["timeout_seconds"] == 7


def test_text(cli: CommandLine) -> None:
    """The text describes arguments in words."""
    answer = cli("inspect", SAMPLE)
    lines = [" ".join(line.split()) for line in answer.stdout.splitlines()]
    assert answer.code == 0
    assert lines[0] == "sample 7"
    assert "input number integer What is doubled." in lines
    assert "note string | null = null What nobody reads." in lines
    assert "limits 20 s per call, unlimited concurrency, in a thread" in lines
    assert lines[-1] == "6 tools; --json shows the complete schemas"


def test_every_kind(cli: CommandLine) -> None:
    """Prompts, resources and templates have schemas, limits and layers."""
    report = inspect(cli, "tests.support.containers.full_container:Container")
    praise = report["prompts"][0]
    assert praise["arguments_schema"]["properties"]["dish"]["description"] == "What is praised."
    assert praise["limits"]["execution"] == "thread"
    assert praise["layers"] == report["resources"][0]["layers"] == report["templates"][0]["layers"]
    assert report["resources"][1]["size"] == 8
    assert list(report["templates"][0]["variables_schema"]["properties"]) == ["name", "lang"]
    assert report["tools"][0]["app"] == "ui://menu"
    assert report["extensions"] == {"com.example/receipts": {"paper": False}}


def test_every_kind_as_text(cli: CommandLine) -> None:
    """The text shows the kind of each feature."""
    answer = cli("inspect", "tests.support.containers.full_container:Container")
    lines = [" ".join(line.split()) for line in answer.stdout.splitlines()]
    assert "extensions com.example/receipts" in lines
    assert "page ui://menu" in lines
    assert lines[lines.index("praise prompt") :][:7] == [
        "praise prompt",
        "description Praise a dish. At length.",
        "tool set –",
        "limits 30 s per call, unlimited concurrency, in a thread",
        "layers validation → timeout",
        "arguments dish string What is praised.",
        "times integer = 1 How often.",
    ]
    assert "type image/png, 8 bytes" in lines
    assert "dishes://{name}{?lang} A dish template" in lines
    assert lines[-1] == "5 tools, 3 prompts, 2 resources, 1 template; --json shows the complete schemas"


def test_toolsets(cli: CommandLine) -> None:
    """Tool sets can be selected and are named."""
    [tool] = inspect(cli, "tests.support.containers.command_containers:Sets", "--toolset", "polite")["tools"]
    assert (tool["name"], tool["toolset"]) == ("greet", "polite")
