"""`axolotl read`: what is behind a URI."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from axolotl_cli.options import Answers, AsJson, EnvFile, FirstTarget, ToolSets

if TYPE_CHECKING:
    from axolotl_server.host import ServerHost

__all__ = ["read"]


def read(
    target: FirstTarget,
    uri: Annotated[str, typer.Argument(metavar="URI", help="The URI of a resource, or one that a template makes.")],
    *,
    toolset: ToolSets = None,
    env_file: EnvFile = None,
    answer: Answers = None,
    as_json: AsJson = False,
) -> None:
    """Read a resource and print its content.

    The exit code is 3 if there is no such resource, or reading it fails.
    """
    from axolotl_cli.arguments import as_text
    from axolotl_cli.contents import print_contents
    from axolotl_cli.render import print_json
    from axolotl_cli.requesting import request
    from axolotl_cli.targets import choose

    choice = choose(target, toolset, env_file=env_file)

    def prepare(host: "ServerHost") -> dict[str, Any]:
        return {"uri": as_text(uri)}

    result = request(choice, "resources/read", prepare, answer or [], as_json=as_json)
    if as_json:
        print_json(result)
    else:
        print_contents(result["contents"])
