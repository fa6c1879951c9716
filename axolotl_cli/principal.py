"""The principal that a command acts as."""

import json
from typing import Annotated, Any, TypeAlias

import typer
from pydantic import ValidationError

from axolotl_core.protocol.identity import Principal
from axolotl_server.settings.policies import PrincipalSettings


def read_principal(text: str) -> Principal:
    """Read a principal from the command line."""
    fields: dict[str, Any] = {"subject": text}
    if text.lstrip().startswith("{"):
        try:
            fields = json.loads(text)
        except ValueError as error:
            raise typer.BadParameter(f"this is not JSON: {error}", param_hint="--as") from None
    claims = fields.pop("claims", {})
    try:
        one = PrincipalSettings.model_validate(fields).principal
    except ValidationError as error:
        places = [(".".join(map(str, one["loc"])), one["msg"]) for one in error.errors()]
        text = "; ".join(f"{place}: {problem}" if place else problem for place, problem in places)
        raise typer.BadParameter(text, param_hint="--as") from None
    return Principal(one.subject, one.tenant, one.scopes, one.roles, claims)


ActingPrincipal: TypeAlias = Annotated[
    Any,
    typer.Option(
        "--as",
        metavar="PRINCIPAL",
        parser=read_principal,
        help='Act as this principal: a subject, or JSON such as {"subject": "ada", "roles": ["admin"]}. Defaults to '
        "stdio.principal.",
    ),
]
