"""The sealed state that a client carries between rounds and can neither read nor change."""

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
from axolotl_core.protocol.wire import canonical_json, encode_sorted, read_base64url

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

MAX_TOKEN_LENGTH: Final = 64 * 1024
TTL_SECONDS: Final = 600.0
"""How long a client may take to answer a question in the stateless revision."""
_MIN_KEY_LENGTH: Final = 16
_DIGEST_LENGTH: Final = 32
_VERSION: Final = b"\x02"
"""To be raised when the content changes: state that an older server sealed is then refused, not misread."""
_KEY_ID_BYTES: Final = 4
_HEAD_BYTES: Final = len(_VERSION) + _KEY_ID_BYTES
_NONCE_BYTES: Final = 12
_TAG_BYTES: Final = 16
_KEY_BYTES: Final = 32
_PURPOSE: Final = b"axolotl request state"

_log = logging.getLogger("axolotl")


class InvalidState(InvalidParams):
    """The request state was not sealed here for this request; the reason is logged, but not sent."""

    def __init__(self) -> None:
        super().__init__(
            "The request state cannot be used here: it was changed, has expired, or belongs to another request or "
            "caller; send the request again without requestState"
        )


class Answer(msgspec.Struct, frozen=True):
    """An answer of an earlier round, with the digest of its question."""

    digest: str
    response: msgspec.Raw


class RoundState(msgspec.Struct, frozen=True):
    """The answers after a round, and by key the digests of the questions that were just asked."""

    answers: dict[str, Answer] = {}
    asked: dict[str, str] = {}
    steps: dict[str, bytes] = {}
    """The results of steps, as JSON."""
    call_key: str = ""
    """Identifies the call in all of its rounds, if it has steps."""


class StateBinding(msgspec.Struct, frozen=True, array_like=True):
    """The only request that a state is valid for."""

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
    steps: dict[str, bytes]
    call_key: str


_decode_content: Final = msgspec.msgpack.Decoder(_Content).decode


def binding_of(principal: Principal, method: str, target: str, arguments: bytes) -> StateBinding:
    """Identify a request, whatever the order of keys and the whitespace in its arguments."""
    digest = sha256(canonical_json(arguments)).digest()
    issuer = () if principal.issuer is None else (principal.issuer,)
    return StateBinding((principal.subject, principal.tenant, *issuer), method, target, digest)


def question_digest(method: str, params: Mapping[str, Any]) -> str:
    """Identify a question in a few characters."""
    return sha256(encode_sorted((method, params))).hexdigest()[:_DIGEST_LENGTH]


class Unsealable(ValueError):
    """The data was changed, was sealed for something else, or has an unknown key; the text says what."""


class UnknownKey(Unsealable):
    """The data was sealed with a key that this process does not have."""


class KeyRing:
    """Encrypts with the first key and decrypts with all of them, so that keys can be rotated.

    Keys for different purposes are derived from the same secrets.
    """

    def __init__(self, keys: Sequence[str], purpose: bytes) -> None:
        self._keys = tuple(keys)
        self._purpose = purpose

    def encrypt(self, content: bytes, bound_to: bytes) -> bytes:
        """Encrypt content that can be decrypted only together with the same `bound_to`."""
        head, cipher = next(iter(self._ciphers.items()))
        nonce = os.urandom(_NONCE_BYTES)
        return head + nonce + cipher.encrypt(nonce, content, head + bound_to)

    def decrypt(self, data: bytes, bound_to: bytes) -> bytes:
        """Decrypt data, or raise Unsealable."""
        from cryptography.exceptions import InvalidTag

        if len(data) < _HEAD_BYTES + _NONCE_BYTES + _TAG_BYTES:
            raise Unsealable("it is too short")
        head, nonce, sealed = data[:_HEAD_BYTES], data[_HEAD_BYTES:][:_NONCE_BYTES], data[_HEAD_BYTES + _NONCE_BYTES :]
        cipher = self._ciphers.get(head)
        if cipher is None:
            known = data.startswith(_VERSION)
            raise UnknownKey("its key is not known") if known else Unsealable("its version is not known")
        try:
            return cipher.decrypt(nonce, sealed, head + bound_to)
        except InvalidTag:
            raise Unsealable("it was changed, or sealed for another request or caller") from None

    @cached_property
    def _ciphers(self) -> "dict[bytes, AESGCM]":
        """The ciphers by the first bytes of their data; made when first needed, because most servers never seal."""
        ciphers: dict[bytes, AESGCM] = {}
        for key in self._keys:
            head, cipher = _derive(key, self._purpose)
            ciphers.setdefault(head, cipher)
        return ciphers


