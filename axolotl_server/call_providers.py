"""Providers for the call that an object is made for.

    session = providers.Factory(Session, database, principal=call_principal)
    tools = providers.List(providers.Singleton(Transfer, session=session.provider))

They work only inside of `context.enter(factory)` and `context.open(factory)`.
"""

from typing import Final

from dependency_injector import providers

from axolotl_core.calls.cancellation import CancellationToken
from axolotl_core.calls.context import Context
from axolotl_core.calls.scope import current_call
from axolotl_core.protocol.identity import Principal

__all__ = ["call_cancellation", "call_context", "call_principal"]


def _principal() -> Principal:
    return current_call().principal


def _cancellation() -> CancellationToken:
    return current_call().cancellation


call_context: Final[providers.Callable[Context]] = providers.Callable(current_call)
"""The call."""
call_principal: Final[providers.Callable[Principal]] = providers.Callable(_principal)
"""The principal of the call."""
call_cancellation: Final[providers.Callable[CancellationToken]] = providers.Callable(_cancellation)
"""The cancellation token of the call."""
