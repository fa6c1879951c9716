"""Encryption of stored tasks: whoever can write to the store can neither read nor forge them."""

import hmac
import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from axolotl_core.errors import ConfigurationError
from axolotl_server.calls.sealing import KeyRing, UnknownKey, Unsealable
from axolotl_server.settings.secret_files import UnreadableFile, read_small

_PURPOSE: Final = b"axolotl task"
_KEY_BYTES: Final = 32
_MAX_KEY_FILE_BYTES: Final = 1024
MARK_BYTES: Final = 32


class TaskPlace(NamedTuple):
    """The task that a sealed value belongs to."""

    id: str
    owner: bytes
    tool: str
    expires_at: float


class UnreadableTask(Exception):
    """A stored value cannot be used."""


class ForeignTask(UnreadableTask):
    """A stored value was sealed with a key that this process does not have; others may have it."""


class TaskSealer:
    """Seals values for one place in one task."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._ring = KeyRing(keys, _PURPOSE)
        self._digest_keys = tuple(dict.fromkeys(key.encode() for key in keys))

    @property
    def rotates(self) -> bool:
        """Whether there are several secrets, which other processes may have in another order."""
        return len(self._digest_keys) > 1

    def seal(self, value: bytes, place: TaskPlace, kind: str, key: str = "") -> bytes:
        """Encrypt a value of a kind, and its key within the task."""
        return self._ring.encrypt(value, _bound(place, kind, key))

    def digests(self, key: bytes) -> tuple[bytes, ...]:
        """Make an idempotency key unreadable with each secret; a task is stored with the digest of the first one."""
        return tuple(hmac.digest(secret, _PURPOSE + b" key" + key, "sha256") for secret in self._digest_keys)

    def open(self, sealed: bytes, place: TaskPlace, kind: str, key: str = "") -> bytes:
        """Decrypt a value, or raise UnreadableTask if it was not sealed for exactly this place."""
        try:
            return self._ring.decrypt(sealed, _bound(place, kind, key))
        except UnknownKey:
            raise ForeignTask(
                f"task {place.id} is encrypted with a key that this process does not have: set protocol.state_keys to "
                "the same keys on all servers and workers"
            ) from None
        except Unsealable as error:
            raise UnreadableTask(f"task {place.id}: its {kind} cannot be used: {error}") from None


def mark_of(question: bytes) -> bytes:
    """Identify a sealed question, of which no two are alike; its answer begins with this."""
    return sha256(question).digest()


def _bound(place: TaskPlace, kind: str, key: str) -> bytes:
    return msgspec.msgpack.encode((place.id, bytes(place.owner), place.tool, place.expires_at, kind, key))


def key_beside(path: Path) -> str:
    """Read the key from a file that is private to this user or root; create the file if it does not exist."""
    try:
        if not path.exists():
            _create_key(path)
        return read_small(path, _MAX_KEY_FILE_BYTES, is_private=True)
    except OSError as error:
        raise ConfigurationError(f"Setting tasks.url: {path} cannot be used: {error.strerror}") from error
    except UnreadableFile as error:
        raise ConfigurationError(f"Setting tasks.url: the key file {path} cannot be used: {error}") from None


def _create_key(path: Path) -> None:
    """Create a key at once, because other processes may look for it at the same time."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(secrets.token_urlsafe(_KEY_BYTES))
        file.flush()
        os.fsync(file.fileno())
    with suppress(FileExistsError):  # another process was faster
        os.link(draft, path)
    draft.unlink()
