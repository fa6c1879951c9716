"""Clients on stdio that do not read: dropped notifications and kept replies."""

import asyncio

from axolotl_core.protocol.wire import notification
from axolotl_server.protocol.flow_control import MAX_WAITING
from axolotl_server.transports.stdio import _Outbox


class Written:
    """A writer that stores its input."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.lines += data.splitlines()


async def test_notifications_are_dropped_and_replies_are_kept() -> None:
    """While nothing is read, the oldest notifications are dropped, but no reply is."""
    written = Written()
    outbox = _Outbox(written.write)
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
