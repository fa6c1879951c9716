"""A channel over Streamable HTTP, to a server of any revision that has it."""

import asyncio
import base64
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from axolotl_core.errors import ConfigurationError
from axolotl_core.features.spec import HeaderParameter, header_parameters
from axolotl_core.protocol.identity import RequestId
from axolotl_core.protocol.messages import TARGET_MEMBERS
from axolotl_core.protocol.versions import Revision
from axolotl_core.protocol.wire import encode
from axolotl_server.client.channel import IChannel, Inbox, InvalidReply, Message, read_messages
from axolotl_server.client.event_reading import ClientLimits, StreamReceiver
from axolotl_server.urls import is_loopback, without_secrets

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response

_CLOSING_SECONDS: Final = 2.0
_MAX_ERROR_BYTES: Final = 64 * 1024
_MAX_KNOWN_TOOLS: Final = 10_000


class HttpStatusError(ConnectionError):
    """The server answered with an HTTP status instead of a message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class HttpChannel(IChannel):
    """Posts messages to the endpoint of a server. Redirects are not followed, so the token stays with its server."""

    def __init__(self, url: str, token: str | None, limits: ClientLimits, http: "AsyncClient") -> None:
        super().__init__()
        self.limits = limits
        self._url = url
        self._place = without_secrets(url)
        self._token = token
        self._http = http
        self._session: str | None = None
        self._revision: Revision | None = None
        self._conversations: dict[RequestId, asyncio.Task[None]] = {}
        """The tasks that post requests and read their streams."""
        self._listening: asyncio.Task[None] | None = None
        self._is_listening = asyncio.Event()
        """Set when the stream is open, or cannot be opened."""
        self._parameters: dict[str, tuple[HeaderParameter, ...]] = {}
        """The arguments that are repeated in headers, for each tool that has some."""

    def begin(self, request: Message, inbox: Inbox) -> None:
        self._conversations[request["id"]] = asyncio.create_task(self._converse(request, inbox))

    async def end(self, request_id: RequestId, *, cancel: bool) -> None:
        """Close the connection, which cancels a stateless request; with a handshake, cancelling takes a message."""
        conversation = self._conversations.pop(request_id, None)
        if conversation is not None and not conversation.done():
            conversation.cancel()
            await asyncio.wait([conversation])
        if cancel and self._revision is not None and not self._revision.stateless:
            cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request_id}}
            with suppress(ConnectionError, TimeoutError):
                async with asyncio.timeout(_CLOSING_SECONDS):
                    await self.send(cancelled)

    def use(self, revision: Revision | None) -> None:
        self._revision = revision

    async def send(self, message: Message) -> None:
        async with self._request("POST", message) as response:
            if response.status_code >= 300:
                raise self._refusal(response)

    async def listen(self) -> None:
        """Open the stream for messages that belong to no request, unless the server has none."""
        if self._listening is None:
            self._listening = asyncio.create_task(self._listen())
        with suppress(TimeoutError):
            async with asyncio.timeout(self.limits.connect_seconds):
                await self._is_listening.wait()

    async def close(self) -> None:
        """End the session, and close all connections."""
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait([self._listening])
        if self._session is not None:
            with suppress(ConnectionError, TimeoutError):
                async with asyncio.timeout(_CLOSING_SECONDS), self._request("DELETE"):
                    pass
        await self._http.aclose()

    async def _converse(self, request: Message, inbox: Inbox) -> None:
        try:
            await self._post(request, inbox)
        except Exception as error:
            inbox.put(error)

    async def _post(self, request: Message, inbox: Inbox) -> None:
        """Post a request and deliver what the server sends until the response, which ends its stream."""
        is_endless = request["method"] == "subscriptions/listen"
        receiver = StreamReceiver(request["id"], inbox.put_when_room, self.limits, is_endless=is_endless)
        async with self._request("POST", request) as response:
            if request["method"] == "initialize":
                self._session = response.headers.get("mcp-session-id")
            if _media_type(response) == "text/event-stream" and response.status_code == 200:
                await receiver.read_events(response.aiter_raw())
            else:
                await self._receive_json(response, receiver)
        while not receiver.is_done:
            await self._resume(receiver)

    async def _resume(self, receiver: StreamReceiver) -> None:
        """Reconnect to a stream that ended before the response, where its events have IDs."""
        receiver.count_reconnect()
        await asyncio.sleep(receiver.retry_seconds)
        try:
            async with self._request("GET", last_event_id=receiver.last_id) as response:
                if response.status_code != 200 or _media_type(response) != "text/event-stream":
                    raise self._refusal(response)
                await receiver.read_events(response.aiter_raw())
        except (HttpStatusError, InvalidReply):
            raise
        except ConnectionError:
            return  # counted, and tried again

    async def _listen(self) -> None:
        """Deliver messages that belong to no request; reconnect as long as the server sends some."""
        receiver = StreamReceiver(None, self._deliver_unclaimed, self.limits, is_endless=True)
        try:
            while True:
                async with self._request("GET", last_event_id=receiver.last_id) as response:
                    if response.status_code != 200 or _media_type(response) != "text/event-stream":
                        return
                    self._is_listening.set()
                    await receiver.read_events(response.aiter_raw())
                receiver.count_reconnect()
                await asyncio.sleep(receiver.retry_seconds)
        except ConnectionError:
            return
        finally:
            self._is_listening.set()

    async def _deliver_unclaimed(self, message: Message) -> None:
        if "method" in message:
            self.unclaimed(message)

    async def _receive_json(self, response: "Response", receiver: StreamReceiver) -> None:
        """Deliver a response in JSON; errors have other statuses than 200, too."""
        is_json = _media_type(response) == "application/json"
        is_refused = response.status_code >= 400
        if not is_json or response.status_code in (401, 403) or (response.status_code != 200 and not is_refused):
            raise self._refusal(response)
        body = await _read_body(response, _MAX_ERROR_BYTES if is_refused else self.limits.max_message_bytes)
        try:
            messages = read_messages(body)
        except InvalidReply:
            if is_refused:
                raise self._refusal(response) from None
            raise
        for message in messages:
            if "error" in message and message.get("id") is None:  # the server did not read the ID of the request
                message["id"] = receiver.request_id
            await receiver.deliver(message)
        if not receiver.is_done:
            raise InvalidReply("The server answered without a response to the request")

    @asynccontextmanager
    async def _request(
        self, method: str, message: Message | None = None, *, last_event_id: str | None = None
    ) -> AsyncIterator["Response"]:
        """Send an HTTP request; raises ConnectionError."""
        import httpx2

        headers = self._headers(message)
        if method == "GET":
            headers["Accept"] = "text/event-stream"
            if last_event_id is not None:
                headers["Last-Event-ID"] = last_event_id
        content = None if message is None else encode(message)
        # The IDs of sessions and events are the server's, which need not be ASCII.
        encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
        try:
            async with self._http.stream(method, self._url, content=content, headers=encoded) as response:
                if response.headers.get("content-encoding", "identity") != "identity":
                    raise InvalidReply("The server answered in an encoding that was not requested")
                yield response
        except httpx2.ConnectTimeout:
            limit = self.limits.connect_seconds
            raise ConnectionError(f"No connection to {self._place} within {limit:g} seconds") from None
        except httpx2.TimeoutException:
            limit = self.limits.silence_seconds
            raise ConnectionError(f"{self._place} sent nothing for {limit:g} seconds") from None
        except ConnectionError:
            raise
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            reason = str(error) or type(error).__name__
            raise ConnectionError(f"{self._place} cannot be reached: {reason}") from None

    def _headers(self, message: Message | None) -> dict[str, str]:
        headers = {"Accept": "application/json, text/event-stream"}
        if message is not None:
            headers["Content-Type"] = "application/json"
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        if self._session is not None:
            headers["Mcp-Session-Id"] = self._session
        if self._revision is not None:
            headers["MCP-Protocol-Version"] = self._revision.name
            if self._revision.stateless and message is not None and "id" in message:
                headers.update(self._mirrored(message["method"], message["params"]))
        return headers

    def _mirrored(self, method: str, params: Mapping[str, Any]) -> dict[str, str]:
        """Make the headers that repeat parts of a stateless request."""
        headers = {"Mcp-Method": method}
        name = params.get(TARGET_MEMBERS.get(method, ""))
        if isinstance(name, str):
            headers["Mcp-Name"] = _header_value(name)
        for parameter in self._parameters.get(str(name), ()) if method == "tools/call" else ():
            value = parameter.value_in(params.get("arguments"))
            if value is not None:
                text = value if isinstance(value, str) else encode(value).decode()
                headers[parameter.header.decode()] = _header_value(text)
        return headers

    def learn(self, tools: list[dict[str, Any]]) -> None:
        """Note which arguments of tools are repeated in headers; tools with invalid annotations are left out."""
        for tool in tools[:_MAX_KNOWN_TOOLS]:
            with suppress(ConfigurationError, AttributeError, TypeError, KeyError, RecursionError):
                found = header_parameters(tool["name"], tool["inputSchema"])
                if found:
                    self._parameters[tool["name"]] = found

    def _refusal(self, response: "Response") -> HttpStatusError:
        status = response.status_code
        if 300 <= status < 400:
            where = _without_secrets(response.headers.get("location", ""))
            return HttpStatusError(status, f"{self._place} redirects to {where!r}, which is not followed: use that URL")
        explanation = {
            401: "rejects the token" if self._token else "requires a token",
            403: "does not allow this",
            404: "has no such session any more" if self._session else "has no such path; is the path /mcp?",
            405: "is not an MCP endpoint; is the path /mcp?",
            503: "is not available now",
        }.get(status, "answered with an HTTP error" if status >= 400 else "answered with something else than a message")
        return HttpStatusError(status, f"{self._place} {explanation} (status {status})")


async def open_http_channel(url: str, token: str | None, limits: ClientLimits) -> HttpChannel:
    """Prepare a channel; the first connection is made with the first message. Raises ValueError for a wrong URL."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or not url.isprintable() or parts.fragment:
        raise ValueError(f"{url.rpartition('@')[2]!r} is not the URL of a server: write https://host/mcp")
    if parts.username is not None or parts.password is not None:
        raise ValueError("the URL must not contain a user or a password: pass a token instead")
    _ = parts.port  # raises ValueError if it is not a number
    if token is not None:
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            raise ValueError("the token is not a bearer token: it is empty, or has spaces or unusual characters")
        if parts.scheme == "http" and not is_loopback(parts.hostname):
            raise ValueError("the token would be sent unencrypted: use https, except on this machine")
    http = await asyncio.to_thread(_make_http, limits, parts.scheme == "https", not is_loopback(parts.hostname))
    return HttpChannel(url if parts.path else parts._replace(path="/mcp").geturl(), token, limits, http)


