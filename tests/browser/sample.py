"""A server with everything that the console can show."""

import asyncio
import zlib
from datetime import date
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal

from dependency_injector import containers, providers
from pydantic import BaseModel, Field

from axolotl_core import Context, ToolAnnotations, ToolError, prompt, resource, tool
from axolotl_core.content import ImageContent, TextContent, ToolResult
from axolotl_core.policies.audit import Sensitive
from axolotl_core.tools.schema_tool import SchemaTool

HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"


class Size(StrEnum):
    """How large."""

    SMALL = "small"
    LARGE = "large"


class Card(BaseModel):
    """Pay by card."""

    kind: Literal["card"]
    digits: str = Field(pattern=r"^[0-9]{4}$", description="The last four digits.")


class Cash(BaseModel):
    """Pay in cash."""

    kind: Literal["cash"]
    change: bool = False


class Address(BaseModel):
    """A delivery address."""

    street: str
    floor: int | None = None


class Node(BaseModel):
    """A part that can contain parts."""

    name: str
    child: "Node | None" = None


@tool(annotations=ToolAnnotations(read_only=True))
async def greet(name: str, loud: bool = False) -> str:
    """Greet someone.

    Args:
        name: Who is greeted.
        loud: Whether to shout.
    """
    return f"HELLO, {name}!" if loud else f"Hello, {name}!"


@tool(annotations=ToolAnnotations(destructive=True), max_concurrency=2)
async def order(
    *,
    people: Annotated[int, Field(ge=1, le=12, description="How many eat.")],
    size: Size,
    day: date,
    payment: Card | Cash,
    address: Address,
    extras: list[Literal["olives", "cheese", "basil"]] | None = None,
    notes: list[str] | None = None,
    tip: float | None = None,
    labels: dict[str, int] | None = None,
    secret: Annotated[str | None, Sensitive] = None,
) -> dict[str, Any]:
    """Order a meal.

    Args:
        size: How large it is.
        day: When it is brought.
        payment: How it is paid.
        address: Where it is brought.
        extras: What is on top.
        notes: What the cook should know.
        tip: For the rider.
        labels: Whatever you count.
        secret: What no list shows.
    """
    return {
        "people": people,
        "size": size,
        "day": day,
        "payment": payment.model_dump(),
        "extras": extras,
        "notes": notes,
    }


@tool
async def grow(tree: Node) -> str:
    """Count the parts of a part.

    Args:
        tree: A part.
    """
    count, place = 0, tree
    while place is not None:
        count, place = count + 1, place.child  # type: ignore[assignment]
    return str(count)


@tool
async def complain() -> str:
    """Answer with an error."""
    raise ToolError("This is not my day.")


@tool
async def crash() -> str:
    """Fail without an answer."""
    raise RuntimeError("the secret")


@tool
async def wait(context: Context) -> str:
    """Report progress and wait until canceled."""
    context.report_progress(1, 4, "one of four")
    context.log("warning", "waiting for you")
    await asyncio.Event().wait()
    return "never"


class Seat(BaseModel):
    """A seat."""

    kind: Literal["window", "aisle"] = Field(description="Where to sit.")
    bags: int = Field(0, ge=0, le=3, description="How many bags to check in.")


@tool
async def book(flight: str, context: Context) -> str:
    """Book a flight.

    Args:
        flight: Its number.
    """
    seat = await context.ask(Seat, f"How do you want to fly with {flight}?")
    return f"{flight}, {seat.kind}, {seat.bags} bags"


@tool
async def paint() -> list[ImageContent | TextContent]:
    """Paint a picture."""
    return [ImageContent(_png(48, 32), "image/png"), TextContent("An axolotl in the mist.")]


@tool
async def number() -> dict[str, int]:
    """Return a number that a double cannot represent."""
    return {"exact": 12345678901234567890}


async def _attack(arguments: dict[str, Any]) -> ToolResult:
    return ToolResult([TextContent(HOSTILE)], structured={HOSTILE: HOSTILE})


_FIELD = {"type": "string", "title": HOSTILE, "description": HOSTILE, "enum": [HOSTILE, "b"]}
hostile = SchemaTool(
    "hostile",
    {"properties": {HOSTILE: _FIELD}, "required": [HOSTILE]},
    _attack,
    description=HOSTILE,
)


async def _nothing(arguments: dict[str, Any]) -> dict[str, Any]:
    return arguments


inherited = SchemaTool(
    "constructor",
    {
        "properties": {
            "constructor": {"type": "string"},
            "__proto__": {"type": "string"},
            "valueOf": {"type": "integer"},
        }
    },
    _nothing,
    description="Take arguments that every object of JavaScript seems to have.",
)


@tool
async def price(
    *, amount: Annotated[Decimal, Field(ge=0)], discount: Decimal | None = None, label: float | Literal["none"] = 1
) -> list[str]:
    """Return the digits of two decimals.

    Args:
        amount: What it costs.
        discount: What is taken off.
        label: Something else that can be a number.
    """
    return [str(amount), str(discount)]


_TURNS = [f"turn{number}" for number in range(10)]
maze = SchemaTool(
    "maze",
    {"properties": {turn: {"$ref": "#"} for turn in _TURNS}, "required": _TURNS},
    _nothing,
    description="Lead ten ways into itself from everywhere.",
)


@prompt
def review(language: str, strict: bool = False) -> str:
    """Ask for a code review.

    Args:
        language: What the code is written in.
        strict: Whether small things count too.
    """
    return f"Review this {language} code."


@resource("handbook://contents", mime_type="text/plain")
def contents() -> str:
    """The numbers of all pages."""
    return "1, 2"


@resource("handbook://pages/{number}", mime_type="text/plain")
def page(number: int) -> str:
    """One page."""
    return f"This is page {number}."


def _png(width: int, height: int) -> bytes:
    """Create a small PNG without a library."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return len(data).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")

    header = width.to_bytes(4, "big") + height.to_bytes(4, "big") + b"\x08\x02\x00\x00\x00"
    rows = b"".join(
        b"\0" + b"".join(bytes((240, 143 - row, 181 - column)) for column in range(width)) for row in range(height)
    )
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


class Container(containers.DeclarativeContainer):
    settings = providers.Object({"server": {"name": "kitchen", "version": "7"}})
    tools = providers.List(
        *map(
            providers.Object,
            (greet, order, grow, complain, crash, wait, book, paint, number, price, hostile, inherited, maze),
        )
    )
    prompts = providers.List(providers.Object(review))
    resources = providers.List(providers.Object(contents), providers.Object(page))
