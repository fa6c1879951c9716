"""Questions in the form of each revision, validated with the protocol's schemas."""

from collections.abc import Mapping
from copy import deepcopy
from datetime import date, datetime
from typing import Annotated, Any, Literal

import msgspec
import pytest
from mcp_types import _v2026_07_28 as stateless_models
from mcp_types.methods import SERVER_REQUESTS
from pydantic import AnyUrl, BaseModel, Field, TypeAdapter

from axolotl_core.content import Annotations, AudioContent, ImageContent, ResourceLink, TextContent
from axolotl_core.errors import MissingCapability
from axolotl_core.protocol.versions import REVISIONS, Revision
from axolotl_core.protocol.wire import encode
from axolotl_core.questions.question import Question, Titles, form_question, roots_question, url_question
from axolotl_core.questions.sampling import (
    ModelPreferences,
    SamplingMessage,
    SamplingTool,
    ToolUse,
    ToolUseResult,
    sampling_question,
)
from axolotl_server.calls.asking import params_for, satisfied

R1, R2, R3, R4, R5 = REVISIONS
NAMES = {revision: f"R{number}" for number, revision in enumerate(REVISIONS, 1)}


class Plain(BaseModel):
    """Fields that forms have in every revision, with features of later ones."""

    name: str = Field(title="Name", description="In full", min_length=1, max_length=20)
    age: int = Field(default=30, ge=0, le=150)
    weight: float = Field(default=1.5, ge=0.5)
    express: bool = True
    day: date = date(2026, 1, 31)
    moment: datetime | None = None
    site: AnyUrl | None = None
    size: Literal["s", "m"] = "m"
    colour: Annotated[Literal["r", "b"], Titles("Red", "Blue")] = "b"
    old: Annotated[Literal["r", "b"], Titles("Red", "Blue", legacy=True)] = "b"


class Several(Plain):
    """Fields that only later revisions have."""

    sizes: list[Literal["s", "m"]] = Field(default=["s"], min_length=1, max_length=2)
    colours: Annotated[list[Literal["r", "b"]], Titles("Red", "Blue")] = ["r"]


ANNOTATIONS = Annotations(audience=("user",), priority=0.5, last_modified="2026-01-31T12:00:00Z")
TEXT = TextContent("a", ANNOTATIONS, {"m": 1})
IMAGE = ImageContent(b"\x00", "image/png", ANNOTATIONS, {"m": 1})
AUDIO = AudioContent(b"\x00", "audio/wav")
USES = SamplingMessage("assistant", [TextContent("so"), ToolUse("1", "add", {"a": 1}), ToolUse("2", "add", {})])
LINK = ResourceLink("file:///a", "a")
OUTCOMES = SamplingMessage(
    "user", [ToolUseResult("1", [TEXT, LINK], {"a": 1}), ToolUseResult("2", "x", [1], is_error=True)]
)
CONVERSATION = [SamplingMessage("user", [TEXT, IMAGE], meta={"m": 1}), SamplingMessage("assistant", TEXT)]

QUESTIONS: Mapping[str, Question] = {
    "form": form_question(Plain, "Please fill in"),
    "several": form_question(Several, "Please fill in"),
    "url": url_question("https://example.com/key", "Please open"),
    "roots": roots_question(),
    "sample": sampling_question("Why?", max_tokens=5),
    "blocks": sampling_question(
        CONVERSATION,
        max_tokens=5,
        system_prompt="Be brief",
        temperature=0.5,
        stop_sequences=["."],
        model_preferences=ModelPreferences(hints=["x"], cost_priority=0.5),
        include_context="thisServer",
        metadata={"a": [1]},
    ),
    "audio": sampling_question([SamplingMessage("user", AUDIO)], max_tokens=5),
    "tools": sampling_question(
        [USES, OUTCOMES],
        max_tokens=5,
        tools=[SamplingTool.of("add", Plain, "Adds"), SamplingTool("x", {"type": "object"}, title="X")],
        tool_choice="required",
    ),
}
SINCE = {"form": R3, "several": R4, "url": R4, "roots": R1, "sample": R1, "blocks": R1, "audio": R2, "tools": R4}
EXPRESSIBLE = [
    pytest.param(kind, revision, id=f"{kind}-{NAMES[revision]}")
    for kind, since in SINCE.items()
    for revision in REVISIONS[REVISIONS.index(since) :]
]
INEXPRESSIBLE = [
    pytest.param(kind, revision, id=f"{kind}-{NAMES[revision]}")
    for kind, since in SINCE.items()
    for revision in REVISIONS[: REVISIONS.index(since)]
]


