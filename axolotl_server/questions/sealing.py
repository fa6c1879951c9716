"""What a client carries from one round of a request to the next, sealed: it can neither read nor change it."""

import base64
import logging
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import msgspec

from axolotl_core.errors import ConfigurationError, InvalidParams, ToolError
from axolotl_core.protocol.identity import Principal
from axolotl_core.protocol.wire import canonical_json

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

MAX_TOKEN_LENGTH: Final = 64 * 1024
_MIN_KEY_LENGTH: Final = 16
_DIGEST_LENGTH: Final = 32
_VERSION: Final = b"\x01"
"""To be raised with every change of the content: what an older server sealed is then refused, not misread."""
_KEY_ID_BYTES: Final = 4
_HEAD_BYTES: Final = len(_VERSION) + _KEY_ID_BYTES
_NONCE_BYTES: Final = 12
_TAG_BYTES: Final = 16
_KEY_BYTES: Final = 32
_PURPOSE: Final = b"axolotl request state"

_log = logging.getLogger("axolotl")
_encode_sorted: Final = msgspec.json.Encoder(order="sorted").encode


class InvalidState(InvalidParams):
    """The request state was not sealed here for this request; why is logged and not told."""

    def __init__(self) -> None:
        super().__init__(
            "The request state cannot be used here: it was changed, has expired, or belongs to another request or "
            "caller; send the request again without requestState"
        )


class Answer(msgspec.Struct, frozen=True):
    """What a client answered in an earlier round, with the digest of the question that it read."""

    digest: str
    response: msgspec.Raw


class RoundState(msgspec.Struct, frozen=True):
    """All that is known after a round: the answers so far, and by key the digests of the questions just asked."""

    answers: dict[str, Answer] = {}
    asked: dict[str, str] = {}


class StateBinding(msgspec.Struct, frozen=True, array_like=True):
    """The only request that a state may come back with."""

    principal: tuple[str | None, ...]
    """The subject, its tenant, and its issuer if it has one."""
    method: str
    target: str
    """The name of the tool or prompt, or the URI."""
    digest: bytes
    """The digest of the arguments."""


class _Content(msgspec.Struct, frozen=True, array_like=True):
    expires: float
    answers: dict[str, tuple[str, bytes]]
    asked: dict[str, str]


_decode_content: Final = msgspec.msgpack.Decoder(_Content).decode


def binding_of(principal: Principal, method: str, target: str, arguments: bytes) -> StateBinding:
    """Tell a request from every other, whatever the order of keys and the whitespace in its arguments."""
    digest = sha256(canonical_json(arguments)).digest()
    issuer = () if principal.issuer is None else (principal.issuer,)
    return StateBinding((principal.subject, principal.tenant, *issuer), method, target, digest)


def question_digest(method: str, params: Mapping[str, Any]) -> str:
    """Tell a question from every other, in few characters."""
    return sha256(_encode_sorted((method, params))).hexdigest()[:_DIGEST_LENGTH]


class StateSealer:
    """Seals with the first key and opens with all of them, so that keys can be replaced while clients hold states.

    Without keys it makes one at random: other processes, and this one after a restart, cannot open what it sealed.

    Raises:
        ConfigurationError: if a key is too short.
    """

    def __init__(self, keys: Sequence[str], ttl_seconds: float, clock: Callable[[], float] = time.time) -> None:
        short = [place for place, key in enumerate(keys) if len(key) < _MIN_KEY_LENGTH]
        if short:
            raise ConfigurationError(*map(_complaint, short))
        self._keys = tuple(keys) or (secrets.token_urlsafe(_KEY_BYTES),)
        self._ttl_seconds = ttl_seconds
        self._clock = clock

    def seal(self, state: RoundState, binding: StateBinding) -> str:
        """Make a token of a state, for one request.

        Raises:
            ToolError: if the answers are too large to be carried.
        """
        answers = {key: (answer.digest, bytes(answer.response)) for key, answer in state.answers.items()}
        content = _Content(self._clock() + self._ttl_seconds, answers, state.asked)
        head, cipher = next(iter(self._ring.items()))
        nonce = os.urandom(_NONCE_BYTES)
        sealed = cipher.encrypt(nonce, msgspec.msgpack.encode(content), head + msgspec.msgpack.encode(binding))
        token = _to_text(head + nonce + sealed)
        if len(token) > MAX_TOKEN_LENGTH:
            raise ToolError(
                "The answers given so far are too large to be carried into the next round: sealed they may have "
                f"{MAX_TOKEN_LENGTH} characters and have {len(token)}; send shorter answers"
            )
        return token

    def open(self, token: str, binding: StateBinding) -> RoundState:
        """Give back the state that was sealed for this request.

        Raises:
            InvalidState: if there is none in the token that may be used here and now.
        """
        content = _decode_content(self._decrypt(_from_text(token), binding))
        if self._clock() >= content.expires:
            raise _refusal("it has expired")
        answers = {key: Answer(digest, msgspec.Raw(raw)) for key, (digest, raw) in content.answers.items()}
        return RoundState(answers, content.asked)

    def _decrypt(self, data: bytes, binding: StateBinding) -> bytes:
        from cryptography.exceptions import InvalidTag

        head, nonce, sealed = data[:_HEAD_BYTES], data[_HEAD_BYTES:][:_NONCE_BYTES], data[_HEAD_BYTES + _NONCE_BYTES :]
        cipher = self._ring.get(head)
        if cipher is None:
            raise _refusal("its version or its key is not known")
        try:
            return cipher.decrypt(nonce, sealed, head + msgspec.msgpack.encode(binding))
        except InvalidTag:
            raise _refusal("it was changed, or sealed for another request or caller") from None

    @cached_property
    def _ring(self) -> "dict[bytes, AESGCM]":
        """The keys by how their tokens begin; made when first needed, as most servers never seal."""
        ring: dict[bytes, AESGCM] = {}
        for key in self._keys:
            head, cipher = _derive(key)
            ring.setdefault(head, cipher)
        return ring


def _derive(key: str) -> "tuple[bytes, AESGCM]":
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    derived = HKDF(SHA256(), length=_KEY_BYTES + _KEY_ID_BYTES, salt=None, info=_PURPOSE).derive(key.encode())
    return _VERSION + derived[_KEY_BYTES:], AESGCM(derived[:_KEY_BYTES])


def _to_text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _from_text(token: str) -> bytes:
    if len(token) > MAX_TOKEN_LENGTH:
        raise _refusal("it is too long")
    try:
        data = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except ValueError:
        raise _refusal("it is not base64") from None
    # The decoder skips what it does not know and leaves spare bits unread: only one spelling may pass.
    if _to_text(data) != token:
        raise _refusal("it is not base64 as we write it")
    if len(data) < _HEAD_BYTES + _NONCE_BYTES + _TAG_BYTES:
        raise _refusal("it is too short")
    return data


def _refusal(reason: str) -> InvalidState:
    _log.info("a request state was refused: %s", reason)
    return InvalidState()


def _complaint(place: int) -> str:
    return (
        f"Setting protocol.state_keys.{place}: a key needs at least {_MIN_KEY_LENGTH} characters; make one with "
        "python -c 'import secrets; print(secrets.token_urlsafe(32))'"
    )
