"""Lists with pages of two."""

from collections.abc import Sequence
from typing import Any

from dependency_injector import containers, providers

from axolotl_core import prompt, resource
from axolotl_core.tools.schema_tool import SchemaTool


def _nothing(arguments: dict[str, Any]) -> None:
    return None


def _text() -> str:
    return "text"


def _templated(number: str) -> str:
    return number


def _tools(*names: str) -> Sequence[Any]:
    return [SchemaTool(name, {}, _nothing) for name in names]


def _prompts(*names: str) -> Sequence[Any]:
    return [prompt(name=name)(_text) for name in names]


def _resources(*names: str) -> Sequence[Any]:
    fixed = [resource(f"fixed://{name}", name=name)(_text) for name in names]
    return [*fixed, *(resource(f"made://{name}/{{number}}", name=name)(_templated) for name in names)]


class Container(containers.DeclarativeContainer):
    """Five features of each kind."""

    settings = providers.Object({"server": {"name": "transcripts", "version": "1"}})
    tools = providers.Callable(_tools, "a", "b", "c", "d", "e")
    prompts = providers.Callable(_prompts, "a", "b", "c", "d", "e")
    resources = providers.Callable(_resources, "a", "b", "c", "d", "e")
