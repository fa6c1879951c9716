"""`axolotl inspect`: everything that holds for a server, as it would start now."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from axolotl_cli.options import AsJson, EnvFile, Target, ToolSets

if TYPE_CHECKING:
    from axolotl_server.host import ServerHost

__all__ = ["inspect"]


def inspect(target: Target = None, toolset: ToolSets = None, env_file: EnvFile = None, as_json: AsJson = False) -> None:
    """Show a server as it would start: identity, settings, and all it offers with schemas, layers and limits."""
    from axolotl_cli.running import with_host
    from axolotl_cli.targets import choose

    choice = choose(target, toolset, env_file=env_file)
    report = {"target": choice.target, **with_host(choice, _inspect)}
    if as_json:
        from axolotl_cli.render import print_json

        print_json(report)
    else:
        from axolotl_cli.portrait import print_portrait

        print_portrait(report)


async def _inspect(host: "ServerHost") -> dict[str, Any]:
    from axolotl_cli.description import describe
    from axolotl_core.protocol.versions import REVISIONS

    settings = host.settings.model_dump(mode="json")
    return {
        "server": settings.pop("server"),
        "revisions": [revision.name for revision in REVISIONS],
        "settings": settings,
        "extensions": {extension.identifier: dict(extension.settings) for extension in host.roles.extensions},
        **asdict(describe(host)),
    }
