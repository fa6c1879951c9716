"""What the client in the same process says when the server asks."""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, Union

import msgspec
from pydantic import BaseModel

from axolotl_core.roots import Root

if TYPE_CHECKING:
    from axolotl_core.sampling import Sample

__all__ = ["ACCEPT", "CANCEL", "DECLINE", "EVERYTHING", "Answer", "Answering", "Inquiry", "answers_to"]

ACCEPT: Final[Mapping[str, Any]] = {"action": "accept"}
"""The answer of a user who agrees to open a page."""
DECLINE: Final[Mapping[str, Any]] = {"action": "decline"}
"""The answer of a user who says no."""
CANCEL: Final[Mapping[str, Any]] = {"action": "cancel"}
"""The answer of a user who closes the question without a choice."""

EVERYTHING: Final[Mapping[str, Any]] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}, "context": {}},
    "roots": {},
}
"""The capabilities of a client that can be asked whatever there is to ask."""


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A question of the server."""

    key: str
    """The name that the code gave it, else its place: `ask-1`, `sample-1`, `roots-1`."""
    method: str
    """`elicitation/create`, `sampling/createMessage` or `roots/list`."""
    params: Mapping[str, Any]

    @property
    def message(self) -> str:
        """What the user is asked; empty where it is a model that is asked, or nobody."""
        return str(self.params.get("message", ""))


Answer: TypeAlias = Union[Mapping[str, Any], BaseModel, "Sample", str, Sequence[Root]]
"""An answer to any question.

To a form: the model, filled in, or the content as a mapping. To a form or a page: `ACCEPT`, `DECLINE` or `CANCEL`. To
a model: a `Sample`, or its text. To the question for roots: the roots. A mapping may also be the whole result, as the
protocol has it; that of a form or a page is known by its `action`.
"""

Answering: TypeAlias = Callable[[Inquiry], Answer | Awaitable[Answer]]
"""Answers a question, at once or later."""


async def answers_to(result: Mapping[str, Any], answering: Answering) -> dict[str, Any]:
    """Answer the questions of one round; gives what the request is to be sent again with.

    Raises:
        TypeError: if an answer is none.
    """
    responses: dict[str, Any] = {}
    for key, asked in result.get("inputRequests", {}).items():
        inquiry = Inquiry(key, asked["method"], asked.get("params", {}))
        given = answering(inquiry)
        responses[key] = _response(inquiry, await given if inspect.isawaitable(given) else given)
    params: dict[str, Any] = {"inputResponses": responses} if responses else {}
    return {**params, "requestState": result["requestState"]} if "requestState" in result else params


def _response(inquiry: Inquiry, given: Any) -> Mapping[str, Any]:
    """Write an answer in the form of the protocol."""
    if inquiry.method == "elicitation/create":
        written = _filled_in(given)
    elif inquiry.method == "sampling/createMessage":
        written = _sampled(given)
    else:
        written = _listed(given)
    if written is None:
        raise TypeError(f"{type(given).__name__} is no answer to {inquiry.method}, which asks for {inquiry.key!r}")
    return written


def _filled_in(given: Any) -> Mapping[str, Any] | None:
    if isinstance(given, BaseModel):
        return {**ACCEPT, "content": given.model_dump(mode="json", by_alias=True, exclude_none=True)}
    if isinstance(given, Mapping):
        return given if "action" in given else {**ACCEPT, "content": given}
    return None


def _sampled(given: Any) -> Mapping[str, Any] | None:
    from axolotl_core.sampling import Sample  # few tools sample

    if isinstance(given, str):
        return {"role": "assistant", "content": {"type": "text", "text": given}, "model": "in-process"}
    if isinstance(given, Sample):
        content = msgspec.to_builtins(given.content, str_keys=True)
        said = {"role": given.role, "content": content, "model": given.model}
        return said if given.stop_reason is None else {**said, "stopReason": given.stop_reason}
    return given if isinstance(given, Mapping) else None


def _listed(given: Any) -> Mapping[str, Any] | None:
    if isinstance(given, Sequence) and all(isinstance(one, Root) for one in given):
        return {
            "roots": [{"uri": one.uri} if one.name is None else {"uri": one.uri, "name": one.name} for one in given]
        }
    return given if isinstance(given, Mapping) else None
