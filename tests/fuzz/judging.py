"""What a message is owed, and whether what came back is a valid reply to it."""

import json
import re
from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import msgspec

from axolotl_core.protocol.messages import MAX_NAME_LENGTH
from tests.fuzz.container import HIDDEN, TOKEN

Key: TypeAlias = Hashable
"""An ID with its type, so that 1 and "1" differ; None if there is none."""
Verdict: TypeAlias = tuple[object, ...]
"""What a client can tell from the replies: results, errors by code, or nothing."""

_MAX_ID: Final = 2**53 - 1
_INTERNAL: Final = -32603
_ANSWERED: Final = re.compile("declined|refused to answer|answer")
"""Part of errors that the client caused by its answer to a question."""
_SECRETS: Final = (HIDDEN.encode(), TOKEN.encode())


@dataclass(frozen=True)
class Owed:
    """The replies that a message is owed."""

    least: int = 0
    most: int = 1
    keys: frozenset[Key] | None = None
    """The IDs that the reply may have; None if it may have any."""
    cancels: Key = None
    """The ID of the request that the message cancels."""
    items: Counter[Key] | None = None
    """The IDs of the requests in a batch."""
    listens: bool = False
    """Whether the reply may be an acknowledgement of a subscription."""
    asks: bool = False
    """Whether the message is one request whose reply has its ID."""

    @property
    def key(self) -> Key:
        """The ID of the reply to a request."""
        return next(iter(self.keys)) if self.asks and self.keys else None


class _Repeated(Exception):
    """An object has two members of the same name."""


def what_is_owed(data: bytes) -> Owed:
    """Find out, without the code under test, which replies a message is owed."""
    if not data.strip(b" \t\r"):
        return Owed()
    try:
        message = json.loads(data.decode(), object_pairs_hook=_members)
    except (_Repeated, ValueError, RecursionError):
        return Owed()
    clean = _is_clean(data)
    if isinstance(message, list):
        items = None if not clean or b"cancelled" in data else Counter(filter(None, map(_request_key, message)))
        return Owed(items=items)
    if not isinstance(message, dict) or not _has_envelope(message):
        return Owed()
    if "id" not in message:
        return Owed(0, 0 if clean else 1, frozenset({None}), _cancelled(message))
    key = _request_key(message)
    if key is None:
        return Owed(1, 1)
    if message["method"] == "subscriptions/listen":
        return Owed(0, 1, frozenset({key, None}), listens=True)
    return Owed(1, 1, frozenset({key}), asks=True) if clean else Owed(1, 1, frozenset({key, None}))


def is_answer(data: bytes) -> bool:
    """Return whether a message is an answer to a question, which gets no reply."""
    if not _is_clean(data):
        return False
    message = json.loads(data)
    return isinstance(message, dict) and not {"method", "error"} & set(message) and "result" in message


def key_of(identifier: Any) -> Key:
    """Return an ID with its type; None for what cannot be an ID."""
    return (type(identifier).__name__, identifier) if isinstance(identifier, str | int | float) else None


def faults_of(replies: list[Any], owed: Owed) -> list[str]:
    """Check all replies to one message."""
    found = [fault for reply in replies for fault in _faults(reply, owed)]
    if not owed.least <= len(replies) <= owed.most:
        found.append(f"{len(replies)} replies instead of {owed.least} to {owed.most}")
    return found


def verdict_of(replies: list[Any]) -> Verdict:
    """Reduce replies to what must be the same on all transports."""
    if not replies:
        return ("nothing",)
    if isinstance(replies[0], list):
        return ("batch", *sorted(map(str, (verdict_of([reply]) for reply in replies[0]))))
    error = replies[0].get("error")
    if error is not None:
        return ("error", error.get("code"))
    result = replies[0].get("result")
    if not isinstance(result, dict):
        return ("malformed",)
    return ("result", bool(result.get("isError")), result.get("resultType"))


def leaked(data: bytes) -> bool:
    """Return whether something contains a secret."""
    return any(secret in data for secret in _SECRETS)


def _faults(reply: Any, owed: Owed) -> list[str]:
    if isinstance(reply, list):
        return _faults_of_batch(reply, owed)
    if not isinstance(reply, dict) or reply.get("jsonrpc") != "2.0" or ("result" in reply) == ("error" in reply):
        return ["the reply is not a JSON-RPC response"]
    found = [] if set(reply) <= {"jsonrpc", "id", "result", "error"} else ["the reply has unknown members"]
    if owed.keys is not None and key_of(reply.get("id")) not in owed.keys:
        found.append("the reply has another id")
    if "result" in reply:
        return found if isinstance(reply["result"], dict) else [*found, "the result is not an object"]
    return found + _faults_of_error(reply["error"])


def _faults_of_error(error: Any) -> list[str]:
    if not isinstance(error, dict) or type(error.get("code")) is not int or not isinstance(error.get("message"), str):
        return ["the error has no code or no message"]
    if error["code"] == _INTERNAL and not hinted(error.get("data")) and not _ANSWERED.search(error["message"]):
        return ["an internal error has neither a reference nor a hint when to try again"]
    return []


def hinted(data: Any) -> bool:
    """Return whether an error has a reference to the log or a hint when to try again."""
    return isinstance(data, Mapping) and ("reference" in data or "retryAfterMs" in data)


def _faults_of_batch(replies: list[Any], owed: Owed) -> list[str]:
    found = [fault for reply in replies for fault in _faults(reply, Owed())]
    if owed.items is not None and not found:
        keys = Counter(key_of(reply.get("id")) for reply in replies)
        if any(keys[key] != count for key, count in owed.items.items()):
            found.append("a batch is not answered once per request")
    return found


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _Repeated
    return members


def _is_clean(data: bytes) -> bool:
    """Return whether every parser reads a message alike, and a server has no reason to refuse it as a whole."""
    try:
        msgspec.json.decode(data)
        json.loads(data, object_pairs_hook=_members)
    except (ValueError, RecursionError, _Repeated):
        return False
    return len(data) < 1_000_000 and data.count(b"[") + data.count(b"{") < 64 and b"\\ud" not in data.lower()


def _has_envelope(message: dict[str, Any]) -> bool:
    method = message.get("method")
    return message.get("jsonrpc") == "2.0" and isinstance(method, str) and len(method) <= MAX_NAME_LENGTH


def _request_key(message: Any) -> Key:
    """Return the ID of a valid request; None if the message is something else."""
    identifier = message.get("id") if isinstance(message, dict) and _has_envelope(message) else None
    if isinstance(identifier, str):
        return key_of(identifier) if len(identifier) <= MAX_NAME_LENGTH else None
    if type(identifier) is int and abs(identifier) <= _MAX_ID:
        return key_of(identifier)
    return None


def _cancelled(message: dict[str, Any]) -> Key:
    params = message.get("params")
    return key_of(params.get("requestId")) if isinstance(params, dict) else None
