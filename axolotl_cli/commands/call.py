"""`axolotl call`, `axolotl prompt` and `axolotl read`: one request to a server."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from axolotl_cli.exit import ExitCode
from axolotl_cli.options import Answers, AsJson, EnvFile, FileOptions, FirstTarget, Profile, SettingsFile, ToolSets
from axolotl_cli.principal import Roles, Scopes, Subject, Tenant, chosen_principal

if TYPE_CHECKING:
    from axolotl_server.host import ServerHost

Arguments: TypeAlias = Annotated[
    list[str] | None, typer.Argument(metavar="ARGUMENTS", help="key=value pairs, or a JSON object.")
]


def call(
    target: FirstTarget,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the tool.")],
    arguments: Arguments = None,
    *,
    subject: Subject = None,
    role: Roles = None,
    scope: Scopes = None,
    tenant: Tenant = None,
    toolset: ToolSets = None,
    env_file: EnvFile = None,
    settings: SettingsFile = None,
    profile: Profile = None,
    answer: Answers = None,
    as_json: AsJson = False,
) -> None:
    """Call a tool and print its result.

    The exit code is 1 if the tool fails, 3 if the server refuses the request.
    """
    from axolotl_cli.calling.request import as_text, read_arguments, send_request
    from axolotl_cli.target import resolve_target

    def prepare(host: "ServerHost") -> dict[str, Any]:
        return {"name": as_text(name), "arguments": read_arguments(arguments or [], _schema_of(host, name))}

    chosen = resolve_target(target, toolset, files=FileOptions(env_file, settings, profile))
    result = send_request(
        chosen,
        "tools/call",
        prepare,
        answer or [],
        None if as_json else _print_result,
        principal=chosen_principal(subject, scope, role, tenant),
    )
    raise typer.Exit(ExitCode.TOOL_FAILED if result.get("isError") else ExitCode.DONE)


def prompt(
    target: FirstTarget,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the prompt.")],
    arguments: Arguments = None,
    *,
    subject: Subject = None,
    role: Roles = None,
    scope: Scopes = None,
    tenant: Tenant = None,
    toolset: ToolSets = None,
    env_file: EnvFile = None,
    settings: SettingsFile = None,
    profile: Profile = None,
    answer: Answers = None,
    as_json: AsJson = False,
) -> None:
    """Render a prompt and print its messages.

    The exit code is 3 if the server refuses the request or the prompt fails.
    """
    from axolotl_cli.calling.request import as_text, read_texts, send_request
    from axolotl_cli.target import resolve_target

    def prepare(host: "ServerHost") -> dict[str, Any]:
        return {"name": as_text(name), "arguments": read_texts(arguments or [])}

    chosen = resolve_target(target, toolset, files=FileOptions(env_file, settings, profile))
    send_request(
        chosen,
        "prompts/get",
        prepare,
        answer or [],
        None if as_json else _print_messages,
        principal=chosen_principal(subject, scope, role, tenant),
    )


def read(
    target: FirstTarget,
    uri: Annotated[str, typer.Argument(metavar="URI", help="The URI of a resource, or one that matches a template.")],
    *,
    subject: Subject = None,
    role: Roles = None,
    scope: Scopes = None,
    tenant: Tenant = None,
    toolset: ToolSets = None,
    env_file: EnvFile = None,
    settings: SettingsFile = None,
    profile: Profile = None,
    answer: Answers = None,
    as_json: AsJson = False,
) -> None:
    """Read a resource and print its content.

    The exit code is 3 if there is no such resource or reading it fails.
    """
    from axolotl_cli.calling.request import as_text, send_request
    from axolotl_cli.target import resolve_target

    def prepare(host: "ServerHost") -> dict[str, Any]:
        return {"uri": as_text(uri)}

    chosen = resolve_target(target, toolset, files=FileOptions(env_file, settings, profile))
    send_request(
        chosen,
        "resources/read",
        prepare,
        answer or [],
        None if as_json else _print_contents,
        principal=chosen_principal(subject, scope, role, tenant),
    )


def _schema_of(host: "ServerHost", name: str) -> Mapping[str, Any]:
    binding = host.catalogue.find(name)
    return {} if binding is None else binding.spec.input_schema  # the server refuses a call of an unknown tool


def _print_result(result: Mapping[str, Any]) -> None:
    from axolotl_cli.output import print_json, text_of

    if "structuredContent" in result and not result.get("isError"):
        print_json(result["structuredContent"])
    else:
        for block in result["content"]:
            typer.echo(text_of(block), err=result.get("isError", False))


def _print_messages(result: Mapping[str, Any]) -> None:
    from axolotl_cli.output import text_of

    messages = result["messages"]
    for message in messages:
        if len(messages) > 1:
            typer.secho(f"[{message['role']}]", bold=True)
        typer.echo(text_of(message["content"]))


def _print_contents(result: Mapping[str, Any]) -> None:
    from axolotl_cli.output import print_contents

    print_contents(result["contents"])
