"""The principal that a command acts as."""

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

if TYPE_CHECKING:
    from axolotl_core.protocol.identity import Principal


def read_principal(text: str) -> "Principal":
    """Read a principal from the command line."""
    from pydantic import ValidationError

    from axolotl_core.protocol.identity import Principal
    from axolotl_server.settings.policies import PrincipalSettings

    fields = _fields(text)
    claims = fields.pop("claims", {})
    try:
        one = PrincipalSettings.model_validate(fields).principal
    except ValidationError as error:
        raise typer.BadParameter("; ".join(_finding(one) for one in error.errors()), param_hint="--as") from None
    return Principal(one.subject, one.tenant, one.scopes, one.roles, claims)


def _fields(text: str) -> dict[str, Any]:
    import json

    if not text.lstrip().startswith("{"):
        return {"subject": text}
    try:
        fields: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"this is not JSON: {error}", param_hint="--as") from None
    return fields


def _finding(finding: Any) -> str:
    place = ".".join(map(str, finding["loc"]))
    return f"{place}: {finding['msg']}" if place else str(finding["msg"])


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
