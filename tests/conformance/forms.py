"""What people are asked to fill in."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from axolotl_core import Titles


class Name(BaseModel):
    """Who is there."""

    name: str


class Colour(BaseModel):
    """Which colour somebody likes."""

    color: str


class Confirmation(BaseModel):
    """Yes or no."""

    ok: bool


class PromptContext(BaseModel):
    """What a prompt is about."""

    context: str


class Account(BaseModel):
    """Who somebody is on this server."""

    username: str = Field(description="User's response")
    email: str = Field(description="User's email address")


class Defaults(BaseModel):
    """A field of every type, filled in already."""

    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: Literal["active", "inactive", "pending"] = "active"
    verified: bool = True


class Choices(BaseModel):
    """Every way to choose from a list: one or several, with titles or without."""

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
