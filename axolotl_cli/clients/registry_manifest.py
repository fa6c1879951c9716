"""`server.json`, the description of a server in the MCP registry, whose publisher checks it."""

from collections.abc import Sequence
from typing import Any, Final

from axolotl_cli.clients.entry import is_secret_url, looks_secret
from axolotl_core.errors import ConfigurationError
from axolotl_server.settings.server import ServerSettings

SCHEMA: Final = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"


def server_manifest(
    settings: ServerSettings, name: str | None, packages: Sequence[str], variables: Sequence[str], url: str | None
) -> dict[str, Any]:
    """Describe a server: its identity in the settings, and the packages and the URL with which others get it."""
    server = settings.server
    icons = [
        {"src": one.src, "mimeType": one.mime_type, "sizes": one.sizes and list(one.sizes), "theme": one.theme}
        for one in server.icons
        if one.src.startswith("https:")
    ]
    manifest = {
        "$schema": SCHEMA,
        "name": name or server.name,
        "title": server.title,
        "description": server.description,
        "version": server.version,
        "websiteUrl": server.website_url,
        "icons": [{key: value for key, value in icon.items() if value} for icon in icons],
        "packages": [_package(one, server.version, variables) for one in packages],
        "remotes": [] if url is None else [_remote(url, settings)],
    }
    return {key: value for key, value in manifest.items() if value}


def _package(text: str, version: str, variables: Sequence[str]) -> dict[str, Any]:
    kind, _, identifier = text.partition(":")
    package: dict[str, Any] = {"registryType": kind, "identifier": identifier}
    if kind == "pypi":
        identifier, _, exact = identifier.partition("==")
        package |= {"identifier": identifier, "version": exact or version, "runtimeHint": "uvx"}
    elif kind == "oci":  # an image like the one of this project starts `axolotl`, which needs a command
        package |= {"runtimeHint": "docker", "packageArguments": [{"type": "positional", "value": "serve"}]}
    else:
        raise ConfigurationError(f"--package {text}: write pypi:NAME==VERSION or oci:IMAGE:TAG")
    package["transport"] = {"type": "stdio"}
    if variables:
        names = [one.partition("=")[0] for one in variables]
        package["environmentVariables"] = [
            {"name": one, "isRequired": True, "isSecret": looks_secret(one, "-")} for one in names
        ]
    return package


def _remote(url: str, settings: ServerSettings) -> dict[str, Any]:
    if is_secret_url(url):
        raise ConfigurationError("The URL contains a secret: remove it")
    remote: dict[str, Any] = {"type": "streamable-http", "url": url}
    if settings.auth.api_keys and not settings.auth.servers:
        header = {"description": "Bearer, a space and a key", "isRequired": True, "isSecret": True}
        remote["headers"] = [{"name": "Authorization", **header}]
    return remote
