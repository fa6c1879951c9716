"""A server with an audit log, for tests that kill it."""

import os
from pathlib import Path

from dependency_injector import containers, providers

from axolotl_core import ToolAnnotations, tool
from tests.support.audited_calls import audit_of

_DIRECTORY = Path(os.environ.get("AUDITED_DIRECTORY", "."))
_DURABILITY = os.environ.get("AUDITED_DURABILITY", "write")
_audit = audit_of(jsonl_path=_DIRECTORY / "audit.jsonl", durability=_DURABILITY, max_bytes=100_000)
_effects = os.open(_DIRECTORY / "effects", os.O_WRONLY | os.O_APPEND | os.O_CREAT)


@tool(annotations=ToolAnnotations(destructive=True))
async def transfer(number: int) -> int:
    """Do something that shows from outside."""
    os.write(_effects, b"%d\n" % number)
    return number


class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Object(transfer))
    layers = providers.Object([_audit.layer, _audit.layer.announce])
