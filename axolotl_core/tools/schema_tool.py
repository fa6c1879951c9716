"""`SchemaTool`: tools with a raw JSON Schema and a handler."""

import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pydantic_core

from axolotl_core.arguments import LARGE_BYTES, ParseArguments, refusal, refuse_duplicates
from axolotl_core.calls.context import Context
from axolotl_core.errors import ConfigurationError, InvalidArguments
from axolotl_core.features.feature import Execution
from axolotl_core.schema import JsonSchema
from axolotl_core.tools.tool import ITool

if TYPE_CHECKING:
    import jsonschema_rs

_END_LENGTH: Final = 100
_DEFINITIONS: Final = ("$defs", "definitions")
MAX_SUBSCHEMAS: Final = 10_000
"""How many subschemas an input schema may have, with references expanded."""

SchemaHandler: TypeAlias = Callable[[dict[str, Any]], Any | Awaitable[Any]]


class SchemaTool(ITool[dict[str, Any], Any]):
    """A tool with a hand-written schema, which receives its arguments as a dict.

    Without a `description`, it has the description of its schema.
    """

    def __init__(
        self,
        name: str,
        schema: JsonSchema,
        handler: SchemaHandler,
        *,
        description: str = "",
        execution: Execution | None = None,
    ) -> None:
        self.name = name
        self._schema = {"type": "object", **schema}
        # Without `properties`, errors would not contain the name of an unknown argument.
        self._validator = compile_schema({"properties": {}, **self._schema}, f"Tool {name!r}")
        self.description = description or self._schema.get("description", "")
        self._handler = handler
        self.suspends = inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(type(handler).__call__)
        self.execution = execution or ("loop" if self.suspends else "thread")
        if self._schema["type"] != "object":
            raise ConfigurationError(f'Tool {name!r}: the root of an input schema must have "type": "object"')

    @property
    def input_schema(self) -> JsonSchema:
        return self._schema

    def argument_parser(self, *, coerce: bool) -> ParseArguments:

        def parse(raw: bytes) -> dict[str, Any]:
            arguments = _read(raw)
            if raw.count(b":") != len(arguments):
                refuse_duplicates(raw)
            if len(raw) > LARGE_BYTES:
                self._find_first(arguments)
                return arguments
            problems = [_shortened(_describe(error, "arguments")) for error in self._validator.iter_errors(arguments)]
            if problems:
                raise refusal(problems)
            return arguments

        return parse

    def _find_first(self, arguments: dict[str, Any]) -> None:
        """Validate large arguments: an error for each of their parts would take too much time and memory."""
        import jsonschema_rs

        try:
            self._validator.validate(arguments)
        except jsonschema_rs.ValidationError as error:
            raise refusal([_shortened(_describe(error, "arguments"))]) from None

    async def execute(self, arguments: dict[str, Any], context: Context) -> Any:
        result = self._handler(arguments)
        return await result if self.suspends else result


def compile_schema(schema: JsonSchema, where: str) -> "jsonschema_rs.Validator":
    """Compile a schema. References must stay inside it, and patterns run in linear time.

    Raises:
        ConfigurationError: if the schema is invalid, is too large or refers to another document.
    """
    import jsonschema_rs  # servers without raw schemas start faster

    try:
        _check_size(schema, where)
        return jsonschema_rs.validator_for(
            schema, retriever=_refuse_retrieval, pattern_options=jsonschema_rs.RegexOptions()
        )
    except jsonschema_rs.ValidationError as error:
        raise ConfigurationError(f"{where}: the input schema is invalid: {_describe(error, 'schema')}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{where}: the input schema is invalid: {error}") from error


def _check_size(schema: JsonSchema, where: str) -> None:
    """Refuse a schema that is small because of references, but takes very long to describe what is wrong."""
    sizes: dict[str, int] = {}

    def size_of(part: Any) -> int:
        if isinstance(part, list):
            return sum(map(size_of, part))
        if not isinstance(part, dict):
            return 0
        reference = part.get("$ref")
        others = sum(size_of(value) for name, value in part.items() if name not in _DEFINITIONS)
        return 1 + others + (size_behind(reference) if isinstance(reference, str) else 0)

    def size_behind(reference: str) -> int:
        if reference not in sizes:
            sizes[reference] = 0  # a reference within itself adds nothing
            sizes[reference] = size_of(_referenced(schema, reference))
        return sizes[reference]

    size = size_of(schema)
    if size > MAX_SUBSCHEMAS:
        raise ConfigurationError(
            f"{where}: the input schema has {size} subschemas with references expanded, but at most {MAX_SUBSCHEMAS} "
            "are allowed; use fewer nested alternatives (anyOf, oneOf)"
        )


def _referenced(schema: JsonSchema, reference: str) -> Any:
    """Find the target of a reference within a schema; None if it is elsewhere."""
    target: Any = schema
    for part in reference.removeprefix("#").split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        target = target.get(name) if isinstance(target, dict) else None
    return target if reference.startswith("#") else None


def _refuse_retrieval(uri: str) -> Any:
    raise LookupError(f"the schema refers to {uri}; references must stay inside the schema")


def _read(raw: bytes) -> dict[str, Any]:
    try:
        value = pydantic_core.from_json(raw, allow_inf_nan=False)
    except ValueError:
        raise InvalidArguments("Invalid arguments: not valid JSON") from None
    return value if isinstance(value, dict) else {}


def _describe(error: "jsonschema_rs.ValidationError", root: str) -> str:
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path)
    return f"{place.removeprefix('.') or root}: {error.message}"


def _shortened(problem: str) -> str:
    """Cut out the middle: the beginning has the path and the value, the end what was expected."""
    return problem if len(problem) <= 2 * _END_LENGTH else f"{problem[:_END_LENGTH]}…{problem[-_END_LENGTH:]}"
