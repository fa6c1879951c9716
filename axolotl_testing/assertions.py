"""Assertions about results and refusals, with messages that show each difference."""

import re
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel, TypeAdapter

from axolotl_core.protocol.result_keys import META_PREFIX
from axolotl_server.client.replies import CallReply, PromptReply, RemoteError, ResourceReply

_FAILURE: Final = "_error"
"""How the reasons of hidden exceptions end, which are not refusals."""
_NUMBER: Final = (bool, int, float)
_SHOWN: Final = 20
"""How many findings a message shows."""


def assert_result(outcome: CallReply | PromptReply | ResourceReply, expected: Any) -> None:
    """Assert that a call succeeded with this result; a message shows each difference by its JSON path.

    A string is compared with the text of the result, everything else with the structured content. `expected` can be a
    model, or contain objects with an `==` of their own.
    """
    __tracebackhide__ = True
    if isinstance(outcome, CallReply) and outcome.is_error:
        raise AssertionError(f"The call failed: {outcome.text}")
    wanted = _as_json(expected)
    structured = getattr(outcome, "structured", None)
    actual = outcome.text if structured is None or (isinstance(wanted, str) and wanted != structured) else structured
    found = [*_differences(wanted, actual, "$")]
    if found:
        raise AssertionError(f"The result differs:{indented(found)}")


def assert_tool_error(outcome: CallReply, match: str | None = None) -> str:
    """Assert that a call failed, with a text in which `match` is found, a regular expression; return the text."""
    __tracebackhide__ = True
    if not outcome.is_error:
        raise AssertionError(f"The call did not fail. Its result is: {outcome.text}")
    _match(match, outcome.text)
    return outcome.text


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request that the server refused."""

    reason: str | None
    """The keyword of the refusal, for example `forbidden`, `quota` or `overloaded`; None if it has none."""
    message: str
    code: int | None = None
    """The code of the JSON-RPC error; None if the refusal is a result of the tool."""


async def assert_refused(request: Awaitable[Any], reason: str | None = None, *, match: str | None = None) -> Refusal:
    """Await a request, and assert that the server refuses it instead of running the code, or stops it.

    A refusal is a JSON-RPC error, or a failed result with a `reason`. With `reason`, it must have this one, and `match`
    is a regular expression that must be found in its message.
    """
    __tracebackhide__ = True
    try:
        outcome = await request
    except RemoteError as error:
        data = error.data if isinstance(error.data, Mapping) else {}
        refusal = Refusal(data.get("reason"), error.message, error.code)
    else:
        meta = getattr(outcome, "meta", {})
        if not getattr(outcome, "is_error", False):
            text = getattr(outcome, "text", outcome)
            raise AssertionError(f"The request was not refused. Its result is: {text}")
        given = meta.get(f"{META_PREFIX}reason", meta.get("reason"))
        if given is None or given.endswith(_FAILURE):
            raise AssertionError(f"The request was not refused, but the tool failed: {outcome.text}")
        refusal = Refusal(given, outcome.text)
    if reason is not None and refusal.reason != reason:
        raise AssertionError(f"The reason is {refusal.reason!r} instead of {reason!r}: {refusal.message}")
    _match(match, refusal.message)
    return refusal


def _match(pattern: str | None, text: str) -> None:
    __tracebackhide__ = True
    if pattern is not None and re.search(pattern, text) is None:
        raise AssertionError(f"The message does not match {pattern!r}: {text}")


def _as_json(expected: Any) -> Any:
    if isinstance(expected, BaseModel):
        return TypeAdapter(type(expected)).dump_python(expected, mode="json", by_alias=True)
    return expected


def _differences(expected: Any, actual: Any, path: str) -> Iterator[str]:
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        for name in dict.fromkeys((*expected, *actual)):
            place = f"{path}.{name}" if str(name).isidentifier() else f"{path}[{name!r}]"
            if name not in actual:
                yield f"{place}: missing, expected {expected[name]!r}"
            elif name not in expected:
                yield f"{place}: not expected, is {actual[name]!r}"
            else:
                yield from _differences(expected[name], actual[name], place)
    elif _is_list(expected) and _is_list(actual):
        for index, (one, other) in enumerate(zip(expected, actual, strict=False)):
            yield from _differences(one, other, f"{path}[{index}]")
        if len(expected) != len(actual):
            yield f"{path}: has {len(actual)} items instead of {len(expected)}"
    elif expected != actual or (
        isinstance(actual, bool) != isinstance(expected, bool) and isinstance(expected, _NUMBER)
    ):
        yield f"{path}: is {actual!r} instead of {expected!r}"


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def indented(findings: Sequence[str]) -> str:
    """Write each finding on a line of its own, but not more than twenty."""
    more = [f"and {len(findings) - _SHOWN} more"] if len(findings) > _SHOWN else []
    return "".join(f"\n  {one}" for one in [*findings[:_SHOWN], *more])
