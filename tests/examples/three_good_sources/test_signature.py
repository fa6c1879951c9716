"""Signatures of registries."""

import base64
import string
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from dependency_injector import providers

from axolotl_core import ConfigurationError
from axolotl_examples.three_good_sources import Container
from axolotl_examples.three_good_sources.loading import UntrustedRegistry
from axolotl_server import connect
from tests.examples.three_good_sources.desk import Desk

BASE64 = string.ascii_letters + string.digits + "+/="
Z_BASE32 = "ybndrfg8ejkmcpqxot1uwisza345h769"


@pytest.fixture
def other_desk(tmp_path: Path) -> Desk:
    """Another curator with a different key."""
    (tmp_path / "other").mkdir()
    return Desk(tmp_path / "other")


def next_of(character: str, alphabet: str) -> str:
    return alphabet[(alphabet.index(character) + 1) % len(alphabet)]


def test_every_byte_of_the_content(desk: Desk) -> None:
    """Changing any byte of the registry invalidates the signature."""
    content, seal = desk.registry.read_bytes(), desk.load().seal
    assert seal is not None
    assert seal.public_key.accepts(content, seal.signature)
    for position in range(len(content)):
        changed = bytearray(content)
        changed[position] ^= 1
        assert not seal.public_key.accepts(bytes(changed), seal.signature)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda content: content.replace(b"example.org", b"example.com", 1), id="url"),
        pytest.param(lambda content: content.replace(b'"rank": 1', b'"rank": 2', 1), id="rank"),
        pytest.param(lambda content: content.replace(b"Ada", b"Eve"), id="curator"),
        pytest.param(lambda content: content.replace(b": ", b":\t", 1), id="white-space"),
        pytest.param(lambda content: content[:-1], id="shorter"),
        pytest.param(lambda content: content + b"\n", id="longer"),
        pytest.param(lambda content: content.replace(b", ", b",\r\n"), id="line-endings"),
        pytest.param(lambda content: b"", id="empty"),
    ],
)
def test_changed_content(desk: Desk, change: Any) -> None:
    """A changed registry is rejected before it is parsed, even if its meaning is the same."""
    before = desk.registry.read_bytes()
    desk.registry.write_bytes(change(before))
    assert desk.registry.read_bytes() != before
    with pytest.raises(UntrustedRegistry, match=r"^registry\.json: the signature is invalid"):
        desk.load()


def test_every_character_of_the_signature(desk: Desk) -> None:
    """Changing any character of the signature invalidates it; each signature has only one text."""
    text = desk.signature.read_text(encoding="ascii").strip()
    for position, character in enumerate(text):
        desk.signature.write_text(text[:position] + next_of(character, BASE64) + text[position + 1 :], encoding="ascii")
        with pytest.raises(UntrustedRegistry):
            desk.load()


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\x00" * 64, id="raw"),
        pytest.param(base64.b64encode(bytes(63)), id="short"),
        pytest.param(base64.b64encode(bytes(65)), id="long"),
        pytest.param("ä".encode(), id="letters"),
    ],
)
def test_no_signature(desk: Desk, content: bytes) -> None:
    """A malformed signature has its own error."""
    desk.signature.write_bytes(content)
    with pytest.raises(UntrustedRegistry, match=r"^registry\.json\.sig: must be an Ed25519 signature"):
        desk.load()


def test_zero_signature(desk: Desk) -> None:
    """A signature of zeros is invalid."""
    desk.signature.write_bytes(base64.b64encode(bytes(64)))
    with pytest.raises(UntrustedRegistry, match="the signature is invalid"):
        desk.load()


def test_missing_signature(desk: Desk) -> None:
    """A registry without a signature is rejected."""
    desk.signature.unlink()
    with pytest.raises(UntrustedRegistry, match=r"is not signed: registry\.json\.sig does not exist"):
        desk.load()


def test_signature_of_another_file(desk: Desk) -> None:
    """The signature of an older version does not match a newer one."""
    desk.write(lambda document: document.update(version="0.2.0"))
    with pytest.raises(UntrustedRegistry, match="the signature is invalid"):
        desk.load()


def test_every_character_of_the_key(desk: Desk) -> None:
    """Changing any character of the trusted key invalidates the signature."""
    for position, character in enumerate(desk.pubkey):
        changed = desk.pubkey[:position] + next_of(character, Z_BASE32) + desk.pubkey[position + 1 :]
        desk.public_key.write_text(changed, encoding="ascii")
        with pytest.raises(ConfigurationError):
            desk.load()


@pytest.mark.parametrize("text", ["", "y" * 51, "y" * 53, "l" * 52, "0" * 52, "Y" * 52])
def test_no_key(desk: Desk, text: str) -> None:
    """A malformed key is reported."""
    desk.public_key.write_text(text, encoding="ascii")
    with pytest.raises(ConfigurationError, match=r"^curator\.key\.pub: must be a PKARR public key"):
        desk.load()


def test_another_key(desk: Desk, other_desk: Desk) -> None:
    """A valid signature of another curator is rejected."""
    desk.registry.write_bytes(other_desk.registry.read_bytes())
    desk.signature.write_bytes(other_desk.signature.read_bytes())
    with pytest.raises(UntrustedRegistry, match=f"was not signed by {desk.pubkey}$"):
        desk.load()


def test_borrowed_name(desk: Desk, other_desk: Desk) -> None:
    """A registry that names a different key than its signer is rejected."""
    desk.write(lambda document: document["curator"].update(pubkey=other_desk.pubkey))
    with pytest.raises(ConfigurationError, match=f"must be {desk.pubkey} to be signed"):
        desk.sign()


def test_wrong_name_under_a_good_signature(desk: Desk) -> None:
    """A registry with a valid signature must name the signer as its curator."""
    desk.write(lambda document: document["curator"].update(pubkey=None))
    key = load_pem_private_key(desk.private_key.read_bytes(), password=None)
    assert isinstance(key, Ed25519PrivateKey)
    desk.signature.write_bytes(base64.b64encode(key.sign(desk.registry.read_bytes())))
    with pytest.raises(UntrustedRegistry, match=r"^registry\.json: curator\.pubkey: is not the key"):
        desk.load()


async def test_server_does_not_start(desk: Desk) -> None:
    """The server does not start with a modified registry."""
    desk.registry.write_bytes(desk.registry.read_bytes().replace(b"example.org", b"example.com"))
    container: Any = Container()
    container.configuration.override(providers.Object(desk.configuration))
    with pytest.raises(ConfigurationError, match="the signature is invalid"):
        async with connect(container):
            pass
