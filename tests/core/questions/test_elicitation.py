"""Elicitation: questions and answers."""

from datetime import UTC, date, datetime
from enum import Enum
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AnyUrl, BaseModel, ConfigDict, Field, create_model, model_validator

from axolotl_core.errors import ConfigurationError, Declined, ToolError
from axolotl_core.questions.question import InvalidAnswer, Question, form_question, read_form, read_url, url_question
from tests.support.core.json_values import JSON, mostly, objects


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Order(BaseModel):
    """A model with all kinds of form fields."""

    name: str = Field(min_length=1, pattern="[A-Z].*")
    age: int = Field(ge=0, le=150)
    weight: float = Field(default=1, gt=0, lt=1000)
    express: bool = False
    day: date | None = None
    moment: datetime | None = None
    site: AnyUrl | None = None
    colour: Colour = Colour.RED
    sizes: list[Literal["s", "m", "l"]] = Field(default=["m"], max_length=2)
    note: str | None


def accept(**content: Any) -> Any:
    """Return the result of a client whose user filled in the form."""
    return {"action": "accept", "content": content}


def test_a_form_is_asked_in_the_latest_form() -> None:
    """The question names its mode, the message and the schema, and needs a client with forms."""
    question = form_question(create_model("Answer", sure=(bool, ...)), "Really?")
    schema = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}
    assert question == Question(
        method="elicitation/create",
        params={"mode": "form", "message": "Really?", "requestedSchema": schema},
        requires={"elicitation": {"form": {}}},
    )


def test_a_model_that_is_no_form_is_not_asked() -> None:
    """The author learns which field it is, before anything is sent."""
    with pytest.raises(ConfigurationError, match=r"^Outer\.order: a form is flat"):
        form_question(create_model("Outer", order=(Order, ...)), "?")


def test_a_filled_in_form_becomes_the_model() -> None:
    """All kinds of fields are parsed; omitted fields have their default, or None."""
    answer = accept(
        name="Ann", age=30, day="2026-01-31", moment="2026-01-31T12:00:00Z", site="https://example.com", colour="blue"
    )
    assert read_form(Order, answer) == Order(
        name="Ann",
        age=30,
        day=date(2026, 1, 31),
        moment=datetime(2026, 1, 31, 12, tzinfo=UTC),
        site=AnyUrl("https://example.com"),
        colour=Colour.BLUE,
        note=None,
    )


@given(
    st.builds(
        Order,
        name=st.text(min_size=1).map(lambda text: "A" + text),
        age=st.integers(0, 150),
        weight=st.floats(0, 1000, exclude_min=True, exclude_max=True),
        day=st.none() | st.dates(),
        moment=st.none() | st.datetimes(),
        site=st.none() | st.just(AnyUrl("https://example.com/a?b=c")),
        sizes=st.lists(st.sampled_from(["s", "m", "l"]), max_size=2),
        note=st.none() | st.text(),
    )
)
def test_what_was_written_is_read(order: Order) -> None:
    """The JSON of a model is a valid answer."""
    content = order.model_dump(mode="json", exclude_none=True)
    assert read_form(Order, {"action": "accept", "content": content}) == order


def test_all_problems_are_told_at_once() -> None:
    """Missing and invalid fields are reported together."""
    with pytest.raises(InvalidAnswer) as caught:
        read_form(Order, accept(age=-1, sizes=["s", "x"]))
    assert str(caught.value) == (
        "Invalid answer: content.name: required, but missing; "
        "content.age: Input should be greater than or equal to 0; "
        "content.sizes[1]: Input should be 's', 'm' or 'l'"
    )


def test_twenty_problems_are_enough() -> None:
    """The number of reported problems is limited."""
    fields: Any = {f"x{number}": (int, ...) for number in range(22)}
    with pytest.raises(InvalidAnswer, match=r"x19: required, but missing; and 2 more$"):
        read_form(create_model("Answer", **fields), accept())


def test_what_was_not_asked_is_passed_over() -> None:
    """Unknown members are ignored, whatever the model's setting for them."""

    class Loose(BaseModel):
        model_config = ConfigDict(extra="allow")

    class Tight(BaseModel):
        model_config = ConfigDict(extra="forbid")

    assert read_form(Loose, accept(is_admin=True)).model_dump() == {}
    assert read_form(Tight, accept(is_admin=True)) == Tight()


@pytest.mark.parametrize(
    ("config", "name"),
    [
        pytest.param(ConfigDict(), "ageInYears", id="alias"),
        pytest.param(ConfigDict(validate_by_name=True), "ageInYears", id="either"),
        pytest.param(ConfigDict(validate_by_name=True, validate_by_alias=False), "age", id="name"),
    ],
)
def test_names_are_those_that_were_asked_for(config: ConfigDict, name: str) -> None:
    """A field has the same name in the form and in the answer."""

    class Aliased(BaseModel):
        model_config = config
        age: int = Field(alias="ageInYears")

    assert list(form_question(Aliased, "?").params["requestedSchema"]["properties"]) == [name]
    assert read_form(Aliased, accept(**{name: 5})).age == 5


