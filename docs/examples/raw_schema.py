from typing import Any

from dependency_injector import containers, providers

from axolotl_core.tools.schema_tool import SchemaTool

# region tool
SCHEMA = {
    "properties": {"table": {"type": "string", "pattern": "^[a-z_]+$"}, "limit": {"type": "integer", "minimum": 1}},
    "required": ["table"],
    "additionalProperties": False,
}


async def describe(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"table": arguments["table"], "rows": arguments.get("limit", 100)}


describe_table = SchemaTool("describe_table", SCHEMA, describe, description="Describe a table.")
# endregion tool


class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Object(describe_table))
