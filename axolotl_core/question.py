"""What a tool may ask its caller, and what is wrong with an answer."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from axolotl_core.errors import InputRequired

__all__ = ["InvalidAnswer", "Question", "invalid_answer", "invalid_shape", "only_asks"]

_SHOWN_PROBLEMS: Final = 10
_QUOTED_VALUE: Final = re.compile(r"(Invalid (?:enum )?value) .*", re.DOTALL)
"""Where msgspec repeats what the other side sent."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Something that only the caller can answer."""

    method: str
    params: Mapping[str, Any]
    """Plain JSON in the form of the latest revision; it may be shared, so it is not to be altered."""
    requires: Mapping[str, Any]
    """What the client must have declared, e.g. `{"elicitation": {"form": {}}}`."""
    reference: str | None = None
    """What a revision that has ids for visits of web pages should call this one."""
    must_be_asked: bool = False
    """Whether an answer counts only if this server asked before; one that came along unasked does not."""


class InvalidAnswer(ValueError):
    """The answer has not the shape or the values that were asked for; the text is public and names the field."""


def invalid_answer(problems: Sequence[str]) -> InvalidAnswer:
    """Tell all that is wrong with an answer, in one text."""
    shown = list(problems[:_SHOWN_PROBLEMS])
    if len(problems) > _SHOWN_PROBLEMS:
        shown.append(f"and {len(problems) - _SHOWN_PROBLEMS} more")
    return InvalidAnswer("Invalid answer: " + "; ".join(shown))


def invalid_shape(error: msgspec.ValidationError) -> InvalidAnswer:
    """Rewrite msgspec's finding as `field: what is wrong`, without the other side's values."""
    text, _, path = str(error).rpartition(" - at `$")
    found = _QUOTED_VALUE.sub(r"\1", text or path)
    place = path.rstrip("`").removeprefix(".") if text else ""
    return invalid_answer([f"{place or 'result'}: {found}"])


def only_asks(error: BaseException) -> bool:
    """Tell whether code was left for want of answers alone, also by several questions of a task group."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(only_asks, error.exceptions))
    return isinstance(error, InputRequired)