class StateSealer:
    """Seals with the first key and opens with all of them, so that keys can be rotated while clients hold states.

    Without keys it makes a random one: other processes, and this one after a restart, cannot open its tokens. A key
    that is too short raises ConfigurationError.
    """

    def __init__(self, keys: Sequence[str], ttl_seconds: float, clock: Callable[[], float] = time.time) -> None:
        short = [place for place, key in enumerate(keys) if len(key) < _MIN_KEY_LENGTH]
        if short:
            raise ConfigurationError(
                *(
                    f"Setting protocol.state_keys.{place}: a key needs at least {_MIN_KEY_LENGTH} characters. Make one "
                    "with python -c 'import secrets; print(secrets.token_urlsafe(32))'"
                    for place in short
                )
            )
        self._ring = KeyRing(tuple(keys) or (secrets.token_urlsafe(_KEY_BYTES),), _PURPOSE)
        self._ttl_seconds = ttl_seconds
        self._clock = clock

    def seal(self, state: RoundState, binding: StateBinding) -> str:
        """Make a token of a state for one request, or raise ToolError if its content is too large."""
        answers = {key: (answer.digest, bytes(answer.response)) for key, answer in state.answers.items()}
        content = _Content(self._clock() + self._ttl_seconds, answers, state.asked, state.steps, state.call_key)
        token = _to_text(self._ring.encrypt(msgspec.msgpack.encode(content), msgspec.msgpack.encode(binding)))
        if len(token) > MAX_TOKEN_LENGTH:
            raise ToolError(
                f"The answers and steps so far are too large for the next round: sealed they have {len(token)} "
                f"characters, and {MAX_TOKEN_LENGTH} are allowed; send shorter answers"
            )
        return token

    def open(self, token: str, binding: StateBinding) -> RoundState:
        """Return the state that was sealed for this request, or raise InvalidState if the token is not valid for it."""
        try:
            content = _decode_content(self._ring.decrypt(_from_text(token), msgspec.msgpack.encode(binding)))
        except Unsealable as error:
            raise _refusal(str(error)) from None
        if self._clock() >= content.expires:
            raise _refusal("it has expired")
        answers = {key: Answer(digest, msgspec.Raw(raw)) for key, (digest, raw) in content.answers.items()}
        return RoundState(answers, content.asked, content.steps, content.call_key)


def _derive(key: str, purpose: bytes) -> "tuple[bytes, AESGCM]":
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    derived = HKDF(SHA256(), length=_KEY_BYTES + _KEY_ID_BYTES, salt=None, info=purpose).derive(key.encode())
    return _VERSION + derived[_KEY_BYTES:], AESGCM(derived[:_KEY_BYTES])


def _to_text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _from_text(token: str) -> bytes:
    if len(token) > MAX_TOKEN_LENGTH:
        raise _refusal("it is too long")
    try:
        data = read_base64url(token)
    except ValueError:
        raise _refusal("it is not base64") from None
    # The decoder ignores spare bits, so only the one spelling that we write is accepted.
    if _to_text(data) != token:
        raise _refusal("it is not canonical base64")
    return data


def _refusal(reason: str) -> InvalidState:
    _log.info("a request state was refused: %s", reason)
    return InvalidState()
