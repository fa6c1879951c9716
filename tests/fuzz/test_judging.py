"""Tests of the judgement about replies."""

import json
from typing import Any

import pytest

from tests.fuzz.container import HIDDEN
from tests.fuzz.judging import Owed, faults_of, leaked, verdict_of, what_is_owed

_REQUEST = b'{"jsonrpc":"2.0","id":5,"method":"ping"}'
_REPLY = {"jsonrpc": "2.0", "id": 5, "result": {}}


def test_request_is_owed_one_reply() -> None:
    """A request is owed exactly one reply with its ID."""
    owed = what_is_owed(_REQUEST)
    assert faults_of([_REPLY], owed) == []
    assert faults_of([], owed) != []
    assert faults_of([_REPLY, _REPLY], owed) != []
    assert faults_of([{**_REPLY, "id": "5"}], owed) == ["the reply has another id"]


@pytest.mark.parametrize(
    "reply",
    [
        5,
        {"jsonrpc": "2.0", "id": 5},
        {**_REPLY, "error": {"code": 1, "message": "x"}},
        {**_REPLY, "result": []},
        {"jsonrpc": "2.0", "id": 5, "error": {"code": "x", "message": "x"}},
        {"jsonrpc": "2.0", "id": 5, "error": {"code": -32603, "message": "Internal error"}},
        {**_REPLY, "more": 1},
    ],
)
def test_malformed_replies_are_faults(reply: Any) -> None:
    """A reply has a result or an error, and an internal error has a reference or a hint."""
    assert len(faults_of([reply], what_is_owed(_REQUEST))) == 1


def test_notification_is_owed_nothing() -> None:
    """A notification gets no reply."""
    assert what_is_owed(b'{"jsonrpc":"2.0","method":"x"}').most == 0


@pytest.mark.parametrize("data", [b"", b"nonsense", b'{"id":1,"id":2}', b"5", b'{"jsonrpc":"2.0","id":1,"result":{}}'])
def test_other_messages_may_be_answered(data: bytes) -> None:
    """What is not a request may get one error."""
    assert what_is_owed(data) == Owed(0, 1)


def test_batch_is_answered_once_per_request() -> None:
    """The reply to a batch has one reply for each request in it."""
    owed = what_is_owed(b"[%b,%b]" % (_REQUEST, _REQUEST.replace(b"5", b'"a"')))
    other = {**_REPLY, "id": "a"}
    assert faults_of([[_REPLY, other]], owed) == []
    assert faults_of([[_REPLY, _REPLY]], owed) != []


def test_verdicts_and_secrets() -> None:
    """Errors are compared by code, and secrets are found."""
    assert verdict_of([{"error": {"code": -1}}]) == ("error", -1)
    assert verdict_of([_REPLY]) != verdict_of([])
    assert leaked(json.dumps({"text": HIDDEN}).encode())
