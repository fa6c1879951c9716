"""`axolotl manifest`: configuration for clients and registries."""

import json
import re
from typing import Any

import pytest

from axolotl_cli.clients.registry_manifest import Publication, ownership_proofs, server_manifest
from axolotl_core.errors import ConfigurationError
from axolotl_server.settings.server import ServerSettings
from tests.cli.conftest import CommandLine

SAMPLE = "tests.support.containers.command_containers:Container"
NAME = "io.github.acme/greeter"
IDENTITY = {"name": "greeter", "version": "1.2.0", "description": "Greets people."}
URL = "https://mcp.example.com/mcp"
IMAGE = "registry.example.com/acme/greeter:1.2.0"


def manifest(publication: Publication, **sections: Any) -> dict[str, Any]:
    """Describe a server with these settings."""
    sections["server"] = {**IDENTITY, **sections.get("server", {})}
    return server_manifest(ServerSettings.model_validate(sections), publication)


def check_documented(document: dict[str, Any]) -> None:
    """Check a manifest against the schema of 2025-12-11 and the rules of the official registry."""
    assert document["$schema"] == "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
    assert {"name", "description", "version"} <= document.keys()
    known = {"$schema", "name", "title", "description", "version", "websiteUrl", "repository", "icons"}
    assert document.keys() <= known | {"packages", "remotes"}
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", document["name"])
    assert 3 <= len(document["name"]) <= 200
    assert 1 <= len(document["description"]) <= 100
    assert 1 <= len(document["version"]) <= 255
    assert document.get("repository", {"url": 1, "source": 1}).keys() == {"url", "source"}
    assert all(icon["src"].startswith("https://") for icon in document.get("icons", []))
    for package in document.get("packages", []):
        assert {"registryType", "identifier", "transport"} <= package.keys()
        assert package["transport"] == {"type": "stdio"}
        assert ("version" in package) is (package["registryType"] != "oci")
        assert all({"type", "value"} <= one.keys() for one in package.get("packageArguments", []))
        assert all("name" in one for one in package.get("environmentVariables", []))
    for remote in document.get("remotes", []):
        assert remote["type"] == "streamable-http"
        assert re.fullmatch(r"https?://[^\s]+", remote["url"])
        assert all("name" in one for one in remote.get("headers", []))


