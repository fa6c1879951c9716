"""Sealed states: bound to a request and a caller, and valid for a limited time."""

import base64
import json
import logging
import os
import subprocess
import sys
from typing import Any, Final

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from msgspec import Raw, structs

from axolotl_core.errors import ConfigurationError, InvalidParams, ToolError
from axolotl_core.protocol.identity import ANONYMOUS, Principal
from axolotl_server.calls.sealing import (
    MAX_TOKEN_LENGTH,
    Answer,
    InvalidState,
    RoundState,
    StateBinding,
    StateSealer,
    binding_of,
    question_digest,
)
from axolotl_server.settings.server import ServerSettings

KEY: Final = "an old key, kept to open"
NEW_KEY: Final = "a new key, which seals now"
TTL_SECONDS: Final = 60.0
ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
BINDING: Final = binding_of(Principal("ann", "acme"), "tools/call", "transfer", b'{"amount":5}')
STATE: Final = RoundState({"ask-1": Answer("d1", Raw(b'{"action":"accept"}'))}, {"ask-2": "d2"})
MADE_BEFORE: Final = (
    "AgBiFuKSp8AceXXi1EYWaDbYjrQOgGBmQJf4_s302vpAerkPYblJ9X5TZGA0rxGmuyX_2u"
    "JF62hcl54DMjle3v_Y9qtRcNtl1xnMzs61_7GRW5fpBdDl"
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(max_size=8), JSON, max_size=4)
ANSWERS = st.builds(Answer, st.text(max_size=32), JSON.map(lambda value: Raw(json.dumps(value).encode())))
STATES = st.builds(
    RoundState,
    st.dictionaries(st.text(max_size=8), ANSWERS, max_size=4),
    st.dictionaries(st.text(max_size=8), st.text(max_size=32), max_size=4),
    st.dictionaries(st.text(max_size=8), st.binary(max_size=32), max_size=4),
    st.text(max_size=32),
)
PRINCIPALS = st.builds(Principal, st.text(max_size=8), st.none() | st.text(max_size=8))
BINDINGS = st.builds(
    binding_of,
    PRINCIPALS,
    st.sampled_from(["tools/call", "prompts/get", "resources/read"]),
    st.text(max_size=8),
    OBJECTS.map(lambda value: json.dumps(value).encode()),
)