def sent(kind: str, revision: Revision) -> Any:
    """Return the params as the client decodes them."""
    return msgspec.json.decode(encode(params_for(QUESTIONS[kind], revision, "id-1")))


@pytest.mark.parametrize(("kind", "revision"), EXPRESSIBLE)
def test_a_question_fits_the_schema(kind: str, revision: Revision) -> None:
    """Every question is valid in the models of the protocol.

    They cover the last handshake revision and the stateless one; other tests cover older revisions.
    """
    message: dict[str, Any] = {"method": QUESTIONS[kind].method, "params": sent(kind, revision)}
    if not revision.stateless:
        message |= {"jsonrpc": "2.0", "id": 1}
    model: Any = (
        stateless_models.InputRequest if revision.stateless else SERVER_REQUESTS[message["method"], revision.name]
    )
    adapter = TypeAdapter[Any](model)
    known = adapter.validate_python(message, by_name=False)
    assert adapter.dump_python(known, mode="json", by_alias=True, exclude_unset=True) == message


@pytest.mark.parametrize(("kind", "revision"), INEXPRESSIBLE)
def test_a_question_that_a_revision_has_no_form_for_is_refused(kind: str, revision: Revision) -> None:
    """A question that a revision does not support is rejected with an explanation."""
    with pytest.raises(MissingCapability, match=revision.name) as caught:
        params_for(QUESTIONS[kind], revision, "id-1")
    assert caught.value.data == {"requiredCapabilities": QUESTIONS[kind].requires}


@pytest.mark.parametrize(("kind", "revision"), EXPRESSIBLE)
def test_a_question_is_not_altered(kind: str, revision: Revision) -> None:
    """Converting a question for a revision does not change the question."""
    before = deepcopy(QUESTIONS[kind])
    params_for(QUESTIONS[kind], revision, "id-1")
    assert QUESTIONS[kind] == before


def test_a_form_of_the_first_revision() -> None:
    """The first form revision has no mode, titles as `enumNames`, and defaults only for booleans."""
    titled = {"type": "string", "enum": ["r", "b"], "enumNames": ["Red", "Blue"]}
    assert sent("form", R3) == {
        "message": "Please fill in",
        "requestedSchema": {
            "type": "object",
            "properties": {
                "name": {
                    "type": "string",
                    "title": "Name",
                    "description": "In full",
                    "minLength": 1,
                    "maxLength": 20,
                },
                "age": {"type": "integer", "minimum": 0, "maximum": 150},
                "weight": {"type": "number", "minimum": 0.5},
                "express": {"type": "boolean", "default": True},
                "day": {"type": "string", "format": "date"},
                "moment": {"type": "string", "format": "date-time"},
                "site": {"type": "string", "format": "uri", "minLength": 1},
                "size": {"type": "string", "enum": ["s", "m"]},
                "colour": titled,
                "old": titled,
            },
            "required": ["name"],
        },
    }


@pytest.mark.parametrize("revision", [R4, R5], ids=NAMES.get)
@pytest.mark.parametrize("kind", ["form", "several"])
def test_a_form_of_later_revisions_is_the_question(kind: str, revision: Revision) -> None:
    """In later revisions, forms are sent unchanged."""
    assert sent(kind, revision) == QUESTIONS[kind].params
    assert sent(kind, revision)["mode"] == "form"


def test_a_url_has_an_id_in_one_revision() -> None:
    """A URL question has an id in one revision only."""
    url = {"mode": "url", "message": "Please open", "url": "https://example.com/key"}
    assert (sent("url", R4), sent("url", R5)) == ({**url, "elicitationId": "id-1"}, url)


@pytest.mark.parametrize("revision", [R1, R2, R3], ids=NAMES.get)
def test_a_message_had_one_block(revision: Revision) -> None:
    """For older revisions, a message with several blocks becomes several messages, without `_meta`."""
    messages = sent("blocks", revision)["messages"]
    assert [(one["role"], one["content"]["type"]) for one in messages] == [
        ("user", "text"),
        ("user", "image"),
        ("assistant", "text"),
    ]
    assert not any("_meta" in one for one in messages)


