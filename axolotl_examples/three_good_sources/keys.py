"""Ed25519 keys and signatures, and their text formats."""

import base64
import binascii
import string
from dataclasses import dataclass
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

_KEY_BYTES: Final = 32
_SIGNATURE_BYTES: Final = 64

_BASE32: Final = string.ascii_uppercase + "234567"
_Z_BASE32: Final = "ybndrfg8ejkmcpqxot1uwisza345h769"
_TO_Z: Final = str.maketrans(_BASE32, _Z_BASE32, "=")
_FROM_Z: Final = str.maketrans(_Z_BASE32, _BASE32)
_IN_Z: Final = frozenset(_Z_BASE32)


@dataclass(frozen=True, slots=True)
class Signature:
    """An Ed25519 signature, written in base64."""

    raw: bytes

    @classmethod
    def parse(cls, text: str) -> "Signature":
        """Parse a signature. Raises `ValueError` unless the text is its canonical form."""
        try:
            raw = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raw = b""
        signature = cls(raw)
        if len(raw) != _SIGNATURE_BYTES or str(signature) != text:
            raise ValueError("must be an Ed25519 signature: 64 bytes in base64")
        return signature

    def __str__(self) -> str:
        return base64.b64encode(self.raw).decode()


@dataclass(frozen=True, slots=True)
class PublicKey:
    """An Ed25519 public key, written in z-base-32 as in PKARR."""

    raw: bytes

    @classmethod
    def of(cls, private_key: Ed25519PrivateKey) -> "PublicKey":
        """Return the public key of a private key."""
        return cls(private_key.public_key().public_bytes_raw())

    @classmethod
    def parse(cls, text: str) -> "PublicKey":
        """Parse a key. Raises `ValueError` unless the text is its canonical form."""
        raw = _from_z_base32(text) if _IN_Z.issuperset(text) else b""
        key = cls(raw)
        if len(raw) != _KEY_BYTES or str(key) != text:
            raise ValueError("must be a PKARR public key: 52 characters of z-base-32")
        return key

    def accepts(self, content: bytes, signature: Signature) -> bool:
        """Return whether the signature of the content was made with this key pair."""
        try:
            Ed25519PublicKey.from_public_bytes(self.raw).verify(signature.raw, content)
        except InvalidSignature:
            return False
        return True

    def __str__(self) -> str:
        return base64.b32encode(self.raw).decode().translate(_TO_Z)


def _from_z_base32(text: str) -> bytes:
    try:
        return base64.b32decode(text.translate(_FROM_Z) + "=" * (-len(text) % 8))
    except binascii.Error:
        return b""
