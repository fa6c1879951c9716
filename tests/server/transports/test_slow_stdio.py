"""A client on the standard streams that does not read: what it may lose is lost, and nothing else."""

import asyncio

from axolotl_core.protocol.wire import notification
from axolotl_server.messages.flow_control import MAX_WAITING
from axolotl_server.transports.stdio import _Outbox


class Written:
    """A writer that keeps what it is given."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.lines += data.splitlines()

    async def close(self) -> None:
        return


async def test_news_beyond_the_limit_make_room_and_replies_stay() -> None:
    """While nothing is read the oldest news are dropped; the reply that waits among them is not."""
    written = Written()
    outbox = _Outbox(written)
    outbox.hold(True)
    reply = b'{"jsonrpc":"2.0","id":1,"result":{}}'
    outbox.put(reply)
    news = [notification("notifications/resources/updated", {"uri": f"x://{number}"}) for number in range(1500)]
    for message in news:
        outbox.put(message)
    await asyncio.sleep(0)
    assert written.lines == []
    outbox.hold(False)
    outbox.flush()
    assert written.lines[0] == reply
    assert len(written.lines) == MAX_WAITING
    assert written.lines[-1] == news[-1]
