"""A turn of a conversation."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Turn(BaseModel):
    """One message in a conversation."""

    model_config = ConfigDict(frozen=True)

    speaker: Literal["user", "assistant"] = Field(description="The author of the message.")
    text: str = Field(description="The text of the message.")
