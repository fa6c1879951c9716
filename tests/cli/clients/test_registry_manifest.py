"""`axolotl install registry`: the manifest for the MCP registry."""

import json
from typing import Any

import pytest

from axolotl_cli.clients.registry_manifest import server_manifest
from axolotl_server.settings.server import ServerSettings
from tests.cli.conftest import CommandLine

SAMPLE = "tests.support.containers.command_containers:Container"
NAME = "io.github.acme/greeter"
IDENTITY = {"name": "greeter", "version": "1.2.0", "description": "Greets people."}
URL = "https://mcp.example.com/mcp"
IMAGE = "registry.example.com/acme/greeter:1.2.0"


def manifest(url: str = URL, **sections: Any) -> dict[str, Any]:
    """Describe a server with these settings."""
    sections["server"] = {**IDENTITY, **sections.get("server", {})}
    return server_manifest(ServerSettings.model_validate(sections), NAME, [], [], url)


def test_server_json(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The manifest has all required fields, from the settings and the command line."""
    for key, value in {**IDENTITY, "title": "Greeter", "website_url": "https://acme.example"}.items():
        monkeypatch.setenv(f"AXOLOTL_SERVER__{key.upper()}", value)
    words = ["--name", NAME, "--package", "pypi:acme-greeter", "--package", f"oci:{IMAGE}", "--url", URL]
    answer = cli("install", "registry", SAMPLE, *words, "--env", "ACME_TOKEN", "--env", "ACME_REGION")
    assert answer.code == 0, answer.stderr
    document = json.loads(answer.stdout)
    python, image = document.pop("packages")
    assert document == {
        "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        "name": NAME,
        "title": "Greeter",
        "description": "Greets people.",
        "version": "1.2.0",
        "websiteUrl": "https://acme.example",
        "remotes": [{"type": "streamable-http", "url": URL}],
    }
    assert (python["identifier"], python["version"], python["runtimeHint"]) == ("acme-greeter", "1.2.0", "uvx")
    assert python["transport"] == image["transport"] == {"type": "stdio"}
    assert (image["identifier"], image["runtimeHint"], "version" in image) == (IMAGE, "docker", False)
    assert image["packageArguments"] == [{"type": "positional", "value": "serve"}]
    assert [(one["name"], one["isSecret"]) for one in image["environmentVariables"]] == [
        ("ACME_TOKEN", True),
        ("ACME_REGION", False),
    ]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([], "add --package, --url or both"),
        (["--package", "npm:x"], "--package npm:x: write pypi:NAME==VERSION or oci:IMAGE:TAG"),
        (["--url", "https://ada:canary@mcp.example.com/mcp"], "The URL contains a secret"),
    ],
)
def test_mistakes(words: list[str], problem: str, cli: CommandLine) -> None:
    """A manifest needs a way to get the server, and never contains a secret."""
    answer = cli("install", "registry", SAMPLE, *words)
    assert (answer.code, answer.stdout) == (2, "")
    assert problem in " ".join(answer.stderr.replace("│", " ").split())
    assert "canary" not in answer.stderr


def test_api_keys_are_declared() -> None:
    """A server with API keys declares the header; with an authorization server, clients discover it."""
    key = {"hash": "sha256:" + "0" * 64}
    (remote,) = manifest(auth={"api_keys": {"a": key}})["remotes"]
    (header,) = remote["headers"]
    assert (header["name"], header["isRequired"], header["isSecret"]) == ("Authorization", True, True)
    auth = {"api_keys": {"a": key}, "issuers": ["https://login.example.com"], "resource": URL}
    assert "headers" not in manifest(auth=auth)["remotes"][0]


def test_icons() -> None:
    """Icons at a URL are included; icons in the settings are not."""
    icons = [
        {"src": "https://acme.example/a.png", "mime_type": "image/png", "sizes": ["48x48"]},
        {"src": "data:image/png;base64,AAAA"},
    ]
    document = manifest(server={"icons": icons})
    assert document["icons"] == [{"src": "https://acme.example/a.png", "mimeType": "image/png", "sizes": ["48x48"]}]


def test_no_resource_is_started(cli: CommandLine) -> None:
    """No resource of the container is started to describe a server."""
    cli.write(
        "needy.py",
        "from dependency_injector import containers, providers\n"
        "class Container(containers.DeclarativeContainer):\n"
        "    database = providers.Resource(lambda: 1 / 0)\n"
        "    settings = providers.Object({'server': {'name': 'needy'}})\n"
        "    tools = providers.List()\n",
    )
    assert json.loads(cli("install", "registry", "needy.py", "--url", URL).stdout)["name"] == "needy"
