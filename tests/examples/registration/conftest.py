"""What these tests share."""

from tests.examples.registration.dialogue import stdio_servers

__all__ = ["stdio_servers"]
