"""Fixtures of the dispatch tests."""

from tests.examples.registration.dialogue import servers

__all__ = ["servers"]
