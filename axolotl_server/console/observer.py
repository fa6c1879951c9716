"""What sees every request: around the methods of all revisions, and around the code of every feature."""

import re
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import UNSET

from axolotl_core.layer import ILayer, Invoke, ToolCall
from axolotl_core.spec import FeatureSpec
from axolotl_server.audit.redaction import redactor
from axolotl_server.console.journal import Entry, Journal, client_in_handshake
from axolotl_server.eras.base import Method, Methods
from axolotl_server.layers.audit_outcomes import DONE, Ending, ending_of, ending_of_stop
from axolotl_server.request import Request

__all__ = ["Observer"]

_NAMED: Final = ("tools/call", "prompts/get")
_TELLING: Final = re.compile(rb'"isError":true|"resultType":"task"')
"""Results without it are neither errors nor tasks; with it, one has to look."""


class _Verdict(msgspec.Struct, rename="camel"):
    is_error: bool = False
    result_type: str = "complete"


class Observer(ILayer):
    """Keeps the journal: the methods tell when a request begins and ends, the layer how the code of a feature did."""

    def __init__(self, journal: Journal, *, show_arguments: bool = False) -> None:
        self._journal = journal
        self._show_arguments = show_arguments
        self._entries: dict[Request, Entry] = {}

    def observe(self, methods: Methods) -> Methods:
        """Stand around methods."""
        return {name: self._around(name, method) for name, method in methods.items()}

    def _around(self, name: str, method: Method) -> Method:
        journal, entries = self._journal, self._entries

        async def observed(request: Request) -> bytes | None:
            entry = entries[request] = journal.begin(request, name)
            if name in _NAMED and request.head.params.name is not UNSET:
                entry.name = request.head.params.name
            request.exchange.loop.call_soon(journal.announce, entry)
            try:
                result = await method(request)
            except BaseException as error:
                journal.end(entry, _seen(entry) or ending_of(error))
                raise
            finally:
                del entries[request]
                if name == "initialize":
                    entry.client = client_in_handshake(request)
            journal.end(entry, _ending(entry, result), None if result is None else len(result))
            return result

        return observed

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        """Stand around the code of a feature."""
        journal, entries = self._journal, self._entries
        redact = redactor(spec) if self._show_arguments else None

        async def observed(call: ToolCall) -> Any:
            request = call.caller
            assert isinstance(request, Request)
            known = entries.get(request)
            entry = journal.begin(request, request.head.method) if known is None else known  # the run of a task
            entry.kind, entry.name = spec.kind, spec.name
            call.when_abandoned(partial(_abandon, journal, entry, call))
            try:
                output = await call_next(call)
                entry.ending = _stop(call) or DONE
                return output
            except BaseException as error:
                entry.ending = _stop(call) or ending_of(error)
                raise
            finally:
                entry.queued_seconds, entry.reference = call.queued_seconds or None, call.reference
                if redact is not None and call.arguments is not None:
                    entry.arguments = _members(redact(call.raw))
                if known is None:
                    journal.end(entry, entry.ending or DONE)

        return observed


def _members(arguments: msgspec.Raw | None) -> msgspec.Raw | None:
    """Leave out what names no argument at all."""
    return arguments if arguments is not None and bytes(arguments).startswith(b'{"') else None


def _stop(call: ToolCall) -> Ending | None:
    return None if call.cancel_reason is None else ending_of_stop(call.cancel_reason)


def _abandon(journal: Journal, entry: Entry, call: ToolCall) -> None:
    reason = call.cancel_reason
    journal.end(entry, Ending("abandoned", None if reason is None else reason.value))


def _seen(entry: Entry) -> Ending | None:
    """Give what the layers saw go wrong."""
    return None if entry.ending is DONE else entry.ending


def _ending(entry: Entry, result: bytes | None) -> Ending:
    """Judge by what the layers saw, and where they saw nothing wrong by the answer itself."""
    if result is None:
        return _seen(entry) or Ending("cancelled")
    return _seen(entry) or (_read(result) if _TELLING.search(result) else DONE)


def _read(result: bytes) -> Ending:
    verdict = msgspec.json.decode(result, type=_Verdict)
    if verdict.is_error:
        return Ending("error")
    return Ending("ok", "task") if verdict.result_type == "task" else DONE
