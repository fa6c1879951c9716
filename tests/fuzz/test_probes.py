"""Tests of the messages that the fuzz suite sends."""

from tests.fuzz.framing import Request
from tests.fuzz.http_wire import owes_response
from tests.fuzz.judging import what_is_owed
from tests.fuzz.probes import make_probe

_MESSAGES = 300


def test_same_seed_gives_same_messages() -> None:
    """A message depends on the seed and its number only, so that it can be sent again alone."""
    first = [make_probe(7, number) for number in range(_MESSAGES)]
    second = [make_probe(7, number) for number in reversed(range(_MESSAGES))]
    assert first == second[::-1]
    assert [one.request(one.body, 1) for one in first] == [one.request(one.body, 1) for one in second[::-1]]
    assert first != [make_probe(8, number) for number in range(_MESSAGES)]


def test_messages_are_valid_and_invalid() -> None:
    """Both requests that must be answered and messages that are not requests are common."""
    asked = sum(what_is_owed(make_probe(1, number).body).asks for number in range(_MESSAGES))
    assert _MESSAGES * 0.3 < asked < _MESSAGES * 0.8


def test_incomplete_requests_are_owed_nothing() -> None:
    """A server waits for the rest of an incomplete request, but must respond to everything else."""
    whole = Request([(b"Host", b"x")], b"{}").encode()
    assert owes_response(whole)
    assert not owes_response(whole[:-1])
    assert owes_response(b"nonsense\r\n\r\n")
