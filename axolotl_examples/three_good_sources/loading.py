"""Registry files, verified and validated."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from axolotl_core import ConfigurationError
from axolotl_examples.three_good_sources.configuration import Configuration
from axolotl_examples.three_good_sources.findings import findings_of
from axolotl_examples.three_good_sources.keys import PublicKey, Signature
from axolotl_examples.three_good_sources.registry import Registry
from axolotl_examples.three_good_sources.rules import faults_of


class UntrustedRegistry(ConfigurationError):
    """The registry is not signed by the trusted curator, or was changed afterwards."""


@dataclass(frozen=True, slots=True)
class Seal:
    """The signature of a registry and the key that verifies it."""

    public_key: PublicKey
    signature: Signature


@dataclass(frozen=True, slots=True)
class RegistryFile:
    """A registry, the digest of its file, and its seal if it is signed."""

    name: str
    registry: Registry
    digest: str
    seal: Seal | None


def load_registry(configuration: Configuration) -> RegistryFile:
    """Read the registry. Its content is not parsed before its signature is verified.

    Raises `UntrustedRegistry` if the signature is missing or invalid, and `ConfigurationError` with all findings if a
    file cannot be read or the registry is invalid.
    """
    path, key_file = configuration.registry_file, configuration.public_key_file
    content = read_file(path)
    seal = None if key_file is None else _verify(path, content, read_public_key(key_file))
    registry = parse_registry(path.name, content)
    if registry.curator.pubkey != (seal and str(seal.public_key)):
        raise UntrustedRegistry(f"{path.name}: curator.pubkey: is not the key that this registry is verified with")
    return RegistryFile(path.name, registry, f"sha256:{hashlib.sha256(content).hexdigest()}", seal)


def parse_registry(name: str, content: bytes) -> Registry:
    """Parse and validate a registry. Raises `ConfigurationError` with all findings."""
    try:
        text = content.decode()
        json.loads(text, object_pairs_hook=_reject_duplicates)
        registry = Registry.model_validate_json(text)
    except ValidationError as error:
        raise ConfigurationError(*(f"{name}: {finding}" for finding in findings_of(error))) from None
    except json.JSONDecodeError as error:
        raise ConfigurationError(f"{name}: line {error.lineno}, column {error.colno}: {error.msg}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{name}: must be UTF-8") from None
    except RecursionError:
        raise ConfigurationError(f"{name}: is nested too deeply") from None
    except LookupError as error:
        raise ConfigurationError(f"{name}: {error.args[0]}") from None
    faults = [f"{name}: {fault}" for fault in faults_of(registry)]
    if faults:
        raise ConfigurationError(*faults)
    return registry


def read_public_key(path: Path) -> PublicKey:
    """Read a public key. Raises `ConfigurationError` if the file is unreadable or does not contain a key."""
    try:
        return PublicKey.parse(_text(read_file(path)))
    except ValueError as error:
        raise ConfigurationError(f"{path.name}: {error}") from None


def read_file(path: Path) -> bytes:
    """Read a file. Raises `ConfigurationError` if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{path.name}: cannot be read: {error.strerror}") from error


def signature_file(path: Path) -> Path:
    """Return the path of a registry's signature, which is next to the registry."""
    return path.with_name(f"{path.name}.sig")


def _verify(path: Path, content: bytes, trusted: PublicKey) -> Seal:
    beside = signature_file(path)
    if not beside.exists():
        raise UntrustedRegistry(f"{path.name}: is not signed: {beside.name} does not exist in the same directory")
    try:
        signature = Signature.parse(_text(read_file(beside)))
    except ValueError as error:
        raise UntrustedRegistry(f"{beside.name}: {error}") from None
    if not trusted.accepts(content, signature):
        raise UntrustedRegistry(
            f"{path.name}: the signature is invalid: the file or its signature was changed, "
            f"or it was not signed by {trusted}"
        )
    return Seal(trusted, signature)


def _text(content: bytes) -> str:
    return content.decode("ascii", "replace").strip()


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise LookupError(f"{repeated!r} occurs twice in one object")
    return members