def _make_http(limits: ClientLimits, is_encrypted: bool, is_remote: bool) -> "AsyncClient":
    """Load the HTTP library, and the trusted certificates if they are needed: that takes most of a second."""
    import httpx2

    silence = limits.silence_seconds
    timeout = httpx2.Timeout(silence, connect=limits.connect_seconds, pool=limits.connect_seconds)
    return httpx2.AsyncClient(
        verify=httpx2.create_ssl_context() if is_encrypted else False,
        timeout=timeout,
        follow_redirects=False,
        trust_env=is_remote,  # a proxy is never needed on this machine
        headers={"Accept-Encoding": "identity"},
    )


async def _read_body(response: "Response", max_bytes: int) -> bytes:
    body = bytearray()
    async for piece in response.aiter_raw():
        body += piece
        if len(body) > max_bytes:
            raise InvalidReply(f"The server sent more than {max_bytes} bytes")
    return bytes(body)


def _without_secrets(location: str) -> str:
    """Leave out the parts of an address that may be secret; all of it if it is malformed."""
    try:
        place = urlsplit(location)
    except ValueError:
        return ""
    return place._replace(query="", fragment="", netloc=place.netloc.rpartition("@")[2]).geturl()


def _media_type(response: "Response") -> str:
    return str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()


def _header_value(text: str) -> str:
    """Encode a header value; text that is not plain ASCII, or looks encoded, becomes base64."""
    is_plain = text.isascii() and text.isprintable() and text == text.strip() and not text.startswith("=?base64?")
    return text if is_plain else f"=?base64?{base64.b64encode(text.encode()).decode()}?="