def test_rules_of_the_whole_model_hold() -> None:
    """An error of a model validator has no field."""

    class Span(BaseModel):
        first: int
        last: int

        @model_validator(mode="after")
        def check(self) -> "Span":
            if self.first > self.last:
                raise ValueError("the first is after the last")
            return self

    with pytest.raises(InvalidAnswer, match=r"^Invalid answer: content: Value error, the first is after the last$"):
        read_form(Span, accept(first=2, last=1))


def test_an_empty_answer_will_do_where_nothing_is_required() -> None:
    """An accepted form without content is blank."""
    assert read_form(create_model("Answer", x=(int, 5)), {"action": "accept"}).model_dump() == {"x": 5}


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_an_answer_may_be_refused(action: str) -> None:
    """Decline and cancel are distinguished, also in the text for the model."""
    for read in (lambda response: read_form(Order, response), read_url):
        with pytest.raises(Declined) as caught:
            read({"action": action, "content": {"ignored": True}})
        assert (caught.value.action, action in str(caught.value)) == (action, True)


def test_a_refusal_is_a_tool_error_with_a_text_of_its_own() -> None:
    """The text of an uncaught Declined distinguishes users and clients."""
    texts = {str(Declined(action)) for action in ("decline", "cancel", "refuse")}
    assert len(texts) == 3
    assert isinstance(Declined("refuse", "no user"), ToolError)
    assert str(Declined("refuse", "no user")) == "no user"


@pytest.mark.parametrize(
    ("response", "problem"),
    [
        pytest.param(None, "result: must be an object", id="null"),
        pytest.param(5, "result: must be an object", id="number"),
        pytest.param(["accept"], "result: must be an object", id="list"),
        pytest.param({}, "action: must be accept, decline or cancel", id="no-action"),
        pytest.param({"action": "ACCEPT"}, "action: must be accept, decline or cancel", id="other-action"),
        pytest.param({"action": ["accept"]}, "action: must be accept, decline or cancel", id="list-of-actions"),
        pytest.param({"action": "accept", "content": None}, "content: must be an object", id="null-content"),
        pytest.param({"action": "accept", "content": []}, "content: must be an object", id="list-content"),
    ],
)
def test_what_is_no_answer_is_refused(response: Any, problem: str) -> None:
    """Nothing but an object with an action, and content that is an object, is an answer."""
    with pytest.raises(InvalidAnswer) as caught:
        read_form(Order, response)
    assert str(caught.value) == f"Invalid answer: {problem}"


ACTIONS = mostly("action", "accept", "accept", "decline", "cancel")
GOOD: Any = {
    "name": "A",
    "age": "5",
    "weight": 1,
    "express": "true",
    "day": "2026-01-31",
    "colour": "red",
    "sizes": ["s"],
}
CONTENTS = objects(*(mostly(name, GOOD.get(name)) for name in ("name", "age", *Order.model_fields)))


@given(JSON | objects(ACTIONS, st.builds(lambda content: {"content": content}, JSON | CONTENTS)))
def test_any_json_is_an_answer_or_refused(response: Any) -> None:
    """Any answer results in the model or one of the two errors."""
    for read in (lambda: read_form(Order, response), lambda: read_url(response)):
        try:
            result = read()
        except (Declined, InvalidAnswer):
            continue
        assert result is None or isinstance(result, Order)


def test_a_url_is_asked_in_the_latest_form() -> None:
    """The question names its mode, the message and the URL, and needs a client that opens URLs."""
    assert url_question("https://example.com/key?for=[::1]#a", "Enter the key there") == Question(
        method="elicitation/create",
        params={"mode": "url", "message": "Enter the key there", "url": "https://example.com/key?for=[::1]#a"},
        requires={"elicitation": {"url": {}}},
    )
    read_url({"action": "accept"})


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        pytest.param("example.com/key", "must begin with https://", id="relative"),
        pytest.param("https:///key", "must begin with https://", id="no-host"),
        pytest.param("javascript:alert(1)", "must begin with https://", id="script"),
        pytest.param("file:///etc/passwd", "must begin with https://", id="file"),
        pytest.param("https://user:secret@example.com", "must not contain credentials", id="credentials"),
        pytest.param("https://example.com/a b", "must be percent-encoded", id="space"),
        pytest.param("https://example.com/\n", "must be percent-encoded", id="line-end"),
        pytest.param("https://exämple.com/", "must be percent-encoded", id="not-ascii"),
    ],
)
def test_a_url_that_no_user_should_open_is_not_asked(url: str, problem: str) -> None:
    """Only web pages are opened, and their URLs carry no credentials."""
    with pytest.raises(ValueError, match=problem):
        url_question(url, "?")
