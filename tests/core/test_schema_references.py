"""Schemas without references: `inlined`."""

import json
from typing import Annotated, Any, Literal

import jsonschema_rs
import pytest
from dependency_injector import containers, providers
from pydantic import BaseModel, Field

from axolotl_core import ConfigurationError, Context, ITool
from axolotl_core.schema import inlined, schema_of
from axolotl_server import ServerHost, connect


class Place(BaseModel):
    """A place."""

    city: str
    country: str = "AT"


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    home: Place


class Tree(BaseModel):
    value: int
    place: Place | None = None
    children: list["Tree"] = []


class Trip(BaseModel):
    start: Place = Field(description="Where it starts.")
    stops: list[Place] = Field([], examples=[[{"$ref": "#/$defs/Place"}]])
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]


TRIP = {
    "start": {"city": "Vienna"},
    "stops": [{"city": "Graz", "country": "AT"}],
    "pet": {"kind": "dog", "home": {"city": "Linz"}},
}


class Travel(ITool[Trip, Tree]):
    name = "travel"
    description = "Travel."

    async def execute(self, arguments: Trip, context: Context) -> Tree:
        return Tree(value=1, place=arguments.start, children=[Tree(value=2)])


def container_of(*tools: Any) -> containers.DynamicContainer:
    container = containers.DynamicContainer()
    container.tools = providers.List(*map(providers.Object, tools))
    return container


def test_references_are_replaced() -> None:
    """No reference and no definition is left; what is written next to a reference wins over the definition."""
    schema = inlined(schema_of(Trip, "validation"))
    assert "$defs" not in schema
    assert schema["properties"]["start"] == {
        "type": "object",
        "description": "Where it starts.",
        "properties": {"city": {"type": "string"}, "country": {"type": "string", "default": "AT"}},
        "required": ["city"],
    }
    assert schema["properties"]["pet"]["discriminator"] == {"propertyName": "kind"}
    assert schema["properties"]["stops"]["examples"] == [[{"$ref": "#/$defs/Place"}]], "data is not changed"


@pytest.mark.parametrize("city", ["Vienna", 7])
@pytest.mark.parametrize("kind", ["cat", "dog", "cow"])
def test_meaning_is_kept(city: Any, kind: str) -> None:
    """Both schemas accept the same values."""
    schema = schema_of(Trip, "validation")
    value = {"start": {"city": city}, "pet": {"kind": kind, "lives": 9, "home": {"city": city}}}
    before, after = (jsonschema_rs.validator_for(one).is_valid(value) for one in (schema, inlined(schema)))
    assert before == after


def test_recursive_types_keep_references() -> None:
    """A recursive definition stays, without references to other ones."""
    schema = inlined(schema_of(Tree, "validation"))
    assert list(schema["$defs"]) == ["Tree"]
    assert json.dumps(schema).count("$ref") == json.dumps(schema).count("#/$defs/Tree")
    assert jsonschema_rs.validator_for(schema).is_valid({"value": 1, "children": [{"value": 2}]})
    assert not jsonschema_rs.validator_for(schema).is_valid({"value": 1, "children": [{"value": "2"}]})


def test_conflicting_keywords() -> None:
    """A keyword that restricts both the reference and its definition applies twice."""
    schema = {
        "type": "object",
        "properties": {"size": {"$ref": "#/$defs/a~1b", "maximum": 5}, "$ref": {"type": "string"}},
        "$defs": {"a/b": {"type": "integer", "maximum": 9}},
    }
    assert inlined(schema) == {
        "type": "object",
        "properties": {
            "size": {"maximum": 5, "allOf": [{"type": "integer", "maximum": 9}]},
            "$ref": {"type": "string"},
        },
    }


@pytest.mark.parametrize("inline", [False, True])
async def test_setting(inline: bool) -> None:
    """The setting decides what clients see; calls work with both."""
    async with connect(container_of(Travel()), settings={"tools": {"inline_references": inline}}) as client:
        [tool] = await client.list_tools()
        outcome = await client.call("travel", TRIP)
    assert ("$ref" in json.dumps(tool["inputSchema"]["properties"]["start"])) is not inline
    assert list(tool["outputSchema"]["$defs"]) == (["Tree"] if inline else ["Place", "Tree"])
    assert outcome.structured["place"] == {"city": "Vienna", "country": "AT"}


async def test_too_large() -> None:
    """A schema that would explode is refused at startup."""
    definitions: dict[str, Any] = {
        f"d{level}": {"anyOf": [{"$ref": f"#/$defs/d{level + 1}"}] * 4} for level in range(20)
    }
    definitions["d20"] = {"type": "string"}

    class Exploding(Travel):
        @property
        def input_schema(self) -> dict[str, Any]:
            return {"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": definitions}

    host = ServerHost(container_of(Exploding()), flags={"tools": {"inline_references": True}})
    with pytest.raises(
        ConfigurationError, match="'travel': the input schema is too large: it has more than 10000 parts"
    ):
        await host.start()


@pytest.mark.parametrize(
    ("definition", "own", "value"),
    [
        ({"additionalProperties": False}, {"properties": {"a": {"type": "integer"}}}, {"a": 1}),
        ({"items": {"type": "string"}}, {"prefixItems": [{"type": "integer"}]}, [1]),
        ({"then": {"minimum": 3}}, {"if": {"type": "integer"}}, 1),
    ],
    ids=["properties", "items", "conditions"],
)
def test_keywords_next_to_a_reference_keep_their_meaning(
    definition: dict[str, Any], own: dict[str, Any], value: Any
) -> None:
    """Keywords that depend on others in the same schema are not mixed with those of the definition."""
    schema = {"$defs": {"Part": definition}, "properties": {"part": {"$ref": "#/$defs/Part", **own}}}
    before, after = (jsonschema_rs.is_valid(one, {"part": value}) for one in (schema, inlined(schema)))
    assert before == after
