"""The question whether a call may run, and what the answers mean."""

from functools import partial
from typing import Final

import msgspec
from pydantic import BaseModel, Field

from axolotl_core.approval import CannotAskForApproval, NotApproved
from axolotl_core.elicitation import form_question, read_form
from axolotl_core.errors import Declined, MissingCapability, ToolError
from axolotl_core.layer import ToolCall

__all__ = ["ApprovalForm", "approve"]

_KEY: Final = "axolotl/approval"
_ANSWERS: Final = {
    "decline": "The user did not approve this call",
    "cancel": "The user did not answer whether this call is approved",
    "refuse": "The client refused to ask the user whether this call is approved",
}


class ApprovalForm(BaseModel):
    """What the user fills in."""

    approve: bool = Field(title="Approve", description="Whether this call may run.")


async def approve(call: ToolCall, message: str) -> None:
    """Ask the user.

    Raises:
        NotApproved: for every answer but a plain yes, and if there is none.
    """
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


def _not_approved(why: str) -> NotApproved:
    return NotApproved(f"{why}; it did not run", meta={"reason": "not_approved"})


def _cannot_ask(why: str) -> CannotAskForApproval:
    return CannotAskForApproval(
        f"This needs the approval of the user, and did not run: {why}", meta={"reason": "approval_unavailable"}
    )
