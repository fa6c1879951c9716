"""A turn of a conversation, and the session that it belongs to."""

from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field


class Turn(BaseModel):
    """One message in a conversation."""

    model_config = ConfigDict(frozen=True)

    speaker: Literal["user", "assistant"] = Field(description="The author of the message.")
    text: str = Field(description="The text of the message.")


class Session(NamedTuple):
    """The session of one owner. Sessions of different owners are separate, even if their names are equal."""

    owner: tuple[str | None, str | None, str]
    """The `identity` of the principal."""
    name: str
