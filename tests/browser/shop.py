"""A shop as a server, with tool sets, titles, examples, secrets, approvals and progress."""

import asyncio
from typing import Annotated, Any, Literal

from dependency_injector import containers, providers
from pydantic import BaseModel, Field, field_validator

from axolotl_core import Context, ToolAnnotations, ToolError, prompt, resource, tool
from axolotl_core.policies.audit import Sensitive

PRODUCTS = {"AX-0042": "Aquarium, 60 l", "AX-0107": "Water filter", "AX-0300": "Moss ball"}
READ = ToolAnnotations(read_only=True)


class Finish:
    """Ends the exports that run."""

    event: asyncio.Event

    @classmethod
    def reset(cls) -> None:
        """Make an event for the running loop."""
        cls.event = asyncio.Event()


class Line(BaseModel):
    """A line of an order."""

    sku: str = Field(pattern=r"^[A-Z]{2}-[0-9]{4}$", description="The number of the product.", examples=["AX-0042"])
    quantity: int = Field(ge=1, le=1000)

    @field_validator("sku")
    @classmethod
    def exists(cls, value: str) -> str:
        """Refuse unknown products, which no schema can express."""
        if value not in PRODUCTS:
            raise ValueError(f"there is no product {value}")
        return value


class Card(BaseModel):
    """Pay by card."""

    kind: Literal["card"] = "card"
    number: Annotated[str, Sensitive, Field(min_length=4, description="The number of the card.")]
    year: int = Field(description="When the card expires.", examples=[2030])

    @field_validator("year")
    @classmethod
    def is_valid(cls, value: int) -> int:
        """Refuse cards that have expired."""
        if value < 2027:
            raise ValueError("the card has expired")
        return value


class Invoice(BaseModel):
    """Pay later."""

    kind: Literal["invoice"] = "invoice"
    reference: str = Field(min_length=3)


@tool(title="Place an order")
async def place_order(
    *,
    customer: Annotated[str, Field(max_length=40, examples=["Ada Lovelace"])],
    lines: Annotated[list[Line], Field(min_length=1, max_length=3)],
    payment: Annotated[Card | Invoice, Field(discriminator="kind")],
    note: str | None = None,
) -> dict[str, Any]:
    """Place an order for one or more products.

    Args:
        customer: Who orders.
        lines: What is ordered.
        payment: How it is paid.
        note: What the packer should know.
    """
    return {"order": 1042, "customer": customer, "lines": [line.model_dump() for line in lines], "note": note}


@tool(title="Get an order", annotations=READ)
async def get_order(number: Annotated[int, Field(ge=1, le=9999, examples=[1042])]) -> dict[str, Any]:
    """Return an order with its lines and its state.

    Args:
        number: The number of the order.
    """
    if number == 9999:
        raise ToolError("There is no order 9999.")
    return {
        "order": number,
        "customer": "Ada Lovelace",
        "state": "packed",
        "lines": [{"sku": "AX-0042", "quantity": 1}, {"sku": "AX-0300", "quantity": 12}],
        "total": "84.70 EUR",
    }


@tool(title="Cancel an order", annotations=ToolAnnotations(destructive=True, idempotent=True), requires_approval=True)
async def cancel_order(
    number: Annotated[int, Field(examples=[1042])], reason: Literal["customer", "payment", "stock"]
) -> str:
    """Cancel an order and refund the payment.

    Args:
        number: The number of the order.
        reason: Why it is cancelled.
    """
    return f"Order {number} is cancelled ({reason})."


@tool(title="Export orders", annotations=READ, timeout_seconds=90, task_support="optional")
async def export_orders(context: Context, format: Literal["csv", "json"] = "csv", total: int | None = None) -> str:
    """Export all orders, with progress.

    Args:
        format: The format of the file.
        total: The number of orders, if it is known.
    """
    context.log("info", "reading 2026-Q4")
    context.report_progress(240, total, "shard 3")
    await Finish.event.wait()
    return f"240 orders as {format}"


@tool(title="Change the password")
async def change_password(
    *,
    user: str,
    password: Annotated[str, Sensitive, Field(min_length=8, examples=["correct horse"])],
    hints: Annotated[list[str], Sensitive] = [],  # noqa: B006
) -> str:
    """Change the password of a user.

    Args:
        user: Whose password it is.
        password: The new password.
        hints: Hints for the user.
    """
    return f"The password of {user} has {len(password)} characters."


@tool(annotations=READ)
async def search_products(
    query: Annotated[str, Field(examples=["filter"])],
    tenant: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Tenant"})] = "eu",
) -> list[str]:
    """Search the catalogue.

    Args:
        query: Words in the name of a product.
        tenant: The region of the catalogue.
    """
    return [f"{tenant}: {name}" for name in PRODUCTS.values() if query.casefold() in name.casefold()]


@tool(annotations=READ)
async def dump(characters: int) -> str:
    """Return a long text.

    Args:
        characters: Its length.
    """
    return "x" * characters


@prompt(title="Draft a reply")
def draft_reply(order: str, tone: Literal["formal", "friendly", "brief"], urgent: bool = False) -> str:
    """Draft a reply to a customer.

    Args:
        order: The number of the order.
        tone: How it sounds.
        urgent: Whether it is sent today.
    """
    return f"Write a {tone} reply about order {order}."


@draft_reply.completes("order")
def orders(value: str) -> list[str]:
    """Suggest the numbers of orders."""
    return [number for number in ("1042", "1043", "2001") if number.startswith(value)]


@resource("shop://policies/returns", title="Return policy", mime_type="text/markdown")
def returns() -> str:
    """How customers return what they bought."""
    return "Within 30 days, in the original box."


@resource("shop://orders/{number}/{part}", title="Part of an order", mime_type="text/plain")
def order_part(number: int, part: Literal["address", "lines"]) -> str:
    """One part of an order."""
    return f"The {part} of order {number}."


class Container(containers.DeclarativeContainer):
    """The shop."""

    settings = providers.Object({"server": {"name": "shop", "title": "Axolotl Supplies", "version": "2.4.0"}})
    tools = providers.Aggregate(
        orders=providers.List(*map(providers.Object, (place_order, get_order, cancel_order, export_orders))),
        catalogue=providers.List(*map(providers.Object, (search_products, dump))),
        users=providers.List(providers.Object(change_password)),
    )
    prompts = providers.List(providers.Object(draft_reply))
    resources = providers.List(providers.Object(returns), providers.Object(order_part))
