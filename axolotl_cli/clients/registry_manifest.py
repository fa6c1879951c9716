"""`server.json`, the description of a server in the MCP registry."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from axolotl_cli.clients.entry import is_secret_url, looks_secret
from axolotl_core.errors import ConfigurationError
from axolotl_server.settings.server import ServerIdentity, ServerSettings
from axolotl_server.urls import is_loopback

SCHEMA: Final = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"

_LABEL: Final = "[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_NAME: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})+/[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_VERSION: Final = re.compile(r"[0-9A-Za-z](?:[0-9A-Za-z.+_-]*[0-9A-Za-z])?")
_RANGE: Final = re.compile(r"(?:.*\.)?[xX*](?:\..*)?")
_PYPI: Final = re.compile(r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?:(?:==|@)(?P<version>\S+))?")
_OCI: Final = re.compile(r"[a-z0-9][a-z0-9._:/-]*[a-z0-9](?::[\w][\w.-]{0,127}|@sha256:[0-9a-f]{64})")
_REPOSITORY: Final = re.compile(r"https://(?P<source>github|gitlab)\.com/[\w.-]+/[\w.-]+")
_IMAGE_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/jpg", "image/svg+xml", "image/webp"})


@dataclass(frozen=True, slots=True)
class Publication:
    """Facts that a registry needs besides the settings."""

    name: str | None = None
    packages: Sequence[str] = ()
    """Packages with the server, in the form `pypi:NAME==VERSION` or `oci:IMAGE:TAG`."""
    arguments: Sequence[str] = ()
    """Arguments for the program in a package."""
    variables: Sequence[str] = ()
    """Environment variables that users of a package have to set."""
    url: str | None = None
    repository: str | None = None


def server_manifest(settings: ServerSettings, publication: Publication) -> dict[str, Any]:
    """Describe a server; raise `ConfigurationError` with everything that a registry would refuse."""
    server, findings = settings.server, list[str]()
    name = publication.name or server.name
    packages = [_package(one, publication, server.version, findings) for one in publication.packages]
    remotes = [] if publication.url is None else [_remote(publication.url, settings, findings)]
    findings += _problems_of(name, server)
    if not packages and not remotes:
        findings.append("A registry needs a way to get the server: add --package, --url or both")
    manifest = {
        "$schema": SCHEMA,
        "name": name,
        "title": server.title,
        "description": server.description,
        "version": server.version,
        "websiteUrl": server.website_url,
        "repository": _repository(publication.repository, findings),
        "icons": list(_icons(server)),
        "packages": packages,
        "remotes": remotes,
    }
    if findings:
        raise ConfigurationError(*findings)
    return {key: value for key, value in manifest.items() if value}


def ownership_proofs(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Describe where a registry looks for the name, to verify that the publisher owns a package."""
    for package in manifest.get("packages", ()):
        if package["registryType"] == "pypi":
            yield f"The README of {package['identifier']} must contain: mcp-name: {manifest['name']}"
        else:
            label = f"io.modelcontextprotocol.server.name={manifest['name']}"
            yield f"The image {package['identifier']} must have the label {label}"


def _problems_of(name: str, server: ServerIdentity) -> Iterator[str]:
    if _NAME.fullmatch(name) is None or len(name) > 200:
        yield f"{name!r} is not a valid name in a registry: use --name with a name such as io.github.acme/greeter"
    if not server.description:
        yield "A registry needs a description: set server.description"
    elif len(server.description) > 100:
        yield f"server.description has {len(server.description)} characters; a registry allows 100"
    if server.title is not None and len(server.title) > 100:
        yield f"server.title has {len(server.title)} characters; a registry allows 100"
    if not _is_version(server.version):
        yield f"server.version is {server.version!r}; a registry needs an exact version, for example 1.2.0"
    if server.website_url is not None and not server.website_url.startswith(("https://", "http://")):
        yield "server.website_url is not a URL"


def _is_version(text: str) -> bool:
    """Tell whether a text is one version and not a range of versions."""
    exact = _VERSION.fullmatch(text) is not None and _RANGE.fullmatch(text) is None
    return exact and text != "latest" and len(text) <= 255


def _package(text: str, publication: Publication, version: str, findings: list[str]) -> dict[str, Any]:
    kind, _, identifier = text.partition(":")
    common = {
        "transport": {"type": "stdio"},
        "packageArguments": [{"type": "positional", "value": one} for one in _arguments(kind, publication)],
        "environmentVariables": [_variable(one, findings) for one in publication.variables],
    }
    package: dict[str, Any] = {}
    if kind == "pypi" and (match := _PYPI.fullmatch(identifier)):
        package = {"registryType": kind, "identifier": match["name"], "version": match["version"] or version}
        package["runtimeHint"] = "uvx"
        if not _is_version(package["version"]):
            findings.append(f"--package {text}: name an exact version, for example pypi:acme-greeter==1.2.0")
    elif kind == "oci" and _OCI.fullmatch(identifier):
        package = {"registryType": kind, "identifier": identifier, "runtimeHint": "docker"}
    else:
        findings.append(f"--package {text}: write pypi:NAME==VERSION or oci:IMAGE:TAG")
    return {**package, **{key: value for key, value in common.items() if value}}


def _arguments(kind: str, publication: Publication) -> Sequence[str]:
    # An image like the one of this project starts `axolotl`, which needs a command.
    return publication.arguments or (["serve"] if kind == "oci" else [])


def _variable(name: str, findings: list[str]) -> dict[str, Any]:
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) is None:
        findings.append("--env needs the name of a variable, without a value")
    return {"name": name.partition("=")[0], "isRequired": True, "isSecret": looks_secret(name, "-")}


def _remote(url: str, settings: ServerSettings, findings: list[str]) -> dict[str, Any]:
    host = urlsplit(url).hostname if re.fullmatch(r"https://[^\s/@]+(?:/\S*)?", url) else None
    if host is None or is_loopback(host) or is_secret_url(url):
        findings.append("--url: a registry lists servers with a public URL, for example https://mcp.example.com/mcp")
    remote: dict[str, Any] = {"type": "streamable-http", "url": url}
    if settings.auth.api_keys and not settings.auth.servers:
        header = {"description": "Bearer, a space and a key", "isRequired": True, "isSecret": True}
        remote["headers"] = [{"name": "Authorization", **header}]
    return remote


def _repository(url: str | None, findings: list[str]) -> dict[str, str] | None:
    if url is None:
        return None
    match = _REPOSITORY.fullmatch(url.removesuffix("/").removesuffix(".git"))
    if match is None:
        findings.append("--repository: use https://github.com/OWNER/NAME or https://gitlab.com/OWNER/NAME")
        return None
    return {"url": match[0], "source": match["source"]}


def _icons(server: ServerIdentity) -> Iterator[dict[str, Any]]:
    """Select the icons that a registry accepts: those at a URL, of a known type."""
    for icon in server.icons:
        if icon.src.startswith("https:") and len(icon.src) <= 255 and icon.mime_type in {None, *_IMAGE_TYPES}:
            sizes = None if icon.sizes is None else list(icon.sizes)
            described = {"src": icon.src, "mimeType": icon.mime_type, "sizes": sizes, "theme": icon.theme}
            yield {key: value for key, value in described.items() if value}
