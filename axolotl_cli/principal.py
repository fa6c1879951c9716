"""The principal that a command acts as: options, and the principal that they describe."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

if TYPE_CHECKING:
    from axolotl_core.protocol.identity import Principal

Subject: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--as",
        metavar="PRINCIPAL",
        help='Act as this principal: a subject, or JSON such as {"subject": "ada", "roles": ["admin"]}. Defaults to '
        "stdio.principal.",
    ),
]
Scopes: TypeAlias = Annotated[
    list[str] | None, typer.Option("--scope", metavar="SCOPE", help="A scope of the principal; can be repeated.")
]
Roles: TypeAlias = Annotated[
    list[str] | None, typer.Option("--role", metavar="ROLE", help="A role of the principal; can be repeated.")
]
Tenant: TypeAlias = Annotated[
    str | None, typer.Option("--tenant", metavar="TENANT", help="The tenant of the principal.")
]


def chosen_principal(
    subject: str | None, scopes: Iterable[str] | None, roles: Iterable[str] | None, tenant: str | None
) -> "Principal | None":
    """Return the principal that the options describe; None if there is no `--as`."""
    if subject is not None:
        return read_principal(subject, scopes or (), roles or (), tenant)
    if scopes or roles or tenant:
        raise typer.BadParameter("--role, --scope and --tenant describe a principal: add --as SUBJECT")
    return None


def read_principal(text: str, scopes: Iterable[str], roles: Iterable[str], tenant: str | None) -> "Principal":
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
    return Principal(one.subject, tenant or one.tenant, one.scopes | {*scopes}, one.roles | {*roles}, claims)


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
