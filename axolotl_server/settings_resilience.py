"""What an operator says about approval, and about work that must not be done twice."""

from typing import Literal

from pydantic import PositiveFloat, PositiveInt, SecretStr

from axolotl_server.settings_section import Section

__all__ = ["ApprovalSettings", "IdempotencySettings"]


class ApprovalSettings(Section):
    """Tools that a person has to approve, call by call."""

    required_for: Literal["declared", "destructive", "not_read_only"] = "declared"
    """Which tools need it besides those that say so themselves, which always do."""
    tools: tuple[str, ...] = ()
    """More of them, by name; `*` and `?` stand for anything."""


class IdempotencySettings(Section):
    """What is kept of calls that must not be done twice, for tools that ask for it."""

    max_entries: PositiveInt = 10_000
    """How many results are kept in memory; beyond that the oldest go."""
    max_bytes: PositiveInt = 64 * 1024 * 1024
    """How many bytes of results are kept in memory; beyond that the oldest go."""
    max_record_bytes: PositiveInt = 1024 * 1024
    """The largest result that is kept; of a larger one only that the work was done."""
    redis_url: SecretStr | None = None
    """Where replicas share results; without one, each process knows its own only."""
    redis_prefix: str = "axolotl:result:"
    """What all keys in Redis begin with."""
    redis_connections: PositiveInt = 20
    """How many connections a process opens at most."""
    claim_seconds: PositiveFloat = 10.0
    """When another replica may do the work of one that no longer says that it is at it."""
    store_timeout_seconds: PositiveFloat = 1.0
    """How long a call waits for the store."""
    on_store_failure: Literal["open", "closed"] = "closed"
    """Whether calls run unprotected (`open`) or are refused (`closed`) while the store is away."""
