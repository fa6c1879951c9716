"""The container of an Axolotl server with 1,000 typed tools, the last of which is `add`."""

from dependency_injector import containers

from benchmarks.servers.axolotl_many import many_tools


class Container(containers.DeclarativeContainer):
    tools = many_tools("thousand")
