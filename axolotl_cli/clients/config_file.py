"""Configuration files of MCP clients: JSON, replaced atomically."""

import json
import os
import stat
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from axolotl_cli.clients.entry import ClientEntry
from axolotl_core.errors import ConfigurationError

_OWN_KEYS: Final = ("type", "command", "args", "env", "url", "headers")
"""The keys that we write; others belong to the user."""


class InvalidConfigFile(Exception):
    """The file is not JSON, or cannot hold the entry; the message explains why."""


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for key, value in pairs:
        if key in members:
            raise ValueError(f"the key {json.dumps(key)} occurs twice in one object")
        members[key] = value
    return members


@dataclass(frozen=True, slots=True)
class ClientFile:
    """A client's configuration file with the content that it had when it was read."""

    path: Path
    content: bytes | None
    """None if the file does not exist yet."""

    @classmethod
    def read(cls, path: Path, inside: Path | None = None) -> "ClientFile":
        """Read a file, which may not exist yet; a symbolic link stays one, and the file behind it is changed.

        Raises `ConfigurationError` if the file is not `inside` a directory: somebody else may have made the link.
        """
        try:
            real = path.resolve()
            if inside is not None and not real.is_relative_to(inside.resolve()):
                raise ConfigurationError(
                    f"{path} was not changed: it leads to {real}, outside the project; remove the symbolic link, "
                    "or name the file with --config"
                )
            return cls(real, real.read_bytes() if real.exists() else None)
        except OSError as error:
            raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from None

    def with_entry(self, entry: ClientEntry, *, force: bool = False) -> str | None:
        """Return the text with an entry added, or None if the file already has it.

        Raises `InvalidConfigFile` if it cannot be added without losing something, such as a comment.
        """
        if self.content is None or not self.content.strip():
            return json.dumps(entry.document, indent=2, ensure_ascii=False) + "\n"
        return merge(self.content, entry, force=force)

    def write(self, text: str) -> Path | None:
        """Replace the file atomically and return the path of its backup.

        Raises `ConfigurationError` if the file cannot be written, or has changed since it was read.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            backup = None if self.content is None else self._back_up(self.content)
            self._replace(text.encode("utf-8"))
        except OSError as error:
            raise ConfigurationError(f"{self.path} cannot be written: {error.strerror}") from None
        return backup

    def _back_up(self, content: bytes) -> Path:
        number = 0
        while True:
            backup = self.path.with_name(f"{self.path.name}.bak{number or ''}")
            number += 1
            with suppress(FileExistsError):
                with open(backup, "xb", opener=lambda name, flags: os.open(name, flags, self._mode())) as stream:
                    stream.write(content)
                return backup

    def _replace(self, content: bytes) -> None:
        descriptor, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            os.chmod(temporary, self._mode())
            if self.content != (self.path.read_bytes() if self.path.exists() else None):
                raise ConfigurationError(f"{self.path} was changed by another program just now: try again")
            os.replace(temporary, self.path)
        except BaseException:
            os.unlink(temporary)
            raise

    def _mode(self) -> int:
        """Keep the permissions; a new file is private, because secrets may be added to it later."""
        return 0o600 if self.content is None else stat.S_IMODE(self.path.stat().st_mode)


def merge(content: bytes, entry: ClientEntry, *, force: bool = False) -> str | None:
    """Return the text of a file with an entry added to its values, or None if it has the entry.

    Raises `InvalidConfigFile` if the file cannot hold the entry, and `ConfigurationError` if it has a different one of
    the same name, unless `force` is given.
    """
    try:
        document = json.loads(
            content.decode("utf-8-sig"), object_pairs_hook=_refuse_duplicates, parse_constant=_refuse_constant
        )
        if not isinstance(document, dict):
            raise InvalidConfigFile("it is not a JSON object")
        added = [_add_server(document, entry, force)]
        for needed in entry.inputs:
            inputs = document.setdefault("inputs", [])
            if not isinstance(inputs, list):
                raise InvalidConfigFile("inputs is not an array")
            added.append(not any(isinstance(one, dict) and one.get("id") == needed["id"] for one in inputs))
            if added[-1]:
                inputs.append(dict(needed))
        text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        text.encode()
    except UnicodeError:
        raise InvalidConfigFile("it is not UTF-8") from None
    except ValueError as error:
        raise InvalidConfigFile(f"it is not JSON, or has comments ({error})") from None
    except RecursionError:
        raise InvalidConfigFile("it is nested too deeply") from None
    return text if any(added) else None


def _add_server(document: dict[str, Any], entry: ClientEntry, force: bool) -> bool:
    servers = document.setdefault(entry.section, {})
    if not isinstance(servers, dict):
        raise InvalidConfigFile(f"{entry.section} is not an object")
    present = servers.get(entry.name, {})
    old = present if isinstance(present, dict) else {}
    # An empty value may also be missing, and so may the transport, which other keys imply.
    pairs = {key: (old.get(key), entry.server.get(key)) for key in _OWN_KEYS}
    different = [
        key for key, (had, has) in pairs.items() if had != has and (had and has if key == "type" else had or has)
    ]
    if entry.name in servers and present is old and not different:
        return False
    if entry.name in servers and not force:
        raise ConfigurationError(
            f"The file already has a different server {entry.name!r} (different {' and '.join(different) or 'value'}): "
            "choose another name with --name, or replace it with --force"
        )
    users = {key: value for key, value in old.items() if key not in _OWN_KEYS}
    servers[entry.name] = {**entry.server, **users}
    return True
