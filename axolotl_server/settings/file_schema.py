"""JSON Schema of the settings file, for editors."""

import ast
import inspect
import sys
from functools import cache
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from axolotl_server.settings.server import ServerSettings
from axolotl_server.settings.settings_shape import shape_of


def descriptions_of(model: type[BaseModel]) -> dict[str, str]:
    """Read the docstrings of the fields of a model and its base classes.

    pydantic could read them when it creates the models, but that would slow down every start of a server.
    """
    found: dict[str, str] = {}
    for owner in reversed(model.__mro__):
        if issubclass(owner, BaseModel) and owner is not BaseModel:
            found.update(_texts_in(owner.__module__).get(owner.__qualname__, {}))
    return {name: text for name, text in found.items() if name in model.model_fields}


@cache
def _texts_in(module: str) -> dict[str, dict[str, str]]:
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except OSError:  # a distribution without source code
        return {}
    return {node.name: _texts(node) for node in tree.body if isinstance(node, ast.ClassDef)}


def _texts(node: ast.ClassDef) -> dict[str, str]:
    texts = {}
    for above, below in zip(node.body, node.body[1:], strict=False):
        match above, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                texts[name] = " ".join(text.split())
    return texts


_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_OWN_KEYS: Final = {
    "target": {
        "type": "string",
        "description": "The container to serve: `pkg.module:Container` or `path/file.py:Container`.",
    },
    "toolset": {"type": "string", "description": "The tool sets to serve, separated by commas. Defaults to all."},
}

_PROFILES: Final = "Settings that override the others if the profile of that name is selected."


def file_schema() -> dict[str, Any]:
    """Describe `axolotl.toml`, or the table `tool.axolotl` of `pyproject.toml`."""
    schema = ServerSettings.model_json_schema(schema_generator=_FileSchema)
    described = {"$schema": _DIALECT, "title": "Settings of an Axolotl server"}
    settings = {**_OWN_KEYS, **schema["properties"]}
    profile = {"type": "object", "properties": settings, "additionalProperties": False}
    profiles = {"type": "object", "additionalProperties": profile, "description": _PROFILES}
    return {**described, **schema, **described, "properties": {**settings, "profile": profiles}}


class _FileSchema(GenerateJsonSchema):
    """Adds the descriptions of settings, and the settings for files of secrets."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        made = super().model_schema(schema)
        model: type[BaseModel] = schema["cls"]
        for name, description in descriptions_of(model).items():
            made["properties"][name]["description"] = description
        for section in made["properties"].values():
            if "$ref" in section:
                section.pop("default", None)  # it repeats the defaults of the settings in it
        for key, shape in shape_of(model).fields.items():
            if shape.secret is not None:
                _add_file(made, shape.secret, key, is_list=shape.items is not None)
        made.pop("title", None)
        return made

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _add_file(table: JsonSchemaValue, name: str, key: str, *, is_list: bool) -> None:
    """Accept the path of a file instead of a secret, but not both."""
    path = {"type": "string", "minLength": 1}
    many = {"anyOf": [path, {"type": "array", "items": path, "minItems": 1}]}
    description = f"A file with one of `{name}`, or a list of files" if is_list else f"A file with `{name}`"
    table["properties"][key] = {**(many if is_list else path), "description": f"{description}."}
    choice: dict[str, Any] = {"not": {"required": [name, key]}}
    if name in table.get("required", []):
        table["required"] = [other for other in table["required"] if other != name]
        choice = {"oneOf": [{"required": [name]}, {"required": [key]}]}
    table.setdefault("allOf", []).append(choice)
