"""What these tests share."""

from tests.examples.registration.dialogue import servers

__all__ = ["servers"]
