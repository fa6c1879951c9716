"""A server inside another ASGI application, such as one of FastAPI or Starlette."""

import inspect
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from dependency_injector import containers

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import ConfigurationError
from axolotl_core.protocol.identity import Principal
from axolotl_server.host import ServerHost
from axolotl_server.hosting.container_loading import load_container
from axolotl_server.http.app import HttpApp
from axolotl_server.http.asgi import RETRY_AFTER, HttpRefusal, IAuthenticator, Receive, Scope, Send, send_refusal
from axolotl_server.http.assembly import is_authenticated, make_app
from axolotl_server.settings.loading import load_settings
from axolotl_server.settings.origins import combine, nest
from axolotl_server.settings.settings_file import FileSettings, find_file, read_settings_file, split_settings

PrincipalOf: TypeAlias = Callable[[Scope], Awaitable[Principal | None] | Principal | None]
"""Finds the principal of a request in its scope; None refuses the request with 401."""
Lifespan: TypeAlias = Callable[[Any], AbstractAsyncContextManager[Any]]
Target: TypeAlias = str | containers.Container | type[containers.DeclarativeContainer]
"""A container, its class, or where it is: `pkg.module:Container`."""

_log = logging.getLogger("axolotl")
_scope: Final[ContextVar[Scope]] = ContextVar("axolotl_mounted_scope")
_STOPPED_CALLS_SECONDS: Final = 1.0


class HostGate(IAuthenticator):
    """Takes the principal from the application around the server, which has authenticated the request."""

    def __init__(self, principal_of: PrincipalOf) -> None:
        self._principal_of = principal_of

    async def admit(
        self, credentials: bytes | None, client: Sequence[Any] | None, headers: Mapping[bytes, bytes]
    ) -> Principal:
        """Return the principal; refuse with 401 if there is none, and with 500 if it cannot be found."""
        try:
            found: Any = self._principal_of(_scope.get())
            principal = await found if inspect.isawaitable(found) else found
            if principal is not None and not isinstance(principal, Principal):
                raise TypeError(f"principal returned {type(principal).__name__}, which is not a Principal")
        except Exception:
            _log.exception("the principal of a request could not be found: the request is refused")
            raise HttpRefusal(500, "Internal error: the caller could not be identified") from None
        if principal is None:
            raise HttpRefusal(401, "Unauthorized: log in to this application first")
        return principal

    def challenge(self, scopes: Iterable[str]) -> HttpRefusal:
        """Refuse a principal that lacks scopes."""
        return HttpRefusal(403, f"Forbidden: you need the scopes {' '.join(sorted(scopes))}")


async def starlette_user(scope: Scope) -> Principal | None:
    """Read the user and the scopes that Starlette's `AuthenticationMiddleware` has found."""
    user, granted = scope.get("user"), scope.get("auth")
    if user is None or not user.is_authenticated:
        return None
    try:
        subject = user.identity
    except NotImplementedError:  # the `SimpleUser` of Starlette has a name only
        subject = user.display_name
    return Principal(str(subject), scopes=frozenset(getattr(granted, "scopes", ())))


class WellKnownPage:
    """The metadata of a mounted server, at the root of the application around it."""

    def __init__(self, server: "MountedApp", path: str) -> None:
        self._server = server
        self._path = path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._server({**scope, "root_path": "", "path": self._path}, receive, send)


