"""All policies around one tool, in their order."""

import asyncio

from axolotl_core import Context, ITool, NoArguments, ToolAnnotations
from axolotl_core.policies.tool_rules import Breaker, Idempotency, Retry
from axolotl_server import InProcessClient, ServerHost
from axolotl_server.client.replies import Question
from axolotl_server.layers.breaker import BreakerLayer, CircuitBreaker
from tests.support.tools import container_of


class Everything(ITool[NoArguments, str]):
    """Fails twice per call, and then succeeds."""

    name = "everything"
    annotations = ToolAnnotations(destructive=True, idempotent=True)
    requires_approval = True
    idempotency = Idempotency(window_seconds=60)
    retry = Retry(attempts=3, base_seconds=0.0001)
    breaker = Breaker(failures=2)

    def __init__(self) -> None:
        self.runs = 0

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        self.runs += 1
        if self.runs % 3:
            raise ConnectionError
        return "done"


def breakers_of(host: ServerHost) -> list[CircuitBreaker]:
    """Return the breakers of a server."""
    layers = (layer for layer in host.assembly.layers.inner if isinstance(layer, BreakerLayer))
    return [circuit for layer in layers for circuit in layer.circuits.values()]


async def test_all_at_once() -> None:
    """Each caller is asked at most once, retries do not trip the breaker, and the work runs once."""
    tool, asked = Everything(), []

    def answer(question: Question) -> dict[str, bool]:
        asked.append(question.key)
        return {"approve": True}

    async with ServerHost(container_of(tool)) as host:
        clients = [InProcessClient(host.handler, answer=answer) for _ in range(3)]
        outcomes = await asyncio.gather(*(client.call("everything") for client in clients))
        assert [outcome.text for outcome in outcomes] == ["done"] * 3
        assert tool.runs == 3
        assert [circuit.state for circuit in breakers_of(host)] == ["closed"]
        assert 1 <= len(asked) <= 3
        for client in clients:
            await client.close()
