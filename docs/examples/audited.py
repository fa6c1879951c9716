import asyncio
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from dependency_injector import containers, providers

from axolotl_core import ToolAnnotations, tool
from axolotl_core.policies.audit import Sensitive
from axolotl_server import connect


# region tools
@tool(annotations=ToolAnnotations(read_only=True))
async def balance(account: str) -> int:
    """Return the balance of an account."""
    return 100


@tool
async def transfer(account: str, amount: int, pin: Annotated[str, Sensitive]) -> str:
    """Transfer money."""
    return f"transferred {amount}"


# endregion tools


class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Object([balance, transfer]))


# region main
async def main(log: Path) -> None:
    settings = {"audit": {"jsonl_path": log, "arguments": "redacted"}}
    async with connect(Container(), settings=settings) as client:
        await client.call("balance", {"account": "A1"})
        await client.call("Transfer", {"account": "A1", "amount": 5, "pin": "1234"})
        await client.call("transfer", {"account": "A1", "amount": "all", "pin": "1234"})


def show(log: Path) -> None:
    for line in log.read_text().splitlines():
        record = json.loads(line)
        print(record["seq"], *(record.get(key) for key in ("event", "name", "requested", "outcome", "arguments")))


# endregion main


if __name__ == "__main__":
    with TemporaryDirectory() as directory:
        place = Path(directory, "audit.jsonl")
        asyncio.run(main(place))
        show(place)
