"""Key pairs and signatures for curators."""

import os
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from axolotl_core import ConfigurationError
from axolotl_examples.three_good_sources.keys import PublicKey, Signature
from axolotl_examples.three_good_sources.loading import parse_registry, read_file, signature_file


def make_key_pair(path: Path) -> PublicKey:
    """Write a new private key, readable only by its owner, and the public key next to it.

    Raises `ConfigurationError` if one of the files exists or cannot be written.
    """
    public_file = public_key_file(path)
    if path.exists() or public_file.exists():
        raise ConfigurationError(f"{path.name} or {public_file.name} already exists; keys are never overwritten")
    private_key = Ed25519PrivateKey.generate()
    public_key = PublicKey.of(private_key)
    pem = private_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    _write(path, pem, os.O_EXCL, mode=0o600)
    _write(public_file, f"{public_key}\n".encode(), os.O_EXCL)
    return public_key


def sign_registry(path: Path, key: Path) -> PublicKey:
    """Write the signature of a registry next to it.

    Raises `ConfigurationError` if the key or the registry is invalid, or if the registry names another key.
    """
    private_key, content = _read_private_key(key), read_file(path)
    public_key = PublicKey.of(private_key)
    if parse_registry(path.name, content).curator.pubkey != str(public_key):
        raise ConfigurationError(f"{path.name}: curator.pubkey: must be {public_key} to be signed with {key.name}")
    _write(signature_file(path), f"{Signature(private_key.sign(content))}\n".encode(), os.O_TRUNC)
    return public_key


def public_key_file(private: Path) -> Path:
    """Return the path of the public key, which is next to the private key."""
    return private.with_name(f"{private.name}.pub")


def _read_private_key(path: Path) -> Ed25519PrivateKey:
    try:
        key = load_pem_private_key(read_file(path), password=None)
    except (ValueError, TypeError):  # not PEM, or protected by a password
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise ConfigurationError(f"{path.name}: must be an Ed25519 private key in PEM, without a password")
    return key


def _write(path: Path, content: bytes, disposition: int, mode: int = 0o644) -> None:
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | disposition, mode), "wb") as file:
            file.write(content)
    except OSError as error:
        raise ConfigurationError(f"{path.name}: cannot be written: {error.strerror}") from error
