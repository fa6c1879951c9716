"""Cancellation: the first reason counts, and each callback runs once."""

import logging
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from axolotl_core.calls.cancellation import CancellationToken, CancelReason
from axolotl_core.errors import ToolCancelled


def test_a_new_token_is_not_cancelled() -> None:
    """A call is not cancelled at first."""
    token = CancellationToken()
    token.raise_if_cancelled()
    assert (token.cancelled, token.reason) == (False, None)


@pytest.mark.parametrize("reason", list(CancelReason))
def test_a_cancelled_token_knows_why(reason: CancelReason) -> None:
    """The reason is kept, and is part of the exception."""
    token = CancellationToken()
    assert token.cancel(reason)
    assert (token.cancelled, token.reason) == (True, reason)
    with pytest.raises(ToolCancelled, match=rf"cancelled \({reason.value}\)"):
        token.raise_if_cancelled()


def test_the_first_reason_stands() -> None:
    """A second cancellation changes nothing and returns False."""
    token = CancellationToken()
    assert token.cancel(CancelReason.TIMEOUT)
    assert not token.cancel(CancelReason.CLIENT)
    assert token.reason is CancelReason.TIMEOUT


def test_callbacks_run_once_in_order_with_the_reason() -> None:
    """Each callback runs once."""
    token = CancellationToken()
    heard: list[tuple[str, CancelReason]] = []
    token.on_cancel(lambda reason: heard.append(("first", reason)))
    token.on_cancel(lambda reason: heard.append(("second", reason)))
    token.cancel(CancelReason.SHUTDOWN)
    token.cancel(CancelReason.CLIENT)
    assert heard == [("first", CancelReason.SHUTDOWN), ("second", CancelReason.SHUTDOWN)]


def test_a_late_callback_runs_at_once() -> None:
    """A callback added after the cancellation runs immediately."""
    token = CancellationToken()
    token.cancel(CancelReason.CLIENT)
    heard: list[CancelReason] = []
    token.on_cancel(heard.append)
    assert heard == [CancelReason.CLIENT]


def test_a_callback_finds_the_token_cancelled() -> None:
    """The reason is set before callbacks run, so they can read it or add other callbacks."""
    token = CancellationToken()
    heard: list[object] = []
    token.on_cancel(lambda _: heard.append(token.reason))
    token.on_cancel(lambda _: token.on_cancel(heard.append))
    token.cancel(CancelReason.DISCONNECT)
    assert heard == [CancelReason.DISCONNECT, CancelReason.DISCONNECT]


def test_a_callback_that_fails_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    """A tool's broken callback is logged; the others run and the call still ends."""
    token = CancellationToken()
    heard: list[CancelReason] = []

    def broken(reason: CancelReason) -> None:
        raise RuntimeError("broken callback")

    token.on_cancel(broken)
    token.on_cancel(heard.append)
    with caplog.at_level(logging.ERROR, "axolotl"):
        assert token.cancel(CancelReason.TIMEOUT)
    assert heard == [CancelReason.TIMEOUT]
    assert "broken callback" in caplog.text


@pytest.fixture
def restless_threads() -> Iterator[None]:
    """Let threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("restless_threads")
def test_no_callback_is_lost_between_threads() -> None:
    """A callback added in a thread during the cancellation runs once."""
    ready = Barrier(2)
    rounds = 2_000
    tokens = [CancellationToken() for _ in range(rounds)]
    heard: list[int] = []

    def ask() -> None:
        for number, token in enumerate(tokens):
            ready.wait(10)
            token.on_cancel(lambda _, number=number: heard.append(number))  # type: ignore[misc]

    def cancel() -> None:
        for token in tokens:
            ready.wait(10)
            token.cancel(CancelReason.CLIENT)

    with ThreadPoolExecutor(2) as pool:
        for running in (pool.submit(ask), pool.submit(cancel)):
            running.result(60)
    assert sorted(heard) == list(range(rounds))


@pytest.mark.usefixtures("restless_threads")
def test_only_one_of_several_cancellations_counts() -> None:
    """If several threads cancel at the same time, only one gets True."""
    ready = Barrier(len(CancelReason))
    tokens = [CancellationToken() for _ in range(500)]

    def cancel(reason: CancelReason) -> int:
        won = 0
        for token in tokens:
            ready.wait(10)
            won += token.cancel(reason)
        return won

    with ThreadPoolExecutor(len(CancelReason)) as pool:
        assert sum(pool.map(cancel, CancelReason)) == len(tokens)