class MountedApp:
    """A server as an ASGI application that starts and stops with the application around it.

    The application around it runs its `lifespan`. `target` is a container, its class, or where it is, such as
    `shop.container:Container`. `settings` is the path of a settings file or has the form of one; without it, the file
    of the project is read. `principal` finds the principal of a request in its ASGI scope, if the application around it
    authenticates requests; None refuses a request with 401.
    """

    def __init__(
        self,
        target: Target,
        *,
        settings: Mapping[str, Any] | str | Path | None = None,
        profile: str | None = None,
        toolsets: Sequence[str] = (),
        principal: PrincipalOf | None = None,
    ) -> None:
        self._target = target
        self._flags, self._file = _read(settings, profile or os.environ.get("AXOLOTL_PROFILE"))
        self._toolsets = toolsets or (() if self._file is None else self._file.toolset_names)
        self._principal = principal
        self._app: HttpApp | None = None
        self._is_root = False
        self._has_well_known = False
        self._has_complained = False

    @asynccontextmanager
    async def lifespan(self, app: Any = None) -> AsyncIterator[None]:
        """Run the server: pass it to the application around it, as in `FastAPI(lifespan=mcp.lifespan)`.

        Raises ConfigurationError if the server cannot start. At the end, running calls may finish.
        """
        host = ServerHost(_container(self._target), flags=self._flags, file=self._file, toolsets=self._toolsets)
        if self._principal is not None:
            host.authenticator, host.has_principals = HostGate(self._principal), True
        async with host:
            if host.assembly.audit is not None:
                host.assembly.audit.trail.open()
            self._check(host)
            self._app = make_app(host)
            try:
                yield
            finally:
                self._app = None
                inflight = host.handler.inflight
                if not await inflight.drain(host.settings.http.drain_seconds):
                    inflight.stop_all(CancelReason.SHUTDOWN)
                    await inflight.drain(_STOPPED_CALLS_SECONDS)

    def lifespan_with(self, mine: Lifespan) -> Lifespan:
        """Combine the server with a lifespan of your own, which begins before the server and ends after it."""

        @asynccontextmanager
        async def both(app: Any) -> AsyncIterator[Any]:
            async with mine(app) as state, self.lifespan(app):
                yield state

        return both

    def well_known_routes(self) -> dict[str, WellKnownPage]:
        """Return the pages that clients look for at the root of the host: ASGI applications by path.

        Add each one: `app.add_route(path, page)`. There are none unless the settings name `auth.resource`.
        """
        from axolotl_server.access.gate import metadata_url

        self._has_well_known = True
        url = metadata_url(load_settings(flags=self._flags or {}, file=self._file).auth)
        if url is None:
            return {}
        path = urlsplit(url).path
        return {path: WellKnownPage(self, path)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the lifespan if this is the outermost application."""
        if scope["type"] == "lifespan":
            await self._serve_lifespan(receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app
        if app is None:
            if not self._has_complained:
                self._has_complained = True
                _log.error(
                    "a request arrived before the server has started, and was refused with 503: an application does "
                    "not start what is mounted in it. Pass lifespan=mcp.lifespan to it, or mcp.lifespan_with(its_own)"
                )
            refusal = HttpRefusal(503, "Service unavailable: the server has not started", headers=[RETRY_AFTER])
            await send_refusal(send, refusal)
            return
        _scope.set({**scope, "headers": list(scope["headers"])})  # the app removes the token from its own list
        await app({**scope, "path": path_below_root(scope), "headers": list(scope["headers"])}, receive, send)

    async def _serve_lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        self._is_root = True
        phase = "startup"
        try:
            async with self.lifespan():
                await send({"type": "lifespan.startup.complete"})
                phase = "shutdown"
                await receive()
        except Exception as error:
            await send({"type": f"lifespan.{phase}.failed", "message": str(error)})
            return
        await send({"type": "lifespan.shutdown.complete"})

    def _check(self, host: ServerHost) -> None:
        """Refuse to start if strangers could use the server; warn if clients look for metadata where there is none."""
        authenticated = is_authenticated(host)
        if self._principal is not None and authenticated:
            raise ConfigurationError(
                "MountedApp has a principal, and the settings have auth or the container a token_verifier: two ways to "
                "authenticate. Keep one of them"
            )
        if self._principal is None and not authenticated and not host.settings.http.allow_unauthenticated:
            raise ConfigurationError(
                "Anyone who can reach the application around this server could use it. Pass principal to MountedApp, "
                "or configure auth (issuers, introspection_url or api_keys). If everyone may use it, set "
                "http.allow_unauthenticated = true"
            )
        if self._is_root or self._has_well_known or not host.settings.auth.is_used:
            return
        from axolotl_server.access.gate import metadata_url

        url = metadata_url(host.settings.auth)
        if url is not None:
            _log.warning(
                "clients look for %s, which this server does not serve while it is mounted: add "
                "well_known_routes() to the application around it",
                url,
            )


def path_below_root(scope: Scope) -> str:
    """Return the path of a request without the prefix that the application is mounted at.

    The path contains all of `root_path`, or, behind a proxy with a prefix of its own, the end of it.
    """
    path, root = str(scope["path"]), str(scope.get("root_path", "")).rstrip("/")
    while root:
        if path == root or path.startswith(f"{root}/"):
            return path[len(root) :] or "/"
        start = root.find("/", 1)
        root = root[start:] if start != -1 else ""
    return path


def _read(settings: Mapping[str, Any] | str | Path | None, profile: str | None) -> tuple[Any, FileSettings | None]:
    """Read settings: a mapping, the file at a path, or that of the project. Environment variables come on top."""
    if isinstance(settings, Mapping):
        return nest(combine(split_settings(settings).select(profile).sources)), None
    file = find_file(Path.cwd()) if settings is None else read_settings_file(Path(settings))
    return None, file.select(profile)


def _container(target: Target) -> containers.Container:
    if isinstance(target, str):
        return load_container(target)
    return target() if isinstance(target, type) else target