def test_server_json(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The manifest has all required fields, from the settings and the command line."""
    for key, value in {**IDENTITY, "title": "Greeter", "website_url": "https://acme.example"}.items():
        monkeypatch.setenv(f"AXOLOTL_SERVER__{key.upper()}", value)
    words = [
        "--name",
        NAME,
        "--package",
        "pypi:acme-greeter",
        "--package",
        f"oci:{IMAGE}",
    ]
    words += ["--url", URL, "--env", "ACME_TOKEN", "--env", "ACME_REGION"]
    answer = cli("manifest", "server.json", SAMPLE, *words, "--repository", "https://github.com/acme/greeter.git")
    assert answer.code == 0, answer.stderr
    document = json.loads(answer.stdout)
    check_documented(document)
    assert document["title"] == "Greeter"
    assert document["websiteUrl"] == "https://acme.example"
    assert document["repository"] == {"url": "https://github.com/acme/greeter", "source": "github"}
    python, image = document["packages"]
    assert (python["identifier"], python["version"], python["runtimeHint"]) == ("acme-greeter", "1.2.0", "uvx")
    assert "packageArguments" not in python
    assert image["packageArguments"] == [{"type": "positional", "value": "serve"}]
    assert [(one["name"], one["isSecret"]) for one in image["environmentVariables"]] == [
        ("ACME_TOKEN", True),
        ("ACME_REGION", False),
    ]
    assert document["remotes"] == [{"type": "streamable-http", "url": URL}]
    assert answer.stderr.splitlines() == [
        f"The README of acme-greeter must contain: mcp-name: {NAME}",
        f"The image {IMAGE} must have the label io.modelcontextprotocol.server.name={NAME}",
    ]


def test_all_errors_are_reported_at_once(cli: CommandLine) -> None:
    """Everything that a registry would refuse is reported at once, with what to do."""
    words = ["--package", "npm:x", "--package", "pypi:x==1.*", "--url", "http://localhost/mcp", "--repository", "x"]
    answer = cli("manifest", "server.json", SAMPLE, *words, "--env", "A=1")
    assert (answer.code, answer.stdout) == (2, "")
    stderr = answer.stderr
    assert "is not a valid name in a registry" in stderr
    assert "set server.description" in stderr
    assert "--package npm:x: write pypi:NAME==VERSION or oci:IMAGE:TAG" in stderr
    assert "--package pypi:x==1.*: name an exact version" in stderr
    assert "--url: a registry lists servers with a public URL" in stderr
    assert "--repository: use https://github.com/OWNER/NAME" in stderr
    assert "--env needs the name of a variable" in stderr


@pytest.mark.parametrize(
    ("identity", "problem"),
    [
        ({"description": "x" * 101}, "server.description has 101 characters"),
        ({"title": "x" * 101}, "server.title has 101 characters"),
        ({"version": "latest"}, "server.version is 'latest'"),
        ({"version": "^1.2"}, "server.version is '^1.2'"),
        ({"version": "1.x"}, "server.version is '1.x'"),
        ({"website_url": "acme"}, "server.website_url is not a URL"),
    ],
)
def test_invalid_identities(identity: dict[str, str], problem: str) -> None:
    """Limits of the schema are checked."""
    with pytest.raises(ConfigurationError, match=re.escape(problem)):
        manifest(Publication(NAME, url=URL), server=identity)


@pytest.mark.parametrize(
    "publication",
    [
        Publication("greeter", url=URL),
        Publication("acme/greeter", url=URL),
        Publication("io.github.acme/a/b", url=URL),
        Publication("io.github.-acme/a", url=URL),
        Publication(NAME),
        Publication(NAME, url="https://127.0.0.1/mcp"),
        Publication(NAME, url="https://user:secret@mcp.example.com/mcp"),
        Publication(NAME, packages=["oci:acme/greeter"]),
        Publication(NAME, packages=["pypi:"]),
    ],
)
def test_invalid_publications(publication: Publication) -> None:
    """Names, URLs and packages must be valid in a registry, and no secret is printed."""
    with pytest.raises(ConfigurationError) as refusal:
        manifest(publication)
    assert "secret" not in str(refusal.value)


def test_api_keys_are_declared() -> None:
    """A server with API keys declares the header; with an authorization server, clients discover it."""
    key = {"hash": "sha256:" + "0" * 64}
    (remote,) = manifest(Publication(NAME, url=URL), auth={"api_keys": {"a": key}})["remotes"]
    (header,) = remote["headers"]
    assert (header["name"], header["isRequired"], header["isSecret"]) == ("Authorization", True, True)
    auth = {"api_keys": {"a": key}, "issuers": ["https://login.example.com"], "resource": URL}
    assert "headers" not in manifest(Publication(NAME, url=URL), auth=auth)["remotes"][0]


def test_icons() -> None:
    """Icons at a URL are included; icons in the settings are not."""
    icons = [
        {"src": "https://acme.example/a.png", "mime_type": "image/png", "sizes": ["48x48"]},
        {"src": "data:image/png;base64,AAAA"},
        {"src": "https://acme.example/a.gif", "mime_type": "image/gif"},
    ]
    document = manifest(Publication(NAME, url=URL), server={"icons": icons})
    check_documented(document)
    assert document["icons"] == [{"src": "https://acme.example/a.png", "mimeType": "image/png", "sizes": ["48x48"]}]


def test_arguments_of_packages() -> None:
    """Arguments for the program replace the default one of an image."""
    packages = ["oci:registry.example.com/acme/greeter:1", "pypi:acme-greeter@2.0"]
    document = manifest(Publication(NAME, packages, arguments=["serve", "greeter.py"]))
    check_documented(document)
    for package in document["packages"]:
        assert [one["value"] for one in package["packageArguments"]] == ["serve", "greeter.py"]
    assert document["packages"][1]["version"] == "2.0"
    assert len(list(ownership_proofs(document))) == 2


def test_mcp_json(cli: CommandLine) -> None:
    """The manifest for clients is what `install json` prints, without messages."""
    for words in ([SAMPLE, "--name", "a", "--env", "A=1"], ["--url", URL, "--name", "b", "--token-env", "T"]):
        answer = cli("manifest", "mcp.json", *words)
        assert (answer.code, answer.stderr) == (0, "")
        assert answer.stdout == cli("install", "json", *words).stdout
    entry = json.loads(answer.stdout)["mcpServers"]["b"]
    assert entry == {"type": "http", "url": URL, "headers": {"Authorization": "Bearer ${T}"}}


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
    assert list(json.loads(cli("manifest", "mcp.json", "needy.py").stdout)["mcpServers"]) == ["needy"]
