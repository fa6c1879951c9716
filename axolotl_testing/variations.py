"""Variations of a test: the revisions and transports that its marker names."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, get_args

import pytest

from axolotl_core.names import nearest
from axolotl_core.protocol.versions import REVISIONS
from axolotl_testing.transports import TransportName

_TRANSPORTS: Final = get_args(TransportName)
_REVISIONS: Final = tuple(revision.name for revision in REVISIONS)
_OPTIONS: Final = ("revisions", "transports")
_ALL: Final = "all"


class Variation(NamedTuple):
    """The revision and the transport of one run of a test."""

    revision: str | None = None
    transport: TransportName = "memory"

    @property
    def name(self) -> str:
        """The ID of the run."""
        return self.transport if self.revision is None else f"{self.revision}-{self.transport}"


def variations_of(marker: pytest.Mark) -> list[Variation]:
    """Read `@pytest.mark.axolotl(revisions=…, transports=…)`; unknown values fail the collection."""
    unknown = [f"an option {name!r}" for name in marker.kwargs if name not in _OPTIONS]
    if marker.args or unknown:
        what = ", ".join(unknown) or "positional arguments"
        pytest.fail(f"@pytest.mark.axolotl takes revisions= and transports=, not {what}", pytrace=False)
    revisions: Any = marker.kwargs.get("revisions")
    transports = _known(marker.kwargs.get("transports", ("memory",)), _TRANSPORTS, "transport")
    names = [None] if revisions is None else _known(revisions, _REVISIONS, "revision")
    return [Variation(revision, transport) for revision in names for transport in transports]


def _known(given: Any, known: Sequence[str], kind: str) -> Any:
    if given == _ALL:
        return known
    values = [given] if isinstance(given, str) else list(given)
    for value in values:
        if value not in known:
            near = nearest(str(value), known)
            hint = f"did you mean {near!r}?" if near else f"use {', '.join(known)} or {_ALL!r}"
            pytest.fail(f"@pytest.mark.axolotl: there is no {kind} {value!r}; {hint}", pytrace=False)
    return values
