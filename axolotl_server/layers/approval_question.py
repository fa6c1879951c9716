"""The question whether a call may run, and the meaning of the answers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import msgspec
from pydantic import BaseModel, Field

from axolotl_core.errors import ConfigurationError, Declined, MissingCapability, ToolError
from axolotl_core.features.spec import ToolSpec
from axolotl_core.layers import Call
from axolotl_core.policies.tool_rules import Approval, CannotAskForApproval, NotApproved
from axolotl_core.protocol.result_keys import own_meta
from axolotl_core.protocol.wire import decode_exactly
from axolotl_core.questions.question import InvalidAnswer, form_question, read_form

Redact: TypeAlias = Callable[[bytes], msgspec.Raw | None]
"""Hides sensitive arguments; None if nothing may be shown."""
WriteMessage: TypeAlias = Callable[[bytes], str]
"""Makes the message for the raw arguments of a call; equal arguments make equal messages."""

_MAX_VALUE_CHARACTERS: Final = 400
_MAX_LINES: Final = 40
_HIDDEN: Final = "(hidden)"

_read_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode: Final = msgspec.json.Encoder(order="sorted").encode


def message_writer(spec: ToolSpec, rule: Approval, redact: Redact | None) -> WriteMessage:
    """Compile the function that writes the question for calls of a tool.

    The arguments come from the model and may try to deceive the user. So each is shown as JSON on a line of its own,
    invisible characters are escaped, and long values are cut. A rule that names an argument which the tool does not
    have raises ConfigurationError.
    """
    properties: Mapping[str, Any] = spec.input_schema.get("properties", {})
    unknown = [name for name in rule.arguments or () if name not in properties]
    if unknown:
        raise ConfigurationError(
            f"Tool {spec.name!r}: its approval shows the argument {unknown[0]!r}, which it does not have"
        )
    title = spec.tool.title or spec.tool.annotations.title
    named = spec.name if title is None else f"{title} ({spec.name})"
    opening = rule.message or "Do you approve this call?"
    order = tuple(properties) if rule.arguments is None else rule.arguments
    places = {name: (place, name) for place, name in enumerate(order)}
    secret = {name for name, schema in properties.items() if isinstance(schema, Mapping) and schema.get("writeOnly")}

    def write_message(raw: bytes) -> str:
        shown = raw if redact is None else redact(raw)
        if shown is None:
            return f"{opening}\nTool: {named}\nwith arguments that cannot be shown ({len(raw)} bytes)"
        given = sorted(_read_fields(raw), key=lambda name: places.get(name, (len(places), name)))
        names = [name for name in given if rule.arguments is None or name in places]
        visible = decode_exactly(shown)
        values = {name: visible[name] for name in visible if name not in secret} if isinstance(visible, dict) else {}
        return "\n".join([opening, f"Tool: {named}", *_lines(names, values)])

    return write_message


def _lines(names: Sequence[str], values: Mapping[str, Any]) -> Iterator[str]:
    for name in names[:_MAX_LINES]:
        yield f"{_visible(name)[:_MAX_VALUE_CHARACTERS]}: {_value(values[name]) if name in values else _HIDDEN}"
    if len(names) > _MAX_LINES:
        yield f"and {len(names) - _MAX_LINES} more arguments"


def _value(value: Any) -> str:
    text = _visible(_encode(value).decode())
    if len(text) <= _MAX_VALUE_CHARACTERS:
        return text
    half = _MAX_VALUE_CHARACTERS // 2
    return f"{text[:half]} … {text[-half:]} ({len(text)} characters)"


def _visible(text: str) -> str:
    """Escape characters that are invisible, or that change how their neighbors are shown."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in text)


_KEY: Final = "axolotl/approval"
_ANSWERS: Final = {
    "decline": "The user did not approve this call",
    "cancel": "The user did not answer the request for approval",
    "refuse": "The client refused to ask the user for approval",
}


class ApprovalForm(BaseModel):
    """The form that the user fills in."""

    approve: bool = Field(title="Approve", description="Whether this call may run.")


async def approve(call: Call, message: str) -> None:
    """Ask the user, and raise NotApproved unless the answer is a clear yes."""
    question = msgspec.structs.replace(form_question(ApprovalForm, message), must_be_asked=True)
    try:
        answer = await call.caller.ask(call, question, partial(read_form, ApprovalForm), _KEY)
    except Declined as refusal:
        raise _not_approved(_ANSWERS[refusal.action]) from None
    except MissingCapability:
        raise _cannot_ask("this client cannot ask for it") from None
    except ToolError as error:
        raise _cannot_ask(error.message) from None
    if answer.approve is not True:
        raise _not_approved(_ANSWERS["decline"])


def is_refused_approval(key: str, response: Any) -> bool:
    """Whether a response to the question with a key is a filled-in form for an approval that does not say yes."""
    if response.get("action") != "accept" or key.partition("-")[0] != _KEY:
        return False
    try:
        return read_form(ApprovalForm, response).approve is not True
    except InvalidAnswer:
        return True


def _not_approved(why: str) -> NotApproved:
    return NotApproved(f"{why}; it did not run", meta=own_meta(reason="not_approved"))


def _cannot_ask(why: str) -> CannotAskForApproval:
    return CannotAskForApproval(
        f"This call needs the approval of the user and did not run: {why}", meta=own_meta(reason="approval_unavailable")
    )
