"""The forms of the tools that ask."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from axolotl_core.questions.question import Titles


class Name(BaseModel):
    """A name."""

    name: str


class Colour(BaseModel):
    """A favorite color."""

    color: str


class Confirmation(BaseModel):
    """A confirmation."""

    ok: bool


class PromptContext(BaseModel):
    """The subject of a prompt."""

    context: str


class Account(BaseModel):
    """A user account."""

    username: str = Field(description="User's response")
    email: str = Field(description="User's email address")


class Defaults(BaseModel):
    """A form with every type of field, with defaults."""

    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: Literal["active", "inactive", "pending"] = "active"
    verified: bool = True


class Choices(BaseModel):
    """A form with every kind of choice: single or multiple, with or without titles."""

    untitled_single: Literal["option1", "option2", "option3"] = Field(alias="untitledSingle")
    titled_single: Annotated[Literal["value1", "value2"], Titles("First Option", "Second Option")] = Field(
        alias="titledSingle"
    )
    legacy_enum: Annotated[Literal["opt1", "opt2"], Titles("Option One", "Option Two", legacy=True)] = Field(
        alias="legacyEnum"
    )
    untitled_multi: list[Literal["option1", "option2", "option3"]] = Field(alias="untitledMulti")
    titled_multi: Annotated[list[Literal["value1", "value2"]], Titles("First Choice", "Second Choice")] = Field(
        alias="titledMulti"
    )
