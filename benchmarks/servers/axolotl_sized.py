"""The container of an Axolotl server whose tool takes and returns texts of any size."""

from dependency_injector import containers, providers

from axolotl_core import tool
from benchmarks.servers.functions import sized


class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Object(tool(sized)))