@pytest.mark.parametrize(("revision", "there"), [(R1, False), (R2, False), (R3, True)], ids=str)
def test_blocks_show_what_the_revision_knows(revision: Revision, there: bool) -> None:
    """Blocks have only the members of the revision."""
    for message in sent("blocks", revision)["messages"]:
        annotations = message["content"]["annotations"]
        assert ("_meta" in message["content"], "lastModified" in annotations) == (there, there)
        assert (annotations["audience"], annotations["priority"]) == (["user"], 0.5)


@pytest.mark.parametrize("revision", REVISIONS, ids=NAMES.get)
def test_options_of_a_sample_are_the_same_everywhere(revision: Revision) -> None:
    """Sampling options are the same in all revisions."""
    options = {key: value for key, value in QUESTIONS["blocks"].params.items() if key != "messages"}
    assert {key: value for key, value in sent("blocks", revision).items() if key != "messages"} == options
    assert len(options) == 7


def test_structured_outcomes_were_objects() -> None:
    """Structured tool results that are not objects are wrapped in `result` for older revisions."""
    structured = [
        [block.get("structuredContent") for block in sent("tools", revision)["messages"][1]["content"]]
        for revision in (R4, R5)
    ]
    assert structured == [[{"a": 1}, {"result": [1]}], [{"a": 1}, [1]]]


FORM: Any = {"elicitation": {"form": {}}}
URL: Any = {"elicitation": {"url": {}}}
SAMPLING: Any = {"sampling": {}}
TOOLS: Any = {"sampling": {"tools": {}}}
CONTEXT: Any = {"sampling": {"context": {}}}
ROOTS: Any = {"roots": {}}


@pytest.mark.parametrize(
    ("requires", "declared", "able"),
    [
        pytest.param(FORM, {"elicitation": {}}, (R3, R4, R5), id="empty-means-form"),
        pytest.param(FORM, {"elicitation": {"form": {}}}, (R3, R4, R5), id="form"),
        pytest.param(FORM, {"elicitation": {"form": {}, "url": {}}}, (R3, R4, R5), id="form-among-both"),
        pytest.param(FORM, {"elicitation": {"url": {}}}, (R3,), id="url-means-no-form-where-there-are-modes"),
        pytest.param(FORM, {"elicitation": {"new": {}}}, (R3, R4, R5), id="unknown-modes-do-not-matter"),
        pytest.param(FORM, {"sampling": {}}, (), id="no-elicitation"),
        pytest.param(FORM, {"elicitation": True}, (), id="no-object"),
        pytest.param(FORM, {"elicitation": None}, (), id="null"),
        pytest.param(URL, {"elicitation": {}}, (), id="empty-means-no-url"),
        pytest.param(URL, {"elicitation": {"url": {}}}, (R4, R5), id="url"),
        pytest.param(URL, {"elicitation": {"url": None}}, (), id="null-url"),
        pytest.param(SAMPLING, {"sampling": {}}, REVISIONS, id="sampling"),
        pytest.param(SAMPLING, {"sampling": {"tools": {}}}, REVISIONS, id="sampling-and-more"),
        pytest.param(SAMPLING, {}, (), id="no-sampling"),
        pytest.param(TOOLS, {"sampling": {}}, (), id="no-tools"),
        pytest.param(TOOLS, {"sampling": {"tools": {}}}, (R4, R5), id="tools"),
        pytest.param(CONTEXT, {"sampling": {}}, (R1, R2, R3), id="context-needed-no-word"),
        pytest.param(CONTEXT, {"sampling": {"context": {}}}, REVISIONS, id="context"),
        pytest.param({"sampling": {"tools": {}, "context": {}}}, TOOLS, (), id="one-of-two"),
        pytest.param(ROOTS, {"roots": {}}, REVISIONS, id="roots"),
        pytest.param(ROOTS, {"roots": {"listChanged": True}}, REVISIONS, id="roots-that-change"),
        pytest.param(ROOTS, {}, (), id="no-roots"),
        pytest.param({**FORM, **ROOTS}, {"elicitation": {}}, (), id="one-of-two-capabilities"),
    ],
)
def test_a_client_can_be_asked_what_it_declared(requires: Any, declared: Any, able: tuple[Revision, ...]) -> None:
    """A declared capability counts in revisions that support it."""
    assert [revision for revision in REVISIONS if satisfied(requires, declared, revision)] == list(able)
