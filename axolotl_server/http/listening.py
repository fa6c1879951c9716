"""GET: a stream for what the server says unasked, or the rest of one that broke off."""

from asyncio import get_running_loop
from collections.abc import Callable, Mapping

from axolotl_server.http.asgi import Receive
from axolotl_server.http.session import Session
from axolotl_server.http.stream import EventStream

__all__ = ["listen", "until_client_leaves"]


async def listen(session: Session, headers: Mapping[bytes, bytes], outlet: EventStream, receive: Receive) -> None:
    """Serve a stream of a session until it ends or its client leaves.

    Raises:
        HttpRefusal: if there is no such stream, or it is taken.
    """
    last_event_id = headers.get(b"last-event-id")
    stream = await (session.resume(outlet, last_event_id) if last_event_id else session.listen(outlet))
    watcher = get_running_loop().create_task(until_client_leaves(receive, outlet.abandon))
    try:
        await outlet.run()
    finally:
        watcher.cancel()
        if stream is not None:
            stream.detach(outlet)


async def until_client_leaves(receive: Receive, leave: Callable[[], object]) -> None:
    """Wait for the client's disconnection and tell of it."""
    while (await receive())["type"] != "http.disconnect":
        pass
    leave()
