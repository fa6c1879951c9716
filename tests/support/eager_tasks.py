"""A task factory that runs the first step of a task at once, as `asyncio.eager_task_factory` does since Python 3.12."""

import asyncio
import sys
import types
from asyncio.tasks import _enter_task, _leave_task
from collections.abc import Coroutine, Generator
from contextvars import copy_context
from typing import Any

Step = tuple[bool, Any]
"""Whether the code goes on, and what it has yielded, returned or raised."""


def start_at_once(
    loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any], **options: Any
) -> "asyncio.Task[Any]":
    """Make a task and run its first step."""
    if sys.version_info >= (3, 12):
        return asyncio.eager_task_factory(loop, coroutine, **options)
    context = options.pop("context", None) or copy_context()
    first: list[Step] = []
    task = asyncio.Task(_after(first, coroutine), loop=loop, context=context, **options)
    outer = asyncio.current_task(loop)
    if outer is not None:
        _leave_task(loop, outer)
    _enter_task(loop, task)
    first.append(context.run(_first_step, coroutine))
    _leave_task(loop, task)
    if outer is not None:
        _enter_task(loop, outer)
    return task


def _first_step(coroutine: Coroutine[Any, Any, Any]) -> Step:
    try:
        return True, coroutine.send(None)
    except StopIteration as ended:
        return False, ended.value
    except Exception as error:
        return False, error


@types.coroutine
def _after(first: list[Step], coroutine: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Continue after the first step."""
    goes_on, result = first[0]
    if isinstance(result, Exception):
        raise result
    try:
        while goes_on:
            try:
                sent = yield result
            except BaseException as error:
                result = coroutine.throw(error)
            else:
                result = coroutine.send(sent)
    except StopIteration as ended:
        return ended.value
    return result
