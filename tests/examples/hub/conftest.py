"""Fixtures of the hub tests."""

from tests.examples.registration.dialogue import servers

__all__ = ["servers"]
