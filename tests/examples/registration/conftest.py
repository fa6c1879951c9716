"""Fixtures of the registration tests."""

from tests.examples.registration.dialogue import servers

__all__ = ["servers"]
