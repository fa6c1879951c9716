"""What is said in a conversation."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Turn(BaseModel):
    """Something that one side said."""

    model_config = ConfigDict(frozen=True)

    speaker: Literal["user", "assistant"] = Field(description="Who said it.")
    text: str = Field(description="What was said.")