class Clock:
    """A manual clock."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def sealer_of(*keys: str, clock: Clock | None = None) -> StateSealer:
    return StateSealer(keys, TTL_SECONDS, clock or Clock())


def bytes_of(token: str) -> bytes:
    return base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))


def is_refused(token: str, sealer: StateSealer, binding: StateBinding = BINDING) -> bool:
    try:
        sealer.open(token, binding)
    except InvalidState:
        return True
    return False


@given(STATES, BINDINGS, st.lists(st.text(min_size=16, max_size=40), max_size=3))
def test_round_trip(state: RoundState, binding: StateBinding, keys: list[str]) -> None:
    """The opened state equals the sealed one, and the token is URL-safe."""
    sealer = sealer_of(*keys)
    token = sealer.seal(state, binding)
    assert set(token) <= set(ALPHABET)
    assert sealer.open(token, binding) == state


def test_a_token_made_before_still_opens() -> None:
    """A token of an earlier release can be opened, so releases can share keys."""
    assert sealer_of(KEY).open(MADE_BEFORE, BINDING) == STATE
    assert bytes_of(MADE_BEFORE)[0] == 2


@given(st.data(), STATES)
def test_any_change_is_noticed(data: st.DataObject, state: RoundState) -> None:
    """Any changed, removed or added character is detected."""
    sealer = sealer_of(KEY)
    token = sealer.seal(state, BINDING)
    place = data.draw(st.integers(0, len(token) - 1))
    letter = data.draw(st.sampled_from(ALPHABET + "+/= \n.é\ud800"))
    assume(letter != token[place])
    assert is_refused(token[:place] + letter + token[place + 1 :], sealer)
    assert is_refused(token[:place] + token[place + 1 :], sealer)
    assert is_refused(token[:place] + letter + token[place:], sealer)
    assert is_refused(token + letter, sealer)


@pytest.mark.parametrize("length", [0, 1, 2])
def test_only_one_spelling_is_accepted(length: int) -> None:
    """Each token has only one valid spelling."""
    sealer = sealer_of(KEY)
    token = sealer.seal(RoundState(asked={"x" * length: ""}), BINDING)
    opened = [letter for letter in ALPHABET if not is_refused(token[:-1] + letter, sealer)]
    assert opened == [token[-1]]
    assert is_refused(token + "=" * (-len(token) % 4 or 4), sealer)
    assert is_refused(f" {token}", sealer)


@given(st.text(max_size=100) | st.text(ALPHABET, max_size=100))
@example("")
@example("AQ")
def test_nonsense_is_refused(token: str) -> None:
    """Random texts are rejected."""
    assert is_refused(token, sealer_of(KEY))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param("principal", ("bob", "acme"), id="subject"),
        pytest.param("principal", ("ann", "other"), id="tenant"),
        pytest.param("principal", ("ann", None), id="no-tenant"),
        pytest.param("principal", ("anna", "cme"), id="shifted"),
        pytest.param("method", "prompts/get", id="method"),
        pytest.param("target", "withdraw", id="target"),
        pytest.param("digest", binding_of(ANONYMOUS, "", "", b'{"amount":6}').digest, id="arguments"),
    ],
)
def test_a_state_belongs_to_one_request(field: str, value: Any) -> None:
    """A state cannot be opened for another caller, method, target or arguments."""
    sealer = sealer_of(KEY)
    assert is_refused(sealer.seal(STATE, BINDING), sealer, structs.replace(BINDING, **{field: value}))


@given(BINDINGS, BINDINGS)
def test_bindings_are_told_apart(one: StateBinding, other: StateBinding) -> None:
    """A state opens only for an equal binding."""
    sealer = sealer_of(KEY)
    assert is_refused(sealer.seal(STATE, one), sealer, other) == (one != other)


@given(OBJECTS)
def test_how_arguments_are_written_does_not_matter(arguments: dict[str, Any]) -> None:
    """Arguments are compared regardless of key order, whitespace and escapes."""
    backwards = dict(reversed(arguments.items()))
    spellings = [
        json.dumps(arguments),
        json.dumps(backwards, indent=2, ensure_ascii=False),
        json.dumps(arguments, separators=(" , ", " : "), sort_keys=True),
    ]
    assert len({binding_of(ANONYMOUS, "tools/call", "echo", text.encode()) for text in spellings}) == 1


@given(JSON, JSON)
@example(0.1, "0.1")
@example(1, True)
@example({"1": 2}, [1, 2])
def test_what_arguments_say_matters(one: Any, other: Any) -> None:
    """Arguments of another value or type are different."""
    texts = [json.dumps(value, sort_keys=True) for value in (one, other)]
    bindings = [binding_of(ANONYMOUS, "tools/call", "echo", text.encode()) for text in texts]
    assert (bindings[0] == bindings[1]) == (texts[0] == texts[1])


def test_numbers_are_not_rounded() -> None:
    """Numbers are compared exactly, not as floats."""
    texts = [b"0.1", b"0.10000000000000000001", b"1e400", b"2e400", b"1" * 40, b"1" * 39 + b"2"]
    assert len({binding_of(ANONYMOUS, "tools/call", "echo", b'{"amount":%b}' % text).digest for text in texts}) == 6


@given(st.binary(max_size=40))
@example(b'"\\ud800"')
@example(b'"\xff"')
@example(b"[" * 10_000 + b"]" * 10_000)
def test_arguments_that_are_no_json_can_be_bound(arguments: bytes) -> None:
    """Arguments that are not valid JSON can be bound; validation rejects them later."""
    binding = binding_of(ANONYMOUS, "tools/call", "echo", arguments)
    assert binding == binding_of(ANONYMOUS, "tools/call", "echo", arguments)
    assert binding != binding_of(ANONYMOUS, "tools/call", "echo", b'{"no":"such"}')


def test_a_state_expires() -> None:
    """A state can be opened repeatedly until it expires."""
    clock = Clock()
    sealer = sealer_of(KEY, clock=clock)
    token = sealer.seal(STATE, BINDING)
    clock.now += TTL_SECONDS - 0.5
    assert not is_refused(token, sealer)
    assert not is_refused(token, sealer)
    clock.now += 0.5
    assert is_refused(token, sealer)


def test_keys_can_be_replaced() -> None:
    """Every key opens and the first one seals; a removed key opens nothing."""
    before, between, after = sealer_of(KEY), sealer_of(NEW_KEY, KEY), sealer_of(NEW_KEY)
    old, new = before.seal(STATE, BINDING), between.seal(STATE, BINDING)
    assert between.open(old, BINDING) == between.open(new, BINDING) == after.open(new, BINDING) == STATE
    assert is_refused(old, after)
    assert is_refused(new, before)


def test_without_keys_nobody_else_can_open() -> None:
    """Without configured keys, each sealer generates its own."""
    one, other = sealer_of(), sealer_of()
    token = one.seal(STATE, BINDING)
    assert one.open(token, BINDING) == STATE
    assert is_refused(token, other)


@given(st.text(ALPHABET, min_size=8, max_size=40))
def test_nothing_shows(secret: str) -> None:
    """Tokens reveal neither content nor binding, and have different ciphertexts."""
    state = RoundState({secret: Answer(secret, Raw(json.dumps(secret).encode()))}, {secret: secret})
    binding = binding_of(Principal(secret, secret), secret, secret, json.dumps(secret).encode())
    sealer = sealer_of(KEY)
    one, other = sealer.seal(state, binding), sealer.seal(state, binding)
    assert secret not in one
    assert secret.encode() not in bytes_of(one)
    assert bytes_of(one)[:5] == bytes_of(other)[:5]
    assert bytes_of(one)[5:17] != bytes_of(other)[5:17]
    assert bytes_of(one)[17:] != bytes_of(other)[17:]


def test_the_largest_state() -> None:
    """A state of the maximum size can be opened; a larger one is an error."""

    def state_of(length: int) -> RoundState:
        return RoundState({"k": Answer("d", Raw(b'"%b"' % (b"x" * length)))})

    sealer = sealer_of(KEY)
    overhead = len(bytes_of(sealer.seal(state_of(40_000), BINDING))) - 40_000
    largest = MAX_TOKEN_LENGTH // 4 * 3 - overhead
    token = sealer.seal(state_of(largest), BINDING)
    assert len(token) == MAX_TOKEN_LENGTH
    assert sealer.open(token, BINDING) == state_of(largest)
    with pytest.raises(ToolError, match="too large"):
        sealer.seal(state_of(largest + 1), BINDING)


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        pytest.param("A" * (MAX_TOKEN_LENGTH + 1), "too long", id="long"),
        pytest.param("AQID", "too short", id="short"),
        pytest.param("secret*", "not base64", id="letters"),
        pytest.param(sealer_of(NEW_KEY).seal(STATE, BINDING), "key is not known", id="key"),
        pytest.param(sealer_of(KEY).seal(STATE, structs.replace(BINDING, target="")), "another request", id="binding"),
        pytest.param(StateSealer([KEY], -1, Clock()).seal(STATE, BINDING), "expired", id="expired"),
    ],
)
def test_why_is_logged_and_not_told(token: str, reason: str, caplog: pytest.LogCaptureFixture) -> None:
    """The client gets the same error for every reason; the log has the reason, without the token."""
    with caplog.at_level(logging.INFO, "axolotl"), pytest.raises(InvalidParams) as caught:
        sealer_of(KEY).open(token, BINDING)
    assert caught.value.message == (
        "The request state cannot be used here: it was changed, has expired, or belongs to another request or caller; "
        "send the request again without requestState"
    )
    assert (caught.value.code, caught.value.data) == (-32602, None)
    [record] = caplog.records
    assert (record.name, record.levelno) == ("axolotl", logging.INFO)
    assert reason in record.getMessage()
    assert token[:6] not in record.getMessage()


def test_short_keys_end_the_start() -> None:
    """The server does not start with a short key, whose position is reported."""
    with pytest.raises(ConfigurationError) as caught:
        sealer_of("hunter2", KEY, "")
    assert [finding.partition(":")[0] for finding in caught.value.findings] == [
        "Setting protocol.state_keys.0",
        "Setting protocol.state_keys.2",
    ]
    assert "hunter2" not in str(caught.value)


def test_keys_in_the_settings_are_not_shown() -> None:
    """Keys are not shown when settings are printed."""
    settings = ServerSettings.model_validate({"protocol": {"state_keys": [KEY]}})
    assert [key.get_secret_value() for key in settings.protocol.state_keys] == [KEY]
    assert KEY not in repr(settings)
    assert KEY not in settings.model_dump_json()


@given(OBJECTS)
def test_a_question_has_a_digest(params: dict[str, Any]) -> None:
    """The digest of a question does not depend on the order of its members."""
    digest = question_digest("sampling/createMessage", params)
    assert len(digest) == 32
    assert question_digest("sampling/createMessage", dict(reversed(params.items()))) == digest
    assert question_digest("elicitation/create", params) != digest
    assert question_digest("sampling/createMessage", {**params, "longer than any": 1}) != digest


def test_a_server_that_never_seals_pays_nothing() -> None:
    """Creating a sealer does not import the cryptography library; sealing does."""
    program = (
        "import sys; from axolotl_server.calls.sealing import *\n"
        "sealer = StateSealer([], 60)\n"
        "assert 'cryptography' not in sys.modules\n"
        "sealer.seal(RoundState(), StateBinding(('', None), '', '', b''))\n"
        "assert 'cryptography' in sys.modules\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
