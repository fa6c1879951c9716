"""The time limit for code supplied by users."""

import asyncio

import pytest

from axolotl_server.execution.time_limit import CodeExited, NoAnswer, answer_within


async def test_the_answer() -> None:
    """A result in time is returned, and an error is raised unchanged."""

    async def fail() -> None:
        raise TimeoutError("of the code itself")

    assert await answer_within(5, lambda: asyncio.sleep(0, "answer")) == "answer"
    with pytest.raises(TimeoutError, match="of the code itself") as caught:
        await answer_within(5, fail)
    assert not isinstance(caught.value, NoAnswer)


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()])
async def test_code_that_tries_to_end_the_process(error: BaseException) -> None:
    """The event loop and the caller see only an ordinary exception."""

    async def leave() -> None:
        raise error

    with pytest.raises(CodeExited, match=type(error).__name__) as caught:
        await answer_within(5, leave)
    assert caught.value.__cause__ is error


@pytest.mark.parametrize("last", [None, ValueError("too late"), SystemExit(3)])
async def test_code_that_ignores_its_cancellation(last: BaseException | None, caplog: pytest.LogCaptureFixture) -> None:
    """The code is abandoned, and its later result is ignored."""
    release, ended = asyncio.Event(), asyncio.Event()

    async def cling() -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        ended.set()
        if last is not None:
            raise last

    with pytest.raises(NoAnswer, match=r"no answer within 0\.01 seconds"):
        await answer_within(0.01, cling)
    release.set()
    await ended.wait()
    await asyncio.sleep(0)
    assert not caplog.messages


async def test_a_caller_that_leaves() -> None:
    """When the caller is canceled, the work is canceled too."""
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    caller = asyncio.ensure_future(answer_within(5, work))
    await begun.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    await cancelled.wait()
